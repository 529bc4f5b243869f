"""`trace-baked-value` by kind: what a trace or a graph freezes, and what it does not.

`# baked` marks the lines that must be reported, and no other line may be. Each kind was
traced with torch 2.13 (or TensorFlow 2.21) and run on other inputs.
"""

import re
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from jitlint import engine, fixing, stages, verify
from jitlint.config import Settings
from jitlint.finding import Diagnostic, Severity, Verdict
from jitlint.rule import load_rules
from jitlint.source import read

RULE = "trace-baked-value"
TORCH = """
import copy
import math
import random
import time

import numpy as np
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

X = torch.rand(3, 4)


"""
TENSORFLOW = """
import itertools
import os
import random

import numpy as np
import tensorflow as tf
from tensorflow import keras


"""

TRACED = {
    "an item": "return x * x.sum().item()  # baked",
    "a list": "return x + sum(x.sum(0).tolist())  # baked",
    "a conversion": "return x * float(x.sum())  # baked",
    "math on a tensor": "return x * math.log(x.sum())  # baked",
    "a comparison of tensors": "same = torch.equal(x, y)  # baked\nreturn x * same",
    "NumPy": "return x + torch.as_tensor(np.tanh(x))  # baked",
    "NumPy by a method": "return x + torch.from_numpy(x.numpy())  # baked",
    "a length": "return x.sum(0) / len(x)  # baked",
    "a length that depends on data": "return x * len(torch.unique(x))  # baked",
    "math on a size": "return x / math.sqrt(x.shape[-1])  # baked",
    "NumPy on a size": "return x / np.sqrt(x.shape[-1]).item()  # baked",
    "a size as a number": "n = int(x.size(0))  # baked\nreturn x * n",
    "a half": "n = math.floor(x.shape[0] / 2)  # baked\nreturn x[:n]",
    "a range": "for i in range(x.shape[0]):  # baked\n    x = x + i\nreturn x",
    "a range of a name": ("n, m = x.shape\nreturn torch.stack([x[i] for i in range(n)])  # baked"),
    "sizes in a list": "return torch.tensor([x.shape[0], 2]) * 2  # baked",
    "sums in a list": "return torch.tensor([x.sum(), y.sum()])  # baked",
    "a loop over a tensor": "s = 0\nfor row in x:  # baked\n    s = s + row\nreturn s",
    "enumerated rows": "s = 0\nfor i, row in enumerate(x):  # baked\n    s = s + i * row\nreturn s",
    "a dtype": "return torch.zeros(2, dtype=x.dtype)  # baked",
    "a dtype by a name": "kind = x.dtype\nz = x.float()\nreturn z.to(kind)  # baked",
    "a cast": "return y.to(x.dtype)  # baked",
    "a cast like another": "return y.to(x)  # baked",
    "the limit of a dtype": "low = torch.finfo(x.dtype).min  # baked\nreturn x + low",
    "a branch on a dtype": "if x.dtype == torch.float64:  # baked\n    return x.float()\nreturn x",
    "a branch on a device": "if x.is_cpu:  # baked\n    return x + 1\nreturn x",
    "the data": "return x.data * 2  # baked",
    "a copy": "return copy.deepcopy(x) * 2  # baked",
    "no_grad": "with torch.no_grad():  # baked\n    z = x * 2\nreturn z",
    "a random number": "return x * random.random()  # baked",
    "a random number of NumPy": "return x * np.random.rand()  # baked",
    "a clock": "return x * time.time()  # baked",
    "a returned size": "return x.shape[0]  # baked",
    "returned sizes": "return x * 2, x.shape[1]  # baked",
}
RECORDED = {
    "sizes": "return x.sum(0) / x.shape[0] + x.view(x.size(0), -1).sum() + x.numel() + x.dim()",
    "arithmetic of sizes": "n = (x.shape[0] + 7) // 8 * 8 % 5 - abs(x.shape[1])\nreturn x * n",
    "a root": "return x / x.shape[-1] ** 0.5",
    "a product": "return x * math.prod(x.shape) + sum(x.shape)",
    "sizes for operators": "return x.expand(y.size()).view(y.shape[0], -1) + x.new_ones(x.shape)",
    "a size alone": "return x * torch.tensor(x.shape[0])",
    "a scalar in a tensor": "return x * torch.tensor(x.sum())",
    "a slice by a tensor": "return x[: y.sum().long()]",
    "likes": "return torch.zeros_like(x) + x.new_zeros(3, 4) + y.type_as(x)",
    "constants": "return torch.zeros(2, dtype=torch.float32, device='cpu') + math.sqrt(2)",
    "detach": "return x.detach() * 2",
    "autocast": "with torch.autocast('cpu', torch.bfloat16):\n    z = x @ x.T\nreturn z",
    "chunks": "a, b = x.chunk(2, -1)\nreturn a + b",
    "a checked dtype": "if x.dtype != torch.float32:\n    raise TypeError(x.dtype)\nreturn x",
    "an asserted dtype": "assert x.dtype == y.dtype\nreturn x",
    "a loop over a list": "for z in (x, y):\n    x = x + z\nreturn x",
    "a device of a function": "return torch.zeros(2, device=x.device)",
}
MODULES = {
    "state of the module": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(4))
                self.size = 4

            def forward(self, x):
                for i in range(self.weight.shape[0]):
                    x = x + i
                return x * len(self.weight) / math.sqrt(self.size)

        traced = torch.jit.trace(Net(), X)
    """,
    "a device": """
        class Net(nn.Module):
            def forward(self, x):
                return x + torch.zeros(4, device=x.device)  # baked

        traced = torch.jit.trace(Net(), X)
    """,
    "an attribute that is changed": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = 2.0

            def forward(self, x):
                return x * self.scale  # baked

        net = Net()
        traced = torch.jit.trace(net, X)
        before = net(X)
        net.scale = 3.0
    """,
    "an attribute that is set up": """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.scale = 2.0

            def forward(self, x):
                return x * self.scale

        net = Net()
        net.scale = 3.0
        traced = torch.jit.trace(net, X)
    """,
    "a decorator": """
        @torch.no_grad()  # baked
        def half(x):
            return x / 2

        traced = torch.jit.trace(half, X)
    """,
    "legacy ONNX": """
        class Net(nn.Module):
            def forward(self, x):
                return x / len(x)  # baked

        torch.onnx.export(Net().eval(), (X,), "net.onnx", dynamo=False)
    """,
    "a helper": """
        def size_of(x):
            return len(x)  # baked

        def f(x):
            return x * size_of(x)

        traced = torch.jit.trace(f, X)
    """,
    "make_fx": """
        def f(x):
            with torch.no_grad():  # baked
                z = x * 2
            return z.data + math.floor(x.shape[0] / 2)

        traced = make_fx(f, tracing_mode="symbolic")(X)
    """,
    "symbolic_trace": """
        def f(x):
            z = torch.zeros(2, dtype=x.dtype) + x.data / math.sqrt(x.shape[0])
            return z * random.random() + len(x)  # baked

        traced = torch.fx.symbolic_trace(f)
    """,
    "not traced": """
        def f(x):
            return x.data * x.sum().item() / len(x)

        print(f(X))
    """,
    "scripted": """
        @torch.jit.script
        def g(x):
            return x * float(x.sum())

        def f(x):
            return g(x)

        traced = torch.jit.trace(f, X)
    """,
}
GRAPHS = {
    "an attribute": """
        class Noise:
            def __init__(self, scale):
                self.scale = scale

            @tf.function
            def __call__(self, x):
                return x * self.scale  # baked

        def anneal(x):
            layer = Noise(2.0)
            layer(x)
            layer.scale = 0.0
    """,
    "an attribute with a setter": """
        class Noise:
            def __init__(self):
                self.scale = 1.0

            def set_scale(self, scale):
                self.scale = scale

            @tf.function
            def __call__(self, x):
                return x * self.scale  # baked
    """,
    "an attribute that decays in a loop": """
        class Step:
            def __init__(self):
                self.rate = 0.1

            @tf.function
            def run(self, w):
                return w * self.rate  # baked

        step = Step()
        for _ in range(3):
            step.rate = step.rate * 0.5
            step.run(tf.ones([2]))
    """,
    "an attribute that is built": """
        class Layer(tf.Module):
            def __init__(self):
                super().__init__()
                self.scale = 1.0

            def build(self, scale):
                self.scale = scale

            @tf.function
            def __call__(self, x):
                return x * self.scale

        def make(x):
            layer = Layer()
            layer.scale = 2.0
            return layer(x)
    """,
    "a global": """
        rate = 0.1

        @tf.function
        def update(w):
            return w * rate  # baked

        def set_rate(value):
            global rate
            rate = value
    """,
    "a tensor that is bound again": """
        weights = tf.constant([1.0, 2.0])

        @tf.function
        def f(x):
            return x * weights  # baked

        def load(values):
            global weights
            weights = values
    """,
    "an item of a table": """
        config = {"rate": 0.1}

        @tf.function
        def f(x):
            return x * config["rate"]  # baked

        def run(x):
            f(x)
            config["rate"] = 0.5
            return f(x)
    """,
    "a table that is filled": """
        table = {}

        def register(name, value):
            table[name] = value

        register("rate", 0.1)

        @tf.function
        def f(x):
            return x * table["rate"]
    """,
    "a flag that is set once": """
        class Layer(tf.Module):
            def __init__(self):
                super().__init__()
                self.ready = False

            def prepare(self):
                self.ready = True

            @tf.function
            def __call__(self, x):
                return x * 2 if self.ready else x
    """,
    "a global that stays": """
        rate = 0.1
        if os.path.exists("rate"):
            rate = 0.2

        @tf.function
        def update(w):
            return w * rate
    """,
    "a generator of numbers": """
        generator = np.random.default_rng(0)

        @tf.function
        def f(x):
            return x + generator.normal()  # baked
    """,
    "an iterator": """
        rates = itertools.cycle([0.1, 0.2])
        steps = iter([1.0, 2.0])

        @tf.function
        def f(x):
            return x * next(steps)  # baked
    """,
    "an iterator of a dataset": """
        batches = iter(tf.data.Dataset.range(3))

        @tf.function
        def f():
            return next(batches)
    """,
    "the environment": """
        @tf.function
        def f(x):
            if os.environ["MODE"] == "fast":  # baked
                return x
            return x * 2
    """,
    "random numbers of TensorFlow": """
        @tf.function
        def f(x):
            return x + tf.random.normal([2])
    """,
    "a mapped function": """
        def augment(x):
            return x * random.uniform(0.9, 1.1)  # baked

        data = tf.data.Dataset.from_tensors(1.0).map(augment)
    """,
    "a Keras layer": """
        class Jitter(keras.layers.Layer):
            def call(self, x):
                return x + np.random.normal(size=3)  # baked
    """,
    "XLA": """
        @tf.function(jit_compile=True)
        def f(x):
            return x * random.random()  # baked
    """,
}


