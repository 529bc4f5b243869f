"""What the interpreter saw in compiled regions, as rules want to hear of it.

A rule's `visit_<Observation>` method is given the observation where `visit_<Node>` is given
a node. One place in the source is one observation, however many contexts reached it.
"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import libcst as cst

from jitlint.analysis.operators import leaves_of
from jitlint.analysis.tables import Operator
from jitlint.analysis.values import (
    UNKNOWN,
    Loss,
    Optional,
    Origin,
    Tensor,
    Value,
    is_symbol,
    is_tensor,
    join,
    join_all,
)
from jitlint.project.modules import FunctionInfo, Module
from jitlint.region import Region, RegionKind

if TYPE_CHECKING:
    from jitlint.analysis.frame import Moment


class Construct(enum.Enum):
    """The Python construct that asks for a truth value: how it is called in a message, and
    the id of the graph break that it causes (each measured with torch 2.13)."""

    IF = ("`if`", "GB0170")
    WHILE = ("`while`", "GB0170")
    TERNARY = ("conditional expression", "GB0170")
    ASSERT = ("`assert`", "GB0170")
    NOT = ("`not`", "GB0033")
    BOOLEAN = ("`and`/`or`", "GB0170")
    CHAIN = ("chained comparison", "GB0170")
    MATCH = ("`match`", "GB0170")
    NOT_IN = ("`not in`", "GB0033")
    CONTAINS = ("`in` a tensor", "GB0124")
    CONTAINERS = ("comparison of containers", "GB6622")
    COMPREHENSION = ("comprehension condition", "GB0170")
    BUILTIN = ("builtin over elements", "GB0170")
    SORT = ("sorting", "GB0207")
    EXTREME = ("`min`/`max` by a key", "GB0193")

    def __init__(self, text: str, code: str) -> None:
        self.text = text
        self.code = code


INNER = frozenset({Construct.CHAIN, Construct.NOT_IN, Construct.CONTAINS, Construct.CONTAINERS})
"""Comparisons that test by themselves; the statement around them then tests the result."""


MAX_MOMENTS = 8
"""Contexts of one place that are kept, for fixes that ask for values around it."""


@dataclass(eq=False, slots=True, kw_only=True)
class Observation:
    """One place in the source, over all contexts that reached it.

    `function` is the function in which `node` stands (None in a module body). `regions`
    holds the first region of each kind that reached it, and is empty for code that runs in
    Python only; `fullgraph`: one of them is compiled with it; `default_mode` is the first
    `compile` region that is not.
    """

    node: cst.CSTNode
    module: Module
    function: FunctionInfo | None
    regions: dict[RegionKind, Region] = field(default_factory=dict)
    fullgraph: bool = False
    default_mode: Region | None = None
    moments: "list[Moment]" = field(default_factory=list)

    @property
    def is_new(self) -> bool:
        return not self.moments

    def reached(self, region: Region | None, moment: "Moment") -> None:
        """Another context reached the same place."""
        if region is not None:
            self.regions.setdefault(region.kind, region)
            self.fullgraph = self.fullgraph or region.fullgraph
            if region.kind is RegionKind.COMPILE and not region.fullgraph:
                self.default_mode = self.default_mode or region
        if len(self.moments) < MAX_MOMENTS:
            self.moments.append(moment)

    def value_of(self, node: cst.BaseExpression) -> Value:
        """The value of any expression of the function at this point, over all contexts."""
        return join_all(moment.evaluate(node) for moment in self.moments)


@dataclass(eq=False, slots=True, kw_only=True)
class TruthTest(Observation):
    """Python asks whether `node` is true, in a region. `value` is the join over all contexts.

    `owner` is the statement or expression that asks (`cst.If`, `cst.While`, …). `guarded`:
    in every context the test stands behind an undecided static test of the same expression.
    """

    node: cst.BaseExpression
    construct: Construct
    owner: cst.CSTNode
    value: Value = UNKNOWN
    guarded: bool = True

    def see(self, value: Value, guarded: bool) -> None:
        if self.is_new:
            self.value = value
        elif isinstance(value, Tensor) or self.construct not in INNER:
            self.value = join(self.value, value)
        self.guarded = self.guarded and guarded


class Use(enum.Enum):
    """How a program gets at an operator."""

    CALL = "call"
    CONVERSION = "conversion"
    FORMAT = "format"
    INDEX = "index"
    BOUND = "bound"
    CONTEXT = "context"
    STORE = "store"
    HIDDEN = "hidden"
    ATTRIBUTE = "attribute"
    DEFINITION = "definition"
    MESSAGE = "message"
    NUMBER = "number"
    """Something asks for a number, and the operands are what it is given instead."""


@dataclass(eq=False, slots=True, kw_only=True)
class Operation(Observation):
    """A compiler may stop at `node`, or freeze it: a table has a row that says so.

    `operands` are what the operator is given (a method's receiver first) and `keywords`, as
    joins over all contexts. `guarded`: as in `TruthTest`.
    """

    node: cst.CSTNode
    operator: Operator
    use: Use
    operands: tuple[Value, ...] = ()
    keywords: dict[str, Value] = field(default_factory=dict)
    guarded: bool = True

    @property
    def given(self) -> list[Value]:
        return [*self.operands, *self.keywords.values()]

    @property
    def code(self) -> str | None:
        """The id of the graph break in default mode; None if there is none."""
        if self.use is Use.NUMBER and not (self.holds_tensor or self.holds_symbol):
            return None  # a number by then, as the graph was broken where it was read
        return self._break[0]

    @property
    def captured(self) -> bool:
        """Whether there is no break with `fullgraph=True`."""
        return self._break[1]

    @property
    def holds_tensor(self) -> bool:
        return any(map(is_tensor, self.given))

    @property
    def holds_symbol(self) -> bool:
        """Whether it is given a number that the compiler does not know, and did not stop at."""
        return any(map(is_symbol, self.given))

    @property
    def _break(self) -> tuple[str | None, bool]:
        operator = self.operator
        if operator.with_tensor and any(map(is_tensor, self._direct)):
            return operator.with_tensor, operator.with_tensor_captured
        if operator.with_tensor_inside and any(map(is_tensor, leaves_of(self.given))):
            return operator.with_tensor_inside, operator.with_tensor_inside_captured
        return operator.reads or operator.breaks or self._break_by_origin, operator.captured

    @property
    def _break_by_origin(self) -> str | None:
        """The break at an attribute of a tensor that the region is given, or that it makes."""
        match self.operands:
            case (Tensor(grad=False), *_) if self.operator.some:
                return None  # there is no node of autograd's
            case (Tensor(origin=Origin.COMPUTED), *_):
                return self.operator.intermediate
            case (Tensor(), *_) if not self.operator.some:  # `p.data = …` is taken
                return self.operator.input
        return None

    @property
    def _direct(self) -> list[Value]:
        given = [*self.operands, *self.keywords.values()]
        return [value.value if isinstance(value, Optional) else value for value in given]

    def see(self, operands: tuple[Value, ...], keywords: dict[str, Value], guarded: bool) -> None:
        self.guarded = self.guarded and guarded
        if self.is_new:
            self.operands, self.keywords = operands, dict(keywords)
            return
        self.operands = tuple(join(a, b) for a, b in zip(self.operands, operands, strict=False))
        self.keywords = _joined(self.keywords, keywords)


def _joined(known: dict[str, Value], given: dict[str, Value]) -> dict[str, Value]:
    return known | {
        name: join(known[name], value) if name in known else value for name, value in given.items()
    }


@dataclass(eq=False, slots=True, kw_only=True)
class Call(Observation):
    """A call of a kernel, or of a function that a rule watches (`Rule.watches`).

    `callee` is a `Kernel` or an `External`; `positional` and `keywords` are the joins of the
    arguments over all contexts.
    """

    node: cst.Call
    callee: Value
    positional: tuple[Value, ...] = ()
    keywords: dict[str, Value] = field(default_factory=dict)

    def see(self, positional: tuple[Value, ...], keywords: dict[str, Value]) -> None:
        if self.is_new:
            self.positional, self.keywords = positional, dict(keywords)
            return
        self.positional = tuple(
            join(a, b) for a, b in zip(self.positional, positional, strict=False)
        )
        self.keywords = _joined(self.keywords, keywords)


class Freeze(enum.Enum):
    """What a trace keeps as it was when it was made, or loses."""

    DATA = "data"
    SIZE = "size"
    METADATA = "metadata"
    CAST = "cast"
    COPY = "copy"
    MODE = "mode"
    LOOP = "loop"
    RESULT = "result"
    VARIES = "varies"
    STATE = "state"
    EFFECT = "effect"
    HASH = "hash"
    TRAINING = "training"


@dataclass(eq=False, slots=True, kw_only=True)
class Frozen(Observation):
    """`node` is done once, by Python, while torch or TensorFlow traces the function.

    `name` says by what (a function, a method, an attribute), `value` from what, and `outcome`
    whether the tracer raises instead.
    """

    freeze: Freeze
    name: str
    outcome: str
    value: Value


@dataclass(eq=False, slots=True, kw_only=True)
class CompiledFunction(Observation):
    """A function that a compiler takes over: an entry, or reached from one.

    `arguments` are the values of its parameters in each context. `signature_only`: the
    compiler calls it by its signature, and its body is run by Python.
    """

    node: cst.FunctionDef
    function: FunctionInfo
    signature_only: bool = True
    arguments: list[dict[str, Value]] = field(default_factory=list)


@dataclass(eq=False, slots=True, kw_only=True)
class SizeUse(Observation):
    """`node` computes with a size that the graph does not know: it is None there."""

    node: cst.BaseExpression


@dataclass(eq=False, slots=True, kw_only=True)
class LostShape(Observation):
    """A call behind which a graph knows no shape, and what needs it (`needed_by`)."""

    node: cst.Call
    loss: Loss
    needed_by: list[cst.CSTNode] = field(default_factory=list)


@dataclass(eq=False, slots=True, kw_only=True)
class GraphCall(Call):
    """A call, from Python, of a function that `tf.function` took over with `options`."""

    target: FunctionInfo
    options: dict[str, Value]
    kind: RegionKind


@dataclass(eq=False, slots=True, kw_only=True)
class ProgramCalls(Observation):
    """A `torch.export.export` call, its arguments, and what its program is called with."""

    node: cst.Call
    examples: Value
    keywords: dict[str, Value]
    calls: list[tuple[Value, ...]] = field(default_factory=list)


Seen = TypeVar("Seen", bound=Observation)


class Log:
    """All observations of a run, in the order in which they were first made."""

    def __init__(self) -> None:
        self._tests: dict[cst.CSTNode, TruthTest] = {}
        self._calls: dict[cst.CSTNode, Call] = {}
        self._functions: dict[cst.CSTNode, CompiledFunction] = {}
        self._operations: dict[tuple[cst.CSTNode, str], Operation] = {}
        self._others: dict[tuple[type[Observation], cst.CSTNode], Observation] = {}

    def truth_test(
        self,
        node: cst.BaseExpression,
        construct: Construct,
        owner: cst.CSTNode,
        module: Module,
        function: FunctionInfo | None,
    ) -> TruthTest:
        """The observation of this place; of several constructs there the statement's.

        An assert is not one of those: Dynamo accepts it, but not a comparison inside it.
        """
        test = self._tests.get(node)
        if test is None:
            test = TruthTest(
                node=node, construct=construct, owner=owner, module=module, function=function
            )
            self._tests[node] = test
        elif test.construct is Construct.CHAIN and construct not in (*INNER, Construct.ASSERT):
            test.construct, test.owner = construct, owner
        return test

    def call(
        self, node: cst.Call, callee: Value, module: Module, function: FunctionInfo | None
    ) -> Call:
        if node not in self._calls:
            self._calls[node] = Call(node=node, callee=callee, module=module, function=function)
        return self._calls[node]

    def is_tested(self, node: cst.CSTNode) -> bool:
        """Whether `node` was seen to be tested for truth."""
        return node in self._tests

    def operation(
        self,
        node: cst.CSTNode,
        operator: Operator,
        use: Use,
        module: Module,
        function: FunctionInfo | None,
    ) -> Operation:
        key = node, operator.name
        if key not in self._operations:
            self._operations[key] = Operation(
                node=node, operator=operator, use=use, module=module, function=function
            )
        return self._operations[key]

    def compiled(self, node: cst.FunctionDef, function: FunctionInfo) -> CompiledFunction:
        if node not in self._functions:
            self._functions[node] = CompiledFunction(
                node=node, module=function.module, function=function
            )
        return self._functions[node]

    def __iter__(self) -> Iterator[Observation]:
        yield from self._tests.values()
        yield from self._operations.values()
        yield from self._calls.values()
        yield from self._functions.values()
        yield from self._others.values()

    def other(
        self,
        kind: type[Seen],
        node: cst.CSTNode,
        module: Module,
        function: FunctionInfo | None,
        /,
        **fields: Any,
    ) -> Seen:
        """The observation of this kind at this place; `fields` are for a new one."""
        found = self._others.get((kind, node))
        if not isinstance(found, kind):
            found = kind(node=node, module=module, function=function, **fields)
            self._others[kind, node] = found
        return found
