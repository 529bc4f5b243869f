"""A loop that runs on, behind a mask, when it should have ended."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import libcst as cst
from libcst.helpers import parse_template_statement

from jitlint.analysis.observations import TruthTest
from jitlint.analysis.scope import Spelling, fresh_name, names_written
from jitlint.finding import Fix, Replacement, Safety
from jitlint.rule import Context

from .arms import bare, parenthesized
from .carried import Variables, keeps_kind, own_names, surely_runs
from .flow import Place, Step, assignment, in_place_of, split_lines
from .hazards import Evidence, Hazard
from .predicate import Predicate, hazards_in, predicate
from .profile import Profile, plain, proven_by
from .withheld import Withheld

_NAME = re.compile(r"[^\W\d]\w*")


class Masking:
    """Rewrites the body of a loop so that its variables keep their values once it is over.

    `skips`: only for the rest of the round (`continue`). `negated`: the test says that the
    loop goes on, not that it ends.
    """

    def __init__(
        self,
        test: TruthTest,
        ctx: Context,
        loop: Place,
        *,
        skips: bool = False,
        negated: bool = False,
    ) -> None:
        self._test = test
        self._ctx = ctx
        self._loop = loop
        self._skips = skips
        self._negated = negated
        self._spelling = Spelling(test.module, test.node)
        self._name = fresh_name("skip" if skips else "done", loop.function)
        self._conditions: dict[str, None] = {}

    def read(
        self,
        before: Sequence[cst.CSTNode],
        tested: cst.BaseExpression,
        after: Sequence[cst.CSTNode],
    ) -> None:
        """The body: what stands before the test, the test, and what stands behind it."""
        when = "where the round is skipped" if self._skips else "when the loop is over"
        self._variables = Variables.of(self._loop, self._test, (*before, *after), when)
        self._before = self._variables.read_steps(before)
        self._after = self._variables.read_steps(after)
        self._predicate = self._read_test(tested)
        self._conditions.update(dict.fromkeys(self._predicate.conditions))
        masked = self._after if self._skips else [*self._before, *self._after]
        targets = {name for step in masked for name in step.targets}
        carried = self._variables.carried([*self._before, *self._after])
        self._kept = [name for name in carried if name in targets]
        self._check()
        self._note_failures(tested)

    def rests_on(self, condition: str) -> None:
        self._conditions[condition] = None

    def _note_failures(self, tested: cst.BaseExpression) -> None:
        """What rounds compute that were not run before: it may fail in those."""
        describer = self._variables.describer
        values = [(step, value) for step in self._after for value in step.values or ()]
        if not self._skips:
            values += [(step, value) for step in self._before for value in step.values or ()]
            for hazard in sorted(hazards_in(describer, tested), key=lambda each: each.code):
                self._note(hazard)
        for step, value in values:
            hazards = describer.describe(value, step.statement).hazards
            for hazard in sorted(hazards, key=lambda each: each.code):
                self._note(hazard)

    def _note(self, hazard: Hazard) -> None:
        if not hazard.condition and (self._skips or self._varies(hazard)):
            self._conditions[f"`{hazard.code}` never fails"] = None

    def _varies(self, hazard: Hazard) -> bool:
        """Whether an operation has other operands in another round."""
        return bool(names_written(self._loop.node) & set(_NAME.findall(hazard.code)))

    def _read_test(self, tested: cst.BaseExpression) -> Predicate:
        describer = self._variables.describer
        built = predicate(describer, tested, self._loop.function, frozenset())
        self._proven = proven_by(describer, [tested])
        if not self._negated:
            return built
        match built.node:
            case cst.UnaryOperation(operator=cst.BitInvert(), expression=inner):
                return replace(built, node=bare(inner))
        inverted = cst.UnaryOperation(cst.BitInvert(), parenthesized(built.node))
        return replace(built, node=inverted)

    def _check(self) -> None:
        if not self._kept:
            raise Withheld("the loop changes no tensor that is read after it")
        leaked = own_names(self._loop.node) & self._variables.later
        if leaked and not self._skips:
            raise Withheld(
                f"`{min(leaked)}` is read after the loop, and says in which round it was left: "
                "keep it in a tensor"
            )
        surely = self._surely_assigned()
        for name in self._kept:
            if name not in surely:
                self._variables.check_memory(name)
        for step in (*self._before, *self._after):
            if step.augmented and step.targets[0] in self._kept:
                self._variables.check_augmented(step)

    def _surely_assigned(self) -> frozenset[str]:
        """Variables that get a new tensor in the first round, come what may."""
        if self._skips or not surely_runs(self._loop.node, self._test):
            return frozenset()
        return frozenset(name for step in self._before for name in step.targets)

    # -- the new statements ----------------------------------------------------------------

    def start(self, loop: cst.For | cst.While) -> Iterator[cst.BaseStatement]:
        """The flag before the loop, with the blank lines that stood before that."""
        if self._skips:
            return
        flag = parse_template_statement(
            "{flag} = {zeros}((), dtype={bool}, device={of}.device)",
            self._ctx.module.config_for_parsing,
            flag=cst.Name(self._name),
            zeros=self._spelling.of("zeros"),
            bool=self._spelling.of("bool"),
            of=cst.Name(self._kept[0]),
        )
        assert isinstance(flag, cst.SimpleStatementLine)
        yield flag.with_changes(leading_lines=split_lines(loop.leading_lines)[0])

    def header_lines(self, loop: cst.For | cst.While) -> list[cst.EmptyLine]:
        """What is left of them for the loop: the comment that speaks of it."""
        return list(loop.leading_lines) if self._skips else split_lines(loop.leading_lines)[1]

    def head(self) -> Iterator[cst.BaseStatement]:
        for step in self._before:
            yield step.statement if self._skips else self._masked(step)

    def tail(self) -> Iterator[cst.BaseStatement]:
        return map(self._masked, self._after)

    def flag(self, comments_of: cst.If | None = None) -> list[cst.BaseStatement]:
        """`done = done | test`"""
        value = self._predicate.node
        if not self._skips:
            is_tight = isinstance(value, cst.UnaryOperation)
            right = value if is_tight else parenthesized(value)
            value = cst.BinaryOperation(cst.Name(self._name), cst.BitOr(), right)
        bindings = [assignment(*binding) for binding in self._predicate.bindings]
        first, *rest = [*bindings, assignment(self._name, bare(value))]
        if comments_of is not None:
            first = in_place_of(comments_of, first, [comments_of.body])
        return [first, *rest]

    def _masked(self, step: Step) -> cst.BaseStatement:
        if not set(step.targets) & set(self._kept):
            return step.statement
        assert step.values is not None  # a call that returns several tensors is not described
        pairs = zip(step.targets, step.values, strict=True)
        return step.with_values([self._kept_or(name, value, step) for name, value in pairs])

    def _kept_or(self, name: str, value: cst.BaseExpression, step: Step) -> cst.BaseExpression:
        """`torch.where(done, name, value)`"""
        if name not in self._kept:
            return value
        self._agree(name, value, step)
        arguments = (cst.Name(self._name), cst.Name(name), bare(value))
        return cst.Call(self._spelling.of("where"), [cst.Arg(each) for each in arguments])

    def _agree(self, name: str, value: cst.BaseExpression, step: Step) -> None:
        """Notes on what it rests that the old and the new value are of one kind."""
        describer, at = self._variables.describer, step.statement
        old, new = (describer.describe(each, at) for each in (cst.Name(name), value))
        if not isinstance(old, Profile) or not isinstance(new, Profile):
            raise Withheld(f"`{name}` is not a tensor throughout the loop")
        for source in sorted(map(plain, new.sources - old.sources)):
            if name not in self._surely_assigned():
                self._conditions[f"the loop is not over before it used `{source}`"] = None
        evidence = Evidence(self._proven, self._evaluated(step))
        self._conditions.update(dict.fromkeys(keeps_kind(name, old, new, evidence)))
        if not new.finite:
            self._conditions["later rounds have finite gradients"] = None

    def _evaluated(self, step: Step) -> frozenset[Hazard]:
        """What any round computes before it may be the last, and before `step`."""
        describer = self._variables.describer
        found: set[Hazard] = set()
        for earlier in self._before:
            if earlier is step:
                break
            for value in earlier.values or ():
                described = describer.describe(value, earlier.statement)
                found |= described.hazards
        return frozenset(each for each in found if not self._varies(each))

    def fix(self, replacements: Mapping[cst.CSTNode, Replacement]) -> Fix:
        what = "Skip the rest of the round" if self._skips else "Run the loop to its bound"
        title = f"{what} behind a mask"
        if self._conditions:
            title += f", right if {' and '.join(self._conditions)}"
        safety = Safety.UNSAFE if self._conditions else Safety.SAFE
        tests = self._predicate.tests
        return Fix(safety, title, replacements, self._spelling.imports(), tests)
