"""What is installed is what is in the repository."""

from pathlib import Path

import pytest

from jitlint import config

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("folder", "package"), [("jitlint", "jitlint"), ("rules", "jitlint_rules")]
)
def test_every_package_is_listed(folder: str, package: str) -> None:
    listed = config.tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = {
        ".".join([package, *path.parent.relative_to(ROOT / folder).parts])
        for path in (ROOT / folder).rglob("__init__.py")
    }
    assert found == {name for name in listed["packages"] if name.partition(".")[0] == package}
