"""`torch.jit.script` takes what it is told: an annotation that tells it wrong is refuted."""

import pytest

from jitlint.finding import Verdict

pytestmark = pytest.mark.compiles

HEADER = "import torch\nfrom typing import Dict, List, Optional\nfrom torch import Tensor, nn\n\n"


def module(code: str, arguments: str) -> str:
    inputs = f"def make_inputs(seed):\n    x = torch.arange(4) + seed\n    return {arguments}\n"
    return f"{HEADER}@torch.jit.script\n{code}\n\n{inputs}"


def change(old: str, new: str, body: str, arguments: str) -> tuple[str, str]:
    code = "def f({}):\n    return {}\n"
    return module(code.format(old, body), arguments), module(code.format(new, body), arguments)


NET = """
class Sub(nn.Module):
    def forward(self, xs{kind}):
        return torch.cat(xs)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Sub()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        return self.sub([self.lin(x), x])

    @torch.jit.ignore
    def log(self, x):
        print(x)

net = torch.jit.script(Net())

def make_inputs(seed):
    return (torch.randn(2, 4, generator=torch.Generator().manual_seed(seed)),)
"""
LOOP = "def f({}):\n    for i in range(n):\n        x = x + i\n    return x\n"
HELPER = """
def branch(x):
    return x * 2 if {test} else x - 1

def gate(x):
    return branch(x)

traced = torch.jit.trace(gate, torch.ones(3))

def make_inputs(seed):
    return (torch.randn(3, generator=torch.Generator().manual_seed(seed)),)
"""

RIGHT = {
    "refused_when_compiled": (
        module(LOOP.format("x, n"), "x, seed"),
        module(LOOP.format("x, n: int"), "x, seed"),
    ),
    "refused_at_the_call": change("x, n", "x, n: int", "x.view(n, -1)", "x, 2"),
    "list": change("xs", "xs: List[Tensor]", "torch.stack(xs)", "([x, x],)"),
    "default": change("x, s=0.5", "x, s: float = 0.5", "x * s", "x,"),
    "none": change(
        "x, m: Tensor = None", "x, m: Optional[Tensor] = None", "x if m is None else x * m", "x,"
    ),
    "dict": change("d", "d: Dict[str, Tensor]", 'd["a"] + d["b"]', '{"d": {"a": x, "b": x}}'),
    "submodule": (HEADER + NET.format(kind=""), HEADER + NET.format(kind=": List[Tensor]")),
    "helper_of_a_traced_function": (
        HEADER + HELPER.format(test="<T>x.sum() > 0"),
        (HEADER + HELPER.format(test="x.sum() > 0")).replace(
            "def branch", "@torch.jit.script\ndef branch"
        ),
    ),
}
WRONG = {
    "int_for_a_float": change("x, s", "x, s: int", "x * s", "x, 2.7"),
    "float_for_an_int": change("x, n", "x, n: float", "x * n", "x, 3"),
    "tensor_for_a_list": change("xs", "xs: Tensor", "xs[0]", "([x, x],)"),
    "list_for_a_tensor": change("x, y", "x, y: List[Tensor]", "x + y[0]", "x, torch.stack([x, x])"),
    "str_for_an_int": change("x, n", "x, n: str", "x.sum(0)", "x, 3"),
    "required_none": change(
        "x, m: Optional[Tensor] = None", "x, m: Tensor = None", "x if m is None else x * m", "x,"
    ),
    "another_default": change("x, s=0.5", "x, s: int = 0", "x * s", "x,"),
    "bool_becomes_int": change("x, b", "x, b: int", "[b]", "x, True"),
}
UNHELPFUL = {
    "another_refused_at_the_call": change("x, n, m", "x, n: int, m", "x.view(n, m)", "x, 2, 2"),
    "another_refused_when_compiled": (
        module(LOOP.format("x, n, s=1"), "x, seed"),
        module(LOOP.format("x, n: int, s=1"), "x, seed"),
    ),
}


@pytest.fixture(scope="module")
def reports(prove):
    return prove({**RIGHT, **WRONG, **UNHELPFUL})


@pytest.mark.parametrize("name", RIGHT)
def test_an_annotation_that_agrees_with_python_is_verified(reports, name):
    assert reports[name].verdict is Verdict.VERIFIED, reports[name].reason


@pytest.mark.parametrize("name", WRONG)
def test_an_annotation_that_changes_the_result_is_refuted(reports, name):
    assert reports[name].verdict is Verdict.REFUTED, reports[name].reason


@pytest.mark.parametrize("name", UNHELPFUL)
def test_what_is_refused_as_before_is_not_verified(reports, name):
    assert reports[name].verdict is Verdict.UNVERIFIED


def test_a_refusal_is_counted_wherever_it_comes(reports):
    for name in ("refused_when_compiled", "refused_at_the_call", "submodule"):
        (entry,) = reports[name].entries
        assert len(entry.breaks_before) == 1, name
        assert entry.breaks_after == (), name


def test_both_forms_run(reports):
    assert "2 modes" in reports["list"].reason
