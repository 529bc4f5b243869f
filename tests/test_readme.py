"""The commands of README.md are those that CI runs."""

import re
from pathlib import Path

import pytest

from jitlint import config
from jitlint.selection import Names

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")


def block(name, language):
    match = re.search(
        rf"<!-- {name}: begin -->\n```{language}\n(.*?)\n```\n<!-- {name}: end -->",
        README,
        re.DOTALL,
    )
    assert match is not None
    return match.group(1)


def test_ci_runs_the_test_command():
    assert block("tests", "sh") in (ROOT / ".ci/run").read_text("utf-8").splitlines()


def test_the_main_job_is_about_files_that_ship():
    paths = re.findall(r"fixtures/\S+", block("main job", "sh"))
    assert paths
    assert all((ROOT / path).is_file() for path in paths)


@pytest.fixture
def example(tmp_path):
    text = re.search(r"```toml\n(\[tool\.jitlint\].*?)```", README, re.DOTALL)
    assert text is not None
    (tmp_path / "shared.toml").write_text("")
    path = tmp_path / "project/pyproject.toml"
    path.parent.mkdir()
    path.write_text(text.group(1))
    return path


def test_the_configuration_of_the_readme_is_complete_and_valid(example):
    names = Names({"trace-side-effect": "tracing", "trace-branch": "tracing"})
    settings = config.load(example.parent, names)
    keys = re.findall(r"^([a-z-]+) = ", example.read_text(), re.MULTILINE)
    assert sorted(keys) == sorted([*settings.describe(), "extend"])
