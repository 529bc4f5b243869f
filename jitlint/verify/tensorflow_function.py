"""`tf.function`, with and without XLA, and what Keras traces."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from jitlint.region import RegionKind
from jitlint.verify.array_module import Entry, Given, Module
from jitlint.verify.aspects import Aspect
from jitlint.verify.compiler import Compiler, Log, Mode
from jitlint.verify.records import Options


@dataclass(slots=True)
class FunctionSession:
    """The function of the module itself: its traces are those of its calls."""

    entry: Entry

    def build(self, target: Given) -> Callable[..., Any]:
        return self.entry.function

    def log(self) -> Log:
        return Log(self.entry.function.experimental_get_tracing_count())  # type: ignore[attr-defined]


@dataclass(slots=True)
class LayerSession:
    """A layer as a functional model runs it: in a graph whose batch is None.

    What is passed by keyword is no tensor, as a rule, and a part of the graph.
    """

    entry: Entry
    graphs: int = field(default=0)

    def build(self, target: Given) -> Callable[..., Any]:
        specs = tf.nest.map_structure(
            lambda leaf: tf.TensorSpec([None, *leaf.shape[1:]], leaf.dtype), list(target.args)
        )
        layer, kwargs = self.entry.function, target.kwargs
        graph = tf.function(
            lambda *items: layer(*items, **kwargs), input_signature=specs, autograph=False
        )

        def call(*args: Any, **kwargs: Any) -> Any:
            return graph(*args)

        call.graph = graph  # type: ignore[attr-defined]
        return call

    def log(self) -> Log:
        return Log(self.graphs)


@dataclass(eq=False, slots=True)
class TensorflowFunction(Compiler[Module, Entry, Given, Given]):
    """One compiler of TensorFlow; they differ in what they trace, and who compiles it."""

    kind: RegionKind
    label: str
    session_of: Callable[[Entry], FunctionSession | LayerSession]
    compared: frozenset[Aspect] = frozenset(
        {Aspect.OUTPUT, Aspect.GRADIENT, Aspect.EXCEPTION, Aspect.MUTATION}
    )

    def modes(self, options: Options) -> tuple[Mode, ...]:
        return (Mode(self.label, whole=True),)

    @contextmanager
    def session(
        self, version: Module, entry: Entry, mode: Mode
    ) -> Iterator[FunctionSession | LayerSession]:
        yield self.session_of(entry)

    def reference(self) -> AbstractContextManager[None]:
        return eagerly()


@contextmanager
def eagerly() -> Iterator[None]:
    """Python runs what is traced otherwise."""
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)


GRAPH = TensorflowFunction(RegionKind.GRAPH, "tf.function", FunctionSession)
XLA = TensorflowFunction(RegionKind.XLA, "tf.function(jit_compile=True)", FunctionSession)
KERAS = TensorflowFunction(RegionKind.KERAS, "a symbolic Keras call", LayerSession)
COMPILERS = {each.kind: each for each in (GRAPH, XLA, KERAS)}
