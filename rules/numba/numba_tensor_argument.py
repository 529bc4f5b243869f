"""A tensor of PyTorch or TensorFlow is passed to a kernel that takes NumPy arrays."""

from collections.abc import Iterator

import libcst as cst

from jitlint.analysis.observations import Call
from jitlint.analysis.values import Kernel, Tensor
from jitlint.finding import Finding, Fix, Severity, Withheld
from jitlint.region import RegionKind
from jitlint.rule import Context, Rule

from ._arguments import Argument, Trouble, arguments_of, trouble
from ._bridges import Bridges
from ._kernels import Taking, taking
from ._scopes import gradients_are_off

CONVERTED = "with signatures the ufunc takes it, and returns another type with `.numpy()`"


class NumbaTensorArgument(Rule):
    """A tensor of PyTorch or TensorFlow is passed to a kernel that takes NumPy arrays.

    ## Why it matters
    Numba knows the types of NumPy and of Python, and no others. The call raises
    `TypingError: Cannot determine Numba type of <class 'torch.Tensor'>` (for `@vectorize`
    ValueError, with a signature `TypeError: No matching definition`). The same holds for
    `torch.Size`, for lists, tuples and dicts of tensors, for a tensor of one element where a
    number is meant, and for half precision: `.numpy()` of float16 is an array that no kernel
    takes, and bfloat16 has no array at all. TensorFlow's eager tensors fail with other words
    ("Unknown attribute 'shape' of type readonly buffer").

    ## Example
        @njit
        def run_lengths(mask): ...

        def encode(logits: torch.Tensor):
            return run_lengths((logits > 0).flatten())

    ## Use instead
        def encode(logits: torch.Tensor):
            return run_lengths((logits > 0).flatten().cpu().numpy())

    `tuple(x.shape)` for a size, `.item()` for a number, `.float()` before `.numpy()` for half
    precision, `.numpy()` for TensorFlow.

    ## Fix safety
    Safe: the call raises on every input now. `.detach()` is never written: `.numpy()` raises
    where a gradient would be lost, and works under `torch.no_grad()`. `.cpu()` is left out
    where the tensor is known to lie there, or the kernel writes into it. Unsafe is
    `.item()` of a tensor of which it is not known that it needs no gradient, and any fix
    inside a `try` with handlers or a `with` that may swallow the error. Withheld where
    the tensor requires a gradient, where a GradientTape records, where the kernel writes into
    what would be a copy, where the argument may be None, and where the kernel is a parameter
    of the function that calls it.

    ## Measured
    numba 0.68.0, torch 2.13.0, tensorflow 2.21.0: `jit(forceobj=True)` accepts every tensor;
    a ufunc with signatures does so through `__array__` (a note), but raises for a tensor that
    requires a gradient and for bfloat16; a list of arrays is accepted. A ufunc without
    signatures refuses a tensor only until it has compiled a loop for its dtype: which call
    comes first decides, so that its fix is unsafe, and gives an array.

    ## References
    - https://numba.readthedocs.io/en/stable/reference/types.html
    - https://docs.pytorch.org/docs/stable/generated/torch.Tensor.numpy.html
    """

    name = "numba-tensor-argument"
    severity = Severity.ERROR
    fixable = True
    regions = frozenset({RegionKind.NUMBA})

    def visit_Call(self, call: Call | cst.Call, ctx: Context) -> Iterator[Finding]:
        if not isinstance(call, Call) or not isinstance(call.callee, Kernel) or call.regions:
            return
        kernel = call.callee
        match taking(kernel):
            case Taking.REFUSES:
                refused = [each for each in arguments_of(call, kernel) if trouble(each.value)]
                if refused:
                    yield _refusal(call, kernel, refused, ctx)
            case Taking.CONVERTS:
                yield from _conversion(call, kernel, ctx)


def _refusal(call: Call, kernel: Kernel, refused: list[Argument], ctx: Context) -> Finding:
    fix, reason = _fix(call, kernel, refused, ctx)
    message = f"{_subject(refused[0], ctx)}, which Numba has no type for: the call raises"
    return ctx.finding(call.node, message, fix=fix, no_fix_reason=reason)


def _fix(
    call: Call, kernel: Kernel, refused: list[Argument], ctx: Context
) -> tuple[Fix | None, str | None]:
    try:
        return Bridges(call, kernel, ctx).fix(refused), None
    except Withheld as withheld:
        return None, str(withheld)


def _conversion(call: Call, kernel: Kernel, ctx: Context) -> Iterator[Finding]:
    """A ufunc with signatures asks the tensor for an array, which not every tensor gives."""
    tensors = [
        each
        for each in arguments_of(call, kernel)
        if trouble(each.value) in (Trouble.TORCH, Trouble.TENSORFLOW)
    ]
    dead = [each for each in tensors if _gives_no_array(each, call, ctx)]
    if dead:
        fix, reason = _fix(call, kernel, dead, ctx)
        message = f"{_subject(dead[0], ctx)} that gives the ufunc no array: the call raises"
        yield ctx.finding(call.node, message, fix=fix, no_fix_reason=reason)
    elif tensors:
        message = f"{_subject(tensors[0], ctx)}, which the ufunc converts through `__array__`"
        yield ctx.finding(call.node, message, severity=Severity.NOTE, no_fix_reason=CONVERTED)


def _gives_no_array(argument: Argument, call: Call, ctx: Context) -> bool:
    tensor = argument.value
    if not isinstance(tensor, Tensor) or trouble(tensor) is not Trouble.TORCH:
        return False
    needs_gradient = tensor.grad is True and not gradients_are_off(call, ctx)
    return needs_gradient or tensor.dtype == "bfloat16"


def _subject(argument: Argument, ctx: Context) -> str:
    kind = trouble(argument.value)
    assert kind is not None
    if argument.node is None:
        return f"an argument is {kind.value}"
    code = " ".join(ctx.module.code_for_node(argument.node.value).split())
    return f"`{code if len(code) <= 60 else code[:59] + '…'}` is {kind.value}"
