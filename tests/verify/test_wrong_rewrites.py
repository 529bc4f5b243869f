"""Every way in which a rewrite can be wrong is found, each on its own."""

import pytest

from jitlint.finding import Verdict

pytestmark = pytest.mark.compiles

HEAD = """
import torch
from torch import nn

def make_inputs(seed):
    x = torch.randn(4, generator=torch.Generator().manual_seed(seed))
    return (x + (1.0 if seed % 2 else -1.0),)

"""
GRAD = HEAD.replace("return (x +", "x = (x +").replace("-1.0),)", "-1.0))").rstrip("\n") + (
    "\n    return (x.requires_grad_(),)\n\n"
)


def step(body: str, head: str = HEAD) -> str:
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return f"{head}@torch.compile\ndef step(x):\n{lines}\n"


BRANCH = """
if <T>x.sum() > 0:
    return x * 3
return x.abs()
"""

CASES = {
    "swapped_arms": (
        step(BRANCH),
        step("return torch.where(x.sum() > 0, x.abs(), x * 3)"),
        "step, seed 0 (eager, not compiled): output",
    ),
    "lost_gradient": (
        step(BRANCH, GRAD),
        step("return torch.where(x.sum() > 0, x * 3, x.abs()) + (x - x.detach()) * 2", GRAD),
        "gradient: gradient of input[0][0]",
    ),
    "detached": (
        step(BRANCH, GRAD),
        step("return torch.where(x.sum() > 0, x * 3, x.abs()).detach()", GRAD),
        "output: output: requires_grad True became False",
    ),
    "dropped_exception": (
        step("if <T>x.sum() > 0:\n    raise RuntimeError('too large')\nreturn x + 1"),
        step("return x + 1"),
        "exception: RuntimeError: too large became no exception",
    ),
    "changed_exception_type": (
        step("if <T>x.sum() > 0:\n    raise ValueError('too large')\nreturn x + 1"),
        step("torch._assert_async(torch.logical_not(x.sum() > 0), 'too large')\nreturn x + 1"),
        "exception: ValueError: too large became RuntimeError: too large",
    ),
    "changed_message": (
        step("if <T>x.sum() > 0:\n    raise RuntimeError('too large')\nreturn x + 1"),
        step("torch._assert_async(torch.logical_not(x.sum() > 0), 'too big')\nreturn x + 1"),
        "exception: RuntimeError: too large became RuntimeError: too big",
    ),
    "changed_dtype": (
        step("if <T>x.sum() > 0:\n    return torch.ones(4)\nreturn torch.zeros(4)"),
        step("return (x.sum() > 0).double().expand(4).clone()"),
        "output: output: dtype torch.float32 became torch.float64",
    ),
    "gradient_of_the_untaken_arm": (
        step("if <T>x.min() > 0:\n    return x.sqrt()\nreturn x * 2", GRAD),
        step("return torch.where(x.min() > 0, x.sqrt(), x * 2)", GRAD),
        "gradient: gradient of input[0][0]",
    ),
    "none_gradient_became_zero": (
        GRAD.replace("return (x", "return (x.clone().requires_grad_(), x")
        + "@torch.compile\ndef step(y, x):\n    if <T>x.sum() > 0:\n        return x * 2\n"
        "    return y * 3\n",
        GRAD.replace("return (x", "return (x.clone().requires_grad_(), x")
        + "@torch.compile\ndef step(y, x):\n    return torch.where(x.sum() > 0, x * 2, y * 3)\n",
        "None became torch.float32",
    ),
    "requires_grad_changed": (
        step("if <T>x.sum() > 0:\n    return x * 2\nreturn torch.ones(4)", GRAD),
        step("return torch.where(x.sum() > 0, x * 2, torch.ones(4))", GRAD),
        "output: output: requires_grad False became True",
    ),
    "alias_became_a_copy": (
        step("if <T>x.sum() > 0:\n    x = x * 2\nreturn x"),
        step("return torch.where(x.sum() > 0, x * 2, x)"),
        "aliasing: output: 'is input[0][0]' became 'new memory'",
    ),
    "lost_mutation": (
        step("if <T>x.sum() > 0:\n    x.mul_(2)\nreturn x + 1"),
        step("x = torch.where(x.sum() > 0, x * 2, x)\nreturn x + 1"),
        "mutation: input[0][0]",
    ),
    "lost_buffer_update": (
        HEAD + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('mean', torch.zeros(4))\n    def forward(self, x):\n"
        "        if <T>x.sum() > 0:\n            self.mean.copy_(x)\n        return x + 1\n"
        "net = torch.compile(Net())\n",
        HEAD + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('mean', torch.zeros(4))\n    def forward(self, x):\n"
        "        return x + 1\nnet = torch.compile(Net())\n",
        "mutation: mean",
    ),
    "lost_gradient_of_a_global_module": (
        HEAD + "net = nn.Linear(4, 4)\n" + step("return net(x) * 2", ""),
        HEAD + "net = nn.Linear(4, 4)\n" + step("return net(x) + net(x).detach()", ""),
        "gradient: gradient of net.weight",
    ),
    "lost_append_to_a_global_list": (
        HEAD + "SEEN = []\n" + step("SEEN.append(1)\nreturn x + 1", ""),
        HEAD + "SEEN = []\n" + step("return x + 1", ""),
        "mutation: global SEEN",
    ),
    "random_stream_changed": (
        step("if <T>x.sum() > 0:\n    return x + torch.rand(4)\nreturn x + 1"),
        step("noise = torch.rand(4)\nreturn torch.where(x.sum() > 0, x + noise, x + 1)"),
        "random number stream: the state of torch's generator differs",
    ),
    "printed_text_changed": (
        step("y = x + 1\nprint('step')\nreturn y"),
        step("y = x + 1\nreturn y"),
        "printed text: 'step\\n' became ''",
    ),
    "lost_warning": (
        "import warnings\n" + step("warnings.warn('old')\nreturn x + 1"),
        step("return x + 1"),
        "printed text: 'UserWarning: old\\n' became ''",
    ),
    "assertion_without_a_message": (
        step(
            "if <T>x.sum() > 0:\n"
            "    raise RuntimeError('Expected Tensor with single nonzero value, but got zero')\n"
            "return x + 1"
        ),
        step("torch._assert_async(torch.logical_not(x.sum() > 0))\nreturn x + 1"),
        "(aot_eager): exception: RuntimeError: Expected Tensor with single nonzero value, "
        "but got zero became no exception",
    ),
    "wrong_only_on_nan": (
        step("if <T>x.sum() > 0:\n    return x * 3\nreturn x + 1"),
        step("return torch.where(x.sum() <= 0, x + 1, x * 3)"),
        "step, seed 0 with one NaN (eager, not compiled): output",
    ),
    "mask_times_nan": (
        step("return x[x > 0].sum()"),
        step("return (x * (x > 0)).sum()"),
        "NaN",
    ),
    "wrong_only_on_empty": (
        step("if <T>x.sum() > 0:\n    return x.sum() / 2\nreturn x.sum()"),
        step("return torch.where(x.sum() > 0, x.sum() / 2, x.mean() * x.numel())"),
        "empty leading dimension",
    ),
    "index_that_aot_refuses": (
        HEAD.replace("return (x", "return (torch.tensor(seed % 3), x")
        + "@torch.compile\ndef step(i, x):\n    return [x, x + 1, x + 2][i] * 2\n",
        HEAD.replace("return (x", "return (torch.tensor(seed % 3), x")
        + "@torch.compile\ndef step(i, x):\n    return torch.stack([x, x + 1, x + 2])[i] * 2\n",
        "(aot_eager): a rewritten line breaks the graph: GB0219",
    ),
    "counter_buffer_that_aot_differentiates_wrongly": (
        GRAD + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.n = 0\n    def forward(self, x):\n        self.n += 1\n"
        "        return x * self.n\nnet = torch.compile(Net())\n",
        GRAD + "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('n', torch.zeros((), dtype=torch.int64))\n"
        "    def forward(self, x):\n        self.n.add_(1)\n        return x * self.n\n"
        "net = torch.compile(Net())\n",
        "(aot_eager): gradient",
    ),
    "added_break": (
        step("if <T>x.sum() > 0:\n    return x * 3\nreturn x + 1"),
        step("import gc\ngc.collect()\nreturn torch.where(x.sum() > 0, x * 3, x + 1)"),
        "breaks the graph",
    ),
    "old_spelling_of_compile": (
        HEAD + "import torch._dynamo\n@torch._dynamo.optimize()\ndef step(x):\n    return x * 2\n",
        HEAD + "import torch._dynamo\n@torch._dynamo.optimize()\ndef step(x):\n    return x * 3\n",
        "step, seed 0",
    ),
    "does_not_load": (step(BRANCH), "import torch\nprint(undefined)\n", "NameError"),
}


@pytest.fixture(scope="module")
def reports(prove):
    return prove({name: (old, new) for name, (old, new, _) in CASES.items()})


@pytest.mark.parametrize("name", CASES)
def test_wrong_rewrite_is_refuted(name, reports):
    report = reports[name]
    assert report.verdict is Verdict.REFUTED, report.reason
    assert CASES[name][2] in (report.counterexample or ""), report.counterexample
