"""Code that gives no inputs of its own is called with what it says of them elsewhere."""

import importlib.util

import pytest

from jitlint.finding import Verdict
from jitlint.verify.derive.signatures import Parameter
from jitlint.verify.derive.written import Row, written_rows

HEAD = "import torch\nfrom torch import nn, Tensor\nfrom typing import Dict, List, Optional\n\n"
STEP = "@torch.compile\ndef step({parameters}):\n    return {result}\n"
BY_TYPE = "derived from the types"


def step(parameters: str, old: str, new: str, rest: str = "") -> tuple[str, str]:
    return tuple(
        HEAD + STEP.format(parameters=parameters, result=result) + rest for result in (old, new)
    )


def edited(code: str, old: str, new: str) -> tuple[str, str]:
    code = HEAD + code
    assert old in code
    return code, code.replace(old, new)


LAYER = """
class Net(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.lin = nn.Linear(width, 3)

    def forward(self, x, steps):
        for _ in range(steps):
            x = x * 2
        return self.lin(x)

"""
EMBEDDING = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def forward(self, words):
        return self.table(words).sum(1) * 2

net = torch.compile(Net())
"""
MADE_IN_A_FUNCTION = """
def build(scale: float = 2.0):
    @torch.jit.script
    def scaled(x, n=3):
        return x * n

    return scaled
"""
EXPORTED = """
class Net(nn.Module):
    def forward(self, x):
        return x @ x.T * 2

def package(example):
    return torch.export.export(Net(), (example,))
"""
IN_A_CONSTRUCTOR = """
class Trainer:
    def __init__(self, rate: float):
        self.rate = rate
        self.step = torch.compile(self._step)

    def _step(self, x):
        return x * self.rate + 2
"""
KERNEL = """
import numpy as np
from numba import njit

@njit
def total(values):
    out = 0.0
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            out += values[i, j]
    return out

