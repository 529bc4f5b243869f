"""The report for people: each finding with its line, its region, and its fix."""

from collections.abc import Iterator

from rich.console import Console

from jitlint.config import Settings
from jitlint.engine import CheckResult
from jitlint.finding import Diagnostic, Safety
from jitlint.region import Region
from jitlint.report import lines
from jitlint.report.lines import Segment, emit


def write(result: CheckResult, console: Console, settings: Settings) -> None:
    excerpts = lines.Excerpts(result.sources)
    for diagnostic in result.diagnostics:
        line = excerpts.line(diagnostic.path, diagnostic.span.line)
        for segments in block(diagnostic, line):
            emit(console, *segments)
        emit(console)
    if settings.statistics and result.diagnostics:
        lines.emit_statistics(console, result.diagnostics)
        emit(console)
    if not settings.quiet:
        emit(console, *_summary(result))


def block(diagnostic: Diagnostic, line: str) -> Iterator[list[Segment]]:
    """One finding; `line` is the source line where it starts, if it is known."""
    yield lines.headline(diagnostic)
    number = str(diagnostic.span.line)
    margin = " " * len(number)
    if line.strip():
        span = diagnostic.span
        end = span.end_column if span.end_line == span.line else len(line) + 1
        shown, carets = lines.excerpt(line, span.column, end)
        yield [(f" {margin} |", "blue")]
        yield [(f" {number} | ", "blue"), (shown, "")]
        yield [(f" {margin} | ", "blue"), (carets, lines.STYLES[diagnostic.severity])]
    for name, text in _remarks(diagnostic):
        yield [(f" {margin} = ", "blue"), (f"{name}: ", "bold"), (lines.clean(text), "")]


def _remarks(diagnostic: Diagnostic) -> Iterator[tuple[str, str]]:
    if diagnostic.region is not None:
        yield "in region", _place(diagnostic.region)
    if diagnostic.fix_safety is Safety.SAFE:
        yield "fix", diagnostic.fix_title or ""
    elif diagnostic.fix_safety is Safety.UNSAFE:
        yield "unsafe fix", diagnostic.fix_title or ""
    elif diagnostic.no_fix_reason:
        yield "no fix", diagnostic.no_fix_reason


def _place(region: Region) -> str:
    chain = f": {' → '.join(region.chain)}" if region.chain else ""
    return f"{region.kind.value} from {region.entry}{chain}"


def _summary(result: CheckResult) -> list[Segment]:
    files = f"{lines.plural(len(result.files), 'file')} ({result.analysed} analysed)"
    if not result.diagnostics:
        return [("No findings", "bold green"), (f" in {files}.", "")]
    segments: list[Segment] = [
        ("Found ", ""),
        (lines.counts(result.diagnostics), "bold"),
        (f" in {files}.", ""),
    ]
    safe = sum(each.fix_safety is Safety.SAFE for each in result.diagnostics)
    unsafe = sum(each.fix_safety is Safety.UNSAFE for each in result.diagnostics)
    if safe:
        segments.append((f" `jitlint fix` can fix {safe}.", ""))
    if unsafe:
        segments.append((f" `jitlint fix --verify` can try {unsafe} unsafe ones.", ""))
    return segments
