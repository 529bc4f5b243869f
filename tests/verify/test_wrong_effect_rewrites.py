"""Rewrites of effects and copies that look right, and are found to differ."""

import pytest

from jitlint.finding import Verdict

pytestmark = pytest.mark.compiles

HEAD = """
import copy
import torch

def make_inputs(seed):
    x = torch.randn(4, generator=torch.Generator().manual_seed(seed))
    return (<x>,)

"""
PLAIN = HEAD.replace("<x>", "x")
GRAD = HEAD.replace("<x>", "x.requires_grad_()")


def step(body: str, head: str = PLAIN) -> str:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return f"{head}@torch.compile\ndef step(x):\n{lines}\n"


WRONG = {
    "dropped_print": (
        step("y = x + 1\nprint('step')\nreturn y * 2"),
        step("y = x + 1\nreturn y * 2"),
        "printed",
    ),
    "guarded_print": (
        step("y = x + 1\nprint('step')\nreturn y * 2"),
        step("y = x + 1\nif not torch.compiler.is_compiling():\n    print('step')\nreturn y * 2"),
        "printed",
    ),
    "copy_with_a_gradient": (
        step("return copy.deepcopy(x) * 2", GRAD),
        step("return x.clone() * 2", GRAD),
        "gradient",
    ),
    "copy_that_shares_nothing": (
        step("y = copy.copy(x)\ny.add_(1)\nreturn x * 2"),
        step("y = x.clone()\ny.add_(1)\nreturn x * 2"),
        "output",
    ),
    "copy_that_shares": (
        step("y = copy.deepcopy(x)\ny.add_(1)\nreturn x * 2"),
        step("y = x.detach()\ny.add_(1)\nreturn x * 2"),
        "output",
    ),
    "power_of_the_wrong_operand": (
        step("return pow(x, 2)"),
        step("return 2**x"),
        "output",
    ),
}


@pytest.fixture(scope="module")
def reports(prove):
    return prove({name: (old, new) for name, (old, new, _) in WRONG.items()})


@pytest.mark.parametrize("name", WRONG)
def test_a_rewrite_that_differs_is_refuted(name, reports):
    report = reports[name]
    assert report.verdict is Verdict.REFUTED, report.reason
    assert WRONG[name][2] in report.reason
