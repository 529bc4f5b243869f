"""Loops that end when a tensor says so."""

from collections.abc import Callable, Iterator, Sequence

import libcst as cst

from jitlint.analysis.observations import TruthTest
from jitlint.analysis.scope import Origin, definition_of, local_names, names_read, names_written
from jitlint.analysis.values import ExternalInstance, Source, Static, Tensor, Tuple
from jitlint.analysis.values import Sequence as Elements
from jitlint.finding import Fix, Replacement
from jitlint.region import RegionKind
from jitlint.rule import Context

from . import masks
from .arms import bare, parenthesized
from .flow import Place, asking, code_of, only_statement, place_of, statements_in, step_of
from .predicate import is_tensor_test
from .profile import Describer
from .while_loop import while_loop
from .withheld import NotMine, Withheld

Loop = cst.For | cst.While
Exit = cst.Break | cst.Continue | cst.Return

FINITE_ITERATORS = frozenset({"range", "enumerate", "zip", "reversed"})
NO_BOUND = (
    "the number of rounds has no static bound: write `for _ in range(LIMIT)` with the test as a "
    "`break` in it"
)


def _is_only_traced(test: TruthTest) -> bool:
    """A traced loop is unrolled as the example ran it; only a scripted one is kept."""
    return set(test.regions) == {RegionKind.TRACE}


# -- leaving a loop early ------------------------------------------------------------------


def leave_early(test: TruthTest, ctx: Context) -> Fix:
    """`if test: break` in a bounded loop: the other rounds run, and change nothing."""
    leaving = asking(test)
    if not isinstance(leaving, cst.If) or not exits_in(leaving) or _is_only_traced(test):
        raise NotMine
    place = place_of(test, ctx)
    loop = _loop_around(place)
    if loop is None:
        raise NotMine
    way = _checked_exit(leaving, place, loop)
    _check_bounded(place.at(loop), loop, test)
    masking = masks.Masking(test, ctx, place.at(loop), skips=isinstance(way, cst.Continue))
    masking.read(place.before, leaving.test, place.after)
    body = [*masking.head(), *masking.flag(comments_of=leaving), *masking.tail()]
    new_loop = loop.with_changes(
        body=loop.body.with_changes(body=body), leading_lines=masking.header_lines(loop)
    )
    return masking.fix({loop: cst.FlattenSentinel([*masking.start(loop), new_loop])})


def exits_in(node: cst.CSTNode) -> list[Exit]:
    """Statements that leave the round of the loop around `node`, or its function."""
    finder = _Exits()
    node.visit(finder)
    return finder.found


class _Exits(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Exit] = []
        self._loops = 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        self._loops += isinstance(node, Loop)
        if isinstance(node, cst.Return) or (isinstance(node, Exit) and not self._loops):
            self.found.append(node)
        return not isinstance(node, cst.FunctionDef | cst.Lambda)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        self._loops -= isinstance(original_node, Loop)


def _loop_around(place: Place) -> Loop | None:
    return next((a.owner for a in place.outward() if isinstance(a.owner, Loop)), None)


def _checked_exit(leaving: cst.If, place: Place, loop: Loop) -> Exit:
    """The way out; it has to be a statement of the loop's own block, and the only one."""
    way = only_statement(leaving.body)
    if not isinstance(way, Exit):
        raise Withheld("the branch does more than leave the loop: move all but the exit out of it")
    if leaving.orelse is not None:
        raise Withheld("the exit from the loop has an `else`: put that code behind the `if`")
    if place.owner is not loop or isinstance(place.parent(leaving), cst.If):
        raise Withheld("the exit from the loop stands inside of another statement of the loop")
    if sum(len(exits_in(each)) for each in statements_in(loop.body)) > 1:
        raise Withheld("the loop has more than one exit: join their tests with `|`")
    if loop.orelse is not None:
        raise Withheld("the loop has an `else`, which runs only if it was not left early")
    if isinstance(way, cst.Return) and not _returns_alike(way, place.at(loop)):
        raise Withheld(
            "the loop returns something else than the statement behind it: assign the result, "
            "`break`, and return it there"
        )
    return way


