"""Exceptions that are no fault of the file at hand, and must not stop the others."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from jitlint.project.modules import Module


class Crashes:
    """The first traceback of each file. What crashed is skipped, the rest goes on."""

    def __init__(self) -> None:
        self.traces: dict[Path, str] = {}

    @contextmanager
    def of(self, module: Module) -> Iterator[None]:
        try:
            yield
        except Exception:
            self.traces.setdefault(module.path, traceback.format_exc())
