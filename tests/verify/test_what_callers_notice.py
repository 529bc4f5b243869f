"""Differences that no output shows, and what is around the call: each is found."""

import pytest

from jitlint.finding import Verdict

pytestmark = pytest.mark.compiles

HEAD = """
import collections
import torch
from torch import nn

def make_inputs(seed):
    x = torch.randn(4, generator=torch.Generator().manual_seed(seed))
    return (x + (1.0 if seed % 2 else -1.0),)

"""
OLD = "if <T>x.sum() > 0:\n    y = x * 3\nelse:\n    y = x.abs()\n"
NEW = "y = torch.where(x.sum() > 0, x * 3, x.abs())\n"


def step(body, head="", parameters="x", decorator="@torch.compile"):
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return f"{HEAD}{head}\n{decorator}\ndef step({parameters}):\n{lines}\n"


def pair(old, new, **options):
    """The right rewrite of a branch, with other code behind it."""
    return step(OLD + old, **options), step(NEW + new, **options)


def net(body):
    lines = "\n".join(f"        {line}" for line in body.strip("\n").splitlines())
    head = f"{HEAD}class Net(nn.Module):\n    def forward(self, x):\n"
    return f"{head}{lines}\n\nn = torch.compile(Net())\n"


COUNTER = "class Counter:\n    def __init__(self):\n        self.n = 0\n\ncounter = Counter()\n"
CLASS = "class Config:\n    n = 0\n"
CODE = """\
class Failed(RuntimeError):
    def __init__(self, message, code):
        super().__init__(message)
        self.code = code
"""
HELPER = "def helper():\n    pass\n"
QUEUE = "queue = collections.deque()\n"
LIST = "def make_inputs(seed):\n    return torch.ones(4) * (-1) ** seed, [torch.ones(3)]\n"

REFUTED = {
    "order of a dict": (*pair("return {'a': y, 'b': 1}", "return {'b': 1, 'a': y}"), "dict[2]"),
    "strides": (
        *pair("return y.expand(3, 4) * 1", "return (y.expand(3, 4) * 1).t().contiguous().t()"),
        "strides (4, 1) became (1, 3)",
    ),
    "another tensor in the caller's list": (
        step("if <T>x.sum() > 0:\n    xs[0].add_(1)\nreturn x * 1", LIST, "x, xs"),
        step("xs[0] = torch.where(x.sum() > 0, xs[0] + 1, xs[0])\nreturn x * 1", LIST, "x, xs"),
        "became 'is another tensor'",
    ),
    "state of a global object": (*pair("counter.n += 1\nreturn y", "return y", head=COUNTER), "n"),
    "state of a class": (*pair("Config.n += 1\nreturn y", "return y", head=CLASS), "Config['n']"),
    "state of a function": (*pair("helper.n = 3\nreturn y", "return y", head=HELPER), "helper"),
    "state of a default": (
        *pair("cache.append(1)\nreturn y", "return y", parameters="x, cache=[]"),
        "default 0",
    ),
    "state of a queue": (*pair("queue.append(1)\nreturn y", "return y", head=QUEUE), "deque[1]"),
    "an attribute that is not set": (
        net("self.last = x * 2\n" + OLD + "return y"),
        net(NEW + "return y"),
        "last is not there",
    ),
    "wrong in evaluation": (
        net(OLD + "return y"),
        net(NEW + "return y if self.training else y + 1"),
        "with training switched",
    ),
    "wrong without gradients": (
        *pair("return y", "return y if torch.is_grad_enabled() else y + 1"),
        "under no_grad",
    ),
    "wrong for one row": (
        *pair("return y", "return y if x.shape[0] > 1 else y + 1"),
        "a leading dimension of one",
    ),
    "wrong in double precision": (
        *pair("return y", "return y if x.dtype == torch.float32 else y + 1"),
        "double precision",
    ),
    "cause of an exception": (
        step("if <T>x.sum() > 0:\n    raise RuntimeError('no') from ValueError('why')\nreturn x"),
        step("if x.sum() > 0:\n    raise RuntimeError('no')\nreturn x"),
        "from ValueError: why",
    ),
    "attribute of an exception": (
        step("if <T>x.sum() > 0:\n    raise Failed('no', 3)\nreturn x", CODE),
        step("if x.sum() > 0:\n    raise Failed('no', 4)\nreturn x", CODE),
        "'code': 3",
    ),
    "items of an iterator": (*pair("return map(abs, [y])", "return map(abs, [y + 1])"), "a map"),
    "gradients stay off": (
        *pair("return y", "torch.set_grad_enabled(False)\nreturn y"),
        "gradients are recorded: 'True' became 'False'",
    ),
    "another default dtype": (
        *pair("return y", "torch.set_default_dtype(torch.float64)\nreturn y"),
        "default dtype: 'torch.float32' became 'torch.float64'",
    ),
}

UNVERIFIED = {
    "another parameter": (
        step(OLD + "return y"),
        step(NEW.replace("x", "z") + "return y", parameters="z"),
        "the fix changes what is handed to a compiler",
    ),
    "another default": (
        step(OLD + "return y", parameters="x, k=3"),
        step(NEW + "return y", parameters="x, k=4"),
        "the fix changes what is handed to a compiler",
    ),
    "other options": (
        step(OLD + "return y"),
        step(NEW + "return y", decorator="@torch.compile(dynamic=True)"),
        "the fix changes what is handed to a compiler",
    ),
    "a function is returned": (
        *pair("return lambda: y", "return lambda: y + 1"),
        "step returns a builtins.function, of which nothing can be compared",
    ),
}


@pytest.fixture(scope="module")
def reports(prove):
    cases = {**REFUTED, **UNVERIFIED}
    return prove({name: (old, new) for name, (old, new, _) in cases.items()}, workers=2)


@pytest.mark.parametrize("name", REFUTED)
def test_it_is_refuted(name, reports):
    assert reports[name].verdict is Verdict.REFUTED, reports[name].reason
    assert REFUTED[name][2] in reports[name].reason


@pytest.mark.parametrize("name", UNVERIFIED)
def test_it_is_not_verified(name, reports):
    assert reports[name].verdict is Verdict.UNVERIFIED
    assert UNVERIFIED[name][2] in reports[name].reason


def test_settings_of_one_file_do_not_reach_the_next(prove):
    wrong = pair("return y", "torch.set_default_dtype(torch.float64)\nreturn y")
    right = pair("return y, torch.tensor(1.5)", "return y, torch.tensor(1.5, dtype=torch.float64)")
    assert prove({"wrong": wrong, "right": right})["right"].verdict is Verdict.REFUTED
