"""What torch.jit.trace and its like freeze: they run a function once, and record operators.

A size is recorded (`x.shape[0] * 2`) until Python makes a number of it (`len(x)`); what is
read of a tensor's data, its dtype and its device are constants at once. Which call does what
is measured (`jitlint.analysis.extract_traced`).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from jitlint.analysis.frame import Frame
from jitlint.analysis.observations import Freeze
from jitlint.analysis.operators import leaves_of
from jitlint.analysis.tables import Returns
from jitlint.analysis.values import (
    STATIC,
    TORCH_SIZE,
    External,
    Framework,
    Instance,
    Read,
    Sequence,
    Source,
    Static,
    Tensor,
    Tuple,
    Value,
)
from jitlint.project.modules import FunctionInfo

if TYPE_CHECKING:
    from jitlint.analysis.calls import Arguments

CONVERSIONS = {f"builtins.{kind}": f"__{kind}__" for kind in ("int", "float", "complex")}
ITERATING = frozenset(
    f"builtins.{name}" for name in ("enumerate", "zip", "list", "tuple", "reversed", "iter", "map")
)
LIMITS = frozenset({"torch.finfo", "torch.iinfo"})
"""Functions of a dtype that give numbers."""


# -- values --------------------------------------------------------------------------------


def metadata(name: str) -> Static:
    """`x.dtype`: a Python value that is not the same for every tensor."""
    return Static(source=Source.METADATA, read=Read(name))


def is_metadata(frame: Frame, name: str) -> bool:
    return frame.machine.tracing.outcome("metadata", name, frame.tracer) is not None


def holds_size(value: Value) -> bool:
    """Whether a value is, or is made of, sizes of a tensor."""
    return any(_is_size(leaf) for leaf in leaves_of((value,)))


def _is_size(value: Value) -> bool:
    return isinstance(value, Static) and value.source is Source.SHAPE


def _is_recorded_size(value: Value) -> bool:
    """A size that is still a tensor to the tracer; what Python made of one has a `read`."""
    return isinstance(value, Static) and value.source is Source.SHAPE and value.read is None


def _is_torch(value: Value) -> bool:
    return isinstance(value, Tensor) and value.framework is Framework.TORCH


def is_state(frame: Frame, node: cst.CSTNode) -> bool:
    """Whether an expression is an attribute of an object as it was made: the same for any
    input."""
    from jitlint.analysis.expressions import evaluate_target_path

    path = evaluate_target_path(node)
    if path is None or "." not in path or path in frame.variables:
        return False
    return isinstance(frame.variables.get(path.partition(".")[0]), Instance)


# -- expressions ---------------------------------------------------------------------------


def by_attribute(frame: Frame, receiver: Tensor, node: cst.Attribute) -> Value:
    """The attribute of a tensor, which may be a constant to the trace."""
    name = node.attr.value
    value = frame.machine.attribute(frame, receiver, name)
    if is_state(frame, node.value):
        return Sequence(STATIC, TORCH_SIZE.cls) if holds_size(value) else value
    if _is_torch(receiver):
        _note(frame, node, Freeze.COPY, "copies", name, receiver)
    return value


def by_function(
    frame: Frame, name: str, arguments: "Arguments", result: Value, node: cst.BaseExpression
) -> Value:
    """The result of a function of a library; the log is told of what it freezes."""
    nodes = [arg.value for arg in node.args] if isinstance(node, cst.Call) else []
    if nodes and is_state(frame, nodes[0]):
        return STATIC if _is_size(result) else result
    _of_mode(frame, name, arguments, node)
    given = arguments.all()
    freezes = any(freeze(frame, name, given, node) for freeze in OF_FUNCTIONS)
    return _as_number(result, name) if freezes else result


def _as_number(result: Value, name: str) -> Value:
    """A size that has become a number of Python's."""
    match result:
        case Static(source=Source.SHAPE, read=None):
            return replace(result, read=Read(name))
        case Sequence(element):
            return replace(result, element=_as_number(element, name))
    return result


def _of_size(frame: Frame, name: str, given: list[Value], node: cst.BaseExpression) -> bool:
    row = "numpy" if name.startswith("numpy.") else name
    first = given[0] if given else STATIC
    if name == "builtins.len":
        sizes: Iterator[Value] = iter([first] if _is_torch(first) else [])
    elif name in LISTING and not isinstance(first, Tuple | Sequence):
        return False
    else:
        sizes = (leaf for leaf in leaves_of(given) if _is_recorded_size(leaf))
    size = next(sizes, None)
    return size is not None and _note(frame, node, Freeze.SIZE, "sizes", row, size, name)


LISTING = frozenset({"torch.tensor", "torch.as_tensor", "torch.Tensor"})
"""Functions that record a number that they are given alone, and freeze those in a list."""


