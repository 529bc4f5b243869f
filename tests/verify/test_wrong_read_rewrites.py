"""Rewrites of reads and selections that look right: the verifier refutes each of them."""

from collections.abc import Callable

import pytest

from jitlint.finding import Verdict
from jitlint.verify import Report

MODULE = """import torch


def make_inputs(seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(6, generator=g) + 0.5
    return x{leaf}, torch.rand(6, generator=g)


@torch.compile
def f(x, y):
    {body}
"""

LEAF = ".requires_grad_(True)"

WRONG = {
    "the gradient of the number": (LEAF, "return x * x.max().item()", "return x * x.max()"),
    "the dtype of the number": (
        LEAF,
        "return x.argmax(0) * y.double().mean().item()",
        "return x.argmax(0) * y.double().mean()",
    ),
    "the precision of Python": (
        LEAF,
        "return x.double() * (y.mean().item() + 1000.1 - 1000.0)",
        "return x.double() * (y.mean() + 1000.1 - 1000.0)",
    ),
    "a tensor that is written into": (
        "",
        "s = y[0].item(); y.add_(1); return x * s",
        "s = y[0].detach(); y.add_(1); return x * s",
    ),
    "zero times NaN": (LEAF, "return x[x > 0].sum()", "return (x * (x > 0)).sum()"),
    "an infinite derivative": (
        LEAF,
        "return x[x > 0].sqrt().sum()",
        "return torch.where(x > 0, x.sqrt(), 0).sum()",
    ),
    "a store that the caller does not see": (
        "",
        "x[x > 0] = x[x > 0] * 2; return x + 1",
        "x = torch.where(x > 0, x * 2, x); return x + 1",
    ),
    "the largest of nothing": (
        LEAF,
        "return x[x > 9].max()",
        "return torch.where(x > 9, x, -torch.inf).max()",
    ),
    "a view that the caller can write into": (
        "",
        "return x[x.argmax().item()]",
        "return x[x.argmax().reshape(1)].squeeze(0)",
    ),
    "a count that is a tensor": (LEAF, "return x[x > 0].numel()", "return (x > 0).sum()"),
}


@pytest.mark.compiles
def test_wrong_rewrites_of_reads_are_refuted(prove: Callable[..., dict[str, Report]]):
    sources = {
        f"case{index}": (
            MODULE.format(leaf=leaf, body=before),
            MODULE.format(leaf=leaf, body=after),
        )
        for index, (leaf, before, after) in enumerate(WRONG.values())
    }
    reports = prove(sources, seeds=2, backends=("eager",))
    found = dict(zip(WRONG, (reports[name].verdict for name in sources), strict=True))
    assert found == dict.fromkeys(WRONG, Verdict.REFUTED)
