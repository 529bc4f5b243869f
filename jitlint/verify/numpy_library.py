"""NumPy alone, for the bench of arrays: kernels of Numba where no framework is used."""

import copy
import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from jitlint.region import RegionKind
from jitlint.verify.array_module import Given
from jitlint.verify.derive.candidates import MakeTensor
from jitlint.verify.library import ArrayCompiler, Results

LARGEST_INDEX = 3
EDGES: Mapping[str, Callable[[Any], Any]] = {
    "zeros": np.zeros_like,
    "NaN": lambda array: np.full_like(array, np.nan) if array.dtype.kind == "f" else array,
    "infinities": lambda array: array * np.inf if array.dtype.kind == "f" else array,
    "an empty leading dimension": lambda array: array[:0] if array.ndim else array,
    "a leading dimension of one": lambda array: array[:1] if array.ndim else array,
}


class NumpyTensors:
    def maker(self, annotation: Any) -> MakeTensor | None:
        origin = getattr(annotation, "__origin__", annotation)
        return make_array if origin in (inspect.Parameter.empty, np.ndarray) else None

    def constants(self, annotation: Any) -> Sequence[Any]:
        return ()


def make_array(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    if dtype == "float":
        return rng.standard_normal(shape).astype("float32")
    numbers = rng.integers(0, LARGEST_INDEX, shape)
    return numbers.astype("int32") if dtype == "int" else numbers > 0


class NumpyLibrary:
    tensors = NumpyTensors()
    compilers: Mapping[RegionKind, ArrayCompiler] = {}

    def kind_of(self, found: Any) -> RegionKind:
        return RegionKind.NUMBA

    def is_layer(self, cls: type) -> bool:
        return False

    def signature_of(self, function: Any) -> Sequence[Any] | None:
        return None

    def seed(self, seed: int) -> None:
        random.seed(seed)
        np.random.seed(seed)

    def eagerly(self) -> AbstractContextManager[None]:
        return nullcontext()

    def results(self, call: Callable[[], Any], arguments: Any) -> Results:
        outputs = tuple(_leaves(call()))
        return Results(copy.deepcopy(outputs), (), tuple(_leaves(arguments)))

    def declared(self, compiled: Any, given: Given) -> tuple[Any, ...]:
        return ()

    def draws(self, compiled: Any, given: Given) -> bool:
        return False

    def is_late(self, error: Exception) -> bool:
        return True

    def varied(self, arguments: Any, seed: int) -> Any:
        rng = np.random.default_rng(seed)

        def other(array: Any) -> Any:
            if array.dtype.kind != "f":
                return array
            return array + rng.standard_normal(array.shape).astype(array.dtype)

        return _mapped(arguments, other)

    def edge_cases(self, arguments: Any) -> Iterator[tuple[str, Any]]:
        for label, change in EDGES.items():
            yield label, _mapped(arguments, change)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    else:
        yield value


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_mapped(item, change) for item in value)
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    return change(value) if isinstance(value, np.ndarray) else value
