"""What a machine reads; the shape is a promise (`version`)."""

import json
from typing import Any

from rich.console import Console

from jitlint.config import Settings
from jitlint.engine import CheckResult
from jitlint.finding import Diagnostic, Severity
from jitlint.region import Region
from jitlint.report.lines import statistics

VERSION = 1


def write(result: CheckResult, console: Console, settings: Settings) -> None:
    console.file.write(json.dumps(as_object(result, settings.statistics), indent=2) + "\n")


def as_object(result: CheckResult, with_statistics: bool = False) -> dict[str, Any]:
    content: dict[str, Any] = {
        "version": VERSION,
        "findings": [finding(each) for each in result.diagnostics],
        "summary": {
            "files": len(result.files),
            "analysed": result.analysed,
            "errors": result.count(Severity.ERROR),
            "warnings": result.count(Severity.WARNING),
            "notes": result.count(Severity.NOTE),
            "fixable": sum(each.fix_safety is not None for each in result.diagnostics),
        },
    }
    if with_statistics:
        content["statistics"] = {rule: n for rule, n, _ in statistics(result.diagnostics)}
    return content


def finding(diagnostic: Diagnostic) -> dict[str, Any]:
    span = diagnostic.span
    fix = None
    if diagnostic.fix_safety is not None:
        fix = {"safety": diagnostic.fix_safety.value, "title": diagnostic.fix_title}
    return {
        "rule": diagnostic.rule,
        "family": diagnostic.family,
        "severity": diagnostic.severity.value,
        "path": diagnostic.path,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
        "message": diagnostic.message,
        "codes": list(diagnostic.codes),
        "region": None if diagnostic.region is None else _region(diagnostic.region),
        "fix": fix,
        "no_fix_reason": diagnostic.no_fix_reason,
    }


def _region(region: Region) -> dict[str, Any]:
    return {"kind": region.kind.value, "entry": region.entry, "chain": list(region.chain)}
