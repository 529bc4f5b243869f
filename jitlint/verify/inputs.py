"""Arguments to call an entry with: the module's own, and edge cases derived from them.

A module under test may define

    make_inputs(seed)           arguments as a tuple, or a dict of keywords
    make_inputs_<entry>(seed)   the same for one entry
    edge_inputs()               a list of such arguments that matter to it
    EDGE_CASES = False          derive no edge cases (`NOEDGE = True` is the same)
    GRAD = False                compare no gradients
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils import _pytree as pytree

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
LARGE, TINY = 1e30, 1e-30
MOST_WIDENED = 3


class InputError(Exception):
    """The module's own provider of inputs failed."""


@dataclass(frozen=True, slots=True)
class Given:
    """One set of arguments, copied for every call.

    `reshaped` ones have a shape or layout that the code may rightly refuse, `leaf` ones
    require grad though the user's do not. `fresh` asks for a target without a past,
    `without_grad` for a call under `torch.no_grad()`, and `flipped` for a Module in the other
    of training and evaluation.
    """

    label: str
    template: Arguments
    seed: int = 0
    fresh: bool = False
    reshaped: bool = False
    leaf: bool = False
    without_grad: bool = False
    flipped: bool = False

    def arguments(self) -> Arguments:
        return copy.deepcopy(self.template)

    def shapes(self) -> tuple[object, ...]:
        leaves = pytree.tree_leaves(self.template)
        return tuple(
            (tuple(leaf.shape), leaf.dtype) if isinstance(leaf, torch.Tensor) else leaf
            for leaf in leaves
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """What the module says about its own verification."""

    edges: bool
    gradients: bool
    force_gradients: bool

    @classmethod
    def read(cls, namespace: Mapping[str, Any]) -> "Settings":
        edges = namespace.get("EDGE_CASES", True) and not namespace.get("NOEDGE", False)
        grad = namespace.get("GRAD")
        return cls(bool(edges), grad is None or bool(grad), bool(grad))


def given_by_module(
    namespace: Mapping[str, Any], names: tuple[str, ...], seeds: int, device: str, is_main: bool
) -> list[Given]:
    """What `make_inputs` returns for each seed, and then the module's own edge cases."""
    makers = [f"make_inputs_{name}" for name in names] + ["make_inputs"] * is_main
    maker = next((namespace[name] for name in makers if name in namespace), None)
    if maker is None:
        return []
    edges = namespace.get("edge_inputs")
    try:
        found = [
            Given(f"seed {seed}", _prepare(maker(seed), device), seed=seed) for seed in range(seeds)
        ]
        for index, item in enumerate(edges() if callable(edges) else ()):
            found.append(Given(f"edge_inputs()[{index}]", _prepare(item, device), fresh=True))
    except Exception as error:
        raise InputError(f"making inputs failed: {type(error).__name__}: {error}") from error
    return found


def given_by_example(
    example: Arguments, seeds: int, device: str, label: str = "the example input"
) -> list[Given]:
    """The arguments that the module traced or exported with, and others of their shape."""
    first = prepared(example, device)
    found = [Given(label, first)]
    for seed in range(1, seeds):
        generator = torch.Generator().manual_seed(seed)
        sign = 1.0 if seed % 2 else -1.0

        def other(
            tensor: torch.Tensor, generator: torch.Generator = generator, sign: float = sign
        ) -> torch.Tensor:
            noise = torch.randn(tensor.shape, generator=generator).to(tensor)
            return tensor * sign + noise

        found.append(Given(f"{label}, varied {seed}", _floats(first, other), seed=seed))
    return found


def edge_cases(base: Given) -> list[Given]:
    """Edge cases of `base`: extreme values, other sizes, another memory layout or dtype."""
    values = [
        Given(f"{base.label} with {label}", template, base.seed, fresh=True)
        for label, template in _values(base.template)
    ]
    layouts = [
        Given(f"{base.label} with {label}", template, base.seed, fresh=True, reshaped=True)
        for label, template in _layouts(base.template)
    ]
    quiet = Given(f"{base.label} under no_grad", base.template, base.seed, True)
    return [*values, replace(quiet, without_grad=True), *layouts]


def in_other_mode(base: Given) -> Given:
    label = f"{base.label} with training switched"
    return replace(base, label=label, fresh=True, flipped=True)


def variants(base: Given) -> list[Given]:
    """Other types and ranks than those of arguments that were made up, which code that says
    nothing of them may take as well."""
    if not _float_tensors(base.template):
        return []
    casts = {
        "integers": lambda tensor: (tensor * 4).nan_to_num().long(),
        "half precision": torch.Tensor.half,
        "truth values": lambda tensor: tensor > 0,
    }
    found = [(f"of {label}", _floats(base.template, cast)) for label, cast in casts.items()]
    found += _wider(base.template)
    changed = [
        Given(f"{base.label} {label}", template, base.seed, fresh=True) for label, template in found
    ]
    return changed + requiring_grad(base)


def _wider(template: Arguments) -> Iterator[tuple[str, Arguments]]:
    """One of several tensors of a shape has a dimension more: a mask is then one of rows."""
    shapes = [tensor.shape for tensor in _tensors(template)]
    for position, tensor in enumerate(_float_tensors(template)[:MOST_WIDENED]):
        if tensor.ndim and shapes.count(tensor.shape) > 1:
            label = f"with a dimension more in float tensor {position}"
            yield label, _floats(template, _widened, position)


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    return torch.stack([tensor, tensor * 2, tensor - 1], dim=-1)


def of_integers(base: Given) -> list[Given]:
    """On which a number shows whether it is an int or a float."""
    if not _float_tensors(base.template):
        return []
    template = _floats(base.template, lambda tensor: (tensor * 4).nan_to_num().long())
    return [Given(f"{base.label} of integers", template, base.seed, fresh=True, reshaped=True)]


def requiring_grad(base: Given) -> list[Given]:
    """`base` as the inputs of a layer in training, unless it says itself what requires grad."""
    tensors = _tensors(base.template)
    if any(tensor.requires_grad for tensor in tensors) or not _float_tensors(base.template):
        return []
    template = _floats(base.template, lambda tensor: tensor.clone().requires_grad_(True))
    return [Given(f"{base.label} requiring grad", template, base.seed, fresh=True, leaf=True)]


def _values(template: Arguments) -> Iterator[tuple[str, Arguments]]:
    """Every mask, and every floating-point tensor, filled with one edge value; then one tensor
    at a time."""
    if any(map(_is_mask, _tensors(template))):
        yield "an all-True mask", _mapped(template, torch.ones_like, _is_mask)
        yield "an all-False mask", _mapped(template, torch.zeros_like, _is_mask)
    count = len(_float_tensors(template))
    if count == 0:
        return
    nan, inf = float("nan"), float("inf")
    fills: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "zeros": torch.zeros_like,
        "NaN": _filled(nan),
        "+inf": _filled(inf),
        "-inf": _filled(-inf),
        "one NaN": _first(nan),
        "mixed infinities": _alternating(inf, -inf),
        "negated values": torch.neg,
        "large values": lambda tensor: tensor * min(LARGE, torch.finfo(tensor.dtype).max / 16),
        "tiny values": lambda tensor: tensor * max(TINY, torch.finfo(tensor.dtype).tiny),
    }
    for label, fill in fills.items():
        yield label, _floats(template, fill)
    if 1 < count <= 4:
        for position in range(count):
            yield f"NaN in float tensor {position}", _floats(template, _filled(nan), position)


