"""Values of expressions where they stand, which may be behind the operation that was seen."""

import libcst as cst

from jitlint.analysis import operators, scope
from jitlint.analysis.values import (
    External,
    ExternalMethod,
    Static,
    Tensor,
    Unknown,
    Value,
)

from ..branch_fixes.profile import Describer, Number, Profile
from ..branch_fixes.withheld import Withheld
from .promotion import Kept

MAX_DEPTH = 8


def described(describer: Describer, node: cst.BaseExpression) -> Profile | Number | None:
    """What is known of an expression in its statement; None if it is not pure, or unclear."""
    try:
        return describer.describe(node, scope.statement_of(node, describer.module))
    except Withheld:
        return None


def value_at(describer: Describer, node: cst.BaseExpression, depth: int = 0) -> Value:
    """Variables have the values that they are given before the statement of `node`."""
    value = describer.test.value_of(node)
    if depth < MAX_DEPTH:
        match node:
            case cst.Name(value=name):
                at = scope.statement_of(node, describer.module)
                definition = scope.definition_of(name, at, describer.module)
                if definition.value is not None:
                    value = value_at(describer, definition.value, depth + 1)
            case cst.BinaryOperation(left=left, right=right) if isinstance(value, Unknown):
                parts = [value_at(describer, each, depth + 1) for each in (left, right)]
                value = operators.binary(type(node.operator).__name__, *parts)
    if isinstance(value, Static | Tensor):
        return value
    found = described(describer, node)
    if isinstance(found, Profile):
        return Tensor(rank=None if found.shape else 0)
    return found.value if isinstance(found, Number) else value


def operator_at(describer: Describer, call: cst.Call) -> tuple[str, bool] | None:
    """The name of the operator of torch that is called, and whether as a method."""
    match describer.test.value_of(call.func):
        case External(name=name) if name.startswith("torch."):
            return name.rpartition(".")[2], False
        case ExternalMethod(receiver=Tensor(), name=name):
            return name, True
    match call.func:
        case cst.Attribute(value=receiver, attr=cst.Name(value=name)):
            if isinstance(value_at(describer, receiver), Tensor):
                return name, True
    return None


def kept(describer: Describer, node: cst.BaseExpression) -> Kept:
    """A tensor, as far as it is known where it stands."""
    code = " ".join(describer.code(node).split())
    found = described(describer, node)
    value = value_at(describer, node)
    rank = value.rank if isinstance(value, Tensor) else None
    if not isinstance(found, Profile):
        return Kept(code, rank=rank)
    return Kept(code, found.dtype, rank if found.shape else 0, found)


def roots(describer: Describer, node: cst.CSTNode, depth: int = 0) -> frozenset[str]:
    """The tensors without a definition here from which others are computed: those that share
    one are on one device."""
    found: set[str] = set()
    for name in scope.reads(node):
        at = scope.statement_of(name, describer.module)
        definition = scope.definition_of(name.value, at, describer.module)
        if definition.value is not None and depth < MAX_DEPTH:
            found |= roots(describer, definition.value, depth + 1)
        elif isinstance(describer.test.value_of(name), Tensor):
            found.add(f"{name.value}@{id(definition.place)}")
    return frozenset(found)
