"""The judge of TensorFlow: what it proves, and the wrong pins that it refutes.

All modules go through one worker, which imports TensorFlow once.
"""

import importlib.util
from collections.abc import Callable

import pytest

from jitlint.finding import Verdict
from jitlint.verify import Report

pytestmark = pytest.mark.compiles

HEAD = """
import numpy as np
import tensorflow as tf

dense = tf.keras.layers.Dense(3)


def make_inputs(seed):
    rng = np.random.default_rng(seed)
    return (tf.constant(rng.standard_normal((seed + 1, 4)), tf.float32),)

"""
KERNEL = """
@tf.function
def f(x):
    y = tf.numpy_function(np.sin, [x], tf.float32)
    {pin}
    return {result}
"""
MASK = """
@tf.function(jit_compile=True)
def f(x):
    kept = tf.boolean_mask(x[0], x[0] > -9.0)
    return {result}
"""
MEANS = """
@tf.function{options}
def f(x):
    {pin}
    return tf.reduce_mean(x, axis=1)
"""
FILTER = """
from numba import njit


@njit
def decay(x):
    out = x.copy()
    for i in range(1, out.shape[0]):
        out[i] = out[i] + 0.5 * out[i - 1]
    return out


@tf.function
def f(x):
    return {result}
"""
IMPORTS = "import numpy as np\nimport tensorflow as tf\n\n"
SIGNED = """
@tf.function(input_signature=[tf.TensorSpec([None, 4, 2], tf.float32)])
def f(x):
    return tf.reshape(x, [{size}, 8])
"""
SERVED = """
@tf.function{options}
def f(x):
    return tf.reduce_mean(x, axis=1)


def serve(largest: int):
    return [f(tf.ones([n, 4])) for n in range(1, largest)]
"""
POOL = """
class Pool(tf.Module):
    @tf.function{options}
    def mean(self, rows):
        return tf.reduce_mean(rows, axis=0)


def means(longest: int):
    pool = Pool()
    return [pool.mean(tf.ones([n, 5])) for n in range(1, longest)]
"""
WRITES = """
from numba import njit


@njit
def doubled(x):
    for i in range(x.shape[0]):
        x[i] = 2.0 * x[i]
    return x


@tf.function
def f(x):
    return tf.numpy_function({kernel}, [x], x.dtype)
"""
KERNEL_ALONE = FILTER.partition("@tf.function")[0]
METHOD = (
    KERNEL_ALONE
    + """
class Stage(tf.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = gain

    @tf.function
    def __call__(self, x):
        return {result} * float(self.gain)
"""
)
HOST = (
    KERNEL_ALONE
    + """
def smoothed(x: tf.Tensor):
    return decay({argument})
"""
)
LAYER = """
class Flat(tf.keras.layers.Layer):
    def call(self, x):
        return {result}
"""


def kernel(pin: str = "pass", result: str = "dense(y)") -> str:
    return HEAD + KERNEL.format(pin=pin, result=result)


def means(options: str = "", pin: str = "pass") -> str:
    return HEAD + MEANS.format(options=options, pin=pin)


def filtered(result: str) -> str:
    return HEAD + FILTER.format(result=result)


