"""`tf.data`: which functions of a pipeline run in a graph, and on what."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from jitlint.analysis import shapes
from jitlint.analysis.batches import BATCH, LOADER, loaders_of, whole
from jitlint.analysis.calls import apply, handles
from jitlint.analysis.expressions import evaluate_target_path
from jitlint.analysis.frame import Frame
from jitlint.analysis.operators import leaves_of
from jitlint.analysis.values import (
    NONE,
    UNKNOWN,
    Batch,
    Dataset,
    ExternalInstance,
    Framework,
    Instance,
    Loss,
    Shape,
    Size,
    Static,
    Tensor,
    Tuple,
    Unknown,
    Value,
    element_of,
    is_constant,
    is_none,
    is_true,
)
from jitlint.region import Region, RegionKind

if TYPE_CHECKING:
    from jitlint.analysis.calls import Arguments

IN_GRAPH = frozenset({"map", "filter", "interleave", "flat_map", "scan"})
"""Methods that trace the function that they are given (with AutoGraph)."""
KEEPS = frozenset({"shuffle", "prefetch", "cache", "with_options", "as_numpy_iterator"})
COUNTS = frozenset({"repeat", "take", "skip", "shard"})
"""Methods that change how many elements there are."""
BATCHES = {"batch": 1, "padded_batch": 3}
"""Methods that make batches, and where they are told to drop a smaller last one."""
RUNS = frozenset({"fit", "evaluate", "predict"})
"""Methods of a Keras model, which traces its step with the shapes of the dataset."""
STEPS = {"steps_per_epoch": ("x", 0), "steps": ("x", 0), "validation_steps": ("validation_data", 7)}
"""Keywords that say how many batches are taken, and of which parameter (keras 3.15)."""


def run_on(
    frame: Frame, model: Value, method: str, arguments: "Arguments", node: cst.CSTNode
) -> None:
    """A model is given a dataset: it needs to know at least the rank of its elements, and
    XLA compiles it for each of their shapes."""
    if _is_fused(frame, model, node):
        passed_to_static(frame, map(element_of, _taken_to_the_end(arguments)), node)
    if method == "predict":
        return  # builds the model with the first batch (measured)
    for value in arguments.all():
        if not isinstance(value, Dataset):
            continue
        items = value.element.items if isinstance(value.element, Tuple) else (value.element,)
        for item in items[:1]:
            shape = item.shape if isinstance(item, Tensor) else None
            if shape is not None and shape.lost is not None:
                frame.observe_need(shape.lost, node, in_graph=True)


def _taken_to_the_end(arguments: "Arguments") -> list[Value]:
    """The arguments but those of which a number of batches is taken."""
    cut = [STEPS[name] for name in STEPS if not is_none(arguments.keywords.get(name, NONE))]
    places = {place for _, place in cut}
    names = {name for name, _ in cut}
    given = [value for i, value in enumerate(arguments.positional) if i not in places]
    return given + [value for name, value in arguments.keywords.items() if name not in names]


def _is_fused(frame: Frame, model: Value, node: cst.CSTNode) -> bool:
    """Whether Keras has XLA compile the model; a store of its `jit_compile` decides."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        path = f"{evaluate_target_path(node.func.value)}.jit_compile"
        if not is_true(frame.variables.get(path, Static(True))):
            return False
    match model:
        case ExternalInstance(is_fused=is_fused):
            return is_fused
        case Instance(cls):
            return cls in frame.machine.fused_models
    return False


def passed_to_static(frame: Frame, given: Iterable[Value], node: cst.CSTNode) -> None:
    """A program that is made for each size is given a batch that may be a smaller one."""
    if frame.region is not None:
        return
    loaders = (loader for value in given for loader in loaders_of(value))
    for loader in dict.fromkeys(loaders):
        frame.observe_need(loader, node, in_graph=True)


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
    if name in COUNTS:
        return _recounted(dataset, name, arguments)
    if name in BATCHES:
        drops = arguments.get(BATCHES[name], "drop_remainder") == Static(True)
        size = _number(arguments.get(0, "batch_size"))
        loss = None
        if not drops and _may_be_smaller(dataset, size) and isinstance(node, cst.Call):
            loss = Loss(node, BATCH, frame.module, frame.function)
        return Dataset(_batched(dataset.element, size if drops else None, loss))
    return Dataset(UNKNOWN) if name in ("unbatch", "window", "zip", "enumerate") else UNKNOWN


def _mapped(
    frame: Frame, dataset: Dataset, name: str, arguments: "Arguments", node: cst.BaseExpression
) -> Value:
    function = arguments.get(0, "map_func") or arguments.keywords.get("predicate") or UNKNOWN
    items = dataset.element.items if isinstance(dataset.element, Tuple) else (dataset.element,)
    frame.machine.request_graph(frame, function, Tuple(items), node)
    if name == "filter":
        return Dataset(whole(dataset.element))
    if name != "map":
        return Dataset(UNKNOWN)
    # fullgraph: a context of its own in the memo, so that the entry is still observed
    inside = replace(frame, region=Region(RegionKind.GRAPH, "", fullgraph=True), silent=1)
    return replace(dataset, element=apply(inside, function, _arguments(items), node))


def _arguments(items: tuple[Value, ...]) -> "Arguments":
    from jitlint.analysis.calls import Arguments

    return Arguments(list(items))


