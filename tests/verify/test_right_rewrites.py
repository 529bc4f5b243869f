"""Right rewrites pass, with the counts that make the proof worth something."""

import pytest

from jitlint.finding import Verdict

pytestmark = pytest.mark.compiles

HEAD = """
import torch
from torch import nn

def make_inputs(seed):
    x = torch.randn(4, generator=torch.Generator().manual_seed(seed))
    return ((x + (1.0 if seed % 2 else -1.0)).requires_grad_({grad}),)

"""
GRAD, PLAIN = HEAD.format(grad=True), HEAD.format(grad=False)

RATE = """
rate = 0.0

@torch.compile
def step(x):
    drawn = torch.rand([])
    if {test}:
        return x * 1
    return x * torch.rand_like(x)
"""

CASES = {
    "where_of_linear_arms": (
        GRAD
        + """
@torch.compile
def step(x):
    if <T>x.mean() > 0:
        y = x * 3
    else:
        y = x.abs()
    return y + 1
""",
        GRAD
        + """
@torch.compile
def step(x):
    y = torch.where(x.mean() > 0, x * 3, x.abs())
    return y + 1
""",
    ),
    "cond": (
        GRAD
        + """
@torch.compile
def step(x):
    if <T>x.sum() > 0:
        return x.sqrt()
    return x * 2
""",
        GRAD
        + """
@torch.compile
def step(x):
    return torch.cond(x.sum() > 0, lambda x: x.sqrt(), lambda x: x * 2, (x,))
""",
    ),
    "copy_of_where": (
        PLAIN
        + """
@torch.compile
def step(x):
    if <T>x.sum() > 0:
        x.mul_(2)
    return x + 1
""",
        PLAIN
        + """
@torch.compile
def step(x):
    x.copy_(torch.where(x.sum() > 0, x * 2, x))
    return x + 1
""",
    ),
    "done_mask": (
        GRAD
        + """
@torch.compile
def step(x):
    for _ in range(4):
        if <T>x.norm() < 1.5:
            break
        x = x * 0.5
    return x + 0
""",
        GRAD
        + """
@torch.compile
def step(x):
    done = torch.zeros((), dtype=torch.bool, device=x.device)
    for _ in range(4):
        done = done | (x.norm() < 1.5)
        x = torch.where(done, x, x * 0.5)
    return x + 0
""",
    ),
    "while_loop": (
        PLAIN
        + """
EDGE_CASES = False

@torch.compile
def step(x):
    while <T>x.norm() > 1.0:
        x = x * 0.5
    return x + 0
""",
        PLAIN
        + """
EDGE_CASES = False

@torch.compile
def step(x):
    (x,) = torch._higher_order_ops.while_loop(
        lambda x: x.norm() > 1.0, lambda x: (x * 0.5,), (x,)
    )
    return x + 0
""",
    ),
    "assertion_with_a_message": (
        PLAIN
        + """
@torch.compile
def step(x):
    if <T>x.sum() > 0:
        raise RuntimeError("too large")
    return x + 1
""",
        PLAIN
        + """
@torch.compile
def step(x):
    torch._assert_async(torch.logical_not(x.sum() > 0), "too large")
    return x + 1
""",
    ),
    "module_in_training": (
        PLAIN
        + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        y = self.linear(x)
        if <T>y.sum() > 0:
            y = y * 2
        return y

net = torch.compile(Net())
""",
        PLAIN
        + """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        y = self.linear(x)
        y = torch.where(y.sum() > 0, y * 2, y)
        return y

net = torch.compile(Net())
""",
    ),
    "state_kept_between_calls": (
        PLAIN
        + """
class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ready", torch.tensor(False))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        if <T>not self.ready:
            self.mean.copy_(x)
            self.ready.fill_(True)
        return x - self.mean

net = Running()
net.compile()
""",
        PLAIN
        + """
class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ready", torch.tensor(False))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        self.mean.copy_(torch.where(self.ready, self.mean, x))
        self.ready.fill_(True)
        return x - self.mean

net = Running()
net.compile()
""",
    ),
    "aliased_and_partial_entries": (
        PLAIN
        + """
import functools
from torch import compile as fast

whole = functools.partial(torch.compile, dynamic=False)

@whole
def first(x):
    return x + 1 if <T>x.sum() > 0 else x - 1

def _second(x):
    return x * 2

second = fast(_second)
""",
        PLAIN
        + """
import functools
from torch import compile as fast

whole = functools.partial(torch.compile, dynamic=False)

@whole
def first(x):
    return torch.where(x.sum() > 0, x + 1, x - 1)

def _second(x):
    return x * 2

second = fast(_second)
""",
    ),
    "assertion_that_dynamo_rewrites": (
        PLAIN
        + """
@torch.compile
def step(x):
    assert x.sum() > -100, "too small"
    if <T>x.sum() > 0:
        return x * 3
    return x + 1
""",
        PLAIN
        + """
@torch.compile
def step(x):
    assert x.sum() > -100, "too small"
    return torch.where(x.sum() > 0, x * 3, x + 1)
""",
    ),
    "break_elsewhere_is_left": (
        PLAIN
        + """
@torch.compile
def step(x):
    print("step")
    if <T>x.sum() > 0:
        return x * 3
    return x + 1
""",
        PLAIN
        + """
@torch.compile
def step(x):
    print("step")
    return torch.where(x.sum() > 0, x * 3, x + 1)
""",
    ),
    "draw_of_which_nothing_is_used": (
        GRAD + RATE.format(test="drawn < rate"),
        GRAD + RATE.format(test="rate > 0 and drawn < rate"),
    ),
}


@pytest.fixture(scope="module")
def reports(prove):
    return prove({name: (old, new) for name, (old, new) in CASES.items()})


@pytest.mark.parametrize("name", CASES)
def test_right_rewrite_is_verified(name, reports):
    report = reports[name]
    assert report.verdict is Verdict.VERIFIED, report.reason
    assert report.counterexample is None


def test_breaks_are_counted_with_their_id_and_line(reports):
    (entry,) = reports["where_of_linear_arms"].entries
    (found,) = entry.breaks_before
    assert (found.code, found.line, found.reason) == ("GB0170", 11, "Data-dependent branching")
    assert (entry.breaks_after, entry.graphs_before, entry.graphs_after) == ((), 3, 1)


def test_equal_gradients_are_claimed_only_where_there_are_any(reports):
    assert reports["where_of_linear_arms"].entries[0].gradients_equal is True
    assert reports["copy_of_where"].entries[0].gradients_equal is None


def test_every_compiled_function_is_an_entry(reports):
    names = [entry.entry for entry in reports["aliased_and_partial_entries"].entries]
    assert names == ["first", "_second"]


def test_breaks_that_the_fix_leaves_alone_are_reported(reports):
    report = reports["break_elsewhere_is_left"]
    assert [item.code for item in report.entries[0].breaks_after] == ["GB0059"]
    assert "breaks 2 → 1" in report.reason


def test_what_the_compiler_changes_by_itself_is_told_and_not_blamed_on_the_fix(reports):
    reason = reports["assertion_that_dynamo_rewrites"].reason
    assert "eager itself changes the exception of step, in the old code too" in reason
