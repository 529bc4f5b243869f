"""Which arguments of a call Numba cannot take, and where they are written."""

import enum
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from jitlint.analysis import tables
from jitlint.analysis.observations import Call
from jitlint.analysis.values import (
    Dict,
    External,
    ExternalInstance,
    Framework,
    Kernel,
    Optional,
    Sequence,
    Tensor,
    Tuple,
    Value,
)

from ._kernels import parameters_of

HALF = frozenset({"float16", "bfloat16"})
CONSTANTS = tables.load().constants()
"""What Numba has no type for; torch.pi, inf, nan and e are numbers, as are others (measured)."""


class Trouble(enum.Enum):
    """What an argument is, as a message calls it."""

    TORCH = "a torch tensor"
    TENSORFLOW = "a TensorFlow tensor"
    HALF = "an array of half precision"
    SIZE = "a torch.Size"
    CONTAINER = "a container of tensors"
    LAYER = "a torch module"
    CONSTANT = "a constant of torch"


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a kernel. `node`: where the call writes it; None if it comes out of
    `*args`, `**kwargs` or a partial, or if another function calls the kernel (`map`).
    `parameter` is its name in the kernel."""

    value: Value
    parameter: str
    node: cst.Arg | None


def arguments_of(call: Call, kernel: Kernel) -> Iterator[Argument]:
    names = parameters_of(kernel)
    positional = [each for each in call.node.args if each.keyword is None and not each.star]
    is_passed = isinstance(call.value_of(call.node.func), External)
    is_open = is_passed or any(each.star for each in call.node.args)
    first = len(call.positional) - len(positional)
    for index, value in enumerate(call.positional):
        is_written = not is_open and index >= first
        node = positional[index - first] if is_written else None
        yield Argument(value, names[index] if index < len(names) else "", node)
    written = () if is_passed else call.node.args
    named = {each.keyword.value: each for each in written if each.keyword is not None}
    for name, value in call.keywords.items():
        yield Argument(value, name, named.get(name))


def trouble(value: Value) -> Trouble | None:
    """Why Numba has no type for a value; None where nothing says that it has none."""
    match value:
        case Tensor():
            return _tensor_trouble(value)
        case Optional(present):
            return trouble(present)
        case Sequence(cls="torch.Size"):
            return Trouble.SIZE
        case Tuple(items):
            return Trouble.CONTAINER if any(map(_is_foreign, items)) else None
        case Sequence(element):
            return Trouble.CONTAINER if _is_foreign(element) else None
        case Dict(items, default):
            found = [each for _, each in items] + [default]
            return Trouble.CONTAINER if any(map(_is_foreign, found)) else None
        case ExternalInstance(name) if name.startswith("torch."):
            return Trouble.LAYER
        case External(name) if name in CONSTANTS:
            return Trouble.CONSTANT
    return None


def _tensor_trouble(tensor: Tensor) -> Trouble | None:
    if tensor.assumed or tensor.maybe:
        return None
    match tensor.framework:
        case Framework.TORCH:
            return Trouble.TORCH
        case Framework.TENSORFLOW:
            return Trouble.TENSORFLOW
    return Trouble.HALF if tensor.dtype in HALF else None


def _is_foreign(value: Value) -> bool:
    return trouble(value) in (Trouble.TORCH, Trouble.TENSORFLOW, Trouble.CONTAINER)
