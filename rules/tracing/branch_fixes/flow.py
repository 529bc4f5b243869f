"""Statements one by one: what stands around them, what they assign, what they leave behind."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst

from jitlint.analysis.observations import TruthTest
from jitlint.analysis.scope import names_read, names_written
from jitlint.analysis.tree import parents_of
from jitlint.rule import Context

from .arms import parenthesized
from .withheld import NotMine

Statements = Sequence[cst.BaseStatement | cst.BaseSmallStatement]

PARTS_OF_TESTS = (
    cst.Comparison,
    cst.Call,
    cst.Arg,
    cst.BooleanOperation,
    cst.UnaryOperation,
)


# -- places --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """A statement in its function."""

    node: cst.CSTNode
    function: cst.FunctionDef
    parent: Callable[[cst.CSTNode], cst.CSTNode]

    @property
    def siblings(self) -> Statements:
        """The statements of the block in which it stands, itself among them."""
        return statements_in(self.parent(self.node))

    @property
    def before(self) -> Statements:
        return self.siblings[: self._index]

    @property
    def after(self) -> Statements:
        return self.siblings[self._index + 1 :]

    @property
    def _index(self) -> int:
        return next(i for i, each in enumerate(self.siblings) if each is self.node)

    @property
    def owner(self) -> cst.CSTNode:
        """The compound statement whose block it stands in; at the outermost the function."""
        node = self.parent(self.node)
        while not isinstance(node, cst.BaseCompoundStatement):
            node = self.parent(node)
        return node

    def at(self, node: cst.CSTNode) -> "Place":
        return Place(node, self.function, self.parent)

    def outward(self) -> Iterator["Place"]:
        """Itself, and the compound statements around it."""
        place = self
        while place.node is not self.function:
            yield place
            place = place.at(place.owner)

    def read_later(self) -> frozenset[str]:
        """Names that may be read after the statement has run."""
        found = _kept_names(self.function)
        for place in self.outward():
            if not isinstance(place.parent(place.node), cst.IndentedBlock):
                continue  # an `elif`: the statement that it belongs to comes next
            found |= names_read(*place.after)
            if isinstance(place.owner, cst.For | cst.While | cst.Try | cst.TryStar):
                found |= names_read(place.owner)
        return found

    def is_defined(self, name: str) -> bool:
        """Whether some statement before this one, or a parameter, binds `name`."""
        if name in parameter_names(self.function):
            return True
        return any(
            name in names_written(*place.before)
            for place in self.outward()
            if isinstance(place.parent(place.node), cst.IndentedBlock)
        )


def asking(test: TruthTest) -> cst.CSTNode:
    """What a test decides: a chained comparison or `any()` is a part of the test of an `if`."""
    parents = parents_of(test.module.tree)
    node = test.owner
    while isinstance(node, PARTS_OF_TESTS):
        node = parents[node]
    return node


def place_of(test: TruthTest, ctx: Context) -> Place:
    """Where the statement that asks stands. Raises NotMine outside of a function."""
    if test.function is None or not isinstance(test.function.node, cst.FunctionDef):
        raise NotMine
    return Place(asking(test), test.function.node, parents_of(ctx.module).__getitem__)


def statements_in(suite: cst.CSTNode) -> Statements:
    if isinstance(suite, cst.IndentedBlock | cst.SimpleStatementSuite):
        return suite.body
    return ()


def only_statement(suite: cst.BaseSuite) -> cst.BaseSmallStatement | None:
    """The statement of a block that holds no other, and is no compound one."""
    found = small_statements(suite)
    return found[0] if found is not None and len(found) == 1 else None


def small_statements(suite: cst.BaseSuite) -> list[cst.BaseSmallStatement] | None:
    """The statements of a block; None if some of them are compound."""
    found: list[cst.BaseSmallStatement] = []
    for statement in statements_in(suite):
        if isinstance(statement, cst.SimpleStatementLine):
            found += statement.body
        elif isinstance(statement, cst.BaseSmallStatement):
            found.append(statement)
        else:
            return None
    return found


def parameter_names(function: cst.FunctionDef) -> frozenset[str]:
    return frozenset(each.name.value for each in parameters_of(function))


def parameters_of(function: cst.FunctionDef) -> list[cst.Param]:
    params = function.params
    stars = (params.star_arg, params.star_kwarg)
    return [
        *params.posonly_params,
        *params.params,
        *params.kwonly_params,
        *(each for each in stars if isinstance(each, cst.Param)),
    ]


@lru_cache(maxsize=64)
def _kept_names(function: cst.FunctionDef) -> frozenset[str]:
    """Names that nested functions and the world outside may read at any time."""
    keeper = _Keeper()
    function.body.visit(keeper)
    return frozenset(keeper.names)


class _Keeper(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self.names |= names_read(node.body)
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        self.names |= names_read(node.body)
        return False

    def visit_NameItem(self, node: cst.NameItem) -> bool:
        """Of `global` and `nonlocal`."""
        self.names.add(node.name.value)
        return False


# -- assignments ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """An assignment to plain names. `values` has one for each, or is None if one call
    returns them all; `augmented`: it may write into the object that the name holds."""

    statement: cst.SimpleStatementLine
    targets: tuple[str, ...]
    values: tuple[cst.BaseExpression, ...] | None
    augmented: bool = False

    @property
    def reads(self) -> frozenset[str]:
        return names_read(self.statement)

    @property
    def right_side(self) -> cst.BaseExpression:
        value = getattr(self.statement.body[0], "value", None)
        assert isinstance(value, cst.BaseExpression)
        return value

    def with_values(self, values: Sequence[cst.BaseExpression]) -> cst.SimpleStatementLine:
        """The same assignment of other values, with its comments and layout."""
        small = self.statement.body[0]
        new: cst.BaseExpression = values[0]
        if isinstance(small, cst.Assign) and isinstance(small.value, cst.Tuple):
            pairs = zip(small.value.elements, values, strict=True)
            new = small.value.with_changes(
                elements=[element.with_changes(value=value) for element, value in pairs]
            )
        if isinstance(small, cst.AugAssign):
            small = cst.Assign([cst.AssignTarget(small.target)], new)
        else:
            small = small.with_changes(value=new)
        return self.statement.with_changes(body=[small])


PLAIN_OPERATORS: dict[type[cst.BaseAugOp], type[cst.BaseBinaryOp]] = {
    cst.AddAssign: cst.Add,
    cst.SubtractAssign: cst.Subtract,
    cst.MultiplyAssign: cst.Multiply,
    cst.DivideAssign: cst.Divide,
    cst.FloorDivideAssign: cst.FloorDivide,
    cst.ModuloAssign: cst.Modulo,
    cst.PowerAssign: cst.Power,
    cst.MatrixMultiplyAssign: cst.MatrixMultiply,
    cst.BitAndAssign: cst.BitAnd,
    cst.BitOrAssign: cst.BitOr,
    cst.BitXorAssign: cst.BitXor,
}


def step_of(statement: cst.CSTNode) -> Step | None:
    """The statement as an assignment to plain names; None if it is anything else."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    match statement.body[0]:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
            return Step(statement, (name,), (value,))
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple() as target)], value=value):
            return _unpacking(statement, target, value)
        case cst.AnnAssign(target=cst.Name(value=name), value=cst.BaseExpression() as value):
            return Step(statement, (name,), (value,))
        case cst.AugAssign(target=cst.Name() as target, operator=operator, value=value):
            plain = PLAIN_OPERATORS.get(type(operator))
            if plain is not None:
                total = cst.BinaryOperation(target, plain(), parenthesized(value))
                return Step(statement, (target.value,), (total,), augmented=True)
    return None


