"""From sources to findings: the stages between discovery and the reports."""

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libcst as cst
from packaging.version import Version

from jitlint import source as sources
from jitlint.config import Settings
from jitlint.finding import Finding
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
    for file in files:
        active = [rule for rule in rules.values() if _triggered(rule, file.data)]
        if active:
            yield _analyse_file(file, settings, active)


def _triggered(rule: type[Rule], data: bytes) -> bool:
    return any(trigger in data for trigger in rule.triggers)


def _analyse_file(file: Source, settings: Settings, rules: Sequence[type[Rule]]) -> FileFindings:
    try:
        module = sources.parse_module(sources.decode(file.data).text)
        walk = _Walk(module, file, settings, rules)
        module.visit(walk)
    except UnparsableError as error:
        return FileFindings(file, None, unparsable=error)
    except RecursionError:
        problem = UnparsableError("the code is nested too deeply to be analysed")
        return FileFindings(file, None, unparsable=problem)
    except Exception:
        return FileFindings(file, None, crash=traceback.format_exc())
    return FileFindings(file, module, walk.findings)


class _Walk(cst.CSTVisitor):
    """One walk for all rules."""

    def __init__(
        self,
        module: cst.Module,
        file: Source,
        settings: Settings,
        rules: Sequence[type[Rule]],
    ) -> None:
        super().__init__()
        self.findings: list[Finding] = []
        self._hooks: dict[str, list[tuple[Hook, Context]]] = {}
        for rule in rules:
            instance, context = rule(), Context(rule, file.path, module, settings)
            for name in dir(instance):
                if name.startswith("visit_"):
                    hooks = self._hooks.setdefault(name.removeprefix("visit_"), [])
                    hooks.append((getattr(instance, name), context))

    def on_visit(self, node: cst.CSTNode) -> bool:
        for hook, context in self._hooks.get(type(node).__name__, ()):
            self.findings.extend(hook(node, context) or ())
        return True
