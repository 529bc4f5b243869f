"""Files that use TensorFlow, or Numba without a framework.

Entries are the `tf.function`s of the module, its Keras layers (called on symbolic inputs whose
batch is None), and what calls kernels. Eager execution of the old code says what is right;
where that raises, the old graph does. Compared are outputs, dtypes, static shapes against the
real ones, gradients, arguments after the call, exceptions, and how often a function was traced.
A function whose signature is new is also run by its callers, who decide what it is given.
"""

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from jitlint.region import RegionKind
from jitlint.time_limit import TookTooLongError, time_limit
from jitlint.verify.array_module import Entry, Given, Module, Origin, Origins, loaded
from jitlint.verify.aspects import Aspect, Failure
from jitlint.verify.bench import LoadError, NewLoadError, OtherEntriesError
from jitlint.verify.compiler import Log
from jitlint.verify.derive import Question, Trial, derive
from jitlint.verify.findings import Findings
from jitlint.verify.library import Library, Results
from jitlint.verify.numba_kernels import PROVIDER, NumbaKernels
from jitlint.verify.reach import Place, Reach, changed_functions
from jitlint.verify.records import EntryResult, Options, Request

NO_CALLER = "`{}` has another signature, and nothing in this file calls it"
NO_INPUTS = "no inputs: define make_inputs(seed), which returns a tuple of arguments"
EAGER = "eager"
"""What Python runs is of no kind of region."""
TOLERANCE = 1e-5
TRIAL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """One call. `declared` are the static shapes of the outputs in the trace; `is_late`: the
    failure came when the graph ran, not when it was made."""

    results: Results = field(default_factory=lambda: Results(()))
    declared: tuple[Any, ...] = ()
    failure: Failure | None = None
    is_late: bool = True


@dataclass(frozen=True, slots=True)
class Job:
    """What is called, and with what; `note` says where the arguments come from, if they are
    not the module's own, and `doubt` why they prove nothing."""

    origin: Origin
    givens: tuple[Given, ...] = ()
    note: str | None = None
    doubt: str | None = None


@dataclass(slots=True)
class Run:
    """One entry of one version: eagerly, and as a graph, for each input. `is_changed`: it comes
    by one of the places that a fix changes."""

    entry: Entry
    eager: list[Outcome] = field(default_factory=list)
    graph: list[Outcome] = field(default_factory=list)
    log: Log = field(default_factory=Log)
    is_random: bool = False
    is_changed: bool = True


@dataclass(frozen=True, slots=True)
class Pair:
    """One entry of both versions."""

    old: Run
    new: Run
    findings: Findings
    labels: tuple[str, ...] = ()

    @property
    def counted(self) -> tuple[str, int, int]:
        return "traces" if self.labels else "", self.old.log.graphs, self.new.log.graphs

    def result(self) -> EntryResult:
        failed = (each.failure for each in self.new.graph[:1])
        found = self.findings.result(self.old.entry.name, self.old.entry.kind)
        kind = found.kind if self.labels else EAGER
        return replace(found, kind=kind, errors=(*found.errors, *map(str, filter(None, failed))))


class ArrayFramework:
    uses_gpu = False

    def __init__(self, library: Library, options: Options, stage: Callable[[str], None]) -> None:
        self._library = library
        self._options = options
        self._stage = stage

    @contextlib.contextmanager
    def opened(self, request: Request) -> Iterator["ArrayBench"]:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield ArrayBench(request, self._library, self._options, self._stage)


