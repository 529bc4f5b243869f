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

from jitlint.analysis import scope
from jitlint.analysis.observations import Observation
from jitlint.analysis.tables import Operator, Returns, Table
from jitlint.analysis.values import (
    External,
    ExternalInstance,
    ExternalMethod,
    Function,
    Instance,
    Source,
    Static,
    Tensor,
    Value,
    is_constant,
    is_none,
)

from . import numbers
from .dtypes import (
    BOOL,
    FLOATING,
    REAL,
    WHOLE,
    WIDE,
    DType,
    Kind,
    Proven,
    bare_leaf,
    can_be,
    is_floating,
    known,
    promoted,
    resolved,
)
from .effects import attributes_written, reshaping_in, writes_in_place
from .hazards import NO_EVIDENCE, Evidence, Hazard, broadcast, conditions_for, refused_dtype
from .operators import (
    CASTS,
    COMPLEX_TO_REAL,
    DIVIDES,
    FAILS_WHEN_EMPTY,
    FINITE_GRADIENT,
    FLOATING_ONLY,
    HAVE_INPLACE,
    KEEPS_SHAPE,
    NAMED_CASTS,
    NO_BACKWARD,
    NO_GRADIENT,
    NOT_ONLY_A_LAYER,
    OTHER_GRADIENT,
    OTHER_RESULT,
    PURE_LAYERS,
    RANDOM_METHODS,
    REFUSED,
    TAKES_ANY_NUMBER,
    WIDENS,
)
from .pure import makes_its_result, require_pure
from .withheld import Withheld

MAX_DEPTH = 8
WRITTEN = "@written at "
"""In the name of a source: something may have been written into it since its definition."""
DEFAULT = DType(frozenset({"the default dtype"}), FLOATING)
MAX_FACTOR, MIN_DIVISOR = 6e4, 1e-4
"""Factors that float16 can hold, and divisors whose reciprocal it can."""


@dataclass(frozen=True, slots=True)
class Number:
    """A Python value. `const` is its value where known, as in `Static`.

    `names`: its type is not known, and this is how it is written.
    """

    value: Static
    kind: int = WHOLE
    names: frozenset[str] = frozenset()
    hazards: frozenset[Hazard] = frozenset()

    def is_within(self, low: float, high: float) -> bool:
        """Whether its magnitude is known to lie between two bounds."""
        const = self.value.const
        return isinstance(const, int | float) and low <= abs(const) <= high


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
        return self.dtype.number == FLOATING or any(map(is_floating, self.dtype.leaves))


Described = Profile | Number
Operand = tuple[cst.BaseExpression, Described]

METHOD_OF = {
    "Subtract": "sub",
    "Minus": "neg",
    "BitInvert": "bitwise_not",
    "FloorDivide": "floor_divide",
    "Modulo": "remainder",
    "BitAnd": "bitwise_and",
    "BitOr": "bitwise_or",
    "BitXor": "bitwise_xor",
    "LeftShift": "bitwise_left_shift",
    "RightShift": "bitwise_right_shift",
    "LessThan": "lt",
    "LessThanEqual": "le",
    "GreaterThan": "gt",
    "GreaterThanEqual": "ge",
}
"""Operators of Python that torch has refusals for, as methods."""

DTYPE_NAMES = {"float": "float32", "double": "float64", "half": "float16", "long": "int64"} | {
    "int": "int32",
    "short": "int16",
    "cfloat": "complex64",
}
"""Other names of dtypes in `torch`."""


