"""How a value is used: whether anything could tell a tensor from a copy of it."""

import enum
import itertools
from collections.abc import Iterator, Mapping, Set
from functools import lru_cache

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.observations import Observation
from jitlint.analysis.tables import Operator, Returns
from jitlint.analysis.tree import ancestors_of, nodes_in, parents_of
from jitlint.analysis.values import External, ExternalInstance, ExternalMethod, Tensor

from .operators import PURE_LAYERS
from .profile import Describer


class Use(enum.Enum):
    """FUNCTIONAL: only the values matter. LAID_OUT: and the strides. RETURNED: the caller gets
    the object. KEPT: it is changed, stored, told from others, or given to unknown code."""

    FUNCTIONAL = 0
    LAID_OUT = 1
    RETURNED = 2
    KEPT = 3


VALUES = frozenset({Use.FUNCTIONAL, Use.LAID_OUT})
"""Uses that cannot tell a tensor from a copy of the same strides."""

SHOWS_STRIDES = frozenset({"is_contiguous", "stride", "storage_offset", "view", "view_as"})
SHOWS_IDENTITY = frozenset(
    {"data_ptr", "is_leaf", "is_set_to", "output_nr", "retains_grad", "storage", "untyped_storage"}
)


def uses_of_name(describer: Describer, name: str, *without: cst.CSTNode) -> set[Use]:
    """The uses of a variable in its function, those inside of `without` aside."""
    function = scope.function_of(without[0], describer.module) or describer.module
    inside = {id(node) for each in without for node in scope.reads(each)}
    return {
        use_of(describer, node, *without)
        for node in scope.reads(function)
        if node.value == name and id(node) not in inside
    }


def uses_behind(describer: Describer, name: str, node: cst.CSTNode) -> set[Use]:
    """The uses of the value that a statement gives to a variable: those before it are of
    another value, unless the code comes round again."""
    function = scope.function_of(node, describer.module) or describer.module
    around = ancestors_of(node, describer.module)
    within = itertools.takewhile(lambda each: each is not function, around)
    if any(isinstance(each, cst.For | cst.While) for each in within):
        return uses_of_name(describer, name, node)
    return _uses_from(describer, name, node)


def uses_between(describer: Describer, name: str, before: cst.CSTNode) -> set[Use]:
    """The uses of the value that a variable has at `before`, until there."""
    definition = scope.definition_of(name, before, describer.module)
    if definition.value is None:
        return {Use.KEPT}
    return _uses_from(describer, name, definition.place, before)


def _uses_from(
    describer: Describer, name: str, start: cst.CSTNode, end: cst.CSTNode | None = None
) -> set[Use]:
    """The uses of a variable behind one statement and before another, and in code that runs
    at any time."""
    function = scope.function_of(start, describer.module) or describer.module
    known = [start] if end is None else [start, end]
    order, later = _order_of(function)
    first, last = order[start], len(order) if end is None else order[end]
    inside = {read for each in known for read in scope.reads(each)}
    return {
        use_of(describer, read, *known)
        for read in scope.reads(function)
        if read.value == name
        and read not in inside
        and (first < order[read] < last or read in later)
    }


@lru_cache(maxsize=16)
def _order_of(function: cst.CSTNode) -> tuple[Mapping[cst.CSTNode, int], Set[cst.Name]]:
    """The nodes of a function in the order of its text, and the reads that run at any time."""
    order = {each: number for number, each in enumerate(nodes_in(function))}
    nested = [each for each in order if isinstance(each, RUN_LATER) and each is not function]
    return order, {read for each in nested for read in scope.reads(each)}


RUN_LATER = (cst.FunctionDef, cst.Lambda, cst.GeneratorExp)


def use_of(describer: Describer, node: cst.BaseExpression, *without: cst.CSTNode) -> Use:
    """The use of the value of one expression; `without` are statements that are known."""
    parents = parents_of(describer.module)
    parent = parents[node]
    match parent:
        case cst.UnaryOperation(operator=cst.Plus()):
            return use_of(describer, parent, *without)
        case cst.BinaryOperation() | cst.UnaryOperation():
            return Use.FUNCTIONAL
        case cst.ComparisonTarget():
            return _use_of_operand(
                parent.operator, cst.ensure_type(parents[parent], cst.Comparison).left
            )
        case cst.Comparison():
            return max(
                (_use_of_operand(each.operator, each.comparator) for each in parent.comparisons),
                key=lambda use: use.value,
            )
        case cst.Element() if (taker := _call_with(describer, parent)) is not None:
            return _use_of_argument(describer, taker, *without)
        case cst.Return() | cst.Element() | cst.Tuple():
            return Use.RETURNED if _is_returned(describer, parent, *without) else Use.KEPT
        case cst.Attribute():
            return _use_of_attribute(describer, parent, *without)
        case cst.Arg():
            around = parents[parent]
            if isinstance(around, cst.Call):
                return _use_of_argument(describer, around, *without)
        case cst.Subscript() if not _is_stored(describer, parent):
            return use_of(describer, parent, *without)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            is_itself = name == _name(node)
            found = {Use.KEPT} if is_itself else uses_of_name(describer, name, parent, *without)
            return max(found, key=lambda use: use.value, default=Use.FUNCTIONAL)
    return Use.KEPT


