"""`shape-pin` by kind: where a graph needs a dimension that nobody pins, and where not.

`# pin` marks the lines that must be reported, and no other line may be. Each marked kind
was run with TensorFlow 2.21 (or torch 2.13), and raises or is compiled again as reported.
"""

import re
import textwrap
from pathlib import Path

import pytest

from jitlint import engine, fixing
from jitlint.config import Settings
from jitlint.finding import Diagnostic, Safety, Severity
from jitlint.rule import load_rules
from jitlint.source import read

HEADER = """
import numpy as np
import tensorflow as tf
from tensorflow import keras

dense = keras.layers.Dense(4)
OPEN = [tf.TensorSpec([None, 5], tf.float32)]
"""

PINS = {
    "a loop over an open size": """
        @tf.function(input_signature=OPEN)
        def f(x):
            for i in range(x.shape[0]):  # pin
                tf.print(i)
    """,
    "an unbuilt layer": """
        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32)])
        def f(x):
            return dense(x)  # pin
    """,
    "Python arithmetic": """
        @tf.function(input_signature=(tf.TensorSpec((None, 5)),))
        def f(x):
            half = x.shape[0] // 2  # pin
            return x[:half]
    """,
    "a cast": """
        @tf.function(input_signature=OPEN)
        def f(x):
            return x / tf.cast(x.shape[0], tf.float32)  # pin
    """,
    "unstack": """
        @tf.function(input_signature=OPEN)
        def f(x):
            return tf.unstack(x)[0]  # pin
    """,
    "unpacked sizes": """
        @tf.function(input_signature=OPEN)
        def f(x):
            batch, width = x.shape
            return x + tf.zeros((batch, width))  # pin
    """,
    "a list of sizes": """
        @tf.function(input_signature=OPEN)
        def f(x):
            size = x.get_shape().as_list()
            return tf.fill([size[0], 2], 0.0)  # pin
    """,
    "a helper": """
        def helper(v):
            return tf.ones(v.shape)  # pin

        @tf.function(input_signature=OPEN)
        def f(x):
            return helper(x) + x
    """,
    "a product of sizes": """
        @tf.function(input_signature=OPEN)
        def f(x):
            return tf.reshape(x, [np.prod(x.shape)])  # pin
    """,
    "relaxed shapes": """
        @tf.function(reduce_retracing=True)
        def f(x):
            return tf.reduce_sum(x, axis=0) / x.shape[0]  # pin
    """,
    "without AutoGraph": """
        @tf.function(autograph=False, input_signature=OPEN)
        def f(x):
            return tf.zeros([x.shape[0], 2])  # pin
    """,
    "a Keras layer": """
        class Positions(tf.keras.Model):
            def call(self, inputs):
                return inputs + tf.cast(tf.range(inputs.shape[0]), tf.float32)  # pin
    """,
    "a Keras layer of two inputs": """
        class Sampling(keras.layers.Layer):
            def call(self, inputs):
                mean, deviation = inputs
                return mean + deviation * tf.random.normal(mean.shape)  # pin
    """,
    "a kernel before a layer": """
        @tf.function
        def f(x):
            y = tf.py_function(np.sin, [x], tf.float32)  # pin
            return dense(tf.nn.relu(y) * 2)
    """,
    "a kernel before a model": """
        model = keras.Sequential([keras.layers.ReLU(), keras.layers.Dense(4)])

        @tf.function
        def f(x):
            return model(tf.numpy_function(np.sin, [x], tf.float32))  # pin
    """,
    "two results of a kernel": """
        def twice(v):
            return v, v

        @tf.function
        def f(x):
            y, z = tf.numpy_function(twice, [x], [tf.float32, tf.float32])  # pin
            return tf.unstack(y)[0] + z
    """,
    "sizes of a kernel's result": """
        @tf.function
        def f(x):
            y = tf.numpy_function(np.sin, inp=[x], Tout=tf.float32)  # pin
            rows, columns = y.shape
            return y
    """,
    "a decoded image": """
        def decode(path):
            image = tf.io.decode_image(tf.io.read_file(path))  # pin
            return tf.image.resize(image, [8, 8])

        files = tf.data.Dataset.list_files("*.png").map(decode)
    """,
    "a generator": """
        def windows():
            yield np.zeros(8, np.float32)

        source = tf.data.Dataset.from_generator(windows, output_types=tf.float32)  # pin
        halves = source.shuffle(8).map(lambda v: v[: v.shape[0] // 2])
    """,
    "a dataset that a model is fitted on": """
        def load(path):
            return np.zeros((8, 8, 3), np.float32)

        def read(path, label):
            return tf.py_function(load, [path], tf.float32), label  # pin

        data = tf.data.Dataset.from_tensor_slices((["a"], [0])).map(read).batch(2)
        keras.Sequential([keras.layers.Conv2D(3, 3)]).fit(data)
    """,
    "a function of a Lambda layer": """
        scaled = keras.layers.Lambda(lambda v: v / v.shape[0])  # pin
    """,
    "a size that keras.Input leaves open": """
        class Positions(keras.layers.Layer):
            def call(self, x):
                steps = tf.range(x.shape[1], dtype=tf.float32)  # pin
                return x + tf.reshape(steps, [1, -1, 1])

        Positions()(keras.Input((None, 4)))
    """,
    "a loss": """
        def mean_error(truth, guess):
            return tf.reduce_sum(truth - guess) / truth.shape[0]  # pin

        keras.Sequential([dense]).compile("sgd", loss=mean_error)
    """,
    "a metric of a fused model": """
        def mean_error(truth, guess):
            return tf.reduce_sum(truth - guess) / truth.shape[0]  # pin

        keras.Sequential([dense]).compile("sgd", metrics=[mean_error], jit_compile=True)
    """,
    "a kernel in a function that is mapped": """
        @tf.function
        def f(x):
            y = tf.map_fn(lambda row: tf.numpy_function(np.sin, [row], tf.float32), x)  # pin
            return dense(y)
    """,
    "a kernel in one branch": """
        @tf.function
        def f(x):
            y = tf.cond(
                tf.reduce_sum(x) > 0,
                lambda: tf.numpy_function(np.sin, [x], tf.float32),  # pin
                lambda: x,
            )
            return y.shape[0] + 1
    """,
    "a tensor that was serialized": """
        @tf.function
        def f(text):
            y = tf.io.parse_tensor(text, tf.float32)  # pin
            return dense(y)
    """,
    "a pin that is not used": """
        @tf.function
        def f(x):
            tf.ensure_shape(x, [None, 4])  # pin
            return dense(x)
    """,
    "a bound for the size of a mask": """
        @tf.function(jit_compile=True)
        def f(x):
            return tf.ensure_shape(x[x > 0], [3])  # pin
    """,
    "a batch that varies under XLA": """
        @tf.function(jit_compile=True)
        def f(x):
            return tf.reduce_mean(x, axis=1)

        def serve(largest):
            return [f(tf.ones([n, 4])) for n in range(1, largest)]  # pin
    """,
    "a signature does not help XLA": """
        @tf.function(jit_compile=True, input_signature=OPEN)
        def f(x):
            return tf.reduce_mean(x, axis=1)

        def serve():
            for n in (1, 2, 3):
                f(np.ones((n, 5)))  # pin
    """,
    "prefixes of three sizes, made a tensor": """
        rows = np.ones((64, 4), np.float32)

        @tf.function(jit_compile=True)
        def f(x):
            return tf.reduce_mean(x, axis=1)

        def serve():
            for n in (7, 13, 32):
                f(tf.constant(rows[:n]))  # pin
            for x in [rows[:4], rows[:9], rows[:16]]:
                f(x)  # pin
    """,
    "a sequence that grows": """
        @tf.function
        def score(tokens):
            return tf.reduce_sum(tokens)

        def generate(tokens, steps):
            for _ in range(steps):
                best = score(tokens)  # pin
                tokens = tf.concat([tokens, [best]], axis=0)
            return tokens
    """,
    "prefixes": """
        @tf.function
        def score(tokens):
            return tf.reduce_sum(tokens)

        def prefixes(series):
            return [score(series[:n]) for n in range(1, 9)]  # pin
    """,
    "a loop in the graph that grows": """
        @tf.function
        def f(x, rounds):
            for _ in tf.range(rounds):
                x = tf.concat([x, x], axis=0)  # pin
            return x
    """,
    "an exported program": """
        import torch

        example = torch.randn(2, 4)
        program = torch.export.export(torch.nn.Linear(4, 2), args=(example,))  # pin
        run = program.module()
        print(run(torch.randn(8, 4)))
    """,
}

