import os
import signal
import stat
import subprocess
import sys

import pytest

from jitlint import writing
from jitlint.writing import ChangedError

OLD = b"old\n" * 1000
NEW = b"new content\n" * 5000


def names(folder):
    return [path.name for path in folder.iterdir()]


def test_content_is_replaced_and_the_mode_kept(write, tmp_path):
    path = write("a.py", OLD)
    path.chmod(0o754)
    writing.replace_content(path, OLD, NEW)
    assert path.read_bytes() == NEW
    assert stat.S_IMODE(path.stat().st_mode) == 0o754
    assert names(tmp_path) == ["a.py"]


def test_a_link_stays_a_link(write, tmp_path):
    target = write("real/a.py", OLD)
    link = tmp_path / "link.py"
    link.symlink_to("real/a.py")
    writing.replace_content(link, OLD, NEW)
    assert link.is_symlink()
    assert target.read_bytes() == NEW


def test_a_file_that_somebody_else_changed_is_left_alone(write, tmp_path):
    path = write("a.py", b"theirs")
    with pytest.raises(ChangedError):
        writing.replace_content(path, OLD, NEW)
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["a.py"]


def test_a_new_file_has_the_usual_mode(tmp_path):
    before = os.umask(0o027)
    try:
        writing.write(tmp_path / "out.json", b"{}")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "out.json").stat().st_mode) == 0o640


def test_a_failure_leaves_the_old_file_and_no_other(write, tmp_path, monkeypatch):
    path = write("a.py", OLD)

    def fail(temporary, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "_commit", fail)
    with pytest.raises(OSError, match="No space left"):
        writing.replace_content(path, OLD, NEW)
    assert path.read_bytes() == OLD
    assert names(tmp_path) == ["a.py"]


KILLED = """
import os, signal, sys
from pathlib import Path
from jitlint import writing

def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)

point, path, old, new = sys.argv[1], Path(sys.argv[2]), b"old\\n" * 1000, b"new content\\n" * 5000
if point == "half filled":
    writing._fill = lambda handle, data: (os.write(handle, data[: len(data) // 2]), die())
elif point == "before the commit":
    writing._commit = die
elif point == "after the commit":
    commit = writing._commit
    writing._commit = lambda *args: (commit(*args), die())
writing.replace_content(path, old, new)
"""


@pytest.mark.parametrize(
    ("point", "content"),
    [("half filled", OLD), ("before the commit", OLD), ("after the commit", NEW)],
)
def test_a_kill_leaves_the_old_file_or_the_new_one(write, point, content):
    path = write("a.py", OLD)
    done = subprocess.run([sys.executable, "-c", KILLED, point, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == content
