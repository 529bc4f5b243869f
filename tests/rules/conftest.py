"""Rewrites of one source, as `jitlint fix --unsafe` makes them and without a compiler."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from jitlint import fixing
from jitlint.config import Settings
from jitlint.finding import Diagnostic
from jitlint.fixing import Plan
from jitlint.rule import load_rules
from jitlint.source import read

HEADER = "import torch\nfrom torch import nn\n\n\n"


def dedented(source: str) -> str:
    return HEADER + textwrap.dedent(source).lstrip("\n")


@pytest.fixture
def rules() -> tuple[str, ...]:
    """The rules whose fixes are made: a test module may name others."""
    return ("trace-branch",)


@pytest.fixture
def plan(tmp_path: Path, rules: tuple[str, ...]) -> Callable[[str], Plan]:
    def make(source: str) -> Plan:
        path = tmp_path / "module.py"
        path.write_text(dedented(source))
        settings = Settings(cache=False, select=rules, unsafe=True, verify=False)
        found = fixing.plan([read(path)], settings, load_rules())
        assert not found.problems
        return found

    return make


@pytest.fixture
def rewrite(plan: Callable[[str], Plan]) -> Callable[[str], str]:
    """The source after all fixes, without the header that every source is given."""

    def after(source: str) -> str:
        files = plan(source).files
        new = files[0].new.decode() if files else dedented(source)
        return new.removeprefix(HEADER)

    return after


@pytest.fixture
def left(plan: Callable[[str], Plan]) -> Callable[[str], list[Diagnostic]]:
    """What is reported still when all fixes are made."""

    def after(source: str) -> list[Diagnostic]:
        return [each for file in plan(source).after.files for each in file.diagnostics]

    return after


@pytest.fixture
def reason(left: Callable[[str], list[Diagnostic]]) -> Callable[[str], str]:
    """Why the one finding of the source is not fixed."""

    def why(source: str) -> str:
        (only,) = left(source)
        assert only.no_fix_reason is not None
        return only.no_fix_reason

    return why
