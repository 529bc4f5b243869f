"""One line for each finding."""

from rich.console import Console

from jitlint.config import Settings
from jitlint.engine import CheckResult
from jitlint.report.lines import emit, emit_statistics, headline


def write(result: CheckResult, console: Console, settings: Settings) -> None:
    for diagnostic in result.diagnostics:
        segments = headline(diagnostic)
        if diagnostic.fix_safety is not None:
            segments.append((f" ({diagnostic.fix_safety.value} fix)", "dim"))
        emit(console, *segments)
    if settings.statistics:
        emit_statistics(console, result.diagnostics)
