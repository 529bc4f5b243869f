"""Batches of a loader of torch: where a smaller one may come, and nothing else is believed."""

from pathlib import Path

import pytest

from jitlint import engine
from jitlint.config import Settings
from jitlint.rule import load_rules

MODULE = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x * 2
        return x


def run(data):
    net = torch.compile(Net(){options})
    for x in {loader}:
        net({argument})
"""


def found(folder: Path, loader: str, argument: str = "x", options: str = "") -> list[str]:
    path = folder / "module.py"
    path.write_text(MODULE.format(loader=loader, argument=argument, options=options))
    result = engine.check([path], Settings(cache=False), load_rules())
    assert not result.problems
    return [each.rule for each in result.diagnostics]


@pytest.mark.parametrize("argument", ["x", "x.to('cuda')", "x[0]"])
def test_the_last_batch_is_another_size_for_a_static_program(tmp_path, argument):
    rules = found(tmp_path, "DataLoader(data, batch_size=8)", argument, ", dynamic=False")
    assert sorted(rules) == ["shape-pin", "trace-branch"]


@pytest.mark.parametrize("loader", ["DataLoader(data, batch_size=8)", "data"])
def test_what_a_loader_yields_is_no_evidence(tmp_path, loader):
    assert found(tmp_path, loader) == ["trace-branch"]


SAME_SIZES = ["DataLoader(data)", "DataLoader(data, 8, drop_last=True)", "DataLoader(data, None)"]


@pytest.mark.parametrize("loader", SAME_SIZES)
def test_batches_of_one_size_are_silent(tmp_path, loader):
    assert "shape-pin" not in found(tmp_path, loader, options=", dynamic=False")