@dataclass(slots=True)
class ArrayBench:
    """The two versions of a request, what is called of them, and what that reached."""

    request: Request
    library: Library
    options: Options
    stage: Callable[[str], None]
    codes: dict[Place, bool] = field(init=False)

    def __post_init__(self) -> None:
        lines = [
            code.decode(errors="replace").splitlines(keepends=True)
            for code in (self.request.old, self.request.new)
        ]
        with contextlib.suppress(SyntaxError):
            self.codes = dict.fromkeys(changed_functions(*lines), False)
            return
        self.codes = {}

    def missed(self) -> list[Place]:
        return [place for place, is_reached in self.codes.items() if not is_reached]

    def gap(self) -> str | None:
        return None

    # -- what is called ------------------------------------------------------------------------

    def first(self) -> list[Job]:
        with self._old() as module:
            found = list(Origins(module, self.library).compiled())
        with self._new() as other:
            if list(map(_title, found)) != list(
                map(_title, Origins(other, self.library).compiled())
            ):
                raise OtherEntriesError
            with self._old() as module:
                return self._jobs(found, module, other)

    def searches(self) -> Sequence[Callable[[Sequence[Place]], list[Job]]]:
        return (self._more,)

    def _more(self, missed: Sequence[Place]) -> list[Job]:
        with self._old() as module:
            origins = Origins(module, self.library).more(missed)
            found = list({each.title: each for each in origins}.values())
        with self._new() as other, self._old() as module:
            return self._jobs(found, module, other)

    @contextlib.contextmanager
    def _old(self) -> Iterator[Module]:
        with loaded(self.request.path, self.request.old, self.library) as module:
            yield module

    @contextlib.contextmanager
    def _new(self) -> Iterator[Module]:
        with contextlib.ExitStack() as stack:
            try:
                source = self.request.new
                module = stack.enter_context(loaded(self.request.path, source, self.library))
            except LoadError as error:
                raise NewLoadError(str(error)) from error
            yield module

    # -- inputs --------------------------------------------------------------------------------

    def _jobs(self, origins: Sequence[Origin], old: Module, new: Module) -> list[Job]:
        """And of the callers of what has another signature now."""
        self.stage(f"making inputs for {len(origins)} entries")
        jobs = [self._job(origin, old, new) for origin in origins]
        callers: dict[str, None] = {}
        for index, job in enumerate(jobs):
            if self._is_narrowed(job.origin, old, new):
                names = list(Origins(old, self.library).callers(job.origin.title))
                callers.update(dict.fromkeys(names))
                if job.note and not names:
                    jobs[index] = replace(job, doubt=NO_CALLER.format(job.origin.title))
        return jobs + [self._job(Origin(name, calls=True), old, new) for name in callers]

    def _is_narrowed(self, origin: Origin, old: Module, new: Module) -> bool:
        signatures = [
            None if entry is None else self.library.signature_of(entry.function)
            for entry in (origin.entry(old, self.library), origin.entry(new, self.library))
        ]
        return signatures[0] != signatures[1]

    def _job(self, origin: Origin, old: Module, new: Module) -> Job:
        title, namespace, seeds = origin.title, old.namespace, self.options.seeds
        maker = namespace.get(f"{PROVIDER}_{title}")
        if maker is None and not origin.calls:
            maker = namespace.get(PROVIDER)
        if maker is not None:
            made = [Given(f"seed {seed}", seed, tuple(maker(seed))) for seed in range(seeds)]
            return Job(origin, self._with_edges(made))
        entry, other = origin.entry(old, self.library), origin.entry(new, self.library)
        if entry is None or other is None:
            raise OtherEntriesError
        parameters = entry.parameters(other, self.library)
        if parameters is None:
            return Job(origin)
        names = (origin.attribute, origin.name) if origin.attribute else (origin.name,)
        question = Question(
            entry.python,
            parameters,
            names,
            namespace,
            self.request.old.decode(errors="replace"),
            self.library.tensors,
            (),
            entry.kind is RegionKind.KERAS,
            seeds,
            partial(self._takes, origin),
        )
        derived = derive(question)
        if derived is None:
            return Job(origin)
        made = [Given(row.label, row.seed, row.args, row.kwargs) for row in derived.rows]
        if derived.written:
            made += [self._varied(made[seed % len(made)], seed) for seed in range(1, seeds)]
        return Job(origin, self._with_edges(made), derived.origin)

    def _takes(self, origin: Origin, trial: Trial) -> bool:
        """Whether the old code does, eagerly, in a module without a past."""
        with self._old() as module, self._eagerly():
            entry = origin.entry(module, self.library)
            if entry is None:
                return False
            given = Given("a trial", 0, trial.args, trial.kwargs)
            try:
                with time_limit(TRIAL_SECONDS):
                    return self._outcome(entry, given, entry.function).failure is None
            except TookTooLongError:
                return False

    def _varied(self, given: Given, seed: int) -> Given:
        args, kwargs = self.library.varied((given.args, dict(given.kwargs)), seed)
        return Given(f"{given.label}, varied {seed}", seed, args, kwargs)

    def _with_edges(self, givens: Sequence[Given]) -> tuple[Given, ...]:
        if not givens:
            return ()
        first = givens[0]
        edges = (
            Given(f"{first.label} with {label}", first.seed, args, kwargs, edge=True)
            for label, (args, kwargs) in self.library.edge_cases((first.args, dict(first.kwargs)))
        )
        return (*givens, *edges)

    # -- running -------------------------------------------------------------------------------

    def run(self, jobs: Sequence[Job]) -> list[Pair]:
        self.stage(f"running {len(jobs)} entries")
        with self._old() as module:
            old = [self._run(job, module, is_old=True) for job in jobs]
        with self._new() as module:
            new = [self._run(job, module) for job in jobs]
        return [self._compared(*each) for each in zip(old, new, jobs, strict=True)]

    def _run(self, job: Job, module: Module, is_old: bool = False) -> Run:
        """First the inputs that count, then the edge cases: a trace stays with a function."""
        entry = job.origin.entry(module, self.library)
        if entry is None:
            raise OtherEntriesError
        run = Run(entry)
        if not job.givens:
            return run
        self._run_compiled(run, job, module)
        reach = Reach(module.file)
        with self._around(job, is_old), reach.recorded():
            run.eager = [self._outcome(entry, given, entry.function) for given in job.givens]
        if is_old:
            missed = reach.missed(list(self.codes), module.namespace)
            reached = [place for place in self.codes if place not in missed]
            self.codes.update(dict.fromkeys(reached, True))
            run.is_changed = bool(reached) or not self.codes
        return run

    def _run_compiled(self, run: Run, job: Job, module: Module) -> None:
        compiler = self.library.compilers.get(run.entry.kind)
        for mode in compiler.modes(self.options) if compiler is not None else ():
            assert compiler is not None
            with compiler.session(module, run.entry, mode) as session:
                for edge in (False, True):
                    for given in (each for each in job.givens if each.edge is edge):
                        outcome = self._outcome(run.entry, given, session.build(given), True)
                        run.graph.append(outcome)
                    run.log = run.log if edge else session.log()
                run.is_random = self.library.draws(session.build(job.givens[0]), job.givens[0])

    def _around(self, job: Job, is_old: bool) -> contextlib.AbstractContextManager[None]:
        """What callers call stays compiled; the old code's refused calls of kernels get the
        result that they should have."""
        if job.origin.calls:
            return contextlib.nullcontext()
        return self._eagerly() if is_old else self.library.eagerly()

    @contextlib.contextmanager
    def _eagerly(self) -> Iterator[None]:
        with self.library.eagerly(), NumbaKernels().reference():
            yield

    def _outcome(
        self, entry: Entry, given: Given, call: Callable[..., Any], is_compiled: bool = False
    ) -> Outcome:
        self.library.seed(given.seed)
        args, kwargs = given.arguments()
        try:
            results = self.library.results(lambda: call(*args, **kwargs), (args, kwargs))
        except Exception as error:
            return Outcome(failure=_failure(error), is_late=self.library.is_late(error))
        declared = self.library.declared(call, given) if is_compiled else ()
        return Outcome(results, declared)

    # -- comparing -----------------------------------------------------------------------------

    def _compared(self, old: Run, new: Run, job: Job) -> Pair:
        compiler = self.library.compilers.get(old.entry.kind)
        modes = compiler.modes(self.options) if compiler is not None else ()
        pair = Pair(old, new, Findings(), tuple(mode.label for mode in modes))
        _compare(pair, job)
        return pair