SILENT = {
    "the kernel's result is pinned": """
        @tf.function
        def f(x):
            y = tf.numpy_function(np.sin, [x], tf.float32)
            y.set_shape(x.shape)
            return dense(y)
    """,
    "a size that keras.Input gives": """
        class Positions(keras.layers.Layer):
            def call(self, x):
                steps = tf.range(x.shape[1], dtype=tf.float32)
                return x + tf.reshape(steps, [1, -1, 1])

        Positions()(keras.Input((8, 4)))
    """,
    "None where None is taken": """
        @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
        def f(lengths):
            return tf.sequence_mask(lengths, lengths.shape[0])
    """,
    "batches that a model predicts": """
        def read(row):
            return tf.py_function(np.sin, [row], tf.float32)

        data = tf.data.Dataset.from_tensor_slices(np.ones((2, 4), np.float32)).map(read)
        keras.Sequential([dense]).predict(data.batch(2))
    """,
    "a loop over the kernel's result": """
        @tf.function
        def f(x):
            total = 0.0
            for row in tf.numpy_function(np.sin, [x], tf.float32):
                total += tf.reduce_sum(row)
            return total
    """,
    "a loss of static sizes": """
        def error(truth, guess):
            return tf.reduce_sum(truth - guess) / truth.shape[1]

        keras.Sequential([dense]).compile("sgd", loss=error)
        print(error(tf.ones([2, 2]), tf.ones([2, 2])))
    """,
    "the kernel's result is reshaped": """
        @tf.function
        def f(x):
            return dense(tf.reshape(tf.py_function(np.sin, [x], tf.float32), [-1, 4]))
    """,
    "a size that may be None where None is taken": """
        @tf.function
        def f(x):
            y = tf.numpy_function(np.sin, [x], tf.float32)
            return tf.ensure_shape(y, y.shape)[: y.shape[0]]
    """,
    "a default for None": """
        @tf.function(input_signature=OPEN)
        def f(x):
            return tf.reshape(x, [x.shape[0] or tf.shape(x)[0], 5])
    """,
    "prefixes of one size": """
        rows = np.ones((64, 4), np.float32)

        @tf.function(jit_compile=True)
        def f(x):
            return tf.reduce_mean(x, axis=1)

        def serve(batches):
            for x in [rows[:8], rows[:8], rows[:8]]:
                f(tf.constant(x))
    """,
    "two sizes": """
        @tf.function
        def f(x):
            return x * 2

        def warm(x):
            return f(x)

        warm(tf.ones([1, 4]))
        warm(tf.ones([32, 4]))
    """,
    "scalars of a schedule": """
        @tf.function
        def f(x, rate):
            return tf.reduce_sum(x) * rate

        def epoch(x, rates):
            for rate in rates:
                f(x, tf.constant(rate))
    """,
    "rows of which nothing is known": """
        @tf.function
        def f(x):
            return x * 2

        def each(items):
            return [f(tf.constant(item)) for item in items]
    """,
    "the other dimensions of a Keras input": """
        class Heads(keras.layers.Layer):
            def call(self, x):
                return tf.reshape(x, [-1, x.shape[1] * 2, x.shape[-1] // 2])
    """,
    "an exported program with its own size": """
        import torch

        program = torch.export.export(torch.nn.Linear(4, 2), (torch.ones(1, 4),))
        print(program.module()(torch.zeros(1, 4)))
    """,
    "eager code": """
        def f(x):
            y = tf.py_function(np.sin, [x], tf.float32)
            return tf.zeros([y.shape[0], 2]), dense(y)
    """,
}


