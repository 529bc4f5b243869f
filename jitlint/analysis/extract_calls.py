"""Calls of functions whose signatures say nothing and which torch's own samples leave out.

Only the arguments are written here. What a function returns is seen by calling it.
"""

import re
from collections.abc import Callable
from typing import Any

from jitlint.analysis.extract_samples import Sample, make_tensor

CALLS: dict[str, tuple[str, ...]] = {
    "torch.is_tensor": ("x", "3"),
    "torch.is_storage": ("x",),
    "torch.chain_matmul": ("x, x.t()",),
    "torch.cond": ("x.sum() > 0, lambda v: v * 2, lambda v: v * 3, (x,)",),
    "torch._assert": ("True, 'message'", "x.sum() > 0, 'message'"),
    "torch._check": ("True",),
    "torch._check_index": ("True",),
    "torch._check_is_size": ("3",),
    "torch._check_not_implemented": ("True",),
    "torch._check_tensor_all": ("x > -100",),
    "torch._check_type": ("True",),
    "torch._check_value": ("True",),
    "torch.sym_float": ("2",),
    "torch.sym_int": ("2.5",),
    "torch.sym_ite": ("True, 1, 2",),
    "torch.sym_max": ("2, 3",),
    "torch.sym_min": ("2, 3",),
    "torch.sym_not": ("True",),
    "torch.sym_sqrt": ("4.0",),
    "torch.sym_sum": ("[1, 2]",),
    "torch.autograd.grad": ("(leaf * leaf).sum(), leaf",),
    "torch.autograd.functional.hessian": ("lambda v: (v * v).sum(), x",),
    "torch.autograd.functional.hvp": ("lambda v: (v * v).sum(), x, x",),
    "torch.autograd.functional.jacobian": ("lambda v: v * 2, x",),
    "torch.autograd.functional.jvp": ("lambda v: v * 2, x, x",),
    "torch.autograd.functional.vhp": ("lambda v: (v * v).sum(), x, x",),
    "torch.autograd.functional.vjp": ("lambda v: v.sum(), x",),
    "torch.fft.fftfreq": ("4",),
    "torch.fft.rfftfreq": ("4",),
    "torch.func.functional_call": ("torch.nn.Linear(4, 4), {}, (x,)",),
    "torch.jit.isinstance": ("x, torch.Tensor",),
    "torch.nn.attention.flex_attention.flex_attention": ("heads, heads, heads",),
    "torch.overrides.has_torch_function": ("(x,)",),
    "torch.overrides.is_tensor_like": ("x",),
    "torch.sparse.log_softmax": ("x.to_sparse(), 0",),
    "torch.sparse.softmax": ("x.to_sparse(), 0",),
    "torch.testing.assert_close": ("x, x",),
    "Tensor.apply_": ("x, lambda v: v * 2",),
    "Tensor.map_": ("x, x, lambda v, w: v + w",),
    "Tensor.map2_": ("x, x, x, lambda v, w, u: v + w + u",),
    "Tensor.__contains__": ("x, 1.0",),
    "Tensor.__deepcopy__": ("x, {}",),
    "Tensor.register_hook": ("leaf, lambda grad: grad",),
}
"""Arguments by function; `x` is a matrix, `leaf` one that wants a gradient."""
GETTER = re.compile(r"(is|get|has)_\w+|\w+_(enabled|allowed|available)")
BARE_NAMESPACES = ("torch.nn.functional", "torch.special")
"""Where a built-in function without a signature is taken to work on tensors."""


def written_samples(name: str, call: Callable[..., Any]) -> list[Sample]:
    return [_written(call, text) for text in CALLS.get(name, ())]


def _written(call: Callable[..., Any], text: str) -> Sample:
    """The call; with a leaf it has to be made anew each time, as its graph is used up."""
    if "leaf" in text:
        return Sample(lambda: call(*_arguments(text)), (), {}, False, "measured", compiles=False)
    return Sample(call, _arguments(text), {}, False, "measured")


def _arguments(text: str) -> tuple[Any, ...]:
    import torch

    names = {
        "torch": torch,
        "collect": lambda *args: args,
        "x": make_tensor("float32", (3, 4), 0),
        "leaf": make_tensor("float32", (3, 4), 0).requires_grad_(),
        "heads": make_tensor("float32", (1, 1, 16, 16), 0),
    }
    arguments: tuple[Any, ...] = eval(f"collect({text})", names)
    return arguments


def bare_samples(name: str, call: Callable[..., Any]) -> list[Sample]:
    """Calls of a function without a signature, by where it lies and how it is called."""
    namespace, _, short = name.rpartition(".")
    if GETTER.fullmatch(short):
        return [Sample(call, (), {}, False, "measured")]
    if namespace not in BARE_NAMESPACES:
        return []
    tensors = [make_tensor("float32", (2, 3), seed) for seed in (0, 1)]
    return [Sample(call, tuple(tensors[:count]), {}, False, "measured") for count in (1, 2)]
