"""What may fail in an expression of Python numbers."""

from collections.abc import Iterator

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.observations import Observation
from jitlint.analysis.values import ExternalMethod, Tensor, is_constant

NEVER_FAIL = frozenset(
    {"dim", "element_size", "is_complex", "is_floating_point", "nelement", "numel", "ndimension"}
)
"""Methods of tensors that answer for every tensor; `size` does without an argument."""


def failing(
    test: Observation, node: cst.BaseExpression, at: cst.CSTNode
) -> Iterator[cst.BaseExpression]:
    """The operations that raise for some values."""
    return _Finder(test, at).hazards(node)


class _Finder:
    def __init__(self, test: Observation, at: cst.CSTNode) -> None:
        self._test = test
        self._at = at

    def hazards(self, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        if not self._is_safe(node):
            yield node
        for child in node.children:
            if isinstance(child, cst.BaseExpression):
                yield from self.hazards(child)
            elif isinstance(child, cst.ComparisonTarget):
                yield from self.hazards(child.comparator)
            elif isinstance(child, cst.Arg):
                yield from self.hazards(child.value)

    def _is_safe(self, node: cst.BaseExpression) -> bool:
        match node:
            case cst.BinaryOperation(operator=cst.Add() | cst.Subtract() | cst.Multiply()):
                return True
            case cst.BinaryOperation(
                operator=cst.Divide() | cst.FloorDivide() | cst.Modulo(),
                right=cst.Integer() | cst.Float() as divisor,
            ):
                return bool(divisor.evaluated_value != 0)
            case cst.BinaryOperation(left=cst.Integer(), operator=cst.Power(), right=cst.Integer()):
                return True
            case cst.Name(value=name):
                return scope.is_surely_bound(name, self._at, self._test.module.tree)
            case cst.Call(func=cst.Attribute() as function, args=arguments):
                return self._never_fails(function, len(arguments))
            case cst.Call(args=[cst.Arg(value=cst.SimpleString())]):
                return is_constant(self._test.value_of(node))  # `float("nan")`
            case cst.BinaryOperation() | cst.Call() | cst.Subscript():
                return False
        return True

    def _never_fails(self, function: cst.Attribute, arguments: int) -> bool:
        value = self._test.value_of(function)
        if not isinstance(value, ExternalMethod) or not isinstance(value.receiver, Tensor):
            return False
        return not arguments and value.name in NEVER_FAIL | {"size"}
