import os
from pathlib import Path

import pytest

from jitlint import engine, stages
from jitlint.config import Settings
from jitlint.discovery import Problem
from jitlint.finding import Diagnostic, Severity, Span
from jitlint.rule import Rule
from jitlint.source import Source


def check(toys, *paths, **options):
    options = {"cache": False, **options}
    return engine.check([Path(path) for path in paths or (".",)], Settings(**options), toys)


def found(result):
    return [(each.path, each.rule, each.span.line, each.span.column) for each in result.diagnostics]


def test_findings_of_all_rules_are_located_and_sorted(here, write, toys):
    write("b.py", "y = 3.14\nfoo = foo\n")
    write("a.py", "if x:\n\tprint(foo)\n")
    result = check(toys)
    assert found(result) == [
        ("a.py", "no-print", 2, 2),
        ("a.py", "no-foo", 2, 8),
        ("b.py", "risky-pi", 1, 5),
        ("b.py", "no-foo", 2, 1),
        ("b.py", "no-foo", 2, 7),
    ]
    assert result.files == (here / "a.py", here / "b.py")
    assert (result.analysed, result.problems) == (2, ())


def test_only_files_with_a_trigger_are_analysed(here, write, toys):
    write("a.py", "x = 1\n")
    write("b.py", "foo\n")
    result = check(toys)
    assert (len(result.files), result.analysed) == (2, 1)


def test_selection_severity_and_per_file_ignores(here, write, toys):
    write("a.py", "foo\nprint(3.14)\n")
    write("tests/b.py", "foo\nprint(3.14)\n")
    result = check(
        toys,
        ignore=("numbers",),
        severity={"no-foo": Severity.ERROR},
        per_file_ignores={"tests/": ("no-foo",)},
    )
    assert [(each.path, each.rule, each.severity) for each in result.diagnostics] == [
        ("a.py", "no-foo", Severity.ERROR),
        ("a.py", "no-print", Severity.NOTE),
        ("tests/b.py", "no-print", Severity.NOTE),
    ]
    assert result.failing(Severity.ERROR)


def test_a_result_fails_from_the_given_severity_on(here, write, toys):
    write("a.py", "print()\n")
    result = check(toys)
    assert result.failing(Severity.NOTE)
    assert not result.failing(Severity.WARNING)


def test_comments_silence_and_idle_ones_are_findings(here, write, toys):
    write("a.py", "foo  # jitlint: ignore[no-foo]\nx  # jitlint: ignore[no-foo]\n")
    assert found(check(toys)) == [("a.py", "unused-ignore", 2, 4)]
    assert found(check(toys, ignore=("unused-ignore",))) == []
    assert found(check(toys, per_file_ignores={"a.py": ("no-foo",)})) == []


NESTED = 500
HOSTILE = {
    "empty": (b"", None),
    "only a byte order mark": (b"\xef\xbb\xbf", None),
    "only a comment without an end": (b"# x", None),
    "byte order mark": (b"\xef\xbb\xbffoo\n", (1, 1, "no-foo", "`foo` is used")),
    "crlf": (b"x\r\nfoo\r\n", (2, 1, "no-foo", "`foo` is used")),
    "lone cr": (b"x\rfoo\r", (2, 1, "no-foo", "`foo` is used")),
    "tabs": (b"if x:\n\tif y:\n\t\tfoo\n", (3, 3, "no-foo", "`foo` is used")),
    "form feed": (b"\x0c\nfoo\n", (2, 1, "no-foo", "`foo` is used")),
    "coding cookie": (
        b"# coding: latin-1\n'\xe9'; foo\n",
        (2, 6, "no-foo", "`foo` is used"),
    ),
    "characters outside of the basic plane": (
        "'\U0001f600'; foo\n".encode(),
        (1, 6, "no-foo", "`foo` is used"),
    ),
    "not utf-8": (
        b"x\n\n'a\xff'\n",
        (
            3,
            3,
            "syntax-error",
            "cannot decode the file as utf-8: byte 0xff; save it as UTF-8 or declare its "
            "encoding in a coding comment",
        ),
    ),
    "not utf-8 in the first line": (
        b"\xe9\n",
        (
            1,
            1,
            "syntax-error",
            "cannot decode the file as utf-8: byte 0xe9; save it as UTF-8 or declare its "
            "encoding in a coding comment",
        ),
    ),
    "utf-16": (
        "x = 1\n".encode("utf-16"),
        (
            1,
            1,
            "syntax-error",
            "cannot decode the file as utf-8: byte 0xff; save it as UTF-8 or declare its "
            "encoding in a coding comment",
        ),
    ),
    "unknown encoding": (
        b"# coding: klingon\n",
        (1, 1, "syntax-error", "cannot decode the file: unknown encoding: klingon"),
    ),
    "null byte": (b"x\n\0foo\n", (2, 1, "syntax-error", "the file contains a null byte")),
    "unbalanced": (b"x = foo(\n", (1, 8, "syntax-error", "'(' was never closed (Python *)")),
    "python 2": (b"print foo\n", (1, 1, "syntax-error", "Missing parentheses in call to *")),
    "brackets nested 500 deep": (
        b"x = " + b"[" * NESTED + b"foo" + b"]" * NESTED + b"\n",
        (1, 205, "syntax-error", "too many nested parentheses (Python *)"),
    ),
    "blocks nested 500 deep": (
        b"".join(b" " * level + b"if x:\n" for level in range(NESTED)) + b" " * NESTED + b"foo\n",
        (101, 1, "syntax-error", "too many levels of indentation (Python *)"),
    ),
    "operators nested 500 deep": (
        b"foo = " + b"x + " * NESTED + b"1\n",
        (1, 1, "no-foo", "`foo` is used"),
    ),
    "calls nested 500 deep": (b"foo" + b".x()" * NESTED + b"\n", (1, 1, "no-foo", "`foo` is *")),
    "elifs nested 500 deep": (
        b"if x:\n  pass\n" + b"elif x:\n  pass\n" * NESTED + b"else:\n  foo\n",
        (2 * NESTED + 4, 3, "no-foo", "`foo` is used"),
    ),
    "operators nested 50000 deep": (
        b"foo = " + b"x + " * 50_000 + b"1\n",
        (1, 1, "syntax-error", "the code is nested *"),
    ),
    "unary operators nested 5000 deep": (
        b"foo = " + b"not " * 5_000 + b"1\n",
        (1, 1, "syntax-error", "the code is nested *"),
    ),
    "two megabytes": (
        b"x = 1  # %s\n" % (b"comment " * 50) * 5_000 + b"foo\n",
        (5_001, 1, "no-foo", "*"),
    ),
    "one line of a megabyte": (
        b"x = '" + b"a" * 1_000_000 + b"'; foo\n",
        (1, 1_000_009, "no-foo", "*"),
    ),
}


