"""Reports for people (a table, or plain lines in a pipe) and for machines."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jitlint.finding import Verdict
from jitlint.verify import protocol
from jitlint.verify.records import Break, EntryResult, Report

_STYLES = {Verdict.VERIFIED: "green", Verdict.REFUTED: "red", Verdict.UNVERIFIED: "yellow"}
_ASPECTS = (
    ("out", "outputs_equal"),
    ("grad", "gradients_equal"),
    ("mut", "mutations_equal"),
    ("exc", "exceptions_equal"),
    ("print", "stdout_equal"),
)
_WORDS = {True: "equal", False: "differ", None: "-"}
VERSION = 1


def as_json(reports: Sequence[Report]) -> dict[str, Any]:
    return {
        "version": VERSION,
        "reports": [protocol.report_to_message(report) for report in reports],
        "summary": {
            verdict.value: sum(report.verdict is verdict for report in reports)
            for verdict in Verdict
        },
    }


def render(reports: Sequence[Report], console: Console) -> None:
    """A table where there is a screen to lay it out on; else one line for each fact."""
    if console.is_terminal:
        _render_table(reports, console)
        for report in reports:
            style = _STYLES[report.verdict]
            console.print(
                f"[{style}]{report.verdict.value}[/] [bold]{escape(str(report.path))}[/]: "
                f"{escape(report.reason)}",
                highlight=False,
            )
    else:
        for report in reports:
            for line in _lines(report):
                console.out(line, highlight=False)


def _render_table(reports: Sequence[Report], console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    table.add_column("module / entry", overflow="fold", min_width=20)
    for name in ("graphs", "breaks", "recompiles"):
        table.add_column(name, no_wrap=True)
    table.add_column("compared", overflow="fold")
    for report in reports:
        verdict = f"[{_STYLES[report.verdict]}]{report.verdict.value}[/]"
        table.add_row(f"{verdict} [bold]{escape(report.path.name)}[/]")
        for entry in report.entries:
            table.add_row(f"  {escape(entry.entry)} ({entry.kind})", *_cells(entry))
    console.print(table)


def _cells(entry: EntryResult) -> list[str]:
    return [
        f"{entry.graphs_before} → {entry.graphs_after}",
        _break_cell(entry),
        f"{entry.recompiles_before} → {entry.recompiles_after}",
        _compared_cell(entry),
    ]


def _compared_cell(entry: EntryResult) -> str:
    lines = []
    for value in (True, False):
        names = [title for title, field in _ASPECTS if getattr(entry, field) is value]
        if names:
            lines.append(f"{' '.join(names)}: {_WORDS[value]}")
    return "\n".join(lines) or _WORDS[None]


def _break_cell(entry: EntryResult) -> str:
    lines = [f"{len(entry.breaks_before)} → {len(entry.breaks_after)}"]
    lines += [f"- {_place(item)}" for item in entry.breaks_before]
    lines += [f"+ {_place(item)}" for item in entry.breaks_after]
    return "\n".join(lines)


def _place(item: Break) -> str:
    return f"{item.code or 'break'} line {item.line}"


def _lines(report: Report) -> Iterator[str]:
    yield f"{report.path}: {report.verdict.value}: {report.reason}"
    for entry in report.entries:
        equal = ", ".join(f"{title} {_WORDS[getattr(entry, name)]}" for title, name in _ASPECTS)
        yield (
            f"  {entry.entry} ({entry.kind}): graphs {entry.graphs_before} -> "
            f"{entry.graphs_after}, breaks {len(entry.breaks_before)} -> "
            f"{len(entry.breaks_after)}, recompiles {entry.recompiles_before} -> "
            f"{entry.recompiles_after}, {entry.inputs} inputs: {equal}"
        )
        for title, breaks in (("before", entry.breaks_before), ("after", entry.breaks_after)):
            for item in breaks:
                yield f"    {title}: {_place(item)}: {item.reason}"
        for note in entry.errors:
            yield f"    note: {' '.join(note.split())}"
