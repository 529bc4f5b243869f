"""Static shapes: reading them from specs and constructors, and what needs to know them."""

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from jitlint.analysis.values import (
    OPEN_SIZE,
    SHAPE,
    Dict,
    Loss,
    Optional,
    Read,
    Sequence,
    Shape,
    Size,
    Static,
    StaticShape,
    Tensor,
    Tuple,
    Value,
    is_constant,
    is_none,
    size_value,
)

if TYPE_CHECKING:
    from jitlint.analysis.frame import Frame

MAX_NESTING = 3
"""Sizes are looked for in lists of lists, as of paddings."""

BATCH_OPEN = Shape((Size.OPEN,), more=True)
"""Only that the first dimension may be None is known."""


def shape_of(value: Value | None) -> Shape | None:
    """The shape that a list, a tuple or `x.shape` spells; None is an open dimension."""
    match value:
        case Tuple(items):
            return Shape(tuple(size_of(item) for item in items))
        case StaticShape(shape):
            return shape
    return None


def size_of(item: Value) -> int | Size:
    if is_none(item):
        return Size.OPEN
    if is_open(item):
        return Size.OPEN
    if is_constant(item) and isinstance(item.const, int) and item.const >= 0:
        return int(item.const)
    if isinstance(item, Static) and item.varies:
        return Size.VARIES
    return Size.FIXED


def is_open(value: Value) -> bool:
    """A size that is None in the graph."""
    if not isinstance(value, Optional) or not isinstance(value.value, Static):
        return False
    read = value.value.read
    return read is not None and read.operator == "shape"


def lost_size(loss: Loss) -> Value:
    """A size of a shape that a call has lost: None, too."""
    return Optional(replace(OPEN_SIZE, read=Read("shape", loss=loss)))


def used(frame: "Frame", node: cst.BaseExpression, *values: Value) -> None:
    """Observe a computation on sizes that the graph does not know."""
    if not any(map(holds_open, values)):
        return
    loss = next(filter(None, map(_loss, values)), None)
    if loss is not None:
        frame.observe_need(loss, node)
    else:
        frame.observe_size_use(node)


def _loss(value: Value, depth: int = 0) -> Loss | None:
    match value:
        case StaticShape(shape):
            return shape.lost
        case Optional(Static(read=Read(loss=loss))):
            return loss
        case Tuple(items) if depth < MAX_NESTING:
            return next(filter(None, (_loss(item, depth + 1) for item in items)), None)
    return None


def is_symbolic(value: Value) -> bool:
    """What `keras.Input` makes, known as such by its open batch."""
    shape = value.shape if isinstance(value, Tensor) else None
    return shape is not None and shape.is_open and shape.lost is None and shape.ragged is None


def holds_open(value: Value, depth: int = 0) -> bool:
    """Whether a value is, or holds, a size that is None in the graph."""
    if is_open(value):
        return True
    if depth > MAX_NESTING:
        return False
    match value:
        case StaticShape(shape):
            return shape.is_open or shape.lost is not None
        case Tuple(items):
            return any(holds_open(item, depth + 1) for item in items)
        case Sequence(element):
            return holds_open(element, depth + 1)
        case Dict(items, default):
            return any(holds_open(item, depth + 1) for _, item in (*items, ("", default)))
    return False


def item(shape: Shape, position: int) -> Value:
    """`x.shape[position]`."""
    if 0 <= position < len(shape.dims):
        return size_value(shape.dims[position])
    if position < 0 and not shape.more and -position <= len(shape.dims):
        return size_value(shape.dims[position])
    return SHAPE


def known(shape: Shape, position: int | None) -> Shape | None:
    """Where `x.shape[position]` is not None, or no size is."""
    if shape.lost is not None:
        return None
    if position is not None and position < 0 and not shape.more:
        position += len(shape.dims)
    dims = [
        Size.FIXED if dim in (Size.OPEN, Size.DATA) and position in (None, i) else dim
        for i, dim in enumerate(shape.dims)
    ]
    return replace(shape, dims=tuple(dims))


def part(shape: Shape, start: Value | None, stop: Value | None) -> Value:
    """`x.shape[start:stop]`; a bound is None where it is left out."""
    first = _bound(start, 0)
    last = _bound(stop, None)
    if first is None or (stop is not None and last is None):
        return Sequence(SHAPE)
    if shape.more:
        kept = shape.dims[first:] if last is None or last < 0 else shape.dims[first:last]
        is_open_ended = last is None or last < 0 or last > len(shape.dims)
        return StaticShape(Shape(kept, more=is_open_ended)) if kept else Sequence(SHAPE)
    return StaticShape(Shape(shape.dims[first:last]))


def first_rows(shape: Shape | None, count: Value) -> Shape | None:
    """Of `x[:count]`, where both numbers are known."""
    rows = shape.dims[0] if shape is not None and shape.dims else None
    if shape is None or not isinstance(rows, int) or not is_constant(count):
        return None
    if not isinstance(count.const, int) or count.const < 0:
        return None
    return replace(shape, dims=(min(rows, count.const), *shape.dims[1:]))


def _bound(value: Value | None, default: int | None) -> int | None:
    if value is None:
        return default
    return value.const if is_constant(value) and isinstance(value.const, int) else None


def unpacked(shape: Shape, count: int) -> Tuple:
    """The items of `a, b, c = x.shape`."""
    if len(shape.dims) == count or (shape.more and len(shape.dims) < count):
        rest = count - len(shape.dims)
        return Tuple((*map(size_value, shape.dims), *(SHAPE,) * rest))
    return Tuple((SHAPE,) * count)


def with_shape(value: Value, shape: Shape | None) -> Value:
    return replace(value, shape=shape) if isinstance(value, Tensor) else value


def joined(left: Value, right: Value) -> Value:
    """`x.shape[:-1] + [4]`."""
    first, second = shape_of(left), shape_of(right)
    if first is None or second is None:
        return Sequence(SHAPE)
    return StaticShape(Shape(first.dims + second.dims, more=first.more or second.more))


LITERALS = frozenset({"torch.tensor", "torch.as_tensor", "torch.scalar_tensor"})
"""Functions that make a tensor of numbers."""
CONSTRUCTORS = frozenset(
    {
        *("torch.ones", "torch.zeros", "torch.rand", "torch.randn", "torch.empty", "torch.full"),
        *("numpy.ones", "numpy.zeros", "numpy.empty", "numpy.full"),
        *("numpy.random.rand", "numpy.random.randn"),
    }
)
"""Functions whose first arguments are sizes, one by one or as one tuple."""


def constructed(sizes: list[Value]) -> Shape | None:
    if sizes and isinstance(sizes[0], Tuple):
        return shape_of(sizes[0])
    return shape_of(Tuple(tuple(sizes))) if all(isinstance(s, Static) for s in sizes) else None


def shape_of_literal(value: Value) -> Shape | None:
    """The shape of the tensor that nested lists of numbers make."""
    match value:
        case Static():
            return Shape()
        case Tuple(items) if items:
            inner = shape_of_literal(items[0])
            return None if inner is None else Shape((len(items), *inner.dims))
    return None
