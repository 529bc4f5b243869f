"""Which rewrite a read gets: fixers are tried in order, and say why where there is none."""

from jitlint.analysis.observations import Operation
from jitlint.finding import Fix
from jitlint.rule import Context

from ..fixing import Fixer, first_fix
from ..shape_fixes import indexing, masked
from . import checks, constructors, scalars

FIXERS: tuple[Fixer, ...] = (
    *checks.FIXERS,
    *constructors.FIXERS,
    *indexing.FIXERS,
    *masked.FIXERS,
    *scalars.FIXERS,
)
"""Tried in order: the first that takes the read for its own decides."""

UNKNOWN = (
    "no rewrite is known to keep what Python does with the value: move the read behind the "
    "compiled code, or put it into a function of its own under `torch.compiler.disable`"
)


def fix_for(operation: Operation, ctx: Context) -> tuple[Fix | None, str | None]:
    """The fix of a read and None, or None and the reason why there is none."""
    return first_fix(operation, ctx, FIXERS, UNKNOWN)
