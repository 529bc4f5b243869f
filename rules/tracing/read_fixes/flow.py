"""Where a number goes that was read from a tensor, and whether a tensor may go there.

The number is followed through Python arithmetic and plain variables until it acts on a
tensor. What is on its way becomes a condition, or forbids the rewrite.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.observations import Observation
from jitlint.analysis.tree import parents_of
from jitlint.analysis.values import External, Framework, Source, Static, Tensor

from ..branch_fixes.arms import parenthesized
from ..branch_fixes.emit import TIGHT
from ..branch_fixes.profile import Describer
from ..branch_fixes.withheld import Withheld
from ..shape_fixes import indexing
from . import uses
from .places import operator_at, value_at
from .reads import Read, read_of
from .rewriting import Edits, method

EXACT = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo)
"""Operators that compute the same with a number and a tensor of rank 0 on the right
(measured bit by bit, with their gradients)."""
EXACT_REFLECTED = (cst.Add, cst.Subtract, cst.Multiply)
IN_PLACE = (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign, cst.DivideAssign)

TAKES_EITHER: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("add", "sub", "mul", "div", "true_divide", "multiply", "subtract"), (1,)),
    **dict.fromkeys(("add_", "sub_", "mul_", "div_", "fmod", "remainder"), (1,)),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), (1,)),
    **dict.fromkeys(("clamp", "clip", "clamp_min", "clamp_max"), (1,)),
    **dict.fromkeys(("masked_fill", "masked_fill_"), (2,)),
    "fill_": (1,),
    "where": (1, 2),
}
"""Positions in which operators take a number or a tensor, and do the same with both
(measured likewise)."""
CLAMPS = frozenset({"clamp", "clip"})
BOUNDS = frozenset({"min", "max"})
KEEP_DTYPE = frozenset({"masked_fill", "masked_fill_", "fill_"})


@dataclass(frozen=True, slots=True)
class Encounter:
    """A number acts on the tensor `partner`; `promotes`: the dtypes of both decide."""

    partner: cst.BaseExpression
    promotes: bool = True


@dataclass(eq=False)
class Flow:
    """All places to which some numbers go together.

    `computes`: Python does arithmetic with them, which is float64; `floats`: that makes
    floating-point numbers of whole ones; `is_open`: or may do so.
    """

    observation: Observation
    describer: Describer
    edits: Edits
    reads: list[Read] = field(default_factory=list)
    encounters: list[Encounter] = field(default_factory=list)
    conditions: dict[str, None] = field(default_factory=dict)
    computes: bool = False
    floats: bool = False
    is_open: bool = False
    statements: set[cst.CSTNode] = field(default_factory=set)
    _done: set[cst.CSTNode] = field(default_factory=set)
    _indices: list[tuple[cst.BaseExpression, cst.Subscript]] = field(default_factory=list)

    def start(self, read: Read) -> None:
        self.reads.append(read)
        self._follow(read.node)

    # -- forwards --------------------------------------------------------------------------

    def _follow(self, node: cst.BaseExpression) -> None:
        """See where the value of `node` goes. Raises Withheld where no tensor may go."""
        if node in self._done:
            return
        self._done.add(node)
        self.statements.add(self._statement(node))
        parent = self._parents[node]
        match parent:
            case cst.BinaryOperation():
                self._binary(node, parent)
            case cst.UnaryOperation(operator=cst.Minus() | cst.Plus()):
                self._follow(parent)
            case cst.Comparison(comparisons=[target]) if parent.left is node:
                self._compared(target.operator, target.comparator, parent)
            case cst.ComparisonTarget():
                comparison = cst.ensure_type(self._parents[parent], cst.Comparison)
                is_chain = len(comparison.comparisons) > 1
                other = parent.comparator if is_chain else comparison.left
                self._compared(parent.operator, other, parent)
            case cst.Arg():
                self._argument(node, parent)
            case cst.Index(star=None):
                self._index(node, parent)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
                self._variable(name, parent)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript() as item)]):
                self._stored(item, parent)
            case cst.AugAssign(target=target) if parent.value is node:
                if not isinstance(parent.operator, IN_PLACE) or not self._is_tensor(target):
                    raise self._reason(parent)
                self.encounters.append(Encounter(target))
            case _:
                raise self._reason(parent)

    def _binary(self, node: cst.BaseExpression, parent: cst.BinaryOperation) -> None:
        is_left = parent.left is node
        other = parent.right if is_left else parent.left
        if not self._is_tensor(other):
            self._require_number(other)
            self._pull(other)
            self._computed(parent, other, is_left)
            self._follow(parent)
            return
        if not isinstance(parent.operator, EXACT_REFLECTED if is_left else EXACT):
            if not isinstance(parent.operator, cst.Divide):
                raise self._reason(parent)
            self._require(f"the last digit of `{self._code(parent)}` does not matter")
        self.encounters.append(Encounter(other))

    def _computed(
        self, node: cst.BinaryOperation, other: cst.BaseExpression, is_left: bool
    ) -> None:
        """Arithmetic of Python that a float64 tensor does too, but for its errors."""
        self.computes = True
        value = value_at(self.describer, other)
        const = value.const if isinstance(value, Static) else None
        is_known = isinstance(const, int | float)
        match node.operator:
            case cst.Add() | cst.Subtract() | cst.Multiply():
                self.floats |= isinstance(const, float)
            case cst.Divide():
                self.floats = True
                if not (is_left and is_known and const != 0):
                    self._require(f"`{self._code(node.right)}` is never 0")
            case cst.Power() if is_left and type(const) is int and const == 2:
                pass
            case _:
                raise self._reason(node)
        is_python = isinstance(value, Static) and value.source is Source.PYTHON
        self.is_open |= is_python and not is_known

    def _compared(
        self, operator: cst.BaseCompOp, other: cst.BaseExpression, parent: cst.CSTNode
    ) -> None:
        if isinstance(operator, cst.Is | cst.IsNot | cst.In | cst.NotIn):
            raise self._reason(parent)
        if not self._is_tensor(other):
            raise self._reason(parent)
        self.encounters.append(Encounter(other))

    def _argument(self, node: cst.BaseExpression, argument: cst.Arg) -> None:
        call = self._parents[argument]
        if not isinstance(call, cst.Call) or argument.star:
            raise self._reason(call)
        function = self.observation.value_of(call.func)
        if isinstance(function, External) and function.name.startswith("builtins."):
            self._builtin(function.name.removeprefix("builtins."), node, call)
            return
        operator = operator_at(self.describer, call)
        if operator is None:
            raise self._passed(call)
        self._operator(*operator, argument, call)

    def _operator(self, name: str, is_method: bool, argument: cst.Arg, call: cst.Call) -> None:
        """An operator of torch; the receiver of a method is its argument 0."""
        arguments = [each.value for each in call.args]
        if is_method:
            arguments.insert(0, cst.ensure_type(call.func, cst.Attribute).value)
        keyword = argument.keyword.value if argument.keyword is not None else None
        position = next(i for i, each in enumerate(arguments) if each is argument.value)
        is_bound = name in CLAMPS and keyword in BOUNDS
        if not (is_bound or (keyword is None and position in TAKES_EITHER.get(name, ()))):
            raise self._passed(call)
        if name in CLAMPS and len(arguments) > 2:
            raise Withheld(f"`{self._code(call.func)}` takes two numbers or two tensors, not both")
        others = arguments[1:] if name == "where" else arguments[:1]
        partner = next((each for each in others if each is not argument.value), None)
        if partner is None or not self._is_tensor(partner):
            raise self._passed(call)
        self.encounters.append(Encounter(partner, promotes=name not in KEEP_DTYPE))

    def _builtin(self, name: str, node: cst.BaseExpression, call: cst.Call) -> None:
        arguments = [each.value for each in call.args if each.keyword is None]
        if len(arguments) != len(call.args):
            raise self._passed(call)
        match name, arguments:
            case "abs", [_]:
                self._follow(call)
            case "float", [_]:
                self.floats = self.computes = True
                self.edits.add(call, _only_argument)
                self._follow(call)
            case (("max" | "min"), [first, second]):
                self._extreme(name, second if first is node else first, node, call)
            case (("int" | "range" | "slice"), _):
                raise Withheld(uses.SIZE)
            case (("str" | "repr" | "format" | "print"), _):
                raise Withheld(uses.SHOWN)
            case _:
                raise self._passed(call)

    def _extreme(
        self, name: str, other: cst.BaseExpression, node: cst.BaseExpression, call: cst.Call
    ) -> None:
        """`max(number, 1e-6)` becomes `number.clamp(min=1e-6)`: both keep a NaN that is first."""
        value = self.observation.value_of(other)
        if not isinstance(value, Static) or not isinstance(value.const, int | float):
            raise self._passed(call)
        position = 0 if call.args[0].value is node else 1
        if position == 1:
            self._require(f"`{self._code(node)}` is not NaN")
        self.computes = True
        self.floats |= isinstance(value.const, float)
        bound = "min" if name == "max" else "max"
        self.edits.add(call, lambda new: _clamped(cst.ensure_type(new, cst.Call), position, bound))
        self._follow(call)

    def _variable(self, name: str, statement: cst.Assign) -> None:
        """All uses of a variable that this assignment, and no other, gives its value."""
        function = scope.function_of(statement, self._module)
        if function is None or name in scope.shared_names(function):
            raise Withheld(uses.STORED)
        place = self._statement(statement)
        for read in scope.reads(function):
            if read.value != name:
                continue
            definition = scope.definition_read(read, self._module)
            if definition.place is place:
                self._follow(read)
            elif definition.origin is scope.Origin.UNCLEAR:
                raise Withheld(f"`{name}` may have another value as well")

    def _index(self, node: cst.BaseExpression, index: cst.Index) -> None:
        """`x[number]`, of a tensor"""
        item = self._parents[self._parents[index]]
        if not isinstance(item, cst.Subscript) or not self._is_tensor(item.value):
            raise self._reason(index)
        if isinstance(self._parents[item], cst.AssignTarget | cst.AugAssign):
            raise self._reason(index)
        for condition in indexing.conditions_of_index(self.describer, item, node):
            self._require(condition)
        self._indices.append((node, item))

    def finish(self) -> None:
        """Index by tensors of rank 1, which nothing reads."""
        for node, item in self._indices:
            self.edits.wrap(
                node, lambda new: method(parenthesized(new), "reshape", cst.Integer("1"))
            )
            indexing.add_squeeze(item, self.describer, self.edits)

    def _stored(self, item: cst.Subscript, statement: cst.Assign) -> None:
        """`x[0] = number`"""
        indices = [each.slice for each in item.slice]
        is_plain = all(
            isinstance(each, cst.Slice)
            or (isinstance(each, cst.Index) and self._is_number(each.value))
            for each in indices
        )
        if not is_plain or not self._is_tensor(item.value):
            raise self._reason(statement)
        self.encounters.append(Encounter(item.value, promotes=False))

    # -- backwards -------------------------------------------------------------------------

    def _pull(self, node: cst.BaseExpression) -> None:
        """Make a tensor of a number to which other reads contribute."""
        if node in self._done:
            return
        read = read_of(node, self.observation)
        if read is not None:
            self.reads.append(read)
            return
        if not self._is_data(node):
            return
        match node:
            case cst.BinaryOperation(left=left, right=right):
                for one, other in ((left, right), (right, left)):
                    self._pull(one)
                    if self._is_data(one):
                        self._computed(node, other, one is left)
            case cst.UnaryOperation(operator=cst.Minus() | cst.Plus(), expression=inner):
                self._pull(inner)
            case cst.Name(value=name):
                definition = scope.definition_read(node, self._module)
                if definition.value is None:
                    raise Withheld(f"`{name}` may have another value as well")
                self._done.add(node)
                self._pull(definition.value)
                self._follow(definition.value)
            case _:
                raise Withheld(f"`{self._code(node)}` is read from a tensor as well")

    # -- what is known ---------------------------------------------------------------------

    @property
    def _module(self) -> cst.Module:
        return self.describer.module

    @property
    def _parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        return parents_of(self._module)

    def _statement(self, node: cst.CSTNode) -> cst.CSTNode:
        return scope.statement_of(node, self._module)

    def _code(self, node: cst.CSTNode) -> str:
        return " ".join(self.describer.code(node).split())

    def _require(self, condition: str) -> None:
        self.conditions[condition] = None

    def _reason(self, parent: cst.CSTNode) -> Withheld:
        return Withheld(uses.reason(parent, self._module))

    def _passed(self, call: cst.Call) -> Withheld:
        return Withheld(uses.PASSED.format(code=self._code(call.func)))

    def _is_data(self, node: cst.BaseExpression) -> bool:
        value = value_at(self.describer, node)
        return isinstance(value, Static) and value.source is Source.DATA

    def _is_number(self, node: cst.BaseExpression) -> bool:
        return isinstance(value_at(self.describer, node), Static)

    def _is_tensor(self, node: cst.BaseExpression) -> bool:
        value = value_at(self.describer, node)
        if isinstance(value, Tensor) and value.framework is not Framework.TORCH:
            raise Withheld(f"`{self._code(node)}` is a NumPy array, which takes numbers only")
        return isinstance(value, Tensor) and not value.maybe

    def _require_number(self, node: cst.BaseExpression) -> None:
        if not self._is_number(node):
            raise Withheld(f"`{self._code(node)}` is not known to be a tensor or a number")


def _only_argument(new: cst.BaseExpression) -> cst.BaseExpression:
    """`float(number)` is the number."""
    return parenthesized(cst.ensure_type(new, cst.Call).args[0].value)


def _clamped(new: cst.Call, position: int, bound: str) -> cst.BaseExpression:
    number, limit = new.args[position].value, new.args[1 - position].value
    argument = cst.Arg(limit, keyword=cst.Name(bound), equal=TIGHT)
    return cst.Call(cst.Attribute(parenthesized(number), cst.Name("clamp")), [argument])