def _layouts(template: Arguments) -> Iterator[tuple[str, Arguments]]:
    tensors = [tensor for tensor in _tensors(template) if tensor.ndim > 0]
    if not tensors:
        return
    leading = tensors[0].shape[0]
    if leading:
        yield "an empty leading dimension", _mapped(template, _shortened(leading, 0))
    if leading > 1:
        yield "a leading dimension of one", _mapped(template, _shortened(leading, 1))
    yield "non-contiguous tensors", _mapped(template, _strided)
    if _float_tensors(template):
        yield "double precision", _floats(template, torch.Tensor.double)


def _shortened(leading: int, size: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """Tensors of one length have another, all of them."""

    def shorten(tensor: torch.Tensor) -> torch.Tensor:
        same = tensor.ndim > 0 and tensor.shape[0] == leading
        return tensor[:size].clone() if same else tensor

    return shorten


def _filled(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda tensor: torch.full_like(tensor, value)


def _first(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def fill(tensor: torch.Tensor) -> torch.Tensor:
        changed = tensor.clone()
        changed.view(-1)[:1] = value
        return changed

    return fill


def _alternating(even: float, odd: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def fill(tensor: torch.Tensor) -> torch.Tensor:
        changed = torch.full_like(tensor, even)
        changed.view(-1)[1::2] = odd
        return changed

    return fill


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.ndim == 0 or tensor.layout != torch.strided:
        return tensor
    return torch.stack([tensor, tensor], dim=-1)[..., 0]


def _prepare(value: object, device: str) -> Arguments:
    if isinstance(value, dict):
        return prepared(((), value), device)
    if isinstance(value, (tuple, list)):
        return prepared((tuple(value), {}), device)
    return prepared(((value,), {}), device)


def prepared(arguments: Arguments, device: str) -> Arguments:
    """On the device, and every tensor a leaf, as only leaves can be copied."""

    def prepare(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_leaf and str(tensor.device) == device:
            return tensor
        return tensor.detach().to(device).requires_grad_(tensor.requires_grad)

    return _mapped(arguments, prepare, keep_grad=False)


def _mapped(
    template: Arguments,
    change: Callable[[torch.Tensor], torch.Tensor],
    wanted: Callable[[torch.Tensor], bool] = lambda tensor: True,
    keep_grad: bool = True,
) -> Arguments:
    def apply(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or not wanted(leaf):
            return leaf
        if not keep_grad:
            return change(leaf)
        changed = change(leaf.detach())
        trains = leaf.requires_grad or changed.requires_grad
        return changed.requires_grad_(trains and _is_differentiable(changed))

    mapped: Arguments = pytree.tree_map(apply, template)
    return mapped


def _is_mask(tensor: torch.Tensor) -> bool:
    return tensor.dtype == torch.bool and tensor.ndim > 0


def _is_differentiable(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _floats(
    template: Arguments,
    change: Callable[[torch.Tensor], torch.Tensor],
    position: int | None = None,
) -> Arguments:
    """Changes the plain floating-point tensors, or the one at `position` among them."""
    order = {id(tensor): index for index, tensor in enumerate(_float_tensors(template))}

    def wanted(tensor: torch.Tensor) -> bool:
        index = order.get(id(tensor))
        return index is not None and (position is None or index == position)

    return _mapped(template, change, wanted)


def _tensors(template: Arguments) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(template) if isinstance(leaf, torch.Tensor)]


def _float_tensors(template: Arguments) -> list[torch.Tensor]:
    return [
        tensor
        for tensor in _tensors(template)
        if tensor.is_floating_point() and tensor.layout == torch.strided
    ]
