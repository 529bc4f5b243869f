"""The hooks, run by the real pre-commit, which installs this repository."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
IGNORED = shutil.ignore_patterns(
    ".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", "benchmarks"
)

BROKEN = "def forward(self, x:\n"


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def hooks(tmp_path_factory):
    """This working tree as a repository of its own: `try-repo` clones what it is given."""
    folder = tmp_path_factory.mktemp("hooks") / "jitlint"
    shutil.copytree(ROOT, folder, ignore=IGNORED)
    git(folder.parent, "init", "-q", str(folder))
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "hooks")
    return folder


@pytest.fixture(scope="module")
def try_hooks(hooks, tmp_path_factory):
    home = tmp_path_factory.mktemp("pre-commit-home")

    def run(repository: Path) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PRE_COMMIT_HOME": str(home)}
        environment.pop("PYTHONPATH", None)
        command = [sys.executable, "-m", "pre_commit", "try-repo", str(hooks), "--all-files"]
        return subprocess.run(
            command,
            cwd=repository,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def repository(tmp_path):
    """A scratch repository with a file in it."""

    def make(**files: str) -> Path:
        git(tmp_path, "init", "-q")
        for name, content in files.items():
            (tmp_path / f"{name}.py").write_text(content)
        git(tmp_path, "add", "-A")
        return tmp_path

    return make


def test_the_hooks_fail_on_a_finding_and_name_it(repository, try_hooks):
    folder = repository(broken=BROKEN, sound="x = 1\n", left_out=BROKEN)
    (folder / "jitlint.toml").write_text('extend-exclude = ["left_out.py"]\n')
    done = try_hooks(folder)
    assert done.stdout.count("broken.py:1:12: error syntax-error") == 2, done.stdout + done.stderr
    assert done.stdout.count("Failed") == 2
    assert "sound.py" not in done.stdout
    assert "left_out.py" not in done.stdout
    assert done.returncode == 1


def test_the_hooks_pass_on_sound_files(repository, try_hooks):
    done = try_hooks(repository(sound="x = 1\n"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("Passed") == 2
