"""One call under interpretation: its variables, and what flows out of it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import libcst as cst

from jitlint.analysis.observations import (
    MAX_MOMENTS,
    Construct,
    Freeze,
    Frozen,
    LostShape,
    ProgramCalls,
    SizeUse,
    Use,
)
from jitlint.analysis.operators import leaves_of
from jitlint.analysis.tables import Operator
from jitlint.analysis.values import (
    MISSING,
    BoundMethod,
    Class,
    Closure,
    Function,
    Loss,
    ModuleValue,
    Origin,
    Source,
    Static,
    Tensor,
    Tuple,
    Value,
    is_constant,
    is_symbol,
    join,
    truth_of,
)
from jitlint.project.modules import FunctionInfo, Module
from jitlint.region import GRAPHS, Region, RegionKind

if TYPE_CHECKING:
    from jitlint.analysis.machine import Machine

JIT_TRACE = "torch.jit.trace"
MAKE_FX = "torch.fx.experimental.proxy_tensor.make_fx"
SYMBOLIC_TRACE = "torch.fx.symbolic_trace"
TRACERS = {name: name for name in (JIT_TRACE, MAKE_FX, SYMBOLIC_TRACE)}
"""Makers of traces that have a column in the table; all others trace as the first does."""

RECORDED = GRAPHS | {RegionKind.TRACE}
ONCE = RECORDED | {RegionKind.EXPORT}
"""What records operators, and torch.export, which runs a program once as well."""

Variables = dict[str, Value]
"""Values of names, and of dotted paths (`self.cache`) where a test or a store says more
than the class table."""


@dataclass(slots=True)
class Loop:
    """The environments that leave the body of a loop early. `outside` are the variables from
    before a loop that becomes an operator of a graph; `bound` are the names that
    the loop binds."""

    breaks: list[Variables] = field(default_factory=list)
    continues: list[Variables] = field(default_factory=list)
    outside: frozenset[str] = frozenset()
    bound: frozenset[str] = frozenset()


@dataclass(slots=True)
class Frame:
    """`function` is None in a module body; `region` is None in code that is not compiled.
    `owners` are the names and paths that may have paths of attributes among `variables`.
    `guards` counts the tests of which `guarded` tells; `optional`: a setting of the process,
    which is not known here, decides whether this code runs. `checked`: the code of conditions
    that `torch._check` was told to hold. `settled`: the calls that gave a number which the
    compiler did not know, until Python asked for it on every way that leads here."""

    machine: "Machine"
    module: Module
    function: FunctionInfo | None = None
    region: Region | None = None
    variables: Variables = field(default_factory=dict)
    closure: Closure | None = None
    depth: int = 0
    returned: list[Value] = field(default_factory=list)
    yielded: list[Value] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    globals: set[str] = field(default_factory=set)
    guards: int = 0
    optional: bool = False
    silent: int = 0
    owners: set[str] = field(default_factory=set)
    checked: set[str] = field(default_factory=set)
    settled: frozenset[cst.CSTNode] = frozenset()

    def settles(self, value: Value) -> bool:
        """Whether a number that the compiler does not know was asked for before: the graph
        ended there, and Python went on with a plain number."""
        node = value.read.node if is_symbol(value) and value.read is not None else None
        if node is None:
            return False
        was_settled = node in self.settled
        self.settled |= {node}
        return was_settled

    def observe(
        self, node: cst.BaseExpression, value: Value, construct: Construct, owner: cst.CSTNode
    ) -> None:
        """Tell the log that `node` is tested for truth, if this code is compiled."""
        if self.region is None or self.silent or self.settles(value):
            return
        test = self.machine.log.truth_test(node, construct, owner, self.module, self.function)
        test.see(value, self.is_guarded)
        test.reached(self.region, self.moment())

    def observe_operation(
        self,
        node: cst.CSTNode,
        operator: Operator | None,
        use: Use,
        operands: Iterable[Value] = (),
        keywords: Variables | None = None,
    ) -> None:
        """Tell the log that compiled code uses an operator that a compiler may stop at."""
        if operator is None or not operator.is_notable or self.region is None or self.silent:
            return
        log = self.machine.log
        operation = log.operation(node, operator, use, self.module, self.function)
        operation.see(tuple(operands), keywords or {}, self.is_guarded)
        operation.reached(self.region, self.moment())

    def observe_number(
        self,
        node: cst.CSTNode,
        row: Operator | None,
        value: Value,
        use: Use = Use.NUMBER,
    ) -> None:
        """Tell the log of tensors, and numbers read of tensors, that are used as a number."""
        if row is not None and self.region is not None:
            asked = tuple(leaf for leaf in leaves_of((value,)) if _is_asked(leaf, row))
            if asked:
                self.observe_operation(node, row, use, asked)

    def observe_call(
        self, node: cst.Call, callee: Value, positional: Iterable[Value], keywords: Variables
    ) -> None:
        """Tell the log of a call that a rule is interested in, compiled or not."""
        if self.silent:
            return
        call = self.machine.log.call(node, callee, self.module, self.function)
        call.see(tuple(positional), keywords)
        call.reached(self.region, self.moment())

    def observe_function(self, function: FunctionInfo, signature_only: bool = False) -> None:
        """Tell the log that a compiler takes over the function that this frame runs."""
        if self.region is None or self.silent or not isinstance(function.node, cst.FunctionDef):
            return
        compiled = self.machine.log.compiled(function.node, function)
        compiled.signature_only = compiled.signature_only and signature_only
        if len(compiled.arguments) < MAX_MOMENTS:
            compiled.arguments.append(dict(self.variables))
        compiled.reached(self.region, self.moment())

    @property
    def runs_python(self) -> bool:
        """Whether Python runs this code, and only what tensors compute is recorded: then
        arrays of NumPy are Python's own business."""
        region = self.region
        return region is not None and region.kind is RegionKind.EXPORT and not region.fullgraph

    @property
    def is_guarded(self) -> bool:
        return self.guards > 0 or self.optional

    @property
    def tracer(self) -> str:
        """The tracer of torch that runs this code once, to record it; "" if there is none."""
        if self.region is None or self.region.kind is not RegionKind.TRACE:
            return ""
        return TRACERS.get(self.region.maker, JIT_TRACE)

    @property
    def records(self) -> bool:
        """Whether this code is run once, to record the operators that it calls."""
        return self.region is not None and self.region.kind in RECORDED

    @property
    def runs_once(self) -> bool:
        """Whether state of Python is read once, and kept."""
        return self.region is not None and self.region.kind in ONCE

    def observe_frozen(
        self, node: cst.CSTNode, freeze: Freeze, name: str, outcome: str, value: Value
    ) -> None:
        """Tell the log of a value that a trace keeps as it is."""
        if not self.silent:
            log, place = self.machine.log, (self.module, self.function)
            frozen = log.other(
                Frozen, node, *place, freeze=freeze, name=name, outcome=outcome, value=value
            )
            frozen.reached(self.region, self.moment())

    @property
    def in_graph(self) -> bool:
        return self.region is not None and self.region.kind in GRAPHS

    def observe_size_use(self, node: cst.BaseExpression) -> None:
        """Tell the log that `node` needs a size that the graph does not know."""
        if self.in_graph and not self.silent:
            use = self.machine.log.other(SizeUse, node, self.module, self.function)
            use.reached(self.region, self.moment())

    def observe_need(
        self, loss: Loss, needed_by: cst.CSTNode, in_graph: bool | None = None
    ) -> None:
        """Tell the log that something needs the shape that a call has lost, or that a
        signature leaves open: that is no fault of the signature's, but of the use."""
        if self.silent or not (self.in_graph if in_graph is None else in_graph):
            return
        if loss.is_declared:
            if isinstance(needed_by, cst.BaseExpression):
                self.observe_size_use(needed_by)
            return
        log = self.machine.log
        lost = log.other(LostShape, loss.node, loss.module, loss.function, loss=loss)
        lost.reached(self.region, self.moment())
        lost.needed_by.append(needed_by)

    def observe_program(self, node: cst.Call, examples: Value, keywords: Variables) -> None:
        """Tell the log of a call that exports a program."""
        if not self.silent:
            program = self.machine.log.other(
                ProgramCalls,
                node,
                self.module,
                self.function,
                examples=examples,
                keywords=dict(keywords),
            )
            program.reached(self.region, self.moment())

    def moment(self) -> "Moment":
        return Moment(self, dict(self.variables))

    @contextmanager
    def guarded(self, by: Value, exempt: bool) -> Iterator[None]:
        """What runs only if an undecided static test of the same expression lets it."""
        undecided = not exempt and not _is_decided(by)
        self.guards += undecided
        yield
        self.guards -= undecided

    @contextmanager
    def under(self, setting: bool) -> Iterator[None]:
        """What runs, callees included, only if a setting lets it."""
        outside = self.optional
        self.optional = outside or setting
        yield
        self.optional = outside

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Code whose truth tests are not worth a finding, such as arguments of `raise`."""
        self.silent += 1
        yield
        self.silent -= 1

    def assign(self, path: str, value: Value) -> None:
        """Bind a name or a dotted path; what was known of its attributes is forgotten."""
        if path in self.owners:
            prefix = path + "."
            stale = [known for known in self.variables if known.startswith(prefix)]
            for known in stale:
                del self.variables[known]
        self.note(path)
        self.variables[path] = value

    def set_grad(self, changed: cst.BaseExpression, tensor: Tensor, wanted: Value) -> None:
        """`x.requires_grad_()` and `x.requires_grad = True` change `x` itself."""
        if isinstance(changed, cst.Name) and self.variables.get(changed.value) == tensor:
            self.assign(changed.value, replace(tensor, grad=truth_of(wanted)))

    def note(self, path: str) -> None:
        """Remember of whose attributes something may be known."""
        while "." in path:
            path = path.rpartition(".")[0]
            self.owners.add(path)


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A frame as it was when something was observed."""

    frame: Frame
    variables: Variables

    def evaluate(self, node: cst.CSTNode) -> Value:
        """The value that an expression would have had at that moment."""
        from jitlint.analysis.expressions import evaluate

        frame = replace(self.frame, variables=dict(self.variables), silent=1)
        return evaluate(frame, node)