@dataclass(eq=False)
class Describer:
    """Describes expressions at the point of a test.

    Statements in `conditional` run only if an arm is taken: what they compute belongs to
    the arm. The others ran before, and their results are given.
    """

    test: Observation
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
                return self._number(node, at)
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
            case cst.IfExp():
                return self._choice(node, at)
        if self._is_static(node):
            return self._number(node, at)
        raise Withheld(f"nothing is known of the result of `{self._short(node)}`")

    def _short(self, node: cst.CSTNode) -> str:
        text = " ".join(self.code(node).split())
        return text if len(text) <= 40 else text[:39] + "…"

    # -- leaves ----------------------------------------------------------------------------

    def _is_static(self, node: cst.BaseExpression) -> bool:
        return isinstance(self.test.value_of(node), Static)

    def _number(self, node: cst.BaseExpression, at: cst.CSTNode) -> Number:
        value = self.test.value_of(node)
        if is_none(value):
            raise Withheld("one arm is None where the other is a tensor")
        if not isinstance(value, Static):
            raise Withheld(f"`{self._short(node)}` may not be a number")
        if isinstance(value.const, str):
            raise Withheld("an arm is a string, which no tensor can hold")
        kind = FLOATING if isinstance(value.const, float) else WHOLE
        failing = numbers.failing(self.test, node, self.at)
        hazards = frozenset(hazard for each in failing for hazard in self._failure(each, at))
        if not scope.names_read(node):
            return Number(value, kind, hazards=hazards)
        # known here, but another call may pass another number
        names = frozenset() if _is_constant(node, value) else frozenset({self.code(node)})
        return Number(Static(source=value.source), kind if not names else WHOLE, names, hazards)

    def _failure(self, node: cst.BaseExpression, at: cst.CSTNode) -> Iterable[Hazard]:
        """For which values an operation on Python values raises."""
        match node:
            case cst.Call(
                args=[cst.Arg(value=cst.Attribute(value=tensor, attr=cst.Name(value="dtype")))]
            ) if isinstance(self.test.value_of(tensor), Tensor):
                function = self.test.value_of(node.func)
                if isinstance(function, External) and function.name == "torch.finfo":
                    described = self.describe(tensor, at)
                    if isinstance(described, Profile):
                        return refused_dtype(Kind.WHOLE, described.dtype, self._short(tensor))
        return [Hazard(self.code(node), self.code(node))]

    def _name(self, node: cst.Name, at: cst.CSTNode) -> Described:
        self._check_name(node.value)
        binder = scope.binder_of(node, node.value, at, self.module)
        if binder is not None:
            return self._leaf(node, f"{node.value}@{id(binder)}", at)
        definition = scope.definition_of(node.value, at, self.module)
        if definition.value is not None and self._depth < MAX_DEPTH:
            given = self._defined(definition.value, definition.place)
            if given is not None:
                if definition.place in self.conditional:
                    return given
                if isinstance(given, Number):
                    return replace(given, hazards=frozenset())
                sources = given.sources
                if writes_in_place(self.function):
                    sources = frozenset({f"{node.value}{WRITTEN}{id(definition.place)}"})
                return replace(
                    given,
                    sources=sources,
                    finite=True,
                    hazards=frozenset(),
                    alias=frozenset({node.value}),
                    fresh=not given.alias,
                )
        place = id(definition.place) if definition.origin is not scope.Origin.PARAMETER else ""
        leaf = self._leaf(node, f"{node.value}@{place}" if place else node.value, at)
        if isinstance(leaf, Number) or scope.is_surely_bound(node.value, at, self.module):
            return leaf
        return replace(leaf, hazards=leaf.hazards | {Hazard(f"unbound {node.value}", node.value)})

    @property
    def function(self) -> cst.CSTNode:
        return scope.function_of(self.at, self.module) or self.module

    def _check_name(self, name: str) -> None:
        """Raises Withheld where a variable may not have the value that was assigned last."""
        if name in scope.shared_names(self.function):
            raise Withheld(f"`{name}` may be assigned by other functions")
        reshaping = reshaping_in(self.function)
        if reshaping is not None:
            raise Withheld(
                f"`{self._short(reshaping)}` changes what a tensor is in place: assign a new one"
            )

    def _defined(self, value: cst.BaseExpression, place: cst.CSTNode) -> Described | None:
        self._depth += 1
        try:
            return self.describe(value, place)
        except Withheld:
            return None
        finally:
            self._depth -= 1

    def _leaf(self, node: cst.BaseExpression, name: str, at: cst.CSTNode) -> Described:
        value = self.test.value_of(node)
        if isinstance(value, Static):
            return self._number(node, at)
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
            return self._number(node, at)
        receiver = self.test.value_of(node.value)
        if isinstance(receiver, Tensor):
            inner = self.describe(node.value, at)
            if isinstance(inner, Profile) and self.table.attribute(node.attr.value) is not None:
                dtype = inner.dtype.over(REAL) if node.attr.value in ("real", "imag") else None
                result = self._opaque(
                    node, f".{node.attr.value}", [inner], dtype, view=True, hazard=True
                )
                if node.attr.value == "data":
                    return replace(result, sources=frozenset())
                return result
        self.check_property(receiver, node)
        if self.code(node) in attributes_written(self.function):
            raise Withheld(f"`{self._short(node)}` is assigned here: use a variable")
        return self._leaf(node, self.code(node), at)

    def check_property(self, receiver: Value, node: cst.Attribute) -> None:
        """Raises Withheld where reading an attribute runs code of the project."""
        if isinstance(receiver, Instance):
            machine = self.test.moments[0].frame.machine
            if machine.method(receiver.cls, node.attr.value) is not None:
                raise Withheld(f"`{self._short(node)}` is a property, which may have effects")

    # -- operators -------------------------------------------------------------------------

    def _binary(self, node: cst.BinaryOperation, at: cst.CSTNode) -> Described:
        left, right = self.describe(node.left, at), self.describe(node.right, at)
        if isinstance(left, Number) and isinstance(right, Number):
            return self._number(node, at)
        operator = type(node.operator).__name__
        if operator == "MatrixMultiply":
            operands = [each for each in (left, right) if isinstance(each, Profile)]
            return self._opaque(node, "@", operands, None, hazard=True)
        if operator in ("FloorDivide", "Modulo") and not _is_divisor(right):
            raise Withheld(
                f"`{self._short(node)}` divides whole numbers, which raises for 0 even where "
                "its arm is not taken"
            )
        result = self._elementwise(node, [left, right])
        if operator == "Divide":
            result = replace(result, dtype=result.dtype.with_number(FLOATING))
        name = METHOD_OF.get(operator, "")
        result = self._with_refusals(
            name, result, zip((node.left, node.right), (left, right), strict=True)
        )
        if operator == "Power" and _may_be_negative(right):
            hazards = refused_dtype(Kind.WHOLE, result.dtype, self._short(node.left))
            result = replace(result, hazards=result.hazards.union(hazards))
        if operator in ("BitAnd", "BitOr", "BitXor", "LeftShift", "RightShift"):
            return replace(result, sources=frozenset())
        return replace(result, finite=result.finite and _has_finite_gradient(operator, left, right))

    def _with_refusals(
        self, name: str, result: Profile, operands: Iterable[tuple[cst.BaseExpression, Described]]
    ) -> Profile:
        """`result` of an operator with what that refuses: some dtypes, or to be differentiated."""
        hazards = set(result.hazards)
        for node, operand in operands:
            if isinstance(operand, Profile):
                for kind in REFUSED.get(name, ()):
                    hazards.update(refused_dtype(kind, operand.dtype, self._short(node)))
                if name in NO_BACKWARD and operand.sources:
                    code = self._short(node)
                    key = f"{name} has no gradient for {sorted(operand.sources)}"
                    hazards.add(Hazard(key, code, f"no gradient needs `{code}`"))
        return replace(result, hazards=frozenset(hazards))

    def _unary(self, node: cst.UnaryOperation, at: cst.CSTNode) -> Described:
        operand = self.describe(node.expression, at)
        if isinstance(operand, Number):
            return self._number(node, at)
        if isinstance(node.operator, cst.Not):
            raise Withheld(f"`{self._short(node)}` asks for a truth value inside an arm")
        if isinstance(node.operator, cst.Plus):
            return operand  # the tensor itself
        result = self._elementwise(node, [operand])
        name = METHOD_OF[type(node.operator).__name__]
        result = self._with_refusals(name, result, [(node.expression, operand)])
        if isinstance(node.operator, cst.BitInvert):
            return replace(result, sources=frozenset())
        return result

    def _comparison(self, node: cst.Comparison, at: cst.CSTNode) -> Described:
        nodes = [node.left, *(target.comparator for target in node.comparisons)]
        operands = [self.describe(each, at) for each in nodes]
        if all(isinstance(each, Number) for each in operands):
            return self._number(node, at)
        if len(operands) > 2:
            raise Withheld(f"`{self._short(node)}` asks for a truth value inside an arm")
        result = self._elementwise(node, operands)
        name = METHOD_OF.get(type(node.comparisons[0].operator).__name__, "")
        result = self._with_refusals(name, result, zip(nodes, operands, strict=True))
        return replace(result, dtype=BOOL, sources=frozenset())

    def _elementwise(self, node: cst.BaseExpression, operands: Sequence[Described]) -> Profile:
        """The broadcast and promotion of the operands."""
        tensors = [each for each in operands if isinstance(each, Profile)]
        numbers = [each for each in operands if isinstance(each, Number)]
        dtype = promoted([(each.dtype, each.shape) for each in tensors]).with_number(
            max((each.kind for each in numbers), default=0),
            [name for each in numbers for name in each.names],
        )
        shape = frozenset[str]().union(*(each.shape for each in tensors))
        different = {each.shape for each in tensors if each.shape}
        fitting = broadcast(shape, self._short(node)) if len(different) > 1 else ()
        return Profile(
            dtype=dtype,
            shape=shape,
            layout=tuple(dict.fromkeys(leaf for each in tensors for leaf in each.layout)),
            sources=frozenset().union(*(each.sources for each in tensors)),
            finite=all(each.finite for each in tensors),
            hazards=frozenset(fitting).union(*(each.hazards for each in operands)),
        )

    # -- access and calls ------------------------------------------------------------------

    def _subscript(self, node: cst.Subscript, at: cst.CSTNode) -> Described:
        if self._is_static(node):
            return self._number(node, at)
        receiver = self.describe(node.value, at)
        if isinstance(receiver, Number):
            raise Withheld(f"nothing is known of the result of `{self._short(node)}`")
        can_fail = False
        for element in node.slice:
            if isinstance(element.slice, cst.Index):
                if isinstance(self.test.value_of(element.slice.value), Tensor):
                    return self._indexed(node, receiver, at)
                can_fail = can_fail or not is_none(self.test.value_of(element.slice.value))
        code = self.code(node).removeprefix(self.code(node.value))
        return self._opaque(node, code, [receiver], None, view=True, hazard=can_fail, finite=True)

    def _indexed(self, node: cst.Subscript, receiver: Profile, at: cst.CSTNode) -> Profile:
        """`x[mask]`, and `x[x.argsort()]` or `x[x.topk(3)[1]]`: places that `x` has."""
        match node.slice:
            case [cst.SubscriptElement(slice=cst.Index(value=index))]:
                value = self.test.value_of(index)
                searched = _searched_by(index)
                if searched is None and isinstance(value, Tensor) and value.is_bool:
                    searched = index
                if searched is not None:
                    own = self.describe(searched, at)
                    operands = [receiver, *([own] if isinstance(own, Profile) else [])]
                    if all(each.shape <= receiver.shape for each in operands) or searched is index:
                        code = f"[{self.code(index)}]"
                        found = self._opaque(
                            node, code, operands, receiver.dtype, hazard=True, finite=True
                        )
                        return replace(found, sources=receiver.sources)
        raise Withheld(
            f"`{self._short(node)}` indexes by data, which may be out of range where its arm is "
            "not taken"
        )

    def _sequence(self, node: cst.Tuple | cst.List, at: cst.CSTNode) -> Described:
        """Arguments such as `torch.cat([a, b])`."""
        items = [self.describe(element.value, at) for element in node.elements]
        tensors = [each for each in items if isinstance(each, Profile)]
        if not tensors:
            return self._plain_number(items)
        return self._opaque(node, "[]", tensors, None, finite=True)

    def _plain_number(self, operands: Iterable[Described], *own: Hazard) -> Number:
        """A Python value that is made of others."""
        hazards = frozenset[Hazard]().union(*(each.hazards for each in operands))
        return Number(Static(), WHOLE, hazards=hazards.union(own))

    def _call(self, node: cst.Call, at: cst.CSTNode) -> Described:
        function = self.test.value_of(node.func)
        if any(argument.star for argument in node.args):
            raise Withheld(f"the arguments of `{self._short(node.func)}` are not known")
        match function:
            case ExternalMethod(receiver=Tensor(), name=name):
                assert isinstance(node.func, cst.Attribute)
                receiver = node.func.value, self.describe(node.func.value, at)
                operator = self.table.method(name)
                operands = [receiver, *self._arguments(node, at)]
                return self._operator(node, name, operator, operands, at)
            case External(name=dotted) if dotted.startswith("torch."):
                operator = self.table.function(dotted)
                name = dotted.rpartition(".")[2]
                return self._operator(node, name, operator, self._arguments(node, at), at)
            case External(name="builtins.print" | "builtins.input" | "builtins.open"):
                raise Withheld(f"an arm calls `{self._short(node.func)}`, which has an effect")
            case External(name="builtins.abs"):
                operator = self.table.method("abs")
                return self._operator(node, "abs", operator, self._arguments(node, at), at)
            case ExternalInstance(name=name) if name in PURE_LAYERS:
                return self._layer(node, self._arguments(node, at))
            case ExternalInstance(name=name):
                layer = name.rpartition(".")[2]
                raise Withheld(
                    f"an arm calls `{self._short(node.func)}`, and a {layer} may hold state, "
                    "draw random numbers or return its input"
                )
            case Function(info):
                require_pure(self.test, info, node)
                result = self._project_function(node, self._arguments(node, at))
                return replace(result, alias=frozenset()) if makes_its_result(info) else result
        if self._is_static(node):
            return self._number(node, at)
        raise Withheld(f"an arm calls `{self._short(node.func)}`, of which nothing is known")

    def _arguments(self, node: cst.Call, at: cst.CSTNode) -> list[Operand]:
        return [
            (argument.value, self.describe(argument.value, at))
            for argument in node.args
            if not self._is_plain(argument.value)
        ]

    def _is_plain(self, node: cst.BaseExpression) -> bool:
        """Arguments such as `None`, `True`, `"mean"` or `torch.float32`."""
        value = self.test.value_of(node)
        if isinstance(value, Static):
            return is_none(value) or isinstance(value.const, bool | str)
        return isinstance(value, External) and not isinstance(node, cst.Call)

    def _layer(self, node: cst.Call, operands: Sequence[Operand]) -> Profile:
        self._check_layer(node)
        tensors = [each for _, each in operands if isinstance(each, Profile)]
        name = self.code(node.func)
        result = self._opaque(node, name, tensors, None, hazard=True)
        return replace(
            result,
            dtype=DType(frozenset({f"dtype:layer {name}"})),
            sources=result.sources | {name},
        )

    def _project_function(self, node: cst.Call, operands: Sequence[Operand]) -> Profile:
        """The result of a pure function, which may be, or look into, each of its arguments."""
        value = self.test.value_of(node)
        code = self._short(node)
        if not isinstance(value, Tensor) or value.maybe:
            raise Withheld(f"`{code}` is not known to be a single tensor")
        tensors = [each for _, each in operands if isinstance(each, Profile)]
        result = self._opaque(node, self.code(node.func), tensors, None, view=True)
        never_fails = Hazard(f"fails {self.code(node)}", code, f"`{code}` never fails")
        dtype = None if value.dtype is None else known(value.dtype)
        return replace(
            result,
            dtype=dtype or DType(frozenset({code})),
            hazards=result.hazards | {never_fails},
            sources=result.sources or frozenset({self.code(node.func)}),  # what it knows itself
        )

    def _choice(self, node: cst.IfExp, at: cst.CSTNode) -> Described:
        """`a if flag else b`, whose test is decided when the code is traced."""
        test = self.test.value_of(node.test)
        if not isinstance(test, Static) or test.source is Source.DATA:
            raise Withheld(f"nothing is known of the result of `{self._short(node)}`")
        arms = [self.describe(each, at) for each in (node.body, node.orelse)]
        profiles = [each for each in arms if isinstance(each, Profile)]
        if not profiles:
            return self._number(node, at)
        if len(profiles) == 1:
            raise Withheld(f"`{self._short(node)}` is a number or a tensor")
        agreement = agree([replace(each, hazards=frozenset()) for each in profiles])
        code = self._short(node)
        first, other = profiles
        return replace(
            first,
            sources=first.sources | other.sources,
            finite=agreement.finite,
            hazards=first.hazards
            | other.hazards
            | {Hazard(f"{code} {each}", code, each) for each in agreement.conditions},
            alias=first.alias | other.alias,
            fresh=first.fresh and other.fresh,
        )

    def _check_layer(self, node: cst.Call) -> None:
        """Raises Withheld where the files of the layer speak of more than its operator."""
        machine = self.test.moments[0].frame.machine
        modules = [self.test.module]
        if isinstance(node.func, cst.Attribute):
            owner = self.test.value_of(node.func.value)
            modules += (
                [cls.module for cls in machine.mro(owner.cls)]
                if isinstance(owner, Instance)
                else []
            )
        for module in modules:
            found = NOT_ONLY_A_LAYER.search(module.source)
            if found is not None:
                raise Withheld(
                    f"an arm calls the layer `{self._short(node.func)}`, which may do more "
                    f"(`{found.group().decode()}` stands in its file)"
                )

    def _operator(
        self,
        node: cst.Call,
        name: str,
        operator: Operator | None,
        operands: Sequence[Operand],
        at: cst.CSTNode,
    ) -> Described:
        function = self._short(node.func)
        arguments = [each for _, each in operands]
        tensors = [each for each in arguments if isinstance(each, Profile)]
        if operator is None:
            raise Withheld(f"an arm calls `{function}`, of which nothing is known")
        if operator.random or RANDOM_METHODS.match(name):
            raise Withheld(f"an arm draws random numbers (`{function}`): draw them before it")
        written = next((each for each in node.args if self._is_written(name, each)), None)
        if written is not None:
            raise Withheld(f"an arm writes into a tensor (`{self.code(written)}`)")
        if operator.mutates or (name.endswith("_") and not name.endswith("__")):
            raise Withheld(f"an arm changes a tensor in place (`{function}`)")
        if operator.returns in (Returns.STATIC, Returns.SIZE):
            return self._plain_number(arguments, Hazard(self.code(node), self.code(node)))
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
        result = self._operator_result(node, name, operator, arguments, at)
        result = self._with_refusals(name, result, operands)
        hazards = set(result.hazards)
        if name in FAILS_WHEN_EMPTY and tensors:
            hazards.add(Hazard(f"empty {sorted(tensors[0].shape)}", self.code(node)))
        divides = name in DIVIDES or any(_keyword(each) == "rounding_mode" for each in node.args)
        if (divides and not _is_divisor(arguments[-1])) or (
            name == "pow" and _may_be_negative(arguments[-1])
        ):
            hazards.update(refused_dtype(Kind.WHOLE, result.dtype, self._short(node)))
        return replace(result, hazards=frozenset(hazards))

    def _is_written(self, name: str, argument: cst.Arg) -> bool:
        """Whether an argument asks for a result in memory that there is already."""
        if _keyword(argument) == "out":
            return True
        value = self.test.value_of(argument.value)
        is_false = isinstance(value, Static) and value.const is False
        if _keyword(argument) == "inplace":
            return not is_false
        is_flag = isinstance(value, Static) and isinstance(value.const, bool)
        return name in HAVE_INPLACE and is_flag and not is_false and not _keyword(argument)

    def _operator_result(
        self,
        node: cst.Call,
        name: str,
        operator: Operator,
        arguments: Sequence[Described],
        at: cst.CSTNode,
    ) -> Profile:
        tensors = [each for each in arguments if isinstance(each, Profile)]
        plain = name not in CASTS and not OTHER_RESULT & {
            each.keyword.value for each in node.args if each.keyword
        }
        alone = len(tensors) == len(arguments) == 1 and self._has_no_options(node)
        finite = name in FINITE_GRADIENT and all(each.finite for each in tensors)
        if operator.elementwise and not operator.view and tensors and plain:
            result = self._elementwise(node, arguments)
            result = replace(result, dtype=self._result_dtype(name, operator, result.dtype, node))
            result = replace(result, finite=finite)
        else:
            dtype = self._cast(node, name, operator, at)
            if dtype is None and operator.reduces and len(tensors) == 1:
                dtype = self._result_dtype(name, operator, tensors[0].dtype, node)
            code = self._options(node, "reduction" if operator.reduces else name)
            can_fail = name not in TAKES_ANY_NUMBER or not _fits(arguments[0], node)
            result = self._opaque(
                node, code, tensors, dtype, view=operator.view, hazard=can_fail, finite=finite
            )
            if name in KEEPS_SHAPE and len(tensors) == 1:
                finds = Hazard(code, self.code(node), f"`{self._short(node)}` has its dimension")
                result = replace(
                    result,
                    shape=tensors[0].shape,
                    layout=tensors[0].layout,
                    hazards=tensors[0].hazards | {finds},
                )
            if operator.reduces and alone:
                result = replace(result, shape=frozenset(), layout=(), hazards=tensors[0].hazards)
            if not can_fail and dtype is None and _is_float(arguments[0]):
                result = replace(result, dtype=DEFAULT)
            if name in NAMED_CASTS and len(tensors) == 1:
                (first,) = tensors
                result = replace(
                    result, shape=first.shape, layout=first.layout, hazards=first.hazards
                )
            if self._has_rank_0(node):
                result = replace(result, shape=frozenset(), layout=())
        if operator.is_bool or name in NO_GRADIENT or _is_whole(result.dtype):
            result = replace(result, sources=frozenset(), finite=True)
        return result

    def _has_rank_0(self, node: cst.BaseExpression) -> bool:
        value = self.test.value_of(node)
        if not isinstance(value, Tensor) or value.maybe or value.assumed:
            return False
        return value.rank == 0

    def _cast(self, node: cst.Call, name: str, operator: Operator, at: cst.CSTNode) -> DType | None:
        """The dtype that a call asks for, or that it is named after; None: it keeps that."""
        like = next((each.value for each in node.args if _keyword(each) == "dtype"), None)
        match like:
            case cst.Attribute(value=tensor, attr=cst.Name(value="dtype")):
                if isinstance(self.test.value_of(tensor), Tensor):
                    return self._dtype_of(tensor, at)
        wanted = [
            value.name.removeprefix("torch.")
            for each in node.args
            if isinstance(value := self.test.value_of(each.value), External)
            and _keyword(each) in ("", "dtype")
            and not isinstance(each.value, cst.Call)
        ]
        if len(wanted) == 1 and wanted[0].isidentifier():
            return known(DTYPE_NAMES.get(wanted[0], wanted[0]))
        if operator.dtype not in (None, "same", "float"):
            return known(str(operator.dtype))
        given = any(_keyword(each) == "dtype" for each in node.args)
        if wanted or given or name in CASTS:
            return DType(frozenset({f"{self._short(node)}"}))
        return None

    def _dtype_of(self, node: cst.BaseExpression, at: cst.CSTNode) -> DType | None:
        found = self.describe(node, at)
        return found.dtype if isinstance(found, Profile) else None

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
            return BOOL
        if operator.dtype == "float":
            return first.with_number(FLOATING)
        if operator.dtype == "same":
            if name in COMPLEX_TO_REAL:
                first = first.over(REAL)
            if name in WIDENS:
                return first.over(WIDE)
            return first.with_number(WHOLE) if operator.from_bool else first
        if operator.dtype is not None:
            return known(operator.dtype)
        return DType(frozenset({f"{self._options(node, name)} of {first.key}"}))

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
        leaf = f"{operation} of {shapes}"
        keeps_dtype = view or operation in ("@", "[]") or self._keeps_dtype(node)
        if dtype is None and keeps_dtype and operands:
            dtype = promoted([(each.dtype, each.shape) for each in operands])
        if dtype is None:
            keys = [each.dtype.key for each in operands]
            dtype = DType(frozenset({f"{operation} of {keys}"}))
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


