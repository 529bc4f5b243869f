"""Code that gives nothing back and changes none of its arguments."""

import re
import sys
from collections.abc import Callable

import libcst as cst

from jitlint.analysis.expressions import evaluate
from jitlint.analysis.frame import Frame
from jitlint.analysis.machine import Machine
from jitlint.analysis.operators import leaves_of
from jitlint.analysis.tree import found_in
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
    r"torch\.(is_(grad|inference_mode|autocast)\w*|get_autocast\w*|_C\.\w*|jit\.is_tracing\w*"
    r"|compiler\.is_\w+|_dynamo\.\w+)$"
)
"""What an operator is not told: below autograd gradients are off, and below AOT so is autocast
(measured with torch 2.13: `is_grad_enabled()` is False inside, matmul is in float32)."""
UNSEEN_CALLERS = re.compile(
    r"sys\._getframe|inspect\.(stack|currentframe)|traceback\.(print|extract|format)_stack"
)
"""What asks for the callers, who are torch's own code for an operator."""
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
        self._check_asked(call, set())
        callee = self._evaluate(call.func)
        name = callee.name if isinstance(callee, External | ExternalMethod) else ""
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

    def _check_asked(self, call: cst.Call, known: set[FunctionInfo]) -> None:
        """Raises Withheld where a call, or what it calls, asks for what an operator is not told:
        the modes that its caller runs in, and who that is."""
        callee = self._evaluate(call.func)
        name = callee.name if isinstance(callee, External | ExternalMethod) else ""
        if UNSEEN_MODES.match(name):
            raise Withheld(f"an operator runs in a mode of its own, which `{name}` would tell")
        if UNSEEN_CALLERS.match(name) or _names_caller(name, call):
            raise Withheld("the code names its caller, which would be torch's for an operator")
        info = _function_of(callee)
        if info is None or info in known or self._depth >= MAX_DEPTH:
            return
        known.add(info)
        inner = self._inside(info)
        for each in found_in(info.node.body, cst.Call):
            inner._check_asked(each, known)

    def _inside(self, info: FunctionInfo) -> "Judge":
        machine = self._machine
        frame = Frame(machine, info.module, info, None, machine.declared(info), silent=1)
        return Judge(machine, lambda node: evaluate(frame, node), self._depth + 1)

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
            case Function() | BoundMethod():
                return self._is_mute_function(_function_of(callee))
        if isinstance(call.func, cst.Attribute):
            receiver = self._evaluate(call.func.value)
            if isinstance(receiver, ExternalInstance):
                return _is_standard(receiver.name)
            operator = table.method(call.func.attr.value)
            if isinstance(receiver, Tensor) and operator is not None:
                return not (operator.mutates or operator.random)
            return isinstance(receiver, Static)
        return False

    def _is_mute_function(self, info: FunctionInfo | None) -> bool:
        if self._depth >= MAX_DEPTH or info is None or not isinstance(info.node, cst.FunctionDef):
            return False
        given = frozenset(self._machine.declared(info))
        try:
            check_mute([info.node.body], given, self._inside(info))
        except Withheld:
            return False
        return True


def _function_of(callee: Value) -> FunctionInfo | None:
    match callee:
        case Function(info) | BoundMethod(function=Function(info)):
            return info
    return None


def _names_caller(name: str, call: cst.Call) -> bool:
    """Whether a warning or a record of a log is put down to a caller: `stacklevel=2`."""
    positional = [each.value for each in call.args if each.keyword is None]
    levels = [
        each.value for each in call.args if each.keyword and each.keyword.value == "stacklevel"
    ]
    if name == "warnings.warn":
        levels += positional[2:3]
    return any(not (isinstance(each, cst.Integer) and each.value == "1") for each in levels)


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
