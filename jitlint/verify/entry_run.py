"""One entry, before and after: the inputs, the runs, the comparisons."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from jitlint.region import RegionKind
from jitlint.time_limit import TookTooLongError, time_limit
from jitlint.verify.aspects import Aspect, Difference, Failure, OutOfMemoryError
from jitlint.verify.bench import OtherEntriesError
from jitlint.verify.compiler import Log, Mode, RefusalError
from jitlint.verify.derive import Question, Trial, Untyped, derive, parameters_of
from jitlint.verify.findings import Findings, break_faults
from jitlint.verify.inputs import (
    Given,
    InputError,
    Settings,
    edge_cases,
    given_by_example,
    given_by_module,
    in_other_mode,
    of_integers,
    prepared,
    requiring_grad,
    variants,
)
from jitlint.verify.loading import Version
from jitlint.verify.numba_kernels import NumbaKernels, has_kernels
from jitlint.verify.operators import OperatorCalls
from jitlint.verify.outcome import Outcome, Streams, differences
from jitlint.verify.reach import Reach
from jitlint.verify.recorder import Entry
from jitlint.verify.records import EntryResult, Options
from jitlint.verify.runs import Subject, TorchCompiler
from jitlint.verify.state import copy_weights
from jitlint.verify.torch_compile import TorchCompile
from jitlint.verify.torch_export import TorchExport
from jitlint.verify.torch_script import TorchScript
from jitlint.verify.torch_trace import TorchTrace
from jitlint.verify.torch_values import TorchTensors, code_of, likely_sizes
from jitlint.verify.values import opaque_in, stable_text

COMPILERS: dict[RegionKind, TorchCompiler] = {
    compiler.kind: compiler
    for compiler in (TorchCompile(), TorchExport(), TorchTrace(), TorchScript(), NumbaKernels())
}
NO_INPUTS = "no inputs: define make_inputs(seed), which returns a tuple of arguments"
EAGER = "eager, not compiled"
# A loop that halves a number until it is small never ends on infinity.
EDGE_SECONDS = 2.0
# A kernel of Numba is compiled for each kind of input.
TRIAL_SECONDS = 10.0
_GRAD_SEEDS = 4


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all the entries of a request share."""

    options: Options
    device: str
    streams: Streams
    stage: Callable[[str], None]
    changed: frozenset[int]
    reach: Reach


