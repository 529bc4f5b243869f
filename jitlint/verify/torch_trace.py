"""`torch.jit.trace`: branches are baked in, so the old traced code is no reference."""

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from jitlint.region import RegionKind
from jitlint.verify.aspects import Aspect
from jitlint.verify.compiler import Log, Mode, RefusalError
from jitlint.verify.inputs import Given
from jitlint.verify.loading import Version
from jitlint.verify.recorder import Entry
from jitlint.verify.records import Break, Options
from jitlint.verify.runs import TorchCompiler
from jitlint.verify.state import Target

_KEPT_OPTIONS = ("strict",)


@dataclass(slots=True)
class TraceSession:
    entry: Entry
    graphs: int = 0

    def build(self, target: Target) -> Callable[..., Any]:
        args, kwargs = copy.deepcopy(self.entry.example or ((), {}))
        options = {
            name: self.entry.options[name] for name in _KEPT_OPTIONS if name in self.entry.options
        }
        if kwargs:
            options["example_kwarg_inputs"] = kwargs
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                trace: Callable[..., Any] = vars(torch.jit)["trace"]
                traced: Callable[..., Any] = trace(
                    target.call, args or None, check_trace=False, **options
                )
        except Exception as error:
            raise RefusalError(Break("", 0, f"{type(error).__name__}: {error}")) from error
        self.graphs = 1
        return traced

    def log(self) -> Log:
        return Log(self.graphs)


class TorchTrace(TorchCompiler):
    kind = RegionKind.TRACE
    # Prints, Python state and exception types do not survive tracing, fix or no fix.
    strict = frozenset({Aspect.OUTPUT})
    compared = frozenset(Aspect) - {Aspect.PRINTED}

    def modes(self, options: Options) -> tuple[Mode, ...]:
        return (Mode("torch.jit.trace", whole=True),)

    @contextmanager
    def session(self, version: Version, entry: Entry, mode: Mode) -> Iterator[TraceSession]:
        yield TraceSession(entry)

    def answers(self, entry: Entry, given: Given) -> bool:
        """Shapes are baked in as well, but that is another finding."""
        return entry.example is None or Given("", entry.example).shapes() == given.shapes()
