"""What is known of an expression as a result of one of several arms.

Two arms may become one tensor operation if their results agree in dtype, shape and memory
layout for every input, depend on the same differentiable values, and cannot fail where they
are not wanted. Types are symbolic: `x * 2` has "the dtype of x with a whole number". What
agrees only under a condition is collected as such.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from jitlint.analysis.observations import TruthTest
from jitlint.analysis.tables import Operator, Returns, Table
from jitlint.analysis.values import (
    External,
    ExternalInstance,
    ExternalMethod,
    Function,
    Static,
    Tensor,
    is_constant,
    is_none,
)

from . import _scope as scope
from ._operators import (
    COMPLEX_TO_REAL,
    FAILS_WHEN_EMPTY,
    FINITE_GRADIENT,
    FLOATING_ONLY,
    NO_GRADIENT,
    OTHER_GRADIENT,
    OTHER_RESULT,
    PURE_LAYERS,
    RANDOM_METHODS,
)
from ._withheld import Withheld

NO_NUMBER, WHOLE, FLOATING = 0, 1, 2
MAX_DEPTH = 8
MAX_FACTOR, MIN_DIVISOR = 6e4, 1e-4
"""Factors that float16 can hold, and divisors whose reciprocal it can."""


@dataclass(frozen=True, slots=True)
class DType:
    """The promotion of the dtypes of `leaves` with a number; `dtype:…` is a known dtype."""

    leaves: frozenset[str]
    number: int = NO_NUMBER

    def with_number(self, number: int) -> "DType":
        return replace(self, number=max(self.number, number))


@dataclass(frozen=True, slots=True)
class Number:
    """A Python value. `const` is its value where known, as in `Static`."""

    value: Static
    kind: int = WHOLE

    def is_within(self, low: float, high: float) -> bool:
        """Whether its magnitude is known to lie between two bounds."""
        const = self.value.const
        return isinstance(const, int | float) and low <= abs(const) <= high


@dataclass(frozen=True, slots=True)
class Hazard:
    """An operation that fails for some shapes: `key` for which, `code` how it is written."""

    key: str
    code: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of a tensor.

    `shape` are the tensors whose shapes it is the broadcast of (none: rank 0), `layout` the
    same in the order in which they decide about strides. `dense`: its memory was laid out
    by an operator. `sources` are the tensors that it depends on differentiably; `finite`:
    the derivative is finite whatever their values. `hazards` are the operations that fail
    for some shapes. `alias` are the variables that it may share memory with, and
    `fresh`: that memory is of this function's own making.
    """

    dtype: DType
    shape: frozenset[str]
    layout: tuple[str, ...]
    dense: bool = True
    sources: frozenset[str] = frozenset()
    finite: bool = True
    hazards: frozenset[Hazard] = frozenset()
    alias: frozenset[str] = frozenset()
    fresh: bool = True

    @property
    def is_floating(self) -> bool:
        return self.dtype.number == FLOATING or any(map(_is_floating, self.dtype.leaves))


def _is_floating(leaf: str) -> bool:
    return leaf.startswith(("dtype:float", "dtype:bfloat", "dtype:layer"))


Described = Profile | Number