def diagnostics(path: Path, source: str) -> list[Diagnostic]:
    path.write_text(source)
    settings = Settings(cache=False, select=(RULE,))
    found = engine.check([path], settings, load_rules())
    assert not found.problems
    return list(found.diagnostics)


def marked(source: str) -> list[int]:
    lines = source.splitlines()
    return [number for number, line in enumerate(lines, 1) if re.search(r"# baked$", line)]


def check(path: Path, source: str) -> None:
    found = [each for each in diagnostics(path, source) if each.severity is not Severity.NOTE]
    assert sorted({each.span.line for each in found}) == marked(source)
    assert all(each.no_fix_reason or each.fix_title for each in found)


def traced(body: str) -> str:
    function = "def f(x, y):\n" + textwrap.indent(body, "    ")
    return f"{TORCH}{function}\n\n\ntraced = torch.jit.trace(f, (X, X), check_trace=False)\n"


@pytest.mark.parametrize("body", TRACED.values(), ids=TRACED)
def test_a_trace_freezes(tmp_path, body):
    check(tmp_path / "module.py", traced(body))


@pytest.mark.parametrize("body", RECORDED.values(), ids=RECORDED)
def test_a_trace_records(tmp_path, body):
    check(tmp_path / "module.py", traced(body))


@pytest.mark.parametrize("source", MODULES.values(), ids=MODULES)
def test_where_and_by_which_tracer(tmp_path, source):
    check(tmp_path / "module.py", TORCH + textwrap.dedent(source))


