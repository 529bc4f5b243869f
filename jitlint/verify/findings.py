"""What is known so far about one entry, and what its graph breaks say about a fix."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from jitlint.region import RegionKind
from jitlint.verify.aspects import Aspect
from jitlint.verify.compiler import Log
from jitlint.verify.records import Break, EntryResult

FIELDS = {
    Aspect.OUTPUT: "outputs_equal",
    Aspect.ALIAS: "outputs_equal",
    Aspect.GRADIENT: "gradients_equal",
    Aspect.MUTATION: "mutations_equal",
    Aspect.RANDOM: "mutations_equal",
    Aspect.EXCEPTION: "exceptions_equal",
    Aspect.PRINTED: "stdout_equal",
}


@dataclass(slots=True)
class Findings:
    """The first counterexample counts; doubts keep a fix from being verified."""

    equal: dict[str, bool] = field(default_factory=dict)
    counterexample: str | None = None
    doubts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    inputs: int = 0
    before: Log = field(default_factory=Log)
    after: Log = field(default_factory=Log)

    def compare(self, aspects: Sequence[Aspect]) -> None:
        for aspect in aspects:
            self.equal.setdefault(FIELDS[aspect], True)

    def differs(self, aspect: Aspect, text: str) -> None:
        self.equal[FIELDS[aspect]] = False
        self.refute(text)

    def refute(self, text: str) -> None:
        self.counterexample = self.counterexample or text

    def doubt(self, text: str) -> None:
        if text not in self.doubts:
            self.doubts.append(text)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def count(self, before: Log, after: Log) -> None:
        self.before = _merged(self.before, before)
        self.after = _merged(self.after, after)

    def result(self, entry: str, kind: RegionKind) -> EntryResult:
        return EntryResult(
            entry,
            kind.value,
            self.before.graphs,
            self.after.graphs,
            self.before.breaks,
            self.after.breaks,
            self.before.recompiles,
            self.after.recompiles,
            tuple(self.notes),
            inputs=self.inputs,
            **self.equal,
        )


def _merged(known: Log, log: Log) -> Log:
    """Graphs and recompilations as the first backend counts them; breaks of all."""
    if known == Log():
        return log
    seen = {(item.line, item.code) for item in known.breaks}
    more = tuple(item for item in log.breaks if (item.line, item.code) not in seen)
    return Log(known.graphs, known.breaks + more, known.recompiles, known.skipped or log.skipped)


def changed_lines(old: Sequence[str], new: Sequence[str]) -> frozenset[int]:
    """The numbers of the lines of `new` that are not in `old`."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return frozenset(
        line
        for tag, _, _, start, end in matcher.get_opcodes()
        if tag != "equal"
        for line in range(start + 1, end + 1)
    )


def break_faults(
    before: Log,
    after: Log,
    changed: frozenset[int],
    failed: str,
    asked_for: frozenset[str] = frozenset(),
) -> Iterator[str]:
    """What the rewrite did wrong as to breaks. `failed` is the code of a backend's failure.

    A break that the new code asks for may take the place of another, but not be added.

    After a whole frame fell back to eager, the rest of it was never tried, so that more
    breaks come to light when that is cured: only those on rewritten lines are new.
    """
    known = {item.code for item in before.breaks} | asked_for
    for item in after.breaks:
        if item.code not in known and (item.code == failed or item.line in changed):
            yield f"a rewritten line breaks the graph: {_describe(item)}"
    if len(after.breaks) > len(before.breaks) and not before.skipped:
        yield f"the rewrite adds graph breaks: {_describe(after.breaks[-1])}"


def _describe(item: Break) -> str:
    return f"{item.code or 'break'} on line {item.line}: {item.reason}"
