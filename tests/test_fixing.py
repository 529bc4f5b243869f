import os
from pathlib import Path

import libcst as cst
import pytest

import jitlint.verify
from jitlint import engine
from jitlint.config import Settings
from jitlint.discovery import Problem
from jitlint.finding import Fix, Safety, Severity, Verdict
from jitlint.rule import Rule
from jitlint.verify import Report


def fix(toys, *paths, write=True, **options):
    return engine.fix(
        [Path(path) for path in paths or (".",)], Settings(**options), toys, write=write
    )


@pytest.fixture
def verdicts(monkeypatch):
    """A verifier that judges new code by the given function, and the requests it was sent."""

    def install(judge):
        requests = []

        def verify(batch, options, progress=None):
            requests.extend(batch)
            reports = []
            for request in batch:
                verdict, reason = judge(request.new.decode())
                reports.append(Report(request.path, verdict, reason))
            return reports

        monkeypatch.setattr(jitlint.verify, "verify", verify)
        return requests

    return install


def test_safe_fixes_are_written_and_the_rest_is_left(here, write, toys):
    path = write("a.py", "x = foo  # why\r\ny = 3.14\nprint(foo)")
    result = fix(toys)
    assert path.read_bytes() == b"x = bar  # why\r\ny = 3.14\nprint(bar)"
    (fixed,) = result.files
    assert [(each.rule, each.span.line) for each in fixed.applied] == [
        ("no-foo", 1),
        ("no-foo", 3),
    ]
    assert [each.rule for each in result.check.diagnostics] == ["risky-pi", "no-print"]
    assert list(result.withheld.values()) == [
        "it is unsafe: `--verify` proves it on this code, `--unsafe` applies it unproved"
    ]
    assert result.check.problems == ()


def test_unsafe_fixes_on_demand(here, write, toys):
    path = write("a.py", "y = 3.14\n")
    result = fix(toys, unsafe=True)
    assert path.read_text() == "import math\n\ny = math.pi\n"
    assert result.check.diagnostics == ()


def test_nothing_is_written_for_a_diff(here, write, toys):
    path = write("a.py", "foo\n")
    (fixed,) = fix(toys, write=False).files
    assert fixed.new == b"bar\n"
    assert path.read_bytes() == b"foo\n"


def test_silenced_findings_are_not_fixed(here, write, toys):
    path = write("a.py", "foo  # jitlint: ignore[no-foo]\nfoo\n")
    fix(toys)
    assert path.read_text() == "foo  # jitlint: ignore[no-foo]\nbar\n"


def test_a_file_without_findings_is_not_touched(here, write, toys):
    path = write("a.py", "x = 1\n")
    before = path.stat()
    assert fix(toys).files == ()
    assert path.stat() == before


def test_files_that_do_not_parse_are_left_alone_and_the_rest_is_fixed(here, write, toys):
    broken = write("a.py", "foo(\n")
    sound = write("b.py", "foo\n")
    result = fix(toys)
    assert (broken.read_text(), sound.read_text()) == ("foo(\n", "bar\n")
    assert [each.rule for each in result.check.diagnostics] == ["syntax-error"]


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbffoo\r\n# \xc3\xa9",
        b"# coding: latin-1\n'\xe9' ; foo  \n\n\n",
        b"if x:\n\tfoo\n\x0c\nelse :\r\n\tfoo\rx\r",
    ],
)
def test_encoding_line_ends_and_layout_are_kept(here, write, toys, data):
    path = write("a.py", data)
    fix(toys)
    assert path.read_bytes() == data.replace(b"foo", b"bar")


def test_a_link_is_followed_and_kept(here, write, toys):
    target = write("lib/real.py", "foo\n")
    link = here / "link.py"
    link.symlink_to("lib/real.py")
    fix(toys, "link.py")
    assert link.is_symlink()
    assert target.read_text() == "bar\n"


class Peel(Rule):
    """One layer of `peel(peel(x))` for each round."""

    name = "peel"
    family = "toys"
    severity = Severity.WARNING
    triggers = (b"peel",)

    def visit_Call(self, node, ctx):
        if isinstance(node.func, cst.Name) and node.func.value == "peel":
            fix = Fix(
                Safety.SAFE,
                "Peel",
                {node: node.args[0].value},
                tests=(node.func,),
            )
            yield ctx.finding(node, "peel", fix=fix)


def test_overlapping_fixes_are_applied_in_rounds(here, write):
    path = write("a.py", "x = peel(peel(peel(1)))\n")
    (fixed,) = fix({"peel": Peel}).files
    assert path.read_text() == "x = 1\n"
    assert len(fixed.applied) == 3


class Swap(Rule):
    """Never content."""

    name = "swap"
    family = "toys"
    severity = Severity.WARNING
    triggers = (b"ping", b"pong")

    def visit_Name(self, node, ctx):
        if node.value in ("ping", "pong"):
            other = cst.Name("pong" if node.value == "ping" else "ping")
            yield ctx.finding(node, node.value, fix=Fix(Safety.SAFE, "swap", {node: other}))


def test_rounds_end(here, write):
    write("a.py", "ping\n")
    result = fix({"swap": Swap})
    assert len(result.check.diagnostics) == 1
    assert result.check.problems == ()


