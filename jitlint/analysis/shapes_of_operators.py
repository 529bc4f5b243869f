"""What TensorFlow's functions and layers do to static shapes, by their table rows."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from jitlint.analysis import shapes
from jitlint.analysis.calls import apply, handles
from jitlint.analysis.frame import Frame
from jitlint.analysis.makers import KERAS_INPUTS
from jitlint.analysis.operators import leaves_of
from jitlint.analysis.tables import Operator, Returns
from jitlint.analysis.values import (
    NONE,
    UNKNOWN,
    Batch,
    BoundMethod,
    External,
    Framework,
    Function,
    Loss,
    Sequence,
    Shape,
    Size,
    Static,
    Tensor,
    Tuple,
    Value,
)

if TYPE_CHECKING:
    from jitlint.analysis.calls import Arguments

GRAPH_TENSOR = Tensor(framework=Framework.TENSORFLOW)


def check(frame: Frame, operator: Operator, arguments: "Arguments", node: cst.CSTNode) -> None:
    """Observe sizes and shapes that this call needs and the graph does not know."""
    if not isinstance(node, cst.Call):
        return
    first = arguments.positional[0] if arguments.positional else UNKNOWN
    shape = first.shape if isinstance(first, Tensor) else None
    if shape is not None and shape.lost is not None and operator.needs_rank:
        frame.observe_need(shape.lost, node)
    if shape is not None and operator.needs_last and _last_is_open(shape) and not _built(frame):
        frame.observe_size_use(node)
    takes_sizes = operator.returns in (Returns.TENSOR, Returns.TENSORS)
    if takes_sizes and not operator.partial_shape:
        shapes.used(frame, node, *_needed(operator, arguments))


def _needed(operator: Operator, arguments: "Arguments") -> Iterator[Value]:
    """The arguments that may not be None; a list that holds it is no None."""
    for position, value in enumerate(arguments.positional):
        if not (position in operator.takes_none.values() and shapes.is_open(value)):
            yield value
    for name, value in arguments.keywords.items():
        if not (name in operator.takes_none and shapes.is_open(value)):
            yield value


PYTHON = frozenset({"tensorflow.numpy_function", "tensorflow.py_function"})
"""Functions that have Python run what they are given, when the graph runs."""
ANY = replace(GRAPH_TENSOR, shape=Shape(more=True, nested=True))
"""A tensor, or a structure of tensors."""


def lost_inside(
    frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression
) -> Tensor | None:
    """Run what a function is given to call in the graph, such as `tf.map_fn` and `tf.cond`; a
    shape that is lost there is lost behind it."""
    if name in PYTHON:
        return None
    results = []
    for value in leaves_of(arguments.all()):
        info = value.info if isinstance(value, Function) else None
        if isinstance(value, BoundMethod):
            info = value.function.info
        if info is not None:
            required = [each for each in info.parameters if each.default is None]
            count = len(required) - isinstance(value, BoundMethod)
            results.append(apply(frame, value, type(arguments)([ANY] * count), node))
    shapes_inside = [each.shape for each in leaves_of(results) if isinstance(each, Tensor)]
    lost = next((each for each in shapes_inside if each is not None and each.lost), None)
    return None if lost is None else replace(GRAPH_TENSOR, shape=lost)


def _last_is_open(shape: Shape) -> bool:
    return not shape.more and bool(shape.dims) and shape.dims[-1] in (Size.OPEN, Size.DATA)


def _built(frame: Frame) -> bool:
    """Somewhere in this file layers are built before they are called."""
    return b".build(" in frame.module.source


def result(
    frame: Frame, operator: Operator, value: Value, arguments: "Arguments", node: cst.CSTNode
) -> Value:
    """The result of a function, with the static shape that it has in a graph."""
    if operator.loses_shape and operator.returns is Returns.TENSOR:
        return replace(GRAPH_TENSOR, shape=_lost(frame, operator.name.rpartition(".")[2], node))
    if isinstance(value, Tensor):
        return _of_tensor(operator, value, arguments)
    if operator.returns is Returns.TENSORS:
        return Sequence(_of_tensor(operator, GRAPH_TENSOR, arguments))
    return value


def _of_tensor(operator: Operator, value: Tensor, arguments: "Arguments") -> Tensor:
    named = filter(None, map(_dtype_named, arguments.all()))
    dtype = next(named, value.dtype)
    value = replace(value, framework=Framework.TENSORFLOW, rank=None, dtype=dtype)
    return replace(value, shape=_shape(operator, arguments))


DTYPES = re.compile(r"(?:tensorflow|numpy)\.((?:u?int|b?float|complex)\d+|bool|string)")


def _dtype_named(value: Value | None) -> str | None:
    """The dtype that an argument names: functions take it in several places."""
    match = DTYPES.fullmatch(value.name) if isinstance(value, External) else None
    return match[1] if match else None


def _shape(operator: Operator, arguments: "Arguments") -> Shape | None:
    if operator.one_argument is not None and len(arguments.all()) == 1:
        operator = operator.one_argument
    tensors = [each.shape for each in arguments.all() if isinstance(each, Tensor)]
    lost = next((shape for shape in tensors if shape is not None and shape.lost), None)
    if operator.shape_argument is not None:
        return shapes.shape_of(arguments.get(operator.shape_argument, "shape"))
    if operator.dynamic_shape:
        return Shape((Size.DATA,), more=True)
    if lost is not None and operator.keeps_loss:
        return lost
    if operator.elementwise and len(tensors) == 1:
        return tensors[0]
    first = arguments.positional[0] if arguments.positional else UNKNOWN
    if operator.elementwise and isinstance(first, Batch):
        return Shape((Size.OPEN,), more=True, ragged=first.loader)
    return None


def behind_layer(operator: Operator, value: Value, arguments: "Arguments") -> Value:
    """The result of a layer: a shape that is not known stays unknown."""
    first = arguments.positional[0] if arguments.positional else UNKNOWN
    if operator.keeps_loss and isinstance(first, Tensor) and first.shape is not None:
        return shapes.with_shape(value, first.shape if first.shape.lost is not None else None)
    return value


# -- functions that a row does not describe ------------------------------------------------


def _lost(frame: Frame, operator: str, node: cst.CSTNode) -> Shape | None:
    if not frame.in_graph or not isinstance(node, cst.Call):
        return None
    return Shape(lost=Loss(node, operator, frame.module, frame.function))


@handles("tensorflow.numpy_function", "tensorflow.py_function")
def _python_function(
    frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression
) -> Value:
    shape = _lost(frame, name.rpartition(".")[2], node)
    tensor = replace(GRAPH_TENSOR, shape=shape)
    dtypes = arguments.get(2, "Tout")
    if isinstance(dtypes, External):
        return tensor
    return Tuple((tensor,) * len(dtypes.items)) if isinstance(dtypes, Tuple) else UNKNOWN


@handles("tensorflow.constant", "tensorflow.convert_to_tensor", "tensorflow.Variable")
def _constant(frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression) -> Value:
    value = arguments.get(0, "value") or arguments.keywords.get("initial_value") or UNKNOWN
    shapes.used(frame, node, value)
    if isinstance(value, Tensor) and value.framework is Framework.TENSORFLOW:
        return value
    spelled = shapes.shape_of(arguments.get(2, "shape"))
    dtype = _dtype_named(arguments.get(1, "dtype")) or _dtype_of_value(value)
    given = value.shape if isinstance(value, Tensor) else shapes.shape_of_literal(value)
    return replace(GRAPH_TENSOR, shape=spelled or given, dtype=dtype)


LITERALS: dict[type, str] = {bool: "bool", int: "int32", float: "float32", str: "string"}


def _dtype_of_value(value: Value) -> str | None:
    """What TensorFlow makes of numbers, if they are all of one kind."""
    leaves = leaves_of((value,))
    kinds = {LITERALS.get(type(e.const)) if isinstance(e, Static) else None for e in leaves}
    return kinds.pop() if len(kinds) == 1 else None


@handles("tensorflow.unstack")
def _unstack(frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression) -> Value:
    value = arguments.get(0, "value") or UNKNOWN
    shape = value.shape if isinstance(value, Tensor) else None
    if shape is not None and arguments.get(1, "num") is None and "axis" not in arguments.keywords:
        if shape.lost is not None:
            frame.observe_need(shape.lost, node)
        elif shape.dims[:1] in ((Size.OPEN,), (Size.DATA,)):
            frame.observe_size_use(node)
    return Sequence(replace(GRAPH_TENSOR, shape=None))


@handles(*KERAS_INPUTS)
def _input(frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression) -> Value:
    """The batch is not part of the shape that is given."""
    whole = shapes.shape_of(arguments.keywords.get("batch_shape"))
    shape = shapes.shape_of(arguments.get(0, "shape"))
    if whole is None and shape is not None:
        batch = arguments.get(1, "batch_size") or NONE
        whole = replace(shape, dims=(shapes.size_of(batch), *shape.dims))
    dtype = _dtype_named(arguments.get(2, "dtype"))
    return replace(GRAPH_TENSOR, shape=whole, dtype=dtype)


@handles("tensorflow.TensorSpec")
def _spec(frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression) -> Value:
    """A spec stands for the tensor that it describes; of the shape None, any rank fits."""
    given = arguments.get(0, "shape")
    shape = shapes.shape_of(given)
    if given == NONE and isinstance(node, cst.Call):
        shape = Shape(lost=Loss(node, name, frame.module, frame.function, is_declared=True))
    dtype = _dtype_named(arguments.get(1, "dtype"))
    return replace(GRAPH_TENSOR, shape=shape, dtype=dtype)


@handles("tensorflow.TensorShape")
def _tensor_shape(
    frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression
) -> Value:
    return arguments.get(0, "dims") or UNKNOWN


@handles("tensorflow.range")
def _range(frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression) -> Value:
    shapes.used(frame, node, *arguments.all())
    return GRAPH_TENSOR


@handles("tensorflow.shape", "keras.ops.shape")
def _dynamic_shape(
    frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression
) -> Value:
    return GRAPH_TENSOR


@handles("keras.backend.int_shape", "tensorflow.keras.backend.int_shape")
def _int_shape(frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression) -> Value:
    value = arguments.get(0, "x") or UNKNOWN
    return frame.machine.attribute(frame, value, "shape")
