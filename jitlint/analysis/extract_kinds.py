"""The kinds of values that the tables tell apart, of results and of annotations."""

import re
from typing import Any

TENSOR = "tensor"
TENSORS = "tensors"
NUMBER = "number"
"""A number whose origin has to be found out: it becomes "scalar", "size" or "static"."""
SCALAR = "scalar"
SIZE = "size"
STATIC = "static"
NONE = "none"


def kind_of(value: Any) -> str | None:
    import torch

    if isinstance(value, torch.Tensor) or type(value).__name__ == "ndarray":
        return TENSOR
    if value is None:
        return NONE
    if isinstance(value, torch.Size):
        return SIZE
    if isinstance(value, bool | int | float | complex):
        return NUMBER
    if isinstance(value, list | tuple):
        if not value:
            return SIZE
        if all(isinstance(item, torch.Tensor) for item in value):
            return TENSORS
        if all(type(item) is int for item in value):
            return SIZE
        return NUMBER if all(isinstance(item, bool | float | list) for item in value) else None
    if isinstance(value, torch.dtype | torch.device | torch.layout | str):
        return STATIC
    return None


def kind_of_annotation(text: str) -> tuple[str | None, int | None]:
    """The kind that a return annotation names, and its arity."""
    import torch

    text = text.replace("Optional[Tensor]", "Tensor | None").replace("Tuple", "tuple")
    if text in ("Tensor", "Self", "S", "Tensor | None"):
        return TENSOR, None
    if text.startswith("torch.return_types."):
        cls = getattr(torch.return_types, text.rpartition(".")[2])
        return TENSORS, int(cls.n_fields)
    if match := re.fullmatch(r"tuple\[(Tensor(?:, Tensor)*)\]", text):
        return TENSORS, match[1].count("Tensor")
    if re.fullmatch(r"(tuple\[Tensor, \.\.\.\]|(list|List|Sequence)\[Tensor\])", text):
        return TENSORS, None
    if text in ("_bool", "_int", "_float", "bool", "int", "float", "Number", "_int | SymInt"):
        return NUMBER, None
    if text in ("_dtype", "_device", "_layout", "str", "_qscheme", "dtype", "device"):
        return STATIC, None
    if text == "None":
        return NONE, None
    return (SIZE, None) if text == "Size" else (None, None)