def _use_of_operand(operator: cst.BaseCompOp, other: cst.BaseExpression) -> Use:
    """`x is y` and `x in [y]` compare objects."""
    if not isinstance(operator, cst.Is | cst.IsNot | cst.In | cst.NotIn):
        return Use.FUNCTIONAL
    return Use.FUNCTIONAL if _name(other) == "None" else Use.KEPT


def _name(node: cst.BaseExpression) -> str:
    return node.value if isinstance(node, cst.Name) else ""


def _is_returned(describer: Describer, node: cst.CSTNode, *without: cst.CSTNode) -> bool:
    """Whether a tuple is returned, if need be as part of a longer one."""
    parents = parents_of(describer.module)
    while isinstance(node, cst.Element | cst.Tuple) or _is_longer_tuple(node):
        node = parents[node]
    match node:
        case cst.Return():
            return True
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            return node in without or _are_returned(describer, name, node, *without)
        case cst.AugAssign(target=cst.Name(value=name), operator=cst.AddAssign()):
            return node in without or _are_returned(describer, name, node, *without)
    return False


def _are_returned(describer: Describer, name: str, *without: cst.CSTNode) -> bool:
    """Whether all reads of a tuple make one that is returned."""
    function = scope.function_of(without[0], describer.module) or describer.module
    inside = {id(node) for each in without for node in scope.reads(each)}
    parents = parents_of(describer.module)
    return all(
        _is_returned(describer, parents[node], *without)
        for node in scope.reads(function)
        if node.value == name and id(node) not in inside
    )


def _is_longer_tuple(node: cst.CSTNode) -> bool:
    """`outputs + (x,)`"""
    return (
        isinstance(node, cst.BinaryOperation)
        and isinstance(node.operator, cst.Add)
        and (isinstance(node.left, cst.Tuple) or isinstance(node.right, cst.Tuple))
    )


def _call_with(describer: Describer, element: cst.Element) -> cst.Call | None:
    """The call that is given the list or tuple: `torch.cat([x, y])`."""
    parents = parents_of(describer.module)
    argument = parents[parents[element]]
    call = parents[argument] if isinstance(argument, cst.Arg) else None
    return call if isinstance(call, cst.Call) else None


def _is_stored(describer: Describer, node: cst.Subscript) -> bool:
    parent = parents_of(describer.module)[node]
    return isinstance(parent, cst.AssignTarget | cst.AugAssign | cst.Del)


def _use_of_attribute(describer: Describer, node: cst.Attribute, *without: cst.CSTNode) -> Use:
    """A method, or an attribute, of the value: it is a tensor, whatever else is known."""
    parent = parents_of(describer.module)[node]
    if node.attr.value in SHOWS_IDENTITY:
        return Use.KEPT
    if isinstance(parent, cst.Call) and parent.func is node:
        return _of_result(describer, parent, describer.table.method(node.attr.value), *without)
    kind = describer.table.attribute(node.attr.value)
    return Use.FUNCTIONAL if kind in (Returns.SIZE, Returns.STATIC) else Use.KEPT


def _use_of_argument(describer: Describer, call: cst.Call, *without: cst.CSTNode) -> Use:
    match describer.test.value_of(call.func):
        case ExternalMethod(receiver=Tensor(), name=name):
            return _of_result(describer, call, describer.table.method(name), *without)
        case External(name=name):
            return _of_result(describer, call, describer.table.function(name), *without)
        case ExternalInstance(name=name) if name in PURE_LAYERS:
            return Use.FUNCTIONAL
    return Use.KEPT


def _of_result(
    describer: Describer, call: cst.Call, operator: Operator | None, *without: cst.CSTNode
) -> Use:
    """A view is used as its base is; everything else is a value of its own."""
    if operator is not None and operator.name in SHOWS_STRIDES:
        found = use_of(describer, call, *without) if operator.view else Use.FUNCTIONAL
        return max(found, Use.LAID_OUT, key=lambda use: use.value)
    if operator is None or operator.mutates or operator.name.endswith("_"):
        return Use.KEPT
    return use_of(describer, call, *without) if operator.view else Use.FUNCTIONAL


def arithmetic_partners(
    test: Observation, describer: Describer, name: str, without: cst.CSTNode
) -> Iterator[cst.BaseExpression | None]:
    """For each use of a variable the tensor that it is combined with by an operator, or None."""
    function = scope.function_of(without, describer.module) or describer.module
    inside = {id(node) for node in scope.reads(without)}
    for node in scope.reads(function):
        if node.value == name and id(node) not in inside:
            yield arithmetic_partner(test, describer, node)


def arithmetic_partner(
    test: Observation, describer: Describer, node: cst.BaseExpression
) -> cst.BaseExpression | None:
    parent = parents_of(describer.module)[node]
    if not isinstance(parent, cst.BinaryOperation):
        return None
    if not isinstance(parent.operator, cst.Add | cst.Subtract | cst.Multiply | cst.Divide):
        return None
    other = parent.right if parent.left is node else parent.left
    value = test.value_of(other)
    return other if isinstance(value, Tensor) and not value.maybe else None