def _unpacking(
    statement: cst.SimpleStatementLine, target: cst.Tuple, value: cst.BaseExpression
) -> Step | None:
    names = tuple(each.value.value for each in target.elements if isinstance(each.value, cst.Name))
    if len(names) != len(target.elements):
        return None
    if not isinstance(value, cst.Tuple) or len(value.elements) != len(names):
        return Step(statement, names, None)
    if not all(isinstance(each, cst.Element) for each in value.elements):
        return None
    return Step(statement, names, tuple(each.value for each in value.elements))


# -- layout --------------------------------------------------------------------------------


def comments_in(nodes: Iterable[cst.CSTNode]) -> list[cst.Comment]:
    finder = _Comments()
    for node in nodes:
        node.visit(finder)
    return finder.found


class _Comments(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.Comment] = []

    def visit_Comment(self, node: cst.Comment) -> None:
        self.found.append(node)


def in_place_of(
    old: cst.If | cst.For | cst.While, new: cst.SimpleStatementLine, lost: Iterable[cst.CSTNode]
) -> cst.SimpleStatementLine:
    """`new` with the blank lines and comments of `old`, and those of the parts that are lost.

    A single comment of those parts stays at the end of the line.
    """
    kept = comments_in(lost)
    lines = list(old.leading_lines)
    if len(kept) != 1:
        lines += [cst.EmptyLine(comment=comment) for comment in kept]
        return new.with_changes(leading_lines=lines)
    trailing = cst.TrailingWhitespace(cst.SimpleWhitespace("  "), kept[0])
    return new.with_changes(leading_lines=lines, trailing_whitespace=trailing)


def split_lines(lines: Sequence[cst.EmptyLine]) -> tuple[list[cst.EmptyLine], list[cst.EmptyLine]]:
    """What stands before a statement, and the comment that speaks of it."""
    comment = len(lines)
    while comment and lines[comment - 1].comment is not None:
        comment -= 1
    return list(lines[:comment]), list(lines[comment:])


def assignment(name: str, value: cst.BaseExpression) -> cst.SimpleStatementLine:
    """`name = value`"""
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], value)])


def replaced_block(old: cst.BaseSuite, body: Sequence[cst.BaseStatement]) -> cst.IndentedBlock:
    """A block with the comments of the one whose place it takes."""
    if isinstance(old, cst.IndentedBlock):
        header, lost = old.header, comments_in([*old.body, *old.footer])
    else:
        header, lost = cst.TrailingWhitespace(), comments_in([old])
    lines = [cst.EmptyLine(comment=comment) for comment in lost]
    first, *rest = body
    assert isinstance(first, cst.SimpleStatementLine)
    return cst.IndentedBlock([first.with_changes(leading_lines=lines), *rest], header=header)


def code_of(node: cst.CSTNode, limit: int = 50) -> str:
    """Code for a message, on one line and not too long."""
    text = " ".join(cst.Module([]).code_for_node(node).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"