INDICES = frozenset({"argmax", "argmin", "argsort"})
WITH_INDICES = frozenset({"kthvalue", "max", "median", "min", "mode", "sort", "topk"})


def _searched_by(index: cst.BaseExpression) -> cst.BaseExpression | None:
    """`x` of `x.argsort()` and of `x.topk(3)[1]`, the indices of some of its elements."""
    names, call = INDICES, index
    match index:
        case cst.Subscript(
            value=call, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="1")))]
        ):
            names = WITH_INDICES
    match call:
        case cst.Call(func=cst.Attribute(value=searched, attr=cst.Name(value=name))):
            return searched if name in names else None
    return None


def _fits(described: Described, node: cst.Call) -> bool:
    """Whether a number is one of every dtype that `torch.tensor(number, dtype=…)` may name."""
    if isinstance(described, Profile):
        return False
    const = described.value.const
    is_small = isinstance(const, int) and 0 <= const < 128
    return is_small or not any(_keyword(each) == "dtype" for each in node.args)


def _is_float(described: Described) -> bool:
    return isinstance(described, Number) and described.kind == FLOATING


def _is_divisor(described: Described) -> bool:
    """A number whose reciprocal is finite in every dtype."""
    return isinstance(described, Number) and described.is_within(MIN_DIVISOR, math.inf)


