"""From one request to its verdict, for files that use TensorFlow.

Entries are the `tf.function`s of the module, called with `make_inputs(seed)`, and its Keras
layers, called on symbolic inputs whose batch is None. Eager execution of the old code says
what is right; where that raises, the old graph does. Compared are outputs, dtypes, static
shapes against the real ones, gradients, exceptions, and how often a function was traced.
"""

import contextlib
import io
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from jitlint.finding import Verdict
from jitlint.verify.records import EntryResult, Options, Report, Request
from jitlint.verify.sandbox import Sandbox

NO_ENTRY = "the module has no tf.function and no Keras layer to call"
NO_INPUTS = "no inputs: define make_inputs(seed), which returns a tuple of arguments"
NO_FIX = "there is no fix to prove: old and new code are the same"
TOLERANCE = 1e-5


class LoadError(Exception):
    """The module cannot be executed; the message says why."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One call. `declared` are the static shapes of the outputs in the trace."""

    outputs: tuple[Any, ...] = ()
    gradients: tuple[Any, ...] = ()
    declared: tuple[Any, ...] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    name: str
    kind: str
    function: Callable[..., Any]

    def traces(self) -> int:
        counter = getattr(self.function, "experimental_get_tracing_count", None)
        return counter() if counter is not None else 0


@dataclass(slots=True)
class Findings:
    """The first counterexample, doubts, and what agreed."""

    counterexample: str | None = None
    doubts: list[str] = field(default_factory=list)
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
        try:
            old = self._runs(request.path, request.old)
        except LoadError as error:
            return unverified(f"the module cannot be loaded: {error}")
        try:
            new = self._runs(request.path, request.new)
        except LoadError as error:
            reason = f"the new module cannot be loaded: {error}"
            return Report(request.path, Verdict.REFUTED, reason, (), str(error))
        if not old:
            return unverified(NO_ENTRY)
        if [run.entry.name for run in old] != [run.entry.name for run in new]:
            return unverified("the fix changes what is handed to a compiler")
        pairs = [(a, b, _compared(a, b)) for a, b in zip(old, new, strict=True)]
        entries = tuple(_result(a, b, found) for a, b, found in pairs)
        wrong = next((f.counterexample for *_, f in pairs if f.counterexample), None)
        if wrong is not None:
            reason = f"old and new code differ: {wrong}"
            return Report(request.path, Verdict.REFUTED, reason, entries, wrong)
        doubts = [doubt for *_, found in pairs for doubt in found.doubts]
        doubts += [NO_FIX] if request.old == request.new else []
        if doubts:
            return unverified(doubts[0], entries)
        inputs = sum(found.inputs for *_, found in pairs)
        counts = f"{len(pairs)} entries, {inputs} inputs; traces {_traces(old)} → {_traces(new)}"
        return Report(request.path, Verdict.VERIFIED, counts, entries)

    def _runs(self, path: Path, source: bytes) -> "list[Run]":
        with _loaded(path, source) as module:
            entries = list(_entries(module))
            self._stage(f"running {len(entries)} entries")
            return [_run(entry, module.__dict__, self._options.seeds) for entry in entries]


@dataclass(slots=True)
class Run:
    """One entry of one version: eagerly, and as a graph, for each input."""

    entry: Entry
    eager: list[Outcome] = field(default_factory=list)
    graph: list[Outcome] = field(default_factory=list)
    traces: int = 0
    is_random: bool = False
    has_inputs: bool = True


def _traces(runs: "list[Run]") -> int:
    return sum(run.traces for run in runs)


# -- loading -------------------------------------------------------------------------------


@contextlib.contextmanager
def _loaded(path: Path, source: bytes) -> Iterator[types.ModuleType]:
    """The executed module, from a file of its own, in which AutoGraph finds the source."""
    name = f"{path.stem.replace('.', '_')}_under_test"
    module = types.ModuleType(name)
    module.__file__ = str(path)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        copy = Path(folder) / f"{name}.py"
        copy.write_bytes(source)
        sys.modules[name] = module
        sys.path.insert(0, str(path.parent))
        try:
            _execute(module, source, copy)
            yield module
        finally:
            sys.path.remove(str(path.parent))
            sys.modules.pop(name, None)