@dataclass(eq=False)
class Describer:
    """Describes expressions at the point of a test.

    Statements in `conditional` run only if an arm is taken: what they compute belongs to
    the arm. The others ran before, and their results are given.
    """

    test: TruthTest
    at: cst.CSTNode
    conditional: tuple[cst.CSTNode, ...] = ()
    _depth: int = 0
    _known: dict[tuple[cst.CSTNode, cst.CSTNode], Described] = field(default_factory=dict)

    @property
    def module(self) -> cst.Module:
        return self.test.module.tree

    @property
    def table(self) -> Table:
        return self.test.moments[0].frame.machine.torch

    def code(self, node: cst.CSTNode) -> str:
        return self.module.code_for_node(node)

    def describe(self, node: cst.BaseExpression, at: cst.CSTNode | None = None) -> Described:
        """Raises Withheld where an expression is not pure, or nothing is known of it."""
        place = self.at if at is None else at
        key = node, place
        if key not in self._known:
            self._known[key] = self._describe(node, place)
        return self._known[key]

    def tensor(self, node: cst.BaseExpression) -> Profile:
        described = self.describe(node)
        if isinstance(described, Number):
            raise Withheld(f"`{self.code(node)}` is a Python value, not a tensor")
        return described

    def _describe(self, node: cst.BaseExpression, at: cst.CSTNode) -> Described:
        match node:
            case cst.Integer() | cst.Float() | cst.SimpleString():
                return self._number(node)
            case cst.Name():
                return self._name(node, at)
            case cst.Attribute():
                return self._attribute(node, at)
            case cst.BinaryOperation():
                return self._binary(node, at)
            case cst.UnaryOperation():
                return self._unary(node, at)
            case cst.Comparison():
                return self._comparison(node, at)
            case cst.Subscript():
                return self._subscript(node, at)
            case cst.Call():
                return self._call(node, at)
            case cst.Tuple() | cst.List():
                return self._sequence(node, at)
        if self._is_static(node):
            return self._number(node)
        raise Withheld(f"nothing is known of the result of `{self._short(node)}`")

    def _short(self, node: cst.CSTNode) -> str:
        text = " ".join(self.code(node).split())
        return text if len(text) <= 40 else text[:39] + "…"

    # -- leaves ----------------------------------------------------------------------------

    def _is_static(self, node: cst.BaseExpression) -> bool:
        return isinstance(self.test.value_of(node), Static)

    def _number(self, node: cst.BaseExpression) -> Number:
        value = self.test.value_of(node)
        if is_none(value):
            raise Withheld("one arm is None where the other is a tensor")
        if not isinstance(value, Static):
            raise Withheld(f"`{self._short(node)}` may not be a number")
        if isinstance(value.const, str):
            raise Withheld("an arm is a string, which no tensor can hold")
        kind = FLOATING if not is_constant(value) or isinstance(value.const, float) else WHOLE
        if scope.names_read(node):  # known here, but another call may pass another number
            value = Static(source=value.source)
        return Number(value, kind)

    def _name(self, node: cst.Name, at: cst.CSTNode) -> Described:
        definition = scope.definition_of(node.value, at, self.module)
        if definition.value is not None and self._depth < MAX_DEPTH:
            given = self._defined(definition.value, definition.place)
            if given is not None:
                if isinstance(given, Number):
                    return given
                if definition.place in self.conditional:
                    return given
                return replace(
                    given,
                    finite=True,
                    hazards=frozenset(),
                    alias=frozenset({node.value}),
                    fresh=not given.alias,
                )
        place = id(definition.place) if definition.origin is not scope.Origin.PARAMETER else ""
        return self._leaf(node, f"{node.value}@{place}" if place else node.value)

    def _defined(self, value: cst.BaseExpression, place: cst.CSTNode) -> Described | None:
        self._depth += 1
        try:
            return self.describe(value, place)
        except Withheld:
            return None
        finally:
            self._depth -= 1

    def _leaf(self, node: cst.BaseExpression, name: str) -> Described:
        value = self.test.value_of(node)
        if isinstance(value, Static):
            return self._number(node)
        if not isinstance(value, Tensor) or value.maybe:
            raise Withheld(f"`{self._short(node)}` may be something other than a tensor")
        dtype = value.dtype or ("bool" if value.is_bool else None)
        leaf = name if dtype is None else f"dtype:{dtype}"
        differentiable = dtype is None or dtype.startswith(("float", "bfloat", "complex"))
        dimensions = frozenset() if value.rank == 0 else frozenset({name})
        return Profile(
            dtype=DType(frozenset({leaf})),
            shape=dimensions,
            layout=tuple(dimensions),
            dense=value.rank == 0,
            sources=frozenset({name}) if differentiable else frozenset(),
            alias=frozenset({self.code(node)}),
            fresh=False,
        )

    def _attribute(self, node: cst.Attribute, at: cst.CSTNode) -> Described:
        if self._is_static(node):
            return self._number(node)
        receiver = self.test.value_of(node.value)
        if isinstance(receiver, Tensor):
            inner = self.describe(node.value, at)
            if isinstance(inner, Profile) and self.table.attribute(node.attr.value) is not None:
                result = self._opaque(node, f".{node.attr.value}", [inner], None, view=True)
                if node.attr.value == "data":
                    return replace(result, sources=frozenset())
                return result
        return self._leaf(node, self.code(node))

    # -- operators -------------------------------------------------------------------------

    def _binary(self, node: cst.BinaryOperation, at: cst.CSTNode) -> Described:
        left, right = self.describe(node.left, at), self.describe(node.right, at)
        if isinstance(left, Number) and isinstance(right, Number):
            return self._number(node)
        operator = type(node.operator).__name__
        if operator == "MatrixMultiply":
            operands = [each for each in (left, right) if isinstance(each, Profile)]
            return self._opaque(node, "@", operands, None, hazard=True)
        if operator in ("FloorDivide", "Modulo") and not _is_divisor(right):
            raise Withheld(
                f"`{self._short(node)}` divides whole numbers, which raises for 0 even where "
                "its arm is not taken"
            )
        result = self._elementwise([left, right])
        if operator == "Divide":
            result = replace(result, dtype=result.dtype.with_number(FLOATING))
        if operator in ("BitAnd", "BitOr", "BitXor", "LeftShift", "RightShift"):
            return replace(result, sources=frozenset())
        return replace(result, finite=result.finite and _has_finite_gradient(operator, left, right))

    def _unary(self, node: cst.UnaryOperation, at: cst.CSTNode) -> Described:
        operand = self.describe(node.expression, at)
        if isinstance(operand, Number):
            return self._number(node)
        if isinstance(node.operator, cst.Not):
            raise Withheld(f"`{self._short(node)}` asks for a truth value inside an arm")
        result = self._elementwise([operand])
        if isinstance(node.operator, cst.BitInvert):
            return replace(result, sources=frozenset())
        return result

    def _comparison(self, node: cst.Comparison, at: cst.CSTNode) -> Described:
        operands = [self.describe(node.left, at)]
        operands += [self.describe(target.comparator, at) for target in node.comparisons]
        if all(isinstance(each, Number) for each in operands):
            return self._number(node)
        if len(operands) > 2:
            raise Withheld(f"`{self._short(node)}` asks for a truth value inside an arm")
        result = self._elementwise(operands)
        return replace(result, dtype=DType(frozenset({"dtype:bool"})), sources=frozenset())

    def _elementwise(self, operands: Iterable[Described]) -> Profile:
        """The broadcast and promotion of the operands."""
        operands = list(operands)
        tensors = [each for each in operands if isinstance(each, Profile)]
        number = max((each.kind for each in operands if isinstance(each, Number)), default=0)
        dtype = DType(
            frozenset().union(*(each.dtype.leaves for each in tensors)),
            max(number, *(each.dtype.number for each in tensors)),
        )
        return Profile(
            dtype=dtype,
            shape=frozenset().union(*(each.shape for each in tensors)),
            layout=tuple(dict.fromkeys(leaf for each in tensors for leaf in each.layout)),
            sources=frozenset().union(*(each.sources for each in tensors)),
            finite=all(each.finite for each in tensors),
            hazards=frozenset().union(*(each.hazards for each in tensors)),
        )

    # -- access and calls ------------------------------------------------------------------

    def _subscript(self, node: cst.Subscript, at: cst.CSTNode) -> Described:
        if self._is_static(node):
            return self._number(node)
        receiver = self.describe(node.value, at)
        if isinstance(receiver, Number):
            raise Withheld(f"nothing is known of the result of `{self._short(node)}`")
        can_fail = False
        for element in node.slice:
            if isinstance(element.slice, cst.Index):
                if isinstance(self.test.value_of(element.slice.value), Tensor):
                    raise Withheld(
                        f"`{self._short(node)}` indexes by data, which may be out of range "
                        "where its arm is not taken"
                    )
                can_fail = can_fail or not is_none(self.test.value_of(element.slice.value))
        code = self.code(node).removeprefix(self.code(node.value))
        return self._opaque(node, code, [receiver], None, view=True, hazard=can_fail, finite=True)

    def _sequence(self, node: cst.Tuple | cst.List, at: cst.CSTNode) -> Described:
        """Arguments such as `torch.cat([a, b])`."""
        items = [self.describe(element.value, at) for element in node.elements]
        tensors = [each for each in items if isinstance(each, Profile)]
        if not tensors:
            return Number(Static(), WHOLE)
        return self._opaque(node, "[]", tensors, None, finite=True)

    def _call(self, node: cst.Call, at: cst.CSTNode) -> Described:
        function = self.test.value_of(node.func)
        if any(argument.star for argument in node.args):
            raise Withheld(f"the arguments of `{self._short(node.func)}` are not known")
        match function:
            case ExternalMethod(receiver=Tensor(), name=name):
                assert isinstance(node.func, cst.Attribute)
                receiver = self.describe(node.func.value, at)
                operator = self.table.method(name)
                return self._operator(node, name, operator, [receiver, *self._arguments(node, at)])
            case External(name=dotted) if dotted.startswith("torch."):
                operator = self.table.function(dotted)
                name = dotted.rpartition(".")[2]
                return self._operator(node, name, operator, self._arguments(node, at))
            case External(name="builtins.abs"):
                operator = self.table.method("abs")
                return self._operator(node, "abs", operator, self._arguments(node, at))
            case ExternalInstance(name=name) if name in PURE_LAYERS:
                return self._layer(node, self._arguments(node, at))
            case ExternalInstance(name=name):
                layer = name.rpartition(".")[2]
                raise Withheld(
                    f"an arm calls `{self._short(node.func)}`, and a {layer} may hold state, "
                    "draw random numbers or return its input"
                )
            case Function():
                raise Withheld(f"an arm calls `{self._short(node.func)}`, which may have effects")
        if self._is_static(node):
            return self._number(node)
        raise Withheld(f"an arm calls `{self._short(node.func)}`, of which nothing is known")

    def _arguments(self, node: cst.Call, at: cst.CSTNode) -> list[Described]:
        return [
            self.describe(argument.value, at)
            for argument in node.args
            if not self._is_plain(argument.value)
        ]

    def _is_plain(self, node: cst.BaseExpression) -> bool:
        """Arguments such as `None`, `True`, `"mean"` or `torch.float32`."""
        value = self.test.value_of(node)
        if isinstance(value, Static):
            return is_none(value) or isinstance(value.const, bool | str)
        return isinstance(value, External) and not isinstance(node, cst.Call)

    def _layer(self, node: cst.Call, arguments: Sequence[Described]) -> Profile:
        tensors = [each for each in arguments if isinstance(each, Profile)]
        name = self.code(node.func)
        result = self._opaque(node, name, tensors, None, hazard=True)
        return replace(
            result,
            dtype=DType(frozenset({f"dtype:layer {name}"})),
            sources=result.sources | {name},
        )

    def _operator(
        self,
        node: cst.Call,
        name: str,
        operator: Operator | None,
        arguments: Sequence[Described],
    ) -> Described:
        function = self._short(node.func)
        tensors = [each for each in arguments if isinstance(each, Profile)]
        if operator is None:
            raise Withheld(f"an arm calls `{function}`, of which nothing is known")
        if operator.random or RANDOM_METHODS.match(name):
            raise Withheld(f"an arm draws random numbers (`{function}`): draw them before it")
        if operator.mutates or (name.endswith("_") and not name.endswith("__")):
            raise Withheld(f"an arm changes a tensor in place (`{function}`)")
        if operator.returns in (Returns.STATIC, Returns.SIZE):
            return Number(Static(), WHOLE)
        if operator.returns is Returns.SCALAR or operator.reads or operator.breaks:
            raise Withheld(f"an arm reads a tensor into Python (`{function}`)")
        if operator.dynamic_shape and not (operator.one_argument or name == "__getitem__"):
            raise Withheld(f"the shape of `{self._short(node)}` depends on data")
        if name in OTHER_GRADIENT:
            raise Withheld(f"the gradient of `{name}` is computed in another way inside a graph")
        if operator.returns is not Returns.TENSOR:
            raise Withheld(f"`{self._short(node)}` is not a single tensor")
        if name == "where" and len(node.args) < 3:
            raise Withheld(f"the shape of `{self._short(node)}` depends on data")
        result = self._operator_result(node, name, operator, arguments, tensors)
        if name in FAILS_WHEN_EMPTY and tensors:
            hazard = Hazard(f"empty {sorted(tensors[0].shape)}", self.code(node))
            result = replace(result, hazards=result.hazards | {hazard})
        return result

    def _operator_result(
        self,
        node: cst.Call,
        name: str,
        operator: Operator,
        arguments: Sequence[Described],
        tensors: Sequence[Profile],
    ) -> Profile:
        plain = not OTHER_RESULT & {each.keyword.value for each in node.args if each.keyword}
        alone = len(tensors) == len(arguments) == 1 and self._has_no_options(node)
        finite = name in FINITE_GRADIENT and all(each.finite for each in tensors)
        if operator.elementwise and not operator.view and tensors and plain:
            result = self._elementwise(arguments)
            result = replace(result, dtype=self._result_dtype(name, operator, result.dtype, node))
            result = replace(result, finite=finite)
        else:
            dtype = None
            if operator.reduces and len(tensors) == 1:
                dtype = self._result_dtype(name, operator, tensors[0].dtype, node)
            code = self._options(node, "reduction" if operator.reduces else name)
            result = self._opaque(
                node, code, tensors, dtype, view=operator.view, hazard=True, finite=finite
            )
            if operator.reduces and alone:
                result = replace(result, shape=frozenset(), layout=(), hazards=tensors[0].hazards)
        if operator.is_bool or name in NO_GRADIENT or operator.dtype == "int64":
            result = replace(result, sources=frozenset(), finite=True)
        return result

    def _has_no_options(self, node: cst.Call) -> bool:
        """A reduction of everything: no dimension, no flag."""
        is_method = isinstance(self.test.value_of(node.func), ExternalMethod)
        return len(node.args) == (0 if is_method else 1)

    def _options(self, node: cst.Call, name: str) -> str:
        """The name of a call with its arguments as they are written, tensors aside."""
        parts = []
        for argument in node.args:
            if not isinstance(self.test.value_of(argument.value), Tensor):
                keyword = "" if argument.keyword is None else f"{argument.keyword.value}="
                parts.append(keyword + self.code(argument.value))
        return f"{name}({', '.join(parts)})"

    def _result_dtype(self, name: str, operator: Operator, first: DType, node: cst.Call) -> DType:
        if operator.is_bool:
            return DType(frozenset({"dtype:bool"}))
        if operator.dtype == "float":
            return first.with_number(FLOATING)
        if operator.dtype == "same":
            if operator.from_bool:
                first = DType(frozenset({*first.leaves}), max(first.number, WHOLE))
            if name in COMPLEX_TO_REAL:
                leaves = (e if e.startswith("dtype:") else f"real {e}" for e in first.leaves)
                return DType(frozenset(leaves), first.number)
            return first
        if operator.dtype is not None:
            return DType(frozenset({f"dtype:{operator.dtype}"}))
        return DType(frozenset({f"{self._options(node, name)} of {sorted(first.leaves)}"}))

    def _opaque(
        self,
        node: cst.BaseExpression,
        operation: str,
        operands: Sequence[Profile],
        dtype: DType | None,
        *,
        view: bool = False,
        hazard: bool = False,
        finite: bool = False,
    ) -> Profile:
        """The result of an operation of which only this is known: equal operands, equal result."""
        shapes = ", ".join(",".join(sorted(each.shape)) for each in operands)
        dtypes = frozenset().union(*(each.dtype.leaves for each in operands))
        number = max((each.dtype.number for each in operands), default=0)
        leaf = f"{operation} of {shapes}"
        keeps_dtype = view or operation in ("@", "[]") or self._keeps_dtype(node)
        if dtype is None and keeps_dtype and operands:
            dtype = DType(dtypes, number)
        if dtype is None:
            dtype = DType(frozenset({f"{operation} of {sorted(dtypes)} {number}"}))
        return Profile(
            dtype=dtype,
            shape=frozenset({leaf}),
            layout=(leaf,),
            dense=not view,
            sources=frozenset().union(*(each.sources for each in operands)),
            finite=finite and all(each.finite for each in operands),
            hazards=frozenset().union(
                *(each.hazards for each in operands),
                {Hazard(leaf, self.code(node))} if hazard else set(),
            ),
            alias=frozenset().union(*(each.alias for each in operands)) if view else frozenset(),
            fresh=all(each.fresh for each in operands) if view else True,
        )

    def _keeps_dtype(self, node: cst.BaseExpression) -> bool:
        if not isinstance(node, cst.Call):
            return False
        function = self.test.value_of(node.func)
        operator: Operator | None = None
        if isinstance(function, ExternalMethod):
            operator = self.table.method(function.name)
        elif isinstance(function, External):
            operator = self.table.function(function.name)
        named = {argument.keyword.value for argument in node.args if argument.keyword is not None}
        return operator is not None and operator.dtype == "same" and "dtype" not in named


