"""Which rewrite an operation gets, by the name of what is called; and why there is none."""

from collections.abc import Callable, Mapping

from jitlint.analysis.observations import Operation
from jitlint.analysis.tables import Operator
from jitlint.finding import Fix
from jitlint.region import RegionKind
from jitlint.rule import Context

from . import _contexts, _effect_operators, _printing, _rewrites
from .branch_fixes.surroundings import check_names
from .branch_fixes.withheld import NotMine, Withheld

Fixer = Callable[[Operation, Context], Fix]

FIXERS: Mapping[str, Fixer] = {
    "builtins.print": _printing.printed,
    "builtins.pow": _rewrites.power,
    "copy.deepcopy": _rewrites.deep_copy,
    "copy.copy": _rewrites.shallow_copy,
    "torch.device": _contexts.device,
    "contextlib.ExitStack": _contexts.exit_stack,
}


def _fixer(operator: Operator) -> Fixer | None:
    """Text is written by an operator; the others have one fixer each."""
    fixer = FIXERS.get(operator.name)
    return _effect_operators.operator if fixer is None and operator.effect == "output" else fixer


SERVED = frozenset({RegionKind.COMPILE, RegionKind.EXPORT})


def fix_for(operation: Operation, ctx: Context, no_fixer: str) -> tuple[Fix | None, str | None]:
    """The fix and None, or None and the reason; `no_fixer` is the reason of those that have
    no rewrite."""
    fixer = _fixer(operation.operator)
    if fixer is None:
        return None, no_fixer
    try:
        if not SERVED.issuperset(operation.regions):
            raise Withheld(
                "the function also runs under another compiler, which needs its own form"
            )
        fix = fixer(operation, ctx)
        check_names(fix, operation.module.tree)
        return fix, None
    except NotMine:
        return None, no_fixer
    except Withheld as withheld:
        return None, str(withheld)
