import io
import json
import re
import subprocess
from pathlib import Path

import pytest
from rich.console import Console

from jitlint import report
from jitlint.config import Settings
from jitlint.engine import CheckResult, FixResult
from jitlint.finding import Diagnostic, Safety, Severity, Span, Verdict
from jitlint.fixing import FileFix
from jitlint.region import Region, RegionKind
from jitlint.report import fixes, lines
from jitlint.source import Source
from jitlint.verify import Report

REGION = Region(RegionKind.COMPILE, "src/train.py:40", ("model.Net.forward", "model.gate"))
BRANCH = Diagnostic(
    path="model.py",
    span=Span(2, 8, 2, 19),
    rule="trace-branch",
    family="tracing",
    severity=Severity.WARNING,
    message="the branch depends on the values of a tensor",
    codes=("GB0170",),
    region=REGION,
    fix_safety=Safety.SAFE,
    fix_title="Use `torch.where`",
)
NOTE = Diagnostic(
    path="model.py",
    span=Span(3, 2, 5, 3),
    rule="other",
    family="tracing",
    severity=Severity.NOTE,
    message="something\nelse",
    no_fix_reason="it has side effects",
)
SOURCE = b"def gate(x):\n    if x.sum() > 0:\n\tfoo(\n"


def render(name, result, *, terminal=False, **options):
    stream = io.StringIO()
    console = Console(
        file=stream, force_terminal=terminal, color_system="standard", width=80, highlight=False
    )
    report.writer(name)(result, console, Settings(**options))
    return stream.getvalue()


def result(*diagnostics):
    from pathlib import Path

    held = {"model.py": Source(Path("model.py"), "model.py", SOURCE)}
    return CheckResult(diagnostics, (Path("a.py"), Path("model.py")), 1, sources=held)


TEXT = """\
model.py:2:8: warning trace-branch the branch depends on the values of a tensor [GB0170]
   |
 2 |     if x.sum() > 0:
   |        ^^^^^^^^^^^
   = in region: compile from src/train.py:40: model.Net.forward → model.gate
   = fix: Use `torch.where`

model.py:3:2: note other something else
   |
 3 |     foo(
   |     ^^^^
   = no fix: it has side effects

Found 1 warning, 1 note in 2 files (1 analysed). `jitlint fix` can fix 1.
"""


def test_text():
    assert render("text", result(BRANCH, NOTE)) == TEXT


def test_text_without_findings():
    assert render("text", result()) == "No findings in 2 files (1 analysed).\n"


def test_text_is_styled_on_a_terminal_only():
    styled = render("text", result(BRANCH), terminal=True)
    assert "\x1b[1;33mwarning\x1b[0m" in styled
    assert "\x1b" not in render("text", result(BRANCH))


def test_quiet_leaves_the_summary_out():
    assert render("text", result(), quiet=True) == ""


def test_statistics_come_after_the_findings():
    text = render("concise", result(BRANCH, BRANCH, NOTE), statistics=True)
    assert text.endswith("     2  trace-branch (2 fixable)\n     1  other\n")


def test_concise_is_one_line_for_each_finding():
    assert render("concise", result(BRANCH, NOTE)) == (
        "model.py:2:8: warning trace-branch the branch depends on the values of a tensor "
        "[GB0170] (safe fix)\n"
        "model.py:3:2: note other something else\n"
    )


def keys(value):
    """The names in an object and in those below it, where it stands for all of its list."""
    if isinstance(value, list):
        return keys(value[0]) if value else None
    return {k: keys(v) for k, v in value.items()} if isinstance(value, dict) else None


def test_json_has_the_keys_that_the_readme_shows():
    readme = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
    shown = re.search(r"```json\n(.*?)```", readme, re.DOTALL)
    assert shown is not None
    found = json.loads(render("json", result(BRANCH)))
    assert keys(json.loads(shown.group(1))) == keys(found)