def _may_be_negative(exponent: Described) -> bool:
    """Whole numbers have no power to a negative Python number; to a negative tensor it is 0."""
    if isinstance(exponent, Profile) or exponent.kind == FLOATING:
        return False
    const = exponent.value.const
    return not isinstance(const, int) or const < 0


def _is_constant(node: cst.BaseExpression, value: Static) -> bool:
    """Whether a number of known type keeps that: by its name it is a constant."""
    return isinstance(node, cst.Name) and node.value.isupper() and is_constant(value)


def _is_whole(dtype: DType) -> bool:
    return not can_be(Kind.FLOATING, dtype)


def _keyword(argument: cst.Arg) -> str:
    return "" if argument.keyword is None else argument.keyword.value


def _has_finite_gradient(operator: str, left: Described, right: Described) -> bool:
    match operator:
        case "Add" | "Subtract":
            return True
        case "Multiply":
            return _is_factor(left) or _is_factor(right)
        case "Divide" | "FloorDivide" | "Modulo":
            return _is_divisor(right)
        case "Power":
            return isinstance(right, Number) and right.value.const == 1
    return False


def _is_factor(described: Described) -> bool:
    """Something finite that no gradient flows into."""
    if isinstance(described, Number):
        return described.is_within(0.0, MAX_FACTOR)
    return not described.sources and described.dtype == BOOL


