"""Code that gives nothing back and changes none of its arguments."""

import re
import sys
from collections.abc import Callable

import libcst as cst

from jitlint.analysis.expressions import evaluate
from jitlint.analysis.frame import Frame
from jitlint.analysis.machine import Machine
from jitlint.analysis.operators import leaves_of
from jitlint.analysis.values import (
    BoundMethod,
    Class,
    External,
    ExternalInstance,
    ExternalMethod,
    Framework,
    Function,
    Static,
    Tensor,
    Value,
)
from jitlint.project.modules import FunctionInfo

from ..branch_fixes.withheld import Withheld

MAX_DEPTH = 4
"""Calls nested deeper are taken for unknown."""

Evaluate = Callable[[cst.BaseExpression], Value]

FORBIDDEN: dict[type[cst.CSTNode], str] = {
    cst.Global: "it binds a global name",
    cst.Nonlocal: "it binds a name of another function",
    cst.Yield: "it yields",
    cst.Await: "it awaits",
    cst.FunctionDef: "it defines a function",
    cst.ClassDef: "it defines a class",
    cst.Del: "it deletes",
}


UNSEEN_ATTRIBUTES = frozenset({"grad", "grad_fn", "is_leaf", "requires_grad", "retains_grad"})
UNSEEN_MODES = re.compile(
    r"torch\.(is_(grad|inference_mode|autocast)\w*|get_autocast\w*|_C\.\w*|jit\.is_\w+"
    r"|compiler\.is_\w+|_dynamo\.\w+)$"
)
"""What an operator is not told: below autograd gradients are off, and below AOT so is autocast
(measured with torch 2.13: `is_grad_enabled()` is False inside, matmul is in float32)."""
CAST_BY_AUTOCAST = frozenset(
    {
        *("addmm", "baddbmm", "bmm", "chain_matmul", "conv1d", "conv2d", "conv3d", "einsum"),
        *("linear", "matmul", "mm", "mv", "scaled_dot_product_attention"),
    }
)


UNCAST = "an operator computes products in full precision, even under autocast"


def check_mute(nodes: "list[cst.CSTNode]", given: frozenset[str], judge: "Judge") -> None:
    """Raises Withheld where one of `nodes` may change what the names `given` stand for."""
    for node in nodes:
        _check(node, given, judge)


class Judge:
    """What is known of the expressions of one function."""

    def __init__(self, machine: Machine, evaluate: Evaluate, depth: int = 0) -> None:
        self._machine = machine
        self._evaluate = evaluate
        self._depth = depth

    def check_call(self, call: cst.Call) -> None:
        callee = self._evaluate(call.func)
        name = callee.name if isinstance(callee, External | ExternalMethod) else ""
        if UNSEEN_MODES.match(name):
            raise Withheld(f"an operator runs in a mode of its own, which `{name}` would tell")
        if name.rpartition(".")[2] in CAST_BY_AUTOCAST:
            raise Withheld(UNCAST)
        values = [self._evaluate(each.value) for each in call.args]
        receiver = call.func.value if isinstance(call.func, cst.Attribute) else None
        if receiver is not None and not isinstance(callee, External | Function | Class):
            values.append(self._evaluate(receiver))
        if not any(map(_may_hold_tensor, leaves_of(values))):
            return
        if any(each.keyword is not None and each.keyword.value == "out" for each in call.args):
            raise Withheld(_changes(call))
        if not self._keeps_arguments(callee, call):
            raise Withheld(_changes(call))

    def _keeps_arguments(self, callee: Value, call: cst.Call) -> bool:
        table = self._machine.torch
        match callee:
            case External(name) | ExternalMethod(receiver=ExternalInstance(name)) if _is_standard(
                name
            ):
                return True
            case External(name):
                operator = table.function(name)
                return operator is not None and not (operator.mutates or operator.random)
            case Function(info) | BoundMethod(function=Function(info)):
                return self._is_mute_function(info)
        if isinstance(call.func, cst.Attribute):
            receiver = self._evaluate(call.func.value)
            if isinstance(receiver, ExternalInstance):
                return _is_standard(receiver.name)
            operator = table.method(call.func.attr.value)
            if isinstance(receiver, Tensor) and operator is not None:
                return not (operator.mutates or operator.random)
            return isinstance(receiver, Static)
        return False

    def _is_mute_function(self, info: FunctionInfo) -> bool:
        if self._depth >= MAX_DEPTH or not isinstance(info.node, cst.FunctionDef):
            return False
        machine = self._machine
        frame = Frame(machine, info.module, info, None, machine.declared(info), silent=1)
        judge = Judge(machine, lambda node: evaluate(frame, node), self._depth + 1)
        given = frozenset(frame.variables)
        try:
            check_mute([info.node.body], given, judge)
        except Withheld:
            return False
        return True


def _check(node: cst.CSTNode, given: frozenset[str], judge: Judge) -> None:
    reason = FORBIDDEN.get(type(node))
    if reason is not None:
        raise Withheld(f"the code cannot be an operator of its own: {reason}")
    match node:
        case cst.AssignTarget() | cst.AnnAssign():
            _check_target(node.target)
        case cst.AugAssign(target=target):
            _check_target(target)
            if isinstance(target, cst.Name) and target.value in given:
                raise Withheld(f"an operator must not change its argument `{target.value}`")
        case cst.Call():
            judge.check_call(node)
        case cst.Attribute(attr=cst.Name(value=name)) if name in UNSEEN_ATTRIBUTES:
            raise Withheld(f"an operator is not told the `{name}` of its arguments")
        case cst.BinaryOperation(operator=cst.MatrixMultiply()):
            raise Withheld(UNCAST)
        case cst.Raise(cause=cst.From()):
            raise Withheld("the exception has a cause, which an operator is not given")
    for child in node.children:
        _check(child, given, judge)


def _check_target(target: cst.CSTNode) -> None:
    if isinstance(target, cst.Subscript | cst.Attribute):
        raise Withheld("the code changes an object, which an operator must not do unasked")
    if isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            _check_target(element.value)


def _may_hold_tensor(value: Value) -> bool:
    if isinstance(value, Tensor):
        return value.framework is not Framework.TENSORFLOW
    return not isinstance(value, Static | External | Class | Function)


def _is_standard(dotted: str) -> bool:
    """Whether it is Python's own, which knows nothing of tensors."""
    return dotted.partition(".")[0] in {"builtins", *sys.stdlib_module_names}


def _changes(call: cst.Call) -> str:
    name = cst.Module([]).code_for_node(call.func)
    return f"`{name}` is not known to leave the tensors alone that it is given"
