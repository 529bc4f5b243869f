"""From one request to its verdict, for files that use TensorFlow.

Entries are the `tf.function`s of the module, called with `make_inputs(seed)`, and its Keras
layers, called on symbolic inputs whose batch is None. Eager execution of the old code says
what is right; where that raises, the old graph does. Compared are outputs, dtypes, static
shapes against the real ones, gradients, exceptions, and how often a function was traced.
"""

import contextlib
import copy
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from jitlint.finding import Verdict
from jitlint.time_limit import TookTooLongError, time_limit
from jitlint.verify.derive import Question, Trial, derive
from jitlint.verify.numba_kernels import NoReferenceError, NumbaKernels
from jitlint.verify.reach import Place, Reach, changed_functions
from jitlint.verify.records import EntryResult, Options, Report, Request
from jitlint.verify.sandbox import Sandbox
from jitlint.verify.tensorflow_module import (
    Entry,
    LoadError,
    Module,
    Origin,
    loaded,
    more_origins,
    origins,
)
from jitlint.verify.tensorflow_values import TensorflowTensors, edge_cases, varied

NO_ENTRY = "the module has no tf.function and no Keras layer to call"
NO_INPUTS = "no inputs: define make_inputs(seed), which returns a tuple of arguments"
NO_FIX = "there is no fix to prove: old and new code are the same"
OTHER_ENTRIES = "the fix changes what is handed to a compiler"
TOLERANCE = 1e-5
TRIAL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """One call. `declared` are the static shapes of the outputs in the trace; `is_traced`:
    the failure came when the graph ran, not when it was made."""

    outputs: tuple[Any, ...] = ()
    gradients: tuple[Any, ...] = ()
    declared: tuple[Any, ...] = ()
    failure: str | None = None
    is_traced: bool = True


@dataclass(frozen=True, slots=True)
class Given:
    """One set of arguments, copied for every call. What the code may rightly refuse is an
    `edge` case, which does not count as a trace either."""

    label: str
    seed: int
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    edge: bool = False

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return copy.deepcopy((self.args, dict(self.kwargs)))


@dataclass(frozen=True, slots=True)
class Job:
    """What is called, and with what; `note` says where the arguments come from."""

    origin: Origin
    givens: tuple[Given, ...] = ()
    note: str | None = None


@dataclass(slots=True)
class Findings:
    """The first counterexample, doubts, and what agreed."""

    counterexample: str | None = None
    doubts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    inputs: int = 0

    def differs(self, text: str) -> None:
        self.counterexample = self.counterexample or text


class TensorflowJudge:
    """Serves one request after another; TensorFlow is imported once."""

    def __init__(self, options: Options, sandbox: Sandbox, stage: Callable[[str], None]) -> None:
        self._options = options
        self._sandbox = sandbox
        self._stage = stage

    def judge(self, request: Request) -> Report:
        self._sandbox.refused.clear()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            report = self._judge(request)
        if self._sandbox.refused and report.verdict is Verdict.VERIFIED:
            what = f"the code attempted {self._sandbox.refused[0]}, which is not allowed here"
            return Report(request.path, Verdict.UNVERIFIED, what, report.entries)
        return report

    def _judge(self, request: Request) -> Report:
        unverified = partial(Report, request.path, Verdict.UNVERIFIED)
        bench = Bench(request, self._options.seeds, self._stage)
        try:
            jobs = bench.jobs([])
        except LoadError as error:
            return unverified(f"the module cannot be loaded: {error}")
        try:
            pairs = bench.compared(jobs)
            missed = bench.missed()
            if missed and not _counterexample(pairs):
                attempted = list(self._sandbox.refused)
                more = bench.jobs(missed)
                self._sandbox.refused[:] = attempted
                pairs += bench.compared(more)
        except LoadError as error:
            reason = f"the new module cannot be loaded: {error}"
            return Report(request.path, Verdict.REFUTED, reason, (), str(error))
        except OtherEntriesError:
            return unverified(OTHER_ENTRIES)
        if not pairs:
            return unverified(NO_ENTRY)
        return _report(request, pairs, bench.missed())