# -- comparing arms ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Agreement:
    """Several results that may become one: under `conditions`, in words."""

    conditions: tuple[str, ...]
    finite: bool


def agree(profiles: Sequence[Profile], evidence: Evidence = NO_EVIDENCE) -> Agreement:
    """Raises Withheld where the results can differ in kind."""
    conditions: dict[str, None] = {}
    first = profiles[0]
    for other in profiles[1:]:
        conditions.update(dict.fromkeys(_same_sources(first, other)))
        conditions.update(dict.fromkeys(_same_shape(first, other)))
        conditions.update(dict.fromkeys(_same_dtype(first, other, evidence.proven.floating)))
        conditions.update(dict.fromkeys(_same_layout(first, other)))
    common = frozenset.intersection(*(each.hazards for each in profiles))
    for profile in profiles:
        hazards = profile.hazards - common
        conditions.update(dict.fromkeys(conditions_for(hazards, evidence)))
    return Agreement(tuple(conditions), _are_finite(profiles))


def _are_finite(profiles: Sequence[Profile]) -> bool:
    """Where one arm has no gradient none may have one, or it would begin to require it."""
    return all(each.finite for each in profiles) or not all(each.sources for each in profiles)


def _same_sources(a: Profile, b: Profile) -> Iterable[str]:
    """What a function computed itself may be of whole numbers, which have no gradient."""
    only = sorted(map(plain, a.sources ^ b.sources))
    if not only:
        return
    if a.sources and b.sources:
        raise Withheld(
            f"only one arm uses `{only[0]}`: its gradient would become zeros where it is None today"
        )
    if not all("@" in each and WRITTEN not in each for each in a.sources | b.sources):
        raise Withheld(
            f"one arm does not depend on `{only[0]}`: its result would begin to require a gradient"
        )
    yield from (f"`{name}` does not require grad" for name in only)