"""
HOST = KERNEL + "def measure(x: Tensor):\n    return total(x)\n"
METHOD = KERNEL + "class Meter:\n    def measure(self, x: Tensor):\n        return total(x)\n"
COPIED = "from copy import deepcopy\n\n" + STEP.format(parameters="x", result="deepcopy(x) * 2")
UNUSED = "\ndef unused(x):\n    return x.rows + 1\n"

RIGHT = {
    "a variable": step("x, n", "x[n] * 2", "2 * x[n]", "ARGS = [(torch.ones(3, 4), 2)]\n"),
    "a call": step(
        "x, key", "x[key] * 2", "2 * x[key]", "\ndef main():\n    step({'k': torch.ones(3)}, 'k')\n"
    ),
    "a call with a local": step(
        "x, key",
        "x[key] * 2",
        "2 * x[key]",
        "\nif __name__ == '__main__':\n    rows = {'k': torch.ones(3)}\n    step(rows, key='k')\n",
    ),
    "annotations": step(
        "x: Dict[str, Tensor], n: Optional[int], flags: List[bool], mode: str",
        "x['a'] * (n or 2) if mode == 'left' else x['a']",
        "(n or 2) * x['a'] if mode == 'left' else x['a']",
    ),
    "weights": edited(LAYER + "net = torch.compile(Net())\n", "x * 2", "2 * x"),
    "indices": edited(EMBEDDING, "self.table(words).sum(1) * 2", "2 * self.table(words).sum(1)"),
    "a factory": edited(MADE_IN_A_FUNCTION, "n=3", "n: int = 3"),
    "an export": edited(EXPORTED, "x @ x.T * 2", "2 * (x @ x.T)"),
    "a constructor": edited(IN_A_CONSTRUCTOR, "x * self.rate + 2", "2 + x * self.rate"),
    "a factory of a module": edited(
        LAYER + "def export():\n    return torch.jit.script(Net().eval())\n",
        "x, steps",
        "x, steps: int",
    ),
    "a mask of another tensor": step("x, m", "x[m].sum()", "(x[m] * 1).sum()"),
    "arms that integers take": step(
        "x", "x * 2 if x.sum() > 0 else x * 3", "x * (2 if x.sum() > 0 else 3)"
    ),
    "a caller of a kernel": edited(HOST, "total(x)", "total(x.cpu().numpy())"),
    "a method that calls a kernel": edited(METHOD, "total(x)", "total(x.cpu().numpy())"),
}
WRONG = {
    "values of a call": step(
        "x, n", "x * n", "x * 3", "\ndef main():\n    step(torch.ones(3), 4)\n"
    ),
    "another type": edited(MADE_IN_A_FUNCTION, "n=3", "n: float = 3"),
    "a narrower type": step("x: Tensor, n: float", "x * n", "x * int(n)"),
    "other numbers": edited(HOST, "total(x)", "total(x.abs().cpu().numpy())"),
    "another size": step("x", "x.reshape(-1, 2)", "x.reshape(2, 2)"),
    "masks of rows": step("x, m", "x[m].mean()", "torch.where(m, x, 0).sum() / m.sum()"),
    "masks of rows that are floats": step(
        "x, m", "x[m.bool()].mean()", "torch.where(m.bool(), x, 0).sum() / m.bool().sum()"
    ),
    "an empty selection": step("x, m", "x[m].max()", "torch.where(m, x, -torch.inf).max()"),
    "integers": step("x", "x * float(x.sum())", "x * x.sum().detach()"),
    "integers in arms": step(
        "x",
        "x * 2 if x.sum() > 0 else x / 2",
        "torch.cond(x.sum() > 0, lambda v: v * 2, lambda v: v / 2, [x])",
    ),
    "a copy of a leaf": edited(COPIED, "deepcopy(x)", "x.clone()"),
}
UNPROVED = {
    "never run": edited(STEP.format(parameters="x", result="x * 2") + UNUSED, "x.rows + 1", "1"),
    "nothing fits": step("x", "x.rows * 2", "2 * x.rows"),
    "a call that the compiled code alone takes": edited(
        "@torch.jit.script\ndef crop(x, n):\n    return x[:n] / n\n"
        "\ndef main():\n    crop(torch.ones(4), torch.tensor(2.5))\n",
        "x, n)",
        "x, n: int)",
    ),
}
REASONS = {
    "a variable": "inputs taken from `ARGS`",
    "a call": "inputs taken from the call on line 10",
    "annotations": BY_TYPE,
    "weights": BY_TYPE,
    "never run": "the fix in `unused` was never run",
    "nothing fits": "no inputs",
}
NEEDS_NUMBA = {"a caller of a kernel", "a method that calls a kernel", "other numbers"}


@pytest.fixture(scope="module")
def reports(prove):
    cases = {**RIGHT, **WRONG, **UNPROVED}
    if importlib.util.find_spec("numba") is None:
        cases = {name: each for name, each in cases.items() if name not in NEEDS_NUMBA}
    named = {name.replace(" ", "_"): each for name, each in cases.items()}
    found = prove(named, backends=("eager",))
    return {name: found.get(name.replace(" ", "_")) for name in {**RIGHT, **WRONG, **UNPROVED}}


def verdict_of(reports, name):
    if reports[name] is None:
        pytest.skip("needs numba")
    return reports[name].verdict


@pytest.mark.compiles
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_rewrite_is_verified(reports, name):
    assert verdict_of(reports, name) is Verdict.VERIFIED, reports[name].reason


@pytest.mark.compiles
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rewrite_is_refuted(reports, name):
    assert verdict_of(reports, name) is Verdict.REFUTED, reports[name].reason


@pytest.mark.compiles
@pytest.mark.parametrize("name", UNPROVED)
def test_what_cannot_be_run_is_not_verified(reports, name):
    assert verdict_of(reports, name) is Verdict.UNVERIFIED


@pytest.mark.compiles
@pytest.mark.parametrize("name", REASONS)
def test_the_verdict_says_what_it_rests_on(reports, name):
    assert REASONS[name] in reports[name].reason


# -- arguments that the module writes --------------------------------------------------------

SOURCE = """
SIZE = 3
def f(x, n=1):
    return x

def main(given):
    size = SIZE + 1
    twice = size
    twice = 5
    g = wrap(f)
    f(size, n=2)
    g(7)
    f(given)
    f(twice)
    f(*size)
    f(1, 2, 3)
"""


def rows_of(source: str, **namespace: object) -> list[Row]:
    parameters = [Parameter("x"), Parameter("n", default=1)]
    return written_rows(source, namespace, ["f"], parameters)


def test_arguments_of_calls_are_evaluated_where_their_names_have_one_value():
    rows = rows_of(SOURCE, SIZE=3)
    assert [(row.args, row.kwargs) for row in rows] == [((4,), {"n": 2}), ((7,), {})]


def test_a_variable_of_examples_comes_first():
    rows = rows_of(SOURCE, SIZE=3, EXAMPLE_INPUTS=[(1, 2), (3,), ()])
    assert [row.args for row in rows] == [(1, 2), (3,)]