@pytest.mark.parametrize("source", GRAPHS.values(), ids=GRAPHS)
def test_a_graph_keeps(tmp_path, source):
    check(tmp_path / "module.py", TENSORFLOW + textwrap.dedent(source))


# -- fixes ---------------------------------------------------------------------------------

REWRITES = {
    "return x.sum(0) / len(x)": "return x.sum(0) / x.shape[0]",
    "return x * len(x + y)": "return x * (x + y).shape[0]",
    "return x / math.sqrt(x.shape[-1])": "return x / x.shape[-1] ** 0.5",
    "return x * -math.sqrt(x.shape[-1])": "return x * -(x.shape[-1] ** 0.5)",
    "return x[: int(x.shape[0] / 2)]": "return x[: x.shape[0] // 2]",
    "return x * int(x.shape[0] / 2)": "return x * (x.shape[0] // 2)",
    "return x * int(x.size(0))": "return x * x.size(0)",
    "return torch.zeros(3, dtype=x.dtype, device=x.device)": "return x.new_zeros(3)",
    "return torch.full((2,), 0.5, device=x.device, dtype=torch.float64)": (
        "return x.new_full((2,), 0.5, dtype=torch.float64)"
    ),
    "return torch.ones(3, dtype=x.dtype, requires_grad=True)": (
        "return x.new_ones(3, requires_grad=True)"
    ),
    "return torch.rand(3, dtype=x.dtype, device=x.device)": "return x.new_empty(3).uniform_()",
    "return y.to(x.dtype)": "return y.type_as(x)",
    "return y.to(x)": "return y.type_as(x)",
    "return x.data * 2": "return x.detach() * 2",
    "return x * y.max().item()": "return x * y.max().detach()",
    "return float(y.max()) * x": "return y.max().detach() * x",
}
KEPT = {
    "sizes that differ": "return torch.zeros(3, dtype=x.dtype, device=y.device)",
    "a result that is given": "z = x * 1\nreturn torch.zeros(3, dtype=x.dtype, out=z)",
    "a seeded draw": "g = torch.Generator()\nreturn torch.rand(3, dtype=x.dtype, generator=g)",
    "no such method": "return torch.linspace(0, 1, 3, dtype=x.dtype)",
    "a number alone": "n = x.max().item()\nreturn x * n",
    "a division that does not round down": "return x * int(x.shape[0] * 0.7)",
    "a round trip by NumPy": "return x + torch.from_numpy(x.numpy())",
}