@dataclass(slots=True)
class EntryRun:
    """`probed` is the old version again, with probes around the rewritten tests."""

    around: Surroundings
    old: Subject
    new: Subject
    probed: Subject
    settings: Settings
    findings: Findings = field(default_factory=Findings)
    givens: list[Given] = field(default_factory=list)
    expected: list[Outcome] = field(default_factory=list)

    @property
    def entry(self) -> Entry:
        return self.old.entry

    @property
    def compiler(self) -> TorchCompiler:
        return COMPILERS[self.entry.kind]

    @property
    def modes(self) -> tuple[Mode, ...]:
        return self.compiler.modes(self.around.options)

    @property
    def labels(self) -> list[str]:
        return [mode.label for mode in self.modes]

    @property
    def counted(self) -> tuple[str, int, int]:
        return "breaks", len(self.findings.before.breaks), len(self.findings.after.breaks)

    def result(self) -> EntryResult:
        return self.findings.result(self.entry.name, self.entry.kind)

    def run(self) -> None:
        if not self._find_inputs() or not self._is_deterministic():
            return
        self._compare_eager()
        for mode in self.modes:
            if self.findings.counterexample is not None:
                break
            self._compare_compiled(mode)
        if self.findings.counterexample is not None:
            self._count()

    # Inputs

    def _find_inputs(self) -> bool:
        """Fills `givens` and `expected`; `False` if there is nothing to go by."""
        try:
            base = self._base_inputs()
        except InputError as error:
            self.findings.doubt(str(error))
            return False
        if not base:
            self.findings.doubt(NO_INPUTS)
            return False
        self.givens = list(base)
        self.expected = self.old.eagerly(base)
        if all(outcome.failure is not None for outcome in self.expected):
            failure = self.expected[0].failure
            self.findings.doubt(f"{self.entry.name} raises on every input: {failure}")
        opaque = next(filter(None, (opaque_in(each.output) for each in self.expected)), None)
        if opaque is not None:
            self.findings.doubt(
                f"{self.entry.name} returns a {opaque}, of which nothing can be compared"
            )
        self._run_edges(self._edges(base))
        self._drop_unfit()
        self.findings.inputs = len(self.givens)
        return True

    def _base_inputs(self) -> list[Given]:
        self.around.stage(f"making inputs for {self.entry.name}")
        seeds, device = self.around.options.seeds, self.around.device
        with self.around.streams.captured():
            namespace, entry = self.old.version.namespace, self.entry
            base = given_by_module(namespace, entry.names, seeds, device, entry.is_main)
            if not base and self.entry.example is not None:
                base = given_by_example(self.entry.example, seeds, device)
            return base or self._derived_inputs()

    def _derived_inputs(self) -> list[Given]:
        """What the module writes of inputs, or what the old code takes; the verdict says so."""
        seeds, device = self.around.options.seeds, self.around.device
        version, target = self.old.version, self.entry.target
        parameters = parameters_of(code_of(target), code_of(self.new.entry.target))
        if parameters is None:
            return []
        question = Question(
            code_of(target),
            parameters,
            self.entry.names,
            version.namespace,
            "".join(version.lines),
            TorchTensors(),
            likely_sizes(target, version.namespace),
            target.owner is not None,
            seeds,
            self._takes,
            Untyped.TENSOR if self.entry.kind is RegionKind.SCRIPT else Untyped.ANYTHING,
        )
        derived = derive(question)
        if derived is None:
            return []
        self.findings.note(derived.origin)
        if derived.written:
            share = max(seeds // len(derived.rows), 2)
            return [
                given
                for row in derived.rows
                for given in given_by_example((row.args, row.kwargs), share, device, row.label)
            ]
        made = [
            Given(row.label, prepared((row.args, row.kwargs), device), seed=row.seed)
            for row in derived.rows
        ]
        if has_kernels(version.namespace):
            return made  # Numba compiles for each type, and not for all of these
        return made + [each for each in variants(made[0]) if self._takes(Trial(*each.template))]

    def _takes(self, trial: Trial) -> bool:
        """Whether the old code comes to an end, and without an exception."""
        template = prepared((trial.args, trial.kwargs), self.around.device)
        try:
            with time_limit(TRIAL_SECONDS):
                (outcome,) = self.old.eagerly([Given("a trial", template, fresh=True)])
        except (TookTooLongError, OutOfMemoryError):
            return False
        return outcome.failure is None

    def _edges(self, base: Sequence[Given]) -> list[Given]:
        if not self.settings.edges:
            return []
        found = edge_cases(base[0])
        if self.entry.kind is RegionKind.SCRIPT:
            found += of_integers(base[0])
        if self.entry.target.owner is not None:
            found.append(in_other_mode(base[0]))
        if self.settings.gradients and (self.settings.force_gradients or self._trains()):
            for given in base[:_GRAD_SEEDS]:
                found += requiring_grad(given)
        return found

    def _trains(self) -> bool:
        return any(item.requires_grad for item in self.entry.target.parameters().values())

    def _run_edges(self, edges: Sequence[Given]) -> None:
        """Drops the derived edge cases on which the old code does not come to an end."""
        endless = []
        limit = TRIAL_SECONDS if has_kernels(self.old.version.namespace) else EDGE_SECONDS
        for given in edges:
            try:
                with time_limit(limit):
                    (outcome,) = self.old.eagerly([given])
            except TookTooLongError:
                endless.append(given.label)
                continue
            self.givens.append(given)
            self.expected.append(outcome)
        if endless:
            labels = ", ".join(endless)
            self.findings.note(f"left out, as the old code did not end in time: {labels}")

    def _drop_unfit(self) -> None:
        """Code that never takes leaves that require grad is not judged by them."""
        pairs = list(zip(self.givens, self.expected, strict=True))
        if any(given.leaf and outcome.failure is not None for given, outcome in pairs):
            kept = [pair for pair in pairs if not pair[0].leaf]
            self.givens = [given for given, _ in kept]
            self.expected = [outcome for _, outcome in kept]

    def _is_deterministic(self) -> bool:
        """The second run is the probed one: it also collects which sides of a test ran."""
        with self.around.reach.recorded():
            again = self.probed.eagerly(self.givens)
        for given, first, second in zip(self.givens, self.expected, again, strict=True):
            for unlike in self._eager_differences(given, first, second):
                self.findings.doubt(
                    f"the old code is not deterministic ({given.label}: {unlike.detail})"
                )
                return False
        return True

    # Old code against new code

    def _compare_eager(self) -> None:
        self.findings.compare((Aspect.OUTPUT, Aspect.MUTATION, Aspect.EXCEPTION, Aspect.PRINTED))
        if any(outcome.gradients for outcome in self.expected):
            self.findings.compare((Aspect.GRADIENT,))
        operators = OperatorCalls()
        with operators.recorded():
            actual = self.new.eagerly(self.givens)
        for fault in operators.faults(self.new.version.namespace):
            self.findings.refute(f"{self.entry.name}: {fault}")
        for given, old, new in zip(self.givens, self.expected, actual, strict=True):
            if old.failure is not None and self.compiler.refuses(old.failure):
                self._judge_refused(given, old.failure, new)
                continue
            for unlike in self._eager_differences(given, old, new):
                self._differs(given, EAGER, unlike)

    def _judge_refused(self, given: Given, refusal: Failure, new: Outcome) -> None:
        """Old code that a compiler refuses where it runs, and with reason, has to fail still."""
        if new.failure is not None or (given.reshaped and self.compiler.has_no_reference(refusal)):
            return
        if self.compiler.has_no_reference(refusal):
            self.findings.doubt(f"{self._title(given, EAGER)}: no reference: {refusal}")
        else:
            self._differs(given, EAGER, Difference(Aspect.EXCEPTION, f"{refusal} became nothing"))

    def _compare_compiled(self, mode: Mode) -> None:
        accepted = self._accepted()
        try:
            actual, log = self.new.compiled(self.compiler, mode, [one for one, _ in accepted])
        except RefusalError as refusal:
            self._new_is_refused(mode, refusal)
            return
        if mode.counts:
            self._judge_breaks(mode, log)
        refused = None
        for (given, old), new in zip(accepted, actual, strict=True):
            if mode.whole and new.failure is not None and self.compiler.refuses(new.failure):
                refused = refused or (new.failure if old.failure is None else None)
            else:
                self._compare_one(mode, given, old, new)
        if refused is not None:
            self._not_one_graph(mode, str(refused))

    def _compare_one(self, mode: Mode, given: Given, old: Outcome, new: Outcome) -> None:
        """Differences that the old code has under the same compiler are not the fix's fault."""
        unlike = self._compiled_differences(mode, given, old, new)
        if not unlike:
            return
        reference = self._old_compiled(mode, given)
        if reference is None and new.failure is not None and self.compiler.refuses(new.failure):
            self.findings.doubt(f"{mode.label} refuses the new code too: {new.failure}")
            return
        if reference is None:
            for item in unlike:
                self._differs(given, mode.label, item)
            return
        own = {item.aspect for item in self._compiled_differences(mode, given, reference, new)}
        for item in unlike:
            if item.aspect in own:
                self._differs(given, mode.label, item)
            elif item.aspect in self.compiler.strict and self.compiler.answers(self.entry, given):
                self.findings.doubt(
                    f"{self._title(given, mode.label)}: the new compiled code differs from the "
                    f"eager code as the old did ({item.detail})"
                )
            else:
                self.findings.note(
                    f"{mode.label} itself changes the {item.aspect.value} of {self.entry.name}, "
                    "in the old code too"
                )

    def _accepted(self) -> list[tuple[Given, Outcome]]:
        return [
            (given, outcome)
            for given, outcome in zip(self.givens, self.expected, strict=True)
            if self.compiler.accepts(self.entry, given)
        ]

    def _old_compiled(self, mode: Mode, given: Given) -> Outcome | None:
        """None if the compiler refused the old code, before the call or at it."""
        try:
            outcomes, _ = self._reference(mode)
        except RefusalError:
            return None
        accepted = [one for one, _ in self._accepted()]
        found = next(
            outcome for one, outcome in zip(accepted, outcomes, strict=True) if one is given
        )
        is_refused = found.failure is not None and self.compiler.refuses(found.failure)
        return None if is_refused else found

    def _reference(self, mode: Mode) -> tuple[list[Outcome], Log]:
        """The old code in the forgiving mode of the same backend."""
        plain = next(one for one in self.modes if one.backend == mode.backend)
        return self.old.compiled(self.compiler, plain, [one for one, _ in self._accepted()])

    # Graphs and breaks

    def _judge_breaks(self, mode: Mode, after: Log) -> None:
        try:
            before = self._reference(mode)[1]
        except RefusalError as refusal:
            before = Log(breaks=(refusal.broken,))
            self.findings.note(f"{mode.label} refused the old code: {refusal}")
        self.findings.count(before, after)
        failed, asked_for = self.compiler.backend_failed, self.compiler.asked_for
        faults = break_faults(before, after, self.around.changed, failed, asked_for)
        for fault in faults:
            self.findings.refute(f"{self.entry.name} ({mode.label}): {fault}")

    def _new_is_refused(self, mode: Mode, refusal: RefusalError) -> None:
        after = Log(breaks=(refusal.broken,))
        try:
            before = self._reference(mode)[1]
        except RefusalError as old:
            self.findings.count(Log(breaks=(old.broken,)), after)
            self.findings.doubt(f"{mode.label} refuses the new code too: {refusal}")
        else:
            self.findings.count(before, after)
            self.findings.refute(f"{self.entry.name} ({mode.label}): now refused: {refusal}")

    def _not_one_graph(self, mode: Mode, message: str) -> None:
        if self.findings.after.breaks:
            title = message.partition(" Explanation:")[0]
            self.findings.note(f"{mode.label}: not one graph, breaks are left ({title})")
        else:
            self.findings.refute(
                f"{self.entry.name} ({mode.label}): does not compile as one graph, "
                f"though no break is left: {message}"
            )

    def _count(self) -> None:
        """A refuted entry still gets its counts, from the first mode."""
        if self.findings.after != Log() or not self.modes:
            return
        mode = self.modes[0]
        try:
            _, after = self.new.compiled(self.compiler, mode, [one for one, _ in self._accepted()])
            self.findings.count(self._reference(mode)[1], after)
        except RefusalError as refusal:
            self.findings.note(f"{mode.label}: {refusal}")

    # Differences

    def _eager_differences(self, given: Given, old: Outcome, new: Outcome) -> list[Difference]:
        if given.reshaped and _fail_alike(old, new):
            return []  # a shape that neither takes; where it is noticed may differ
        return differences(old, new)

    def _compiled_differences(
        self, mode: Mode, given: Given, old: Outcome, new: Outcome
    ) -> list[Difference]:
        both_fail = old.failure is not None and new.failure is not None
        if both_fail and (given.reshaped or Aspect.PRINTED not in self.compiler.compared):
            return []
        found = differences(old, new, compiled=True, slack=mode.slack)
        return [item for item in found if item.aspect in self.compiler.compared - mode.ignored]

    def _differs(self, given: Given, mode: str, unlike: Difference) -> None:
        text = f"{self._title(given, mode)}: {unlike.aspect.value}: {unlike.detail}"
        self.findings.differs(unlike.aspect, text)

    def _title(self, given: Given, mode: str) -> str:
        return f"{self.entry.name}, {given.label} ({mode})"


def prepare(around: Surroundings, old: Version, new: Version, probed: Version) -> None:
    """The three versions start from equal weights, on one device."""
    for version in (new, probed):
        version.globals.keep_common(old.globals)
        old.globals.keep_common(version.globals)
        version.globals.copy_weights(old.globals)
    for version in (old, new, probed):
        version.globals.to(around.device)


def entry_runs(
    around: Surroundings, versions: Sequence[Version], entries: Sequence[Sequence[Entry]]
) -> list[EntryRun]:
    """One run for each entry of the old, the new and the probed version, from equal weights.

    Raises `OtherEntriesError` if they are not the same entries.
    """
    old, new, probed = versions
    before, after, again = map(_judged, versions, entries)
    if list(map(_interface, before)) != list(map(_interface, after)):
        raise OtherEntriesError
    settings = Settings.read(old.namespace)
    subject = partial(
        Subject, streams=around.streams, stage=around.stage, gradients=settings.gradients
    )
    runs = []
    for each in zip(before, after, again, strict=True):
        first, second, third = (_on_device(entry, around.device) for entry in each)
        copy_weights(first.target, second.target)
        copy_weights(first.target, third.target)
        reference = COMPILERS[first.kind].reference
        runs.append(
            EntryRun(
                around,
                subject(old, first, reference=reference),
                subject(new, second),
                subject(probed, third, reference=reference),
                settings,
            )
        )
    return runs


def _judged(version: Version, entries: Sequence[Entry]) -> list[Entry]:
    """A scripted function beside other entries is a helper of theirs: it is run with them,
    unless the module makes inputs for it by name."""
    if all(entry.kind is RegionKind.SCRIPT for entry in entries):
        return list(entries)
    return [entry for entry in entries if not _is_helper(version, entry)]


def _is_helper(version: Version, entry: Entry) -> bool:
    own = any(f"make_inputs_{name}" in version.namespace for name in entry.names)
    return entry.kind is RegionKind.SCRIPT and entry.target.owner is None and not own


def _interface(entry: Entry) -> tuple[object, ...]:
    """What a caller relies on: the name, the parameters, and how it is compiled."""
    call = entry.target.owner.forward if entry.target.owner is not None else entry.target.call
    keep_defaults = entry.kind is not RegionKind.SCRIPT  # where they are a part of its types
    try:
        parameters = stable_text(str(_plain(inspect.signature(call), keep_defaults)))
    except (TypeError, ValueError):
        parameters = ""
    return entry.kind, entry.name, parameters, stable_text(repr(sorted(entry.options.items())))


def _plain(signature: inspect.Signature, keep_defaults: bool) -> inspect.Signature:
    """A signature without its annotations, which no caller notices."""
    empty = inspect.Signature.empty
    parameters = [
        each.replace(annotation=empty, default=each.default if keep_defaults else empty)
        for each in signature.parameters.values()
    ]
    return signature.replace(parameters=parameters, return_annotation=empty)


def _on_device(entry: Entry, device: str) -> Entry:
    if entry.target.owner is not None:
        entry.target.owner.to(device)
    return (
        entry if entry.example is None else replace(entry, example=prepared(entry.example, device))
    )


def _fail_alike(old: Outcome, new: Outcome) -> bool:
    return (
        old.failure is not None and new.failure is not None and old.failure.type == new.failure.type
    )
