"""What the rules of this family share: where a compiler stops at an operation, and how to
say so."""

import enum

import libcst as cst

from jitlint.analysis.observations import Operation, Use
from jitlint.analysis.operators import leaves_of
from jitlint.analysis.tree import ancestors_of
from jitlint.analysis.values import Framework, Origin, Tensor
from jitlint.finding import Finding, Fix, Severity
from jitlint.region import Region, RegionKind
from jitlint.rule import Context

DATA_DEPENDENT = "GB0033"
"""The id of operators that return a Python value which nothing can capture as a symbol."""
SCALAR_READ = "GB0124"
"""The id of a read that is captured with `capture_scalar_outputs`."""
DYNAMIC_SHAPE = "GB0036"
"""The id of operators whose output shape depends on data."""


class Problem(enum.Enum):
    """Which rule of the family an operation belongs to."""

    HOST_READ = "trace-host-read"
    DYNAMIC_SHAPE = "trace-dynamic-shape"
    SIDE_EFFECT = "trace-side-effect"
    UNSUPPORTED = "trace-unsupported-call"


def problem_of(operation: Operation) -> Problem:
    operator = operation.operator
    if (
        operation.use in (Use.INDEX, Use.BOUND)
        or operator.dynamic_shape
        or operation.code == DYNAMIC_SHAPE
    ):
        return Problem.DYNAMIC_SHAPE
    if operation.use is Use.NUMBER or operation.code == SCALAR_READ:
        return Problem.HOST_READ
    if operator.refused and operation.code is None:
        return Problem.HOST_READ  # a tensor that is exported has no data to give
    if _needs_number(operation):
        return Problem.HOST_READ
    if operator.reads or operation.use in (Use.CONVERSION, Use.FORMAT):
        return Problem.HOST_READ
    if operator.effect or operator.varies:
        return Problem.SIDE_EFFECT
    return Problem.UNSUPPORTED


NUMERIC = frozenset({"builtins", "cmath", "math", "numpy", "operator", "statistics"})
"""Modules whose functions compute with what they are given."""


def _needs_number(operation: Operation) -> bool:
    """Whether a function cannot be traced because it is given a tensor."""
    module = operation.operator.name.partition(".")[0]
    is_caused = not operation.operator.breaks or module == "numpy"
    is_read = is_caused and not operation.operator.computes
    return module in NUMERIC and is_read and operation.holds_tensor


def breaking_region(operation: Operation) -> Region | None:
    """The region whose graph ends at the operation, if any.

    With `fullgraph=True`, and under a strict torch.export, a number that is read becomes a
    symbol, and so does a size that depends on data. By default torch.export runs the program
    in Python, and follows its tensors: it stops at less, and elsewhere.
    """
    if operation.default_mode is not None and operation.code is not None:
        return operation.default_mode
    raises = not operation.captured and bool(operation.code or operation.use is Use.NUMBER)
    compiled = operation.regions.get(RegionKind.COMPILE)
    if raises and operation.fullgraph and compiled is not None:
        return compiled
    exported = operation.regions.get(RegionKind.EXPORT)
    if exported is None:
        return None
    stops = raises if exported.fullgraph else _is_refused(operation, raises)
    return exported if stops else None


def _is_refused(operation: Operation, raises: bool) -> bool:
    """Whether torch.export stops at an operation while it runs the program in Python."""
    operator = operation.operator
    if operator.refused and (operation.use is Use.NUMBER or _is_given_tensor(operation)):
        return True
    return raises and not operator.exported


def _is_given_tensor(operation: Operation) -> bool:
    """Whether an operator is given a tensor of torch: not only what Python computed, nor a
    literal whose number it reads."""
    tensors = [value for value in leaves_of(operation.given) if isinstance(value, Tensor)]
    if operation.operator.reads and all(t.origin is Origin.CONSTANT for t in tensors):
        return False
    return any(tensor.framework is Framework.TORCH for tensor in tensors)


def stopped(operation: Operation, problem: Problem) -> Region | None:
    """The region whose graph ends at the operation, if that is a problem of this kind."""
    return breaking_region(operation) if problem_of(operation) is problem else None


def is_asked(node: cst.CSTNode, module: cst.Module) -> bool:
    """Whether a value is part of a condition: that is where a finding about it stands."""
    child = node
    for parent in ancestors_of(node, module):
        match parent:
            case cst.If() | cst.While() | cst.IfExp() | cst.Assert():
                return child is parent.test
            case cst.Comparison() | cst.ComparisonTarget() | cst.BooleanOperation():
                pass
            case cst.UnaryOperation(operator=cst.Not()):
                pass
            case _:
                return False
        child = parent
    return False


def severity_of(seen: Operation, region: Region) -> Severity:
    if seen.guarded:
        return Severity.NOTE
    if region.kind is RegionKind.COMPILE and not region.fullgraph:
        return Severity.WARNING
    return Severity.ERROR


def codes_of(operation: Operation, region: Region) -> tuple[str, ...]:
    is_break = region.kind is RegionKind.COMPILE and operation.code
    return (operation.code,) if is_break and operation.code else ()


def stop(
    operation: Operation,
    region: Region,
    ctx: Context,
    problem: str,
    found: tuple[Fix | None, str | None],
    *,
    ending: str | None = None,
    severity: Severity | None = None,
) -> Finding:
    """The finding about an operation: its problem, and what the compiler does about it.

    `found` is the fix, or the reason why there is none.
    """
    fix, no_fix_reason = found
    return ctx.finding(
        operation.node,
        f"{problem}; {ending or consequence(region)}",
        severity=severity or severity_of(operation, region),
        codes=codes_of(operation, region),
        region=region,
        fix=fix,
        no_fix_reason=no_fix_reason,
    )


def consequence(region: Region) -> str:
    """What the compiler of a region does about it, to end a message with."""
    if region.kind is RegionKind.EXPORT:
        return "torch.export cannot follow it"
    if region.fullgraph:
        return "torch.compile(fullgraph=True) raises here"
    return "torch.compile breaks the graph here"