def check(folder: Path, source: str) -> list[Diagnostic]:
    path = folder / "module.py"
    path.write_text(HEADER + textwrap.dedent(source))
    settings = Settings(root=folder, cache=False, select=("shape-pin",))
    found = engine.check([path], settings, load_rules())
    assert not found.problems
    return [each for each in found.diagnostics if each.severity is not Severity.NOTE]


def fixed(folder: Path, source: str) -> str:
    path = folder / "module.py"
    path.write_text(HEADER + textwrap.dedent(source))
    settings = Settings(cache=False, select=("shape-pin",), unsafe=True, verify=False)
    plan = fixing.plan([read(path)], settings, load_rules())
    assert not plan.problems
    return plan.files[0].new.decode()


@pytest.mark.parametrize("name", PINS)
def test_a_size_that_nobody_pins_is_reported(name, tmp_path):
    text = HEADER + textwrap.dedent(PINS[name])
    marked = {n for n, line in enumerate(text.splitlines(), 1) if re.search("# pin", line)}
    assert {each.span.line for each in check(tmp_path, PINS[name])} == marked


@pytest.mark.parametrize("name", SILENT)
def test_a_size_that_is_known_or_not_needed_is_not(name, tmp_path):
    assert not check(tmp_path, SILENT[name])


@pytest.mark.parametrize("name", PINS)
def test_a_finding_has_a_fix_or_says_why_not(name, tmp_path):
    for each in check(tmp_path, PINS[name]):
        assert (each.fix_safety is None) == bool(each.no_fix_reason)