def test_json_is_what_the_design_promises():
    assert json.loads(render("json", result(BRANCH, NOTE))) == {
        "version": 1,
        "findings": [
            {
                "rule": "trace-branch",
                "family": "tracing",
                "severity": "warning",
                "path": "model.py",
                "line": 2,
                "column": 8,
                "end_line": 2,
                "end_column": 19,
                "message": "the branch depends on the values of a tensor",
                "codes": ["GB0170"],
                "region": {
                    "kind": "compile",
                    "entry": "src/train.py:40",
                    "chain": ["model.Net.forward", "model.gate"],
                },
                "fix": {"safety": "safe", "title": "Use `torch.where`"},
                "no_fix_reason": None,
            },
            {
                "rule": "other",
                "family": "tracing",
                "severity": "note",
                "path": "model.py",
                "line": 3,
                "column": 2,
                "end_line": 5,
                "end_column": 3,
                "message": "something\nelse",
                "codes": [],
                "region": None,
                "fix": None,
                "no_fix_reason": "it has side effects",
            },
        ],
        "summary": {
            "files": 2,
            "analysed": 1,
            "errors": 0,
            "warnings": 1,
            "notes": 1,
            "fixable": 1,
        },
    }


def test_a_file_that_is_gone_is_reported_without_its_line():
    text = render("text", CheckResult((BRANCH,), (), 1))
    assert text.startswith("model.py:2:8: warning trace-branch")
    assert " 2 |" not in text


@pytest.mark.parametrize(
    ("line", "column", "end", "shown", "carets"),
    [
        ("\tif x:", 5, 6, "    if x:", "       ^"),
        ("s = '漢字' if x else 1", 13, 14, "s = '漢字' if x else 1", "              ^"),
        ("a = '\x1b[31m'", 1, 2, "a = '\\x1b[31m'", "^"),
        ("x", 1, 1, "x", "^"),
    ],
)
def test_carets_stand_below_what_they_mark(line, column, end, shown, carets):
    assert lines.excerpt(line, column, end) == (shown, carets)


def test_a_long_line_is_cut_around_the_finding():
    shown, carets = lines.excerpt("a" * 500 + "X" + "b" * 500, 501, 502)
    assert len(shown) == 162
    assert shown[carets.index("^")] == "X"
    assert (shown[0], shown[-1]) == ("…", "…")


def test_names_with_line_feeds_stay_on_one_line():
    assert lines.clean("a\nb\x1b") == "a\\x0ab\\x1b"


def fixed(old, new, name="model.py", **options):
    from pathlib import Path

    return FileFix(Source(Path(name), name, old), new, (BRANCH,), **options)


def test_fixes_are_listed_with_their_verdict_and_what_is_left_with_its_reason():
    from pathlib import Path

    verdict = Report(Path("model.py"), Verdict.VERIFIED, "8 inputs agree")
    unsafe = Diagnostic("b.py", Span(9, 1, 9, 2), "amp-dtype", "precision", Severity.ERROR, "m")
    outcome = FixResult(
        (fixed(b"a", b"b", report=verdict),), CheckResult((NOTE, unsafe), ()), {unsafe: "refuted"}
    )
    stream = io.StringIO()
    fixes.write(outcome, Console(file=stream), Settings())
    assert stream.getvalue() == (
        "model.py: fixed trace-branch: 1 — verified (8 inputs agree)\n"
        "  2:8: trace-branch Use `torch.where`\n"
        "model.py:3:2: note other something else\n"
        "  not fixed: it has side effects\n"
        "b.py:9:1: error amp-dtype m\n"
        "  not fixed: refuted\n"
        "Fixed 1 finding in 1 file; 2 findings left.\n"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"a\nb\nc\n", b"a\nB\nc\n"),
        (b"\xef\xbb\xbfa\r\nb", b"\xef\xbb\xbfa\r\nB"),
        (b"# coding: latin-1\n'\xe9'\nb\n", b"# coding: latin-1\n'\xe9'\nB\n"),
        (b"a\rb\nc\n", b"a\rB\nc\n"),
        (b"-- b\n", b"-- B"),
    ],
    ids=["plain", "crlf, mark, no newline", "latin-1", "lone cr", "dashes"],
)
def test_a_diff_can_be_applied_by_git(here, write, old, new):
    path = write("dir/model.py", old)
    patch = fixes.diff(fixed(old, new, name="dir/model.py"))
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", "apply", "--whitespace=nowarn"], input=patch, check=True)
    assert path.read_bytes() == new
