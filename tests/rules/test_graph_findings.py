"""The tracing family in graphs of TensorFlow, by kind: reads, effects, branches, caches.

`# expect: rule` marks the lines that must be reported. Each kind was run with TensorFlow
2.21: it raises, or happens once for each trace.
"""

import re
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from jitlint import engine, fixing
from jitlint.config import Settings
from jitlint.finding import Severity
from jitlint.rule import load_rules
from jitlint.source import read

RULES = ("trace-branch", "trace-host-read", "trace-side-effect", "trace-unsupported-call")
HEADER = """
import functools
import logging
import math

import keras
import numpy as np
import tensorflow as tf

log = logging.getLogger("training")
history = []
cache = {}
total = 0


"""

CASES = {
    "a converted branch": """
        @tf.function
        def f(x):
            if tf.reduce_sum(x) > 0 and not tf.reduce_all(x > 5):
                return x
            else:
                return -x
    """,
    "a converted loop": """
        @tf.function(jit_compile=True)
        def f(x):
            while tf.reduce_sum(x) < 10:
                x = x * 2
            return sorted(x)[0] if 0 < tf.reduce_sum(x) < 9 else x[0]
    """,
    "what AutoGraph leaves to Python": """
        @tf.function
        def f(x):
            assert tf.reduce_all(x > 0)  # expect: trace-branch
            top = max(tf.reduce_sum(x), 1.0)  # expect: trace-branch
            rows = [r for r in tf.unstack(x) if r > 0]  # expect: trace-branch
            if any(x > 0):  # expect: trace-branch
                x = x + 1
            if tf.reduce_sum(x) in (1.0, 2.0):  # expect: trace-branch
                x = x + 1
            return x / top + len(rows)
    """,
    "builtins of numbers": """
        @tf.function
        def f(x):
            return x * max(2, 3) + min([1, 2]) + sum([tf.reduce_sum(x), tf.reduce_max(x)])
    """,
    "without AutoGraph": """
        @tf.function(autograph=False)
        def f(x):
            while tf.reduce_sum(x) < 10:  # expect: trace-branch
                x = x * 2
            return x if tf.reduce_max(x) > 3 else -x  # expect: trace-branch
    """,
    "a Keras layer": """
        class Gate(keras.layers.Layer):
            def call(self, x, training=False):
                if training:
                    x = x * 2
                if x.shape[-1] == 3:
                    x = x + 1
                return x if tf.reduce_mean(x) > 0 else -x  # expect: trace-branch

        class Own(keras.layers.Layer):
            @tf.function
            def call(self, x):
                return x if tf.reduce_mean(x) > 0 else -x
    """,
    "a structure of inputs": """
        class Merge(keras.layers.Layer):
            def call(self, inputs):
                if "left" in inputs:
                    return inputs["left"]
                return inputs["right"]
    """,
    "values of tensors": """
        @tf.function
        def f(x):
            a = x.numpy()  # expect: trace-host-read
            b = np.exp(x)  # expect: trace-host-read
            c = math.sqrt(tf.reduce_sum(x))  # expect: trace-host-read
            d = bool(tf.reduce_sum(x) > 0)  # expect: trace-host-read
            e = int(tf.reduce_sum(x)) + float(tf.reduce_sum(x))
            return a + b + c + d + e
    """,
    "conversions without AutoGraph": """
        class Scale(keras.layers.Layer):
            def call(self, x):
                return x * float(tf.reduce_sum(x))  # expect: trace-host-read
    """,
    "NumPy on what is no tensor": """
        @tf.function
        def f(x):
            size = np.prod([2, 3]) + np.sqrt(float(x.shape[-1])) + math.sqrt(2)
            return x * size * np.float32(2)

        def report(x):
            return np.mean(f(x).numpy())
    """,
    "a number that Python passes": """
        @tf.function
        def f(x, n):
            return x * np.sqrt(n)

        def run(x):
            return f(x, 3)
    """,
    "output": """
        @tf.function
        def f(x):
            print("loss", x)  # expect: trace-side-effect
            log.warning("step %s", x.shape)  # expect: trace-side-effect
            logging.info("step")  # expect: trace-side-effect
            tf.print(x)
            return x
    """,
    "state": """
        class Trainer:
            def __init__(self):
                self.calls = 0
                self.losses = []
                self.weight = None

            @tf.function
            def step(self, x):
                global total
                total += 1  # expect: trace-side-effect
                self.calls = self.calls + 1  # expect: trace-side-effect
                self.losses.append(x)  # expect: trace-side-effect
                cache["last"] = x  # expect: trace-side-effect
                history.append("step")  # expect: trace-side-effect
                if self.weight is None:
                    self.weight = tf.Variable(x)
                mine = []
                mine.append(x)
                return mine[0]
    """,
    "layers that are made once": """
        class Stack(keras.layers.Layer):
            def __init__(self):
                super().__init__()
                self.parts = []
                self.by_name = {}

            def call(self, x):
                if not self.parts:
                    self.parts.append(keras.layers.Dense(3))
                    self.by_name["first"] = self.parts[0]
                return self.parts[0](x)
    """,
    "a list of a loop": """
        @tf.function
        def f(x, n):
            outer, python = [], []
            for i in tf.range(n):
                inner = []
                inner.append(i)
                outer.append(x)  # expect: trace-side-effect
            for j in range(3):
                python.append(x)
            return tf.stack(python)
    """,
    "a cache": """
        @functools.lru_cache
        def table(n):
            return tf.range(n)

        @tf.function
        def f(x, n):
            return table(4)[0] + table(n)  # expect: trace-unsupported-call
    """,
    "a key": """
        @tf.function
        def f(x, kind="a"):
            table = {"a": 1.0, "b": 2.0}
            return table[kind] * table[x]  # expect: trace-unsupported-call
    """,
    "eager code": """
        def f(x):
            print("loss", float(x))
            history.append(x.numpy())
            return np.mean(x) if x > 0 else max(x, 1)
    """,
}


