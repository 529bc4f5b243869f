"""Which rewrite a branch gets: fixers are tried in order, and say why where there is none."""

from collections.abc import Callable

from jitlint.analysis.observations import TruthTest
from jitlint.analysis.values import is_symbol
from jitlint.finding import Fix
from jitlint.region import RegionKind
from jitlint.rule import Context

from . import checks, draws, inplace, loops, masked, order, script, where
from .surroundings import check_callers, check_names
from .withheld import NotMine, Withheld

Fixer = Callable[[TruthTest, Context], Fix]
"""Raises Withheld with a reason; raises NotMine if the construct is not of its kind."""

FIXERS: tuple[Fixer, ...] = (
    *checks.FIXERS,
    *loops.FIXERS,
    *script.FIXERS,
    *masked.FIXERS,
    *inplace.FIXERS,
    *where.FIXERS,
)
"""Tried in order: the first that takes the construct for its own decides."""
ORDERS: tuple[Fixer, ...] = (draws.rate_first, order.static_first)
"""What asks the same in another order, where nothing else helps."""

SERVED = frozenset({RegionKind.COMPILE, RegionKind.EXPORT, RegionKind.TRACE})
DRAWN = (
    "Python draws another number at each call: draw it outside and pass it as an argument, or "
    "draw a tensor by `torch.rand`, whose numbers are others"
)
ADDRESS = "where a tensor lies is not known before the code runs: ask for it outside of the region"
UNKNOWN_CONSTRUCT = "no rewrite is known to keep the meaning of this construct"


def fix_for(test: TruthTest, ctx: Context) -> tuple[Fix | None, str | None]:
    """The fix of a test and None, or None and the reason why there is none."""
    try:
        fix = _first(test, ctx)
        check_names(fix, test.module.tree)
        return fix, None
    except Withheld as withheld:
        return None, str(withheld)


def or_reordered(
    found: tuple[Fix | None, str | None], test: TruthTest, ctx: Context
) -> tuple[Fix | None, str | None]:
    """A fix or the reason for none; and instead of a reason the other order, if that helps."""
    for fixer in ORDERS if found[0] is None else ():
        try:
            return fixer(test, ctx), None
        except (NotMine, Withheld):
            continue
    return found


def _first(test: TruthTest, ctx: Context) -> Fix:
    if not SERVED.issuperset(test.regions):
        raise Withheld("the function also runs under another compiler, which needs its own form")
    if is_symbol(test.value) and test.value.read is not None:
        is_drawn = not test.value.read.operator.startswith("torch.Tensor.")
        raise Withheld(DRAWN if is_drawn else ADDRESS)
    check_callers(test)
    for fixer in FIXERS:
        try:
            return fixer(test, ctx)
        except NotMine:
            continue
    raise Withheld(UNKNOWN_CONSTRUCT)
