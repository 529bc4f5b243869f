"""`trace-training-mode`: where the mode of a module is known, and what the fix makes of it."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from jitlint import engine, fixing, stages, verify
from jitlint.config import Settings
from jitlint.finding import Diagnostic, Verdict
from jitlint.rule import load_rules
from jitlint.source import read

RULE = "trace-training-mode"
HEADER = """
import torch
from torch import nn

from elsewhere import load


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(x)


def made():
    net = Net()
    return net.to("cpu")


def switched(net):
    net.eval()


X = torch.rand(3, 4)

"""


@pytest.fixture
def findings(tmp_path: Path) -> Callable[[str], list[Diagnostic]]:
    def found(body: str) -> list[Diagnostic]:
        path = tmp_path / "module.py"
        path.write_text(HEADER + textwrap.dedent(body))
        settings = Settings(cache=False, select=(RULE,))
        result = engine.check([path], settings, load_rules())
        assert not result.problems
        return list(result.diagnostics)

    return found


@pytest.fixture
def rewritten(tmp_path: Path) -> Callable[[str], str]:
    def after(body: str) -> str:
        path = tmp_path / "module.py"
        path.write_text(HEADER + textwrap.dedent(body))
        settings = Settings(cache=False, select=(RULE,), unsafe=True, verify=False)
        plan = fixing.plan([read(path)], settings, load_rules())
        return plan.files[0].new.decode().removeprefix(HEADER)

    return after


TRAINING = {
    "made in the call": "torch.jit.trace(Net(), X)",
    "a variable": "net = Net()\ntorch.jit.trace(net, X)",
    "moved and loaded": "net = Net().to('cpu')\nnet.load_state_dict({})\ntorch.jit.trace(net, X)",
    "made by a function": "net = made()\ntorch.jit.trace(net, X)",
    "switched back": "net = Net()\nnet.eval()\nnet.train()\ntorch.jit.trace(net, X)",
    "a container": "torch.jit.trace(nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.1)), X)",
    "on every way": "net = Net()\nif X.shape[0] > 2:\n    net.train()\ntorch.jit.trace(net, X)",
    "frozen": "torch.jit.freeze(torch.jit.script(nn.Linear(2, 2)))",
    "exported": "torch.export.export(Net(), (X,))",
    "in a block": "net = Net()\nwith torch.no_grad():\n    torch.jit.trace(net, X)",
    "by keyword": "net = Net()\ntorch.jit.trace(func=net, example_inputs=X)",
}
OTHERS = {
    "eval": "net = Net()\nnet.eval()\ntorch.jit.trace(net, X)",
    "chained": "net = made().eval()\ntorch.jit.trace(net, X)",
    "train(False)": "net = Net()\nnet.train(False)\ntorch.jit.trace(net, X)",
    "train(flag)": "net = Net()\nnet.train(bool(X.sum()))\ntorch.jit.trace(net, X)",
    "a helper of the project": "net = Net()\nswitched(net)\ntorch.jit.trace(net, X)",
    "a helper of someone else": "net = Net()\nload(net)\ntorch.jit.trace(net, X)",
    "in a list given to a helper": "net = Net()\nload([net])\ntorch.jit.trace(net, X)",
    "on one way": "net = Net()\nif X.shape[0] > 2:\n    net.eval()\ntorch.jit.trace(net, X)",
    "by another name": "net = Net()\nother = net\nother.eval()\ntorch.jit.trace(net, X)",
    "in an earlier round": (
        "net = Net()\nfor _ in range(2):\n    torch.jit.trace(net, X)\n    net.eval()"
    ),
    "in a context": "net = Net()\nwith load(net):\n    torch.jit.trace(net, X)",
    "no difference": "torch.jit.trace(nn.Linear(2, 2), X)",
    "not made here": "net = load('net.pt')\ntorch.jit.trace(net, X)",
    "a function": "torch.jit.trace(lambda x: x + 1, X)",
}


@pytest.mark.parametrize("body", TRAINING.values(), ids=TRAINING)
def test_a_module_that_was_made_is_in_training_mode(findings, body):
    assert [each.rule for each in findings(body)] == [RULE]


@pytest.mark.parametrize("body", TRAINING.values(), ids=TRAINING)
def test_in_a_function_as_in_a_file(findings, body):
    inside = "def export():\n" + textwrap.indent(body, "    ")
    assert [each.rule for each in findings(inside)] == [RULE]


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_a_mode_that_is_eval_or_not_known_is_silent(findings, body):
    assert findings(body) == []


GLOBAL = """
shared = Net()


def export():
    return torch.jit.trace(shared, X)
"""


def test_a_global_that_a_function_switches_is_not_known(findings):
    assert [each.rule for each in findings(GLOBAL)] == [RULE]
    assert findings(GLOBAL + "\n\ndef leave():\n    shared.eval()\n") == []


def test_the_fix_switches_before_the_statement(rewritten):
    source = """
        def export():
            net = Net()
            # for the server
            return torch.jit.trace(net, X)  # kept
    """
    assert rewritten(source) == textwrap.dedent("""
        def export():
            net = Net()
            # for the server
            net.eval()
            return torch.jit.trace(net, X)  # kept
    """)


def test_the_fix_switches_a_module_without_a_name(rewritten):
    assert rewritten("torch.jit.trace(Net(), X)") == "torch.jit.trace(Net().eval(), X)"


def test_the_fix_is_withheld_where_the_module_is_used_again(findings):
    (found,) = findings("net = Net()\ntraced = torch.jit.trace(net, X)\nnet(X).sum().backward()")
    assert found.fix_title is None
    assert "used again" in found.no_fix_reason


FUNCTIONAL = """
class Drop(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5)


traced = torch.jit.trace(Drop().eval(), X, check_trace=False)
"""


def test_a_functional_dropout_follows_the_mode(findings, rewritten):
    (found,) = findings(FUNCTIONAL)
    assert found.fix_safety.value == "unsafe"
    assert "dropout(x, 0.5, training=self.training)" in rewritten(FUNCTIONAL)


@pytest.mark.compiles
def test_the_verifier_sees_that_the_fix_changes_what_is_computed(tmp_path, rewritten):
    pytest.importorskip("torch")
    source = HEADER.replace("from elsewhere import load\n", "") + FUNCTIONAL
    path = tmp_path / "drop.py"
    path.write_text(source)
    new = source.replace("(x, 0.5)", "(x, 0.5, training=self.training)")
    request = verify.Request(path, source.encode(), new.encode(), ())
    (report,) = verify.verify([request], verify.Options(device="cpu"), stages.silent)
    assert report.verdict is Verdict.REFUTED
