"""Operators with an effect: right ones are proven, and those that lose something refuted."""

from collections.abc import Callable

import pytest

from jitlint.finding import Verdict
from jitlint.verify import Report

OLD = """import warnings

import torch


def make_inputs(seed):
    return (torch.randn(4, generator=torch.Generator().manual_seed(seed)),)


@torch.compile
def f(x):
    if x.sum() > 0:
        warnings.warn(f"large at {x.shape[0]}")
        x = x * 2
    return x + 1
"""

NEW = """import warnings

import torch


def make_inputs(seed):
    return (torch.randn(4, generator=torch.Generator().manual_seed(seed)),)


@torch.library.custom_op("{name}::report", mutates_args=())
def report(condition: torch.Tensor, x: torch.Tensor) -> None:
    if condition:
        warnings.warn({message})


@report.register_fake
def _(condition, x):
    return None

{effect}

@torch.compile
def f(x):
    condition = {condition}
    report(condition, x)
    return torch.where(condition, x * 2, x) + 1
"""

EFFECT = "\nreport.register_effect(torch.library.EffectType.ORDERED)\n"
GOOD = {"message": 'f"large at {x.shape[0]}"', "effect": EFFECT, "condition": "x.sum() > 0"}
WRONG = {
    "without the effect": {"effect": ""},
    "with another text": {"message": 'f"large at {x.shape}"'},
    "with another test": {"condition": "x.sum() > -100"},
}


@pytest.mark.compiles
def test_only_the_operator_that_reports_the_same_is_proven(
    prove: Callable[..., dict[str, Report]],
):
    cases = {"right": {}} | WRONG
    names = [f"operator{index}" for index in range(len(cases))]
    sources = {
        name: (OLD, NEW.format(**{"name": name, **GOOD, **changes}))
        for name, changes in zip(names, cases.values(), strict=True)
    }
    reports = prove(sources, seeds=3, backends=("aot_eager",))
    found = {case: reports[name].verdict for case, name in zip(cases, names, strict=True)}
    assert found == {"right": Verdict.VERIFIED} | dict.fromkeys(WRONG, Verdict.REFUTED)


DRAWN_OLD = """import numpy as np
import torch


def make_inputs(seed):
    return (torch.randn(2, 3, generator=torch.Generator().manual_seed(seed)),)


def drawn(shape: tuple[int, int]) -> np.ndarray:
    rows, columns = shape
    mask = np.zeros((rows, columns), dtype=bool)
    mask[:, np.random.choice(columns)] = True
    return mask


@torch.compile
def f(x):
    return torch.where(torch.tensor(drawn((x.shape[0], x.shape[1]))), x, 0.0)
"""

DRAWN_NEW = """import numpy as np
import torch


def make_inputs(seed):
    return (torch.randn(2, 3, generator=torch.Generator().manual_seed(seed)),)


def python(shape):
    rows, columns = shape
    mask = np.zeros((rows, columns), dtype=bool)
    mask[:, {draw}] = True
    return mask


@torch.library.custom_op("{name}::drawn", mutates_args=())
def operator(shape: list[int]) -> torch.Tensor:
    return torch.from_numpy(python(tuple(shape)))


@operator.register_fake
def _(shape):
    rows, columns = shape
    return torch.empty((rows, columns), dtype={dtype})


operator.register_effect(torch.library.EffectType.ORDERED)


def drawn(shape):
    return operator(shape).numpy()


@torch.compile
def f(x):
    return torch.where(torch.tensor(drawn((x.shape[0], x.shape[1]))), x, 0.0)
"""

DRAWN = {
    "right": ({"draw": "np.random.choice(columns)", "dtype": "torch.bool"}, Verdict.VERIFIED),
    "another draw": ({"draw": "np.random.choice(1)", "dtype": "torch.bool"}, Verdict.REFUTED),
    "another dtype": (
        {"draw": "np.random.choice(columns)", "dtype": "torch.int64"},
        Verdict.REFUTED,
    ),
}


@pytest.mark.compiles
def test_only_the_operator_that_draws_the_same_is_proven(
    prove: Callable[..., dict[str, Report]],
):
    names = [f"drawn{index}" for index in range(len(DRAWN))]
    sources = {
        name: (DRAWN_OLD, DRAWN_NEW.format(name=name, **changes))
        for name, (changes, _) in zip(names, DRAWN.values(), strict=True)
    }
    reports = prove(sources, seeds=3, backends=("eager",))
    found = {case: reports[name].verdict for case, name in zip(DRAWN, names, strict=True)}
    assert found == {case: verdict for case, (_, verdict) in DRAWN.items()}, {
        case: reports[name].reason for case, name in zip(DRAWN, names, strict=True)
    }