@pytest.mark.parametrize("source", CASES.values(), ids=CASES)
def test_a_graph(tmp_path: Path, source: str):
    path = tmp_path / "module.py"
    path.write_text(HEADER + textwrap.dedent(source))
    settings = Settings(cache=False, select=RULES)
    found = engine.check([path], settings, load_rules())
    assert not found.problems
    assert all(each.no_fix_reason or each.fix_title for each in found.diagnostics)
    marked = Counter(
        (number, match[1])
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (match := re.search(r"# expect: ([\w-]+)", line))
    )
    loud = [each for each in found.diagnostics if each.severity is not Severity.NOTE]
    assert Counter((each.span.line, each.rule) for each in loud) == marked


FIXES = {
    "x / max(tf.norm(x), 1.0)": "x / tf.maximum(tf.norm(x), 1.0)",
    "min(2.0, tf.norm(x))": "tf.minimum(2.0, tf.norm(x))",
    "tf.cast(all(x > 0), tf.float32)": "tf.cast(tf.reduce_all(x > 0), tf.float32)",
    "x - np.mean(x, 0)": "x - tf.stop_gradient(tf.experimental.numpy.mean(x, 0))",
}
KEPT = {
    "x / max(tf.norm(x), 1.0, 2.0)": "three values",
    "max(tf.unstack(x), key=abs)": "a key",
    "any(tf.unstack(x > 0))": "a list",
    "np.histogram(x)[0]": "no twin",
    "math.sqrt(tf.norm(x))": "a float of Python",
    "x.numpy()": "a value",
}


@pytest.mark.parametrize(("old", "new"), FIXES.items(), ids=FIXES)
def test_python_becomes_an_operator(tmp_path: Path, old: str, new: str):
    assert rewritten(tmp_path, old) == new


@pytest.mark.parametrize("old", KEPT, ids=KEPT.values())
def test_python_is_kept_where_no_operator_is_alike(tmp_path: Path, old: str):
    assert rewritten(tmp_path, old) == old


def rewritten(folder: Path, expression: str) -> str:
    before = f"{HEADER}@tf.function\ndef f(x):\n    return "
    path = folder / "module.py"
    path.write_text(before + expression + "\n")
    settings = Settings(cache=False, select=RULES, unsafe=True, verify=False)
    plan = fixing.plan([read(path)], settings, load_rules())
    assert not plan.problems
    return plan.files[0].new.decode().removeprefix(before).strip() if plan.files else expression


TRACED = {
    "output": """
        def f(x):
            print("sum", x.sum())  # expect: trace-side-effect
            return x
    """,
    "a counter": """
        class F(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.n = 0

            def forward(self, x):
                self.n += 1  # expect: trace-side-effect
                self.last = x
                return x * self.n

        f = F()
    """,
    "a buffer that is assigned": """
        class F(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("n", torch.zeros(1))

            def forward(self, x):
                self.n = self.n + 1  # expect: trace-side-effect
                return x + self.n

        f = F()
    """,
    "a buffer that is written": """
        class F(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("n", torch.zeros(1))

            def forward(self, x):
                self.n += 1
                self.n.add_(1)
                return x + self.n

        f = F()
    """,
}


@pytest.mark.parametrize("source", TRACED.values(), ids=TRACED)
def test_a_trace(tmp_path: Path, source: str):
    end = "\ntraced = torch.jit.trace(f, torch.ones(3))\n"
    test_a_graph(tmp_path, "import torch\n\n\n" + textwrap.dedent(source) + end)
