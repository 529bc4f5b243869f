"""Tensors of PyTorch among the leaves of a value."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from jitlint.verify.values import SNAPSHOTS, Flat, Leaf, Snapshot, show, walk

# Relative and absolute, as torch.testing has them.
_TOLERANCES = {
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
    torch.float32: (1.3e-6, 1e-5),
    torch.float64: (1e-7, 1e-7),
    torch.complex32: (1e-3, 1e-5),
    torch.complex64: (1.3e-6, 1e-5),
    torch.complex128: (1e-7, 1e-7),
}


@dataclass(frozen=True, slots=True)
class TensorLeaf(Snapshot):
    """A tensor as it was at one moment: later writes do not reach `values`."""

    type: str
    values: torch.Tensor
    requires_grad: bool
    strides: tuple[int, ...] = ()

    def difference(self, actual: "TensorLeaf", slack: float) -> str | None:
        old, new = self.values, actual.values
        if self.type != actual.type:
            return f"type {self.type} became {actual.type}"
        for aspect in ("dtype", "shape", "device", "layout"):
            before, after = getattr(old, aspect), getattr(new, aspect)
            if before != after:
                return f"{aspect} {_aspect(before)} became {_aspect(after)}"
        if self.requires_grad != actual.requires_grad:
            return f"requires_grad {self.requires_grad} became {actual.requires_grad}"
        relative, absolute = _TOLERANCES.get(old.dtype, (0.0, 0.0))
        try:
            torch.testing.assert_close(
                new,
                old,
                rtol=relative * slack,
                atol=absolute * slack,
                equal_nan=True,
                check_stride=False,
            )
        except AssertionError:
            return f"{show(self)} became {show(actual)}"
        return None

    def shown(self) -> str:
        return f"{self.values.dtype} {_numbers(self.values)}"


def snapshot(tensor: torch.Tensor) -> TensorLeaf:
    plain = tensor.detach()
    return TensorLeaf(
        type(tensor).__name__, plain.clone(), bool(tensor.requires_grad), _strides(plain)
    )


def _snapshot_of(value: object) -> TensorLeaf | None:
    return snapshot(value) if isinstance(value, torch.Tensor) else None


SNAPSHOTS.append(_snapshot_of)


def tensors_in(value: object, path: str) -> Iterator[tuple[str, torch.Tensor]]:
    """The live tensors, with the same paths as in `flatten`."""
    for where, item in walk(value, path, set()):
        if isinstance(item, torch.Tensor):
            yield where, item


def stride_difference(expected: Flat, actual: Flat) -> str | None:
    """The first tensor that lies in memory in another way; kinds and values are the same."""
    for path, leaf in expected.items():
        old, new = _strides_of(leaf), _strides_of(actual.get(path))
        if old != new:
            return f"{path}: strides {old} became {new}"
    return None


def _strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """Those that matter: a dimension of one element has no stride to speak of."""
    if tensor.layout != torch.strided or tensor.numel() == 0:
        return ()
    return tuple(
        stride for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1
    )


def _strides_of(leaf: Leaf) -> tuple[int, ...] | None:
    return leaf.strides if isinstance(leaf, TensorLeaf) else None


def _numbers(tensor: torch.Tensor) -> str:
    if tensor.numel() <= 8 and tensor.layout == torch.strided and not tensor.is_quantized:
        return str(tensor.tolist())
    return f"of shape {tuple(tensor.shape)}"


def _aspect(value: object) -> str:
    return str(tuple(value)) if isinstance(value, torch.Size) else str(value)
