"""What the linter's process and a worker say to each other: one JSON object a line.

The worker sends `{"ready": …}` once, then for each request any number of `{"stage": …}`
and one `{"report": …}`. Before that it is sent the options, and the frameworks to import.
"""

import base64
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jitlint.finding import Verdict
from jitlint.verify.records import Break, EntryResult, Options, Report, Request

Message = dict[str, Any]


def request_to_message(request: Request) -> Message:
    return {
        "path": str(request.path.absolute()),
        "old": base64.b64encode(request.old).decode("ascii"),
        "new": base64.b64encode(request.new).decode("ascii"),
        "tests": request.tests,
    }


def request_from_message(message: Mapping[str, Any]) -> Request:
    return Request(
        Path(message["path"]),
        base64.b64decode(message["old"]),
        base64.b64decode(message["new"]),
        tuple((line, column) for line, column in message["tests"]),
    )


def options_to_message(options: Options) -> Message:
    return dataclasses.asdict(options)


def options_from_message(message: Mapping[str, Any]) -> Options:
    return Options(**{**message, "backends": tuple(message["backends"])})


def report_to_message(report: Report) -> Message:
    message = dataclasses.asdict(report)
    return {**message, "path": str(report.path), "verdict": report.verdict.value}


def report_from_message(message: Mapping[str, Any]) -> Report:
    return Report(
        Path(message["path"]),
        Verdict(message["verdict"]),
        message["reason"],
        tuple(_entry_from_message(entry) for entry in message["entries"]),
        message["counterexample"],
    )


def _entry_from_message(message: Mapping[str, Any]) -> EntryResult:
    return EntryResult(
        **{
            **message,
            "breaks_before": tuple(Break(**item) for item in message["breaks_before"]),
            "breaks_after": tuple(Break(**item) for item in message["breaks_after"]),
            "errors": tuple(message["errors"]),
        }
    )
