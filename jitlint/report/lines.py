"""Pieces that the reports for people share."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from jitlint import source as sources
from jitlint.finding import Diagnostic, Severity
from jitlint.source import Source

Segment = tuple[str, str]
"""Text and its style on a terminal."""

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
MAX_WIDTH = 160
TAB = "    "
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff]")


def emit(console: Console, *segments: Segment) -> None:
    """One line: with styles on a terminal, as it is elsewhere."""
    if console.is_terminal:
        console.print(Text.assemble(*segments), soft_wrap=True)
    else:
        console.file.write("".join(text for text, _ in segments) + "\n")


def clean(text: str) -> str:
    """`text` on one line, without what a terminal would obey."""
    return _CONTROL.sub(lambda match: "\\x" + format(ord(match.group()), "02x"), text)


def headline(diagnostic: Diagnostic) -> list[Segment]:
    """`path:line:column: severity rule message [codes]`."""
    span = diagnostic.span
    message = " ".join(diagnostic.message.split())
    segments = [
        (clean(diagnostic.path), "bold"),
        (f":{span.line}:{span.column}: ", ""),
        (diagnostic.severity.value, STYLES[diagnostic.severity]),
        (f" {diagnostic.rule} ", "bold"),
        (clean(message), ""),
    ]
    if diagnostic.codes:
        segments.append((f" [{', '.join(diagnostic.codes)}]", "dim"))
    return segments


class Excerpts:
    """Source lines of the files of a result, read when they are asked for."""

    def __init__(self, held: Mapping[str, Source]) -> None:
        self._held = held
        self._name = ""
        self._lines: Sequence[str] = ()

    def line(self, path: str, number: int) -> str:
        """Empty when the file is gone or does not decode."""
        if path != self._name:
            self._name = path
            self._lines = self._read(path)
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""

    def _read(self, path: str) -> Sequence[str]:
        try:
            data = self._held[path].data if path in self._held else Path(path).read_bytes()
            return sources.lines_of(sources.decode(data).text)
        except (OSError, sources.UnparsableError):
            return ()


def excerpt(line: str, column: int, end_column: int) -> tuple[str, str]:
    """The part of a line to show, and the carets below it."""
    start = 0
    if len(line) > MAX_WIDTH:
        start = max(0, min(column - 1 - MAX_WIDTH // 2, len(line) - MAX_WIDTH))
    stop = start + MAX_WIDTH
    before = _visible(line[start : column - 1])
    marked = _visible(line[column - 1 : min(end_column - 1, stop)])
    after = _visible(line[max(column, end_column) - 1 : stop])
    if start:
        before = "…" + before
    if stop < len(line):
        after += "…"
    carets = "^" * max(1, cell_len(marked.rstrip()))
    return (before + marked + after).rstrip(), " " * cell_len(before) + carets


def _visible(text: str) -> str:
    return clean(text.replace("\t", TAB))


def plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def counts(diagnostics: Sequence[Diagnostic]) -> str:
    """`1 error, 2 warnings`; kinds that do not occur are left out."""
    found = Counter(each.severity for each in diagnostics)
    kinds = [plural(found[each], each.value) for each in reversed(Severity) if found[each]]
    return ", ".join(kinds)


def statistics(diagnostics: Sequence[Diagnostic]) -> Iterator[tuple[str, int, int]]:
    """Rule, findings and fixable findings; the most frequent rule first."""
    found = Counter(each.rule for each in diagnostics)
    fixable = Counter(each.rule for each in diagnostics if each.fix_safety is not None)
    for rule, count in sorted(found.items(), key=lambda item: (-item[1], item[0])):
        yield rule, count, fixable[rule]


def emit_statistics(console: Console, diagnostics: Sequence[Diagnostic]) -> None:
    for rule, count, fixable in statistics(diagnostics):
        words = f" ({fixable} fixable)" if fixable else ""
        emit(console, (f"{count:>6}  ", "bold"), (rule, ""), (words, "dim"))
