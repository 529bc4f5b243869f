"""Truth tests as tensors: what Python asked of a value, asked inside of the graph."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import libcst as cst
from libcst.helpers import parse_template_expression

from jitlint.analysis import scope
from jitlint.analysis.tree import nodes_in, parents_of
from jitlint.analysis.values import (
    External,
    ExternalMethod,
    Framework,
    Optional,
    Source,
    Static,
    Tensor,
)

from ..read_fixes.comparisons import without_reads
from .arms import bare, parenthesized
from .hazards import Hazard, conditions_for
from .profile import Describer, Number, Profile
from .withheld import Withheld

ORDERINGS = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)
COMPARISONS = (*ORDERINGS, cst.Equal, cst.NotEqual)
ONE_ELEMENT_BY_SIZE = frozenset({"torch.rand", "torch.randn", "torch.zeros", "torch.ones"})


@dataclass(frozen=True, slots=True, eq=False)
class Predicate:
    """`node` is a bool tensor of rank 0 that says what the test said.

    `bindings` are local variables to assign before it; `tests` are the expressions that
    Python asks for their truth today; `conditions` are what it relies on, in words.
    """

    node: cst.BaseExpression
    bindings: tuple[tuple[str, cst.BaseExpression], ...] = ()
    tests: tuple[cst.CSTNode, ...] = ()
    conditions: tuple[str, ...] = ()


def is_tensor_test(describer: Describer, node: cst.BaseExpression) -> bool:
    """Whether the truth of `node` depends on data in a tensor."""
    match node:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return is_tensor_test(describer, inner)
        case cst.BooleanOperation(left=left, right=right):
            return is_tensor_test(describer, left) or is_tensor_test(describer, right)
    value = describer.test.value_of(node)
    if isinstance(value, Optional):
        value = value.value
    if isinstance(value, Static):
        return value.source is Source.DATA
    return isinstance(value, Tensor)


def predicate(
    describer: Describer,
    node: cst.BaseExpression,
    function: cst.CSTNode,
    arms: frozenset[str],
    may_bind: bool = True,
) -> Predicate:
    """The test `node` as a tensor; raises Withheld where that is not known to be the same.

    `arms` are the tensors whose shapes the arms have. `may_bind`: statements can be put
    before the construct.
    """
    builder = _Builder(describer, function, arms, may_bind)
    built = builder.build(node)
    return Predicate(
        bare(built), tuple(builder.bindings), tuple(builder.tests), tuple(builder.conditions)
    )


@dataclass(eq=False)
class _Builder:
    describer: Describer
    function: cst.CSTNode
    arms: frozenset[str]
    may_bind: bool
    bindings: list[tuple[str, cst.BaseExpression]] = field(default_factory=list)
    tests: list[cst.CSTNode] = field(default_factory=list)
    conditions: dict[str, None] = field(default_factory=dict)

    def build(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """Boolean structure; each leaf is one truth test."""
        match node:
            case cst.BooleanOperation():
                return self._boolean(node)
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                return _negated(self.build(inner))
        self.tests.append(node)
        return self._leaf(node)

    def _boolean(self, node: cst.BooleanOperation) -> cst.BaseExpression:
        """`a and b` evaluates `b` too: it must not have effects, and fail no sooner."""
        if not all(is_tensor_test(self.describer, each) for each in (node.left, node.right)):
            raise Withheld("the test mixes tensors with Python values: test those on their own")
        left, right = (self.build(each) for each in (node.left, node.right))
        skipped = self.hazards(node.right) - self.hazards(node.left)
        self.conditions.update(dict.fromkeys(conditions_for(skipped)))
        operator = cst.BitAnd() if isinstance(node.operator, cst.And) else cst.BitOr()
        goes_on = isinstance(left, cst.BinaryOperation) and type(left.operator) is type(operator)
        return cst.BinaryOperation(
            bare(left) if goes_on else _operand(left), operator, _operand(right)
        )

    def hazards(self, node: cst.BaseExpression) -> frozenset[Hazard]:
        match node:
            case cst.BooleanOperation(left=left, right=right):
                return self.hazards(left) | self.hazards(right)
            case cst.UnaryOperation(operator=cst.Not(), expression=inner):
                return self.hazards(inner)
            case cst.Comparison(comparisons=[_, _, *_]):
                return self._hazards_of([node.left, *(t.comparator for t in node.comparisons)])
            case cst.Call() if self._special(node) is not None:
                return self._hazards_of(argument.value for argument in node.args)
        return self._hazards_of([node])

    def _hazards_of(self, nodes: Iterable[cst.BaseExpression]) -> frozenset[Hazard]:
        described = [self.describer.describe(node) for node in nodes]
        return frozenset().union(*(each.hazards for each in described))

    # -- leaves ----------------------------------------------------------------------------

    def _leaf(self, node: cst.BaseExpression) -> cst.BaseExpression:
        if isinstance(node, cst.NamedExpr):
            raise Withheld("the test assigns a variable: assign it before the test")
        node = without_reads(node, self.describer)
        if isinstance(node, cst.Comparison):
            return self._comparison(node)
        if isinstance(node, cst.Call):
            special = self._special(node)
            if special is not None:
                return special(node)
        return self._truth_of(node)

    def _truth_of(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """`if t`: whatever is not zero is true, NaN included."""
        value = self.describer.test.value_of(node)
        if not isinstance(value, Tensor):
            code = self.describer.code(node)
            raise Withheld(f"`{code}` was read out of a tensor: test the tensor itself")
        tensor = self._one_element(node)
        if value.is_bool:
            return tensor
        return parse_template_expression("{t} != 0", t=parenthesized(tensor))

    def _comparison(self, node: cst.Comparison) -> cst.BaseExpression:
        if not all(isinstance(target.operator, COMPARISONS) for target in node.comparisons):
            raise Withheld("membership in a container is not a tensor operation")
        for target in node.comparisons:
            if isinstance(target.operator, cst.Equal | cst.NotEqual):
                self._require_number(target.comparator)
                self._require_number(node.left)
        if len(node.comparisons) == 1:
            if not isinstance(self.describer.test.value_of(node), Tensor):
                code = self.describer.code(node)
                raise Withheld(f"`{code}` tests a number that was read out of a tensor")
            return self._one_element(node)
        return self._chain(node)

    def _require_number(self, node: cst.BaseExpression) -> None:
        """`x == None` and `x == Color.RED` are False, and no tensors."""
        value = self.describer.test.value_of(node)
        if not isinstance(value, Static) or isinstance(value.const, int | float):
            return
        if not isinstance(node, cst.BinaryOperation):
            self.conditions[f"`{self.describer.code(node)}` is a number"] = None

    def _chain(self, node: cst.Comparison) -> cst.BaseExpression:
        """`a < b < c` is `(a < b) & (b < c)`, with `b` evaluated once."""
        operands = [node.left, *(target.comparator for target in node.comparisons)]
        middles = {id(each) for each in operands[1:-1]}
        always, skipped = operands[:2], operands[2:]
        hazards = self._hazards_of(skipped) - self._hazards_of(always)
        self.conditions.update(dict.fromkeys(conditions_for(hazards)))
        operands = [self._reusable(e) if id(e) in middles else e for e in operands]
        parts: list[cst.BaseExpression] = []
        for index, target in enumerate(node.comparisons):
            left, right = operands[index], operands[index + 1]
            pair = cst.Comparison(left, [target.with_changes(comparator=right)])
            self._require_one_element(node, index)
            parts.append(parenthesized(pair))
        result = parts[0]
        for part in parts[1:]:
            result = parse_template_expression("{a} & {b}", a=result, b=part)
        return result

    def _require_one_element(self, node: cst.Comparison, index: int) -> None:
        operands = [node.left, *(target.comparator for target in node.comparisons)]
        for each in operands[index : index + 2]:
            if not self._has_rank_0(each):
                self._unproven(each)

    def _reusable(self, node: cst.BaseExpression) -> cst.BaseExpression:
        if isinstance(node, cst.Name | cst.Integer | cst.Float):
            return node
        if not self.may_bind:
            raise Withheld("the middle of the chained comparison is costly: assign it before")
        name = scope.fresh_name("value", self.function)
        self.bindings.append((name, bare(node)))
        return cst.Name(name)

    # -- functions that answer with a Python bool --------------------------------------------

    def _special(self, node: cst.Call) -> Callable[[cst.Call], cst.BaseExpression] | None:
        match self.describer.test.value_of(node.func):
            case External(name="builtins.bool") if len(node.args) == 1:
                return lambda call: self._leaf(call.args[0].value)
            case External(name="builtins.any" | "builtins.all") if len(node.args) == 1:
                return self._any_or_all
            case External(name="torch.is_nonzero"):
                return lambda call: self._nonzero(call.args[0].value)
            case ExternalMethod(receiver=Tensor(), name="is_nonzero"):
                return lambda call: self._nonzero(cst.ensure_type(call.func, cst.Attribute).value)
            case External(name="torch.allclose"):
                return self._allclose
            case ExternalMethod(receiver=Tensor(), name="allclose"):
                return self._allclose
            case External(name="torch.equal"):
                return lambda call: self._equal(call.args[0].value, call.args[1].value)
            case ExternalMethod(receiver=Tensor(), name="equal"):
                return lambda call: self._equal(
                    cst.ensure_type(call.func, cst.Attribute).value, call.args[0].value
                )
        return None

    def _any_or_all(self, node: cst.Call) -> cst.BaseExpression:
        """`any(t)` over the elements of a vector, where each is a truth test of its own."""
        name = cst.ensure_type(node.func, cst.Name).value
        elements = node.args[0].value
        value = self.describer.test.value_of(elements)
        if not isinstance(value, Tensor) or value.maybe:
            raise Withheld(f"`{name}()` runs over more than the elements of one tensor")
        if value.rank != 1:
            code = self.describer.code(elements)
            self.conditions[f"`{code}` has one dimension"] = None
        if not value.is_bool:
            elements = parse_template_expression("{t} != 0", t=parenthesized(elements))
        return parse_template_expression(f"{{t}}.{name}()", t=parenthesized(elements))

    def _nonzero(self, node: cst.BaseExpression) -> cst.BaseExpression:
        tensor = parenthesized(self._one_element(node))
        return parse_template_expression("{t} != 0", t=tensor)

    def _allclose(self, node: cst.Call) -> cst.BaseExpression:
        if isinstance(node.func, cst.Attribute):
            function: cst.BaseExpression = node.func.with_changes(attr=cst.Name("isclose"))
        else:
            function = scope.Spelling(self.describer.test.module, self.describer.test.node).of(
                "isclose"
            )
        call = node.with_changes(func=function)
        return parse_template_expression("{call}.all()", call=call)

    def _equal(self, left: cst.BaseExpression, right: cst.BaseExpression) -> cst.BaseExpression:
        shapes = [self.describer.tensor(each).shape for each in (left, right)]
        if shapes[0] != shapes[1]:
            codes = [self.describer.code(each) for each in (left, right)]
            raise Withheld(
                f"`torch.equal` is false for other shapes, and those of `{codes[0]}` and "
                f"`{codes[1]}` are not known to be the same"
            )
        return parse_template_expression(
            "({a} == {b}).all()", a=parenthesized(left), b=parenthesized(right)
        )

    # -- one element -------------------------------------------------------------------------

    def _one_element(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """`node` if it has rank 0, else reshaped to that, which fails where `bool` fails."""
        if self._has_rank_0(node):
            return node
        if not self.has_one_element(node):
            self._unproven(node)
        return parse_template_expression("{t}.reshape(())", t=parenthesized(node))

    def _has_rank_0(self, node: cst.BaseExpression) -> bool:
        value = self.describer.test.value_of(node)
        if isinstance(value, Static):
            return True
        if isinstance(value, Tensor) and value.rank == 0 and not value.maybe:
            return value.framework is Framework.TORCH
        match node:
            case cst.Comparison():
                operands = [node.left, *(target.comparator for target in node.comparisons)]
                return all(self._has_rank_0(each) for each in operands)
            case cst.Call(func=cst.Attribute(attr=cst.Name("double"), value=inner), args=[]):
                return self._has_rank_0(inner)
        try:
            described = self.describer.describe(node)
        except Withheld:
            return False
        return isinstance(described, Number) or not described.shape

    def has_one_element(self, node: cst.BaseExpression) -> bool:
        """`torch.rand(1)`, and what is computed from it and numbers."""
        match node:
            case cst.Comparison():
                operands = [node.left, *(target.comparator for target in node.comparisons)]
                return all(self.has_one_element(each) for each in operands)
            case cst.BinaryOperation(left=left, right=right):
                return self.has_one_element(left) and self.has_one_element(right)
            case cst.Call():
                function = self.describer.test.value_of(node.func)
                if isinstance(function, External) and function.name in ONE_ELEMENT_BY_SIZE:
                    sizes = [each.value for each in node.args if each.keyword is None]
                    return len(sizes) == 1 and _is_one(sizes[0])
        return self._has_rank_0(node)

    def _unproven(self, node: cst.BaseExpression) -> None:
        """A test with more elements raises today. Where it has those of an arm it is a mask."""
        code = self.describer.code(node)
        try:
            described = self.describer.describe(node)
        except Withheld:
            described = None
        shape = described.shape if isinstance(described, Profile) else frozenset()
        is_mask = any(map(_may_be_mask, shape & self.arms)) or described is None
        if is_mask and not self._is_asked_before(node):
            raise Withheld(
                f"`{code}` is not known to have one element: reduce it with `.any()` or `.all()`"
            )
        self.conditions[f"`{code}` has one element"] = None

    def _is_asked_before(self, node: cst.BaseExpression) -> bool:
        """Whether an earlier test of the same chain asks the same: more elements raise there."""
        parents = parents_of(self.describer.module)
        found: list[cst.BaseExpression] = []
        inner: cst.CSTNode = node
        while (outer := parents.get(inner)) is not None:
            if isinstance(inner, cst.If) and isinstance(outer, cst.If) and outer.orelse is inner:
                found.append(outer.test)
            elif not isinstance(outer, cst.BaseExpression | cst.If):
                break
            inner = outer
        return any(node.deep_equals(each) for test in found for each in nodes_in(test))


def _may_be_mask(leaf: str) -> bool:
    """An item, such as `x[-1]`, is asked for as one value, even where it is used beside."""
    return not re.match(r"\[-?\d+\] of ", leaf)


OPPOSITES: Mapping[type[cst.BaseCompOp], cst.BaseCompOp] = {
    cst.Equal: cst.NotEqual(),
    cst.NotEqual: cst.Equal(),
}
"""Of NaN too, of which `<` and `>=` are both false."""


def _negated(test: cst.BaseExpression) -> cst.BaseExpression:
    match test:
        case cst.Comparison(comparisons=[target]) if type(target.operator) in OPPOSITES:
            opposite = target.with_changes(operator=OPPOSITES[type(target.operator)])
            return test.with_changes(comparisons=[opposite])
    return parse_template_expression("~{test}", test=parenthesized(test))


def _operand(node: cst.BaseExpression) -> cst.BaseExpression:
    """`~` binds closer than `&` and `|`."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.BitInvert):
        return node
    return parenthesized(node)


def _is_one(node: cst.BaseExpression) -> bool:
    match node:
        case cst.Integer(value="1"):
            return True
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return all(_is_one(each.value) for each in elements)
    return False


def conjunction(
    describer: Describer, node: cst.BaseExpression
) -> tuple[cst.BaseExpression | None, cst.BaseExpression]:
    """`flag and t`: the static part that comes first, and the rest."""
    if not isinstance(node, cst.BooleanOperation) or not isinstance(node.operator, cst.And):
        return None, node
    if is_tensor_test(describer, node.left):
        return None, node
    guard, rest = node.left, node.right
    inner, last = conjunction(describer, rest)
    if inner is None:
        return guard, rest
    return parse_template_expression("{a} and {b}", a=guard, b=inner), last


def hazards_in(describer: Describer, node: cst.BaseExpression) -> frozenset[Hazard]:
    """What in a test may fail for some shapes; Withheld if the test is not pure."""
    return _Builder(describer, node, frozenset(), True).hazards(node)


def has_one_element(describer: Describer, node: cst.BaseExpression) -> bool:
    """Whether a tensor is known to have one, such as `torch.rand([])` and `torch.rand(1)`."""
    return _Builder(describer, node, frozenset(), True).has_one_element(node)
