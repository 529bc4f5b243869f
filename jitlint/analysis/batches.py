"""Batches of a pipeline, of which the last one may be smaller."""

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from jitlint.analysis.operators import leaves_of
from jitlint.analysis.tree import parts_of
from jitlint.analysis.values import (
    UNKNOWN,
    Batch,
    Loss,
    Sequence,
    Shape,
    Tensor,
    Tuple,
    Value,
)

BATCH = "batch"
LOADER = "torch.utils.data.DataLoader"


def loaders_of(value: Value) -> Iterator[Loss]:
    """What makes the batches in a value."""
    return filter(None, map(_loader_of, leaves_of((value,))))


def _loader_of(value: Value) -> Loss | None:
    if isinstance(value, Batch):
        return value.loader
    shape = value.shape if isinstance(value, Tensor) else None
    if shape is None:
        return None
    return shape.ragged or (shape.lost if shape.lost and shape.lost.operator == LOADER else None)


def whole(element: Value) -> Value:
    """A batch that is not the last one."""
    match element:
        case Tuple(items):
            return Tuple(tuple(map(whole, items)))
        case Sequence(item):
            return replace(element, element=whole(item))
        case Tensor(shape=Shape(lost=Loss(operator=operator))) if operator == LOADER:
            return replace(element, shape=None)
        case Tensor(shape=Shape() as shape):
            return replace(element, shape=replace(shape, ragged=None))
        case Batch():
            return UNKNOWN
    return element


def may_end_early(node: cst.CSTNode) -> bool:
    """Whether the body of a loop leaves it, perhaps before the last batch."""
    if isinstance(node, cst.Break | cst.Return):
        return True
    inner = cst.For | cst.While | cst.FunctionDef | cst.ClassDef
    return any(may_end_early(part) for part in parts_of(node) if not isinstance(part, inner))
