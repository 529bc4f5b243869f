"""What the rules of this family say of code that runs once, while a function is traced."""

from collections.abc import Iterator

import libcst as cst

from jitlint.analysis.frame import ONCE
from jitlint.analysis.observations import Freeze, Frozen, Observation
from jitlint.analysis.tree import parents_of
from jitlint.analysis.values import Kernel
from jitlint.finding import Finding, Severity
from jitlint.region import GRAPHS, Region
from jitlint.rule import Context

from ._graph_fixes import fix_of_read
from ._print_fix import fix_of_effect


def recorded_in(frozen: Frozen) -> Region:
    """The first region that runs the code once, to record what it does."""
    return next(region for kind, region in frozen.regions.items() if kind in ONCE)


def is_bridge(seen: Observation, ctx: Context) -> bool:
    """Whether an array is made for a kernel of Numba: then its call is the finding."""
    parents = parents_of(ctx.module)
    argument = parents.get(seen.node)
    call = parents.get(argument) if isinstance(argument, cst.Arg) else None
    return isinstance(call, cst.Call) and isinstance(seen.value_of(call.func), Kernel)


def _code(frozen: Frozen, ctx: Context) -> str:
    return ctx.shortened(frozen.node)


def graph_reads(frozen: Frozen, ctx: Context) -> Iterator[Finding]:
    """NumPy, `math` or `.numpy()` on a tensor of a TensorFlow graph."""
    region = recorded_in(frozen)
    if frozen.freeze is not Freeze.DATA or region.kind not in GRAPHS or is_bridge(frozen, ctx):
        return
    fix, reason = fix_of_read(frozen)
    yield ctx.finding(
        frozen.node,
        f"`{_code(frozen, ctx)}` asks a tensor of the graph for its value, which it has none of "
        "while TensorFlow traces the function",
        severity=Severity.ERROR,
        region=region,
        fix=fix,
        no_fix_reason=reason,
    )


def effects(frozen: Frozen, ctx: Context) -> Iterator[Finding]:
    """Output and changes of Python objects, which happen once for each trace."""
    if frozen.freeze is not Freeze.EFFECT:
        return
    is_call = isinstance(frozen.node, cst.Call) and not _is_mutation(frozen)
    what = "is called" if is_call else "changes a Python object"
    fix, reason = fix_of_effect(frozen, not is_call)
    yield ctx.finding(
        frozen.node,
        f"`{_code(frozen, ctx)}` {what} while the function is traced, and not when the "
        "traced function runs",
        severity=Severity.WARNING if is_call else Severity.ERROR,
        region=recorded_in(frozen),
        fix=fix,
        no_fix_reason=reason,
    )


def _is_mutation(frozen: Frozen) -> bool:
    return "." not in frozen.name


def hashes(frozen: Frozen, ctx: Context) -> Iterator[Finding]:
    """A tensor of a graph as a key: of a dict, or of a function that remembers its results."""
    if frozen.freeze is not Freeze.HASH:
        return
    is_call = isinstance(frozen.node, cst.Call)
    what = (
        f"`{frozen.name}` remembers its results by its arguments" if is_call else "a key of a dict"
    )
    yield ctx.finding(
        frozen.node,
        f"`{_code(frozen, ctx)}`: {what}, and a tensor of a graph cannot be hashed",
        severity=Severity.ERROR,
        region=recorded_in(frozen),
        no_fix_reason=UNCACHED if is_call else LOOKED_UP,
    )


UNCACHED = "call the function without its cache: a graph computes it once for each run anyway"
LOOKED_UP = "put the values into a tensor and use `tf.gather`, or into a `tf.lookup` table"
