import json
from pathlib import Path

import pytest

from jitlint import engine, run_cache, stages
from jitlint.config import Settings
from jitlint.finding import Diagnostic, Safety, Severity, Span
from jitlint.region import Region, RegionKind
from jitlint.run_cache import RunCache
from jitlint.source import Source

FULL = Diagnostic(
    path="a.py",
    span=Span(1, 2, 3, 4),
    rule="r",
    family="f",
    severity=Severity.NOTE,
    message="ü",
    codes=("GB0170",),
    region=Region(RegionKind.NUMBA_CUDA, "a.py:1", ("f", "g"), fullgraph=True),
    fix_safety=Safety.UNSAFE,
    fix_title="t",
)


@pytest.fixture
def runs(here, monkeypatch):
    """How often the analysis ran."""
    count = []
    run_pass = stages.run_pass

    def counting(*args, **options):
        count.append(1)
        return run_pass(*args, **options)

    monkeypatch.setattr(stages, "run_pass", counting)
    return count


def test_the_same_run_is_not_done_twice(here, write, toys, runs):
    write("a.py", "foo\nprint()\nx = (\n")
    write("b.py", "foo  # jitlint: ignore\n")
    first = engine.check([Path()], Settings(), toys)
    second = engine.check([Path()], Settings(format="json", fail_on=Severity.NOTE), toys)
    assert second == first
    assert len(first.diagnostics) == 1
    assert len(runs) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "a.py").write_text("foo; foo\n"),
        lambda root: (root / "b.py").write_text(""),
        lambda root: (root / "a.py").rename(root / "c.py"),
    ],
    ids=["content", "new file", "name"],
)
def test_a_changed_file_is_checked_again(here, write, toys, runs, change):
    write("a.py", "foo\n")
    engine.check([Path()], Settings(), toys)
    change(here)
    fresh = engine.check([Path()], Settings(cache=False), toys)
    assert engine.check([Path()], Settings(), toys) == fresh
    assert len(runs) == 3


@pytest.mark.parametrize(
    "options",
    [{"ignore": ("no-foo",)}, {"severity": {"no-foo": Severity.NOTE}}, {"entry_points": ("a",)}],
)
def test_other_settings_are_another_run(here, write, toys, runs, options):
    write("a.py", "foo\n")
    engine.check([Path()], Settings(), toys)
    engine.check([Path()], Settings(**options), toys)
    assert len(runs) == 2


def test_a_run_with_a_problem_of_its_own_is_not_kept(here, write, toys, runs, monkeypatch):
    write("a.py", "foo\n")

    def crash(*args):
        raise ZeroDivisionError
        yield

    with monkeypatch.context() as patch:
        patch.setattr(stages, "analyse", crash)
        engine.check([Path()], Settings(), toys)
    assert len(engine.check([Path()], Settings(), toys).diagnostics) == 1


@pytest.mark.parametrize(
    "junk", [b"", b"{", b"[]", b'{"read": 3}', b"\xff", b'{"read": {}, "diagnostics": [{}]}']
)
def test_a_broken_entry_is_no_entry(here, write, toys, runs, junk):
    write("a.py", "foo\n")
    first = engine.check([Path()], Settings(), toys)
    (entry,) = (here / ".jitlint_cache").glob("*.json")
    entry.write_bytes(junk)
    assert engine.check([Path()], Settings(), toys) == first
    assert len(runs) == 2


def test_no_cache_writes_nothing(here, write, toys):
    write("a.py", "foo\n")
    engine.check([Path()], Settings(cache=False), toys)
    assert not (here / ".jitlint_cache").exists()


def test_the_folder_hides_itself_from_git_and_from_backups(here, write, toys):
    write("a.py", "foo\n")
    engine.check([Path()], Settings(), toys)
    folder = here / ".jitlint_cache"
    assert (folder / ".gitignore").read_text() == "*\n"
    tag = (folder / "CACHEDIR.TAG").read_text()
    assert tag.startswith("Signature: 8a477f597d28d172789f06886806bc55\n")


def test_a_folder_that_cannot_be_made_is_no_error(here, write, toys):
    write("a.py", "foo\n")
    write(".jitlint_cache", "a file")
    assert len(engine.check([Path()], Settings(), toys).diagnostics) == 1


def test_a_result_comes_back_as_it_was(here, write):
    other = write("other.py", "x")
    cache = RunCache(Settings(), {}, [Source(here / "a.py", "a.py", b"")])
    cache.store([FULL], 3, [other, here / "absent.py"])
    assert cache.load() == ((FULL,), 3, frozenset({other, here / "absent.py"}))


@pytest.mark.parametrize("name", ["other.py", "absent.py"])
def test_a_result_falls_with_the_files_that_it_read(here, write, name):
    other = write("other.py", "x")
    cache = RunCache(Settings(), {}, [Source(here / "a.py", "a.py", b"")])
    cache.store([FULL], 3, [other, here / "absent.py"])
    write(name, "changed")
    assert cache.load() is None


def test_old_entries_are_removed(here):
    for index in range(run_cache.MAX_ENTRIES + 5):
        source = Source(here / "a.py", "a.py", str(index).encode())
        RunCache(Settings(), {}, [source]).store([], 0, [])
    entries = list((here / ".jitlint_cache").glob("*.json"))
    assert len(entries) == run_cache.MAX_ENTRIES
    assert all(json.loads(path.read_text())["diagnostics"] == [] for path in entries)
