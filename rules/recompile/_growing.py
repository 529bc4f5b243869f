"""Loops that run in the graph, and change the shape of what they carry."""

from collections.abc import Iterator

import libcst as cst

from jitlint.analysis.observations import CompiledFunction
from jitlint.analysis.tree import nodes_in
from jitlint.analysis.values import External, is_tensor

GROWERS = frozenset({"tensorflow.concat", "tensorflow.tile", "tensorflow.pad", "tensorflow.repeat"})


def growing_assignments(function: CompiledFunction) -> Iterator[tuple[cst.Assign, str]]:
    """`x = tf.concat([x, …], …)` in a loop over a tensor, of an `x` from before the loop."""
    for loop in _tensor_loops(function, function.node.body):
        if _sets_options(loop):
            continue
        for node in nodes_in(loop.body):
            match node:
                case cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name(value=name))],
                    value=cst.Call() as call,
                ) if _grows(function, call, name) and _is_bound_before(function, loop, name):
                    yield node, name


def _tensor_loops(function: CompiledFunction, root: cst.CSTNode) -> Iterator[cst.For | cst.While]:
    for node in nodes_in(root):
        if isinstance(node, cst.For | cst.While):
            decides = node.iter if isinstance(node, cst.For) else node.test
            if is_tensor(function.value_of(decides)):
                yield node


def _grows(function: CompiledFunction, call: cst.Call, name: str) -> bool:
    callee = function.value_of(call.func)
    is_grower = isinstance(callee, External) and callee.name in GROWERS
    return is_grower and any(
        isinstance(node, cst.Name) and node.value == name for node in nodes_in(call)
    )


def _is_bound_before(function: CompiledFunction, loop: cst.CSTNode, name: str) -> bool:
    """A parameter, or assigned outside of the loop: then AutoGraph carries it."""
    if any(parameter.name.value == name for parameter in function.function.parameters):
        return True
    inside = set(nodes_in(loop))
    return any(
        isinstance(node, cst.AssignTarget)
        and node not in inside
        and isinstance(node.target, cst.Name)
        and node.target.value == name
        for node in nodes_in(function.node)
    )


def _sets_options(loop: cst.For | cst.While) -> bool:
    return any(
        isinstance(node, cst.Attribute) and node.attr.value == "set_loop_options"
        for node in nodes_in(loop.body)
    )