def _is_asked(value: Value, row: Operator) -> bool:
    """Whether a place for a number has no number: what may be one is one there."""
    match value:
        case Tensor(maybe=True):
            return False
        case Tensor(origin=Origin.GIVEN | Origin.CONSTANT):
            return row.given
        case Tensor(origin=origin):
            return origin is Origin.COMPUTED
        case Static(const=const, source=Source.DATA, read=read):
            return const is MISSING and not (read is not None and read.given)
    return False


def _is_decided(value: Value) -> bool:
    """Whether a test lets what follows run: sizes vary from call to call, modes do not."""
    if isinstance(value, Static) and value.source is not Source.PYTHON:
        return True
    return is_constant(value) or isinstance(value, Tensor)


def join_variables(a: Variables | None, b: Variables | None) -> Variables | None:
    """What holds on both ways into a point; None is a way that is never taken."""
    if a is None or b is None:
        return b if a is None else a
    if a is b:
        return a
    joined: Variables = {}
    for name, value in a.items():
        other = b.get(name)
        if other is not None:
            joined[name] = value if other is value else join(value, other)
        elif "." not in name:
            joined[name] = value
    for name, value in b.items():
        if name not in a and "." not in name:
            joined[name] = value
    return joined


def truth(value: Value) -> bool | None:
    """The truth of a value where it is decided."""
    match value:
        case Static(const=const) if const is not MISSING:
            return bool(const)
        case Tuple(items):
            return bool(items)
        case Function() | BoundMethod() | Class() | ModuleValue():
            return True
    return None