@pytest.mark.parametrize(("data", "expected"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_files(here, write, toys, data, expected):
    import fnmatch

    write("hostile.py", data)
    write("sound.py", "foo\n")
    result = check(toys)
    assert result.problems == ()
    *first, last = result.diagnostics
    assert (last.path, last.rule) == ("sound.py", "no-foo")
    if expected is None:
        assert first == []
        return
    line, column, rule, message = expected
    (only,) = first
    assert (only.span.line, only.span.column, only.rule) == (line, column, rule)
    assert fnmatch.fnmatchcase(only.message, message.replace("[", "[[]")), only.message


def test_syntax_errors_are_found_where_no_rule_looks(here, write, toys):
    write("a.py", "def f(:\n")
    assert found(check(toys)) == [("a.py", "syntax-error", 1, 7)]


def test_an_unreadable_file_is_a_problem_and_the_rest_is_checked(here, write, toys, monkeypatch):
    write("a.py", "foo\n")
    write("locked.py", "foo\n")
    read_bytes = Path.read_bytes

    def refuse(path):
        if path.name == "locked.py":
            raise PermissionError(13, "Permission denied")
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    result = check(toys)
    assert found(result) == [("a.py", "no-foo", 1, 1)]
    assert result.problems == (
        Problem("locked.py", "permission denied; make it readable or exclude it"),
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable for root")
def test_a_file_without_permissions(here, write, toys):
    write("locked.py", "foo\n").chmod(0)
    (problem,) = check(toys).problems
    assert problem.message == "permission denied; make it readable or exclude it"


class Crashing(Rule):
    """Crashes on some files."""

    name = "crashing"
    family = "toys"
    severity = Severity.WARNING
    triggers = (b"boom",)

    def visit_Name(self, node, ctx):
        if node.value == "boom":
            raise KeyError("boom")
        return ()


def test_a_crash_of_a_rule_is_an_internal_error_for_one_file(here, write, toys):
    write("a.py", "boom\n")
    write("b.py", "foo\n")
    result = check({**toys, "crashing": Crashing})
    assert found(result) == [("b.py", "no-foo", 1, 1)]
    (problem,) = result.problems
    assert problem.path == "a.py"
    assert problem.message == (
        "internal error: KeyError: 'boom'; this is a mistake of jitlint, please report it"
    )
    assert "visit_Name" in problem.trace


def test_a_crash_of_the_analysis_is_a_problem_of_the_run(here, write, toys, monkeypatch):
    def crash(*args):
        raise ZeroDivisionError("division by zero")
        yield

    monkeypatch.setattr(stages, "analyse", crash)
    write("a.py", "x(\n")
    result = check(toys)
    assert found(result) == [("a.py", "syntax-error", 1, 2)]
    (problem,) = result.problems
    assert problem.message.startswith("internal error: ZeroDivisionError: division by zero")


def test_stdin_stands_in_the_place_of_a_file(here, toys):
    source = Source(here / "m.py", "m.py", b"foo\n", explicit=True)
    result = engine.check([], Settings(), toys, stdin=source)
    assert result.diagnostics[0] == Diagnostic(
        path="m.py",
        span=Span(1, 1, 1, 4),
        rule="no-foo",
        family="toys",
        severity=Severity.WARNING,
        message="`foo` is used",
        codes=("T1",),
        fix_safety=result.diagnostics[0].fix_safety,
        fix_title="Use `bar`",
    )
    assert not (here / ".jitlint_cache").exists()


def test_two_runs_say_the_same(here, write, toys):
    for index in range(20):
        write(f"m{index}.py", "foo\nprint(3.14)\nx(foo, foo)\n")
    assert check(toys) == check(toys)
