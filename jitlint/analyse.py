"""From sources to findings: the stages between discovery and the reports."""

import gc
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libcst as cst
from packaging.version import Version

from jitlint.analysis import tables
from jitlint.analysis.machine import Machine
from jitlint.config import Settings
from jitlint.finding import Finding
from jitlint.project import link
from jitlint.project.crashes import Crashes
from jitlint.project.modules import Module
from jitlint.project.project import Project
from jitlint.rule import Context, Rule
from jitlint.source import Source, UnparsableError

Hook = Callable[[Any, Context], Iterable[Finding] | None]


@dataclass(frozen=True, slots=True)
class FileFindings:
    """What the rules say about one file whose tree was read.

    The nodes of the findings and of their fixes are nodes of `module`. `read` are files
    beside those that `analyse` was given on which the findings rest (a path that does not
    exist may be among them). `crash` is the traceback of an exception that is not the
    file's fault; the findings are then incomplete.
    """

    source: Source
    module: cst.Module | None
    findings: Sequence[Finding] = ()
    read: frozenset[Path] = field(default_factory=frozenset)
    unparsable: UnparsableError | None = None
    crash: str | None = None


def analyse(
    files: Sequence[Source],
    settings: Settings,
    rules: Mapping[str, type[Rule]],
    targets: Mapping[str, Version],
) -> Iterator[FileFindings]:
    """One record for each file that had to be read as a tree, with or without findings."""
    project = Project({file.path: file.data for file in files})
    crashes = Crashes()
    with _no_garbage_collection():
        observed: dict[Path, list[object]] = {}
        if any(rule.regions for rule in rules.values()):
            watched = frozenset[str]().union(*(rule.watches for rule in rules.values()))
            observed = _interpret(project, settings, targets, watched, crashes)
        for file in files:
            active = [rule for rule in rules.values() if _triggered(rule, file.data)]
            seen = observed.get(file.path, [])
            module = project.module_at(file.path)
            is_unread = module is not None and module.is_unread
            if active or is_unread or file.path in observed or file.path in crashes.traces:
                record = _analyse_file(file, project, settings, rules, active, seen)
                crash = crashes.traces.get(file.path, record.crash)
                yield FileFindings(
                    file, record.module, record.findings, project.followed, record.unparsable, crash
                )


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Trees are millions of objects that all live to the end of the run."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _interpret(
    project: Project,
    settings: Settings,
    targets: Mapping[str, Version],
    watched: frozenset[str],
    crashes: Crashes,
) -> dict[Path, list[object]]:
    """What the interpreter observed in every file that holds or creates a region."""
    wanted = targets.get("torch")
    table = tables.load("torch", None if wanted is None else str(wanted))
    machine = Machine(project, table, watched, _other_tables(project, targets))
    entries = link.own_entries(machine, project.modules, crashes)
    entries += link.configured_entries(machine, project.modules, settings.entry_points, crashes)
    observed: dict[Path, list[object]] = {}
    for entry in entries:
        for module in (entry.origin, entry.function.module):
            observed.setdefault(module.path, [])
        with crashes.of(entry.origin):
            link.run(machine, entry, link.label(entry, settings.root))
    for observation in machine.log:
        observed.setdefault(observation.module.path, []).append(observation)
    return observed


def _other_tables(project: Project, targets: Mapping[str, Version]) -> list[tables.Table]:
    """The tables of the frameworks that some file names, beside torch's."""
    named = [
        framework
        for framework, names in OTHER_FRAMEWORKS.items()
        if any(name in module.source for module in project.modules for name in names)
    ]
    return [tables.load(name, str(targets[name]) if name in targets else None) for name in named]


OTHER_FRAMEWORKS = {"tensorflow": (b"tensorflow", b"keras")}
"""Frameworks with a table, and what a file that uses one contains."""


def _triggered(rule: type[Rule], data: bytes) -> bool:
    return any(trigger in data for trigger in rule.triggers)


def _analyse_file(
    file: Source,
    project: Project,
    settings: Settings,
    rules: Mapping[str, type[Rule]],
    active: Sequence[type[Rule]],
    seen: Sequence[object],
) -> FileFindings:
    module = project.module_at(file.path)
    assert module is not None  # the project was given this file's data
    try:
        findings = _Hooks(rules.values(), module, settings).observe(seen)
        if active:
            walk = _Walk(_Hooks(active, module, settings))
            module.tree.visit(walk)
            findings += walk.findings
    except UnparsableError as error:
        return FileFindings(file, None, unparsable=error)
    except RecursionError:
        problem = UnparsableError("the code is nested too deeply to be analysed")
        return FileFindings(file, None, unparsable=problem)
    except Exception:
        return FileFindings(file, None, crash=traceback.format_exc())
    return FileFindings(file, module.tree, findings)


class _Hooks:
    """The `visit_` methods of rules, by the name of the type that they want to see."""

    def __init__(self, rules: Iterable[type[Rule]], module: Module, settings: Settings) -> None:
        self._hooks: dict[str, list[tuple[Hook, Context]]] = defaultdict(list)
        for rule in rules:
            instance, context = rule(), Context(rule, module.path, module.tree, settings)
            for name in dir(instance):
                if name.startswith("visit_"):
                    hook = (getattr(instance, name), context)
                    self._hooks[name.removeprefix("visit_")].append(hook)

    def of(self, seen: object) -> Iterator[Finding]:
        for hook, context in self._hooks.get(type(seen).__name__, ()):
            yield from hook(seen, context) or ()

    def observe(self, observations: Iterable[object]) -> list[Finding]:
        return [finding for each in observations for finding in self.of(each)]


class _Walk(cst.CSTVisitor):
    """One walk for all rules."""

    def __init__(self, hooks: _Hooks) -> None:
        super().__init__()
        self.findings: list[Finding] = []
        self._hooks = hooks

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.findings.extend(self._hooks.of(node))
        return True
