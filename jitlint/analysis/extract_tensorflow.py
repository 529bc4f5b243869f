"""Extracts the table of the installed TensorFlow: `python -m jitlint.analysis.extract_tensorflow`.

Nothing here knows what an operator does: each public function is called inside a graph, on
placeholders of a known shape, of an open first dimension and of unknown rank, and the static
shapes of its results are read.
"""

import inspect
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TABLES = Path(__file__).with_name("tables")
SCHEMA = 1
ROOTS = ("tensorflow", "keras")
MEASURED = {
    "keras": {"activations", "layers", "models", "ops", "random"},
    "tensorflow": {
        *("audio", "bitwise", "image", "io", "keras", "linalg", "math", "nest", "nn"),
        *("quantization", "ragged", "random", "signal", "sparse", "strings"),
    },
}
"""The packages with operators; others hold settings, files and services, not to be called."""
SHAPES = {"shape", "dims", "newshape", "output_shape"}
SAMPLES: tuple[tuple[Any, Any], ...] = (
    ((2, 3), (None, 3)),
    ((3, 3), (None, 3)),
    ((3,), (None,)),
    ((2, 4, 4, 3), (None, 4, 4, 3)),
    ((), ()),
)
"""Shapes that are tried in turn, each with its twin whose first dimension is open."""
KNOWN, LOST = (2, 3), None
DTYPES = ("float32", "int32", "bool", "string")
NUMBERS = ("float32", "float64", "int32", "int64", "bool")
NAMES_DTYPE = frozenset({"dtype", "Tout", "T", "out_type", "output_type"})
"""Parameters that choose the dtype of a result."""


def main() -> None:
    warnings.simplefilter("ignore")
    table = extract()
    release = ".".join(table["version"].split(".")[:2])
    path = TABLES / f"tensorflow-{release}.json"
    path.write_text(_dump(table), encoding="utf-8")
    print(
        f"{path}: { ({k: len(v) for k, v in table.items() if isinstance(v, dict)}) }",
        file=sys.stderr,
    )


def extract() -> dict[str, Any]:
    import keras
    import tensorflow as tf

    functions: dict[str, Any] = {}
    aliases: dict[str, str] = {}
    modules: dict[str, Any] = {}
    names: dict[int, str] = {}
    for dotted, found in (*_public(keras, "keras"), *_public(tf, "tensorflow")):
        first = names.setdefault(id(found), dotted)
        if first != dotted:
            aliases[dotted] = first
        elif isinstance(found, type):
            if issubclass(found, keras.Layer):
                modules[dotted] = _measured_layer(tf, found)
        else:
            entry = _measured(tf, found)
            if entry is not None:
                functions[dotted] = entry
    known = {**functions, **modules}
    return {
        "schema": SCHEMA,
        "framework": "tensorflow",
        "version": tf.__version__,
        "roots": list(ROOTS),
        "functions": functions,
        "methods": _methods(tf),
        "numpy": _universal_functions(),
        "attributes": _attributes(tf),
        "modules": modules,
        "tensor_only_methods": [],
        "eager_only": eager_only(tf),
        "numpy_twins": numpy_twins(tf),
        "aliases": {name: target for name, target in aliases.items() if target in known},
    }


def _public(module: types.ModuleType, prefix: str, seen: set[int] | None = None) -> Iterator[Any]:
    """Public functions and classes of a package, by every name that they have."""
    seen = set() if seen is None else seen
    if id(module) in seen:
        return
    seen = seen | {id(module)}
    for name in sorted(dir(module)):
        if name.startswith("_"):
            continue
        found = getattr(module, name, None)
        dotted = f"{prefix}.{name}"
        if isinstance(found, types.ModuleType):
            inner = MEASURED.get(prefix.rpartition(".")[2])
            if (
                prefix.count(".") < 2
                and (inner is None or name in inner)
                and name not in ("gfile", "experimental")
            ):
                yield from _public(found, dotted, seen)
        elif callable(found):
            yield dotted, found


def numpy_twins(tf: Any) -> list[str]:
    """Functions of `tf.experimental.numpy` that give what those of NumPy give, dtype included,
    for each of the arrays that both take."""
    import numpy as np

    return [
        name
        for name in sorted(set(dir(np)) & set(dir(tf.experimental.numpy)))
        if inspect.isroutine(getattr(tf.experimental.numpy, name))
        and _agree(getattr(np, name), getattr(tf.experimental.numpy, name))
    ]