@pytest.fixture
def rewritten(tmp_path: Path) -> Callable[[str], str]:
    def after(source: str) -> str:
        path = tmp_path / "module.py"
        path.write_text(source)
        settings = Settings(cache=False, select=(RULE,), unsafe=True, verify=False)
        plan = fixing.plan([read(path)], settings, load_rules())
        return plan.files[0].new.decode() if plan.files else source

    return after


@pytest.mark.parametrize(("old", "new"), REWRITES.items(), ids=REWRITES)
def test_a_frozen_value_becomes_what_a_trace_records(rewritten, old, new):
    assert rewritten(traced(old)) == traced(new)


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT)
def test_no_fix_where_no_form_is_recorded(rewritten, body):
    assert rewritten(traced(body)) == traced(body)


SAFE = (
    "return torch.zeros(3, dtype=x.dtype, device=x.device)",
    "return y.to(x)",
    "return x.data * 2",
)


@pytest.mark.parametrize("body", REWRITES)
def test_only_the_same_eager_function_is_safe(tmp_path, body):
    (found,) = diagnostics(tmp_path / "module.py", traced(body))
    exact = body in SAFE or "device" in body
    assert found.fix_safety.value == ("safe" if exact else "unsafe")


WRONG = {
    "another size": ("x.sum(0) / len(x)", "x.sum(0) / x.shape[1]"),
    "another dtype": ("torch.zeros(3, dtype=x.dtype) + x.sum()", "torch.zeros(3) + x.sum()"),
    "another number": ("x * y.max().item()", "x * y.min().detach()"),
    "a gradient that was none": ("x.data * 2 + y", "x * 2 + y"),
    "a root that is none": ("x / math.sqrt(x.shape[-1])", "x / x.shape[-1]"),
}
INPUTS = """

def make_inputs(seed):
    torch.manual_seed(seed)
    kind = torch.float64 if seed % 2 else torch.float32
    x = torch.rand(2 + seed % 2, 3, dtype=kind, requires_grad=True)
    return x, torch.rand(2 + seed % 2, 3, dtype=kind)
"""


@pytest.mark.compiles
def test_planted_wrong_rewrites_are_refuted(tmp_path):
    pytest.importorskip("torch")
    requests = []
    for number, (old, new) in enumerate(WRONG.values()):
        path = tmp_path / f"case{number}.py"
        before, after = (traced(f"return {each}") + INPUTS for each in (old, new))
        path.write_text(before)
        requests.append(verify.Request(path, before.encode(), after.encode(), ()))
    reports = verify.verify(requests, verify.Options(device="cpu"), stages.silent)
    assert [each.verdict for each in reports] == [Verdict.REFUTED] * len(WRONG)
