"""Which functions of NumPy torch.compile traces, and what they return there."""

import importlib
from collections.abc import Callable
from typing import Any

from jitlint.analysis.extract_observations import STATIC, TENSOR, TENSORS
from jitlint.analysis.extract_samples import make_tensor
from jitlint.analysis.extract_subjects import import_or_none

NUMPY_SHAPES: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((2, 3),),
    ((2, 3), (2, 3)),
    ((3, 3),),
    ((3, 3), (3,)),
    ((3,),),
    ((3,), (3,)),
    ((3,), (3,), (3,)),
    (),
)
"""Shapes of the arguments to try, until a call works."""


def numpy_functions() -> dict[str, dict[str, Any]]:
    """Functions of NumPy that Dynamo traces, because torch implements them."""
    found: dict[str, dict[str, Any]] = {}
    for namespace in ("", ".fft", ".linalg", ".random"):
        ours, theirs = (
            import_or_none(f"torch._numpy{namespace}"),
            import_or_none(f"numpy{namespace}"),
        )
        for name in dir(ours) if ours and theirs else ():
            function = getattr(ours, name)
            if name.startswith("_") or not callable(function) or isinstance(function, type):
                continue
            if hasattr(theirs, name):
                found[f"numpy{namespace}.{name}"] = _numpy_entry(function)
    return found


def _numpy_entry(function: Callable[..., Any]) -> dict[str, Any]:
    tnp: Any = importlib.import_module("torch._numpy")
    for shapes in NUMPY_SHAPES:
        args = [tnp.asarray(make_tensor("float64", shape, 0)) for shape in shapes]
        try:
            result = function(*args)
        except Exception:
            continue
        return _numpy_kind(result, tnp.ndarray)
    return {"returns": None, "source": "measured"}


def _numpy_kind(result: Any, array: Any) -> dict[str, Any]:
    entry: dict[str, Any] = {"returns": None}
    if isinstance(result, array):
        entry["returns"] = TENSOR
        if str(result.dtype) == "bool":
            entry["bool"] = True
        if result.ndim == 0:
            entry["reduces"] = True
    elif isinstance(result, list | tuple) and all(isinstance(item, array) for item in result):
        entry["returns"] = TENSORS
    elif isinstance(result, bool | int | float | complex):
        entry["returns"] = STATIC
    return {**entry, "source": "measured"}
