"""Expressions that compute each element of a selection `x[mask]` from its likes alone.

The same expression of the whole tensors has the same elements where the mask is true. Where
it is false its value does not matter, but its derivative does: zero times infinity is NaN.
There the operands get a constant, for which the derivative of every step is finite.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.values import (
    ExternalInstance,
    Function,
    Instance,
    Static,
    Tensor,
    Unknown,
    Value,
)

from ..branch_fixes.operators import FINITE_GRADIENT, RANDOM_METHODS
from ..branch_fixes.profile import Describer, Profile
from ..branch_fixes.withheld import Withheld
from ..read_fixes.places import described, operator_at, value_at

MAX_DEPTH = 4
SMALL = 1e-3
"""Further than this from where a function has no finite derivative it counts as finite."""

Values = Callable[..., float]


def _identity(value: float, *rest: float) -> float:
    return value


POSITIVE: Mapping[str, Values] = {
    "sqrt": math.sqrt,
    "rsqrt": lambda value: 1 / math.sqrt(value),
    "log": math.log,
    "log2": math.log2,
    "log10": math.log10,
    "reciprocal": lambda value: 1 / value,
    "xlogy": lambda value, other: value * math.log(other),
    "log1p": math.log1p,
}
"""Functions with a finite derivative at positive numbers."""

EVERYWHERE: Mapping[str, Values] = {
    "exp": math.exp,
    "exp2": lambda value: 2.0**value,
    "expm1": math.expm1,
    "sin": math.sin,
    "cos": math.cos,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "arctan": math.atan,
    "atan": math.atan,
    "erf": math.erf,
    "erfc": math.erfc,
    "sigmoid": lambda value: 1 / (1 + math.exp(-value)),
    "square": lambda value: value * value,
    "gelu": math.tanh,
    "silu": math.tanh,
    "softplus": math.exp,
    "logsigmoid": math.tanh,
    "mish": math.tanh,
    "elu": math.atan,
    "selu": math.atan,
    "nan_to_num": _identity,
    "copysign": _identity,
}
"""Functions with a finite derivative at every finite number; the values of some are only of
the right sign."""

SUMS = frozenset({"sum", "nansum", "mean", "count_nonzero", "any", "all"})
"""Reductions of a selection that a masked tensor has as well."""
CASTS = frozenset(
    {"float", "double", "half", "bfloat16", "long", "int", "bool", "short", "type_as", "to"}
)
SAME_ON_A_LINE = frozenset({"squeeze", "flatten", "ravel", "contiguous", "reshape", "view"})
"""Methods that give a selection back, which has one dimension: without arguments, or to -1."""


@dataclass(frozen=True, slots=True)
class Element:
    """What stands in one place of an expression: of a selection, or a number for all.

    `value` is its value where the mask is false, if the operands are the guard there; None
    is some finite number. `edge`: it lies where a later step has no finite derivative.
    """

    selected: bool
    value: float | None = None


@dataclass(eq=False)
class Pointwise:
    """Evaluates expressions for one guard. `selections` are the places `x[mask]` themselves.

    `singular`: some step has not a finite derivative for every input, so that the guard is
    needed. `dropped` are calls that only reshape a selection. `found` are selections, and
    variables that hold some, whose other uses are to be seen to. `layers` are modules that
    rows of the tensor are given to.
    """

    describer: Describer
    selections: set[cst.CSTNode]
    is_selection: Callable[[cst.BaseExpression], bool]
    guard: float
    singular: bool = False
    dropped: list[cst.Call] = field(default_factory=list)
    found: list[cst.BaseExpression] = field(default_factory=list)
    layers: list[cst.Call] = field(default_factory=list)
    _depth: int = 0

    def element(
        self, node: cst.BaseExpression, given: Mapping[str, Element] | None = None
    ) -> Element:
        """Raises Withheld where an expression is more than that, or the guard will not do."""
        if given is None and self.is_selection(node):
            self.selections.add(node)
            return Element(True, self.guard)
        match node:
            case cst.Name(value=name):
                return self._name(node, name, given)
            case cst.BinaryOperation():
                operands = [self.element(each, given) for each in (node.left, node.right)]
                return self._binary(node, *operands)
            case cst.UnaryOperation(operator=cst.Minus()):
                inner = self.element(node.expression, given)
                return Element(inner.selected, None if inner.value is None else -inner.value)
            case cst.UnaryOperation(operator=cst.BitInvert() | cst.Plus()):
                return Element(self.element(node.expression, given).selected)
            case cst.Comparison(comparisons=[target]):
                operands = [self.element(each, given) for each in (node.left, target.comparator)]
                return Element(any(each.selected for each in operands))
            case cst.Call():
                return self._call(node, given)
        return self._constant(node)

    # -- leaves ----------------------------------------------------------------------------

    def _name(self, node: cst.Name, name: str, given: Mapping[str, Element] | None) -> Element:
        if given is not None:
            return given[name] if name in given else self._constant(node)
        at = scope.statement_of(node, self.describer.module)
        definition = scope.definition_of(name, at, self.describer.module)
        if definition.value is not None and self._selects(definition.value):
            self.found.append(definition.value)
            return self.element(definition.value)
        return self._constant(node)

    def _selects(self, node: cst.CSTNode) -> bool:
        """Whether a selection takes part, by a variable or as it is."""
        if isinstance(node, cst.BaseExpression) and self.is_selection(node):
            return True
        if isinstance(node, cst.Name):
            at = scope.statement_of(node, self.describer.module)
            definition = scope.definition_of(node.value, at, self.describer.module)
            node = definition.value if definition.value is not None else node
            if isinstance(node, cst.Name):
                return False
            return self._selects(node)
        return any(map(self._selects, node.children))

    def _selections_in(self, node: cst.CSTNode) -> list[cst.BaseExpression]:
        if isinstance(node, cst.BaseExpression) and self.is_selection(node):
            return [node]
        return [each for child in node.children for each in self._selections_in(child)]

    def _constant(self, node: cst.BaseExpression) -> Element:
        """A number, or a tensor of rank 0."""
        value = value_at(self.describer, node)
        if isinstance(value, Static):
            const = value.const
            return Element(False, float(const) if isinstance(const, int | float) else None)
        found = described(self.describer, node)
        if isinstance(found, Profile) and not found.shape:
            return Element(False)
        if isinstance(value, Tensor) and value.rank == 0:
            return Element(False)
        raise Withheld(
            f"`{self._code(node)}` takes part, and is neither a number nor selected by the mask"
        )

    # -- steps -----------------------------------------------------------------------------

    def _binary(self, node: cst.BinaryOperation, left: Element, right: Element) -> Element:
        selected = left.selected or right.selected
        both = None if left.value is None or right.value is None else (left.value, right.value)
        match node.operator:
            case cst.Add():
                return Element(selected, None if both is None else both[0] + both[1])
            case cst.Subtract():
                return Element(selected, None if both is None else both[0] - both[1])
            case cst.Multiply():
                self.singular |= left.selected and right.selected
                return Element(selected, None if both is None else both[0] * both[1])
            case cst.Divide():
                if right.selected:
                    self.singular = True
                    self._require(right.value is not None and abs(right.value) > SMALL, node)
                if both is None or abs(both[1]) <= SMALL:
                    return Element(selected)
                return Element(selected, both[0] / both[1])
            case cst.Power():
                return self._power(node, left, right)
            case cst.BitAnd() | cst.BitOr() | cst.BitXor():
                return Element(selected)
            case cst.FloorDivide() | cst.Modulo():
                self.singular |= right.selected
                self._require(not right.selected or right.value is not None, node)
                return Element(selected)
        raise Withheld(f"`{self._code(node)}` is not computed element by element")

    def _power(self, node: cst.BinaryOperation, left: Element, right: Element) -> Element:
        self.singular = True
        exponent = right.value
        if not right.selected and exponent is not None and exponent >= 1:
            is_whole = exponent == int(exponent)
            self._require(is_whole or (left.value is not None and left.value >= 0), node)
        else:
            self._require(left.value is not None and left.value > SMALL, node)
        if left.value is None or exponent is None or left.value < 0:
            return Element(left.selected or right.selected)
        return Element(left.selected or right.selected, _value(pow, left.value, exponent))

    def _call(self, node: cst.Call, given: Mapping[str, Element] | None) -> Element:
        if given is None and not self._selects(node):
            return self._constant(node)
        function = self.describer.test.value_of(node.func)
        if isinstance(function, Function):
            return self._project_function(node, function, given)
        if self._is_layer(node, function) and given is None:
            return self._rows(node)
        operator = operator_at(self.describer, node)
        if operator is None:
            return self._constant(node)
        name, is_method = operator
        if is_method:
            receiver = cst.ensure_type(node.func, cst.Attribute).value
            if name in SUMS and not node.args and given is None:
                self.found += self._selections_in(receiver)
                return Element(False)
            first = self.element(receiver, given)
            if first.selected and name in SAME_ON_A_LINE and given is None:
                self._require_line(node)
                self.dropped.append(node)
                return first
            if not first.selected and not any(self._selects(each) for each in node.args):
                return self._constant(node)
            operands = [first]
        else:
            operands = []
        if name in CASTS and operands:
            return operands[0]
        self._check(node, name, is_method)
        operands += [
            self.element(each.value, given) for each in node.args if not self._is_option(each)
        ]
        return self._operator(node, name, operands)

    def _is_layer(self, node: cst.Call, function: Value) -> bool:
        """A module, or what a container of modules holds."""
        if isinstance(function, Instance | ExternalInstance):
            return True
        return isinstance(function, Unknown) and isinstance(node.func, cst.Subscript)

    def _rows(self, node: cst.Call) -> Element:
        """A layer that is given nothing but a selection, taken to treat every row alone."""
        if len(node.args) != 1 or not self.element(node.args[0].value).selected:
            raise Withheld(f"`{self._code(node.func)}` is given more than a selection")
        self.layers.append(node)
        self.singular = True
        return Element(True)

    def _check(self, node: cst.Call, name: str, is_method: bool) -> None:
        table = self.describer.table
        row = table.method(name)
        if not is_method:
            value = self.describer.test.value_of(node.func)
            row = table.function(getattr(value, "name", "")) or row
        is_random = row is not None and (row.random or RANDOM_METHODS.search(name))
        if row is None or not row.elementwise or row.mutates or name.endswith("_") or is_random:
            raise Withheld(f"`{self._code(node.func)}` is not computed element by element")

    def _is_option(self, argument: cst.Arg) -> bool:
        value = self.describer.test.value_of(argument.value)
        if argument.keyword is not None and argument.keyword.value == "inplace":
            raise Withheld("an operation in place changes the selection")
        return argument.keyword is not None and isinstance(value, Static)

    def _operator(self, node: cst.Call, name: str, operands: list[Element]) -> Element:
        selected = any(each.selected for each in operands)
        row = self.describer.table.method(name)
        if not selected or (row is not None and row.is_bool):
            return Element(selected)
        if name in FINITE_GRADIENT:
            return Element(selected, operands[0].value if name in ("clone", "contiguous") else None)
        self.singular = True
        numbers = [each.value for each in operands]
        known = [each for each in numbers if each is not None]
        if name in POSITIVE:
            self._require(
                len(known) == len(numbers) and all(value > SMALL for value in known), node
            )
            return Element(True, _value(POSITIVE[name], *known))
        if name in ("mul", "multiply", "div", "divide", "true_divide", "square"):
            is_division = name not in ("mul", "multiply", "square")
            divisor = operands[-1]
            small = divisor.value is None or abs(divisor.value) <= SMALL
            self._require(not (is_division and divisor.selected and small), node)
            return Element(True)
        if name in EVERYWHERE:
            return Element(True, _value(EVERYWHERE[name], *known[:1]) if known else None)
        raise Withheld(
            f"`{self._code(node)}` may have no finite derivative where the mask is false"
        )

    def _project_function(
        self, node: cst.Call, function: Function, given: Mapping[str, Element] | None
    ) -> Element:
        """A function of the same file whose body is one such expression."""
        definition = function.info.node
        if function.info.module is not self.describer.test.module or self._depth >= MAX_DEPTH:
            raise Withheld(f"`{self._code(node.func)}` may do more than compute element by element")
        parameters = [each.name.value for each in function.info.parameters]
        elements: dict[str, Element] = {}
        for index, argument in enumerate(node.args):
            if argument.star or (argument.keyword is None and index >= len(parameters)):
                raise Withheld(f"the arguments of `{self._code(node.func)}` are not known")
            name = argument.keyword.value if argument.keyword else parameters[index]
            elements[name] = self.element(argument.value, given)
        for name in parameters:
            elements.setdefault(name, Element(False))
        self._depth += 1
        result = self._body(definition, elements)
        self._depth -= 1
        return result

    def _body(self, function: cst.FunctionDef | cst.Lambda, given: dict[str, Element]) -> Element:
        if isinstance(function, cst.Lambda):
            return self.element(function.body, given)
        name = function.name.value
        if function.decorators or not isinstance(function.body, cst.IndentedBlock):
            raise Withheld(f"`{name}` may do more than compute element by element")
        for statement in function.body.body:
            match statement:
                case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString())]):
                    continue
                case cst.SimpleStatementLine(
                    body=[
                        cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=target))]) as it
                    ]
                ):
                    given[target] = self.element(it.value, given)
                    continue
                case cst.SimpleStatementLine(
                    body=[cst.Return(value=cst.BaseExpression() as value)]
                ):
                    return self.element(value, given)
            break
        raise Withheld(f"`{name}` may do more than compute element by element")

    # -- helpers ---------------------------------------------------------------------------

    def require_apart_from_zero(self, divisor: Element, node: cst.CSTNode) -> None:
        self._require(divisor.value is not None and abs(divisor.value) > SMALL, node)

    def _require(self, condition: bool, node: cst.CSTNode) -> None:
        if not condition:
            raise Singular(
                f"`{self._code(node)}` may have no finite derivative where the mask is false"
            )

    def _require_line(self, call: cst.Call) -> None:
        values = [self.describer.test.value_of(each.value) for each in call.args]
        is_flat = [isinstance(each, Static) and each.const == -1 for each in values]
        name = cst.ensure_type(call.func, cst.Attribute).attr.value
        fits = is_flat == [True] if name in ("reshape", "view") else not values
        if not fits:
            raise Withheld(f"`{self._code(call)}` needs the size of the selection")

    def _code(self, node: cst.CSTNode) -> str:
        return " ".join(self.describer.code(node).split())


class Singular(Withheld):
    """Another guard may do."""


def _value(function: Values, *numbers: float) -> float | None:
    try:
        return function(*numbers)
    except (ValueError, OverflowError, ZeroDivisionError, TypeError):
        return None