def _counterexample(pairs: "Sequence[Pair]") -> str | None:
    return next((f.counterexample for *_, f in pairs if f.counterexample), None)


def _report(request: Request, pairs: "Sequence[Pair]", missed: Sequence[Place]) -> Report:
    entries = tuple(_result(*pair) for pair in pairs)
    wrong = _counterexample(pairs)
    if wrong is not None:
        reason = f"old and new code differ: {wrong}"
        return Report(request.path, Verdict.REFUTED, reason, entries, wrong)
    doubts = [doubt for *_, found in pairs for doubt in found.doubts]
    doubts += [NO_FIX] if request.old == request.new else []
    doubts += [f"the fix in `{place.name}` was never run" for place in missed]
    if doubts:
        return Report(request.path, Verdict.UNVERIFIED, doubts[0], entries)
    inputs = sum(found.inputs for *_, found in pairs)
    before = sum(run.traces for run, _, _ in pairs)
    after = sum(run.traces for _, run, _ in pairs)
    counts = f"{len(pairs)} entries, {inputs} inputs; traces {before} → {after}"
    notes = dict.fromkeys(note for *_, found in pairs for note in found.notes)
    return Report(request.path, Verdict.VERIFIED, "; ".join([counts, *notes]), entries)


class OtherEntriesError(Exception):
    """The new module has not the entries of the old one."""


@dataclass(slots=True)
class Run:
    """One entry of one version: eagerly, and as a graph, for each input."""

    entry: Entry
    eager: list[Outcome] = field(default_factory=list)
    graph: list[Outcome] = field(default_factory=list)
    traces: int = 0
    is_random: bool = False
    is_changed: bool = True
    """Whether it comes by one of the places that a fix changes."""


Pair = tuple[Run, Run, Findings]


