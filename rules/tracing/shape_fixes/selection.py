"""Where a selection `x[mask]` goes: element by element into a store through the same mask, or
into a sum. Then the whole tensor may go there, with something else where the mask is false."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.observations import Observation
from jitlint.analysis.tree import parents_of
from jitlint.analysis.values import Static, Tensor

from ..branch_fixes.flow import PLAIN_OPERATORS
from ..branch_fixes.profile import Describer
from ..branch_fixes.withheld import NotMine, Withheld
from ..read_fixes.places import operator_at, value_at
from .pointwise import CASTS, SAME_ON_A_LINE, SUMS

COUNTS = frozenset({"numel", "nelement", "size"})
FAIL_WHEN_EMPTY = frozenset({"max", "min", "amax", "amin", "argmax", "argmin", "aminmax"})

RETURNED = (
    "its size is the caller's to see: return the mask as well, or let the compiler take such "
    "sizes with `torch._dynamo.config.capture_dynamic_output_shape_ops = True`"
)


@dataclass(frozen=True, slots=True)
class Store:
    """`target[mask] = value`; `operator`: it is augmented."""

    statement: cst.Assign | cst.AugAssign
    item: cst.Subscript
    root: cst.BaseExpression

    @property
    def operator(self) -> type[cst.BaseBinaryOp] | None:
        if not isinstance(self.statement, cst.AugAssign):
            return None
        return PLAIN_OPERATORS.get(type(self.statement.operator))


@dataclass(frozen=True, slots=True)
class Reduction:
    """`name` reduces the whole of `root`; `node` is its call (or attribute)."""

    name: str
    node: cst.BaseExpression
    root: cst.BaseExpression


@dataclass(frozen=True, slots=True)
class Loss:
    """A loss of two selections; `by_rows`: of rows of scores and their classes."""

    name: str
    call: cst.Call
    by_rows: bool

    @property
    def operands(self) -> tuple[cst.BaseExpression, cst.BaseExpression]:
        first, second = self.call.args[:2]
        return first.value, second.value

    def option(self, name: str) -> cst.BaseExpression | None:
        found = (
            e.value for e in self.call.args if e.keyword is not None and e.keyword.value == name
        )
        return next(found, None)


Terminal = Store | Reduction | Loss

ZERO_AT_ZERO = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
"""Losses of two tensors that are 0 where both are."""
BY_ROWS = frozenset({"cross_entropy"})
OPTIONS = frozenset({"reduction", "beta", "delta", "weight", "ignore_index", "label_smoothing"})


@dataclass(eq=False)
class Selections:
    """All places to which the selections by one mask go."""

    observation: Observation
    describer: Describer
    mask: cst.BaseExpression
    terminals: list[Terminal] = field(default_factory=list)
    statements: set[cst.CSTNode] = field(default_factory=set)
    _done: set[cst.CSTNode] = field(default_factory=set)

    # -- masks -----------------------------------------------------------------------------

    def is_selection(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Subscript) and self.is_same(mask_of(node, self.describer))

    def is_same(self, mask: cst.BaseExpression | None) -> bool:
        return mask is not None and self.code(mask) == self.code(self.mask)

    # -- forwards --------------------------------------------------------------------------

    def follow(self, node: cst.BaseExpression) -> None:
        """Raises Withheld where the size of the selection is needed."""
        if node in self._done:
            return
        self._done.add(node)
        self.statements.add(scope.statement_of(node, self.describer.module))
        parent = self._parents[node]
        match parent:
            case cst.BinaryOperation() | cst.UnaryOperation():
                self.follow(parent)
            case cst.Comparison(comparisons=[_]):
                self.follow(parent)
            case cst.ComparisonTarget():
                self.follow(cst.ensure_type(self._parents[parent], cst.Comparison))
            case cst.Attribute():
                self._attribute(node, parent)
            case cst.Arg():
                self._argument(node, parent)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
                self._variable(name, parent)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript() as item)]):
                self._store(parent, item, node)
            case cst.AugAssign(target=cst.Subscript() as item) if parent.value is node:
                self._store(parent, item, node)
            case cst.Return() | cst.Element() | cst.DictElement() | cst.Yield():
                raise Withheld(f"`{self.code(node)}` is handed out, and {RETURNED}")
            case _:
                raise self._needs_size(parent)

    def _attribute(self, node: cst.BaseExpression, attribute: cst.Attribute) -> None:
        name = attribute.attr.value
        parent = self._parents[attribute]
        if isinstance(parent, cst.Call) and parent.func is attribute:
            self._method(node, name, parent)
        elif name == "shape":
            self._shape(node, attribute, parent)
        else:
            raise self._needs_size(attribute)

    def _shape(
        self, node: cst.BaseExpression, attribute: cst.Attribute, parent: cst.CSTNode
    ) -> None:
        """`x[mask].shape[0]`"""
        is_item = isinstance(parent, cst.Subscript) and parent.value is attribute
        if not is_item or self.code(cst.ensure_type(parent, cst.Subscript).slice[0]) != "0":
            raise self._needs_size(attribute)
        self.terminals.append(Reduction("numel", cst.ensure_type(parent, cst.Subscript), node))

    def _method(self, node: cst.BaseExpression, name: str, call: cst.Call) -> None:
        if name in SUMS and not call.args:
            self.terminals.append(Reduction(name, call, node))
        elif name in COUNTS and (not call.args) == (name != "size"):
            if name == "size" and self.code(call.args[0].value) != "0":
                raise self._needs_size(call)
            self.terminals.append(Reduction("numel", call, node))
        elif name in FAIL_WHEN_EMPTY:
            raise Withheld(
                f"`{name}` of nothing raises where the mask is false everywhere, and of a masked "
                "tensor it does not"
            )
        elif name in CASTS | SAME_ON_A_LINE or self._is_elementwise(call):
            self.follow(call)
        else:
            raise self._needs_size(call)

    def _argument(self, node: cst.BaseExpression, argument: cst.Arg) -> None:
        call = self._parents[argument]
        if not isinstance(call, cst.Call) or argument.star:
            raise self._needs_size(call)
        function = self.observation.value_of(call.func)
        operator = operator_at(self.describer, call)
        name = operator[0] if operator is not None else getattr(function, "name", "")
        if name == "builtins.len":
            self.terminals.append(Reduction("numel", call, node))
        elif operator is not None and not operator[1] and name in SUMS and len(call.args) == 1:
            self.terminals.append(Reduction(name, call, node))
        elif name in FAIL_WHEN_EMPTY:
            self._method(node, name, call)
        elif name in ZERO_AT_ZERO | BY_ROWS:
            self._loss(name, call)
        elif operator is None or self._is_elementwise(call):
            self.follow(call)
        else:
            raise self._needs_size(call)

    def _loss(self, name: str, call: cst.Call) -> None:
        keywords = [each.keyword.value for each in call.args if each.keyword is not None]
        if len(call.args) - len(keywords) != 2 or not OPTIONS.issuperset(keywords):
            raise self._needs_size(call)
        loss = Loss(name, call, name in BY_ROWS)
        reduction = loss.option("reduction")
        value = None if reduction is None else self.observation.value_of(reduction)
        if reduction is not None and getattr(value, "const", None) not in ("mean", "sum"):
            raise self._needs_size(call)
        if call not in self._done:
            self._done.add(call)
            self.terminals.append(loss)

    def _is_elementwise(self, call: cst.Call) -> bool:
        operator = operator_at(self.describer, call)
        if operator is None:
            return False
        row = self.describer.table.method(operator[0])
        value = self.observation.value_of(call.func)
        row = self.describer.table.function(getattr(value, "name", "")) or row
        return row is not None and row.elementwise

    def _variable(self, name: str, statement: cst.Assign) -> None:
        module = self.describer.module
        function = scope.function_of(statement, module)
        if function is None or name in scope.shared_names(function):
            raise Withheld(f"`{name}` may be read by other functions")
        place = scope.statement_of(statement, module)
        for read in scope.reads(function):
            if read.value != name:
                continue
            definition = scope.definition_read(read, module)
            if definition.place is place:
                self.follow(read)
            elif definition.origin is scope.Origin.UNCLEAR:
                raise Withheld(f"`{name}` may have another value as well")

    def _store(
        self, statement: cst.Assign | cst.AugAssign, item: cst.Subscript, root: cst.BaseExpression
    ) -> None:
        if not self.is_same(mask_of(item, self.describer)):
            raise Withheld(f"`{self.code(item)}` is written through another mask, or none")
        self.terminals.append(Store(statement, item, root))

    # -- helpers ---------------------------------------------------------------------------

    @property
    def _parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        return parents_of(self.describer.module)

    def code(self, node: cst.CSTNode) -> str:
        return " ".join(self.describer.code(node).split())

    def _needs_size(self, node: cst.CSTNode) -> Withheld:
        code = self.code(node)
        short = code if len(code) <= 40 else code[:39] + "…"
        return Withheld(f"`{short}` needs the selection itself, whose size depends on data")


def mask_of(node: cst.Subscript, describer: Describer) -> cst.BaseExpression | None:
    """The one index of `x[mask]`, if it is a tensor of truth values."""
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=index, star=None))]:
            value = value_at(describer, index)
            if isinstance(value, Tensor) and value.is_bool and not value.maybe:
                return index
    return None


def store_of(node: cst.Subscript, describer: Describer) -> Store:
    """The statement `x[mask] = …` whose target is `node`. Raises NotMine."""
    parents = parents_of(describer.module)
    parent = parents[node]
    match parent:
        case cst.AugAssign(value=value) if parent.target is node:
            return Store(parent, node, value)
        case cst.AssignTarget():
            statement = cst.ensure_type(parents[parent], cst.Assign)
            if len(statement.targets) == 1:
                return Store(statement, node, statement.value)
    raise NotMine


def is_number(describer: Describer, node: cst.BaseExpression) -> bool:
    return isinstance(value_at(describer, node), Static)
