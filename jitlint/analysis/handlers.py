"""Whether an error has somewhere to go: a fix of what raises changes what its handler does."""

import libcst as cst

from jitlint.analysis.observations import Observation
from jitlint.analysis.tree import parents_of
from jitlint.analysis.values import External

PROPAGATES = ("torch.", "tensorflow.", "keras.", "builtins.")
"""Of these no context manager swallows an exception; any other one may."""


def may_be_caught(node: cst.CSTNode, seen: Observation) -> bool:
    """Whether code around a node of what was seen, in its own function, may go on after it has
    raised."""
    parents = parents_of(seen.module.tree)
    while node in parents and not isinstance(node, cst.FunctionDef):
        node, inner = parents[node], node
        if isinstance(node, cst.Try | cst.TryStar) and node.handlers and inner is node.body:
            return True
        if isinstance(node, cst.With) and not all(_propagates(e.item, seen) for e in node.items):
            return True
    return False


def _propagates(manager: cst.BaseExpression, seen: Observation) -> bool:
    value = seen.value_of(manager.func if isinstance(manager, cst.Call) else manager)
    return isinstance(value, External) and value.name.startswith(PROPAGATES)
