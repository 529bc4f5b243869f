"""Entries: what a module hands to a compiler while it is executed.

The compilers' doors are replaced before the module runs, so that decorators, calls,
aliases and partials all come through here. The targets are handed back uncompiled.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
import torch._dynamo

from jitlint.region import RegionKind
from jitlint.verify import scripting
from jitlint.verify.inputs import Arguments
from jitlint.verify.state import Target


@dataclass(frozen=True, slots=True)
class Entry:
    """`names` are the names that `make_inputs_<name>` may use, the best first; `is_main`:
    plain `make_inputs` may be meant for it."""

    kind: RegionKind
    target: Target
    names: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    example: Arguments | None = None
    is_main: bool = True

    @property
    def name(self) -> str:
        return self.names[0]


class Recorder:
    """Records calls that come from the module whose globals are `namespace`."""

    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self.entries: list[Entry] = []
        self._namespace = namespace
        self._active = False
        self._recording = False

    @contextmanager
    def installed(self, recording: bool = False) -> Iterator[None]:
        """In force while the module is loaded, and while it runs without a compiler."""
        with ExitStack() as stack:
            for owner, name, make in self._doors():
                door = getattr(owner, name, None)
                if door is not None:
                    stack.enter_context(mock.patch.object(owner, name, make(door)))
            self._active, self._recording = True, recording
            try:
                yield
            finally:
                self._active = self._recording = False

    def _doors(self) -> list[tuple[Any, str, Callable[[Callable[..., Any]], Callable[..., Any]]]]:
        return [
            (torch, "compile", self._compile),
            (torch.nn.Module, "compile", self._module_compile),
            (torch._dynamo, "optimize", self._optimize),
            (torch.jit, "trace", self._trace),
            (torch.export, "export", self._export),
            (torch.jit, "script", self._script),
        ]

    def _compile(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile(model: Any = None, **options: Any) -> Any:
            if not self._active or _called_by_framework():
                return original(model, **options)
            if model is None:
                return lambda target: compile(target, **options)
            if not options.get("disable"):
                self._record(RegionKind.COMPILE, model, options)
            return model

        return compile

    def _module_compile(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def compile(module: torch.nn.Module, *args: Any, **options: Any) -> None:
            if not self._active or _called_by_framework():
                original(module, *args, **options)
            else:
                self._record(RegionKind.COMPILE, module, options)

        return compile

    def _optimize(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def optimize(*args: Any, **options: Any) -> Any:
            if not self._active or _called_by_framework():
                return original(*args, **options)

            def decorate(target: Any) -> Any:
                self._record(RegionKind.COMPILE, target, options)
                return target

            return decorate

        return optimize

    def _trace(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def trace(func: Any, example_inputs: Any = None, *args: Any, **options: Any) -> Any:
            if not self._active or _called_by_framework():
                return original(func, example_inputs, *args, **options)
            keywords = options.pop("example_kwarg_inputs", None)
            positional: tuple[Any, ...] = ()
            if example_inputs is not None:
                one = isinstance(example_inputs, torch.Tensor)
                positional = (example_inputs,) if one else tuple(example_inputs)
            self._record(RegionKind.TRACE, func, options, (positional, keywords or {}))
            return func

        return trace

    def _export(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def export(mod: Any, args: Any = (), kwargs: Any = None, **options: Any) -> Any:
            if not self._active or _called_by_framework():
                return original(mod, args, kwargs, **options)
            self._record(RegionKind.EXPORT, mod, options, (tuple(args), dict(kwargs or {})))
            return Exported(mod)

        return export

    def _script(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """What TorchScript refuses goes on as Python: the old version may be refused."""

        def script(obj: Any, optimize: Any = None, _frames_up: int = 0, **options: Any) -> Any:
            if not self._active or _called_by_framework():
                return original(obj, optimize, _frames_up + 1, **options)
            if not isinstance(obj, torch.jit.ScriptFunction | torch.jit.ScriptModule):
                self._record(RegionKind.SCRIPT, obj, {})
            try:
                return scripting.script(obj, _frames_up + 1)
            except Exception:
                return obj

        return script

    def _record(
        self,
        kind: RegionKind,
        target: Any,
        options: Mapping[str, Any],
        example: Arguments | None = None,
    ) -> None:
        if not self._recording or isinstance(target, type):
            return
        if _calling_namespace() is self._namespace:
            self.entries.append(Entry(kind, Target(target), _names(target), options, example))


@dataclass(frozen=True)
class Exported:
    """What `torch.export.export` returns while entries are recorded: just enough of it."""

    target: Any

    def module(self, check_guards: bool = True) -> Any:
        return self.target

    def run_decompositions(self, *args: Any, **kwargs: Any) -> "Exported":
        return self


def _names(target: Any) -> tuple[str, ...]:
    if isinstance(target, torch.nn.Module):
        return (type(target).__name__,)
    owner = getattr(target, "__self__", None)
    name = getattr(target, "__name__", type(target).__name__)
    if isinstance(owner, torch.nn.Module):
        return (f"{type(owner).__name__}.{name}", name, type(owner).__name__)
    return (name,)


def _calling_frames() -> Iterator[Mapping[str, Any]]:
    frame = sys._getframe(1)
    while True:
        if frame.f_globals.get("__name__") != __name__:
            yield frame.f_globals
        if frame.f_back is None:
            return
        frame = frame.f_back


def _called_by_framework() -> bool:
    """A compiler's own use of these functions has to work as ever."""
    name = next((frame.get("__name__", "") for frame in _calling_frames()), "")
    return name.partition(".")[0] == "torch" and name != "torch.compiler"


def _calling_namespace() -> Mapping[str, Any] | None:
    return next(
        (
            frame
            for frame in _calling_frames()
            if frame.get("__name__", "").partition(".")[0] not in ("torch", "functools")
        ),
        None,
    )