def _execute(module: types.ModuleType, source: bytes, copy: Path) -> None:
    try:
        tf.keras.utils.set_random_seed(0)
        exec(compile(source, str(copy), "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:
        raise LoadError(f"{type(error).__name__}: {error}") from error


def _entries(module: types.ModuleType) -> Iterator[Entry]:
    for name, found in list(vars(module).items()):
        if isinstance(found, tf.types.experimental.PolymorphicFunction):
            is_xla = bool(getattr(found, "_jit_compile", False))
            yield Entry(name, "xla" if is_xla else "graph", found)
        elif (
            isinstance(found, type)
            and issubclass(found, tf.keras.layers.Layer)
            and found.__module__ == module.__name__
        ):
            tf.keras.utils.set_random_seed(0)
            yield Entry(name, "keras", found())


# -- running -------------------------------------------------------------------------------


def _run(entry: Entry, namespace: dict[str, Any], seeds: int) -> Run:
    run = Run(entry)
    maker = namespace.get(f"make_inputs_{entry.name}") or namespace.get("make_inputs")
    if maker is None:
        run.has_inputs = False
        return run
    for seed in range(seeds):
        arguments = tuple(maker(seed))
        run.graph.append(_outcome(entry, arguments, seed))
    run.traces = entry.traces()
    run.is_random = _draws(entry, tuple(maker(0)))
    tf.config.run_functions_eagerly(True)
    try:
        for seed in range(seeds):
            run.eager.append(_outcome(entry, tuple(maker(seed)), seed, eager=True))
    finally:
        tf.config.run_functions_eagerly(False)
    return run


def _outcome(entry: Entry, arguments: tuple[Any, ...], seed: int, eager: bool = False) -> Outcome:
    tf.keras.utils.set_random_seed(seed)
    watched = [leaf for leaf in tf.nest.flatten(arguments) if _is_differentiable(leaf)]
    call = entry.function if eager or entry.kind != "keras" else _symbolic(entry, arguments)
    try:
        with tf.GradientTape() as tape:
            tape.watch(watched)
            result = call(*arguments)
            outputs = tuple(tf.nest.flatten(result))
            floats = [each for each in outputs if _is_differentiable(each)]
            total = tf.add_n([tf.reduce_sum(tf.cast(each, tf.float64)) for each in floats or [0.0]])
        gradients = tuple(tape.gradient(total, watched)) if watched and floats else ()
    except Exception as error:
        return Outcome(failure=_failure(error))
    declared = () if eager else _declared(entry, call, arguments)
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


def _symbolic(entry: Entry, arguments: tuple[Any, ...]) -> Any:
    """A layer as a functional model runs it: in a graph whose batch is None."""
    specs = tf.nest.map_structure(
        lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype), list(arguments)
    )
    layer = entry.function
    return tf.function(lambda *items: layer(*items), input_signature=specs, autograph=False)


def _declared(entry: Entry, call: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    concrete = call.get_concrete_function(*arguments)
    leaves = tf.nest.flatten(concrete.structured_outputs)
    return tuple(getattr(leaf, "shape", None) for leaf in leaves)


def _draws(entry: Entry, arguments: tuple[Any, ...]) -> bool:
    """Whether the graph draws random numbers, which differ between graph and eager."""
    call: Any = entry.function if entry.kind != "keras" else _symbolic(entry, arguments)
    try:
        graph = call.get_concrete_function(*arguments).graph
    except Exception:
        return "random" in str(getattr(entry.function, "python_function", ""))
    return any("Random" in operation.type for operation in graph.get_operations())


# -- comparing -----------------------------------------------------------------------------


def _compared(old: Run, new: Run) -> Findings:
    found = Findings()
    name = old.entry.name
    if not old.has_inputs:
        found.doubts.append(NO_INPUTS)
        return found
    is_random = old.is_random or new.is_random
    found.inputs = len(old.graph)
    for seed, (before, after) in enumerate(zip(old.eager, new.eager, strict=True)):
        _compare(found, f"{name}, seed {seed} (eager)", before, after, is_random=False)
    for seed, (eager, before, after) in enumerate(
        zip(old.eager, old.graph, new.graph, strict=True)
    ):
        title = f"{name}, seed {seed} ({old.entry.kind})"
        right = before if before.failure is None else eager
        if after.failure is not None and right.failure is None and before.failure is not None:
            found.doubts.append(f"{title}: it still raises: {after.failure}")
            continue
        _compare(found, title, right, after, is_random)
        _check_declared(found, title, after)
    if all(outcome.failure is not None for outcome in new.graph):
        found.doubts.append(f"{name} raises on every input: {new.graph[0].failure}")
    if all(outcome.failure is None for outcome in old.graph) and new.traces > old.traces:
        found.differs(f"{name}: {old.traces} traces before, {new.traces} after")
    return found


def _compare(found: Findings, title: str, old: Outcome, new: Outcome, is_random: bool) -> None:
    if (old.failure is None) != (new.failure is None):
        found.differs(f"{title}: exception: {old.failure} against {new.failure}")
        return
    for aspect, before, after in (
        ("output", old.outputs, new.outputs),
        ("gradient", old.gradients, new.gradients),
    ):
        if len(before) != len(after):
            found.differs(f"{title}: {aspect}: {len(before)} values against {len(after)}")
        for one, other in zip(before, after, strict=False):
            unlike = _unlike(one, other, is_random)
            if unlike:
                found.differs(f"{title}: {aspect}: {unlike}")


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
