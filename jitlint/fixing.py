"""From findings with fixes to new files, and the proof that they mean the same."""

import difflib
import os
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from jitlint import deep, edits, stages
from jitlint import source as sources
from jitlint.config import Settings
from jitlint.discovery import Problem
from jitlint.edits import EditError
from jitlint.finding import Diagnostic, Fix, Safety, Verdict
from jitlint.positions import Positions
from jitlint.source import NotWritableError, Source, UnparsableError
from jitlint.stages import CheckedFile, Located, Pass, Progress, Rules
from jitlint.syntax import SyntaxChecker

if TYPE_CHECKING:
    from jitlint.verify import Options, Report

MAX_ROUNDS = 10
MAX_WORKERS = 4
UNSAFE = "it is unsafe: `--verify` proves it on this code, `--unsafe` applies it unproved"
COMBINED = "verification refuted the fixes of this file together"

Place = tuple[int, int]
Key = tuple[str, str, str, str]
"""A fix across rounds, in which nodes and lines change: file, rule, title, code."""


@dataclass(frozen=True, slots=True)
class FileFix:
    """One file before and after. `tests` are the rewritten truth tests, as places in the
    old file; the lines of `applied` are lines of the old file where they are known."""

    source: Source
    new: bytes
    applied: tuple[Diagnostic, ...]
    tests: tuple[Place, ...] = ()
    report: "Report | None" = None

    @property
    def has_unsafe(self) -> bool:
        return any(each.fix_safety is Safety.UNSAFE for each in self.applied)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to write, and what is left when it is written."""

    files: tuple[FileFix, ...]
    after: Pass
    withheld: Mapping[Diagnostic, str]
    problems: list[Problem]
    keys: Mapping[str, tuple[Key, ...]] = field(default_factory=dict)
    """By file, what `FileFix.applied` are as fixes that a later plan can refuse."""


@dataclass(slots=True)
class _Refusals:
    """Fixes that must not be applied, and why."""

    fixes: dict[Key, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    def reason(self, key: Key) -> str | None:
        return self.files.get(key[0]) or self.fixes.get(key)


def plan(
    files: Sequence[Source],
    settings: Settings,
    rules: Rules,
    progress: Progress = stages.silent,
    *,
    without: Mapping[Key, str] | None = None,
) -> Plan:
    """The new files, verified if `settings` asks for it. Nothing is written.

    `without` are fixes that must not be applied, and why.
    """
    refusals = _Refusals(dict(without or {}))
    planner = _Planner(files, settings, rules, refusals, progress)
    result = deep.run(planner.run)
    if not settings.verify:
        return result
    reports: dict[tuple[str, bytes], Report] = {}
    while True:
        unproved = [each for each in result.files if (each.source.name, each.new) not in reports]
        for each, report in zip(unproved, _verify(unproved, settings, progress), strict=True):
            reports[each.source.name, each.new] = report
        proved = [
            replace(each, report=reports[each.source.name, each.new]) for each in result.files
        ]
        refused = [_refuse(each, refusals, planner, settings, progress) for each in proved]
        if not any(refused):
            return replace(result, files=tuple(proved))
        result = deep.run(planner.run)


def _verify(files: Sequence[FileFix], settings: Settings, progress: Progress) -> "list[Report]":
    from jitlint import verify

    requests = [
        verify.Request(each.source.path, each.source.data, each.new, each.tests) for each in files
    ]
    return verify.verify(requests, verify_options(settings, len(requests)), progress)


def verify_options(settings: Settings, requests: int) -> "Options":
    from jitlint import verify

    workers = min(settings.jobs or os.cpu_count() or 1, MAX_WORKERS, max(requests, 1))
    return verify.Options(
        device=settings.device,
        backends=settings.backend,
        timeout=settings.timeout,
        workers=workers,
    )


def _refuse(
    fixed: FileFix,
    refusals: _Refusals,
    planner: "_Planner",
    settings: Settings,
    progress: Progress,
) -> bool:
    """Notes what the report of a file rules out; false if it stands as it is."""
    report = fixed.report
    assert report is not None
    name = fixed.source.name
    if report.verdict is Verdict.VERIFIED:
        return False
    if report.verdict is Verdict.UNVERIFIED:
        if settings.unsafe:
            return False
        unsafe = [key for key, each in planner.keys[name] if each.fix_safety is Safety.UNSAFE]
        for key in unsafe:
            refusals.fixes[key] = f"it is unsafe and could not be verified: {report.reason}"
        return bool(unsafe)
    if name in planner.attributed or len(planner.keys[name]) == 1:
        refusals.files[name] = refuted(report)
        return True
    planner.attributed.add(name)
    blamed = _attribute(fixed, planner, settings, progress)
    refusals.fixes.update(blamed)
    if not blamed:
        refusals.files[name] = f"{COMBINED}: {report.counterexample or report.reason}"
    return True


def refuted(report: "Report") -> str:
    return f"verification refuted it: {report.counterexample or report.reason}"


def _attribute(
    fixed: FileFix, planner: "_Planner", settings: Settings, progress: Progress
) -> dict[Key, str]:
    """Which fixes of a refuted file are refuted when they are applied alone."""
    alone = deep.run(planner.each_alone, fixed.source)
    reports = _verify([each for _, each in alone], settings, progress)
    blamed: dict[Key, str] = {}
    for (key, each), report in zip(alone, reports, strict=True):
        if report.verdict is Verdict.REFUTED:
            blamed[key] = refuted(report)
        elif report.verdict is Verdict.UNVERIFIED and each.has_unsafe and not settings.unsafe:
            blamed[key] = f"it is unsafe and could not be verified: {report.reason}"
    return blamed


class _Planner:
    """Rounds of analysis and edits until nothing more is to be done."""

    def __init__(
        self,
        files: Sequence[Source],
        settings: Settings,
        rules: Rules,
        refusals: _Refusals,
        progress: Progress,
    ) -> None:
        self._files = files
        self._settings = settings
        self._rules = rules
        self._refusals = refusals
        self._progress = progress
        self._syntax = SyntaxChecker()
        self._first: Pass | None = None
        self.attributed: set[str] = set()
        """Files whose fixes were already tried one by one."""
        self.keys: dict[str, list[tuple[Key, Diagnostic]]] = {}
        """The fixes that the last run applied, by file."""

    def run(self) -> Plan:
        self.keys = {}
        problems: dict[str, Problem] = {}
        stuck: dict[str, str] = {}
        current = {file.path: file for file in self._files}
        changes = {file.path: _Change(file) for file in self._files}
        for _ in range(MAX_ROUNDS):
            result = self._pass(list(current.values()))
            edited = False
            for file in result.files:
                name = file.source.name
                chosen = self._chosen(file)
                if not chosen or name in stuck:
                    continue
                try:
                    new, applied = _edit(file, chosen)
                except NotWritableError as error:
                    stuck[name] = str(error)
                except Exception:
                    stuck[name] = "the edit failed"
                    problems[name] = stages.internal_error(name, traceback.format_exc())
                else:
                    self.keys.setdefault(name, []).extend(
                        (_key(file, each), each.diagnostic) for each in applied
                    )
                    changes[file.source.path].add(file, applied)
                    edited = edited or new != file.source.data
                    current[file.source.path] = replace(file.source, data=new)
            if not edited:
                break
        else:
            result = self._pass(list(current.values()))
        fixed = [
            change.done(current[path].data)
            for path, change in changes.items()
            if current[path].data != change.source.data
        ]
        withheld = self._withheld(result, stuck)
        keys = {name: tuple(key for key, _ in applied) for name, applied in self.keys.items()}
        return Plan(tuple(fixed), result, withheld, list(problems.values()), keys)

    def each_alone(self, source: Source) -> list[tuple[Key, FileFix]]:
        """The file with each of its own fixes alone."""
        file = next(each for each in self._pass(self._files).files if each.source == source)
        result: list[tuple[Key, FileFix]] = []
        for located in self._chosen(file):
            new, applied = _edit(file, [located])
            change = _Change(source)
            change.add(file, applied)
            result.append((_key(file, located), change.done(new)))
        return result

    def _pass(self, files: Sequence[Source]) -> Pass:
        """The first one is kept: it is asked for again when a fix was refuted."""
        if files != list(self._files):
            return self._analyse(files)
        if self._first is None:
            self._first = self._analyse(files)
        return self._first

    def _analyse(self, files: Sequence[Source]) -> Pass:
        return stages.run_pass(
            files,
            self._settings,
            self._rules,
            self._progress,
            syntax=self._syntax,
            keep_trees=True,
        )

    def _chosen(self, file: CheckedFile) -> list[Located]:
        return [each for each in file.located if self._reason_against(file, each) == ""]

    def _reason_against(self, file: CheckedFile, located: Located) -> str | None:
        """Empty: apply the fix. None: there is none."""
        fix = located.finding.fix
        if fix is None:
            return None
        reason = self._refusals.reason(_key(file, located))
        if reason is not None:
            return reason
        allowed = fix.safety is Safety.SAFE or self._settings.unsafe or self._settings.verify
        return "" if allowed else UNSAFE

    def _withheld(self, result: Pass, stuck: Mapping[str, str]) -> dict[Diagnostic, str]:
        withheld: dict[Diagnostic, str] = {}
        for file in result.files:
            for each in file.located:
                reason = self._reason_against(file, each)
                if reason == "":
                    reason = stuck.get(file.source.name, "it overlaps with another fix")
                if reason is not None:
                    withheld[each.diagnostic] = reason
        return withheld


def _key(file: CheckedFile, located: Located) -> Key:
    assert file.module is not None
    finding = located.finding
    title = "" if finding.fix is None else finding.fix.title
    return file.source.name, finding.rule, title, file.module.code_for_node(finding.node)


def _edit(file: CheckedFile, chosen: Sequence[Located]) -> tuple[bytes, list[Located]]:
    """The new content, and which fixes are in it; the result is Python again."""
    assert file.module is not None
    by_fix = {each.finding.fix: each for each in chosen if each.finding.fix is not None}
    edited = edits.apply(file.module, list(by_fix))
    text = sources.decode(file.source.data)
    new = edits.render(text, file.module, edited.module)
    try:
        sources.parse_ast(sources.decode(new).text)
    except UnparsableError as error:
        titles = ", ".join(fix.title for fix in edited.applied)
        raise EditError(f"`{titles}` made a file that does not parse: {error}") from error
    return new, [by_fix[fix] for fix in edited.applied]


class _Change:
    """What the rounds did to one file, in places of its first state."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._applied: list[Diagnostic] = []
        self._tests: set[Place] = set()

    def add(self, file: CheckedFile, applied: Iterable[Located]) -> None:
        """`applied` are findings of `file`, which is this file in one of the rounds."""
        assert file.module is not None
        line_of = self._lines(file.source)
        fixes: list[Fix] = []
        for each in applied:
            span = each.diagnostic.span
            first = line_of(span.line) or span.line
            last = first + span.end_line - span.line
            place = replace(span, line=first, end_line=last)
            self._applied.append(replace(each.diagnostic, span=place))
            if each.finding.fix is not None:
                fixes.append(each.finding.fix)
        tests = [test for fix in fixes for test in fix.tests]
        if tests:
            positions = Positions(file.module)
            for test in tests:
                span = positions[test]
                line = line_of(span.line)
                if line is not None:
                    self._tests.add((line, span.column))

    def done(self, new: bytes) -> FileFix:
        return FileFix(self.source, new, tuple(self._applied), tuple(sorted(self._tests)))

    def _lines(self, now: Source) -> Callable[[int], int | None]:
        """The line of the first state that a line of `now` was, if it is still the same."""
        if now.data == self.source.data:
            return lambda line: line
        old, new = (sources.lines_of(sources.decode(each.data).text) for each in (self.source, now))
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        lines = {
            block.b + offset + 1: block.a + offset + 1
            for block in matcher.get_matching_blocks()
            for offset in range(block.size)
        }
        return lines.get
