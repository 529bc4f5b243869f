import runpy

import pytest
import torch
from measure import measured
from zoo import Model

pytestmark = pytest.mark.compiles

CODE = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        x = gate(self.layer(x))
        if torch.compiler.is_compiling():
            x.sum().item()
        return gate(x)


def gate(x):
    if x.sum() > 0:
        return x * 2
    return x + 1


def unused(x):
    return x
"""


@pytest.fixture
def net(tmp_path):
    path = tmp_path / "toy_net.py"
    path.write_text(CODE)
    return runpy.run_path(str(path))["Net"]


@pytest.fixture
def seen(net, tmp_path):
    return measured(Model(net, lambda: (torch.randn(2, 4),)), False, tmp_path)


def test_a_break_counts_once_for_each_chain_of_calls(seen):
    places = {(site.file, site.line): number for site, number in seen.breaks.items()}
    assert places == {("toy_net.py", 17): 2, ("toy_net.py", 12): 1}
    assert seen.failure == ""


def test_lines_that_ran_are_known_and_those_that_break_only_under_the_compiler(seen):
    assert seen.lines["toy_net.py"] >= {10, 12, 13, 17}
    assert 23 not in seen.lines["toy_net.py"]


def test_gradients_of_parameters_are_recorded(seen):
    assert "gradient of layer.weight" in seen.eager[0].gradients


def test_a_function_is_asked_for_gradients_of_its_inputs(tmp_path):
    seen = measured(Model(lambda: torch.sin, lambda: (torch.randn(3),)), False, tmp_path)
    assert [*seen.eager[0].gradients] == ["gradient of input[0][0]"]


def test_an_error_of_the_model_itself_is_told(tmp_path):
    seen = measured(Model(lambda: torch.sin, lambda: ("no tensor",)), False, tmp_path)
    assert seen.failure.startswith("eager: TypeError")