NO_SIGNATURE = {
    "one tensor for each parameter": """
        @tf.function
        def f(x, scale):
            return x * scale

        def serve():
            return [f(tf.ones([n]), scale=tf.constant(2.0)) for n in range(1, 9)]
    """,
    "not known at every call": """
        @tf.function
        def f(x, rounds):
            return x * rounds

        def serve():
            return [f(tf.ones([n]), 2) for n in range(1, 9)]
    """,
    "several dtypes or ranks": """
        @tf.function
        def f(x):
            return tf.reduce_sum(x)

        def serve():
            f(tf.ones([2, 2], tf.float64))
            return [f(tf.ones([n, 2])) for n in range(1, 9)]
    """,
    "reads sizes in Python": """
        @tf.function
        def f(x):
            return x / x.shape[0]

        def serve():
            return [f(tf.ones([n])) for n in range(1, 9)]
    """,
    "is not plain": """
        def logged(function):
            return function

        @logged
        @tf.function
        def f(x):
            return tf.reduce_sum(x)

        def serve():
            return [f(tf.ones([n])) for n in range(1, 9)]
    """,
    "whatever the signature says": """
        @tf.function(jit_compile=True)
        def f(x):
            return tf.reduce_sum(x)

        def serve():
            return [f(tf.ones([n])) for n in range(1, 9)]
    """,
}


@pytest.mark.parametrize("reason", NO_SIGNATURE)
def test_a_signature_is_withheld_and_says_why(reason, tmp_path):
    (found,) = check(tmp_path, NO_SIGNATURE[reason])
    assert found.fix_safety is None
    assert reason in (found.no_fix_reason or "")


