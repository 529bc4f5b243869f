"""A report reads the same on a screen, in a pipe and in JSON."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from jitlint.finding import Verdict
from jitlint.verify import Break, EntryResult, Options, Report, Request, protocol, table

ENTRY = EntryResult(
    "step",
    "compile",
    graphs_before=3,
    graphs_after=1,
    breaks_before=(Break("GB0170", 12, "Data-dependent branching"),),
    recompiles_before=2,
    errors=("aot_eager itself changes\nthe printed text",),
    outputs_equal=True,
    gradients_equal=None,
    mutations_equal=True,
    exceptions_equal=True,
    stdout_equal=False,
    inputs=19,
)
REPORTS = [
    Report(Path("model.py"), Verdict.VERIFIED, "1 entry, 19 inputs; breaks 1 → 0", (ENTRY,)),
    Report(Path("a[b].py"), Verdict.REFUTED, "old and new code differ: x", (), "x"),
]


def rendered(**options: object) -> str:
    stream = io.StringIO()
    table.render(REPORTS, Console(file=stream, width=80, **options))  # type: ignore[arg-type]
    return stream.getvalue()


def test_plain_lines_in_a_pipe():
    assert rendered().splitlines() == [
        "model.py: verified: 1 entry, 19 inputs; breaks 1 → 0",
        "  step (compile): graphs 3 -> 1, breaks 1 -> 0, recompiles 2 -> 0, 19 inputs: "
        "out equal, grad -, mut equal, exc equal, print differ",
        "    before: GB0170 line 12: Data-dependent branching",
        "    note: aot_eager itself changes the printed text",
        "a[b].py: refuted: old and new code differ: x",
    ]


@pytest.mark.parametrize("no_color", [True, False])
def test_table_on_a_terminal(no_color):
    text = rendered(force_terminal=True, no_color=no_color)
    for word in ("step (compile)", "3 → 1", "1 → 0", "- GB0170 line 12", "differ", "a[b].py"):
        assert word in text


def test_json_counts_the_verdicts():
    data = json.loads(json.dumps(table.as_json(REPORTS)))
    assert data["summary"] == {"verified": 1, "refuted": 1, "unverified": 0}
    assert data["reports"][0]["entries"][0]["breaks_before"][0]["code"] == "GB0170"


@pytest.mark.parametrize("report", REPORTS, ids=["with_entries", "without"])
def test_report_survives_the_pipe(report):
    message = json.loads(json.dumps(protocol.report_to_message(report)))
    assert protocol.report_from_message(message) == report


def test_request_and_options_survive_the_pipe(tmp_path):
    request = Request(tmp_path / "m.py", "é\n".encode("latin-1"), b"\xff", ((1, 2),))
    message = json.loads(json.dumps(protocol.request_to_message(request)))
    assert protocol.request_from_message(message) == request
    options = Options(backends=("inductor",), timeout=1.5)
    message = json.loads(json.dumps(protocol.options_to_message(options)))
    assert protocol.options_from_message(message) == options
