"""Tensors of TensorFlow for parameters, by annotation or `TensorSpec`."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from jitlint.verify.derive.candidates import MakeTensor
from jitlint.verify.numpy_library import make_array

OTHER_SIZE = 5
"""Of a dimension that a `TensorSpec` leaves open, and the shape of the trial has not."""
DTYPES = {"float": tf.float32, "int": tf.int32, "bool": tf.bool}
STRINGS = ("a", "b c", "")


class TensorflowTensors:
    def maker(self, annotation: Any) -> MakeTensor | None:
        if isinstance(annotation, tf.TensorSpec):
            return _of_spec(annotation)
        if annotation is inspect.Parameter.empty or annotation is tf.Tensor:
            return _tensor
        origin = getattr(annotation, "__origin__", annotation)
        return make_array if origin is np.ndarray else None

    def constants(self, annotation: Any) -> Sequence[Any]:
        return (tf.float32,) if annotation is tf.DType else ()


def _tensor(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    return tf.constant(make_array(shape, dtype, seed), DTYPES[dtype])


def _of_spec(spec: Any) -> MakeTensor:
    """What a signature allows: its open dimensions are those of the trial, in turn."""

    def make(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
        sizes = shape if spec.shape.rank is None else tuple(_sizes(spec, shape))
        if spec.dtype == tf.string:
            rng = np.random.default_rng(seed)
            return tf.constant(rng.choice(STRINGS, sizes), tf.string)
        kind = "float" if spec.dtype.is_floating or spec.dtype.is_complex else "int"
        return tf.cast(make_array(sizes, kind, seed), spec.dtype)

    return make


def _sizes(spec: Any, shape: tuple[int, ...]) -> Iterator[int]:
    left = iter(shape)
    for size in spec.shape:
        yield next(left, OTHER_SIZE) if size is None else size


def varied(arguments: Any, seed: int) -> Any:
    """Other numbers of the same shapes in the place of floating-point tensors and arrays."""
    rng = np.random.default_rng(seed)

    def other(leaf: Any) -> Any:
        is_tensor = isinstance(leaf, tf.Tensor) and leaf.dtype.is_floating
        is_array = isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f"
        if not is_tensor and not is_array:
            return leaf
        noise = rng.standard_normal(leaf.shape)
        return leaf + (tf.cast(noise, leaf.dtype) if is_tensor else noise.astype(leaf.dtype))

    return tf.nest.map_structure(other, arguments)


EDGES: Mapping[str, Callable[[Any], Any]] = {
    "zeros": tf.zeros_like,
    "NaN": lambda tensor: tf.fill(tf.shape(tensor), tf.cast(float("nan"), tensor.dtype)),
    "infinities": lambda tensor: tensor * tf.cast(float("inf"), tensor.dtype),
    "an empty leading dimension": lambda tensor: tensor[:0] if tensor.shape.rank else tensor,
    "a leading dimension of one": lambda tensor: tensor[:1] if tensor.shape.rank else tensor,
}


def edge_cases(arguments: Any) -> Iterator[tuple[str, Any]]:
    """The arguments with each of their tensors changed; shapes for all, values for floats."""
    for label, change in EDGES.items():

        def changed(leaf: Any, change: Callable[[Any], Any] = change, label: str = label) -> Any:
            is_number = "dimension" in label or (tf.is_tensor(leaf) and leaf.dtype.is_floating)
            return change(leaf) if tf.is_tensor(leaf) and is_number else leaf

        yield label, tf.nest.map_structure(changed, arguments)