def _recounted(dataset: Dataset, name: str, arguments: "Arguments") -> Dataset:
    """With other elements, or as many for ever; the last need not be among the first few."""
    if name == "repeat":
        return replace(dataset, rows=None, is_endless=not arguments.all())
    count = _number(arguments.get(0, "count"))
    if name != "take" or count == -1:  # all
        return replace(dataset, rows=None)
    if count is None:
        return Dataset(whole(dataset.element))
    rows = count if dataset.is_endless or count < (dataset.rows or 0) else None
    return Dataset(whole(dataset.element), rows)


def _number(value: Value | None) -> int | None:
    """A number that is known."""
    if not isinstance(value, Static) or not isinstance(value.const, int):
        return None
    return None if isinstance(value.const, bool) else value.const


def _may_be_smaller(dataset: Dataset, size: int | None) -> bool:
    """Whether the last batch may be smaller; not where its size is for somebody else to say."""
    if size is None or size < 2 or dataset.is_endless:
        return False
    return dataset.rows is None or dataset.rows % size != 0


def _batched(element: Value, size: int | None, ragged: Loss | None) -> Value:
    match element:
        case Tuple(items):
            return Tuple(tuple(_batched(item, size, ragged) for item in items))
        case Tensor(shape=Shape(lost=None) as shape):
            first = shapes.size_of(Static(None) if size is None else Static(size))
            dims = (first, *shape.dims)
            return replace(element, shape=replace(shape, dims=dims, ragged=ragged))
        case Unknown() if ragged is not None:
            return Batch(ragged)
    return element


@handles("torch.utils.data.TensorDataset")
def _tensors(frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression) -> Value:
    return Dataset(Tuple(tuple(arguments.positional)))


@handles(LOADER)
def _loader(frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression) -> Value:
    """Batches of a loader; the last one is smaller, but where that is known not to be. Of a
    dataset of tensors they are a list of tensors."""
    lost = None
    if isinstance(node, cst.Call) and _may_be_ragged(arguments):
        lost = Loss(node, LOADER, frame.module, frame.function)
    items = _tensors_of(arguments.get(0, "dataset"))
    if items and "collate_fn" not in arguments.keywords and not arguments.open:
        shape = None if lost is None else Shape((Size.VARIES,), more=True, lost=lost)
        return Dataset(Tuple((Tensor(grad=False, device="cpu", shape=shape),) * len(items)))
    return UNKNOWN if lost is None else Dataset(Batch(lost))


def _tensors_of(dataset: Value | None) -> tuple[Value, ...]:
    """The tensors of a `TensorDataset`."""
    element = dataset.element if isinstance(dataset, Dataset) else None
    items = element.items if isinstance(element, Tuple) else ()
    return items if all(isinstance(each, Tensor) for each in items) else ()


def _may_be_ragged(arguments: "Arguments") -> bool:
    size = arguments.get(1, "batch_size")
    drops = arguments.get(8, "drop_last")
    batch = size.const if isinstance(size, Static) and is_constant(size) else None
    if not isinstance(batch, int) or (drops is not None and drops != Static(False)):
        return False
    if arguments.open or "batch_sampler" in arguments.keywords:
        return False
    items = _tensors_of(arguments.get(0, "dataset"))
    first = items[0] if items else None
    dims = first.shape.dims if isinstance(first, Tensor) and first.shape is not None else ()
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


@handles("tensorflow.data.Dataset.from_tensor_slices")
def _slices(frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression) -> Value:
    given = arguments.get(0, "tensors") or UNKNOWN
    first = next(iter(leaves_of((given,))), UNKNOWN)
    dims = first.shape.dims if isinstance(first, Tensor) and first.shape is not None else ()
    rows = dims[0] if dims and isinstance(dims[0], int) else None
    return Dataset(_slice(given), rows)


def _slice(value: Value) -> Value:
    """One element of a tensor, or of each in a tuple: in a graph it is one of TensorFlow."""
    if isinstance(value, Tuple):
        return Tuple(tuple(map(_slice, value.items)))
    element = element_of(value)
    if not isinstance(element, Tensor) or element.shape is None:
        return UNKNOWN
    return replace(element, framework=Framework.TENSORFLOW)


@handles("tensorflow.data.Dataset.zip")
def _zip(frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression) -> Value:
    first = arguments.get(0, "datasets") or UNKNOWN
    given = first.items if isinstance(first, Tuple) else tuple(arguments.positional)
    parts = [each for each in given if isinstance(each, Dataset)]
    if not parts or len(parts) < len(given):
        return Dataset(UNKNOWN)
    finite = [each.rows for each in parts if not each.is_endless]
    rows = [each for each in finite if each is not None]
    element = Tuple(tuple(each.element for each in parts))
    return Dataset(element, min(rows) if rows and len(rows) == len(finite) else None, not finite)


@handles("tensorflow.data.Dataset.range")
def _numbers(frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression) -> Value:
    scalar = Tensor(framework=Framework.TENSORFLOW, dtype="int64", shape=Shape())
    only = arguments.positional[0] if len(arguments.all()) == 1 else None
    return Dataset(scalar, _number(only))


@handles(
    "tensorflow.data.Dataset.from_tensors",
    "tensorflow.data.Dataset.list_files",
    "tensorflow.data.TFRecordDataset",
    "tensorflow.data.TextLineDataset",
)
def _source(frame: Frame, name: str, arguments: "Arguments", node: cst.BaseExpression) -> Value:
    return Dataset(UNKNOWN)