def _returns_alike(inside: cst.Return, loop: Place) -> bool:
    """`return x` in the loop, and `return x` directly behind it: the same as `break`."""
    match next(iter(loop.after), None):
        case cst.SimpleStatementLine(body=[cst.Return(value=cst.BaseExpression() as value)]):
            return inside.value is not None and inside.value.deep_equals(value)
    return False


def _check_bounded(place: Place, loop: Loop, test: TruthTest) -> None:
    """A loop that would run for ever, were it not for its exit, must keep that."""
    if isinstance(loop, cst.While):
        _Bound(loop.test, loop, place, test)
        return
    _check_finite(loop.iter, test)


def _check_finite(iterated: cst.BaseExpression, test: TruthTest) -> None:
    if not isinstance(iterated, cst.Call):
        if not isinstance(test.value_of(iterated), Tuple | Elements | Tensor | ExternalInstance):
            raise Withheld(f"nothing is known of `{code_of(iterated)}`, over which the loop runs")
        return
    if not isinstance(iterated.func, cst.Name) or iterated.func.value not in FINITE_ITERATORS:
        raise Withheld(NO_BOUND)
    for argument in iterated.args:
        if iterated.func.value != "range":
            _check_finite(argument.value, test)
        elif _is_data(argument.value, test):
            raise Withheld(NO_BOUND)


def _is_data(node: cst.BaseExpression, test: TruthTest) -> bool:
    value = test.value_of(node)
    return isinstance(value, Static) and value.source is Source.DATA


# -- counted loops -------------------------------------------------------------------------


def bounded_while(test: TruthTest, ctx: Context) -> Fix:
    """`while test and n < LIMIT` becomes a `for` loop that changes nothing once it is done."""
    loop = _while_of(test)
    describer = Describer(test, loop)
    operands = _conjuncts(loop.test)
    static = [each for each in operands if not is_tensor_test(describer, each)]
    others = [each for each in operands if each not in static]
    if not static or not others:
        raise NotMine
    _check_whole(loop)
    if len(static) > 1:
        raise Withheld("the loop has more than one condition on Python values")
    place = place_of(test, ctx)
    bound = _Bound(static[0], loop, place, test)
    body, rest = statements_in(loop.body), _joined(others)
    idle = bound.name not in names_read(rest, *(e for e in body if e is not bound.increment))
    masking = masks.Masking(test, ctx, place, negated=True)
    for condition in bound.conditions():
        masking.rests_on(condition)
    masking.read([], rest, [each for each in body if not (idle and each is bound.increment)])
    new_loop = cst.For(
        target=cst.Name("_"),
        iter=bound.rounds(),
        body=loop.body.with_changes(body=[*masking.flag(), *masking.tail()]),
        leading_lines=masking.header_lines(loop),
    )
    replacements: dict[cst.CSTNode, Replacement] = {
        loop: cst.FlattenSentinel([*masking.start(loop), new_loop])
    }
    if idle and bound.is_only_counted(place):
        replacements[bound.start] = cst.RemoveFromParent()
    return masking.fix(replacements)


def _while_of(test: TruthTest) -> cst.While:
    loop = asking(test)
    if not isinstance(loop, cst.While) or _is_only_traced(test):
        raise NotMine
    return loop


def _check_whole(loop: cst.While) -> None:
    if loop.orelse is not None:
        raise Withheld("the loop has an `else`")
    if any(exits_in(each) for each in statements_in(loop.body)):
        raise Withheld("the loop has a second exit: join it to the condition of the `while`")


def _conjuncts(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.And):
        return _conjuncts(node.left) + _conjuncts(node.right)
    return [node]


