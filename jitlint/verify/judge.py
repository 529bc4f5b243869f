"""From one request to its verdict: load, run, compile, compare.

`refuted` needs an input on which the two versions differ, `verified` needs every mode of
every entry to agree and both sides of every rewritten test to have run; whatever lies
between is `unverified`, with the first thing that was missing.
"""

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from jitlint.finding import Verdict
from jitlint.region import RegionKind
from jitlint.verify.compiler import Compiler, Log, Mode, RefusalError, Session
from jitlint.verify.inputs import (
    Given,
    Settings,
    derived,
    given_by_example,
    given_by_module,
    requiring_grad,
)
from jitlint.verify.loading import LoadError, Version, load, workplace
from jitlint.verify.outcome import (
    Aspect,
    Difference,
    Outcome,
    OutOfMemoryError,
    Streams,
    differences,
    observe,
)
from jitlint.verify.probes import Coverage
from jitlint.verify.recorder import Entry
from jitlint.verify.records import Break, EntryResult, Options, Report, Request
from jitlint.verify.sandbox import Sandbox, TookTooLongError, time_limit
from jitlint.verify.state import Target, copy_weights
from jitlint.verify.torch_compile import BACKEND_FAILED, TorchCompile
from jitlint.verify.torch_export import TorchExport
from jitlint.verify.torch_trace import TorchTrace

COMPILERS: dict[RegionKind, Compiler] = {
    compiler.kind: compiler for compiler in (TorchCompile(), TorchExport(), TorchTrace())
}
NO_INPUTS = "no inputs: define make_inputs(seed), which returns a tuple of arguments"
NO_ENTRY = "the module hands nothing to a compiler when it is imported"
NO_FIX = "there is no fix to prove: old and new code are the same"
_FIELDS = {
    Aspect.OUTPUT: "outputs_equal",
    Aspect.ALIAS: "outputs_equal",
    Aspect.GRADIENT: "gradients_equal",
    Aspect.MUTATION: "mutations_equal",
    Aspect.RANDOM: "mutations_equal",
    Aspect.EXCEPTION: "exceptions_equal",
    Aspect.PRINTED: "stdout_equal",
}
_GRAD_SEEDS = 4
EAGERLY = "eagerly"
# A loop that halves a number until it is small never ends on infinity.
EDGE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Pair:
    """One entry, in the old version, the new one, and the old one with probes."""

    old: Entry
    new: Entry
    probed: Entry


