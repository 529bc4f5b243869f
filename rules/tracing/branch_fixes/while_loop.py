"""`while` on a tensor as `torch.while_loop`."""

from collections.abc import Sequence

import libcst as cst
from libcst.helpers import parse_template_expression

from jitlint.analysis.observations import TruthTest
from jitlint.analysis.scope import Spelling, fresh_name, names_read
from jitlint.finding import Fix, Safety
from jitlint.rule import Context

from .arms import bare
from .carried import Variables, keeps_kind
from .flow import Place, Step, comments_in, in_place_of, place_of, statements_in
from .predicate import Predicate, predicate
from .profile import Profile
from .withheld import Withheld

TRAINING = "no gradient is asked for (backends refuse this loop in training without `fullgraph`)"
MAX_LENGTH = 84


def while_loop(test: TruthTest, ctx: Context, loop: cst.While) -> Fix:
    """Never safe: training falls back to Python under `torch.compile` without `fullgraph`."""
    place = place_of(test, ctx)
    variables = Variables.of(place, test, statements_in(loop.body))
    steps = variables.read_steps(statements_in(loop.body))
    condition = predicate(variables.describer, loop.test, place.function, frozenset())
    if condition.bindings:
        raise Withheld("the middle of the chained comparison is costly: write two comparisons")
    carried = variables.carried(steps, names_read(loop.test))
    if not carried:
        raise Withheld("the loop changes no tensor that is read after it")
    _check_variables(variables, steps, carried)
    conditions = {TRAINING: None, **dict.fromkeys(condition.conditions)}
    for step in steps:
        conditions.update(dict.fromkeys(_kept(variables, step, carried)))
    writer = _Writer(Spelling(test.module, test.node), ctx, place, carried, condition)
    return Fix(
        Safety.UNSAFE,
        f"Loop with `torch.while_loop`, right if {' and '.join(conditions)}",
        {loop: cst.FlattenSentinel(writer.statements(loop, steps))},
        Spelling(test.module, test.node).imports(),
        condition.tests,
    )


def _check_variables(variables: Variables, steps: Sequence[Step], carried: Sequence[str]) -> None:
    for name in carried:
        variables.check_memory(name)
    for step in steps:
        numbers = [name for name in step.targets if variables.is_number(name)]
        if numbers:
            raise Withheld(
                f"`{numbers[0]}` is a Python number that changes from round to round: make it a "
                "tensor"
            )
        if step.augmented and step.targets[0] in carried:
            variables.check_augmented(step)


def _kept(variables: Variables, step: Step, carried: Sequence[str]) -> tuple[str, ...]:
    """On what it rests that a variable keeps its kind, as `torch.while_loop` demands."""
    found: list[str] = []
    for name, value in zip(step.targets, step.values or (), strict=False):
        if name not in carried:
            continue
        described = [
            variables.describer.describe(each, step.statement) for each in (cst.Name(name), value)
        ]
        profiles = [each for each in described if isinstance(each, Profile)]
        if len(profiles) < 2:
            raise Withheld(f"`{name}` is not a tensor throughout the loop")
        found += keeps_kind(name, profiles[0], profiles[1])
    return tuple(found)


class _Writer:
    def __init__(
        self,
        spelling: Spelling,
        ctx: Context,
        place: Place,
        carried: Sequence[str],
        condition: Predicate,
    ) -> None:
        self._spelling = spelling
        self._ctx = ctx
        self._place = place
        self._carried = carried
        self._condition = condition

    def statements(self, loop: cst.While, steps: Sequence[Step]) -> list[cst.BaseStatement]:
        """One statement where the body is one short assignment, else two functions first."""
        if len(steps) == 1 and steps[0].values is not None and len(steps[0].targets) == 1:
            value = bare(_unaliased(steps[0].values[0]))
            body = cst.Tuple([cst.Element(value, cst.Comma())])
            call = self._call([self._lambda(self._condition.node), self._lambda(body)])
            if len(self._ctx.module.code_for_node(call)) <= MAX_LENGTH:
                return [in_place_of(loop, call, [loop.body])]
        return self._with_functions(loop, steps)

    def _lambda(self, body: cst.BaseExpression) -> cst.Lambda:
        return cst.Lambda(self._parameters(), body)

    def _parameters(self) -> cst.Parameters:
        return cst.Parameters([cst.Param(cst.Name(name)) for name in self._carried])

    def _names(self) -> cst.Tuple:
        elements = [cst.Element(cst.Name(name)) for name in self._carried]
        if len(elements) == 1:
            elements = [cst.Element(cst.Name(self._carried[0]), cst.Comma())]
        return cst.Tuple(elements)

    def _call(self, functions: Sequence[cst.BaseExpression]) -> cst.SimpleStatementLine:
        call = parse_template_expression(
            "{loop}({condition}, {body}, {carried})",
            self._ctx.module.config_for_parsing,
            loop=self._spelling.of("while_loop"),
            condition=functions[0],
            body=functions[1],
            carried=self._names(),
        )
        targets = self._names()
        if len(self._carried) > 1:
            targets = targets.with_changes(lpar=[], rpar=[])
        return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(targets)], call)])

    def _with_functions(self, loop: cst.While, steps: Sequence[Step]) -> list[cst.BaseStatement]:
        names = [fresh_name(each, self._place.function) for each in ("unfinished", "advance")]
        test = self._function(names[0], [], self._condition.node)
        body = self._function(names[1], self._body(steps), self._names())
        call = self._call([cst.Name(name) for name in names])
        blank = [cst.EmptyLine(indent=False)]
        header = [cst.EmptyLine(comment=each) for each in _header_comments(loop)]
        return [
            test.with_changes(leading_lines=[*(loop.leading_lines or blank), *header]),
            body.with_changes(leading_lines=blank),
            call.with_changes(leading_lines=blank),
        ]

    def _body(self, steps: Sequence[Step]) -> list[cst.BaseStatement]:
        """The results must not be the arguments themselves."""
        found: list[cst.BaseStatement] = []
        for step in steps:
            if step.values is None:
                found.append(step.statement)
            else:
                found.append(step.with_values([_unaliased(value) for value in step.values]))
        return found

    def _function(
        self, name: str, body: Sequence[cst.BaseStatement], result: cst.BaseExpression
    ) -> cst.FunctionDef:
        if isinstance(result, cst.Tuple) and len(result.elements) > 1:
            result = result.with_changes(lpar=[], rpar=[])
        returned = cst.SimpleStatementLine([cst.Return(result)])
        return cst.FunctionDef(
            cst.Name(name), self._parameters(), cst.IndentedBlock([*body, returned])
        )


def _header_comments(loop: cst.While) -> list[cst.Comment]:
    body = loop.body
    return comments_in([body.header, *body.footer]) if isinstance(body, cst.IndentedBlock) else []


def _unaliased(value: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(value, cst.Name):
        return parse_template_expression("{value}.clone()", value=value)
    return value
