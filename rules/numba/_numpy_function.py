"""A kernel behind `tf.numpy_function`, with the dtype and the shape that it returns."""

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from jitlint.analysis.observations import Call
from jitlint.analysis.scope import function_of
from jitlint.analysis.tree import found_in, parents_of
from jitlint.analysis.values import External, Framework, Kernel, Static, Tensor
from jitlint.finding import Fix, Safety, Withheld
from jitlint.rule import Context

from ._arguments import Argument, arguments_of
from ._kernels import UFUNCS, may_write
from ._results import Result, Width, result_of
from ._scopes import file_has_tape

NO_GRADIENT = (
    "a GradientTape of this file records, and tf.numpy_function has no gradient: make it "
    "tf.custom_gradient with the formula, or keep the kernel out of what is differentiated"
)
NO_ROOT = "the file has no name for TensorFlow"
NOT_WRITTEN = "the arguments are not all written in the call"
NO_TENSOR = "no argument is a tensor of the graph that stands under a name"
NOT_NUMBER = "an argument is neither a tensor of the graph nor a number that is known"
NO_RESULT = "the shape and dtype of what the kernel returns are not plain from its body"
WRITES = "the kernel writes into its argument, which tf.numpy_function lends of the graph"
NOT_TAKEN = "the result is used as an array: a graph has a tensor in its place"
MAKERS = frozenset({"tensorflow.constant", "tensorflow.convert_to_tensor"})
WIDE = "float64"
LINE_LENGTH = 100


@dataclass(frozen=True, slots=True)
class Graph:
    """The call of a kernel in a graph."""

    call: Call
    kernel: Kernel
    ctx: Context

    def is_symbolic(self, node: cst.BaseExpression) -> bool:
        value = self.call.value_of(node)
        return isinstance(value, Tensor) and value.framework is Framework.TENSORFLOW

    def tensor_of(self, argument: Argument) -> cst.Name | None:
        """`x` of `x` and of `x.numpy()`; None for a number."""
        assert argument.node is not None
        node = argument.node.value
        match node:
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="numpy")), args=[]):
                node = inner
        if self.is_symbolic(node):
            if isinstance(node, cst.Name):
                return node
            raise Withheld(NO_TENSOR)
        value = self.call.value_of(node)
        if isinstance(value, Static) and isinstance(value.const, int | float):
            return None
        raise Withheld(NOT_NUMBER)

    def dtype_of(self, tensor: cst.Name) -> str | None:
        value = self.call.value_of(tensor)
        return value.dtype if isinstance(value, Tensor) else None


def numpy_function_fix(call: Call, kernel: Kernel, ctx: Context) -> Fix:
    """`tf.ensure_shape(tf.numpy_function(kernel, [x], x.dtype), x.shape)`"""
    graph = Graph(call, kernel, ctx)
    root = call.module.local_name("tensorflow")
    if root is None:
        raise Withheld(NO_ROOT)
    if file_has_tape(call, ctx):
        raise Withheld(NO_GRADIENT)
    arguments = list(arguments_of(call, kernel))
    if not arguments or any(each.node is None or not each.parameter for each in arguments):
        raise Withheld(NOT_WRITTEN)
    tensors = {
        each.parameter: node for each in arguments if (node := graph.tensor_of(each)) is not None
    }
    if not tensors:
        raise Withheld(NO_TENSOR)
    if any(may_write(kernel, name) for name in tensors):
        raise Withheld(WRITES)
    result = result_of(kernel)
    if result is None or result.like not in tensors or kernel.maker in UFUNCS:
        raise Withheld(NO_RESULT)
    if len(tensors) > 1 and result.width is not Width.SAME:
        raise Withheld(NO_RESULT)
    like = tensors[result.like].value
    function = _function(graph, arguments, tensors)
    given = ", ".join(node.value for node in tensors.values())
    dtype = _dtype(graph, result, tensors[result.like], root)
    code = f"{root}.numpy_function({function}, [{given}], {dtype})"
    replaced = _replaced(graph, result)
    pinned = _pinned(graph, replaced, f"{root}.ensure_shape", [code, f"{like}.shape"])
    title = "Call it by `tf.numpy_function`, with its dtype and shape"
    return Fix(Safety.UNSAFE, title, {replaced: pinned})


