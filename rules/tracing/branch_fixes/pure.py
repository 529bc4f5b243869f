"""Functions of the project that compute and do nothing else: an arm may call them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

import libcst as cst

from jitlint.analysis.calls import evaluate_arguments
from jitlint.analysis.expressions import evaluate
from jitlint.analysis.frame import Frame
from jitlint.analysis.observations import Observation
from jitlint.analysis.statements import execute
from jitlint.analysis.tables import Operator, Returns
from jitlint.analysis.tree import found_in
from jitlint.analysis.values import (
    External,
    ExternalInstance,
    ExternalMethod,
    Function,
    Optional,
    Static,
    Tensor,
    Value,
)
from jitlint.project.modules import FunctionInfo, statements_of

from .flow import code_of
from .operators import PURE_LAYERS, RANDOM_METHODS
from .withheld import Withheld

Seen = TypeVar("Seen", bound=Observation)

MAX_DEPTH = 4
"""Calls nested deeper are taken for unknown."""

PURE_BUILTINS = frozenset(
    {
        *("builtins.abs", "builtins.float", "builtins.getattr", "builtins.hasattr"),
        *("builtins.int", "builtins.isinstance", "builtins.len", "builtins.max", "builtins.min"),
        *("builtins.range", "builtins.round", "builtins.tuple"),
    }
)

OUT_OF_THE_WAY = (cst.Import, cst.ImportFrom, cst.Pass)
LEFT_OUT = (
    *(cst.Lambda, cst.BaseComp, cst.Yield, cst.Await, cst.NamedExpr, cst.FormattedString),
    *(cst.BooleanOperation, cst.IfExp),
)
"""Expressions that run code later, bind names, or may ask a tensor for its truth."""


def require_pure(seen: Observation, function: FunctionInfo, call: cst.Call) -> None:
    """Raises Withheld where the function may do more than compute, with these arguments."""
    for moment in seen.moments:
        frame = replace(moment.frame, variables=dict(moment.variables), silent=1)
        _Purity(0).check_function(frame, function, call)


def require_computed(seen: Observation, node: cst.BaseExpression) -> None:
    """Raises Withheld where an expression of the function may do more than compute."""
    for moment in seen.moments:
        frame = replace(moment.frame, variables=dict(moment.variables), silent=1)
        _Purity(0).check_expression(frame, node)


def ahead(seen: Seen, statements: Iterable[cst.SimpleStatementLine]) -> Seen:
    """The observation with the values that there are behind the statements which follow it."""
    moments = []
    for moment in seen.moments:
        frame = replace(moment.frame, variables=dict(moment.variables), silent=1)
        for small in (each for statement in statements for each in statement.body):
            execute(frame, small)
        moments.append(replace(moment, variables=frame.variables))
    return replace(seen, moments=moments)


def makes_its_result(function: FunctionInfo) -> bool:
    """Whether every result is that of an operator, so that no argument is handed back."""
    returns = list(found_in(function.node.body, cst.Return))
    return bool(returns) and all(
        isinstance(each.value, cst.BinaryOperation | cst.Comparison) for each in returns
    )


class _Purity:
    def __init__(self, depth: int) -> None:
        self._depth = depth

    def check_function(self, caller: Frame, function: FunctionInfo, call: cst.Call) -> None:
        node = function.node
        if self._depth >= MAX_DEPTH or not isinstance(node, cst.FunctionDef) or node.decorators:
            raise Withheld(f"an arm calls `{code_of(call.func)}`, which may have effects")
        arguments = evaluate_arguments(caller, call.args)
        bound = caller.machine.bind_arguments(caller, function, arguments)
        frame = replace(
            caller, module=function.module, function=function, variables=bound, returned=[]
        )
        try:
            self._check_block(frame, node.body)
        except Withheld as reason:
            raise Withheld(f"in `{code_of(call.func)}`, which an arm calls, {reason}") from None

    def _check_block(self, frame: Frame, block: cst.CSTNode) -> None:
        for statement in statements_of(block):
            self._check_statement(frame, statement)
            execute(frame, statement)

    def _check_statement(self, frame: Frame, statement: cst.CSTNode) -> None:
        match statement:
            case cst.BaseSmallStatement():
                self._check_small(frame, statement)
            case cst.If(test=test, body=body, orelse=orelse):
                self.check_expression(frame, test)
                if _may_be_tensor(evaluate(frame, test)):
                    raise Withheld(f"`{code_of(test)}` may ask a tensor for its truth")
                for block in (body, orelse):
                    branch = replace(frame, variables=dict(frame.variables))
                    if isinstance(block, cst.If):
                        self._check_statement(branch, block)
                    elif block is not None:
                        self._check_block(
                            branch, block.body if isinstance(block, cst.Else) else block
                        )
            case _:
                keyword = type(statement).__name__.lower()
                raise Withheld(f"there is more than straight code (`{keyword}`)")

    def _check_small(self, frame: Frame, small: cst.BaseSmallStatement) -> None:
        match small:
            case cst.Expr(value=cst.SimpleString()):
                return
            case cst.Assign(targets=targets, value=value):
                for target in targets:
                    _check_target(target.target)
                self.check_expression(frame, value)
            case cst.AnnAssign(target=cst.Name(), value=cst.BaseExpression() as value):
                self.check_expression(frame, value)
            case cst.Return(value=value):
                if value is not None:
                    self.check_expression(frame, value)
            case cst.Raise():
                return  # behind a test of what is known when the code is traced
            case _ if not isinstance(small, OUT_OF_THE_WAY):
                raise Withheld(f"`{code_of(small)}` may have an effect")

    def check_expression(self, frame: Frame, node: cst.CSTNode) -> None:
        if isinstance(node, LEFT_OUT):
            values = [evaluate(frame, each) for each in _operands(node)]
            if not values or any(map(_may_be_tensor, values)):
                raise Withheld(f"`{code_of(node)}` may do more than compute")
        match node:
            case cst.Call():
                self._check_call(frame, node)
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                if _may_be_tensor(evaluate(frame, inner)):
                    raise Withheld(f"`{code_of(node)}` asks a tensor for its truth")
            case cst.Index(value=value):
                index = evaluate(frame, value)
                if isinstance(index, Tensor) and (index.is_bool or index.dtype is None):
                    raise Withheld(f"the result of `[{code_of(node)}]` may have any size")
        for child in node.children:
            self.check_expression(frame, child)

    def _check_call(self, frame: Frame, call: cst.Call) -> None:
        machine = frame.machine
        match evaluate(frame, call.func):
            case External(name) if name in PURE_BUILTINS or name.startswith("math."):
                return
            case External(name):
                _check_operator(call, name, machine.torch.function(name))
            case ExternalMethod(receiver=Tensor() | Optional(value=Tensor()), name=name):
                _check_operator(call, name, machine.torch.method(name))
            case ExternalInstance(name) if name in PURE_LAYERS:
                return
            case Function(info):
                _Purity(self._depth + 1).check_function(frame, info, call)
            case _:
                raise Withheld(f"nothing is known of `{code_of(call.func)}`")


def _check_operator(call: cst.Call, name: str, operator: Operator | None) -> None:
    short = name.rpartition(".")[2]
    if operator is None:
        raise Withheld(f"nothing is known of `{code_of(call.func)}`")
    changes = operator.mutates or (short.endswith("_") and not short.endswith("__"))
    given = {each.keyword.value for each in call.args if each.keyword is not None}
    if changes or {"out", "inplace"} & given:
        raise Withheld(f"`{code_of(call)}` writes into a tensor")
    if operator.random or RANDOM_METHODS.match(short):
        raise Withheld(f"`{code_of(call)}` draws random numbers")
    if operator.reads or operator.breaks or operator.returns is Returns.SCALAR:
        raise Withheld(f"`{code_of(call)}` reads a tensor into Python")
    if operator.dynamic_shape:
        raise Withheld(f"the shape of `{code_of(call)}` depends on data")


def _check_target(target: cst.CSTNode) -> None:
    match target:
        case cst.Name():
            return
        case cst.Tuple() | cst.List():
            for element in target.elements:
                _check_target(element.value)
        case _:
            raise Withheld(f"`{code_of(target)}` is written into, which others may hold")


def _operands(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """What of an expression decides whether it is harmless; nothing: it never is."""
    match node:
        case cst.BooleanOperation(left=left, right=right):
            return [left, right]
        case cst.IfExp(test=test):
            return [test]
        case cst.FormattedString(parts=parts):
            return [each.expression for each in parts if isinstance(each, EXPRESSION)]
    return []


EXPRESSION = cst.FormattedStringExpression


def _may_be_tensor(value: Value) -> bool:
    if isinstance(value, Optional):
        value = value.value
    return not isinstance(value, Static | External)
