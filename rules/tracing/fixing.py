"""How the rules of this family come to the fix of an operation."""

from collections.abc import Callable, Sequence

from jitlint.analysis.observations import Operation
from jitlint.analysis.scope import names_read
from jitlint.finding import Fix
from jitlint.region import RegionKind
from jitlint.rule import Context

from .branch_fixes.comments import require_comments
from .branch_fixes.surroundings import check_callers, check_names
from .branch_fixes.withheld import NotMine, Withheld

Fixer = Callable[[Operation, Context], Fix]
"""Raises Withheld with a reason; raises NotMine if the operation is not of its kind."""

SERVED = frozenset({RegionKind.COMPILE, RegionKind.EXPORT, RegionKind.TRACE})


def first_fix(
    operation: Operation, ctx: Context, fixers: Sequence[Fixer], otherwise: str
) -> tuple[Fix | None, str | None]:
    """The fix of the first fixer that takes the operation, or the reason why there is none."""
    try:
        fix = _first(operation, ctx, fixers, otherwise)
        check_callers(operation, names_read(*fix.replacements))
        check_names(fix, operation.module.tree)
        require_comments(fix.replacements)
    except Withheld as withheld:
        return None, str(withheld)
    return fix, None


def _first(operation: Operation, ctx: Context, fixers: Sequence[Fixer], otherwise: str) -> Fix:
    if not SERVED.issuperset(operation.regions):
        raise Withheld("the function also runs under another compiler, which needs its own form")
    for fixer in fixers:
        try:
            return fixer(operation, ctx)
        except NotMine:
            continue
    raise Withheld(otherwise)
