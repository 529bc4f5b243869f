"""Code that a setting of the process switches on: a note, as the setting is not known here."""

import textwrap
from pathlib import Path

import pytest

from jitlint import engine
from jitlint.config import Settings
from jitlint.finding import Severity
from jitlint.rule import load_rules

HEAD = """
import os, sys
import torch
from flags import SHARED, is_on, NEW_TORCH
DEBUG = os.environ.get("DEBUG") == "1"
ALIAS = bool(DEBUG)
FIXED = True
SEEN = set()
warned = False
HAS_CUDA = torch.cuda.is_available()

@torch.compile
def step(x, verbose=None):
"""
FLAGS = """
import os
import torch
SHARED = int(os.environ.get("LEVEL", "0"))
NEW_TORCH = torch.__version__ >= "2.1"
def is_on():
    return torch.is_grad_enabled()
"""


def severity(folder: Path, body: str) -> Severity | None:
    """That of the one finding in the function."""
    (folder / "flags.py").write_text(FLAGS)
    path = folder / "step.py"
    path.write_text(HEAD + textwrap.indent(textwrap.dedent(body), "    ") + "    return x + 1\n")
    found = engine.check([path], Settings(cache=False), load_rules())
    assert not found.problems
    (finding,) = [each for each in found.diagnostics if each.path.endswith("step.py")]
    return finding.severity


@pytest.mark.parametrize(
    "test",
    ["DEBUG", "not ALIAS", "SHARED > 1", 'os.getenv("D")', 'sys.platform == "win32" and DEBUG'],
)
def test_what_a_setting_switches_on_is_a_note(test: str, tmp_path: Path):
    assert severity(tmp_path, f"if {test}:\n    print('on')\n") is Severity.NOTE


def test_so_is_what_is_called_there(tmp_path: Path):
    body = """
    def report(y):
        print(y.shape)
    if DEBUG:
        report(x)
    """
    assert severity(tmp_path, body) is Severity.NOTE


@pytest.mark.parametrize("test", ["FIXED", "is_on()", "NEW_TORCH", "HAS_CUDA", "x.shape[0] > 1"])
def test_other_tests_decide_nothing_for_the_process(test: str, tmp_path: Path):
    assert severity(tmp_path, f"if {test}:\n    print('on')\n") is Severity.WARNING


def test_a_flag_that_the_function_sets_is_no_setting(tmp_path: Path):
    body = """
    global warned
    if not warned:
        print("once")
        warned = True
    """
    assert severity(tmp_path, body) is Severity.WARNING