def _joined(operands: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
    result = operands[0]
    for each in operands[1:]:
        result = cst.BooleanOperation(result, cst.And(), each)
    return result


class _Bound:
    """`name < limit`, where `name` counts the rounds. Raises Withheld if it is not that."""

    def __init__(
        self, node: cst.BaseExpression, loop: cst.While, place: Place, test: TruthTest
    ) -> None:
        match node:
            case cst.Comparison(
                left=cst.Name(value=name),
                comparisons=[
                    cst.ComparisonTarget(
                        operator=cst.LessThan() | cst.LessThanEqual() as operator, comparator=limit
                    )
                ],
            ):
                self.name = name
            case _:
                raise Withheld(NO_BOUND)
        self._test = test
        self._given = limit
        self._limit = limit
        if isinstance(operator, cst.LessThanEqual):
            self._limit = cst.BinaryOperation(parenthesized(limit), cst.Add(), cst.Integer("1"))
        self.increment = self._increment(loop)
        if names_read(limit) & names_written(loop):
            raise Withheld(f"the limit of `{name}` changes inside of the loop")
        if name in place.read_later():
            raise Withheld(f"`{name}` is read after the loop: count the rounds in a tensor")
        if "range" in local_names(place.function):
            raise Withheld("the fix needs `range`, which is a variable of the function")
        self.start, self._first = self._start(loop, test)

    def _increment(self, loop: cst.While) -> cst.CSTNode:
        written = [each for each in statements_in(loop.body) if self.name in names_written(each)]
        step = step_of(written[0]) if len(written) == 1 else None
        match None if step is None or step.values is None else step.values[0]:
            case cst.BinaryOperation(
                left=cst.Name(value=left), operator=cst.Add(), right=cst.Integer(value="1")
            ) if left == self.name:
                return written[0]
        raise Withheld(f"`{self.name}` is not counted up by one in each round of the loop")

    def _start(
        self, loop: cst.While, test: TruthTest
    ) -> tuple[cst.SimpleStatementLine, cst.BaseExpression]:
        definition = definition_of(self.name, loop, test.module.tree)
        value = definition.value
        if definition.origin is Origin.ASSIGNMENT and value is not None:
            number = test.value_of(value)
            if isinstance(number, Static) and type(number.const) is int:
                assert isinstance(definition.place, cst.SimpleStatementLine)
                return definition.place, value
        raise Withheld(f"`{self.name}` does not start from a number in front of the loop")

    def is_only_counted(self, loop: Place) -> bool:
        """Whether nothing but the loop reads the start, and no comment speaks of it."""
        before = list(loop.before)
        if self.start not in before or self.start.leading_lines:
            return False
        between = before[before.index(self.start) + 1 :]
        return self.name not in names_read(*between)

    def conditions(self) -> Iterator[str]:
        """When `range` takes the limit. Raises Withheld where it does not."""
        code = code_of(self._given)
        value = self._test.value_of(self._given)
        const = value.const if isinstance(value, Static) else None
        if isinstance(const, float) or not _is_repeatable(self._given):
            raise Withheld(f"`{code}` is no whole number that is the same in every round")
        is_size = isinstance(value, Static) and value.source is Source.SHAPE
        if not is_size and not isinstance(self._given, cst.Integer):
            yield f"`{code}` is a whole number"

    def rounds(self) -> cst.Call:
        """`range(start, limit)`"""
        is_zero = isinstance(self._first, cst.Integer) and self._first.evaluated_value == 0
        bounds = [bare(self._limit)] if is_zero else [self._first, bare(self._limit)]
        return cst.Call(cst.Name("range"), [cst.Arg(each) for each in bounds])


def _is_repeatable(node: cst.CSTNode) -> bool:
    """Whether an expression has no effect: names, numbers, sizes and what is made of them."""
    match node:
        case cst.Call(func=cst.Name(value="len" | "min" | "max")):
            return all(_is_repeatable(each.value) for each in node.args)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="size" | "dim"))):
            return _is_repeatable(owner)
        case cst.Call():
            return False
    return all(_is_repeatable(child) for child in node.children)


# -- loops without a bound -----------------------------------------------------------------


def unbounded_while(test: TruthTest, ctx: Context) -> Fix:
    loop = _while_of(test)
    _check_whole(loop)
    return while_loop(test, ctx, loop)


FIXERS: tuple[Callable[[TruthTest, Context], Fix], ...] = (
    leave_early,
    bounded_while,
    unbounded_while,
)
