"""Checks that raise: `if bad: raise RuntimeError("…")` becomes an assertion in the graph."""

from collections.abc import Callable

import libcst as cst
from libcst.helpers import parse_template_expression

from jitlint.analysis.observations import Construct, TruthTest
from jitlint.analysis.scope import Spelling
from jitlint.analysis.values import External
from jitlint.finding import Fix, Replacement, Safety
from jitlint.region import RegionKind
from jitlint.rule import Context

from .arms import parenthesized
from .flow import Place, asking, assignment, in_place_of, only_statement, place_of, replaced_block
from .predicate import Predicate, conjunction, is_tensor_test, predicate
from .profile import Describer
from .withheld import NotMine, Withheld


def asserted(test: TruthTest, ctx: Context) -> Fix:
    """`if bad: raise RuntimeError("…")`

    Never safe: on CUDA the assertion fails on the device, when the caller has gone on.
    """
    check = asking(test)
    raised = only_statement(check.body) if isinstance(check, cst.If) else None
    if not isinstance(check, cst.If) or not isinstance(raised, cst.Raise):
        raise NotMine
    place = place_of(test, ctx)
    describer = Describer(test, check)
    guard, tested = conjunction(describer, check.test)
    if not is_tensor_test(describer, tested):
        raise NotMine
    _check_surroundings(check, place)
    message = _message(raised, test)
    good = _good(describer, tested, place)
    spelling = Spelling(test.module, test.node)
    call = parse_template_expression(
        "{function}({good}, {message})",
        ctx.module.config_for_parsing,
        function=spelling.of("_assert_async"),
        good=good.node,
        message=message,
    )
    new = cst.SimpleStatementLine([cst.Expr(call)])
    return Fix(
        Safety.UNSAFE,
        _title(good, ctx.module.code_for_node(spelling.of("_assert_async"))),
        {check: _replacement(check, guard, new, good)},
        spelling.imports(),
        good.tests,
    )


def _title(good: Predicate, function: str) -> str:
    given = ["the tensors are on the CPU (CUDA reports a failure later)", *good.conditions]
    return f"Check with `{function}`, right if {' and '.join(given)}"


def _message(raised: cst.Raise, test: TruthTest) -> cst.BaseExpression:
    """The constant message of a RuntimeError."""
    exception = raised.exc
    kind = exception.func if isinstance(exception, cst.Call) else exception
    if kind is None:
        raise Withheld("the branch raises the exception that is being handled")
    value = test.value_of(kind)
    if raised.cause is not None:
        raise Withheld("the exception has a cause, which a graph cannot give it")
    if not isinstance(value, External) or value.name != "builtins.RuntimeError":
        name = test.module.tree.code_for_node(kind)
        raise Withheld(
            f"an assertion in the graph raises RuntimeError where the code raises {name}: raise "
            "RuntimeError if no caller minds"
        )
    arguments = exception.args if isinstance(exception, cst.Call) else ()
    if not arguments:
        raise Withheld("the exception has no message, and backends drop an assertion without one")
    message = arguments[0].value
    if len(arguments) > 1 or arguments[0].star or not _is_constant(message):
        raise Withheld("a graph cannot compute the message of an exception: make it constant")
    return message


def _is_constant(message: cst.BaseExpression) -> bool:
    return isinstance(message, cst.SimpleString | cst.ConcatenatedString) and isinstance(
        message.evaluated_value, str
    )


def _check_surroundings(check: cst.If, place: Place) -> None:
    if check.orelse is not None:
        raise Withheld("the check has an `else`: put that code behind the check")
    if isinstance(place.parent(check), cst.If):
        raise Withheld("the check is an `elif`: make it an `if` of its own")
    for around in place.outward():
        if isinstance(around.owner, cst.Try | cst.TryStar):
            raise Withheld("the check stands in a `try`, which the error of a graph would escape")


def _good(describer: Describer, tested: cst.BaseExpression, place: Place) -> Predicate:
    """What must hold: `not ok` turned round, and never a comparison (NaN fails both ways)."""
    match tested:
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return predicate(describer, inner, place.function, frozenset())
    bad = predicate(describer, tested, place.function, frozenset())
    good = parse_template_expression("~{bad}", bad=parenthesized(bad.node))
    return Predicate(good, bad.bindings, bad.tests, bad.conditions)


def _replacement(
    check: cst.If,
    guard: cst.BaseExpression | None,
    new: cst.SimpleStatementLine,
    good: Predicate,
) -> Replacement:
    if guard is None:
        first, *rest = [*(assignment(name, value) for name, value in good.bindings), new]
        return cst.FlattenSentinel([in_place_of(check, first, [check.body]), *rest])
    body = [*(assignment(name, value) for name, value in good.bindings), new]
    return check.with_changes(test=guard, body=replaced_block(check.body, body))


# -- assertions ----------------------------------------------------------------------------


def assertion(test: TruthTest, ctx: Context) -> Fix:
    """A plain `assert` stays: Dynamo traces it, unless its message is computed."""
    if test.construct is not Construct.ASSERT or not isinstance(test.owner, cst.Assert):
        raise NotMine
    message = test.owner.msg
    if set(test.regions) == {RegionKind.TRACE}:
        raise Withheld(
            "torch.jit.trace drops the assertion, and one in the graph would raise RuntimeError: "
            'write `if not …: raise RuntimeError("…")` if no caller minds'
        )
    if message is not None and not _is_constant(message):
        raise Withheld(
            "a graph cannot compute the message of an exception: with a constant message the "
            "`assert` is traced"
        )
    raise Withheld("an assertion in the graph raises RuntimeError, not AssertionError")


FIXERS: tuple[Callable[[TruthTest, Context], Fix], ...] = (asserted, assertion)
