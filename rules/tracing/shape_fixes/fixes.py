"""Which rewrite an operation gets whose result has a size that depends on data."""

from jitlint.analysis.observations import Operation
from jitlint.finding import Fix
from jitlint.rule import Context

from ..fixing import Fixer, first_fix
from . import counting, indexing, masked, rows

FIXERS: tuple[Fixer, ...] = (
    *counting.FIXERS,
    *indexing.FIXERS,
    *rows.FIXERS,
    *masked.FIXERS,
)
"""Tried in order: the first that takes the operation for its own decides."""

UNKNOWN = (
    "what follows needs the result in its own size: `torch._dynamo.config."
    "capture_dynamic_output_shape_ops = True` lets the compiler take it"
)


def fix_for(operation: Operation, ctx: Context) -> tuple[Fix | None, str | None]:
    """The fix of an operation and None, or None and the reason why there is none."""
    return first_fix(operation, ctx, FIXERS, UNKNOWN)