@dataclass(slots=True)
class Findings:
    """What is known about one entry so far."""

    equal: dict[str, bool] = field(default_factory=dict)
    counterexample: str | None = None
    doubts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    inputs: int = 0
    before: Log = field(default_factory=Log)
    after: Log = field(default_factory=Log)

    def refute(self, text: str) -> None:
        self.counterexample = self.counterexample or text

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def result(self, entry: Entry) -> EntryResult:
        return EntryResult(
            entry.name,
            entry.kind.value,
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


class Judge:
    """Serves one request."""

    def __init__(
        self, options: Options, device: str, sandbox: Sandbox, stage: Callable[[str], None]
    ) -> None:
        self._options = options
        self._device = device
        self._sandbox = sandbox
        self._stage = stage
        self._streams = Streams()

    def judge(self, request: Request) -> Report:
        self._streams.install()
        self._sandbox.refused.clear()
        unverified = partial(Report, request.path, Verdict.UNVERIFIED)
        try:
            with workplace(request.path) as name:
                return self._judge(request, name)
        except LoadError as error:
            return unverified(f"the module cannot be loaded: {error}")
        except OutOfMemoryError:
            return unverified("the memory limit was reached")

    def _judge(self, request: Request, name: str) -> Report:
        path = request.path
        old, _ = load(path, name, request.old, self._streams)
        probed, coverage = load(path, name, request.old, self._streams, request.tests)
        try:
            new, _ = load(path, name, request.new, self._streams)
        except LoadError as error:
            reason = "the new module cannot be loaded"
            return Report(path, Verdict.REFUTED, reason, (), str(error))
        if not old.entries:
            return Report(path, Verdict.UNVERIFIED, NO_ENTRY)
        pairs = _pair(old.entries, new.entries, probed.entries)
        if pairs is None:
            reason = "the fix changes what is handed to a compiler"
            return Report(path, Verdict.UNVERIFIED, reason)
        changed = _changed_lines(old.lines, new.lines)
        runs = [
            EntryRun(
                self._options, self._device, self._streams, self._stage, pair, old, new, probed
            )
            for pair in pairs
        ]
        for run in runs:
            run.run(changed, same=request.old == request.new)
        return self._report(request, runs, coverage)

    def _report(self, request: Request, runs: "Sequence[EntryRun]", coverage: Coverage) -> Report:
        results = tuple(run.findings.result(run.pair.old) for run in runs)
        counterexample = next(
            (run.findings.counterexample for run in runs if run.findings.counterexample), None
        )
        notes = [note for run in runs for note in run.findings.notes]
        if self._sandbox.refused:
            reason = f"the code attempted {self._sandbox.refused[0]}, which is not allowed here"
            return Report(request.path, Verdict.UNVERIFIED, reason, results)
        if counterexample is not None:
            reason = f"old and new code differ: {counterexample}"
            return Report(request.path, Verdict.REFUTED, reason, results, counterexample)
        doubts = [doubt for run in runs for doubt in run.findings.doubts]
        if (gap := coverage.gap()) is not None:
            doubts.append(gap)
        if request.old == request.new:
            doubts.append(NO_FIX)
        if doubts:
            return Report(request.path, Verdict.UNVERIFIED, doubts[0], results)
        reason = "; ".join([self._counts(results), *notes])
        return Report(request.path, Verdict.VERIFIED, reason, results)

    def _counts(self, results: Sequence[EntryResult]) -> str:
        kinds = [RegionKind(result.kind) for result in results]
        modes = {mode.label for kind in kinds for mode in COMPILERS[kind].modes(self._options)}
        before = sum(len(result.breaks_before) for result in results)
        after = sum(len(result.breaks_after) for result in results)
        inputs = sum(result.inputs for result in results)
        parts = (
            _plural(len(results), "entry"),
            _plural(inputs, "input"),
            _plural(len(modes), "mode"),
        )
        return f"{', '.join(parts)}; breaks {before} → {after}"


@dataclass(slots=True)
class EntryRun:
    """Everything that is done about one pair of entries."""

    options: Options
    device: str
    streams: Streams
    stage: Callable[[str], None]
    pair: Pair
    old: Version
    new: Version
    probed: Version
    findings: Findings = field(default_factory=Findings)
    settings: Settings = field(init=False)
    givens: list[Given] = field(default_factory=list)
    expected: list[Outcome] = field(default_factory=list)
    _references: dict[str, tuple[list[Outcome], Log]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.settings = Settings.read(self.old.namespace)

    @property
    def compiler(self) -> Compiler:
        return COMPILERS[self.pair.old.kind]

    def run(self, changed: "Changed", same: bool) -> None:
        copy_weights(self.pair.old.target, self.pair.new.target)
        copy_weights(self.pair.old.target, self.pair.probed.target)
        for entry in (self.pair.old, self.pair.new, self.pair.probed):
            _move(entry.target, self.device)
        if not self._find_inputs():
            return
        self._compare_eager()
        for mode in self.compiler.modes(self.options):
            self._compare_compiled(mode, changed)
            if self.findings.counterexample is not None:
                self._count_once()
                return

    def _find_inputs(self) -> bool:
        """Fills `givens` and `expected`; `False` if there is nothing to go by."""
        self._stage_is("making inputs")
        entry = self.pair.old
        with self.streams.captured():
            base = given_by_module(self.old.namespace, entry.names, self.options.seeds, self.device)
        if not base and entry.example is not None:
            base = given_by_example(entry.example, self.options.seeds, self.device)
        if not base:
            self.findings.doubts.append(NO_INPUTS)
            return False
        self.givens = list(base)
        self.expected = self._eagerly(self.old, entry, base)
        self._run_edges(self._edges(base))
        self._drop_unfit()
        again = self._eagerly(self.probed, self.pair.probed, self.givens)
        for given, first, second in zip(self.givens, self.expected, again, strict=True):
            unlike = self._differences(given, first, second, compiled=False)
            if unlike:
                self.findings.doubts.append(
                    f"the old code is not deterministic ({given.label}: {unlike[0].detail})"
                )
                return False
        if all(outcome.failure is not None for outcome in self.expected[: len(base)]):
            failure = self.expected[0].failure
            self.findings.doubts.append(f"{entry.name} raises on every input: {failure}")
        self.findings.inputs = len(self.givens)
        return True

    def _edges(self, base: Sequence[Given]) -> list[Given]:
        if not self.settings.edges:
            return []
        wants_grad = self.settings.gradients and (
            self.settings.force_gradients or _trains(self.pair.old.target)
        )
        found = derived(base[0])
        if wants_grad:
            for given in base[:_GRAD_SEEDS]:
                found += requiring_grad(given)
        return found

    def _run_edges(self, edges: Sequence[Given]) -> None:
        """Drops the derived edge cases on which the old code does not come to an end."""
        for given in edges:
            try:
                with time_limit(EDGE_SECONDS):
                    outcome = self._eagerly(self.old, self.pair.old, [given])[0]
            except TookTooLongError:
                self.findings.note(f"the old code does not end in time on {given.label}")
                continue
            self.givens.append(given)
            self.expected.append(outcome)

    def _drop_unfit(self) -> None:
        """Code that never takes leaves that require grad is not judged by them."""
        unfit = any(
            given.leaf and outcome.failure is not None
            for given, outcome in zip(self.givens, self.expected, strict=True)
        )
        if unfit:
            kept = [index for index, given in enumerate(self.givens) if not given.leaf]
            self.givens = [self.givens[index] for index in kept]
            self.expected = [self.expected[index] for index in kept]

    def _compare_eager(self) -> None:
        self._compared_aspects()
        actual = self._eagerly(self.new, self.pair.new, self.givens)
        for given, old, new in zip(self.givens, self.expected, actual, strict=True):
            for unlike in self._differences(given, old, new, compiled=False):
                self._refute(given, "eager", unlike)

    def _compared_aspects(self) -> None:
        for aspect in (Aspect.OUTPUT, Aspect.MUTATION, Aspect.EXCEPTION, Aspect.PRINTED):
            self.findings.equal[_FIELDS[aspect]] = True
        if any(outcome.gradients for outcome in self.expected):
            self.findings.equal["gradients_equal"] = True

    def _compare_compiled(self, mode: Mode, changed: "Changed") -> None:
        accepted = [
            (given, outcome)
            for given, outcome in zip(self.givens, self.expected, strict=True)
            if self.compiler.accepts(self.pair.old, given)
        ]
        try:
            actual, log = self._compiled(self.new, self.pair.new, mode)
        except RefusalError as refusal:
            self._new_is_refused(mode, refusal)
            return
        if not mode.whole or self.compiler.kind is not RegionKind.COMPILE:
            self._judge_breaks(mode, log, changed)
        refused = None
        for (given, old), new in zip(accepted, actual, strict=True):
            if mode.whole and new.failure is not None and self.compiler.refuses(new.failure):
                if old.failure is None:
                    refused = refused or new.failure
                continue
            self._compare_one(mode, given, old, new)
        if refused is not None:
            self._not_one_graph(mode, str(refused))

    def _compare_one(self, mode: Mode, given: Given, old: Outcome, new: Outcome) -> None:
        unlike = self._differences(given, old, new, compiled=True)
        if not unlike:
            return
        reference = self._old_compiled(mode, given)
        for difference in unlike:
            aspect = difference.aspect
            if reference is None or aspect in self._aspects_unlike(given, reference, new):
                self._refute(given, mode.label, difference)
            elif aspect in self.compiler.strict and self.compiler.same_shape(self.pair.old, given):
                self.findings.doubts.append(
                    f"{self._title(given, mode.label)}: the new compiled code differs from the "
                    f"eager code as the old did ({difference.detail})"
                )
            else:
                self.findings.note(
                    f"{mode.label} itself changes the {aspect.value} of "
                    f"{self.pair.old.name}, in the old code too"
                )

    def _aspects_unlike(self, given: Given, old: Outcome, new: Outcome) -> set[Aspect]:
        return {item.aspect for item in self._differences(given, old, new, compiled=True)}

    def _old_compiled(self, mode: Mode, given: Given) -> Outcome | None:
        """What the old code does under the same compiler: its own differences are no fault."""
        try:
            outcomes, _ = self._reference(mode)
        except RefusalError:
            return None
        accepted = [item for item in self.givens if self.compiler.accepts(self.pair.old, item)]
        return next(
            outcome for item, outcome in zip(accepted, outcomes, strict=True) if item is given
        )

    def _reference(self, mode: Mode) -> tuple[list[Outcome], Log]:
        """The old code in the forgiving mode of the same backend, run once."""
        plain = next(
            item for item in self.compiler.modes(self.options) if item.backend == mode.backend
        )
        if plain.label not in self._references:
            self._references[plain.label] = self._compiled(self.old, self.pair.old, plain)
        return self._references[plain.label]

    def _count_once(self) -> None:
        """A refuted entry still gets its counts, from the first mode."""
        mode = self.compiler.modes(self.options)[0]
        try:
            if self.findings.before == Log():
                self.findings.before = self._reference(mode)[1]
            if self.findings.after == Log():
                self.findings.after = self._compiled(self.new, self.pair.new, mode)[1]
        except RefusalError as refusal:
            self.findings.note(f"{mode.label}: {refusal}")

    def _judge_breaks(self, mode: Mode, log: Log, changed: "Changed") -> None:
        try:
            before = self._reference(mode)[1]
        except RefusalError as refusal:
            before = Log(breaks=(refusal.broken,))
            self.findings.note(f"{mode.label} refused the old code: {refusal}")
        self.findings.before = _merged(self.findings.before, before)
        self.findings.after = _merged(self.findings.after, log)
        codes = {item.code for item in before.breaks}
        for item in log.breaks:
            added = item.code not in codes and (
                item.code == BACKEND_FAILED or item.line in changed.new
            )
            if added:
                self._refute_break(mode, "a rewritten line breaks the graph", item)
        if len(log.breaks) > len(before.breaks) and not before.skipped:
            self._refute_break(mode, "the rewrite adds graph breaks", log.breaks[-1])

    def _refute_break(self, mode: Mode, what: str, item: Break) -> None:
        self.findings.refute(
            f"{self.pair.old.name} ({mode.label}): {what}: {item.code} on line {item.line}: "
            f"{item.reason}"
        )

    def _new_is_refused(self, mode: Mode, refusal: RefusalError) -> None:
        self.findings.after = Log(breaks=(refusal.broken,))
        try:
            self.findings.before = self._reference(mode)[1]
        except RefusalError as old:
            self.findings.before = Log(breaks=(old.broken,))
            self.findings.doubts.append(f"{mode.label} refuses the new code too: {refusal}")
        else:
            self.findings.refute(f"{self.pair.old.name} ({mode.label}): now refused: {refusal}")

    def _not_one_graph(self, mode: Mode, message: str) -> None:
        if self.findings.after.breaks:
            self.findings.note(f"{mode.label}: other breaks are left: {message}")
        else:
            self.findings.refute(
                f"{self.pair.old.name} ({mode.label}): does not compile as one graph, "
                f"though no break is left: {message}"
            )

    def _differences(
        self, given: Given, old: Outcome, new: Outcome, *, compiled: bool
    ) -> list[Difference]:
        if given.reshaped and _fail_alike(old, new, compiled):
            return []  # a shape that neither takes; where it is noticed may differ
        aspects = self.compiler.compared if compiled else frozenset(Aspect)
        if compiled and Aspect.PRINTED not in aspects and old.failure and new.failure:
            return []
        return differences(old, new, compiled=compiled, aspects=aspects)

    def _refute(self, given: Given, mode: str, unlike: Difference) -> None:
        self.findings.equal[_FIELDS[unlike.aspect]] = False
        self.findings.refute(f"{self._title(given, mode)}: {unlike.aspect.value}: {unlike.detail}")

    def _title(self, given: Given, mode: str) -> str:
        return f"{self.pair.old.name}, {given.label} ({mode})"

    def _eagerly(self, version: Version, entry: Entry, givens: Sequence[Given]) -> list[Outcome]:
        with version.recorder.installed():
            return self._series(version, entry, givens, _as_it_is, EAGERLY)

    def _compiled(self, version: Version, entry: Entry, mode: Mode) -> tuple[list[Outcome], Log]:
        """The outcomes of all inputs; the log of the user's own ones, called in a row."""
        givens = [given for given in self.givens if self.compiler.accepts(self.pair.old, given)]
        with self.compiler.session(version, entry, mode) as session:
            run = partial(self._series, version, entry, build=session.build, how=mode.label)
            row = [given for given in givens if not given.fresh]
            outcomes = run(givens=row)
            log = session.log()
            outcomes += run(givens=[given for given in givens if given.fresh])
            return outcomes, _with_late_failures(log, session)

    def _series(
        self,
        version: Version,
        entry: Entry,
        givens: Sequence[Given],
        build: Callable[[Target], Callable[..., object]],
        how: str,
    ) -> list[Outcome]:
        """Calls in a row on one target, as a program would; a fresh one where asked."""
        version.activate()
        outcomes = []
        target, call = None, None
        for given in givens:
            self._stage_is(f"running {how} on {given.label}")
            if call is None or target is None or given.fresh:
                version.globals.restore()
                target = entry.target.fresh()
                call = build(target)
            outcomes.append(
                observe(
                    call,
                    target,
                    given,
                    self.streams,
                    version.globals,
                    gradients=self.settings.gradients,
                    eager=how == EAGERLY,
                )
            )
        return outcomes

    def _stage_is(self, what: str) -> None:
        self.stage(f"{what} ({self.pair.old.name})")


@dataclass(frozen=True, slots=True)
class Changed:
    """The line numbers that a fix touches, in the new text."""

    new: frozenset[int]


def _changed_lines(old: Sequence[str], new: Sequence[str]) -> Changed:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    touched = {
        line
        for tag, _, _, start, end in matcher.get_opcodes()
        if tag != "equal"
        for line in range(start + 1, end + 1)
    }
    return Changed(frozenset(touched))


def _pair(old: Sequence[Entry], new: Sequence[Entry], probed: Sequence[Entry]) -> list[Pair] | None:
    """Entries in the order in which they were made; they have to be the same ones."""
    if [(entry.kind, entry.name) for entry in old] != [(entry.kind, entry.name) for entry in new]:
        return None
    return [Pair(*entries) for entries in zip(old, new, probed, strict=True)]


def _merged(known: Log, log: Log) -> Log:
    """Graphs and recompilations as the first backend counts them; breaks of all."""
    if known == Log():
        return log
    seen = {(item.line, item.code) for item in known.breaks}
    more = tuple(item for item in log.breaks if (item.line, item.code) not in seen)
    return Log(known.graphs, known.breaks + more, known.recompiles, known.skipped or log.skipped)


def _with_late_failures(log: Log, session: Session) -> Log:
    """A backend that fails on an edge case only has failed all the same."""
    late = tuple(
        item
        for item in session.log().breaks
        if item.code == BACKEND_FAILED and item not in log.breaks
    )
    return Log(log.graphs, log.breaks + late, log.recompiles, log.skipped)


def _as_it_is(target: Target) -> Callable[..., object]:
    return target.call


def _trains(target: Target) -> bool:
    return any(parameter.requires_grad for parameter in target.parameters().values())


def _move(target: Target, device: str) -> None:
    if target.owner is not None:
        target.owner.to(device)


def _fail_alike(old: Outcome, new: Outcome, compiled: bool) -> bool:
    if old.failure is None or new.failure is None:
        return False
    return compiled or old.failure.type == new.failure.type


def _plural(count: int, noun: str) -> str:
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{count} {noun if count == 1 else plural}"
