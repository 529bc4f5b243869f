"""The stages of a run: from paths to sources, and from sources to diagnostics."""

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import libcst as cst

from jitlint import builtin, deep, discovery, suppression
from jitlint import source as sources
from jitlint.analyse import FileFindings, analyse
from jitlint.config import Settings
from jitlint.discovery import Problem
from jitlint.finding import Diagnostic, Finding, Span
from jitlint.positions import Positions, positions_of
from jitlint.rule import Rule
from jitlint.selection import Names, PerFile
from jitlint.source import Source, UnparsableError
from jitlint.syntax import SyntaxChecker

Rules = Mapping[str, type[Rule]]
Progress = Callable[[str], None]


def silent(stage: str) -> None:
    """A progress that nobody watches."""


@dataclass(frozen=True, slots=True)
class Located:
    """A finding with the diagnostic made of it."""

    finding: Finding
    diagnostic: Diagnostic


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """One file after all stages of a check.

    `located` are the findings that remain; they and `module` are there if trees were kept.
    """

    source: Source
    analysed: bool
    module: cst.Module | None
    located: tuple[Located, ...]
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True, slots=True)
class Pass:
    """One run of the analysis over sources."""

    files: tuple[CheckedFile, ...]
    analysed: int
    problems: tuple[Problem, ...]
    read: frozenset[Path]

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        found = [each for file in self.files for each in file.diagnostics]
        return tuple(sorted(found, key=lambda each: each.sort_key))


def known_rules(rules: Rules) -> dict[str, type[Rule]]:
    """`rules` and those of the engine itself."""
    return {**builtin.RULES, **rules}


def gather(
    paths: Sequence[Path], settings: Settings, stdin: Source | None, progress: Progress
) -> tuple[tuple[Path, ...], list[Source], list[Problem]]:
    """The files of a run: those found, those that could be read, and what went wrong."""
    progress("looking for files")
    found = discovery.discover(paths, settings)
    files = [] if stdin is None else [stdin]
    problems = list(found.problems)
    for path in found.files:
        try:
            files.append(replace(read(path), explicit=path in found.named))
        except OSError as error:
            problems.append(discovery.problem(path, error))
    paths_found = found.files if stdin is None else (stdin.path, *found.files)
    return paths_found, files, problems


def read(path: Path) -> Source:
    return sources.read(path, discovery.shown(path))


def run_pass(
    files: Sequence[Source],
    settings: Settings,
    rules: Rules,
    progress: Progress = silent,
    *,
    syntax: SyntaxChecker | None = None,
    keep_trees: bool = False,
) -> Pass:
    """Trees take much memory; only edits need them after the pass."""
    run = _Run(settings, rules, progress, syntax or SyntaxChecker(jobs=settings.jobs), keep_trees)
    return deep.run(run.over, files)


class _Run:
    """The stages from sources to diagnostics, for one selection of rules."""

    def __init__(
        self,
        settings: Settings,
        rules: Rules,
        progress: Progress,
        syntax: SyntaxChecker,
        keep_trees: bool,
    ) -> None:
        self._settings = settings
        self._progress = progress
        self._syntax = syntax
        self._keep_trees = keep_trees
        self._known = known_rules(rules)
        names = Names.of(self._known)
        self._selected = settings.selected(names)
        self._rules = {name: rule for name, rule in rules.items() if name in self._selected}
        self._per_file = PerFile(settings.per_file_ignores, settings.root, names)
        self._problems: list[Problem] = []

    def over(self, files: Sequence[Source]) -> Pass:
        self._progress(f"reading {len(files)} files")
        broken = self._syntax.errors(files)
        intact = [file for file in files if file.path not in broken]
        checked: dict[Path, CheckedFile] = {}
        read: set[Path] = set()
        for record in self._analyse(intact):
            checked[record.source.path] = self._finish(record)
            read |= record.read
        analysed = sum(each.analysed for each in checked.values())
        for file in files:
            if file.path not in checked:
                record = FileFindings(file, None, unparsable=broken.get(file.path))
                checked[file.path] = self._finish(record)
        return Pass(
            files=tuple(checked[file.path] for file in files),
            analysed=analysed,
            problems=tuple(self._problems),
            read=frozenset(read),
        )

    def _analyse(self, files: Sequence[Source]) -> Iterator[FileFindings]:
        """A mistake outside of a single file ends the analysis, not the run."""
        self._progress("analysing")
        try:
            yield from analyse(files, self._settings, self._rules, self._settings.targets)
        except Exception:
            self._crashed(".", traceback.format_exc())

    def _crashed(self, path: str, trace: str) -> None:
        self._problems.append(internal_error(path, trace))

    def _finish(self, record: FileFindings) -> CheckedFile:
        """From nodes to places, without what is silenced."""
        file = record.source
        if record.crash is not None:
            self._crashed(file.name, record.crash)
        located: list[Located] = []
        idle: list[Diagnostic] = []
        try:
            located = _locate(record)
            if record.unparsable is not None:
                idle = [_syntax_error(file, record.unparsable)]
        except Exception:
            self._crashed(file.name, traceback.format_exc())
        active = self._selected - self._per_file.ignored(file.path)
        found = [each.diagnostic for each in located] + idle
        kept = suppression.apply(
            file.data,
            file.name,
            [each for each in found if each.rule in active],
            active if record.crash is None else frozenset(),
            self._known,
        )
        kept = [self._with_severity(each) for each in kept]
        places = {each.sort_key for each in kept} if self._keep_trees else set()
        return CheckedFile(
            source=file,
            analysed=record.module is not None,
            module=record.module if self._keep_trees else None,
            located=tuple(each for each in located if each.diagnostic.sort_key in places),
            diagnostics=tuple(dict.fromkeys(kept)),
        )

    def _with_severity(self, diagnostic: Diagnostic) -> Diagnostic:
        severity = self._settings.severity.get(diagnostic.rule, diagnostic.severity)
        return replace(diagnostic, severity=severity)


def internal_error(path: str, trace: str) -> Problem:
    last = trace.strip().splitlines()[-1]
    message = f"internal error: {last}; this is a mistake of jitlint, please report it"
    return Problem(path, message, trace)


def _syntax_error(file: Source, error: UnparsableError) -> Diagnostic:
    rule = builtin.SyntaxErrorRule
    return Diagnostic(
        path=file.name,
        span=Span(error.line, error.column, error.line, error.column + 1),
        rule=rule.name,
        family=rule.family,
        severity=rule.severity,
        message=error.message,
        no_fix_reason="the file has to parse first",
    )


def _locate(record: FileFindings) -> list[Located]:
    if record.module is None or not record.findings:
        return []
    positions = positions_of(record.module)
    return [
        Located(finding, _diagnostic(finding, record.source.name, positions))
        for finding in record.findings
    ]


def _diagnostic(finding: Finding, path: str, positions: Positions) -> Diagnostic:
    fix = finding.fix
    return Diagnostic(
        path=path,
        span=positions[finding.node],
        rule=finding.rule,
        family=finding.family,
        severity=finding.severity,
        message=finding.message,
        codes=finding.codes,
        region=finding.region,
        fix_safety=None if fix is None else fix.safety,
        fix_title=None if fix is None else fix.title,
        no_fix_reason=None if fix is not None else finding.no_fix_reason,
    )
