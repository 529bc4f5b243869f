"""Executing a module under test, in its old and its new version, as often as needed."""

import ast
import importlib
import importlib.machinery
import importlib.util
import linecache
import os
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from jitlint.verify import probes
from jitlint.verify.bench import LoadError
from jitlint.verify.outcome import Streams, seed_everything
from jitlint.verify.recorder import Entry, Recorder
from jitlint.verify.scripting import Unit
from jitlint.verify.state import Globals

_PROJECT_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")


@dataclass(frozen=True, slots=True)
class Version:
    """One executed version of the module, under the module's own name."""

    module: types.ModuleType
    path: str
    lines: list[str]
    recorder: Recorder
    globals: Globals
    scripts: Unit = field(default_factory=Unit)

    @property
    def namespace(self) -> dict[str, Any]:
        return self.module.__dict__

    @property
    def entries(self) -> list[Entry]:
        return self.recorder.entries

    def activate(self) -> None:
        """Both versions have one name: imports and source look-ups find this one."""
        sys.modules[self.module.__name__] = self.module
        self.scripts.activate()
        size = sum(map(len, self.lines))
        linecache.cache[self.path] = (size, None, self.lines, self.path)


@contextmanager
def workplace(path: Path) -> Iterator[str]:
    """The import path of the module, under whose dotted name it is loaded; undone after."""
    name, roots = dotted_name(path)
    if name in sys.modules:
        name += "_under_test"  # a script called like a module that is in use here
    before, path_before = set(sys.modules), list(sys.path)
    sys.path[:0] = [str(roots[0])]
    sys.path += [str(root) for root in roots[1:]]
    importlib.invalidate_caches()
    try:
        yield name
    finally:
        sys.path[:] = path_before
        for other in set(sys.modules) - before:
            if _lies_under(sys.modules[other], roots):
                del sys.modules[other]
                forget_aliases(other)
        sys.modules.pop(name, None)
        linecache.cache.pop(str(path), None)


def dotted_name(path: Path) -> tuple[str, list[Path]]:
    """The module's name, and the folders from which it and its neighbours import."""
    parts = [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    roots = [folder, path.parent]
    project = next(
        (up for up in folder.parents if any((up / mark).exists() for mark in _PROJECT_MARKS)), None
    )
    if project is not None:
        roots += [project, project / "src"]
    return ".".join(parts), list(dict.fromkeys(roots))


def load(
    path: Path, name: str, source: bytes, streams: Streams, tests: Sequence[probes.Place] = ()
) -> tuple[Version, probes.Coverage]:
    """Executes `source` from a fixed random state; probes stand around `tests`."""
    module = types.ModuleType(name)
    is_package = path.name == "__init__.py"
    module.__file__ = str(path)
    module.__package__ = name if is_package else name.rpartition(".")[0]
    module.__spec__ = importlib.machinery.ModuleSpec(name, None, origin=str(path))
    if is_package:
        module.__path__ = [str(path.parent)]
    try:
        text = importlib.util.decode_source(source)
        tree = ast.parse(source)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise LoadError(f"{type(error).__name__}: {error}") from None
    coverage = probes.instrument(tree, text, tests)
    module.__dict__[probes.PROBE] = coverage.probe
    recorder = Recorder(module.__dict__)
    scripts = Unit()
    scripts.activate()
    lines = text.splitlines(keepends=True)
    linecache.cache[str(path)] = (len(text), None, lines, str(path))
    try:
        with streams.captured(), recorder.installed(recording=True):
            if module.__package__ and not is_package:
                importlib.import_module(module.__package__)
            sys.modules[name] = module
            seed_everything(0)
            exec(compile(tree, str(path), "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:
        raise LoadError(_explain(error, str(path))) from error
    version = Version(module, str(path), lines, recorder, Globals(module.__dict__), scripts)
    return version, coverage


def forget_aliases(name: str) -> None:
    """Dynamo keeps a global for each module that it has inlined from, by name."""
    alias = f"__import_{name.replace('.', '_dot_')}"
    for module in list(sys.modules.values()):
        if isinstance(module, types.ModuleType):
            module.__dict__.pop(alias, None)
    torch._dynamo.reset()


def _explain(error: BaseException, path: str) -> str:
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    place = f" (line {line})" if line is not None else ""
    return f"{type(error).__name__}: {error}{place}"


def _lies_under(module: types.ModuleType, roots: Sequence[Path]) -> bool:
    """Modules of the project, but not what is installed below it (`.venv`)."""
    file = getattr(module, "__file__", None)
    if file is None or "site-packages" in file:
        return False
    return any(file.startswith(str(root) + os.sep) for root in roots)