def _same_shape(a: Profile, b: Profile) -> Iterable[str]:
    if a.shape == b.shape:
        return
    if any("@" not in leaf for leaf in a.shape ^ b.shape) and not (a.shape and b.shape):
        raise Withheld("the arms have different shapes")
    yield "both arms have one shape"


def _same_dtype(a: Profile, b: Profile, floating: frozenset[str]) -> Iterable[str]:
    if a.dtype == b.dtype or resolved(a.dtype, floating) == resolved(b.dtype, floating):
        return
    leaves = frozenset(map(bare_leaf, a.dtype.leaves | b.dtype.leaves))
    if all(leaf.startswith("dtype:") for leaf in leaves):
        raise Withheld("the arms have different dtypes")
    if resolved(a.dtype, leaves) == resolved(b.dtype, leaves):
        yield are_floating(leaves)
        return
    is_known = any(_is_known(each.dtype) for each in (a, b))
    if is_known and not (a.is_floating and b.is_floating):
        raise Withheld("the arms have different dtypes")
    yield "both arms have one dtype"


def _is_known(dtype: DType) -> bool:
    return all(leaf.startswith("dtype:") for leaf in dtype.leaves)


def _same_layout(a: Profile, b: Profile) -> Iterable[str]:
    if a.layout == b.layout and a.dense == b.dense:
        return
    if a.layout == b.layout or set(a.layout) == set(b.layout):
        yield f"`{_name_of(frozenset(a.layout))}` is contiguous"


