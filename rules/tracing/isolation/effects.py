"""`if bad: warn(…); x = a`: the effects as an operator, the values as a selection."""

import dataclasses
from collections.abc import Iterable

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.observations import Observation, TruthTest
from jitlint.finding import Fix, Safety
from jitlint.rule import Context

from ..branch_fixes.arms import Arm, Form
from ..branch_fixes.flow import Place
from ..branch_fixes.surroundings import check_callers
from ..branch_fixes.where import Selection, selection_of
from ..branch_fixes.withheld import NotMine, Withheld
from .mute import Judge, check_mute
from .operator import NOT_TAKEN, Operator
from .part import Arguments, check_surroundings, free_name, place_around, top_level_before


def effects_as_operator(seen: Observation, ctx: Context) -> Fix:
    """The effects of both arms in an operator that is given the outcome of the test."""
    selection = _selection(seen)
    place = place_around(seen, ctx)
    if selection.branch.node is not place.node:
        raise Withheld("the branch is an `elif`: make it an `if` of its own")
    before = top_level_before(place, ctx)
    check_surroundings(place)
    report = _Report(seen, place, selection)
    selection.report = report.call
    fix = selection.fix()
    operator = report.operator
    rest = ", and a selection" if selection.branch.form is not Form.NOTHING else ""
    added = cst.FlattenSentinel([before, operator.definition(), *operator.registrations()])
    return dataclasses.replace(
        fix,
        safety=Safety.UNSAFE,
        title=f"Split the branch into the operator `{operator.name}`, which has an effect and no "
        f"result{rest}{_conditions(fix, report)}",
        replacements={**fix.replacements, before: added},
        imports=scope.Spelling(seen.module).imports(),
    )


def _conditions(fix: Fix, report: "_Report") -> str:
    _, found, conditions = fix.title.partition(", right if ")
    own = [NOT_TAKEN, *report.conditions]
    given = [*own, *([conditions] if found else [])]
    return f", right if {' and '.join(given)}"


def _selection(seen: Observation) -> Selection:
    if not isinstance(seen, TruthTest):
        raise Withheld("the code is no branch")
    check_callers(seen)
    try:
        _, selection = selection_of(seen)
    except NotMine:
        raise Withheld("the code is no branch") from None
    branch = selection.branch
    if not any(arm.effects for arm in branch.arms):
        raise Withheld("no arm has an effect besides its result")
    if len(branch.cases) > 1 or not isinstance(branch.node, cst.If):
        raise Withheld("the branch has more than two arms: make it several")
    return selection


class _Report:
    """The operator with the effects of a branch, and its call."""

    def __init__(self, seen: Observation, place: Place, selection: Selection) -> None:
        branch = selection.branch
        effects = [effect for arm in branch.arms for effect in arm.effects]
        machine = seen.moments[0].frame.machine
        local = scope.local_names(place.function)
        check_mute(list(effects), local, Judge(machine, seen.value_of))
        condition = scope.fresh_name("condition", cst.Module([cst.SimpleStatementLine(effects)]))
        self._arguments = Arguments(seen, place, local)
        self._arguments.give(condition)
        self._arguments.collect(effects)
        test: cst.BaseExpression = cst.Name(condition)
        arms = [arm for arm in branch.arms if arm.effects]
        if arms[0] is branch.default:
            test = cst.UnaryOperation(cst.Not(), test)
        orelse = cst.Else(self._block(arms[1])) if len(arms) > 1 else None
        body = cst.IndentedBlock([cst.If(test, self._block(arms[0]), orelse)])
        self.operator = Operator(
            seen.module, free_name("report", place, seen), self._arguments.parameters(), body
        )

    @property
    def conditions(self) -> Iterable[str]:
        return self._arguments.conditions

    def _block(self, arm: Arm) -> cst.IndentedBlock:
        return cst.IndentedBlock(
            [
                self._arguments.renamed(cst.SimpleStatementLine([effect.with_changes()]))
                for effect in arm.effects
            ]
        )

    def call(self, test: cst.BaseExpression) -> cst.SimpleStatementLine:
        _, *others = self._arguments.passed()
        return self._arguments.call(self.operator.name, [cst.Arg(test), *others])
