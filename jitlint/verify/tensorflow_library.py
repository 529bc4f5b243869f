"""TensorFlow, for the bench of arrays."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import tensorflow as tf

from jitlint.region import RegionKind
from jitlint.verify.array_module import Given
from jitlint.verify.library import ArrayCompiler, Results
from jitlint.verify.tensorflow_function import COMPILERS, eagerly
from jitlint.verify.tensorflow_values import TensorflowTensors, edge_cases, varied


class TensorflowLibrary:
    tensors = TensorflowTensors()
    compilers: Mapping[RegionKind, ArrayCompiler] = COMPILERS

    def kind_of(self, found: Any) -> RegionKind:
        if isinstance(found, tf.keras.layers.Layer):
            return RegionKind.KERAS
        if isinstance(found, tf.types.experimental.PolymorphicFunction):
            is_fused = getattr(found, "_jit_compile", False)
            return RegionKind.XLA if is_fused else RegionKind.GRAPH
        return RegionKind.NUMBA

    def is_layer(self, cls: type) -> bool:
        return issubclass(cls, tf.keras.layers.Layer)

    def signature_of(self, function: Any) -> Sequence[Any] | None:
        found: Sequence[Any] | None = getattr(function, "input_signature", None)
        return found

    def seed(self, seed: int) -> None:
        tf.keras.utils.set_random_seed(seed)

    def eagerly(self) -> AbstractContextManager[None]:
        return eagerly()

    def results(self, call: Callable[[], Any], arguments: Any) -> Results:
        leaves = tf.nest.flatten(arguments)
        watched = [leaf for leaf in leaves if _is_differentiable(leaf)]
        with tf.GradientTape() as tape:
            tape.watch(watched)
            outputs = tuple(tf.nest.flatten(call()))
            floats = [each for each in outputs if _is_differentiable(each)]
            total = tf.add_n([tf.reduce_sum(tf.cast(each, tf.float64)) for each in floats or [0.0]])
        gradients = tuple(tape.gradient(total, watched)) if watched and floats else ()
        return Results(*(tuple(map(_array, each)) for each in (outputs, gradients, leaves)))

    def declared(self, compiled: Any, given: Given) -> tuple[Any, ...]:
        outputs = tf.nest.flatten(_concrete(compiled, given).structured_outputs)
        return tuple(getattr(each, "shape", None) for each in outputs)

    def draws(self, compiled: Any, given: Given) -> bool:
        """Random numbers differ between graph and eager."""
        try:
            graph = _concrete(compiled, given).graph
        except Exception:
            return "random" in str(getattr(compiled, "python_function", ""))
        return any("Random" in operation.type for operation in graph.get_operations())

    def is_late(self, error: Exception) -> bool:
        return isinstance(error, tf.errors.OpError)

    def varied(self, arguments: Any, seed: int) -> Any:
        return varied(arguments, seed)

    def edge_cases(self, arguments: Any) -> Iterator[tuple[str, Any]]:
        return edge_cases(arguments)


def _is_differentiable(leaf: Any) -> bool:
    return bool(tf.is_tensor(leaf) and leaf.dtype.is_floating)


def _array(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, tf.IndexedSlices):
        value = tf.convert_to_tensor(value)
    return value.numpy() if tf.is_tensor(value) or isinstance(value, tf.Variable) else value


def _concrete(compiled: Any, given: Given) -> Any:
    graph = getattr(compiled, "graph", None)  # of a layer, where keywords are a part of it
    if graph is not None:
        return graph.get_concrete_function(*given.args)
    return compiled.get_concrete_function(*given.args, **given.kwargs)
