"""A function that makes tensors of tensors of integers, as an operator.

What such a function does in Python (loops over positions that it finds, writes into masks) no
graph holds, and no gradient goes through it. The operator runs it as it is; that its results
have the same shapes, dtypes and strides without their values is told by the statements that
made them: what is written into them later changes none of that.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.observations import Observation
from jitlint.analysis.tables import Operator as Operation
from jitlint.analysis.tables import Table
from jitlint.analysis.tree import found_in, parents_of
from jitlint.analysis.values import External, Static, Tensor, never_needs_gradient
from jitlint.finding import Fix, Safety
from jitlint.rule import Context

from ..branch_fixes.effects import reshaping_in
from ..branch_fixes.operators import CASTS, RANDOM_METHODS
from ..branch_fixes.pure import PURE_BUILTINS
from ..branch_fixes.withheld import Withheld
from .array import (
    FORBIDDEN,
    Schema,
    behind,
    name_of,
    names_behind,
    own_statements,
    with_body,
)
from .operator import NOT_TAKEN, Operator
from .whole import function_around

WITHOUT_GRADIENT = frozenset(
    f"torch.{kind}Tensor" for kind in ("Bool", "Byte", "Char", "Int", "Long", "Short")
)
"""Annotations of tensors that no gradient goes to."""
METADATA = frozenset({"device", "dtype", "layout", "ndim", "shape"})
MEASURES = frozenset({"dim", "ndimension", "nelement", "numel", "size"})
"""Methods that tell of a tensor what its metadata does."""
MAY_BE_THE_SAME = CASTS | {"bool", "byte", "char", "int", "long", "numpy", "short"}
"""Operators that may hand their argument on."""
TUPLES = ("builtins.tuple", "typing.Tuple")


def tensors_as_operator(seen: Observation, ctx: Context) -> Fix:
    """The function around a break, which makes tensors whose shapes are plain."""
    function = function_around(seen)
    python, operator = names_behind(function, seen, ctx)
    schema = Schema(seen, function)
    reader = _Reader(seen, function, frozenset(schema.tensors))
    reader.check_arguments()
    fake = _Fake(reader).statements()
    spelling = scope.Spelling(seen.module)
    new = Operator(
        seen.module,
        operator,
        schema.parameters(),
        _returning(schema.call(python, keep=False)),
        _types(spelling.of("Tensor"), len(reader.results) if reader.is_tuple else 0),
        fake,
        function.whitespace_before_params,
    )
    front = with_body(function, _returning(schema.call(operator, keep=True)).body)
    return Fix(
        Safety.UNSAFE,
        f"Make the tensors in the operator `{operator}`, which has an effect, right if the "
        f"arguments and results have the types that they are annotated with, and {NOT_TAKEN}",
        behind(front, function, python, new),
        spelling.imports(),
    )


def _returning(value: cst.BaseExpression) -> cst.IndentedBlock:
    return cst.IndentedBlock([cst.SimpleStatementLine([cst.Return(value)])])


def _types(tensor: cst.BaseExpression, count: int) -> cst.BaseExpression:
    """`Tensor`, or `tuple[Tensor, …]` of so many."""
    if not count:
        return tensor
    elements = [cst.SubscriptElement(cst.Index(tensor.deep_clone())) for _ in range(count)]
    return cst.Subscript(cst.Name("tuple"), elements)


@dataclass(eq=False)
class _Reader:
    """A function, and what it may be asked of its arguments."""

    seen: Observation
    function: cst.FunctionDef
    tensors: frozenset[str]

    @property
    def table(self) -> Table:
        return self.seen.moments[0].frame.machine.torch

    @property
    def returned(self) -> cst.BaseExpression:
        """What the last statement returns, and no other does."""
        found = [
            each for each in own_statements(self.function.body) if isinstance(each, cst.Return)
        ]
        match self.function.body.body[-1:]:
            case [cst.SimpleStatementLine(body=[cst.Return(value=cst.BaseExpression() as value)])]:
                if len(found) == 1:
                    return value
        raise Withheld("the function returns at more than one place, or nothing")

    @property
    def is_tuple(self) -> bool:
        return isinstance(self.returned, cst.Tuple)

    @property
    def results(self) -> Sequence[cst.BaseExpression]:
        value = self.returned
        return [each.value for each in value.elements] if isinstance(value, cst.Tuple) else [value]

    def check_arguments(self) -> None:
        """Raises Withheld where a gradient may go through, or an argument may be changed."""
        self._check_annotation()
        for parameter in (*self.function.params.params, *self.function.params.kwonly_params):
            if parameter.name.value in self.tensors and not self._is_whole(parameter):
                raise Withheld(f"a gradient may go through `{parameter.name.value}`")
        written = self.tensors & scope.names_written(self.function.body)
        if written:
            raise Withheld(f"`{min(written)}` is bound anew")
        if reshaping_in(self.function) is not None:
            raise Withheld("a tensor may get another shape in place")
        parents = parents_of(self.seen.module.tree)
        for node in own_statements(self.function.body):
            if isinstance(node, FORBIDDEN):
                raise Withheld("the function binds names of others, or yields")
        for node in scope.reads(self.function.body):
            if node.value in self.tensors and not self._is_only_read(node, parents[node]):
                raise Withheld(f"`{node.value}` may be changed, or handed on")

    def _check_annotation(self) -> None:
        """The results are declared as tensors, one by one."""
        declared = self.function.returns.annotation if self.function.returns else None
        types: Sequence[cst.BaseExpression] = [] if declared is None else [declared]
        if isinstance(declared, cst.Subscript) and name_of(self.seen, declared.value) in TUPLES:
            slices = [each.slice for each in declared.slice]
            types = [each.value for each in slices if isinstance(each, cst.Index)]
        tensors = [name_of(self.seen, each) for each in types]
        if len(tensors) != len(self.results) or any(
            not (each.startswith("torch.") and each.endswith("Tensor")) for each in tensors
        ):
            raise Withheld("the function is not declared to return tensors")

    def _is_whole(self, parameter: cst.Param) -> bool:
        declared = parameter.annotation.annotation if parameter.annotation else None
        if declared is not None and name_of(self.seen, declared) in WITHOUT_GRADIENT:
            return True
        value = self.seen.value_of(parameter.name)
        return isinstance(value, Tensor) and not value.maybe and never_needs_gradient(value)

    def _is_only_read(self, node: cst.Name, parent: cst.CSTNode) -> bool:
        """Whether what becomes of an argument shares no memory with it."""
        match parent:
            case cst.Attribute(attr=cst.Name(value=name)):
                return name in METADATA | MEASURES or _makes_another(self.table.method(name))
            case cst.Comparison() | cst.ComparisonTarget() | cst.BinaryOperation():
                return True
            case cst.Arg(keyword=None):
                call = parents_of(self.seen.module.tree)[parent]
                called = name_of(self.seen, call.func) if isinstance(call, cst.Call) else ""
                return _makes_another(self.table.function(called))
        return False

    # -- expressions that metadata decides ---------------------------------------------------

    def check_plain(self, node: cst.CSTNode) -> None:
        """Raises Withheld where an expression asks for more than metadata, or draws numbers."""
        match node:
            case cst.Name(value=name) if name in self.tensors:
                raise Withheld(f"a shape depends on the values of `{name}`")
            case cst.Attribute(value=cst.Name(value=name), attr=attribute):
                if name in self.tensors and attribute.value in METADATA:
                    return
                self.check_plain(node.value)
                return
            case cst.Call():
                self._check_call(node)
                return
            case cst.Subscript(slice=elements):
                if any(map(_may_be_mask, elements)):
                    raise Withheld("a shape depends on an index")
            case cst.Lambda() | cst.NamedExpr() | cst.BaseComp() | cst.Await() | cst.Yield():
                raise Withheld("a shape is computed by more than a plain expression")
        for child in node.children:
            self.check_plain(child)

    def _check_call(self, call: cst.Call) -> None:
        name = self._called(call.func)
        if not name:
            code = self.seen.module.tree.code_for_node(call.func)
            raise Withheld(f"the shape of what `{code}` makes is not known")
        about_metadata = name in MEASURES or name.startswith("new_") or name.endswith("_like")
        for part in (call.func, *(each.value for each in call.args)):
            inner = part.value if part is call.func and isinstance(part, cst.Attribute) else part
            is_argument = isinstance(inner, cst.Name) and inner.value in self.tensors
            if not (is_argument and about_metadata) and not isinstance(
                self.seen.value_of(inner), External
            ):
                self.check_plain(inner)

    def _called(self, function: cst.BaseExpression) -> str:
        """The short name of a function of torch, or of Python, whose result is plain."""
        value = self.seen.value_of(function)
        if isinstance(value, External) and value.name in PURE_BUILTINS:
            return value.name
        operator = None
        if isinstance(value, External):
            operator = self.table.function(value.name)
        elif isinstance(function, cst.Attribute) and not isinstance(value, Static):
            operator = self.table.method(function.attr.value)
        if operator is None:
            return ""
        short = operator.name.rpartition(".")[2]
        plain = not (operator.dynamic_shape or operator.reads or operator.breaks or operator.random)
        if not plain or short.endswith("_") or RANDOM_METHODS.match(short):
            return ""
        return short


def _makes_another(operator: Operation | None) -> bool:
    """Whether the result of an operator never shares memory with its argument."""
    if operator is None or operator.view or operator.mutates:
        return False
    name = operator.name.rpartition(".")[2]
    return not name.endswith("_") and name not in MAY_BE_THE_SAME


def _may_be_mask(element: cst.SubscriptElement) -> bool:
    """Whether an index may be anything but a number or a slice."""
    match element.slice:
        case cst.Slice():
            return False
        case cst.Index(value=cst.Integer() | cst.UnaryOperation(expression=cst.Integer())):
            return False
        case cst.Index(value=cst.Ellipsis() | cst.Name(value="None")):
            return False
    return True


# -- the results without their values --------------------------------------------------------


@dataclass(eq=False)
class _Fake:
    """The statements that decide on the metadata of the results."""

    reader: _Reader

    def statements(self) -> Sequence[cst.BaseStatement]:
        function = self.reader.function
        *body, last = (each for each in function.body.body if isinstance(each, cst.BaseStatement))
        local = scope.local_names(function) - scope.names_written(function.body)
        for each in self.reader.results:
            self.reader.check_plain(each)
        needed = [self._closure([each], body, local) for each in self.reader.results]
        for one, other in itertools.combinations(needed, 2):
            if any(self._makes_tensor(body[index]) for index in one & other):
                raise Withheld("two results may share their memory")
        kept = sorted(set().union(*needed))
        return [
            *(body[index].with_changes(leading_lines=()) for index in kept),
            last.with_changes(leading_lines=()),
        ]

    def _closure(
        self,
        nodes: Sequence[cst.CSTNode],
        body: Sequence[cst.CSTNode],
        parameters: frozenset[str],
    ) -> set[int]:
        """The numbers of the statements that bind what `nodes` read, and what those read."""
        function = self.reader.function
        local = scope.local_names(function)
        missing = (scope.names_read(*nodes) & local) - parameters
        found: set[int] = set()
        for index in range(len(body) - 1, -1, -1):
            statement = body[index]
            bound = scope.names_written(statement) & missing
            if not bound:
                continue
            value = _assigned(statement)
            if value is None:
                raise Withheld(f"`{min(bound)}` is bound by more than a plain assignment")
            self.reader.check_plain(value)
            found.add(index)
            missing = (missing - bound) | ((scope.names_read(value) & local) - parameters)
        if missing:
            raise Withheld(f"`{min(missing)}`, on which a shape depends, is not known")
        return found

    def _makes_tensor(self, statement: cst.CSTNode) -> bool:
        calls: Iterator[cst.Call] = found_in(statement, cst.Call)
        return any(self.reader._called(each.func) not in MEASURES for each in calls)


def _assigned(statement: cst.CSTNode) -> cst.BaseExpression | None:
    """The value of `name = value` or `a, b = value`."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[target], value=value)]):
            names = target.target
            parts = names.elements if isinstance(names, cst.Tuple) else ()
            nodes = [each.value for each in parts] or [names]
            return value if all(isinstance(each, cst.Name) for each in nodes) else None
        case cst.SimpleStatementLine(
            body=[cst.AnnAssign(target=cst.Name(), value=cst.BaseExpression() as value)]
        ):
            return value
    return None