def _name_of(leaves: frozenset[str]) -> str:
    return "` and `".join(sorted({plain(leaf) for leaf in leaves}))


def are_floating(leaves: frozenset[str]) -> str:
    """The condition; a variable that is bound several times has a leaf for each."""
    is_one = len({plain(leaf) for leaf in leaves}) == 1
    return f"`{_name_of(leaves)}` {'is' if is_one else 'are'} floating"


def plain(leaf: str) -> str:
    """A leaf as the user knows it."""
    return bare_leaf(leaf).partition("@")[0]


def proven_by(describer: Describer, tests: Iterable[cst.BaseExpression]) -> Proven:
    """What must be for the tests to be evaluated at all: only real tensors have an order."""
    floating: set[str] = set()
    real: set[str] = set()
    for test in tests:
        for comparison in _orderings(test):
            for node in (comparison.left, *(each.comparator for each in comparison.comparisons)):
                floating |= floating_in(describer, node)
                real |= _real_in(describer, node)
    return Proven(frozenset(real), frozenset(floating))


def proven_by_guard(describer: Describer, guard: cst.BaseExpression) -> frozenset[str]:
    """What is floating where `guard` holds: `x` of `x.dtype == torch.float16 and …`."""
    match guard:
        case cst.BooleanOperation(operator=cst.And(), left=left, right=right):
            return proven_by_guard(describer, left) | proven_by_guard(describer, right)
        case cst.Call(func=cst.Attribute(value=tensor, attr=cst.Name(value="is_floating_point"))):
            return _only_leaf(describer, tensor)
        case cst.Comparison(
            left=cst.Attribute(value=tensor, attr=cst.Name(value="dtype")),
            comparisons=[cst.ComparisonTarget(operator=operator, comparator=wanted)],
        ):
            dtypes = _dtypes_of(operator, wanted)
            if dtypes and all(_is_floating_dtype(describer, each) for each in dtypes):
                return _only_leaf(describer, tensor)
    return frozenset()


