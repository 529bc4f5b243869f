"""`torch.jit.trace` bakes branches in, `torch.export` refuses them: a fix has to cure that."""

import pytest

from jitlint.finding import Verdict

pytestmark = pytest.mark.compiles

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        y = self.linear(x)
        {body}

net = Net().eval()
"""
INPUTS = """
def make_inputs(seed):
    x = torch.randn(2, 4, generator=torch.Generator().manual_seed(seed))
    return (x,)

"""
TRACE = "traced = torch.jit.trace(net, torch.ones(2, 4))\n"
EXPORT = "exported = torch.export.export(net, (torch.ones(2, 4),))\nprogram = exported.module()\n"
IF = "return y * 2 if <T>y.sum() > 0 else y - 1"
WHERE = "return torch.where(y.sum() > 0, y * 2, y - 1)"
SWAPPED = "return torch.where(y.sum() > 0, y - 1, y * 2)"
REORDERED = "return 2 * y if y.sum() > 0 else y - 1"


def module(body: str, tail: str, inputs: str = INPUTS) -> str:
    return NET.format(body=body) + inputs + tail


CASES = {
    "trace_cured": (module(IF, TRACE), module(WHERE, TRACE)),
    "trace_cured_without_make_inputs": (module(IF, TRACE, ""), module(WHERE, TRACE, "")),
    "trace_swapped": (module(IF, TRACE), module(SWAPPED, TRACE)),
    "trace_still_baked": (module(IF, TRACE), module(REORDERED, TRACE)),
    "export_cured": (module(IF, EXPORT), module(WHERE, EXPORT)),
    "export_still_refused": (module(IF, EXPORT), module(REORDERED, EXPORT)),
    "export_now_refused": (
        module("return y.abs()", EXPORT),
        module("return y.abs() if y.abs().sum() >= 0 else y.abs()", EXPORT),
    ),
    "export_swapped": (module(IF, EXPORT), module(SWAPPED, EXPORT)),
}


@pytest.fixture(scope="module")
def reports(prove):
    return prove(CASES)


@pytest.mark.parametrize("name", ["trace_cured", "trace_cured_without_make_inputs", "export_cured"])
def test_cured(name, reports):
    assert reports[name].verdict is Verdict.VERIFIED, reports[name].reason


@pytest.mark.parametrize("name", ["trace_swapped", "export_swapped", "export_now_refused"])
def test_wrong(name, reports):
    assert reports[name].verdict is Verdict.REFUTED, reports[name].reason


def test_branch_that_stays_baked_is_not_verified(reports):
    report = reports["trace_still_baked"]
    assert report.verdict is Verdict.UNVERIFIED
    assert "differs from the eager code as the old did" in report.reason


def test_export_that_still_fails_is_not_verified(reports):
    report = reports["export_still_refused"]
    assert report.verdict is Verdict.UNVERIFIED
    assert "torch.export refuses the new code too" in report.reason


def test_export_that_fails_only_in_the_old_code_says_so(reports):
    report = reports["export_cured"]
    assert "torch.export refused the old code" in report.reason
    (entry,) = report.entries
    assert (entry.kind, len(entry.breaks_before), len(entry.breaks_after)) == ("export", 1, 0)
