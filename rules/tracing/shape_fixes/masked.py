"""`x[mask]` that goes into a masked store or a sum becomes `torch.where`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import libcst as cst
from libcst.helpers import parse_template_expression

from jitlint.analysis import scope
from jitlint.analysis.observations import Operation
from jitlint.analysis.tree import ancestors_of, contains, parents_of
from jitlint.analysis.values import Static
from jitlint.finding import Fix, Replacement
from jitlint.layout import INDENT
from jitlint.rule import Context

from ..branch_fixes.arms import bare, parenthesized
from ..branch_fixes.dtypes import NOTHING
from ..branch_fixes.effects import writes_in_place
from ..branch_fixes.emit import LINE_LENGTH, TIGHT, Writer, conditional_fix
from ..branch_fixes.profile import Describer, Profile
from ..branch_fixes.uses import VALUES, use_of
from ..branch_fixes.withheld import NotMine, Withheld
from ..read_fixes.places import described, kept, value_at
from ..read_fixes.promotion import Category
from ..read_fixes.rewriting import Edits, method
from .counting import with_argument
from .indexing import subscript_of
from .pointwise import Element, Pointwise, Singular
from .selection import Loss, Reduction, Selections, Store, is_number, mask_of, store_of

GUARDS = (1, 0, 2)
"""Numbers for the operands where the mask is false; the first that does is taken."""
ORDER = "the order of a sum does not matter"
FINITE_SUM = "the sum does not overflow"
"""As one of 70,000 elements of float16 may, of which torch computes the mean in float32."""
ADD_UP = frozenset({"sum", "nansum", "mean"})
OPERATIONS = (
    cst.BinaryOperation,
    cst.UnaryOperation,
    cst.Comparison,
    cst.ComparisonTarget,
    cst.Attribute,
)


def masked(operation: Operation, ctx: Context) -> Fix:
    """Computes with the whole tensor, and chooses by the mask."""
    node = subscript_of(operation.node, ctx.module)
    if node is None:
        raise NotMine
    describer = Describer(operation, scope.statement_of(node, ctx.module))
    mask = mask_of(node, describer)
    if mask is None:
        raise NotMine
    return _Masking(operation, describer, node, Selections(operation, describer, mask)).fix()


FIXERS: tuple[Callable[[Operation, Context], Fix], ...] = (masked,)


@dataclass(eq=False)
class _Masking:
    """The selections by one mask, on their way to whole tensors."""

    operation: Operation
    describer: Describer
    node: cst.Subscript
    selections: Selections
    conditions: dict[str, None] = field(default_factory=dict)
    by_rows: bool = False
    unlike: dict[str, None] = field(default_factory=dict)
    """Tensors that are not known to have the shape of the mask."""

    def fix(self) -> Fix:
        self._follow()
        pointwise = self._pointwise()
        self._check_mask()
        self._check_layers(pointwise)
        pointwise.singular = pointwise.singular or self._may_change()
        edits = Edits(self.describer.module)
        for call in pointwise.dropped:
            edits.add(call, _receiver)
        for node in sorted(pointwise.selections, key=self._code):
            assert isinstance(node, cst.Subscript)
            self._check_shape(node.value)
            if pointwise.singular and self._is_bool(node.value):
                raise Withheld(f"`{self._code(node.value)}` is bool, and has no number to spare")
            edits.add(node, self._whole(pointwise))
        for terminal in self.selections.terminals:
            if isinstance(terminal, Reduction):
                self._reduce(terminal, edits)
            elif isinstance(terminal, Loss):
                self._lose(terminal, edits)
                if terminal.by_rows:
                    self._check_rows(terminal)
        replacements: dict[cst.CSTNode, Replacement] = dict(self._stores(edits, pointwise))
        replacements |= edits.replacements()
        for store in self._stored:
            replacements = {
                node: new
                for node, new in replacements.items()
                if node is store.statement or not contains(store.statement, node)
            }
        if self.unlike and not self.by_rows:
            mask = self._code(self.selections.mask)
            shape = f"`{mask}` has the shape of `{'` and `'.join(self.unlike)}`"
            self.conditions = {shape: None} | self.conditions
        return conditional_fix(
            f"Choose by `{self._code(self.selections.mask)}` with `{self._code(self._where)}`",
            self.conditions,
            replacements,
            self.spelling.imports(),
        )

    # -- what there is ---------------------------------------------------------------------

    def _follow(self) -> None:
        try:
            store = store_of(self.node, self.describer)
        except NotMine:
            self.selections.follow(self.node)
        else:
            self.selections.terminals.append(store)

    def _pointwise(self) -> Pointwise:
        """The steps of all expressions, with the first guard that does."""
        refused: Withheld | None = None
        for guard in GUARDS:
            found = Pointwise(self.describer, set(), self.selections.is_selection, guard)
            try:
                self._evaluate(found)
            except Singular as reason:
                refused = refused or reason
                continue
            return found
        assert refused is not None
        raise refused

    def _evaluate(self, pointwise: Pointwise) -> None:
        """One terminal after another; variables on the way may lead to more."""
        for terminal in self.selections.terminals:
            if isinstance(terminal, Loss):
                self._check_loss(terminal, pointwise)
                continue
            found = pointwise.element(terminal.root)
            if isinstance(terminal, Store):
                self._check_stored(terminal, found.selected)
                self._check_operator(terminal, found, pointwise)
            while pointwise.found:
                self.selections.follow(pointwise.found.pop())

    def _check_operator(self, store: Store, value: Element, pointwise: Pointwise) -> None:
        """`x[mask] /= y[mask]`"""
        if isinstance(store.statement, cst.Assign):
            return
        if store.operator not in (cst.Add, cst.Subtract, cst.Multiply, cst.Divide):
            raise Withheld(f"`{self._code(store.statement)}` has no form for a mask")
        if value.selected and store.operator in (cst.Multiply, cst.Divide):
            pointwise.singular = True
        if value.selected and store.operator is cst.Divide:
            pointwise.require_apart_from_zero(value, store.root)

    def _check_loss(self, loss: Loss, pointwise: Pointwise) -> None:
        """Where the mask is false, both operands are 0, and the loss is."""
        if loss.by_rows:
            if not all(map(self.selections.is_selection, loss.operands)):
                raise Withheld(f"`{self._code(loss.call)}` is not given selections as they are")
            return
        if not all(pointwise.element(each).selected for each in loss.operands):
            raise Withheld(f"`{self._code(loss.call)}` has an operand that the mask did not select")
        if pointwise.guard != 0:
            raise Singular("both operands of a loss have to be 0 where the mask is false")
        pointwise.singular = True

    def _check_stored(self, store: Store, selected: bool) -> None:
        if selected or is_number(self.describer, store.root):
            return
        found = described(self.describer, store.root)
        if not isinstance(found, Profile) or found.shape:
            raise Withheld(f"`{self._code(store.root)}` has one element for each true one")

    @property
    def _stored(self) -> list[Store]:
        return [each for each in self.selections.terminals if isinstance(each, Store)]

    # -- conditions ------------------------------------------------------------------------

    def _check_mask(self) -> None:
        """The mask is computed where the selections were, and where they go."""
        mask = self.selections.mask
        if len(self.selections.statements) <= 1:
            return
        function = scope.function_of(self.node, self.describer.module)
        if not isinstance(mask, cst.Name) or function is None:
            raise Withheld(f"give the mask `{self._code(mask)}` a name: it is needed again later")
        places = [
            scope.definition_of(mask.value, place, self.describer.module).place
            for place in self.selections.statements
        ]
        if any(place is not places[0] for place in places):
            raise Withheld(f"`{mask.value}` has another value where the selection is used")

    def _check_layers(self, pointwise: Pointwise) -> None:
        """Layers are given all rows: then each must be computed from its own."""
        self.by_rows = bool(pointwise.layers)
        if self.by_rows and len(self._stored) < len(self.selections.terminals):
            raise Withheld(f"`{self._code(pointwise.layers[0].func)}` may mix what is selected")
        for layer in dict.fromkeys(self._code(each.func) for each in pointwise.layers):
            self._require(f"`{layer}` treats every row alone and draws no random numbers")

    def _may_change(self) -> bool:
        """Whether a variable holds a selection, and tensors are written into: a selection is a
        copy, and the whole tensor is not."""
        function = scope.function_of(self.node, self.describer.module)
        several = len(self.selections.statements) > 1
        return several and (function is None or writes_in_place(function))

    def _check_shape(self, tensor: cst.BaseExpression) -> None:
        mask, own = (described(self.describer, each) for each in (self.selections.mask, tensor))
        if isinstance(mask, Profile) and isinstance(own, Profile) and mask.shape == own.shape:
            return
        self.unlike[self._code(tensor)] = None

    def _check_rows(self, loss: Loss) -> None:
        classes = cst.ensure_type(loss.operands[1], cst.Subscript).value
        self._check_shape(classes)
        if kept(self.describer, classes).category(NOTHING) is not Category.WHOLE:
            self._require(f"`{self._code(classes)}` holds indices of classes")

    def _check_arithmetic(self, store: Store) -> None:
        """In place, whole numbers do not become floating ones."""
        value = value_at(self.describer, store.root)
        is_float = isinstance(value, Static) and type(value.const) is not int
        if is_float or store.operator is cst.Divide:
            target = kept(self.describer, store.item.value)
            if target.category(NOTHING) is not Category.FLOATING:
                self._require(f"`{target.code}` is floating")

    def _is_bool(self, tensor: cst.BaseExpression) -> bool:
        return kept(self.describer, tensor).category(NOTHING) is Category.BOOL

    def _require(self, *conditions: str) -> None:
        self.conditions.update(dict.fromkeys(conditions))

    # -- new code --------------------------------------------------------------------------

    @cached_property
    def spelling(self) -> scope.Spelling:
        return scope.Spelling(self.operation.module, self.operation.node)

    @property
    def _where(self) -> cst.BaseExpression:
        return self.spelling.of("where")

    def _chosen(
        self,
        value: cst.BaseExpression,
        other: cst.BaseExpression,
        like: cst.BaseExpression | None = None,
    ) -> cst.Call:
        """`torch.where`; of rows, the mask gets the dimensions of `like`."""
        mask = bare(self.selections.mask)
        if self.by_rows and like is not None:
            mask = parse_template_expression(
                "{mask}.reshape({mask}.shape + (1,) * ({like}.ndim - {mask}.ndim))",
                mask=parenthesized(self.selections.mask),
                like=parenthesized(like),
            )
        arguments = (mask, bare(value), bare(other))
        return cst.Call(self._where, [cst.Arg(each.deep_clone()) for each in arguments])

    def _whole(self, pointwise: Pointwise) -> Callable[[cst.BaseExpression], cst.BaseExpression]:
        def whole(new: cst.BaseExpression) -> cst.BaseExpression:
            tensor = cst.ensure_type(new, cst.Subscript).value
            if not pointwise.singular:
                return parenthesized(tensor)
            return self._chosen(tensor, cst.Integer(str(pointwise.guard)), tensor)

        return whole

    def _reduce(self, terminal: Reduction, edits: Edits) -> None:
        mask = parenthesized(self.selections.mask)
        count = method(mask.deep_clone(), "sum")
        name = terminal.name
        if name == "numel":
            raise Withheld(
                f"`{self._code(terminal.node)}` is a Python number: count with "
                f"`{self._code(count)}` where a tensor will do"
            )
        if name in ADD_UP and not self._is_exact(terminal.root):
            self._require(ORDER)
        if name == "mean":
            self._require(FINITE_SUM)
        call = cst.ensure_type(terminal.node, cst.Call)
        is_method = isinstance(call.func, cst.Attribute) and call.func.value is terminal.root
        is_operand = isinstance(parents_of(self.describer.module)[call], OPERATIONS)

        def reduced(new: cst.BaseExpression) -> cst.BaseExpression:
            call = cst.ensure_type(new, cst.Call)
            value = _receiver(call) if is_method else call.args[0].value
            result = self._reduced(name, value, mask, count)
            return parenthesized(result) if is_operand else result

        edits.add(terminal.node, reduced)

    def _lose(self, loss: Loss, edits: Edits) -> None:
        self._require(ORDER)
        if loss.by_rows:
            edits.add(loss.call, lambda new: self._lost_rows(loss))
            return
        for node in loss.operands:
            if not self.selections.is_selection(node):
                edits.add(node, lambda new: self._chosen(new, cst.Integer("0")))
        is_operand = isinstance(parents_of(self.describer.module)[loss.call], OPERATIONS)

        def lost(new: cst.BaseExpression) -> cst.BaseExpression:
            call = cst.ensure_type(new, cst.Call)
            is_sum = self._is_sum(loss.option("reduction"))
            if is_sum:
                return call
            self._require(FINITE_SUM)
            total = call.with_changes(args=_with_sum(call.args))
            count = method(parenthesized(self.selections.mask), "sum")
            mean = cst.BinaryOperation(total, cst.Divide(), count)
            return parenthesized(mean) if is_operand else mean

        edits.add(loss.call, lost)

    def _is_sum(self, reduction: cst.BaseExpression | None) -> bool:
        value = None if reduction is None else self.operation.value_of(reduction)
        return isinstance(value, Static) and value.const == "sum"

    def _lost_rows(self, loss: Loss) -> cst.Call:
        """`cross_entropy(scores[mask], classes[mask])` leaves out classes of -100 itself."""
        scores, classes = (cst.ensure_type(each, cst.Subscript).value for each in loss.operands)
        left_out = loss.option("ignore_index") or cst.parse_expression("-100")
        inverse = cst.UnaryOperation(cst.BitInvert(), parenthesized(self.selections.mask))
        last = cst.parse_expression("-1")
        column = method(parenthesized(self.selections.mask), "unsqueeze", last)
        finite = cst.Call(
            self._where, [cst.Arg(each) for each in (column, bare(scores), cst.Integer("0"))]
        )
        rows = method(finite, "flatten", cst.Integer("0"), cst.parse_expression("-2"))
        kept_classes = method(parenthesized(classes), "masked_fill", inverse, left_out)
        first, second, *rest = loss.call.args
        arguments = [
            first.with_changes(value=rows),
            second.with_changes(value=method(kept_classes, "flatten")),
        ]
        return loss.call.with_changes(args=[*arguments, *rest])

    def _reduced(
        self,
        name: str,
        value: cst.BaseExpression,
        mask: cst.BaseExpression,
        count: cst.BaseExpression,
    ) -> cst.BaseExpression:
        if name == "any":
            both = cst.BinaryOperation(parenthesized(value), cst.BitAnd(), mask)
            return method(parenthesized(both), name)
        if name == "all":
            inverse = cst.UnaryOperation(cst.BitInvert(), mask)
            both = cst.BinaryOperation(parenthesized(value), cst.BitOr(), inverse)
            return method(parenthesized(both), name)
        chosen = self._chosen(value, cst.Integer("0"))
        if name == "mean":
            return cst.BinaryOperation(method(chosen, "sum"), cst.Divide(), count)
        return method(chosen, name)

    def _is_exact(self, root: cst.BaseExpression) -> bool:
        """Whether whole numbers are added, which may be done in any order."""
        if self.selections.is_selection(root):
            root = cst.ensure_type(root, cst.Subscript).value
        if isinstance(root, cst.Comparison):
            return True
        return kept(self.describer, root).category(NOTHING) in (Category.WHOLE, Category.BOOL)

    def _stores(
        self, edits: Edits, pointwise: Pointwise
    ) -> "list[tuple[cst.CSTNode, cst.CSTNode]]":
        return [(each.statement, self._store(each, edits, pointwise)) for each in self._stored]

    def _store(self, store: Store, edits: Edits, pointwise: Pointwise) -> cst.CSTNode:
        target = store.item.value
        self._check_shape(target)
        value = edits.rewritten(store.root)
        assert isinstance(value, cst.BaseExpression)
        if store.operator is not None:
            self._check_arithmetic(store)
            guard = cst.Integer(str(pointwise.guard))
            is_linear = store.operator in (cst.Add, cst.Subtract)
            is_plain = is_linear or not pointwise.singular
            own = target if is_plain else self._chosen(target, guard, target)
            value = cst.BinaryOperation(own, store.operator(), parenthesized(value))
        semicolon = store.statement.semicolon
        if store.operator is None and is_number(self.describer, store.root):
            filled = method(target, "masked_fill_", bare(self.selections.mask), value)
            return cst.Expr(filled, semicolon)
        chosen: cst.BaseExpression = self._chosen(value, target, target)
        if isinstance(target, cst.Name) and self._is_private(target, store):
            if self._is_long(store, chosen):
                chosen = Writer(self.spelling, 1).call(
                    "where", [each.value for each in cst.ensure_type(chosen, cst.Call).args], 0
                )
            return cst.Assign([cst.AssignTarget(target)], chosen, semicolon)
        return cst.Expr(method(target, "copy_", chosen), semicolon)

    def _is_long(self, store: Store, new: cst.CSTNode) -> bool:
        """Whether a line with the new value is too long."""
        around = ancestors_of(store.statement, self.describer.module)
        indent = sum(isinstance(each, cst.IndentedBlock) for each in around) * len(INDENT)
        name = self._code(store.item.value)
        return indent + len(f"{name} = {self._code(new)}") > LINE_LENGTH

    def _is_private(self, target: cst.Name, store: Store) -> bool:
        """Whether nobody else holds the tensor that is written to: it may become another."""
        found = described(self.describer, target)
        if not isinstance(found, Profile) or not found.fresh:
            return False
        function = scope.function_of(target, self.describer.module)
        if function is None or target.value in scope.shared_names(function):
            return False
        return all(
            use_of(self.describer, read) in VALUES
            for read in _reads_before(store.statement, target.value, function, self.describer)
        )

    def _code(self, node: cst.CSTNode) -> str:
        return " ".join(self.describer.code(node).split())


def _reads_before(
    statement: cst.CSTNode, name: str, function: cst.CSTNode, describer: Describer
) -> list[cst.Name]:
    """Reads of a variable up to a statement, or to the end of the loops around it; but for
    selections and stores by a mask."""
    place = scope.statement_of(statement, describer.module)
    for node in ancestors_of(place, describer.module):
        if node is function:
            break
        if isinstance(node, cst.For | cst.While):
            place = node
    found: list[cst.Name] = []
    last = 0
    for read in scope.reads(function):
        if read.value == name and not _is_masked(read, describer):
            found.append(read)
        if contains(place, read):
            last = len(found)
    return found[:last]


def _is_masked(read: cst.Name, describer: Describer) -> bool:
    """`x[mask]` is a copy, or a store."""
    parent = parents_of(describer.module)[read]
    return isinstance(parent, cst.Subscript) and mask_of(parent, describer) is not None


def _with_sum(arguments: Sequence[cst.Arg]) -> list[cst.Arg]:
    """The arguments of a loss with `reduction="sum"`."""
    kept_ones = [e for e in arguments if e.keyword is None or e.keyword.value != "reduction"]
    if len(kept_ones) < len(arguments):
        return [
            each
            if each.keyword is None or each.keyword.value != "reduction"
            else each.with_changes(value=cst.SimpleString('"sum"'))
            for each in arguments
        ]
    new = cst.Arg(cst.SimpleString('"sum"'), keyword=cst.Name("reduction"), equal=TIGHT)
    return with_argument(arguments, new)


def _receiver(new: cst.BaseExpression) -> cst.BaseExpression:
    call = cst.ensure_type(new, cst.Call)
    return cst.ensure_type(call.func, cst.Attribute).value
