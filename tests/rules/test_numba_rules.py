"""What the rules about kernels say, and what their fixes write."""

import textwrap
from pathlib import Path

import pytest
from jitlint_rules.numba._arguments import CONSTANTS

from jitlint import engine, fixing
from jitlint.config import Settings
from jitlint.finding import Diagnostic, Safety, Severity
from jitlint.rule import load_rules
from jitlint.source import read

HEAD = "import numpy as np\nimport torch\nfrom numba import njit, vectorize\n\n\n"
KERNELS = """
    @njit
    def total(x):
        s = 0.0
        for v in x.flat:
            s += v
        return s

    @njit
    def clip(x, limit):
        row = x[0]
        row[0] = limit

    @njit
    def above(values, limit):
        return (values > limit).sum()

"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "module.py"


def text_of(body: str) -> str:
    return HEAD + textwrap.dedent(KERNELS) + textwrap.dedent(body)


def found(path: Path, body: str, rule: str) -> list[Diagnostic]:
    path.write_text(text_of(body))
    settings = Settings(cache=False, select=(rule,))
    return list(engine.check([path], settings, load_rules()).diagnostics)


def rewritten(path: Path, body: str, rule: str) -> str:
    path.write_text(text_of(body))
    settings = Settings(cache=False, select=(rule,), unsafe=True, verify=False)
    plan = fixing.plan([read(path)], settings, load_rules())
    assert not plan.problems
    return plan.files[0].new.decode()


ARGUMENTS = {
    "of any device": ("def f(x: torch.Tensor):\n    total(x)", "total(x.cpu().numpy())"),
    "made here": ("def f():\n    total(torch.ones(3))", "total(torch.ones(3).numpy())"),
    "of bfloat16": (
        "def f(x: torch.Tensor):\n    total(x.to(torch.bfloat16))",
        "total(x.to(torch.bfloat16).float().cpu().numpy())",
    ),
    "a size": ("def f(x: torch.Tensor):\n    total(x.shape[1:])", "total(tuple(x.shape[1:]))"),
    "a number": (
        "def f(x: np.ndarray):\n    above(x, torch.tensor(x).max())",
        "above(x, torch.tensor(x).max().item())",
    ),
    "written": ("def f(x: torch.Tensor):\n    clip(x, 1.0)", "clip(x.numpy(), 1.0)"),
    "an operation": (
        "def f(x: torch.Tensor):\n    total(x + 1)",
        "total((x + 1).cpu().numpy())",
    ),
    "of TensorFlow": (
        "import tensorflow as tf\ndef f(x: tf.Tensor):\n    total(x)",
        "total(x.numpy())",
    ),
    "a parameter without gradients": (
        "@torch.no_grad()\ndef f(layer: torch.nn.Linear):\n    total(layer.weight)",
        "total(layer.weight.cpu().numpy())",
    ),
    "of a layer, made without gradients": (
        "def f(net: torch.nn.Linear, x):\n    with torch.no_grad():\n        y = net(x)\n"
        "    total(y)",
        "total(y.cpu().numpy())",
    ),
    "of a layer, in a function without gradients": (
        "@torch.no_grad()\ndef g(net: torch.nn.Linear, x):\n    return net(x)\n"
        "def f(net: torch.nn.Linear, x):\n    total(g(net, x))",
        "total(g(net, x).cpu().numpy())",
    ),
    "a batch of a loader": (
        "from torch.utils.data import DataLoader, TensorDataset\n"
        "def f(x: torch.Tensor, y: torch.Tensor):\n"
        "    for row, _ in DataLoader(TensorDataset(x, y), batch_size=2):\n        total(row)",
        "total(row.numpy())",
    ),
    "a weight of a state": (
        "def f():\n    total(torch.nn.Linear(3, 1).state_dict()['bias'])",
        "total(torch.nn.Linear(3, 1).state_dict()['bias'].cpu().numpy())",
    ),
    "a list": (
        "def f(xs: list[torch.Tensor]):\n    total(xs)",
        "total([each.cpu().numpy() for each in xs])",
    ),
}


@pytest.mark.parametrize(("body", "call"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_the_bridge_fits_the_tensor(path, body, call):
    assert call in rewritten(path, body, "numba-tensor-argument")


WITHHELD = {
    "requires a gradient": "def f(layer: torch.nn.Linear):\n    total(layer.weight)",
    "the tensor requires": "def f(x: torch.Tensor):\n    x.requires_grad_()\n    total(x)",
    "detach it": "def f(x: torch.Tensor):\n    x.requires_grad = True\n    total(x * 2)",
    "or call under torch.no_grad()": (
        "def f(x: torch.Tensor):\n    with torch.no_grad(), torch.enable_grad():\n"
        "        total(x * torch.nn.Parameter(torch.ones(3)))"
    ),
    "which ends in a kernel": "def f(net: torch.nn.Linear, x):\n    y = net(x)\n    total(y[0])",
    "a sparse tensor has no array": "def f(x: torch.Tensor):\n    total(x.to_sparse_csr())",
    "the write into a copy would be lost": "def f(x: torch.Tensor):\n    clip(x.half(), 1.0)",
    "is not written in the call": "def f(x: torch.Tensor):\n    list(map(total, [x, x]))",
    "the kernel is passed in": (
        "def run(f, x):\n    return f(x)\n"
        "def f(x: torch.Tensor):\n    run(total, x), run(torch.relu, x)"
    ),
    "may be None": "def f(x: torch.Tensor | None = None):\n    total(x)",
    "a GradientTape records": (
        "import tensorflow as tf\ndef f(x: tf.Tensor):\n"
        "    with tf.GradientTape() as tape:\n        total(x)"
    ),
}


@pytest.mark.parametrize("reason", WITHHELD)
def test_a_fix_is_withheld_and_says_why(path, reason):
    (only,) = found(path, WITHHELD[reason], "numba-tensor-argument")
    assert only.fix_safety is None
    assert reason in (only.no_fix_reason or "")


@pytest.mark.parametrize(
    ("around", "safety"),
    {
        "try:\n        {}\n    except Exception:\n        pass": Safety.UNSAFE,
        "with contextlib.suppress(Exception):\n        {}": Safety.UNSAFE,
        "try:\n        {}\n    finally:\n        pass": Safety.SAFE,
        "try:\n        pass\n    except ValueError:\n        {}": Safety.SAFE,
        "with torch.no_grad():\n        {}": Safety.SAFE,
    }.items(),
)
def test_a_fix_is_unsafe_where_the_error_may_be_caught(path, around, safety):
    body = "import contextlib\ndef f(x: torch.Tensor):\n    " + around.format("total(x)")
    (only,) = found(path, body, "numba-tensor-argument")
    assert only.fix_safety is safety


@pytest.mark.parametrize("name", sorted(CONSTANTS))
def test_numba_has_no_type_for_the_constants(name):
    value = getattr(pytest.importorskip("torch"), name.removeprefix("torch."))
    with pytest.raises(ValueError, match="Cannot determine Numba type"):
        pytest.importorskip("numba").typeof(value)


REBOUND = {
    "a parameter": "x = x[1:]\n    return x * 2",
    "a parameter by a loop": "for x in [x[1:]]:\n        pass\n    return x * 2",
    "a parameter in a tuple": "x, n = x[1:], 1\n    return x * 2",
    "a parameter by a walrus": "if (x := x[1:]).size:\n        pass\n    return x * 2",
    "the result": "out = np.zeros_like(x)\n    for out in [x[1:]]:\n        pass\n    return out",
}


@pytest.mark.parametrize("body", REBOUND.values(), ids=REBOUND)
def test_no_operator_is_written_for_what_is_bound_again(path, body):
    calling = "@torch.compile\ndef f(x):\n    return torch.from_numpy(kernel(x.numpy()))\n"
    text = f"@njit\ndef kernel(x):\n    {body}\n\n{calling}"
    assert "custom_op" not in rewritten(path, text, "numba-in-graph")


def test_a_ufunc_with_signatures_gets_a_note(path):
    body = """
        @vectorize(["float32(float32)"])
        def twice(v):
            return v * 2

        def f(x: torch.Tensor):
            return twice(x)
        """
    (only,) = found(path, body, "numba-tensor-argument")
    assert only.severity is Severity.NOTE


def test_kernels_of_other_files_are_followed(path):
    (path.parent / "kernels.py").write_text(
        "import numba as nb\nfrom functools import partial\n"
        "fast = partial(nb.njit, fastmath=True)\n\n@fast()\ndef first(x):\n    return x[0]\n"
    )
    body = "import kernels as k\n\ndef f(x: torch.Tensor):\n    return k.first(x)\n"
    assert len(found(path, body, "numba-tensor-argument")) == 1


def test_an_unknown_function_gives_no_tensor(path):
    body = "def f(x: torch.Tensor, g):\n    return total(g(x)), total(x.tolist()), total(g)\n"
    assert not found(path, body, "numba-tensor-argument")


def test_constants_may_pass_through_an_export(path):
    body = """
        @njit
        def size(n):
            return n * 2

        class Net(torch.nn.Module):
            def forward(self, x):
                return x[: size(2)]

        program = torch.export.export(Net(), (torch.ones(8),))
        """
    assert not found(path, body, "numba-in-graph")


def test_an_operator_is_written_once(path):
    body = """
        @njit
        def doubled(x):
            out = np.empty_like(x)
            for i in range(x.shape[0]):
                out[i] = x[i] * 2
            return out

        @torch.compile
        def f(x):
            return torch.from_numpy(doubled(x.numpy())) + torch.from_numpy(doubled(x.numpy()))
        """
    new = rewritten(path, body, "numba-in-graph")
    assert "return doubled_op(x) + doubled_op(x)" in new
    assert new.count("custom_op(") == 1
