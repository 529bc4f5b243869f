from pathlib import Path

import pytest

from jitlint import source as sources
from jitlint.source import Source
from jitlint.syntax import SyntaxChecker

GOOD = Source(Path("good.py"), "good.py", b"x = 1\n")
BAD = Source(Path("bad.py"), "bad.py", b"x = (\n")


@pytest.fixture
def parses(monkeypatch):
    """How often a text was parsed."""
    count = []
    parse = sources.parse_ast

    def counting(text):
        count.append(text)
        return parse(text)

    monkeypatch.setattr(sources, "parse_ast", counting)
    return count


def test_what_parses_is_parsed_once(tmp_path, parses):
    checker = SyntaxChecker(tmp_path)
    assert list(checker.errors([GOOD, BAD])) == [BAD.path]
    assert list(checker.errors([GOOD, BAD])) == [BAD.path]
    checker.save()
    assert list(SyntaxChecker(tmp_path).errors([GOOD, BAD])) == [BAD.path]
    assert parses == ["x = 1\n", "x = (\n", "x = (\n", "x = (\n"]


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch, parses):
    monkeypatch.chdir(tmp_path)
    checker = SyntaxChecker()
    checker.errors([GOOD])
    checker.save()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("junk", [b"x", b"\0" * 17])
def test_a_broken_memory_is_none(tmp_path, parses, junk):
    checker = SyntaxChecker(tmp_path)
    checker.errors([GOOD])
    checker.save()
    (path,) = tmp_path.iterdir()
    path.write_bytes(junk)
    SyntaxChecker(tmp_path).errors([GOOD])
    assert len(parses) == 2


def test_a_folder_that_is_missing_is_no_error(tmp_path):
    checker = SyntaxChecker(tmp_path / "nope")
    checker.errors([GOOD])
    checker.save()


def test_a_large_project_is_read_by_several_processes():
    filler = b"x = 1\n" * (1 << 19)
    files = [
        Source(Path(f"{number}.py"), f"{number}.py", filler + text)
        for number, text in enumerate([b"y = 2\n", b"def f(:\n", b"z = 3\n"])
    ]
    alone, together = SyntaxChecker(jobs=1).errors(files), SyntaxChecker(jobs=2).errors(files)
    assert list(together) == [Path("1.py")]
    assert (together[Path("1.py")].line, together[Path("1.py")].message) == (
        alone[Path("1.py")].line,
        alone[Path("1.py")].message,
    )
    assert together[Path("1.py")].line == (1 << 19) + 1
