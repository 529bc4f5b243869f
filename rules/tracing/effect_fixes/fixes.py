"""Which rewrite an operation gets, by the name of what is called; and why there is none."""

from collections.abc import Callable, Mapping

from jitlint.analysis.observations import Operation
from jitlint.finding import Fix
from jitlint.region import RegionKind
from jitlint.rule import Context

from ..branch_fixes.comments import require_comments
from ..branch_fixes.surroundings import check_names
from ..branch_fixes.withheld import NotMine, Withheld
from ..isolation.isolate import isolated
from . import contexts, flags, printing, rewrites

Fixer = Callable[[Operation, Context], Fix]

FIXERS: Mapping[str, Fixer] = {
    "builtins.print": printing.printed,
    "builtins.pow": rewrites.power,
    "copy.deepcopy": rewrites.deep_copy,
    "copy.copy": rewrites.shallow_copy,
    "torch.device": contexts.device,
    "contextlib.ExitStack.enter_context": contexts.exit_stack,
    "requires_grad": flags.requires_grad,
}

SERVED = frozenset({RegionKind.COMPILE, RegionKind.EXPORT})
OTHER_COMPILER = "the function also runs under another compiler, which needs its own form"


def fix_for(operation: Operation, ctx: Context, no_fixer: str) -> tuple[Fix | None, str | None]:
    """The fix and None, or None and the reason; `no_fixer` is the reason of those that have
    no rewrite."""
    fix, reason = _rewritten(operation, ctx, no_fixer)
    if fix is None and operation.operator.effect is not None:
        fix = isolated(operation, ctx)  # what it does, it does to the world, and not to a tensor
    return fix, reason if fix is None else None


def _rewritten(operation: Operation, ctx: Context, no_fixer: str) -> tuple[Fix | None, str]:
    fixer = FIXERS.get(operation.operator.name)
    if fixer is None:
        return None, no_fixer
    if not SERVED.issuperset(operation.regions):
        return None, OTHER_COMPILER
    try:
        fix = fixer(operation, ctx)
        check_names(fix, operation.module.tree)
        require_comments(fix.replacements)
        return fix, ""
    except NotMine:
        return None, no_fixer
    except Withheld as withheld:
        return None, str(withheld)
