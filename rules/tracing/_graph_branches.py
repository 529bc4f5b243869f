"""Tests of tensors in the graphs of TensorFlow: which of them AutoGraph does not convert."""

import libcst as cst

from jitlint.analysis.observations import Construct, TruthTest
from jitlint.analysis.values import Framework, Tensor
from jitlint.region import Region, RegionKind

UNCONVERTED = frozenset(
    {
        *(Construct.ASSERT, Construct.CONTAINS, Construct.NOT_IN, Construct.MATCH),
        *(Construct.COMPREHENSION, Construct.BUILTIN, Construct.EXTREME),
    }
)
"""Constructs that AutoGraph leaves to Python (each measured with TensorFlow 2.21)."""

PLAIN = frozenset({RegionKind.GRAPH_PLAIN, RegionKind.KERAS})
"""Regions whose source AutoGraph does not see."""

_OPERATORS = (
    "`tf.where` where both results are cheap, `tf.cond` where one of them is not; "
    "`tf.maximum`, `tf.reduce_any`, `tf.reduce_all` for builtins; `tf.debugging.assert_equal` "
    "and its like for checks"
)
REASONS = {
    RegionKind.GRAPH: f"the rewrite has to build the result as a tensor: {_OPERATORS}",
    RegionKind.XLA: f"the rewrite has to build the result as a tensor: {_OPERATORS}",
    RegionKind.GRAPH_PLAIN: f"without AutoGraph the branch has to be an operator: {_OPERATORS}",
    RegionKind.KERAS: "Keras does not run AutoGraph: use `keras.ops.where` or `keras.ops.cond`, "
    "or decorate the method with `@tf.function`",
}
"""Why there is no fix."""


def is_refused(test: TruthTest, kind: RegionKind) -> bool:
    value = test.value
    if not isinstance(value, Tensor) or value.framework is not Framework.TENSORFLOW:
        return False
    if value.maybe and test.construct is not Construct.BUILTIN:
        return False
    if value.shape is not None and value.shape.nested:
        return False  # it may be a list or a dict of tensors
    if kind in PLAIN and not _is_decorated(test):
        return True
    return test.construct in UNCONVERTED or _is_membership(test.node)


def _is_decorated(test: TruthTest) -> bool:
    """Whether the method that Keras calls is a `tf.function` of its own."""
    graphs = test.moments[0].frame.machine.graphs
    return test.function in graphs and graphs[test.function][0] not in PLAIN


def _is_membership(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Comparison) and any(
        isinstance(each.operator, cst.In | cst.NotIn) for each in node.comparisons
    )


def consequence(region: Region) -> str:
    if region.kind is RegionKind.KERAS:
        return "AutoGraph does not convert what Keras calls, and TensorFlow raises"
    if region.kind is RegionKind.GRAPH_PLAIN:
        return "with `autograph=False` TensorFlow raises"
    return "AutoGraph does not convert this construct, and TensorFlow raises"