def _title(origin: Origin) -> str:
    return origin.title


def _failure(error: Exception) -> Failure:
    """AutoGraph puts a traceback before the message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return Failure(type(error).__name__, lines[-1][:200] if lines else "")


def _compare(pair: Pair, job: Job) -> None:
    found, old, new = pair.findings, pair.old, pair.new
    name = old.entry.name
    if not job.givens:
        found.doubt(NO_INPUTS)
        return
    if job.note:
        found.note(job.note)
    if job.doubt:
        found.doubt(job.doubt)
    found.inputs = len(job.givens)
    found.compare((Aspect.OUTPUT, Aspect.MUTATION, Aspect.EXCEPTION))
    if any(outcome.results.gradients for outcome in old.eager):
        found.compare((Aspect.GRADIENT,))
    for given, before, after in zip(job.givens, old.eager, new.eager, strict=True):
        if not (given.edge and _tells_nothing(before, after)):
            _compare_one(found, f"{name}, {given.label} (eager)", before, after)
    if pair.labels:
        _compare_graphs(pair, job)
    found.count(old.log, new.log)
    last = new.graph or new.eager
    if old.is_changed and all(outcome.failure is not None for outcome in last):
        found.doubt(f"{name} raises on every input: {last[0].failure}")
    counted = [o for o, given in zip(old.graph, job.givens, strict=False) if not given.edge]
    if all(outcome.failure is None for outcome in counted) and new.log.graphs > old.log.graphs:
        found.refute(f"{name}: {old.log.graphs} traces before, {new.log.graphs} after")


def _still_raises(found: Findings, title: str, pair: Pair, before: Outcome, after: Outcome) -> None:
    """A graph that could not be made and now fails as it runs is wrong: XLA's may not be, as
    it refuses operators only then."""
    if after.is_late and not before.is_late and pair.old.entry.kind is not RegionKind.XLA:
        text = f"{title}: exception: {before.failure} became {after.failure}"
        found.differs(Aspect.EXCEPTION, text)
    else:
        found.doubt(f"{title}: it still raises: {after.failure}")


def _tells_nothing(old: Outcome, new: Outcome) -> bool:
    """A shape that neither takes, or of which nobody knows what a kernel makes of it."""
    if old.failure is None:
        return False
    return new.failure is not None or old.failure.type == "NoReferenceError"


def _compare_graphs(pair: Pair, job: Job) -> None:
    found, old, new = pair.findings, pair.old, pair.new
    is_random = old.is_random or new.is_random
    rows = zip(job.givens, old.eager, old.graph, new.eager, new.graph, strict=True)
    for given, eager, before, again, after in rows:
        title = f"{old.entry.name}, {given.label} ({old.entry.kind.value})"
        right = before if before.failure is None else eager
        if given.edge and _tells_nothing(right, after):
            continue
        if after.failure is not None and before.failure is not None:
            if right.failure is None and not given.edge and old.is_changed:
                _still_raises(found, title, pair, before, after)
            continue
        in_graph = right is eager
        if given.edge and in_graph and after.failure is None and again.failure is None:
            own = Findings()
            _compare_one(own, title, again, after, is_random, in_graph)
            if own.counterexample:
                found.note(f"{title}: the graph itself gives another result than eager code")
                continue
        _compare_one(found, title, right, after, is_random, in_graph)
        _check_declared(found, title, after)


def _compare_one(
    found: Findings,
    title: str,
    old: Outcome,
    new: Outcome,
    is_random: bool = False,
    in_graph: bool = False,
) -> None:
    """`in_graph`: the new code is, and the old is not; loops of a graph have zeros for the
    gradient of what none goes through, where eager code has none."""
    if (old.failure is None) != (new.failure is None):
        text = f"{title}: exception: {old.failure} against {new.failure}"
        found.differs(Aspect.EXCEPTION, text)
        return
    one, other = old.results, new.results
    compared: dict[Aspect, tuple[Values, Values]] = {
        Aspect.OUTPUT: (one.outputs, other.outputs),
        Aspect.GRADIENT: _as_many(one.gradients, other.gradients),
        Aspect.MUTATION: (one.arguments, other.arguments),
    }
    for aspect, (before, after) in compared.items():
        if len(before) != len(after):
            text = f"{title}: {aspect.value}: {len(before)} values against {len(after)}"
            found.differs(aspect, text)
        for was, now in zip(before, after, strict=False):
            if in_graph and aspect is Aspect.GRADIENT and was is None and not np.any(now):
                continue
            unlike = _unlike(was, now, is_random)
            if unlike:
                found.differs(aspect, f"{title}: {aspect.value}: {unlike}")


Values = tuple[Any, ...]


def _as_many(old: Values, new: Values) -> tuple[Values, Values]:
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
    for shape, value in zip(outcome.declared, outcome.results.outputs, strict=False):
        if shape is not None and value is not None and not shape.is_compatible_with(value.shape):
            text = f"{title}: static shape {shape} of a value of shape {value.shape}"
            found.differs(Aspect.OUTPUT, text)
