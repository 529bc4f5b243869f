import os
import subprocess
from pathlib import Path

import pytest

from jitlint.config import Settings
from jitlint.discovery import Problem, discover


def names(paths, root, **options):
    found = discover([root / path for path in paths], Settings(root=root, **options))
    assert found.problems == ()
    return [path.relative_to(root).as_posix() for path in found.files]


def test_a_folder_is_walked_in_a_stable_order(here, write):
    for name in ("b.py", "a/z.py", "a/b/c.py", "a.py", "a/readme.md", "c.pyc", "d.pyi"):
        write(name)
    assert names(["."], here) == ["a/b/c.py", "a/z.py", "a.py", "b.py"]


def test_each_file_comes_once(here, write):
    write("a/b.py")
    assert names([".", "a", "a/b.py", "a/../a/b.py"], here) == ["a/b.py"]


def test_a_folder_called_like_a_file_is_walked(here, write):
    write("x.py/y.py")
    assert names(["."], here) == ["x.py/y.py"]


def test_default_excludes(here, write):
    for folder in (".git", ".venv", "build", "node_modules", "__pycache__", "src/dist", "ok"):
        write(f"{folder}/a.py")
    write(".#lock.py")
    assert names(["."], here) == ["ok/a.py"]


def test_a_folder_named_by_the_user_is_checked_although_it_is_excluded(here, write):
    write(".venv/lib/site-packages/timm/a.py")
    write(".venv/lib/site-packages/timm/build/b.py")
    write(".venv/lib/site-packages/timm/old/c.py")
    options = {"extend_exclude": ("old/",)}
    assert names([".venv/lib/site-packages/timm"], here, **options) == [
        ".venv/lib/site-packages/timm/a.py"
    ]
    assert names([".venv/lib/site-packages/timm"], here, force_exclude=True) == []


def test_a_file_named_by_the_user_is_checked_unless_force_exclude(here, write):
    write("build/a.py")
    write(".gitignore", "ignored.py\n")
    write("ignored.py")
    write("script")
    paths = ["build/a.py", "ignored.py", "script"]
    assert names(paths, here) == ["build/a.py", "ignored.py", "script"]
    assert names(paths, here, force_exclude=True) == ["ignored.py", "script"]


def test_exclude_patterns_are_relative_to_the_root(here, write):
    write("a/gen/x.py")
    write("gen/x.py")
    write("a/test_x.py")
    assert names(["a"], here, exclude=("/gen/", "test_*.py")) == ["a/gen/x.py"]


GITIGNORE_CASES = {
    ".gitignore": "*_gen.py\n!keep_gen.py\n/top/\n# comment\n\nsub/*/deep.py\n",
    "a_gen.py": "",
    "keep_gen.py": "",
    "top/a.py": "",
    "sub/top/a.py": "",
    "sub/x/deep.py": "",
    "sub/deep.py": "",
    "nested/.gitignore": "local.py\n!here_gen.py\n",
    "nested/local.py": "",
    "nested/here_gen.py": "",
    "nested/other_gen.py": "",
    "local.py": "",
}


def test_gitignore_files_mean_what_git_says(here, write):
    for name, content in GITIGNORE_CASES.items():
        write(name, content)
    subprocess.run(["git", "init", "-q"], check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-o", "--exclude-standard", "*.py"],
        check=True,
        capture_output=True,
        text=True,
    )
    expected = ["keep_gen.py", "local.py", "nested/here_gen.py", "sub/deep.py", "sub/top/a.py"]
    assert sorted(listed.stdout.split()) == expected
    assert sorted(names(["."], here)) == expected
    assert "a_gen.py" in names(["."], here, respect_gitignore=False)


def test_gitignore_of_the_repository_holds_in_a_subfolder(here, write):
    (here / ".git").mkdir()
    write(".gitignore", "/pkg/skip.py\n")
    write("pkg/skip.py")
    write("pkg/take.py")
    assert names(["pkg"], here) == ["pkg/take.py"]


def test_an_ignored_folder_that_is_named_is_walked(here, write):
    (here / ".git").mkdir()
    write(".gitignore", "/scratch/\n")
    write("scratch/wheel/a.py")
    assert names(["scratch/wheel"], here) == ["scratch/wheel/a.py"]


def test_a_gitignore_line_that_is_no_pattern_is_skipped(here, write):
    write(".gitignore", b"\xff\xfe\n!\nskip.py\n")
    write("skip.py")
    write("take.py")
    assert names(["."], here) == ["take.py"]


def test_links_are_followed_once(here, write):
    write("real/a.py")
    (here / "again").symlink_to(here / "real")
    (here / "real/loop").symlink_to(here)
    (here / "alias.py").symlink_to(here / "real/a.py")
    assert names(["."], here) == ["real/a.py"]


def test_links_to_the_outside_are_followed(here, write, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "b.py").write_text("")
    (here / "link").symlink_to(outside)
    assert names(["."], here) == ["link/b.py"]


def test_a_dangling_link_is_a_problem_and_the_rest_is_found(here, write):
    write("a.py")
    (here / "gone.py").symlink_to("nowhere.py")
    (here / "self.py").symlink_to("self.py")
    found = discover([Path()], Settings(root=here))
    assert found.files == (here / "a.py",)
    assert found.problems == (
        Problem(
            "gone.py", "a link to `nowhere.py`, which cannot be reached; mend or remove the link"
        ),
        Problem("self.py", "a link to `self.py`, which cannot be reached; mend or remove the link"),
    )


def test_a_missing_path_is_a_problem(here, write):
    write("a.py")
    found = discover([Path("nope"), Path("a.py")], Settings(root=here))
    assert found.files == (here / "a.py",)
    assert found.problems == (Problem("nope", "no such file or folder"),)


def test_what_is_no_regular_file_is_not_read(here):
    os.mkfifo(here / "pipe.py")
    found = discover([Path()], Settings(root=here))
    assert found.files == ()
    assert found.problems == (Problem("pipe.py", "not a regular file; it was not read"),)


def test_an_unreadable_folder_is_a_problem(here, write, monkeypatch):
    write("locked/a.py")
    write("open/b.py")
    scan = os.scandir

    def refuse(path):
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found = discover([Path()], Settings(root=here))
    assert found.files == (here / "open/b.py",)
    assert found.problems == (
        Problem("locked", "permission denied; make it readable or exclude it"),
    )


@pytest.mark.parametrize("name", ["a b.py", "ü.py", "-x.py", "[a].py"])
def test_odd_names(here, write, name):
    write(name)
    assert names(["."], here) == [name]