@dataclass(slots=True)
class Bench:
    """The two versions of a request, what is called of them, and what that reached."""

    request: Request
    seeds: int
    stage: Callable[[str], None]
    codes: dict[Place, bool] = field(init=False)

    def __post_init__(self) -> None:
        lines = [
            code.decode(errors="replace").splitlines(keepends=True)
            for code in (self.request.old, self.request.new)
        ]
        self.codes = dict.fromkeys(changed_functions(*lines), False)

    def missed(self) -> list[Place]:
        return [place for place, is_reached in self.codes.items() if not is_reached]

    def jobs(self, missed: Sequence[Place]) -> list[Job]:
        """Of what the module compiles, or of what else leads to the missed places."""
        path, old, new = self.request.path, self.request.old, self.request.new
        with loaded(path, old) as module:
            found = list(more_origins(module, missed) if missed else origins(module))
        self.stage(f"making inputs for {len(found)} entries")
        with loaded(path, new) as other:
            if not missed and [each.title for each in found] != [
                each.title for each in origins(other)
            ]:
                raise OtherEntriesError
            with loaded(path, old) as module:
                return [self._job(origin, module, other) for origin in found]

    def _job(self, origin: Origin, old: Module, new: Module) -> Job:
        title, namespace = origin.title, old.namespace
        maker = namespace.get(f"make_inputs_{title}") or namespace.get("make_inputs")
        if maker is not None:
            made = [Given(f"seed {seed}", seed, tuple(maker(seed))) for seed in range(self.seeds)]
            return Job(origin, _with_edges(made))
        entry, other = origin.entry(old), origin.entry(new)
        if entry is None or other is None:
            raise OtherEntriesError
        parameters = entry.parameters(other)
        if parameters is None:
            return Job(origin)
        names = (origin.attribute, origin.name) if origin.attribute else (origin.name,)
        question = Question(
            entry.python,
            parameters,
            names,
            namespace,
            self.request.old.decode(errors="replace"),
            TensorflowTensors(),
            (),
            entry.kind == "keras",
            self.seeds,
            partial(self._takes, origin),
        )
        derived = derive(question)
        if derived is None:
            return Job(origin)
        made = [Given(row.label, row.seed, row.args, row.kwargs) for row in derived.rows]
        if derived.written:
            made += [_varied(made[seed % len(made)], seed) for seed in range(1, self.seeds)]
        return Job(origin, _with_edges(made), derived.origin)

    def _takes(self, origin: Origin, trial: Trial) -> bool:
        """Whether the old code does, eagerly, in a module without a past."""
        with loaded(self.request.path, self.request.old) as module, _eagerly():
            entry = origin.entry(module)
            if entry is None:
                return False
            try:
                with time_limit(TRIAL_SECONDS):
                    given = Given("a trial", 0, trial.args, trial.kwargs)
                    return _outcome(entry, given, eager=True).failure is None
            except TookTooLongError:
                return False

    def compared(self, jobs: Sequence[Job]) -> list[Pair]:
        self.stage(f"running {len(jobs)} entries")
        old = self._runs(jobs, self.request.old, is_old=True)
        new = self._runs(jobs, self.request.new)
        return [
            (before, after, _compared(before, after, job))
            for before, after, job in zip(old, new, jobs, strict=True)
        ]

    def _runs(self, jobs: Sequence[Job], source: bytes, is_old: bool = False) -> list[Run]:
        with loaded(self.request.path, source) as module:
            return [self._run(_entry_of(job, module), job, module, is_old) for job in jobs]

    def _run(self, entry: Entry, job: Job, module: Module, is_old: bool) -> Run:
        reach = Reach(module.file)
        run = _run(entry, job.givens, reach, is_old)
        if is_old:
            missed = reach.missed(list(self.codes), module.namespace)
            reached = [place for place in self.codes if place not in missed]
            self.codes.update(dict.fromkeys(reached, True))
            run.is_changed = bool(reached) or not self.codes
        return run


def _entry_of(job: Job, module: Module) -> Entry:
    entry = job.origin.entry(module)
    if entry is None:
        raise OtherEntriesError
    return entry


def _varied(given: Given, seed: int) -> Given:
    args, kwargs = varied((given.args, dict(given.kwargs)), seed)
    return Given(f"{given.label}, varied {seed}", seed, args, kwargs)


def _with_edges(givens: Sequence[Given]) -> tuple[Given, ...]:
    if not givens:
        return ()
    first = givens[0]
    edges = (
        Given(f"{first.label} with {label}", first.seed, args, kwargs, edge=True)
        for label, (args, kwargs) in edge_cases((first.args, dict(first.kwargs)))
    )
    return (*givens, *edges)


# -- running -------------------------------------------------------------------------------


@contextlib.contextmanager
def _eagerly() -> Iterator[None]:
    """Refused calls of kernels get the result that they should have."""
    tf.config.run_functions_eagerly(True)
    try:
        with NumbaKernels().reference():
            yield
    finally:
        tf.config.run_functions_eagerly(False)


def _run(entry: Entry, givens: Sequence[Given], reach: Reach, is_old: bool) -> Run:
    """First the inputs that count, then the edge cases: a trace stays with a function."""
    run = Run(entry)
    if not givens:
        return run
    if entry.kind != "eager":
        run.graph = [_outcome(entry, given) for given in givens if not given.edge]
        run.traces = entry.traces()
        run.graph += [_outcome(entry, given) for given in givens if given.edge]
        run.is_random = _draws(entry, givens[0])
    around = _eagerly() if is_old else _plainly()
    with around, reach.recorded():
        run.eager = [_outcome(entry, given, eager=True) for given in givens]
    return run


@contextlib.contextmanager
def _plainly() -> Iterator[None]:
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)


