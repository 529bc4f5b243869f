"""What surrounds a call: whether autograd is off, or a tape records."""

from collections.abc import Iterator

import libcst as cst

from jitlint.analysis.observations import Call
from jitlint.analysis.tree import found_in, parents_of
from jitlint.analysis.values import External, Static
from jitlint.rule import Context

OFF = frozenset(
    {
        *("torch.no_grad", "torch.inference_mode"),
        *("torch.autograd.no_grad", "torch.autograd.inference_mode"),
        *("torch.autograd.grad_mode.no_grad", "torch.autograd.grad_mode.inference_mode"),
    }
)
SWITCHES = frozenset({"torch.set_grad_enabled", "torch.autograd.set_grad_enabled"})
TAPES = frozenset({"tensorflow.GradientTape"})


def gradients_are_off(call: Call, ctx: Context) -> bool:
    """Whether the call stands where torch records nothing, in its own function."""
    return any(_switches_off(node, call) for node in _contexts(call, ctx))


def tape_records(call: Call, ctx: Context) -> bool:
    return any(_name(node, call) in TAPES for node in _contexts(call, ctx))


def file_has_tape(call: Call, ctx: Context) -> bool:
    """Whether anything in the file is recorded; which functions, calls decide elsewhere."""
    items = (item.item for with_ in found_in(ctx.module, cst.With) for item in with_.items)
    return any(_name(node, call) in TAPES for node in items)


def _contexts(call: Call, ctx: Context) -> Iterator[cst.BaseExpression]:
    """The items of the `with` around a call, and the decorators of its function."""
    parents = parents_of(ctx.module)
    node: cst.CSTNode = call.node
    while node in parents:
        node = parents[node]
        if isinstance(node, cst.With):
            yield from (item.item for item in node.items)
        if isinstance(node, cst.FunctionDef):
            yield from (each.decorator for each in node.decorators)
            return


def _switches_off(node: cst.BaseExpression, call: Call) -> bool:
    name = _name(node, call)
    if name in OFF:
        return True
    if name not in SWITCHES or not isinstance(node, cst.Call) or not node.args:
        return False
    return call.value_of(node.args[0].value) == Static(False)


def _name(node: cst.BaseExpression, call: Call) -> str:
    value = call.value_of(node.func if isinstance(node, cst.Call) else node)
    return value.name if isinstance(value, External) else ""
