"""Fixes around kernels of Numba: the right ones are proved, planted wrong ones refuted."""

import importlib.util

import pytest

from jitlint.finding import Verdict

pytestmark = [
    pytest.mark.compiles,
    pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="needs numba"),
]

HOST = """
import numpy as np
import torch
from numba import njit


@njit
def halved(x):
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        out[i] = x[i] / 2
    return out


def step(x: torch.Tensor):
    return torch.from_numpy(halved(%s))


def make_inputs(seed):
    x = torch.randn(4, generator=torch.Generator().manual_seed(seed))
    return (x%s,)
"""


def host(argument: str, suffix: str = "") -> str:
    return HOST % (argument, suffix)


GRAPH = """
import torch
from numba import njit


@njit
def scale(x):
    return x * 2.0

%s

@torch.compile
def step(x):
    return %s + 1


def make_inputs(seed):
    return (torch.randn(4, generator=torch.Generator().manual_seed(seed)),)
"""

OPERATOR = """
@torch.library.custom_op("test_numba::scale", mutates_args=())
def scale_op(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(scale(x.detach().numpy()))%s


@scale_op.register_fake
def _(x):
    return torch.empty(x.shape, dtype=x.dtype)
"""


def graph(cast: str | None) -> str:
    if cast is None:
        return GRAPH % ("", "torch.from_numpy(scale(x.numpy())).to(x.dtype)")
    return GRAPH % (OPERATOR % cast, "scale_op(x).to(x.dtype)")


def shaped(dims: str) -> str:
    return graph(".to(x.dtype)").replace("torch.empty(x.shape", f"torch.empty({dims}")


GRADED = GRAPH.replace("(seed)),)", "(seed)).requires_grad_(),)")
FORMULA = """
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return %s

    @staticmethod
    def backward(ctx, gradient):
        return %s
"""
IN_FORMULA = "torch.from_numpy(scale(x.detach().numpy())).to(x.dtype)"


def formula(forward: str, backward: str, result: str = "Scale.apply(x)") -> str:
    return GRADED % (OPERATOR % ".to(x.dtype)" + FORMULA % (forward, backward), result)


BY_KERNEL = formula(IN_FORMULA, IN_FORMULA.replace("x", "gradient"))
REFUSED = host("x")
WRONG = {
    "wrong_dtype": (REFUSED, host("x.double().numpy()"), "float32 became torch.float64"),
    "truncated": (REFUSED, host("x.int().numpy()"), "dtype"),
    "other_numbers": (REFUSED, host("x.abs().numpy()"), "output"),
    "lost_gradient": (
        host("x", ".requires_grad_()"),
        host("x.detach().numpy()", ".requires_grad_()"),
        "LostGradientError",
    ),
    "operator_returns_float64": (graph(None), graph(""), "fails test_faketensor"),
    "operator_of_another_shape": (graph(None), shaped("(4, 1)"), "fails test_faketensor"),
    "operator_without_gradient": (
        GRADED % ("", "x * 2.0"),
        GRADED % (OPERATOR % ".to(x.dtype)", "scale_op(x)"),
        "gradient",
    ),
    "operator_in_place_of_a_formula": (
        BY_KERNEL,
        formula("scale_op(x)", "scale_op(gradient)", "scale_op(x)"),
        "gradient of input[0][0] is missing",
    ),
    "operator_of_another_formula": (
        BY_KERNEL,
        formula("scale_op(x)", "scale_op(gradient.abs() + 1)"),
        "gradient",
    ),
}
RIGHT = {
    "operators_in_a_formula": (BY_KERNEL, formula("scale_op(x)", "scale_op(gradient)")),
    "bridged": (REFUSED, host("x.cpu().numpy()")),
    "operator_casts": (graph(None), graph(".to(x.dtype)")),
}


@pytest.fixture(scope="module")
def reports(prove):
    sources = {name: case[:2] for name, case in {**WRONG, **RIGHT}.items()}
    return prove(sources, seeds=2, backends=("eager",))


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_fix_is_refuted(reports, name):
    assert reports[name].verdict is Verdict.REFUTED
    assert WRONG[name][2] in reports[name].reason


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_fix_is_proved(reports, name):
    assert reports[name].verdict is Verdict.VERIFIED, reports[name].reason