def _agree(ours: Callable[..., Any], twin: Callable[..., Any]) -> bool:
    import numpy as np

    compared = 0
    rows = np.array([[0.5, -1.5, 2.0], [3.0, 0.25, -4.0]], np.float32)
    square = rows[:, :2]
    for arguments in ((rows,), (rows + 5,), (rows, rows), (rows, 0), (square, square), (rows[0],)):
        if len(arguments) > getattr(ours, "nin", 2):
            continue  # the second argument of such a function is for its result
        for keywords in ({}, {"axis": 0}, {"axis": -1, "keepdims": True}):
            try:
                wanted = np.asarray(ours(*arguments, **keywords))
            except Exception:
                continue
            try:
                got = np.asarray(twin(*arguments, **keywords))
            except Exception:
                return False
            if (
                wanted.dtype.kind not in "bif"
                or got.dtype != wanted.dtype
                or got.shape != wanted.shape
            ):
                return False
            if not np.allclose(got, wanted, equal_nan=True):
                return False
            compared += 1
    return compared > 0


def eager_only(tf: Any) -> list[str]:
    """Attributes of a tensor with a value that the tensors of a graph do not have."""
    classes: list[type] = []
    eager = tf.constant(1.0)

    @tf.function  # type: ignore[untyped-decorator]
    def see(tensor: Any) -> None:
        classes.append(type(tensor))

    see(eager)
    return sorted(name for name in set(dir(eager)) - set(dir(classes[0])) if name[0] != "_")


# -- functions -----------------------------------------------------------------------------


def _measured(tf: Any, function: Callable[..., Any]) -> dict[str, Any] | None:
    """What a function does with static shapes; None if no way to call it was found."""
    required = _required(function)
    if not required:
        return None
    for sample in SAMPLES:
        for dtype in DTYPES:
            result = _called(tf, function, required, sample[0], dtype)
            if not isinstance(result, Exception):
                entry = _entry(tf, function, required, sample, dtype, result)
                if "one_argument" in entry:
                    return entry  # more arguments make another function of it
                return entry | _dtype_of(tf, function, required, sample[0])
    return None


def _dtype_of(
    tf: Any, function: Callable[..., Any], required: list[str], shape: Any
) -> dict[str, str]:
    """The dtype of the result, if it is that of the argument, or always the same one."""
    is_filled = len(required) > 1 and not SHAPES.isdisjoint(required)  # with what decides
    if is_filled or not NAMES_DTYPE.isdisjoint(required):
        return {}
    results = {
        dtype: _first_tensor(tf, _called(tf, function, required, shape, dtype)) for dtype in NUMBERS
    }
    found = {dtype: result.dtype.name for dtype, result in results.items() if result is not None}
    if len(found) < 2:
        return {}
    if all(given == returned for given, returned in found.items()):
        return {"dtype": "same"}
    returned = set(found.values())
    return {"dtype": returned.pop()} if len(returned) == 1 else {}


def _required(function: Callable[..., Any]) -> list[str] | None:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind in kinds]


def _argument(tf: Any, name: str, tensor: Any, shape: Any, spells: bool) -> Any:
    """A value for a parameter; what is not named here takes the tensor."""
    given: dict[str, Any] = {
        "axis": 0,
        "depth": 3,
        "dtype": tf.float32,
        "func": lambda *items: items[0],
        "inp": [tensor],
        "Tout": tf.float32,
        "out_type": tf.float32,
        "multiples": [1, 1],
        "num_or_size_splits": 1,
        "mask": tf.constant([True, False, True][: tensor.shape[0]]) if tensor.shape.rank else True,
        "condition": tf.cast(tensor, tf.bool) if tensor.dtype != tf.string else tensor,
        "size": [4, 4],
        "value": 0 if spells else tensor,
        "values": [tensor, tensor],
        "paddings": [[0, 0], [0, 0]],
        "perm": [1, 0],
        "k": 1,
        "repeats": 2,
        "begin": [0, 0],
    }
    return shape if name in SHAPES else given.get(name, tensor)


def _called(
    tf: Any,
    function: Callable[..., Any],
    required: list[str],
    tensor: Any,
    dtype: str,
    shape: Any = (2, 3),
) -> Any:
    """The result in a fresh graph, or the exception."""
    with tf.Graph().as_default():
        try:
            placeholder = tf.compat.v1.placeholder(dtype, tensor)
            spells = bool(SHAPES & set(required))
            arguments = [_argument(tf, n, placeholder, list(shape), spells) for n in required]
            return function(*arguments)
        except Exception as error:
            return error


