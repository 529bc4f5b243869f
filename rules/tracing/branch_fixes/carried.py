"""Variables of a loop: which of them outlive a round, and whether they may be copies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from jitlint.analysis.observations import TruthTest
from jitlint.analysis.scope import names_read
from jitlint.analysis.values import Source, Static, Tensor

from .flow import Place, Step, asking, code_of, parameter_names, step_of
from .hazards import NO_EVIDENCE, Evidence
from .profile import Describer, Number, Profile, agree
from .withheld import Withheld


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables of a loop. `later` are the names that are read once it is over, and
    `when` says in which rounds the rewritten loop does what the old one did not."""

    loop: Place
    test: TruthTest
    describer: Describer
    later: frozenset[str]
    when: str

    @classmethod
    def of(
        cls,
        loop: Place,
        test: TruthTest,
        conditional: Sequence[cst.CSTNode],
        when: str = "when the loop is over",
    ) -> "Variables":
        describer = Describer(test, asking(test), tuple(conditional))
        return cls(loop, test, describer, loop.read_later(), when)

    def read_steps(self, statements: Sequence[cst.CSTNode]) -> list[Step]:
        """The statements as assignments that may run once more. Raises Withheld."""
        return [self._read_step(each) for each in statements]

    def _read_step(self, statement: cst.CSTNode) -> Step:
        step = step_of(statement)
        if step is None:
            raise Withheld(
                f"`{code_of(statement)}` is more than an assignment of tensors, and would run "
                f"even {self.when}"
            )
        for value in step.values or (step.right_side,):
            try:
                self.describer.describe(value, statement)
            except Withheld as reason:
                code = code_of(statement)
                raise Withheld(f"`{code}` would run even {self.when}, and {reason}") from None
        return step

    def carried(self, steps: Sequence[Step], also_read: frozenset[str] = frozenset()) -> list[str]:
        """Tensors whose values outlive a round; Python numbers must not outlive the loop."""
        written: dict[str, None] = {}
        early: set[str] = set(also_read)
        for step in steps:
            early |= step.reads - set(written)
            written.update(dict.fromkeys(step.targets))
        outliving = [name for name in written if name in self.later or name in early]
        return [name for name in outliving if self._is_carried(name)]

    def _is_carried(self, name: str) -> bool:
        value = self.test.value_of(cst.Name(name))
        if isinstance(value, Tensor) and not value.maybe:
            if not self.loop.is_defined(name):
                raise Withheld(f"`{name}` has no value before the loop: give it one")
            return True
        if isinstance(value, Static) and value.source is not Source.DATA:
            if name not in self.later:
                return False
            raise Withheld(
                f"`{name}` is a Python value that says when the loop was left, and is read after "
                "it: make it a tensor"
            )
        raise Withheld(f"`{name}` is not known to be a tensor throughout the loop")

    def is_number(self, name: str) -> bool:
        return isinstance(self.test.value_of(cst.Name(name)), Static)

    def check_memory(self, name: str) -> None:
        """Raises Withheld if `name` may be somebody else's tensor before the loop, and is
        given away after it: then a copy is not the same."""
        if self._is_own(name) or not self._is_given_away(name):
            return
        owner = "the caller's" if name in parameter_names(self.loop.function) else "another's"
        raise Withheld(
            f"where the loop changes nothing, `{name}` is {owner} own tensor and is handed on as "
            f"it is: start from `{name}.clone()`"
        )

    def check_augmented(self, step: Step) -> None:
        """`x += y` writes into `x`: it may be a copy only where nobody else holds that tensor."""
        name = step.targets[0]
        if not self._is_own(name) or self._is_bound_to_others(name):
            raise Withheld(
                f"`{code_of(step.statement)}` writes into a tensor that others may hold: write "
                f"`{name} = {name} …`"
            )

    def _is_own(self, name: str) -> bool:
        try:
            described = self.describer.describe(cst.Name(name), self.loop.node)
        except Withheld:
            return False
        return isinstance(described, Profile) and described.fresh

    def _is_bound_to_others(self, name: str) -> bool:
        for node in descendants(self.loop.function):
            if isinstance(node, cst.Assign | cst.Tuple | cst.List):
                for child in node.children:
                    inner = child.value if isinstance(child, cst.Element) else child
                    if isinstance(inner, cst.Name) and inner.value == name:
                        return True
        return False

    def _is_given_away(self, name: str) -> bool:
        """Whether code behind the loop may keep or return `name` itself, or a view of it."""
        return any(
            isinstance(node, cst.Name) and node.value == name and not self._is_consumed(node)
            for place in self.loop.outward()
            for statement in place.after
            for node in descendants(statement)
        )

    def _is_consumed(self, name: cst.Name) -> bool:
        """Whether only a result that shares no memory with `name` is used here."""
        node: cst.CSTNode = name
        while not isinstance(node, cst.BaseStatement):
            parent = self.loop.parent(node)
            if isinstance(parent, cst.AssignTarget) and parent.target is node:
                return True
            if isinstance(parent, cst.BaseExpression) and self._is_apart(parent, name.value):
                return True
            node = parent
        return False

    def _is_apart(self, node: cst.BaseExpression, name: str) -> bool:
        if isinstance(node, cst.Tuple | cst.List | cst.Dict):
            return False
        try:
            described = self.describer.describe(node, self.loop.node)
        except Withheld:
            return False
        return isinstance(described, Number) or not described.alias


def keeps_kind(
    name: str, old: Profile, new: Profile, evidence: Evidence = NO_EVIDENCE
) -> Iterator[str]:
    """On what it rests that the next value of a variable is of the kind of the one before.

    Raises Withheld where it surely is not.
    """
    if new.shape != old.shape:
        yield f"`{name}` keeps its shape"
    elif new.layout != old.layout or new.dense != old.dense:
        yield f"`{name}` is contiguous"
    left = evidence.left_of(new.hazards - old.hazards)
    yield from sorted({each.condition or f"`{each.code}` never fails" for each in left})
    alike = replace(
        new,
        shape=old.shape,
        layout=old.layout,
        dense=old.dense,
        sources=old.sources,
        hazards=old.hazards,
    )
    for condition in agree([old, alike], evidence).conditions:
        yield condition.replace("both arms have one", f"`{name}` keeps its")


def surely_runs(loop: cst.CSTNode, test: TruthTest) -> bool:
    """Whether a loop runs at least one round, whatever happens."""
    match loop:
        case cst.For(iter=cst.Call(func=cst.Name(value="range"), args=[cst.Arg(value=limit)])):
            value = test.value_of(limit)
            return isinstance(value, Static) and type(value.const) is int and value.const > 0
    return False


def own_names(loop: cst.CSTNode) -> frozenset[str]:
    """The names that the header of a loop binds."""
    return names_read(loop.target) if isinstance(loop, cst.For) else frozenset()


def descendants(node: cst.CSTNode) -> list[cst.CSTNode]:
    found = [node]
    for each in found:
        found += each.children
    return found