class Breaking(Rule):
    """Its fix is no Python."""

    name = "breaking"
    family = "toys"
    severity = Severity.WARNING
    triggers = (b"broken",)

    def visit_Name(self, node, ctx):
        if node.value == "broken":
            fix = Fix(Safety.SAFE, "break it", {node: cst.Name("for")})
            yield ctx.finding(node, "broken", fix=fix)


def test_a_fix_that_makes_no_python_is_a_mistake_of_jitlint_and_not_written(here, write, toys):
    path = write("a.py", "broken\n")
    other = write("b.py", "foo\n")
    result = fix({**toys, "breaking": Breaking})
    assert (path.read_text(), other.read_text()) == ("broken\n", "bar\n")
    (problem,) = result.check.problems
    assert problem.path == "a.py"
    assert problem.message.startswith(
        "internal error: jitlint.edits.EditError: `break it` made a file that does not parse"
    )
    assert list(result.withheld.values()) == ["the edit failed"]


def test_a_file_that_cannot_be_kept_byte_for_byte_is_left_alone(here, write, toys):
    path = write("a.py", b"\x0cfoo = 1\nfoo\n")
    result = fix(toys)
    assert path.read_bytes() == b"\x0cfoo = 1\nfoo\n"
    assert set(result.withheld.values()) == {"LibCST does not reproduce the code at line 1 exactly"}
    assert result.check.problems == ()


def test_a_verified_file_is_written_with_its_unsafe_fixes(here, write, toys, verdicts):
    path = write("a.py", "foo = 3.14\n")
    requests = verdicts(lambda new: (Verdict.VERIFIED, "agrees"))
    (fixed,) = fix(toys, verify=True).files
    assert path.read_text() == "import math\n\nbar = math.pi\n"
    assert fixed.report.verdict is Verdict.VERIFIED
    assert [request.old for request in requests] == [b"foo = 3.14\n"]


def test_a_refuted_file_is_never_written(here, write, toys, verdicts):
    path = write("a.py", "foo\n")
    verdicts(lambda new: (Verdict.REFUTED, "x = 1 gives 2, not 3"))
    result = fix(toys, verify=True)
    assert path.read_text() == "foo\n"
    assert result.files == ()
    assert list(result.withheld.values()) == ["verification refuted it: x = 1 gives 2, not 3"]


def test_only_the_refuted_fix_is_dropped(here, write, toys, verdicts):
    path = write("a.py", "foo = 3.14\n")
    verdicts(
        lambda new: (Verdict.REFUTED, "pi") if "math.pi" in new else (Verdict.VERIFIED, "agrees")
    )
    result = fix(toys, verify=True)
    assert path.read_text() == "bar = 3.14\n"
    assert list(result.withheld.values()) == ["verification refuted it: pi"]
    assert result.files[0].report.verdict is Verdict.VERIFIED


def test_fixes_that_are_refuted_only_together_are_all_dropped(here, write, toys, verdicts):
    path = write("a.py", "foo = 3.14\n")

    def judge(new):
        together = "math.pi" in new and "bar" in new
        return (Verdict.REFUTED, "both") if together else (Verdict.VERIFIED, "agrees")

    verdicts(judge)
    result = fix(toys, verify=True)
    assert path.read_text() == "foo = 3.14\n"
    assert set(result.withheld.values()) == {
        "verification refuted the fixes of this file together: both"
    }


def test_of_an_unverified_file_only_safe_fixes_are_written(here, write, toys, verdicts):
    path = write("a.py", "foo = 3.14\n")
    verdicts(lambda new: (Verdict.UNVERIFIED, "no inputs"))
    result = fix(toys, verify=True)
    assert path.read_text() == "bar = 3.14\n"
    assert list(result.withheld.values()) == ["it is unsafe and could not be verified: no inputs"]


def test_unsafe_and_verify_together_write_what_is_not_refuted(here, write, toys, verdicts):
    path = write("a.py", "foo = 3.14\n")
    verdicts(lambda new: (Verdict.UNVERIFIED, "no inputs"))
    fix(toys, verify=True, unsafe=True)
    assert path.read_text() == "import math\n\nbar = math.pi\n"


def test_rewritten_tests_are_places_in_the_old_file(here, write, verdicts):
    write("a.py", "import os\nx = peel(1)\ny = peel(\n    peel(2)\n)\n")
    requests = verdicts(lambda new: (Verdict.VERIFIED, "agrees"))
    fix({"peel": Peel}, verify=True)
    assert requests[0].tests == ((2, 5), (3, 5))


def test_a_file_that_changes_meanwhile_is_left_alone(here, write, toys, verdicts):
    path = write("a.py", "foo\n")

    def judge(new):
        path.write_text("foo  # edited\n")
        return Verdict.VERIFIED, "agrees"

    verdicts(judge)
    result = fix(toys, verify=True)
    assert path.read_text() == "foo  # edited\n"
    assert result.check.problems == (
        Problem("a.py", "changed on disk while it was being fixed; it was left alone"),
    )


def test_a_file_that_cannot_be_written_is_a_problem_and_the_rest_is_fixed(
    here, write, toys, monkeypatch
):
    locked = write("a.py", "foo\n")
    other = write("b.py", "foo\n")
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: Path(path) != locked and access(path, mode)
    )
    result = fix(toys)
    assert (locked.read_text(), other.read_text()) == ("foo\n", "bar\n")
    assert result.check.problems == (
        Problem("a.py", "cannot be written: the file is not writable"),
    )
