"""`torch.jit.script`: compiled, called, and called again after saving and loading.

The reference is the eager code. An old version that TorchScript refuses, when it compiles
it or not before the first call, is what a fix cures: its new version counts as verified if
it compiles, and agrees with eager on every input.
"""

import inspect
import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import torch

from jitlint.region import RegionKind
from jitlint.verify.aspects import Aspect, Failure
from jitlint.verify.compiler import Log, Mode, RefusalError
from jitlint.verify.loading import Version
from jitlint.verify.recorder import Entry
from jitlint.verify.records import Break, Options
from jitlint.verify.runs import TorchCompiler
from jitlint.verify.scripting import script
from jitlint.verify.state import Target

SCRIPT = Mode("torch.jit.script", backend="live")
LOADED = Mode(
    "torch.jit.script, saved and loaded",
    backend="loaded",
    # what is loaded has parameters of its own
    ignored=frozenset({Aspect.GRADIENT}),
)
_WRONG_ARGUMENT = "Expected a value of type"
_UNTYPED_ARGUMENT = "Expected a value of type 'Tensor (inferred)'"
_PYTHON_CALL = "Could not export Python function call"
"""Code that calls Python (`torch.jit.ignore`) cannot be saved, and is not meant to be."""


@dataclass(slots=True)
class ScriptSession:
    entry: Entry
    mode: Mode
    graphs: int = 0
    breaks: list[Break] = field(default_factory=list)

    def build(self, target: Target) -> Callable[..., Any]:
        try:
            # a method is compiled with the Module that it belongs to
            compiled = script(target.call if target.owner is None else target.owner)
            if self.mode == LOADED:
                compiled = _with_defaults(_loaded(compiled), target)
        except Exception as error:
            raise RefusalError(_as_break(error)) from error
        self.graphs = 1
        return self._calling(_method(compiled, target))

    def _calling(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return compiled(*args, **kwargs)
            except RuntimeError as error:
                if _WRONG_ARGUMENT in str(error) and not self.breaks:
                    self.breaks.append(_as_break(error))
                raise

        return call

    def log(self) -> Log:
        return Log(self.graphs, tuple(self.breaks))


class TorchScript(TorchCompiler):
    kind = RegionKind.SCRIPT
    strict = frozenset({Aspect.OUTPUT})
    # Exceptions become torch.jit.Error, attributes and lists are the compiled code's own,
    # and numbers are printed in another way, fix or no fix.
    compared = frozenset({Aspect.OUTPUT, Aspect.EXCEPTION, Aspect.GRADIENT})

    def modes(self, options: Options) -> tuple[Mode, ...]:
        return (SCRIPT, LOADED)

    @contextmanager
    def session(self, version: Version, entry: Entry, mode: Mode) -> Iterator[ScriptSession]:
        yield ScriptSession(entry, mode)

    def refuses(self, failure: Failure) -> bool:
        """A type that is declared, and wrong, is the code's fault."""
        return _UNTYPED_ARGUMENT in failure.message


def _loaded(compiled: Any) -> Any:
    save: Callable[..., None] = vars(torch.jit)["save"]
    load: Callable[..., Any] = vars(torch.jit)["load"]
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            save(compiled, buffer)
        except RuntimeError as error:
            if _PYTHON_CALL in str(error):
                return compiled
            raise
        buffer.seek(0)
        return load(buffer)


def _with_defaults(loaded: Any, target: Target) -> Any:
    """A function loses its defaults when it is saved, annotated or not."""
    if target.owner is not None:
        return loaded
    signature = inspect.signature(target.call)

    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return loaded(*bound.args, **bound.kwargs)

    return call


def _method(compiled: Any, target: Target) -> Callable[..., Any]:
    name = getattr(target.call, "__name__", "forward")
    method: Callable[..., Any] = compiled
    if target.owner is not None and target.call is not target.owner:
        with suppress(AttributeError):
            method = getattr(compiled, name)
    return method


def _as_break(error: Exception) -> Break:
    lines = [line.strip() for line in str(error).splitlines()]
    reason = next(filter(None, lines), "")
    return Break("", 0, f"{type(error).__name__}: {reason}"[:200])