REFUSED = filtered("decay(x.numpy())")
SIGNATURE = "(input_signature=[tf.TensorSpec([None, 4], tf.float32)])"
SOURCES = {
    "right_kernel": (kernel(), kernel("y = tf.ensure_shape(y, x.shape)")),
    "wrong_width": (
        kernel(result="y * 2"),
        kernel("y = tf.ensure_shape(y, [None, 5])", "y * 2"),
    ),
    "wrong_lie": (kernel(result="y * 2"), kernel("y.set_shape([None, 5])", "y * 2")),
    "wrong_lie_in_the_graph_alone": (
        kernel(result="y * 2"),
        kernel("y.set_shape(y.shape if tf.executing_eagerly() else [None, 5])", "y * 2"),
    ),
    "wrong_dtype": (kernel(result="y * 2"), kernel(result="tf.cast(y * 2, tf.float64)")),
    "wrong_values": (kernel(result="y * 2"), kernel(result="y * 3")),
    "wrong_gradient": (
        HEAD + LAYER.format(result="x * x"),
        HEAD + LAYER.format(result="tf.stop_gradient(x) * x"),
    ),
    "wrong_bound": (
        HEAD + MASK.format(result="kept"),
        HEAD + MASK.format(result="tf.ensure_shape(kept, [7])"),
    ),
    "right_layer": (
        HEAD + LAYER.format(result="tf.reshape(x, [x.shape[0], 2, 2])"),
        HEAD + LAYER.format(result="tf.reshape(x, [-1, 2, 2])"),
    ),
    "still_raises": (
        HEAD + LAYER.format(result="tf.reshape(x, [x.shape[0], 2, 2])"),
        HEAD + LAYER.format(result="tf.reshape(x, (x.shape[0], 2, 2))"),
    ),
    "right_operator": (
        REFUSED,
        filtered("tf.ensure_shape(tf.numpy_function(decay, [x], x.dtype), x.shape)"),
    ),
    "wrong_tout": (REFUSED, filtered("tf.numpy_function(decay, [x], tf.float64)")),
    "wrong_tout_cast": (REFUSED, filtered("tf.py_function(decay, [x], tf.float64)")),
    "wrong_operator_shape": (
        REFUSED,
        filtered("tf.ensure_shape(tf.numpy_function(decay, [x], x.dtype), [None, 5])"),
    ),
    "wrong_lost_gradient": (
        filtered("x * 2.0"),
        filtered("tf.numpy_function(lambda x: x * np.float32(2.0), [x], x.dtype)"),
    ),
    "pinned_width": (means(), means(pin="x = tf.ensure_shape(x, [None, 4])")),
    "signature": (means(), means(options=SIGNATURE)),
    "more_traces": (means(options=SIGNATURE), means()),
    "signature_of_callers": (
        IMPORTS + SERVED.format(options=""),
        IMPORTS + SERVED.format(options=SIGNATURE),
    ),
    "wrong_width_of_callers": (
        IMPORTS + SERVED.format(options=""),
        IMPORTS + SERVED.format(options=SIGNATURE.replace("4", "5")),
    ),
    "wrong_size_of_callers": (
        IMPORTS + SERVED.format(options=""),
        IMPORTS + SERVED.format(options=SIGNATURE.replace("None", "2")),
    ),
    "wrong_dtype_of_callers": (
        IMPORTS + SERVED.format(options=""),
        IMPORTS + SERVED.format(options=SIGNATURE.replace("float32", "int32")),
    ),
    "signature_without_callers": (
        IMPORTS + SERVED.format(options="").partition("def serve")[0],
        IMPORTS + SERVED.format(options=SIGNATURE).partition("def serve")[0],
    ),
    "wrong_signature_of_a_method": (
        IMPORTS + POOL.format(options=""),
        IMPORTS + POOL.format(options=SIGNATURE),
    ),
    "wrong_lent_memory": (
        HEAD + WRITES.format(kernel="lambda v: doubled(v.copy())"),
        HEAD + WRITES.format(kernel="lambda v: doubled(v).copy()"),
    ),
    "derived_from_signature": (
        IMPORTS + SIGNED.format(size="x.shape[0]"),
        IMPORTS + SIGNED.format(size="-1"),
    ),
    "derived_for_a_layer": (
        IMPORTS + LAYER.format(result="tf.reshape(x, [x.shape[0], 2, 4])"),
        IMPORTS + LAYER.format(result="tf.reshape(x, [-1, 2, 4])"),
    ),
    "derived_for_a_method": (
        IMPORTS + METHOD.format(result="decay(x.numpy())"),
        IMPORTS + METHOD.format(result="tf.numpy_function(decay, [x], x.dtype)"),
    ),
    "derived_for_a_caller": (
        IMPORTS + HOST.format(argument="x"),
        IMPORTS + HOST.format(argument="x.numpy()"),
    ),
    "wrong_derived": (
        IMPORTS + SIGNED.format(size="x.shape[0]"),
        IMPORTS + SIGNED.format(size="4"),
    ),
    "wrong_caller": (
        IMPORTS + HOST.format(argument="x"),
        IMPORTS + HOST.format(argument="tf.abs(x).numpy()"),
    ),
    "no_entry": (HEAD + "x = 1\n", HEAD + "x = 2\n"),
}


@pytest.fixture(scope="module")
def reports(prove: Callable[..., dict[str, Report]]) -> dict[str, Report]:
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("the judge needs tensorflow")
    return prove(SOURCES, seeds=5)


@pytest.mark.parametrize(
    "name",
    [
        "right_kernel",
        "right_layer",
        "right_operator",
        "signature_of_callers",
        "derived_from_signature",
        "derived_for_a_layer",
        "derived_for_a_method",
        "derived_for_a_caller",
        "pinned_width",
        "signature",
    ],
)
def test_a_right_rewrite_is_verified(reports, name):
    assert reports[name].verdict is Verdict.VERIFIED, reports[name].reason


@pytest.mark.parametrize("name", [name for name in SOURCES if name.startswith("wrong")])
def test_a_wrong_rewrite_is_refuted(reports, name):
    assert reports[name].verdict is Verdict.REFUTED, reports[name].reason


def test_code_that_still_raises_is_not_verified(reports):
    assert reports["still_raises"].verdict is Verdict.UNVERIFIED
    assert "still raises" in reports["still_raises"].reason


def test_a_signature_is_not_proved_by_itself(reports):
    assert reports["signature_without_callers"].verdict is Verdict.UNVERIFIED
    assert "nothing in this file calls it" in reports["signature_without_callers"].reason


def test_callers_are_traced_once(reports):
    traced, caller = reports["signature_of_callers"].entries
    assert traced.graphs_before > traced.graphs_after == 1
    assert caller.kind == "eager"


def test_a_module_without_entries_is_not_verified(reports):
    assert reports["no_entry"].verdict is Verdict.UNVERIFIED


def test_more_traces_are_a_difference(reports):
    assert reports["more_traces"].verdict is Verdict.REFUTED
    assert reports["more_traces"].counterexample == "f: 1 traces before, 5 after"


def test_ensure_shape_does_not_save_a_trace(reports):
    (entry,) = reports["pinned_width"].entries
    assert (entry.graphs_before, entry.graphs_after) == (5, 5)


def test_a_signature_saves_all_but_one(reports):
    (entry,) = reports["signature"].entries
    assert (entry.graphs_before, entry.graphs_after) == (5, 1)
