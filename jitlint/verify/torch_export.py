"""`torch.export`: one graph for inputs of the example's shapes, or none."""

import copy
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.export

from jitlint.region import RegionKind
from jitlint.verify.aspects import Aspect
from jitlint.verify.compiler import Log, Mode, RefusalError
from jitlint.verify.inputs import Given
from jitlint.verify.loading import Version, forget_aliases
from jitlint.verify.recorder import Entry
from jitlint.verify.records import Break, Options
from jitlint.verify.runs import TorchCompiler
from jitlint.verify.state import Target

_KEPT_OPTIONS = ("dynamic_shapes", "strict")
_CODE = re.compile(r"/gb/(gb\d+)\.html")
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


@dataclass(slots=True)
class ExportSession:
    version: Version
    entry: Entry
    graphs: int = 0
    breaks: list[Break] = field(default_factory=list)

    def build(self, target: Target) -> Callable[..., Any]:
        args, kwargs = copy.deepcopy(self.entry.example or ((), {}))
        options = {
            name: self.entry.options[name] for name in _KEPT_OPTIONS if name in self.entry.options
        }
        try:
            module: Any = target.call  # anything but a Module is refused, and says so
            exported = torch.export.export(module, args, kwargs or None, **options)
            called: Callable[..., Any] = exported.module()
        except Exception as error:
            self.breaks = [_as_break(error, self.version.path)]
            raise RefusalError(self.breaks[0]) from error
        self.graphs = 1
        return called

    def log(self) -> Log:
        return Log(self.graphs, tuple(self.breaks))


class TorchExport(TorchCompiler):
    kind = RegionKind.EXPORT
    # The exported program has parameters of its own, and prints nothing.
    compared = frozenset({Aspect.OUTPUT, Aspect.EXCEPTION})

    def modes(self, options: Options) -> tuple[Mode, ...]:
        return (Mode("torch.export", whole=True),)

    @contextmanager
    def session(self, version: Version, entry: Entry, mode: Mode) -> Iterator[ExportSession]:
        forget_aliases(version.module.__name__)
        yield ExportSession(version, entry)
        forget_aliases(version.module.__name__)

    def accepts(self, entry: Entry, given: Given) -> bool:
        """A static export takes the example's shapes only."""
        return entry.example is None or Given("", entry.example).shapes() == given.shapes()


def _as_break(error: Exception, path: str) -> Break:
    text = str(error)
    code = _CODE.search(text)
    lines = [int(line) for file, line in _FRAME.findall(text) if file == path]
    reason = next((line.strip() for line in text.splitlines() if line.strip()), "")
    title = f"{type(error).__name__}: {reason}"[:200]
    return Break(code.group(1).upper() if code else "", lines[-1] if lines else 0, title)