def _outcome(entry: Entry, given: Given, eager: bool = False) -> Outcome:
    tf.keras.utils.set_random_seed(given.seed)
    args, kwargs = given.arguments()
    watched = [leaf for leaf in tf.nest.flatten((args, kwargs)) if _is_differentiable(leaf)]
    is_symbolic = entry.kind == "keras" and not eager
    call = _symbolic(entry, given) if is_symbolic else entry.function
    try:
        with tf.GradientTape() as tape:
            tape.watch(watched)
            result = call(*args, **({} if is_symbolic else kwargs))
            outputs = tuple(tf.nest.flatten(result))
            floats = [each for each in outputs if _is_differentiable(each)]
            total = tf.add_n([tf.reduce_sum(tf.cast(each, tf.float64)) for each in floats or [0.0]])
        gradients = tuple(tape.gradient(total, watched)) if watched and floats else ()
    except Exception as error:
        return Outcome(failure=_failure(error), is_traced=isinstance(error, tf.errors.OpError))
    declared = () if eager else _declared(entry, call, given)
    return Outcome(tuple(map(_array, outputs)), tuple(map(_array, gradients)), declared)


def _failure(error: Exception) -> str:
    """AutoGraph puts a traceback before the message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1][:200] if lines else ''}"


def _is_differentiable(leaf: Any) -> bool:
    return bool(tf.is_tensor(leaf) and leaf.dtype.is_floating)


def _array(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, tf.IndexedSlices):
        value = tf.convert_to_tensor(value)
    return value.numpy() if tf.is_tensor(value) else value


def _symbolic(entry: Entry, given: Given) -> Any:
    """A layer as a functional model runs it: in a graph whose batch is None.

    What is passed by keyword is no tensor, as a rule, and a part of the graph."""
    specs = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype), list(given.args)
    )
    layer, kwargs = entry.function, given.kwargs

    return tf.function(
        lambda *items: layer(*items, **kwargs), input_signature=specs, autograph=False
    )


def _declared(entry: Entry, call: Any, given: Given) -> tuple[Any, ...]:
    concrete = _concrete(entry, call, given)
    leaves = tf.nest.flatten(concrete.structured_outputs)
    return tuple(getattr(leaf, "shape", None) for leaf in leaves)


def _concrete(entry: Entry, call: Any, given: Given) -> Any:
    kwargs = {} if entry.kind == "keras" else given.kwargs
    return call.get_concrete_function(*given.args, **kwargs)


def _draws(entry: Entry, given: Given) -> bool:
    """Whether the graph draws random numbers, which differ between graph and eager."""
    call: Any = entry.function if entry.kind != "keras" else _symbolic(entry, given)
    try:
        graph = _concrete(entry, call, given).graph
    except Exception:
        return "random" in str(getattr(entry.function, "python_function", ""))
    return any("Random" in operation.type for operation in graph.get_operations())


# -- comparing -----------------------------------------------------------------------------


def _compared(old: Run, new: Run, job: Job) -> Findings:
    found = Findings()
    name = old.entry.name
    if not job.givens:
        found.doubts.append(NO_INPUTS)
        return found
    found.notes += filter(None, [job.note])
    found.inputs = len(job.givens)
    for given, before, after in zip(job.givens, old.eager, new.eager, strict=True):
        if not (given.edge and _tells_nothing(before, after)):
            _compare(found, f"{name}, {given.label} (eager)", before, after, is_random=False)
    if old.entry.kind != "eager":
        _compare_graphs(found, old, new, job)
    last = new.graph or new.eager
    if old.is_changed and all(outcome.failure is not None for outcome in last):
        found.doubts.append(f"{name} raises on every input: {last[0].failure}")
    counted = [o for o, given in zip(old.graph, job.givens, strict=False) if not given.edge]
    if all(outcome.failure is None for outcome in counted) and new.traces > old.traces:
        found.differs(f"{name}: {old.traces} traces before, {new.traces} after")
    return found


def _still_raises(
    found: Findings, title: str, entry: Entry, before: Outcome, after: Outcome
) -> None:
    """A graph that could not be made and now fails as it runs is wrong: XLA's may not be, as
    it refuses operators only then."""
    if after.is_traced and not before.is_traced and entry.kind != "xla":
        found.differs(f"{title}: exception: {before.failure} became {after.failure}")
    else:
        found.doubts.append(f"{title}: it still raises: {after.failure}")


def _tells_nothing(old: Outcome, new: Outcome) -> bool:
    """A shape that neither takes, or of which nobody knows what a kernel makes of it."""
    if old.failure is None:
        return False
    return new.failure is not None or old.failure.startswith(NoReferenceError.__name__)


def _compare_graphs(found: Findings, old: Run, new: Run, job: Job) -> None:
    is_random = old.is_random or new.is_random
    rows = zip(job.givens, old.eager, old.graph, new.graph, strict=True)
    for given, eager, before, after in rows:
        title = f"{old.entry.name}, {given.label} ({old.entry.kind})"
        right = before if before.failure is None else eager
        if given.edge and _tells_nothing(right, after):
            continue
        if after.failure is not None and before.failure is not None:
            if right.failure is None and not given.edge and old.is_changed:
                _still_raises(found, title, old.entry, before, after)
            continue
        _compare(found, title, right, after, is_random)
        _check_declared(found, title, after)


def _compare(found: Findings, title: str, old: Outcome, new: Outcome, is_random: bool) -> None:
    if (old.failure is None) != (new.failure is None):
        found.differs(f"{title}: exception: {old.failure} against {new.failure}")
        return
    gradients = _as_many(old.gradients, new.gradients)
    for aspect, before, after in (
        ("output", old.outputs, new.outputs),
        ("gradient", *gradients),
    ):
        if len(before) != len(after):
            found.differs(f"{title}: {aspect}: {len(before)} values against {len(after)}")
        for one, other in zip(before, after, strict=False):
            unlike = _unlike(one, other, is_random)
            if unlike:
                found.differs(f"{title}: {aspect}: {unlike}")


def _as_many(old: tuple[Any, ...], new: tuple[Any, ...]) -> tuple[tuple[Any, ...], ...]:
    """An array has no gradients at all, which is as good as none for each input."""
    return old or (None,) * len(new), new or (None,) * len(old)


def _unlike(old: Any, new: Any, is_random: bool) -> str:
    if old is None or new is None:
        return "" if old is new else "None against a value"
    a, b = np.asarray(old), np.asarray(new)
    if a.dtype != b.dtype:
        return f"{a.dtype} against {b.dtype}"
    if a.shape != b.shape:
        return f"shape {a.shape} against {b.shape}"
    if is_random:
        return ""
    is_number = np.issubdtype(a.dtype, np.number)
    if is_number and not np.allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
        return f"{a.ravel()[:4].tolist()} against {b.ravel()[:4].tolist()}"
    return "" if is_number or bool(np.all(a == b)) else "other values"


def _check_declared(found: Findings, title: str, outcome: Outcome) -> None:
    """A static shape that the values do not have is a lie that other code will believe."""
    for shape, value in zip(outcome.declared, outcome.outputs, strict=False):
        if shape is not None and value is not None and not shape.is_compatible_with(value.shape):
            found.differs(f"{title}: static shape {shape} of a value of shape {value.shape}")


def _result(old: Run, new: Run, found: Findings) -> EntryResult:
    is_equal = found.counterexample is None and not found.doubts
    return EntryResult(
        entry=old.entry.name,
        kind=old.entry.kind,
        graphs_before=old.traces,
        graphs_after=new.traces,
        errors=tuple(filter(None, (outcome.failure for outcome in new.graph[:1]))),
        outputs_equal=is_equal or None,
        inputs=found.inputs,
    )
