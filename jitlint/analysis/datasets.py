"""`tf.data`: which functions of a pipeline run in a graph, and on what."""

from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from jitlint.analysis import shapes
from jitlint.analysis.calls import apply, handles
from jitlint.analysis.frame import Frame
from jitlint.analysis.values import (
    UNKNOWN,
    Batch,
    Dataset,
    Framework,
    Loss,
    Shape,
    Size,
    Static,
    Tensor,
    Tuple,
    Value,
    is_constant,
)
from jitlint.region import Region, RegionKind

if TYPE_CHECKING:
    from jitlint.analysis.calls import Arguments

IN_GRAPH = frozenset({"map", "filter", "interleave", "flat_map", "scan"})
"""Methods that trace the function that they are given (with AutoGraph)."""
KEEPS = frozenset({"shuffle", "prefetch", "repeat", "take", "skip", "cache", "shard", "filter"})
BATCHES = frozenset({"batch", "padded_batch"})
LOADER = "torch.utils.data.DataLoader"


TRAINS = frozenset({"fit", "evaluate"})
"""Methods of a Keras model, which traces its step with the shapes of the dataset."""


def trained_on(frame: Frame, arguments: "Arguments", node: cst.CSTNode) -> None:
    """A model is given a dataset: it needs to know at least the rank of its elements."""
    for value in arguments.all():
        if not isinstance(value, Dataset):
            continue
        items = value.element.items if isinstance(value.element, Tuple) else (value.element,)
        for item in items[:1]:
            shape = item.shape if isinstance(item, Tensor) else None
            if shape is not None and shape.lost is not None:
                frame.observe_need(shape.lost, node, in_graph=True)


def passed_to_pinned(frame: Frame, arguments: "Arguments", node: cst.CSTNode) -> None:
    """A program that is made for each size is given a batch that may be a smaller one."""
    if frame.region is not None:
        return
    for value in arguments.all():
        loader = _loader_of(value)
        if loader is not None:
            frame.observe_need(loader, node, in_graph=True)
            return


def _loader_of(value: Value) -> Loss | None:
    if isinstance(value, Batch):
        return value.loader
    lost = value.shape.lost if isinstance(value, Tensor) and value.shape is not None else None
    return lost if lost is not None and lost.operator == LOADER else None


def of_batch(batch: Batch, result: Value) -> Value:
    """What a method of a batch returns, such as `to` and `cuda`, has its size."""
    shape = Shape((Size.VARIES,), more=True, lost=batch.loader)
    return replace(result, shape=shape) if isinstance(result, Tensor) else batch


def method(
    frame: Frame, dataset: Dataset, name: str, arguments: "Arguments", node: cst.BaseExpression
) -> Value:
    if name in IN_GRAPH:
        return _mapped(frame, dataset, name, arguments, node)
    if name in KEEPS:
        return dataset
    if name in BATCHES:
        size = _batch_size(arguments)
        return Dataset(_batched(dataset.element, size))
    return Dataset(UNKNOWN) if name in ("unbatch", "window", "zip", "enumerate") else UNKNOWN


def _mapped(
    frame: Frame, dataset: Dataset, name: str, arguments: "Arguments", node: cst.BaseExpression
) -> Value:
    function = arguments.get(0, "map_func") or arguments.keywords.get("predicate") or UNKNOWN
    items = dataset.element.items if isinstance(dataset.element, Tuple) else (dataset.element,)
    frame.machine.request_graph(frame, function, Tuple(items), node)
    if name != "map":
        return dataset if name == "filter" else Dataset(UNKNOWN)
    # fullgraph: a context of its own in the memo, so that the entry is still observed
    inside = replace(frame, region=Region(RegionKind.GRAPH, "", fullgraph=True), silent=1)
    return Dataset(apply(inside, function, _arguments(items), node))


def _arguments(items: tuple[Value, ...]) -> "Arguments":
    from jitlint.analysis.calls import Arguments

    return Arguments(list(items))


def _batch_size(arguments: "Arguments") -> int | None:
    size = arguments.get(0, "batch_size")
    drops = arguments.keywords.get("drop_remainder")
    if drops == Static(True) and size is not None and is_constant(size):
        return int(size.const) if isinstance(size.const, int) else None
    return None


def _batched(element: Value, size: int | None) -> Value:
    if isinstance(element, Tuple):
        return Tuple(tuple(_batched(item, size) for item in element.items))
    shape = element.shape if isinstance(element, Tensor) else None
    if shape is None or shape.lost is not None:
        return element
    first = shapes.size_of(Static(None) if size is None else Static(size))
    return shapes.with_shape(element, replace(shape, dims=(first, *shape.dims)))


@handles("torch.utils.data.TensorDataset")
def _tensors(frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression) -> Value:
    return Dataset(arguments.positional[0] if arguments.positional else UNKNOWN)


@handles(LOADER)
def _loader(frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression) -> Value:
    """Batches of a loader; the last one is smaller, but where that is known not to be."""
    if not isinstance(node, cst.Call) or not _may_be_ragged(arguments):
        return UNKNOWN
    return Dataset(Batch(Loss(node, LOADER, frame.module, frame.function)))


def _may_be_ragged(arguments: "Arguments") -> bool:
    size = arguments.get(1, "batch_size")
    drops = arguments.get(8, "drop_last")
    batch = size.const if isinstance(size, Static) and is_constant(size) else None
    if not isinstance(batch, int) or (drops is not None and drops != Static(False)):
        return False
    if arguments.open or "batch_sampler" in arguments.keywords:
        return False
    dataset = arguments.get(0, "dataset")
    items = dataset.element if isinstance(dataset, Dataset) else None
    dims = items.shape.dims if isinstance(items, Tensor) and items.shape is not None else ()
    rows = dims[0] if dims else None
    return batch > 1 and not (isinstance(rows, int) and rows % batch == 0)


@handles("tensorflow.data.Dataset.from_generator")
def _from_generator(
    frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression
) -> Value:
    signature = arguments.keywords.get("output_signature")
    if signature is not None:
        return Dataset(signature if isinstance(signature, Tensor | Tuple) else UNKNOWN)
    if arguments.get(2, "output_shapes") is not None or not isinstance(node, cst.Call):
        return Dataset(UNKNOWN)
    loss = Loss(node, "from_generator", frame.module, frame.function)
    lost = Tensor(framework=Framework.TENSORFLOW, shape=Shape(lost=loss))
    types = arguments.get(1, "output_types")
    return Dataset(Tuple((lost,) * len(types.items)) if isinstance(types, Tuple) else lost)


@handles(
    "tensorflow.data.Dataset.from_tensor_slices",
    "tensorflow.data.Dataset.from_tensors",
    "tensorflow.data.Dataset.range",
    "tensorflow.data.Dataset.list_files",
    "tensorflow.data.TFRecordDataset",
    "tensorflow.data.TextLineDataset",
)
def _source(frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression) -> Value:
    return Dataset(UNKNOWN)
