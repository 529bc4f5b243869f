"""Whether a call inside a loop is given another shape each time round."""

from collections.abc import Iterator

import libcst as cst

from jitlint.analysis.observations import GraphCall
from jitlint.analysis.tree import nodes_in
from jitlint.analysis.values import (
    External,
    Function,
    Size,
    Static,
    Tensor,
    Unknown,
    Value,
    is_tensor,
)
from jitlint.project.modules import FunctionInfo

MAKERS = frozenset({"tensorflow.constant", "tensorflow.convert_to_tensor", "tensorflow.stack"})
"""Functions that make a tensor of the length of the list that they are given."""
GROWERS = frozenset({"tensorflow.concat", "keras.ops.concatenate"})
OVER_ELEMENTS = (
    *("tensorflow.reduce_", "tensorflow.math.reduce_", "keras.ops.reduce_", "tensorflow.gather"),
    *("tensorflow.nn.embedding_lookup", "tensorflow.nn.softmax", "tensorflow.sort"),
    *("tensorflow.argsort", "tensorflow.cumsum", "tensorflow.math.cumsum", "tensorflow.shape"),
    *("tensorflow.argmax", "tensorflow.math.argmax", "tensorflow.map_fn", "tensorflow.size"),
    *("tensorflow.one_hot", "tensorflow.unstack", "tensorflow.pad", "tensorflow.tile"),
)
"""Operators that are about the elements of a tensor: what is given to them is no scalar."""


def varying_argument(call: GraphCall) -> cst.Arg | None:
    """An argument whose shape changes from call to call."""
    if isinstance(call.function, FunctionInfo):
        loops = list(_loops_around(call.function.node, call.node))
    else:
        loops = list(_loops_around(call.module.tree, call.node))
    for position, argument in enumerate(call.node.args):
        seen = [moment.evaluate(argument.value) for moment in call.moments]
        if any(map(_varies, seen)) or (loops and _is_remade(call, argument.value, position, loops)):
            return argument
    return None


def _varies(value: Value) -> bool:
    return isinstance(value, Tensor) and value.shape is not None and Size.VARIES in value.shape.dims


Loop = cst.For | cst.While | cst.CompFor


def _loops_around(root: cst.CSTNode, node: cst.CSTNode) -> Iterator[Loop]:
    """The loops and comprehensions that run `node` again and again, outermost first."""
    for child in root.children:
        if not _holds(child, node):
            continue
        if isinstance(child, cst.For | cst.While) and _holds(child.body, node):
            yield child
        if isinstance(child, cst.ListComp | cst.GeneratorExp | cst.SetComp) and _holds(
            child.elt, node
        ):
            yield child.for_in
        yield from _loops_around(child, node)
        return


def _holds(root: cst.CSTNode, node: cst.CSTNode) -> bool:
    return root is node or any(_holds(child, node) for child in root.children)


def _is_remade(
    call: GraphCall, argument: cst.BaseExpression, position: int, loops: list[Loop]
) -> bool:
    """Made in the loop of something whose length nobody fixes."""
    if isinstance(argument, cst.Name):
        assigned = _assigned_in(loops, argument.value)
        return any(
            _grows(call, value, argument.value) or _is_made_of_element(call, value, position, loops)
            for value in assigned
        )
    return _is_made_of_element(call, argument, position, loops) or _is_growing_slice(call, argument)


def _assigned_in(loops: list[Loop], name: str) -> list[cst.BaseExpression]:
    found: list[cst.BaseExpression] = []
    for loop in loops:
        for node in nodes_in(loop):
            if isinstance(node, cst.Assign) and any(
                isinstance(t.target, cst.Name) and t.target.value == name for t in node.targets
            ):
                found.append(node.value)
    return found


def _name_of(call: GraphCall, function: cst.BaseExpression) -> str:
    value = call.value_of(function)
    return value.name if isinstance(value, External) else ""


def _grows(call: GraphCall, value: cst.BaseExpression, name: str) -> bool:
    """`x = tf.concat([x, …], …)`"""
    return (
        isinstance(value, cst.Call)
        and _name_of(call, value.func) in GROWERS
        and any(isinstance(n, cst.Name) and n.value == name for n in nodes_in(value))
    )


def _is_made_of_element(
    call: GraphCall, value: cst.BaseExpression, position: int, loops: list[Loop]
) -> bool:
    """`tf.constant(element)` of an element of which nothing is known, or of a growing list."""
    if not isinstance(value, cst.Call) or not value.args:
        return False
    if _name_of(call, value.func) not in MAKERS:
        return False
    source = value.args[0].value
    if not isinstance(source, cst.Name) or not _is_about_elements(call, position):
        return False
    if _is_appended_to(loops, source.value):
        return True
    is_element = any(source.value in _targets(loop) for loop in loops)
    return is_element and isinstance(call.value_of(source), Unknown)


def _targets(loop: Loop) -> set[str]:
    if isinstance(loop, cst.While):
        return set()
    return {node.value for node in nodes_in(loop.target) if isinstance(node, cst.Name)}


def _is_appended_to(loops: list[Loop], name: str) -> bool:
    for loop in loops:
        for node in nodes_in(loop):
            match node:
                case cst.Call(
                    func=cst.Attribute(
                        value=cst.Name(value=owner),
                        attr=cst.Name(value="append" | "extend"),
                    )
                ) if owner == name:
                    return True
    return False


def _is_growing_slice(call: GraphCall, value: cst.BaseExpression) -> bool:
    """`x[:n]` of a counter."""
    match value:
        case cst.Subscript(
            slice=[cst.SubscriptElement(slice=cst.Slice(lower=None, upper=upper)), *_]
        ) if upper is not None:
            found = call.value_of(upper)
            return isinstance(found, Static) and found.varies
    return False


def _is_about_elements(call: GraphCall, position: int) -> bool:
    """Whether the function treats the parameter as something with elements."""
    info = call.target
    if isinstance(call.callee, Function) is False:
        position += 1
    if position >= len(info.parameters):
        return False
    names = {info.parameters[position].name.value}
    for node in nodes_in(info.node.body):
        if isinstance(node, cst.Call) and _mentions(node, names):
            name = _name_of(call, node.func)
            if name.startswith(OVER_ELEMENTS):
                return True
        if isinstance(node, cst.Subscript | cst.For) and _mentions(
            node.value if isinstance(node, cst.Subscript) else node.iter, names
        ):
            return True
    return False


def _mentions(root: cst.CSTNode, names: set[str]) -> bool:
    return any(isinstance(n, cst.Name) and n.value in names for n in nodes_in(root))


def differs(example: Value, passed: Value) -> bool:
    """Whether a program made for `example` is called with another size."""
    if not is_tensor(example) or not is_tensor(passed):
        return False
    if example.shape is None or passed.shape is None:
        return False
    if len(example.shape.dims) != len(passed.shape.dims):
        return False
    pairs = zip(example.shape.dims, passed.shape.dims, strict=True)
    return any(
        b is Size.VARIES or (isinstance(a, int) and isinstance(b, int) and a != b) for a, b in pairs
    )
