"""Tensors for parameters of code that uses PyTorch, and the sizes that its weights want."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from jitlint.verify.derive.candidates import MakeTensor
from jitlint.verify.state import Target

CONSTANTS: Mapping[type, tuple[Any, ...]] = {
    torch.dtype: (torch.float64, torch.float32),
    torch.device: (torch.device("cpu"),),
}
LARGEST_INDEX = 3


class TorchTensors:
    """On the CPU: arguments are moved to the device with all others."""

    def maker(self, annotation: Any) -> MakeTensor | None:
        if annotation is inspect.Parameter.empty or annotation is torch.Tensor:
            return _tensor
        numpy = sys.modules.get("numpy")
        is_array = numpy is not None and getattr(annotation, "__origin__", annotation) is (
            numpy.ndarray
        )
        return _array if is_array else None

    def constants(self, annotation: Any) -> Sequence[Any]:
        return CONSTANTS.get(annotation, ()) if isinstance(annotation, type) else ()


def _tensor(shape: tuple[int, ...], dtype: str, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype == "float":
        return torch.randn(shape, generator=generator)
    numbers = torch.randint(0, LARGEST_INDEX, shape, generator=generator)
    return numbers if dtype == "int" else numbers > 0


def _array(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    return _tensor(shape, dtype, seed).numpy()


def likely_sizes(target: Target, namespace: Mapping[str, Any]) -> list[int]:
    """Dimensions of the weights: what a layer takes comes second in each."""
    modules = [value for value in namespace.values() if isinstance(value, torch.nn.Module)]
    owners = [target.owner] if target.owner is not None else modules
    return [size for owner in owners for size in _sizes(owner)]


def _sizes(owner: torch.nn.Module) -> Iterator[int]:
    for weight in (*owner.parameters(), *owner.buffers()):
        dims = list(weight.shape)
        yield from (*dims[1:2], *dims[:1])


def code_of(target: Target) -> Callable[..., Any]:
    """What has the signature: a Module's is that of its `forward`."""
    is_module = target.owner is not None and target.call is target.owner
    return target.owner.forward if is_module and target.owner is not None else target.call