def _is_divisor(described: Described) -> bool:
    """A number whose reciprocal is finite in every dtype."""
    return isinstance(described, Number) and described.is_within(MIN_DIVISOR, math.inf)


def _has_finite_gradient(operator: str, left: Described, right: Described) -> bool:
    match operator:
        case "Add" | "Subtract":
            return True
        case "Multiply":
            return _is_factor(left) or _is_factor(right)
        case "Divide" | "FloorDivide" | "Modulo":
            return _is_divisor(right)
        case "Power":
            return isinstance(right, Number) and right.is_within(1.0, 1.0)
    return False


def _is_factor(described: Described) -> bool:
    """Something finite that no gradient flows into."""
    if isinstance(described, Number):
        return described.is_within(0.0, MAX_FACTOR)
    return not described.sources and described.dtype.leaves == {"dtype:bool"}


# -- comparing arms ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Agreement:
    """Several results that may become one: under `conditions`, in words."""

    conditions: tuple[str, ...]
    finite: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the test itself proves: leaves of floating dtype, and operations that do not
    fail because they are computed before the arms."""

    floating: frozenset[str] = frozenset()
    evaluated: frozenset[Hazard] = frozenset()


def agree(profiles: Sequence[Profile], evidence: Evidence) -> Agreement:
    """Raises Withheld where the results can differ in kind."""
    conditions: dict[str, None] = {}
    first = profiles[0]
    for other in profiles[1:]:
        _same_sources(first, other)
        conditions.update(dict.fromkeys(_same_shape(first, other)))
        conditions.update(dict.fromkeys(_same_dtype(first, other, evidence.floating)))
        conditions.update(dict.fromkeys(_same_layout(first, other)))
    common = frozenset.intersection(*(each.hazards for each in profiles)) | evidence.evaluated
    for profile in profiles:
        require_no_hazards(profile.hazards - common)
    return Agreement(tuple(conditions), all(each.finite for each in profiles))


def require_no_hazards(hazards: frozenset[Hazard]) -> None:
    """What is computed always from now on must not fail where it is skipped today."""
    if hazards:
        code = min(hazard.code for hazard in hazards)
        raise Withheld(
            f"`{code}` fails for some shapes, even where it is skipped today: compute it before"
        )


def _same_sources(a: Profile, b: Profile) -> None:
    only = sorted(map(plain, a.sources ^ b.sources))
    if not only:
        return
    if not a.sources or not b.sources:
        raise Withheld(
            f"one arm does not depend on `{only[0]}`: its result would begin to require a gradient"
        )
    raise Withheld(
        f"only one arm uses `{only[0]}`: its gradient would become zeros where it is None today"
    )


def _same_shape(a: Profile, b: Profile) -> Iterable[str]:
    if a.shape == b.shape:
        return
    if not a.shape or not b.shape or not (a.shape & b.shape):
        raise Withheld("the arms have different shapes")
    yield "both arms have one shape"


def _same_dtype(a: Profile, b: Profile, floating: frozenset[str]) -> Iterable[str]:
    if a.dtype == b.dtype:
        return
    left, right = (_resolved(each.dtype, floating) for each in (a, b))
    if left == right:
        return
    strip = [
        frozenset(leaf.removeprefix("real ") for leaf in each.leaves) for each in (left, right)
    ]
    if strip[0] == strip[1]:
        yield f"`{_name_of(strip[0])}` is floating"
        return
    known = [all(leaf.startswith("dtype:") for leaf in each) for each in strip]
    if any(known):
        raise Withheld("the arms have different dtypes")
    yield "both arms have one dtype"


def _resolved(dtype: DType, floating: frozenset[str]) -> DType:
    """Real and floating leaves stay what they are with any number."""
    leaves = frozenset(
        leaf.removeprefix("real ") if leaf.removeprefix("real ") in floating else leaf
        for leaf in dtype.leaves
    )
    is_floating = any(leaf in floating or _is_floating(leaf) for leaf in leaves)
    return DType(leaves, NO_NUMBER if is_floating else dtype.number)


def _same_layout(a: Profile, b: Profile) -> Iterable[str]:
    if a.layout == b.layout and a.dense == b.dense:
        return
    if a.layout == b.layout or set(a.layout) == set(b.layout):
        yield f"`{_name_of(frozenset(a.layout))}` is contiguous"


def _name_of(leaves: frozenset[str]) -> str:
    return "` and `".join(sorted(plain(leaf) for leaf in leaves))


def plain(leaf: str) -> str:
    """A leaf as the user knows it."""
    return leaf.removeprefix("real ").partition("@")[0]


def floating_evidence(describer: Describer, tests: Iterable[cst.BaseExpression]) -> frozenset[str]:
    """Leaves that must be real and floating for the tests to be evaluated at all."""
    found: set[str] = set()
    for test in tests:
        for comparison in _orderings(test):
            for node in (comparison.left, *(each.comparator for each in comparison.comparisons)):
                found |= _floating_in(describer, node)
    return frozenset(found)


def _orderings(node: cst.CSTNode) -> Iterable[cst.Comparison]:
    if isinstance(node, cst.Comparison) and all(
        isinstance(
            each.operator,
            cst.LessThan | cst.LessThanEqual | cst.GreaterThan | cst.GreaterThanEqual,
        )
        for each in node.comparisons
    ):
        yield node
    for child in node.children:
        yield from _orderings(child)


def _floating_in(describer: Describer, node: cst.BaseExpression) -> set[str]:
    """`x` in `x.mean() < 1`: mean refuses whole numbers, and `<` complex ones."""
    if not isinstance(node, cst.Call):
        return set()
    operand: cst.BaseExpression | None = None
    name = ""
    match describer.test.value_of(node.func):
        case ExternalMethod(receiver=Tensor(), name=name):
            assert isinstance(node.func, cst.Attribute)
            operand = node.func.value
        case External(name=dotted) if dotted.startswith("torch.") and node.args:
            name = dotted.rpartition(".")[2]
            operand = node.args[0].value
    if operand is None or name not in FLOATING_ONLY - COMPLEX_TO_REAL:
        return set()
    try:
        described = describer.describe(operand)
    except Withheld:
        return set()
    leaves = described.dtype.leaves if isinstance(described, Profile) else frozenset()
    return set(leaves) if len(leaves) == 1 else set()
