"""Branches whose arms become `torch.where`, or `torch.cond`.

`torch.where` computes all arms: it is taken where no derivative of an arm that is not
wanted can be infinite or NaN. `torch.cond` computes one; it stands where that is not known.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import libcst as cst
from libcst.helpers import parse_template_expression

from jitlint.analysis import scope
from jitlint.analysis.observations import Construct, TruthTest
from jitlint.analysis.tree import contains, parents_of
from jitlint.analysis.values import Framework, Optional, Tensor
from jitlint.finding import Fix, Replacement
from jitlint.region import RegionKind
from jitlint.rule import Context

from . import emit
from .arms import (
    RETURNED,
    Arm,
    Branch,
    Form,
    bare,
    parenthesized,
    read_conditional,
    read_if,
    read_match,
)
from .comments import comment_line, header_of, require_comments
from .deletion import deletion
from .hazards import Evidence, Hazard, conditions_for
from .layers import check_layers
from .predicate import Predicate, conjunction, hazards_in, is_tensor_test, predicate
from .profile import (
    Agreement,
    Described,
    Describer,
    Number,
    Profile,
    agree,
    proven_by,
    proven_by_guard,
)
from .pure import ahead
from .uses import (
    VALUES,
    Use,
    arithmetic_partner,
    arithmetic_partners,
    use_of,
    uses_behind,
    uses_between,
    uses_of_name,
)
from .withheld import NotMine, Withheld

ONE_COMPUTED = "no arm fails and no gradient is differentiated again"
"""What `torch.cond` does not keep: errors become those of the compiler, which it also runs
in eager code, and its gradient has no gradient (measured with torch 2.13)."""

NO_FAILURE = "nothing fails behind the early return"
N = TypeVar("N", bound=cst.CSTNode)

Guarded = tuple[cst.BaseExpression | None, Branch]


def fix_branch(test: TruthTest, ctx: Context) -> Fix:
    """A branch as a selection between the values of its arms."""
    describer, selection = selection_of(test)
    branch = selection.branch
    if any(arm.effects for arm in branch.arms):
        raise Withheld("an arm has an effect besides its result: move it out of the branch")
    if branch.form is Form.NOTHING:
        return deletion(describer, branch)
    return selection.fix()


def selection_of(test: TruthTest) -> "tuple[Describer, Selection]":
    """The branch that a test decides. Raises NotMine, or Withheld."""
    owner = _owner(test)
    if isinstance(owner, cst.If):
        check_layers(test, owner)
    _require_tensor(test)
    describer = Describer(test, scope.statement_of(owner, test.module.tree))
    guard, branch = _read(describer, owner)
    return describer, Selection(test, guard, branch)


FIXERS: tuple[Callable[[TruthTest, Context], Fix], ...] = (fix_branch,)


def _owner(test: TruthTest) -> cst.CSTNode:
    """The branch that a test decides; a chained comparison or `any()` is a part of its test."""
    parents = parents_of(test.module.tree)
    node = test.owner
    while isinstance(node, cst.Comparison | cst.Call | cst.Arg | cst.BooleanOperation):
        node = parents[node]
    is_test = isinstance(node, cst.If | cst.IfExp) and contains(node.test, test.node)
    if isinstance(node, cst.Match) or is_test:
        return node
    raise NotMine


def _require_tensor(test: TruthTest) -> None:
    value = test.value.value if isinstance(test.value, Optional) else test.value
    if not isinstance(value, Tensor) or test.construct is Construct.BUILTIN:
        return
    code = test.module.tree.code_for_node(test.node)
    if value.maybe or isinstance(test.value, Optional):
        raise Withheld(f"`{code}` is not always a tensor")
    if value.framework is not Framework.TORCH:
        raise Withheld(f"`{code}` is a NumPy array: compute it with torch")


def _read(describer: Describer, owner: cst.CSTNode) -> Guarded:
    """The branch around the test, and the static part of its condition."""
    module = describer.module
    match owner:
        case cst.Match():
            return None, read_match(owner, module)
        case cst.IfExp():
            head: cst.IfExp | cst.If = _head(describer, owner)
            return _without_guard(describer, read_conditional(head, module))  # type: ignore[arg-type]
        case cst.If():
            head = _head(describer, owner)
            try:
                return _without_guard(describer, read_if(head, module))  # type: ignore[arg-type]
            except Withheld:
                if head is owner:
                    raise
                return _without_guard(describer, read_if(owner, module))
    raise NotMine


def _head(describer: Describer, node: cst.If | cst.IfExp) -> cst.If | cst.IfExp:
    """Where a chain of tests on tensors begins, of which `node` is one."""
    parents = parents_of(describer.module)
    while True:
        parent = parents[node]
        if not isinstance(parent, type(node)) or parent.orelse is not node:
            return node
        if not is_tensor_test(describer, parent.test):
            return node
        node = parent


def _without_guard(describer: Describer, branch: Branch) -> Guarded:
    first = branch.cases[0]
    guard, rest = conjunction(describer, first.test)
    if guard is None:
        return None, branch
    is_empty = branch.form is Form.NOTHING and not any(arm.effects for arm in branch.arms)
    if len(branch.cases) > 1 or is_empty:
        raise Withheld("the test mixes tensors with Python values: test those on their own")
    if isinstance(branch.node, cst.If) and branch.node.orelse is not None:
        raise Withheld("the test mixes tensors with Python values: test those on their own")
    case = type(first)(rest, first.arm)
    return guard, Branch(
        branch.form,
        branch.node,
        branch.statement,
        (case,),
        branch.default,
        branch.between,
        branch.end,
    )


@dataclass(eq=False)
class Selection:
    """A branch on its way to one expression per output.

    `report` makes a statement of the test: what stands in front of the selection.
    """

    test: TruthTest
    guard: cst.BaseExpression | None
    branch: Branch
    report: Callable[[cst.BaseExpression], cst.SimpleStatementLine] | None = None
    conditions: dict[str, None] = field(default_factory=dict)

    def fix(self) -> Fix:
        self._check_tail()
        for arm in self.branch.arms:
            self._check_dropped(arm)
            self._check_shared(arm)
        for each in self.predicates:
            self.conditions.update(dict.fromkeys(each.conditions))
        agreements = self._agreements()
        use_where = all(each.finite for each in agreements)
        if not use_where:
            self.conditions[ONE_COMPUTED] = None
            self._check_repeated()
        if not use_where and RegionKind.TRACE in self.test.regions:
            raise Withheld(
                "`torch.where` would compute a gradient of NaN where an arm is not taken, and "
                "torch.jit.trace does not take `torch.cond`"
            )
        replacements = self._replacements(use_where)
        require_comments(replacements)
        name = "where" if use_where else "cond"
        imports = self.spelling.imports()
        tests = [test for each in self.predicates for test in each.tests]
        if isinstance(self.branch.node, cst.Match):
            tests = [self.branch.node.subject]
        return emit.conditional_fix(
            f"Use `torch.{name}`", self.conditions, replacements, imports, tests
        )

    # -- what is known ---------------------------------------------------------------------

    @cached_property
    def module(self) -> cst.Module:
        return self.test.module.tree

    @cached_property
    def spelling(self) -> scope.Spelling:
        return scope.Spelling(self.test.module, self.test.node)

    @cached_property
    def function(self) -> cst.CSTNode:
        return scope.function_of(self.branch.node, self.module) or self.module

    @cached_property
    def describer(self) -> Describer:
        between = self.branch.between
        test = ahead(self.test, between) if between else self.test
        return Describer(test, self.branch.statement, between)

    def describe(self, node: cst.BaseExpression, arm: int) -> Described:
        """An expression of an arm; the last one may stand behind other statements."""
        is_last = arm == len(self.branch.cases)
        at = self.branch.end if is_last and self.branch.end is not None else None
        return self.describer.describe(node, at)

    @cached_property
    def predicates(self) -> tuple[Predicate, ...]:
        shapes: set[str] = set()
        for index, arm in enumerate(self.branch.arms):
            for node in arm.outputs.values():
                for (leaf,) in emit.leaves([node]):
                    described = self.describe(leaf, index)
                    shapes |= described.shape if isinstance(described, Profile) else set()
        may_bind = self.branch.form is not Form.EXPRESSION and not self.branch.between
        tests = [case.test for case in self.branch.cases]
        for later in tests[1:]:
            hazards = hazards_in(self.describer, later)
            self.conditions.update(dict.fromkeys(conditions_for(hazards, self.evidence)))
        built = [
            predicate(self.describer, test, self.function, frozenset(shapes), may_bind)
            for test in tests
        ]
        if any(each.bindings for each in built[1:]):
            raise Withheld("the middle of a chained comparison is costly: assign it before")
        return tuple(built)

    @cached_property
    def evidence(self) -> Evidence:
        tests = [case.test for case in self.branch.cases]
        try:
            evaluated = hazards_in(self.describer, tests[0])
        except Withheld:
            evaluated = frozenset()
        proven = proven_by(self.describer, tests[:1])
        if self.guard is not None:
            floating = proven.floating | proven_by_guard(self.describer, self.guard)
            proven = replace(proven, real=proven.real | floating, floating=floating)
        return Evidence(proven, evaluated)

    def _check_tail(self) -> None:
        """Statements behind an early return run always now, and before the test."""
        between = self.branch.between
        if not between:
            return
        written = scope.names_written(*between)
        read = scope.names_read(
            *(case.test for case in self.branch.cases),
            *(node for case in self.branch.cases for node in case.arm.outputs.values()),
        )
        if written & read:
            name = min(written & read)
            raise Withheld(f"`{name}` gets another value behind the early return")
        for statement in between:
            assign = cst.ensure_type(statement.body[0], cst.Assign)
            self._check_failures(self.describer.describe(assign.value, statement))
        for case in self.branch.cases:
            hazards_in(self.describer, case.test)

    def _check_failures(self, described: Described) -> frozenset[Hazard]:
        """That the tail of an early return never fails is a condition."""
        left = self.evidence.left_of(described.hazards)
        phrases = sorted({each.condition or NO_FAILURE for each in left})
        self.conditions.update(dict.fromkeys(phrases))
        return left

    def _without_failures(self, last: Profile) -> Profile:
        if self.branch.end is None and not self.branch.inlined:
            return last
        return replace(last, hazards=last.hazards - self._check_failures(last))

    def _check_dropped(self, arm: Arm) -> None:
        """What nothing uses is gone: it must have had no effect, and fail no sooner."""
        used = frozenset[Hazard]()
        for node in arm.outputs.values():
            for (leaf,) in emit.leaves([node]):
                with suppress(Withheld):
                    used |= self.describer.describe(leaf).hazards
        for node in arm.dropped:
            hazards = self.describer.describe(node).hazards - used - self.evidence.evaluated
            for hazard in sorted(hazards, key=lambda each: each.code):
                raise Withheld(f"`{hazard.code}` may fail, though nothing uses it: remove it")

    def _check_repeated(self) -> None:
        """A temporary stands in front of the selection, and what is in front is computed."""
        for index, arm in enumerate(self.branch.arms):
            for name, value in arm.repeated:
                if not isinstance(self.describe(value, index), Number):
                    raise Withheld(f"an arm uses its `{name}` twice: move the arm into a function")

    def _check_shared(self, arm: Arm) -> None:
        """Variables of one object become two objects."""
        for one, other in sorted(arm.shared):
            names = {one, other} & set(self.branch.targets)
            if len(names) == 2 and any(
                use not in VALUES for name in names for use in self._uses(name)
            ):
                raise Withheld(
                    f"`{one}` and `{other}` may be one tensor after the branch: assign "
                    f"`{one}` behind it"
                )

    # -- agreement of the arms ---------------------------------------------------------------

    def _agreements(self) -> list[Agreement]:
        found = [
            self._agreement(target, items)
            for target in self.branch.targets
            for items in emit.leaves([arm.outputs[target] for arm in self.branch.arms])
        ]
        for agreement in found:
            self.conditions.update(dict.fromkeys(agreement.conditions))
        return found

    def _agreement(self, target: str, nodes: Sequence[cst.BaseExpression]) -> Agreement:
        described = [self.describe(node, index) for index, node in enumerate(nodes)]
        numbers = [each for each in described if isinstance(each, Number)]
        if len(numbers) == len(described):
            return self._numbers_agree(target, numbers)
        if numbers:
            raise Withheld("one arm is a Python number and the other a tensor")
        profiles = [each for each in described if isinstance(each, Profile)]
        for node, profile in zip(nodes, profiles, strict=True):
            self._check_alias(target, node, profile)
        *arms, last = profiles
        agreement = agree([*arms, self._without_failures(last)], self.evidence)
        if all(use is Use.FUNCTIONAL for use in self._uses(target)):
            kept = tuple(each for each in agreement.conditions if "contiguous" not in each)
            return Agreement(kept, agreement.finite)
        return agreement

    def _numbers_agree(self, target: str, numbers: Sequence[Number]) -> Agreement:
        values = [number.value.const for number in numbers]
        if len({type(value) for value in values}) != 1 or not all(map(_is_exact, values)):
            raise Withheld(
                "the arms are Python numbers which a tensor does not hold exactly, "
                "or of different types"
            )
        partners = list(self._partners(target))
        if not partners or any(each is None for each in partners):
            raise Withheld(
                "the result is a Python number today, and is used for more than tensor arithmetic"
            )
        conditions = []
        for partner in partners:
            assert partner is not None
            value = self.test.value_of(partner)
            if not (isinstance(value, Tensor) and value.rank == 1):
                code = self.module.code_for_node(partner)
                conditions.append(f"`{code}` has at least one dimension")
        return Agreement(tuple(dict.fromkeys(conditions)), True)

    def _partners(self, target: str) -> Iterable[cst.BaseExpression | None]:
        match self.branch.form:
            case Form.ASSIGN:
                return arithmetic_partners(self.test, self.describer, target, self.branch.node)
            case Form.EXPRESSION:
                assert isinstance(self.branch.node, cst.BaseExpression)
                name = _assigned_name(self.branch.node, self.module)
                if name is None:
                    partner = arithmetic_partner(self.test, self.describer, self.branch.node)
                    return [partner]
                return arithmetic_partners(self.test, self.describer, name, self.branch.node)
        return [None]

    def _uses(self, target: str) -> set[Use]:
        match self.branch.form:
            case Form.ASSIGN:
                return uses_behind(self.describer, target, self.branch.node)
            case Form.EXPRESSION:
                assert isinstance(self.branch.node, cst.BaseExpression)
                return {use_of(self.describer, self.branch.node)}
        return {Use.RETURNED}

    def _check_alias(self, target: str, node: cst.BaseExpression, profile: Profile) -> None:
        """A selection is a new tensor, where an arm was one that others may hold."""
        if not profile.alias:
            return
        uses = self._uses(target)
        if uses <= VALUES:
            return
        code = self.module.code_for_node(node)
        if profile.fresh and self._is_only_reference(profile, target, uses):
            return
        if Use.KEPT in uses or profile.fresh:
            raise Withheld(
                f"one arm is `{code}` itself, and what becomes of the result could tell it "
                "from a copy"
            )
        if all(len(region.chain) > 1 for region in self.test.regions.values()):
            self.conditions[f"no caller needs `{code}` itself back"] = None
            return
        raise Withheld(
            f"one arm returns `{code}` itself, which the caller may hold: return "
            f"`{self.module.code_for_node(parenthesized(node))}.clone()` if nobody relies on that"
        )

    def _is_only_reference(self, profile: Profile, target: str, uses: set[Use]) -> bool:
        """Whether nothing that still reads the aliases could notice the difference."""
        own = [self.branch.node]
        if self.branch.form is Form.EXPRESSION:
            own.append(self.branch.statement)
        if self.branch.end is not None:
            own.append(self.branch.end)
        for name in profile.alias:
            if self.branch.form is Form.ASSIGN and name == target and Use.KEPT not in uses:
                if not uses_between(self.describer, name, self.branch.node) <= VALUES:
                    return False
                continue
            allowed = frozenset[Use]() if Use.KEPT in uses else VALUES
            if name == self._bound_name(target):
                allowed = VALUES | {Use.RETURNED}
            if not uses_of_name(self.describer, name, *own) <= allowed:
                return False
        return True

    def _bound_name(self, target: str) -> str | None:
        if isinstance(self.branch.node, cst.BaseExpression):
            return _assigned_name(self.branch.node, self.module)
        return target

    # -- new code ----------------------------------------------------------------------------

    def _replacements(self, use_where: bool) -> dict[cst.CSTNode, Replacement]:
        node = self.branch.node
        if self.branch.form is Form.EXPRESSION:
            return {node: self._expression(use_where)}
        temporaries = Temporaries.of(self.branch, self.function)
        statements = emit.fitting(
            lambda broken: temporaries.before(self._statements(broken, use_where)),
            self.module,
            self._indent(),
        )
        statements = self._with_comments(statements)
        if self.guard is not None:
            assert isinstance(node, cst.If)
            block = cst.IndentedBlock([each.with_changes() for each in statements])
            return {node: node.with_changes(test=self.guard, body=block)}
        if self.branch.statement is not node:
            return {node: cst.Else(cst.IndentedBlock(statements))}
        if self.branch.end is None:
            found: dict[cst.CSTNode, Replacement] = {node: cst.FlattenSentinel(statements)}
            return found | dict.fromkeys(self.branch.inlined, cst.RemoveFromParent())
        if self.branch.between:
            return {
                node: cst.RemoveFromParent(),
                self.branch.end: cst.FlattenSentinel(statements),
            }
        return {
            node: cst.FlattenSentinel(statements),
            self.branch.end: cst.RemoveFromParent(),
        }

    def _expression(self, use_where: bool) -> cst.BaseExpression:
        """What stands in the place of a conditional expression."""
        if (
            use_where
            and self._leaf_count > 1
            and not all(isinstance(test, cst.Name) for test in self._tests)
        ):
            raise Withheld("several values depend on the test: assign it to a variable before")
        (target,) = self.branch.targets
        line = self.module.code_for_node(self.branch.statement).strip("\n")
        old = len(self.module.code_for_node(self.branch.node))
        for broken in range(emit.MAX_BROKEN + 1):
            writer = emit.Writer(self.spelling, broken)
            value = self._selected(writer, target, self._tests, use_where)
            new = self.module.code_for_node(value)
            longest = max(map(len, new.split("\n")))
            width = longest if broken else len(line) - old + len(new)
            if width + self._indent() <= emit.LINE_LENGTH:
                break
        if self.guard is None:
            return value
        assert isinstance(self.branch.node, cst.IfExp)
        return self.branch.node.with_changes(body=value, test=self.guard)

    @property
    def _tests(self) -> list[cst.BaseExpression]:
        return [each.node for each in self.predicates]

    def _statements(self, broken: int, use_where: bool) -> list[cst.SimpleStatementLine]:
        writer = emit.Writer(self.spelling, broken)
        statements = [
            emit.assignment([name], value)
            for each in self.predicates
            for name, value in each.bindings
        ]
        tests = self._tests
        targets = self.branch.targets
        if isinstance(self.branch.node, cst.Match):
            bound, tests = self._with_subject(self.branch.node.subject, tests)
            statements += bound
        if self.report is not None or (use_where and self._leaf_count > 1):
            named, tests = self._named(tests)
            statements += named
        if self.report is not None:
            statements.append(self.report(tests[0]))
        if self.branch.form is Form.NOTHING:
            return statements
        if self.branch.form is Form.RETURN:
            value = self._selected(writer, RETURNED, tests, use_where)
            return [*statements, cst.SimpleStatementLine([cst.Return(value)])]
        if not use_where and len(targets) > 1:
            arms = [self._joint(index) for index in range(len(self.branch.arms))]
            return [*statements, emit.assignment(targets, writer.cond(tests, arms))]
        values = [self._selected(writer, target, tests, use_where) for target in targets]
        return statements + _in_sequence(targets, values)

    @property
    def _leaf_count(self) -> int:
        default = self.branch.default.outputs
        return sum(len(emit.leaves([node])) for node in default.values())

    def _with_subject(
        self, subject: cst.BaseExpression, tests: Sequence[cst.BaseExpression]
    ) -> tuple[list[cst.SimpleStatementLine], list[cst.BaseExpression]]:
        """The subject of a `match` is evaluated once."""
        if isinstance(subject, cst.Name) or len(tests) == 1:
            return [], list(tests)
        name = cst.Name(scope.fresh_name("subject", self.function))
        replaced: list[cst.BaseExpression] = []
        for test in tests:
            new = test.deep_replace(subject, name)
            assert isinstance(new, cst.BaseExpression)
            replaced.append(new)
        return [emit.assignment([name.value], bare(subject))], replaced

    def _named(
        self, tests: Sequence[cst.BaseExpression]
    ) -> tuple[list[cst.SimpleStatementLine], list[cst.BaseExpression]]:
        """Tests that several outputs share, as local variables."""
        statements: list[cst.SimpleStatementLine] = []
        names: list[cst.BaseExpression] = []
        for index, test in enumerate(tests):
            if isinstance(test, cst.Name) and test.value not in self.branch.targets:
                names.append(test)
                continue
            wanted = "condition" if index == 0 else f"condition_{index + 1}"
            name = scope.fresh_name(wanted, self.function)
            statements.append(emit.assignment([name], test))
            names.append(cst.Name(name))
        return statements, names

    def _selected(
        self,
        writer: emit.Writer,
        target: str,
        tests: Sequence[cst.BaseExpression],
        use_where: bool,
    ) -> cst.BaseExpression:
        arms = [arm.outputs[target] for arm in self.branch.arms]
        if use_where:
            return emit.map_structure(arms, lambda items: writer.where(tests, items))
        return writer.cond(tests, [self._unaliased(arm, index) for index, arm in enumerate(arms)])

    def _joint(self, index: int) -> cst.Tuple:
        arm = self.branch.arms[index]
        values = [self._unaliased(arm.outputs[name], index) for name in self.branch.targets]
        return cst.Tuple([cst.Element(value) for value in values])

    def _unaliased(self, node: cst.BaseExpression, index: int) -> cst.BaseExpression:
        """`torch.cond` refuses an arm that returns an input."""

        def leaf(items: Sequence[cst.BaseExpression]) -> cst.BaseExpression:
            described = self.describe(items[0], index)
            if isinstance(described, Profile) and described.alias:
                return parse_template_expression("{t}.clone()", t=parenthesized(items[0]))
            return items[0]

        return emit.map_structure([node], leaf)

    def _indent(self) -> int:
        parents = parents_of(self.module)
        depth, node = 0, self.branch.node
        while node in parents:
            node = parents[node]
            depth += isinstance(node, cst.IndentedBlock)
        return depth * len(self.module.default_indent)

    def _with_comments(
        self, statements: list[cst.SimpleStatementLine]
    ) -> list[cst.SimpleStatementLine]:
        """The comments of the branch, above the first of the new statements."""
        comments = [comment for arm in self.branch.arms for comment in arm.comments]
        lines: list[cst.EmptyLine] = []
        node = self.branch.node
        if isinstance(node, cst.If | cst.Match) and self.branch.statement is node:
            lines = list(node.leading_lines) if self.guard is None else []
        header = header_of(node)
        if header is not None and header.comment is not None:
            comments.remove(header.comment.value)
            last = statements[-1].with_changes(trailing_whitespace=header)
            statements = [*statements[:-1], last]
        lines += map(comment_line, comments)
        first = statements[0].with_changes(leading_lines=lines)
        return [first, *statements[1:]]


@dataclass(frozen=True, slots=True)
class Temporaries:
    """What arms read more than once, as variables in front of the selection."""

    named: tuple[tuple[str, cst.BaseExpression], ...]

    @classmethod
    def of(cls, branch: Branch, function: cst.CSTNode) -> "Temporaries":
        """With the names that they have in their arms, where nothing else is called so."""
        values = [(name, value) for arm in branch.arms for name, value in arm.repeated]
        read = scope.names_read(
            *(case.test for case in branch.cases),
            *(node for arm in branch.arms for node in arm.outputs.values()),
        )
        named: dict[str, cst.BaseExpression] = {}
        for name, value in values:
            if name in read or name in branch.targets or name in named:
                name = scope.fresh_name(name, function)
            if name in named:
                raise Withheld(f"several arms use a `{name}` twice: move them into functions")
            named[name] = value
        return cls(tuple(named.items()))

    def before(self, statements: list[cst.SimpleStatementLine]) -> list[cst.SimpleStatementLine]:
        known = _Named(self.named)
        lines = [
            emit.assignment([name], known.within(value, index))
            for index, (name, value) in enumerate(self.named)
        ]
        return [*lines, *(known.within(each, len(self.named)) for each in statements)]


class _Named(cst.CSTTransformer):
    """Puts names where the expressions are that they stand for; the later hold the earlier."""

    def __init__(self, named: Sequence[tuple[str, cst.BaseExpression]]) -> None:
        super().__init__()
        self._named = named
        self._known = named
        self._found: dict[cst.CSTNode, str] = {}

    def within(self, node: N, count: int) -> N:
        """`node` with the first `count` names."""
        self._known = tuple(reversed(self._named[:count]))
        new = node.visit(self)
        assert isinstance(new, type(node) | cst.Name)
        return new

    def on_visit(self, node: cst.CSTNode) -> bool:
        if not isinstance(node, cst.BaseExpression):
            return True
        plain = bare(node)
        for name, value in self._known:
            if bare(value).deep_equals(plain):
                self._found[node] = name
                return False
        return True

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode:
        name = self._found.get(original_node)
        return updated_node if name is None else cst.Name(name)


def _is_exact(value: object) -> bool:
    """Whether a tensor of the default dtype holds this number as it is."""
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return abs(value) < 2**31
    if not isinstance(value, float):
        return False
    try:
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except OverflowError:
        return False


def _assigned_name(node: cst.BaseExpression, module: cst.Module) -> str | None:
    match parents_of(module)[node]:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            return name
    return None


def _in_sequence(
    targets: Sequence[str], values: Sequence[cst.BaseExpression]
) -> list[cst.SimpleStatementLine]:
    """One assignment each, or one for all where a later value reads an earlier target."""
    for index, target in enumerate(targets):
        if any(target in scope.names_read(value) for value in values[index + 1 :]):
            joint = cst.Tuple([cst.Element(value) for value in values], (), ())
            return [emit.assignment(targets, joint)]
    return [emit.assignment([t], v) for t, v in zip(targets, values, strict=True)]
