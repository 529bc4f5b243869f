"""What `jitlint fix` did, and what it left alone and why."""

import difflib
import re
from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console

from jitlint import source as sources
from jitlint.config import Settings
from jitlint.engine import FixResult
from jitlint.finding import Verdict
from jitlint.report.lines import Segment, clean, emit, emit_statistics, headline, plural
from jitlint.source import Text

if TYPE_CHECKING:
    from jitlint.fixing import FileFix

VERDICT_STYLES = {
    Verdict.VERIFIED: "green",
    Verdict.REFUTED: "red",
    Verdict.UNVERIFIED: "yellow",
}


def write(result: FixResult, console: Console, settings: Settings) -> None:
    for fixed in result.files:
        emit(console, *_file_line(fixed))
        for each in sorted(fixed.applied, key=lambda applied: applied.sort_key):
            place = f"  {each.span.line}:{each.span.column}: "
            emit(console, (place, ""), (each.rule, "bold"), (f" {clean(each.fix_title or '')}", ""))
    for diagnostic in result.check.diagnostics:
        emit(console, *headline(diagnostic))
        reason = result.withheld.get(diagnostic) or diagnostic.no_fix_reason
        if reason:
            emit(console, ("  not fixed: ", "bold"), (clean(reason), ""))
    if settings.statistics:
        emit_statistics(console, result.check.diagnostics)
    if not settings.quiet:
        emit(console, *_summary(result))


def _file_line(fixed: "FileFix") -> list[Segment]:
    rules = Counter(each.rule for each in fixed.applied)
    words = ", ".join(f"{rule}: {count}" for rule, count in sorted(rules.items()))
    segments: list[Segment] = [(clean(fixed.source.name), "bold"), (f": fixed {words}", "")]
    if fixed.report is not None:
        verdict = fixed.report.verdict
        segments += [(" — ", ""), (verdict.value, VERDICT_STYLES[verdict])]
        segments.append((f" ({clean(fixed.report.reason)})", "dim"))
    return segments


def _summary(result: FixResult) -> list[Segment]:
    count = sum(len(fixed.applied) for fixed in result.files)
    remaining = len(result.check.diagnostics)
    if not count and not remaining:
        return [("Nothing to fix.", "bold green")]
    fixed = f"Fixed {plural(count, 'finding')} in {plural(len(result.files), 'file')}"
    left = f"{plural(remaining, 'finding')} left" if remaining else "none left"
    return [(f"{fixed}; {left}.", "bold")]


def diff(fixed: "FileFix") -> bytes:
    """A unified diff in the encoding of the file, as `git apply` and `patch -p1` take it."""
    old = sources.decode(fixed.source.data)
    new = sources.decode(fixed.new)
    name = fixed.source.name
    before, after = (name, name) if name.startswith("/") else (f"a/{name}", f"b/{name}")
    output = bytearray()
    encoding = "utf-8"  # of the header
    for line in difflib.unified_diff(_lines(old), _lines(new), before, after):
        if line.startswith("@@"):
            encoding = old.encoding
        output += line.encode(encoding, "surrogateescape")
        if not line.endswith("\n"):
            output += b"\n\\ No newline at end of file\n"
    return bytes(output)


def _lines(text: Text) -> list[str]:
    """As `patch` counts them: only a line feed ends a line."""
    return re.findall(r"[^\n]*\n|[^\n]+", text.mark.decode() + text.text)
