"""The operator that takes a break out of the graph, if there can be one."""

import libcst as cst
from packaging.version import Version

from jitlint.analysis.observations import Observation
from jitlint.analysis.scope import is_optional, may_be_scripted
from jitlint.finding import Fix
from jitlint.region import RegionKind
from jitlint.rule import Context

from ..branch_fixes.surroundings import check_names
from ..branch_fixes.withheld import Withheld
from .array import array_as_operator
from .effects import effects_as_operator
from .part import part_as_operator
from .tensors import tensors_as_operator
from .whole import function_as_operator

FIRST_MEASURED = "2.13"
"""The first release of torch on which operators with an effect were measured."""

FORMS = (
    function_as_operator,
    array_as_operator,
    tensors_as_operator,
    part_as_operator,
    effects_as_operator,
)
"""Tried in order: the first that is right is taken."""


def isolated(seen: Observation, ctx: Context) -> Fix | None:
    """The fix that makes an operator of the function, or of the statement, around a break."""
    targets = ctx.settings.targets
    if set(seen.regions) != {RegionKind.COMPILE} or _is_older(targets.get("torch")):
        return None
    if seen.function is None or not isinstance(seen.function.node, cst.FunctionDef):
        return None
    if is_optional("torch", seen.module) or may_be_scripted(seen.module):
        return None
    for form in FORMS:
        try:
            fix = form(seen, ctx)
            check_names(fix, seen.module.tree)
        except Withheld:
            continue
        return fix
    return None


def or_isolated(
    found: tuple[Fix | None, str | None], seen: Observation, ctx: Context
) -> tuple[Fix | None, str | None]:
    """A fix or the reason for none, and instead of a reason the operator, if there can be one."""
    fix = found[0] or isolated(seen, ctx)
    return (fix, None) if fix is not None else found


def _is_older(target: Version | None) -> bool:
    return target is not None and target < Version(FIRST_MEASURED)