def _of_data(frame: Frame, name: str, given: list[Value], node: cst.BaseExpression) -> bool:
    tensor = next(filter(_is_torch, leaves_of(given)), None)
    if tensor is None:
        return False
    first = given[0]
    if name in ITERATING and any(map(_is_torch, given)):
        return _note(frame, node, Freeze.LOOP, "loops", "tensor", first, name)
    if not _is_torch(first):
        return _note(frame, node, Freeze.DATA, "listed", name, tensor)
    if _note(frame, node, Freeze.COPY, "copies", name, tensor):
        return True
    row = f"torch.Tensor.{CONVERSIONS[name]}" if name in CONVERSIONS else name
    row = "numpy" if name.startswith("numpy.") else row
    row = "math.sqrt" if name.startswith("math.") else row
    return _note(frame, node, Freeze.DATA, "data", row, tensor, name)


def _of_mode(frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression) -> None:
    """`F.dropout(x, p)` is in training mode whatever the module is in."""
    table = frame.machine.tracing
    position = table.training_position(name)
    if position is None or arguments.rest is not None or arguments.open:
        return
    is_told = arguments.get(position, "training") is not None
    if not is_told and not table.is_switched_off(name, arguments.constant):
        value = arguments.all()[0] if arguments.all() else STATIC
        frame.observe_frozen(node, Freeze.TRAINING, name, "frozen", value)


def _of_metadata(frame: Frame, name: str, given: list[Value], node: cst.BaseExpression) -> bool:
    operator = frame.machine.torch.function(name)
    makes_tensor = operator is not None and operator.returns in (Returns.TENSOR, Returns.TENSORS)
    return (makes_tensor or name in LIMITS) and _note_metadata(frame, node, name, given)


OF_FUNCTIONS: tuple[Callable[[Frame, str, list[Value], cst.BaseExpression], bool], ...] = (
    _of_size,
    _of_data,
    _of_metadata,
)


def by_method(
    frame: Frame, name: str, given: list[Value], result: Value, node: cst.BaseExpression
) -> Value:
    """The result of a method of a tensor; the log is told of what it freezes."""
    if isinstance(node, cst.Call) and _is_of_state(frame, node.func):
        return STATIC if _is_size(result) else result
    if is_metadata(frame, name) and isinstance(result, Static):
        return metadata(name)
    if not _note_metadata(frame, node, name, given):
        tensor = next(filter(_is_torch, given), None)
        if tensor is not None:
            _note(frame, node, Freeze.CAST, "casts", name, tensor)
        _note(frame, node, Freeze.DATA, "data", f"torch.Tensor.{name}", result)
    return result


def _is_of_state(frame: Frame, function: cst.BaseExpression) -> bool:
    return isinstance(function, cst.Attribute) and is_state(frame, function.value)


def _note_metadata(frame: Frame, node: cst.BaseExpression, name: str, given: list[Value]) -> bool:
    """What is made with the dtype or the device of another tensor is of that for ever."""
    for value in leaves_of(given):
        if isinstance(value, Static) and value.source is Source.METADATA and value.read:
            row = value.read.operator
            return _note(frame, node, Freeze.METADATA, "metadata", row, value, name)
    return False


# -- statements ----------------------------------------------------------------------------


def by_loop(frame: Frame, iterated: Value, node: cst.BaseExpression) -> None:
    """A loop over a tensor goes around as often as the example is long."""
    if _is_torch(iterated) and not is_state(frame, node):
        _note(frame, node, Freeze.LOOP, "loops", "tensor", iterated)


def as_result(frame: Frame, value: Value, node: cst.BaseExpression) -> None:
    """A number that the traced function returns is a tensor, or a constant."""
    is_entry = frame.region is not None and len(frame.region.chain) == 1
    if is_entry and any(map(_is_recorded_size, leaves_of((value,)))):
        _note(frame, node, Freeze.RESULT, "sizes", "return", value)


def in_mode(frame: Frame, name: str, node: cst.BaseExpression) -> None:
    """A mode that a `with` switches on, and that the trace does not know of."""
    _note(frame, node, Freeze.MODE, "modes", name, External(name))


def in_mode_of_decorators(frame: Frame, info: FunctionInfo) -> None:
    for name in sorted(frame.machine.decorator_names(info)):
        if frame.machine.tracing.outcome("modes", name, frame.tracer) is not None:
            in_mode(frame, name, info.decorators[0])


def _note(
    frame: Frame,
    node: cst.BaseExpression,
    freeze: Freeze,
    section: str,
    row: str,
    value: Value,
    name: str = "",
) -> bool:
    """Tell the log, if the table says that the tracer does not record it."""
    outcome = frame.machine.tracing.outcome(section, row, frame.tracer)
    if outcome is not None:
        frame.observe_frozen(node, freeze, name or row, outcome, value)
    return outcome is not None