def _dtypes_of(
    operator: cst.BaseCompOp, wanted: cst.BaseExpression
) -> Sequence[cst.BaseExpression]:
    """What is compared with `== wanted` or `in (…)`."""
    match operator, wanted:
        case cst.In(), cst.Tuple(elements=elements) | cst.List(elements=elements):
            return [each.value for each in elements]
        case ((cst.Equal() | cst.Is()), _):
            return [wanted]
    return []


def _is_floating_dtype(describer: Describer, node: cst.BaseExpression) -> bool:
    value = describer.test.value_of(node)
    name = value.name.removeprefix("torch.") if isinstance(value, External) else ""
    return any(map(is_floating, known(DTYPE_NAMES.get(name, name)).leaves))


def _only_leaf(describer: Describer, node: cst.BaseExpression) -> frozenset[str]:
    if not isinstance(describer.test.value_of(node), Tensor):
        return frozenset()
    try:
        leaves = describer.tensor(node).dtype.leaves
    except Withheld:
        return frozenset()
    return frozenset(map(bare_leaf, leaves)) if len(leaves) == 1 else frozenset()


def _real_in(describer: Describer, node: cst.BaseExpression) -> frozenset[str]:
    """The leaves whose dtype an operand has: all but those that something made real."""
    try:
        described = describer.describe(node)
    except Withheld:
        return frozenset()
    if not isinstance(described, Profile):
        return frozenset()
    leaves = described.dtype.leaves
    return frozenset(bare_leaf(leaf) for leaf in leaves if REAL not in leaf)


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


def floating_in(describer: Describer, node: cst.BaseExpression) -> set[str]:
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
    return {bare_leaf(leaf) for leaf in leaves} if len(leaves) == 1 else set()