def _entry(
    tf: Any,
    function: Callable[..., Any],
    required: list[str],
    sample: tuple[Any, Any],
    dtype: str,
    result: Any,
) -> dict[str, Any]:
    entry: dict[str, Any] = {"returns": _kind(tf, result), "source": "measured"}
    first = _first_tensor(tf, result)
    if first is None:
        return entry
    shapes: list[Any] = [_dims(first)]
    if _dims(first) is None:
        entry["loses_shape"] = True
        return entry
    if shapes[0][:1] == (None,):
        dynamic = {**entry, "dynamic_shape": True}
        chosen = _called(tf, function, [*required, "x", "y"], sample[0], dtype)
        if isinstance(chosen, Exception) or len(required) > 1:
            return {**dynamic, "keeps_loss": True}
        return {**entry, "one_argument": dynamic}
    for given in (sample[1], LOST):
        other = _first_tensor(tf, _called(tf, function, required, given, dtype))
        shapes.append(_dims(other) if other is not None else "refused")
    if shapes == [*sample, LOST]:
        entry["elementwise"] = True
    if shapes[2] is None:
        entry["keeps_loss"] = True
    if shapes[2] == "refused":
        entry["needs_rank"] = True
    if SHAPES & set(required):
        entry["shape_argument"] = next(i for i, name in enumerate(required) if name in SHAPES)
        partial = _called(tf, function, required, sample[0], dtype, (None, 3))
        if not isinstance(partial, Exception):
            entry["partial_shape"] = True
    return entry


def _kind(tf: Any, result: Any) -> str:
    if result is None:
        return "none"
    if tf.is_tensor(result):
        return "tensor"
    if isinstance(result, list | tuple) and any(tf.is_tensor(item) for item in result):
        return "tensors"
    return "static"


def _first_tensor(tf: Any, result: Any) -> Any:
    items = result if isinstance(result, list | tuple) else [result]
    return next((item for item in items if isinstance(item, tf.Tensor)), None)


def _dims(tensor: Any) -> tuple[int | None, ...] | None:
    return None if tensor.shape.rank is None else tuple(tensor.shape.as_list())


# -- layers, methods -----------------------------------------------------------------------

LAYERS: tuple[dict[str, Any], ...] = (
    {}, {"units": 3}, {"filters": 3, "kernel_size": 2}, {"kernel_size": 2},
    {"input_dim": 5, "output_dim": 3}, {"rate": 0.5},
)  # fmt: skip
INPUTS = ((2, 8), (2, 8, 4), (2, 8, 8, 4), (2, 8, 8, 8, 4))


def _measured_layer(tf: Any, layer: type) -> dict[str, Any]:
    """Which dimensions a layer needs, found by leaving out one after another."""
    entry: dict[str, Any] = {"returns": "tensor", "source": "measured"}
    for options in LAYERS:
        for dims in INPUTS:
            if _traced(tf, layer, options, dims) is None:
                continue
            lost = _traced(tf, layer, options, None)
            if lost is None:
                entry["needs_rank"] = True
            elif getattr(lost, "rank", 0) is None:
                entry["keeps_loss"] = True
            if _traced(tf, layer, options, (*dims[:-1], None)) is None:
                entry["needs_last"] = True
            return entry
    return entry


def _traced(tf: Any, layer: type, options: dict[str, Any], dims: Any) -> Any:
    """The static shape of what a new layer returns in a graph; None where it raises."""
    try:
        built = layer(**options)
        spec = tf.TensorSpec(dims)
        graph = tf.function(lambda x: built(x), input_signature=[spec], autograph=False)
        result = graph.get_concrete_function().structured_outputs
    except Exception:
        return None
    return getattr(result, "shape", False)


def _universal_functions() -> dict[str, Any]:
    """NumPy's functions of one argument whose result has the shape of that."""
    import numpy as np

    entry = {"returns": "tensor", "elementwise": True, "source": "numpy.ufunc"}
    return {
        f"numpy.{name}": entry
        for name, found in vars(np).items()
        if isinstance(found, np.ufunc) and (found.nin, found.nout) == (1, 1)
    }


def _methods(tf: Any) -> dict[str, Any]:
    entries = {}
    for name in ("numpy", "eval", "get_shape", "set_shape"):
        if hasattr(tf.Tensor, name):
            entries[name] = {
                "returns": "none" if name == "set_shape" else "static",
                "source": "stub",
            }
    return entries


def _attributes(tf: Any) -> dict[str, str]:
    with tf.Graph().as_default():
        tensor = tf.compat.v1.placeholder("float32", KNOWN)
        found = {}
        for name in sorted(n for n in dir(tensor) if not n.startswith("_")):
            try:
                value = getattr(tensor, name)
            except Exception:
                continue
            if not callable(value):
                found[name] = "tensor" if tf.is_tensor(value) else "static"
    return {**found, "shape": "size"}


def _dump(table: dict[str, Any]) -> str:
    """JSON with one entry on each line, sorted, so that two versions can be compared."""
    from jitlint.analysis.extract_torch import dump

    return dump(table)


if __name__ == "__main__":
    main()
