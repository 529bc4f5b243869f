"""Branches whose arms write into a tensor: the write happens always, of the old value too."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.helpers import parse_template_expression

from jitlint.analysis.observations import TruthTest
from jitlint.analysis.scope import Spelling, fresh_name
from jitlint.analysis.values import ExternalMethod, Tensor
from jitlint.finding import Fix, Replacement, Safety
from jitlint.rule import Context

from .arms import bare, parenthesized
from .dtypes import FLOATING
from .flow import (
    PLAIN_OPERATORS,
    asking,
    assignment,
    code_of,
    comments_in,
    place_of,
    small_statements,
)
from .predicate import Predicate, conjunction, is_tensor_test, predicate
from .profile import Describer, Number, Profile, plain
from .withheld import NotMine, Withheld

ARITHMETIC: dict[str, type[cst.BaseBinaryOp]] = {
    "add_": cst.Add,
    "sub_": cst.Subtract,
    "mul_": cst.Multiply,
    "div_": cst.Divide,
}


@dataclass(frozen=True, slots=True)
class Write:
    """`value` is written into the tensor `target`, or into those of its items that it names."""

    statement: cst.BaseSmallStatement
    target: cst.BaseExpression
    value: cst.BaseExpression


def written(test: TruthTest, ctx: Context) -> Fix:
    """`if test: x.mul_(2)`

    Never safe: a tensor that requires grad, or that autograd has saved, is now always
    written to.
    """
    branch = asking(test)
    if not isinstance(branch, cst.If):
        raise NotMine
    writes = _writes(branch, test)
    place = place_of(test, ctx)
    if branch.orelse is not None:
        raise Withheld("the branch writes into tensors and has an `else`: write once, behind it")
    if isinstance(place.parent(branch), cst.If):
        raise Withheld("the branch that writes into tensors is an `elif`: make it an `if`")
    describer = Describer(test, branch, (branch,))
    guard, tested = conjunction(describer, branch.test)
    if not is_tensor_test(describer, tested):
        raise NotMine
    condition = predicate(describer, tested, place.function, frozenset())
    notes = dict.fromkeys(note for write in writes for note in _notes(write, describer))
    writer = _Writer(test, condition, writes, fresh_name("condition", place.function))
    spelling = Spelling(test.module, test.node)
    rests = [*notes, *condition.conditions]
    return Fix(
        Safety.UNSAFE,
        f"Write the result of `{ctx.module.code_for_node(spelling.of('where'))}`, "
        f"right if {' and '.join(rests)}",
        {branch: writer.replacement(branch, guard)},
        spelling.imports(),
        condition.tests,
    )


FIXERS: tuple[Callable[[TruthTest, Context], Fix], ...] = (written,)


# -- reading -------------------------------------------------------------------------------


def _writes(branch: cst.If, test: TruthTest) -> list[Write]:
    """The writes of which the arm consists. Raises NotMine if there are none."""
    statements = small_statements(branch.body) or []
    found = [_write(each, test) for each in statements]
    writes = [each for each in found if each is not None]
    if not writes:
        raise NotMine
    for statement, write in zip(statements, found, strict=True):
        if write is None:
            raise Withheld(
                f"`{code_of(statement)}` is more than a write into a tensor: move it out of the "
                "branch"
            )
        if not _is_path(write.target):
            raise Withheld(
                f"`{code_of(write.target)}` is computed and then written into: give it a name, or "
                "write one operation in a statement"
            )
        if _is_masked(write.target, test):
            raise Withheld(
                f"`{code_of(write.target)}` has a size that depends on data: write "
                "`torch.where(mask, new, old)`, without the branch"
            )
    return writes


def _is_masked(node: cst.BaseExpression, test: TruthTest) -> bool:
    """Whether a mask chooses the items."""
    if not isinstance(node, cst.Subscript):
        return False
    indices = (each.slice.value for each in node.slice if isinstance(each.slice, cst.Index))
    values = map(test.value_of, indices)
    return any(isinstance(each, Tensor) and bool(each.is_bool) for each in values)


def _is_path(node: cst.BaseExpression) -> bool:
    match node:
        case cst.Name():
            return True
        case cst.Attribute(value=value):
            return _is_path(value)
        case cst.Subscript(value=value):
            return _is_path(value) and not _calls(node)
    return False


def _calls(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Call) or any(map(_calls, node.children))


def _write(statement: cst.BaseSmallStatement, test: TruthTest) -> Write | None:
    match statement:
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=target)) as call):
            if isinstance(test.value_of(call.func), ExternalMethod) and _is_tensor(target, test):
                return _call(statement, target, call, test)
        case cst.AugAssign(target=target, operator=operator, value=value):
            symbol = PLAIN_OPERATORS.get(type(operator))
            if symbol is not None and _is_tensor(target, test):
                total = cst.BinaryOperation(target, symbol(), parenthesized(value))
                return Write(statement, target, total)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Subscript() as target)]):
            if _is_tensor(target.value, test):
                return Write(statement, target, statement.value)
    return None


def _is_tensor(node: cst.BaseExpression, test: TruthTest) -> bool:
    return isinstance(test.value_of(node), Tensor)


def _call(
    statement: cst.Expr, target: cst.BaseExpression, call: cst.Call, test: TruthTest
) -> Write | None:
    """A method that ends in an underscore, as the value that it writes."""
    name = cst.ensure_type(call.func, cst.Attribute).attr.value
    if not name.endswith("_") or name.endswith("__"):
        return None
    plain_arguments = [each.value for each in call.args if each.keyword is None and not each.star]
    only = plain_arguments[0] if len(call.args) == len(plain_arguments) == 1 else None
    if name in ("copy_", "fill_") and only is not None:
        return Write(statement, target, only)
    if name == "zero_" and not call.args:
        return Write(statement, target, cst.Integer("0"))
    if name in ARITHMETIC and only is not None:
        operation = ARITHMETIC[name]()
        return Write(statement, target, cst.BinaryOperation(target, operation, parenthesized(only)))
    operator = test.moments[0].frame.machine.torch.method(name.removesuffix("_"))
    if operator is None or not operator.elementwise or operator.view:
        raise Withheld(f"`{name}` has no form that could be chosen element by element")
    function = cst.Attribute(target, cst.Name(name.removesuffix("_")))
    return Write(statement, target, call.with_changes(func=function))


def _notes(write: Write, describer: Describer) -> Iterator[str]:
    """On what it rests that the write is the same. Raises Withheld where it is not."""
    name = code_of(write.target)
    target, value = (describer.describe(each) for each in (write.target, write.value))
    if not isinstance(target, Profile):
        raise Withheld(f"`{name}` may not be a tensor")
    yield f"no gradient needs `{plain(code_of(_root(write.target)))}`"
    if isinstance(value, Number):
        floats = value.kind == FLOATING
    else:
        floats = value.dtype.number == FLOATING
        for source in sorted(map(plain, value.sources - target.sources)):
            yield f"`{source}` does not require grad"
        if value.shape - target.shape:
            yield f"`{code_of(write.value)}` fits into `{name}` always"
        if value.dtype.leaves != target.dtype.leaves:
            yield f"`{code_of(write.value)}` has the dtype of `{name}`"
    if floats and not target.is_floating:
        kind = describer.test.value_of(write.target)
        if isinstance(kind, Tensor) and kind.dtype is not None and "float" not in kind.dtype:
            raise Withheld(f"`{name}` holds no floating-point numbers, and would be rounded")
        yield f"`{name}` is floating"


def _root(node: cst.BaseExpression) -> cst.BaseExpression:
    return _root(node.value) if isinstance(node, cst.Subscript) else node


# -- writing -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Writer:
    """`name` is free for the condition, which is evaluated once, before the first write."""

    test: TruthTest
    condition: Predicate
    writes: Sequence[Write]
    name: str

    def replacement(self, branch: cst.If, guard: cst.BaseExpression | None) -> Replacement:
        bindings = [assignment(*binding) for binding in self.condition.bindings]
        is_once = len(self.writes) == 1
        test = self.condition.node if is_once else cst.Name(self.name)
        if not is_once:
            bindings.append(assignment(self.name, self._kept()))
        lines = [*bindings, *self._lines(branch.body, test)]
        if guard is not None:
            assert isinstance(branch.body, cst.IndentedBlock)
            return branch.with_changes(test=guard, body=branch.body.with_changes(body=lines))
        first = lines[0]
        header = [cst.EmptyLine(comment=comment) for comment in self._header_comments(branch)]
        leading = [*branch.leading_lines, *header, *first.leading_lines]
        return cst.FlattenSentinel([first.with_changes(leading_lines=leading), *lines[1:]])

    def _kept(self) -> cst.BaseExpression:
        """The condition, in memory of its own: a write may change what it was read from."""
        node = self.condition.node
        if isinstance(node, cst.Comparison | cst.UnaryOperation | cst.BinaryOperation):
            return node
        return parse_template_expression("{test}.clone()", test=node)

    def _lines(
        self, body: cst.BaseSuite, test: cst.BaseExpression
    ) -> list[cst.SimpleStatementLine]:
        new = {write.statement: self._written(write, test) for write in self.writes}
        if isinstance(body, cst.SimpleStatementSuite):
            return [
                cst.SimpleStatementLine(
                    [new[each] for each in body.body], trailing_whitespace=body.trailing_whitespace
                )
            ]
        lines = [each for each in body.body if isinstance(each, cst.SimpleStatementLine)]
        return [line.with_changes(body=[new[each] for each in line.body]) for line in lines]

    def _written(self, write: Write, test: cst.BaseExpression) -> cst.BaseSmallStatement:
        """`x.copy_(torch.where(test, value, x))`"""
        arguments = (bare(test), bare(write.value), write.target)
        where = Spelling(self.test.module, self.test.node).of("where")
        chosen = cst.Call(where, [cst.Arg(each) for each in arguments])
        if isinstance(write.target, cst.Subscript):
            return cst.Assign([cst.AssignTarget(write.target)], chosen, _semicolon(write))
        call = parse_template_expression("{x}.copy_({new})", x=write.target, new=chosen)
        return cst.Expr(call, _semicolon(write))

    def _header_comments(self, branch: cst.If) -> list[cst.Comment]:
        if isinstance(branch.body, cst.IndentedBlock):
            return comments_in([branch.body.header, *branch.body.footer])
        return []


def _semicolon(write: Write) -> cst.Semicolon | cst.MaybeSentinel:
    found = getattr(write.statement, "semicolon", cst.MaybeSentinel.DEFAULT)
    return found if isinstance(found, cst.Semicolon) else cst.MaybeSentinel.DEFAULT