WHOLE = {
    "a size that agrees is kept": ("tf.ones([n, 5])", "[None, 5], tf.float32"),
    "sizes that vary are open": ("tf.zeros([n, n], tf.int32)", "[None, None], tf.int32"),
    "a dtype that is cast": ("tf.cast(tf.ones([n]), tf.bool)", "[None], tf.bool"),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_signature_allows_what_the_calls_pass(name, tmp_path):
    argument, spec = WHOLE[name]
    source = f"""
        @tf.function
        def f(x):
            return tf.identity(x)

        def serve():
            return [f({argument}) for n in range(1, 9)]
    """
    assert f"@tf.function(input_signature=[tf.TensorSpec({spec})])" in fixed(tmp_path, source)


CAUGHT = {
    "by a handler": """
        @tf.function(autograph=False, input_signature=OPEN)
        def f(x):
            try:
                return tf.reshape(x, [x.shape[0], 5, 1])
            except TypeError:
                return x
    """,
    "by a context": """
        import contextlib

        @tf.function(autograph=False, input_signature=OPEN)
        def f(x):
            with contextlib.suppress(TypeError):
                return tf.reshape(x, [x.shape[0], 5, 1])
    """,
    "by a caller": """
        @tf.function(input_signature=OPEN)
        def f(x):
            return tf.reshape(x, [x.shape[0], 5, 1])

        def serve(x):
            try:
                return f(x)
            except TypeError:
                return x
    """,
    "behind a kernel": """
        @tf.function(autograph=False)
        def f(x):
            y = tf.numpy_function(np.sin, [x], tf.float32)
            try:
                return dense(y)
            except ValueError:
                return y
    """,
}


@pytest.mark.parametrize("name", CAUGHT)
def test_a_fix_of_an_error_that_is_caught_is_not_safe(name, tmp_path):
    assert [each.fix_safety for each in check(tmp_path, CAUGHT[name])] == [Safety.UNSAFE]


def test_a_fix_of_an_error_that_nothing_catches_is(tmp_path):
    free = """
        @tf.function(input_signature=OPEN)
        def f(x):
            with tf.name_scope("f"):
                return tf.reshape(x, [x.shape[0], 5, 1])
    """
    assert [each.fix_safety for each in check(tmp_path, free)] == [Safety.SAFE]


PIPELINE = """
@tf.function(jit_compile=True)
def step(x):
    return tf.reduce_sum(x)

data = tf.data.Dataset.from_tensor_slices(np.ones((10, 4), np.float32)).batch(4)
"""

CUT = {
    "a size that was read before": """
        for b in data:
            n = b.shape[0]
            if n < 4:
                continue
            step(b)
    """,
    "a part": """
        import itertools

        for b in itertools.islice(data, 2):
            step(b)
        for _, b in zip(range(2), data):
            step(b)
    """,
    "a comprehension": """
        sums = [step(b) for b in data if len(b) == 4]
    """,
    "one's own count": """
        i = 0
        for b in data:
            if i == 0:
                step(b)
            i += 1
    """,
    "the first only": """
        def first():
            for b in data:
                return step(b)
    """,
    "one of two ways": """
        sums = [step(b) if b.shape[0] == 4 else tf.reduce_sum(b) for b in data]
    """,
}

COMES = {
    "all that there are": """
        for b in data.take(-1):
            step(b)
    """,
    "a test with nothing behind it": """
        for i, b in enumerate(data):
            if i % 10 == 0:
                print("at", i)
            step(b)
    """,
    "a test of something else": """
        def run(training):
            for b in data:
                if training:
                    step(b)
    """,
    "two pipelines": """
        for a, b in zip(data, data):
            step(a)
    """,
}


@pytest.mark.parametrize("name", CUT)
def test_a_last_batch_that_is_not_passed_is_not_reported(name, tmp_path):
    assert not check(tmp_path, PIPELINE + textwrap.dedent(CUT[name]))


@pytest.mark.parametrize("name", COMES)
def test_a_last_batch_that_comes_is(name, tmp_path):
    assert len(check(tmp_path, PIPELINE + textwrap.dedent(COMES[name]))) == 1