def _pinned(
    graph: Graph, replaced: cst.BaseExpression, function: str, arguments: list[str]
) -> cst.BaseExpression:
    """The call on one line, or where that gets too long with an argument on each."""
    module = graph.ctx.module
    parents = parents_of(module)
    statement: cst.CSTNode = replaced
    while not isinstance(statement, cst.BaseSmallStatement | cst.BaseCompoundStatement):
        statement = parents[statement]
    indent = " " * 4 * sum(isinstance(each, cst.IndentedBlock) for each in _above(graph))
    short = f"{function}({', '.join(arguments)})"
    old = module.code_for_node(replaced)
    line = module.code_for_node(statement).replace(old, short, 1).partition("\n")[0]
    if len(indent) + len(line) > LINE_LENGTH:
        inner = "".join(f"\n{indent}    {each}," for each in arguments)
        return cst.parse_expression(f"{function}({inner}\n{indent})")
    return cst.parse_expression(short)


def _above(graph: Graph) -> Iterator[cst.CSTNode]:
    parents = parents_of(graph.ctx.module)
    node: cst.CSTNode = graph.call.node
    while node in parents:
        node = parents[node]
        yield node


def _function(graph: Graph, arguments: list[Argument], tensors: dict[str, cst.Name]) -> str:
    """The kernel itself, or a lambda where numbers stay what they are: a tensor of one has
    another dtype, by which the kernel would compute."""
    module = graph.ctx.module
    kernel = module.code_for_node(graph.call.node.func)
    is_plain = all(each.node.keyword is None for each in arguments if each.node is not None)
    if is_plain and len(tensors) == len(arguments):
        return kernel
    passed = []
    for each in arguments:
        assert each.node is not None
        is_tensor = each.parameter in tensors
        value = each.parameter if is_tensor else module.code_for_node(each.node.value)
        keyword = each.node.keyword
        passed.append(value if keyword is None else f"{keyword.value}={value}")
    return f"lambda {', '.join(tensors)}: {kernel}({', '.join(passed)})"


def _dtype(graph: Graph, result: Result, like: cst.Name, root: str) -> str:
    """What the graph is told has to be what Numba returns: it compares."""
    if result.width is Width.SAME:
        return f"{like.value}.dtype"
    if result.width is Width.WIDENED and not _is_complex(graph.dtype_of(like)):
        return f"{root}.{WIDE}"
    raise Withheld(NO_RESULT)


def _is_complex(dtype: str | None) -> bool:
    return dtype is not None and dtype.startswith("complex")


# -- uses ----------------------------------------------------------------------------------


def _replaced(graph: Graph, result: Result) -> cst.BaseExpression:
    """The call, or `tf.constant` around it, which takes no tensor of the graph."""
    parents = parents_of(graph.ctx.module)
    node = graph.call.node
    outer = parents.get(parents[node])
    if isinstance(outer, cst.Call) and _name(graph, outer) in MAKERS and len(outer.args) == 1:
        return outer
    for use in _uses(graph, node):
        if not _takes_tensor(graph, use, result):
            raise Withheld(NOT_TAKEN)
    return node


def _uses(graph: Graph, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The expression, or all reads of the name that it is assigned to."""
    parents = parents_of(graph.ctx.module)
    match parents[node]:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as statement:
            function = function_of(node, graph.ctx.module)
            if function is None:
                raise Withheld(NOT_TAKEN)
            target = statement.targets[0].target
            yield from (
                each
                for each in found_in(function.body, cst.Name)
                if each.value == name and each is not target
            )
        case _:
            yield node


def _takes_tensor(graph: Graph, node: cst.BaseExpression, result: Result) -> bool:
    """Where a tensor does what the array did: returned, an operand, given to TensorFlow.

    An array of float64 becomes float32 beside a tensor of that, which a tensor does not.
    """
    parents = parents_of(graph.ctx.module)
    parent = parents[node]
    match parent:
        case cst.Return() | cst.Lambda():
            return True
        case cst.BinaryOperation(left=left, right=right):
            other = right if left is node else left
            return result.width is Width.SAME or not graph.is_symbolic(other)
        case cst.Arg():
            outer = parents[parent]
            name = _name(graph, outer) if isinstance(outer, cst.Call) else ""
            return name.startswith("tensorflow.") and name not in MAKERS
    return False


def _name(graph: Graph, node: cst.Call) -> str:
    value = graph.call.value_of(node.func)
    return value.name if isinstance(value, External) else ""
