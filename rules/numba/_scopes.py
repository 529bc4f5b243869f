"""What surrounds a call: whether autograd is off, or a tape records."""

from collections.abc import Iterator

import libcst as cst

from jitlint.analysis.makers import NO_GRADIENTS
from jitlint.analysis.observations import Call
from jitlint.analysis.scope import function_of
from jitlint.analysis.tree import found_in, parents_of
from jitlint.analysis.values import External, Static
from jitlint.rule import Context

ON = frozenset({"torch.enable_grad", "torch.autograd.enable_grad"}) | {
    "torch.autograd.grad_mode.enable_grad"
}
SWITCHES = frozenset({"torch.set_grad_enabled", "torch.autograd.set_grad_enabled"})
TAPES = frozenset({"tensorflow.GradientTape"})


def gradients_are_off(call: Call, ctx: Context) -> bool:
    """Whether the call stands where torch records nothing, in its own function."""
    switched = (_switched(node, call) for node in _contexts(call, ctx))
    return next((mode for mode in switched if mode is not None), None) is False


def is_passed_in(call: Call, ctx: Context) -> bool:
    """Whether what is called is a parameter, which another caller may give another function."""
    name, around = call.node.func, function_of(call.node, ctx.module)
    while isinstance(name, cst.Name) and around is not None:
        if any(param.name.value == name.value for param in found_in(around.params, cst.Param)):
            return True
        around = function_of(around, ctx.module)
    return False


def tape_records(call: Call, ctx: Context) -> bool:
    return any(_name(node, call) in TAPES for node in _contexts(call, ctx))


def file_has_tape(call: Call, ctx: Context) -> bool:
    """Whether anything in the file is recorded; which functions, calls decide elsewhere."""
    items = (item.item for with_ in found_in(ctx.module, cst.With) for item in with_.items)
    return any(_name(node, call) in TAPES for node in items)


def _contexts(call: Call, ctx: Context) -> Iterator[cst.BaseExpression]:
    """The items of the `with` around a call, and the decorators of its function: inner first."""
    parents = parents_of(ctx.module)
    node: cst.CSTNode = call.node
    while node in parents:
        node = parents[node]
        if isinstance(node, cst.With):
            yield from (item.item for item in reversed(node.items))
        if isinstance(node, cst.FunctionDef):
            yield from (each.decorator for each in node.decorators)
            return


def _switched(node: cst.BaseExpression, call: Call) -> bool | None:
    """Whether gradients are on in a context, in doubt yes; None if it does not set that."""
    name = _name(node, call)
    if name in NO_GRADIENTS or name in ON:
        return name in ON
    if name not in SWITCHES or not isinstance(node, cst.Call) or not node.args:
        return None
    return call.value_of(node.args[0].value) != Static(False)


def _name(node: cst.BaseExpression, call: Call) -> str:
    value = call.value_of(node.func if isinstance(node, cst.Call) else node)
    return value.name if isinstance(value, External) else ""
