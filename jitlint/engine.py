"""`check` and `fix`: what a command does, without its command line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from jitlint import stages, writing
from jitlint.config import Settings
from jitlint.discovery import Problem
from jitlint.finding import Diagnostic, Severity
from jitlint.run_cache import RunCache
from jitlint.source import Source
from jitlint.stages import Pass, Progress, Rules, silent
from jitlint.syntax import SyntaxChecker

if TYPE_CHECKING:
    from jitlint.fixing import FileFix
    from jitlint.verify import Report


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a run found.

    `analysed` counts the files whose tree was read. `read` are the files that the result
    rests on beside `files`. `sources` are the files whose content is not on the disk.
    """

    diagnostics: tuple[Diagnostic, ...]
    files: tuple[Path, ...]
    analysed: int = 0
    problems: tuple[Problem, ...] = ()
    read: frozenset[Path] = frozenset()
    sources: Mapping[str, Source] = field(default_factory=dict)

    def count(self, severity: Severity) -> int:
        return sum(each.severity is severity for each in self.diagnostics)

    def failing(self, fail_on: Severity) -> bool:
        return any(each.severity.rank >= fail_on.rank for each in self.diagnostics)


def check(
    paths: Sequence[Path],
    settings: Settings,
    rules: Rules,
    *,
    stdin: Source | None = None,
    progress: Progress = silent,
) -> CheckResult:
    """Checks the files at `paths`, or `stdin` in the place of a file.

    `rules` are all installed rules; `settings` selects among them.
    """
    found, files, problems = stages.gather(paths, settings, stdin, progress)
    cache = RunCache(settings, rules, files) if settings.cache and stdin is None else None
    if cache is not None and (entry := cache.load()) is not None:
        diagnostics, analysed, read = entry
        return CheckResult(diagnostics, tuple(found), analysed, tuple(problems), read)
    syntax = SyntaxChecker(None if cache is None else cache.folder, settings.jobs)
    done = stages.run_pass(files, settings, rules, progress, syntax=syntax)
    result = _result(done, found, problems, stdin)
    if cache is not None:
        if len(result.problems) == len(problems):
            cache.store(result.diagnostics, result.analysed, result.read)
        syntax.save()
    return result


@dataclass(frozen=True, slots=True)
class FixResult:
    """`files` are those that change. `check` is what a check says after the change.

    `withheld` gives the reason for each remaining diagnostic whose fix was not applied.
    """

    files: "tuple[FileFix, ...]"
    check: CheckResult
    withheld: Mapping[Diagnostic, str]


def fix(
    paths: Sequence[Path],
    settings: Settings,
    rules: Rules,
    *,
    write: bool = True,
    stdin: Source | None = None,
    progress: Progress = silent,
) -> FixResult:
    """Applies the fixes that `settings` allows; a refuted one is never written."""
    from jitlint import fixing  # LibCST's codemods take long to import

    found, files, problems = stages.gather(paths, settings, stdin, progress)
    plan = fixing.plan(files, settings, rules, progress)
    problems += plan.problems
    if write:
        for each in plan.files:
            if each.source is not stdin:
                problems += _write(each)
    return FixResult(
        files=plan.files,
        check=_result(plan.after, found, problems, stdin),
        withheld=plan.withheld,
    )


def _write(fixed: "FileFix") -> list[Problem]:
    source = fixed.source
    try:
        writing.replace_content(source.path, source.data, fixed.new)
    except writing.ChangedError:
        message = "changed on disk while it was being fixed; it was left alone"
    except OSError as error:
        message = f"cannot be written: {error.strerror or error}"
    else:
        return []
    return [Problem(source.name, message)]


def _result(
    result: Pass,
    found: Sequence[Path],
    problems: Sequence[Problem],
    stdin: Source | None,
) -> CheckResult:
    return CheckResult(
        diagnostics=result.diagnostics,
        files=tuple(found),
        analysed=result.analysed,
        problems=(*problems, *result.problems),
        read=result.read,
        sources={} if stdin is None else {stdin.name: stdin},
    )


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """`changed` says for each report whether there was a fix to verify."""

    reports: "tuple[Report, ...]"
    changed: tuple[bool, ...]
    problems: tuple[Problem, ...]


def verify(
    paths: Sequence[Path],
    settings: Settings,
    rules: Rules,
    *,
    stdin: Source | None = None,
    progress: Progress = silent,
) -> VerifyResult:
    """Compiles and runs the analysed files, before and after all their fixes."""
    from jitlint import fixing
    from jitlint import verify as verifier

    _, files, problems = stages.gather(paths, settings, stdin, progress)
    everything = replace(settings, unsafe=True, verify=False)
    plan = fixing.plan(files, everything, rules, progress)
    fixed = {each.source.path: each for each in plan.files}
    chosen = [
        fixed.get(each.source.path) or fixing.FileFix(each.source, each.source.data, ())
        for each in plan.after.files
        if each.analysed or each.source.path in fixed
    ]
    requests = [
        verifier.Request(each.source.path, each.source.data, each.new, each.tests)
        for each in chosen
    ]
    reports = verifier.verify(requests, fixing.verify_options(settings, len(requests)), progress)
    return VerifyResult(
        reports=tuple(
            replace(report, path=Path(each.source.name))
            for each, report in zip(chosen, reports, strict=True)
        ),
        changed=tuple(each.new != each.source.data for each in chosen),
        problems=(*problems, *plan.problems, *plan.after.problems),
    )
