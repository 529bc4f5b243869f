"""A file is verified where only the framework that it uses is installed."""

import importlib.util
import textwrap
from pathlib import Path

import pytest

from jitlint.finding import Verdict
from jitlint.verify import Options, Report, Request, verify

pytestmark = pytest.mark.compiles

BLOCKER = """
import sys


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
        return None


sys.meta_path.insert(0, Blocked())
"""
TENSORFLOW = """
import tensorflow as tf

def make_inputs(seed):
    return (tf.random.normal([seed + 1, 4]),)

@tf.function
def f(x):
    return x * {factor}
"""
NUMBA = """
import numpy as np
from numba import njit

@njit
def scaled(x, rate):
    for i in range(x.shape[0]):
        x[i] = {factor} * x[i] * rate
    return x

def host(x: np.ndarray, rate: float):
    {before}
    return scaled(x, rate)
"""
TORCH = """
import torch

def make_inputs(seed):
    return (torch.randn(4, generator=torch.Generator().manual_seed(seed)),)

@torch.compile
def step(x):
    return x * {factor}
"""


def numba(factor: str = "2.0", before: str = "pass") -> str:
    return NUMBA.format(factor=factor, before=before)


def judged(folder: Path, missing: set[str], old: str, new: str, monkeypatch) -> Report:
    """The report of a worker for which some packages are not installed."""
    (folder / "sitecustomize.py").write_text(BLOCKER.format(names=missing))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    path = folder / "module.py"
    before, after = (textwrap.dedent(text).lstrip("\n") for text in (old, new))
    path.write_text(before)
    request = Request(path, before.encode(), after.encode())
    (report,) = verify([request], Options(device="cpu", seeds=2))
    return report


def needs(name: str) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"needs {name}")


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [("2.0 + 0.0", Verdict.VERIFIED), ("3.0", Verdict.REFUTED)],
)
def test_tensorflow_without_torch(factor, verdict, tmp_path, monkeypatch):
    needs("tensorflow")
    old, new = TENSORFLOW.format(factor="2.0"), TENSORFLOW.format(factor=factor)
    report = judged(tmp_path, {"torch", "numba"}, old, new, monkeypatch)
    assert report.verdict is verdict, report.reason


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        (numba("2"), Verdict.VERIFIED),
        (numba("3.0"), Verdict.REFUTED),
        (numba(before="x = x.copy()"), Verdict.REFUTED),
        (numba(before="x = x.astype(np.float64)"), Verdict.REFUTED),
    ],
)
def test_kernels_without_a_framework(new, verdict, tmp_path, monkeypatch):
    needs("numba")
    report = judged(tmp_path, {"torch", "tensorflow"}, numba(), new, monkeypatch)
    assert report.verdict is verdict, report.reason


def test_a_missing_framework_is_said(tmp_path, monkeypatch):
    old, new = TORCH.format(factor="2"), TORCH.format(factor="(2)")
    report = judged(tmp_path, {"torch"}, old, new, monkeypatch)
    assert report.verdict is Verdict.UNVERIFIED
    assert report.reason == "torch is not installed: pip install 'jitlint[torch]'"
