"""One trace for all shapes: the `input_signature` that the calls of a function agree on."""

from collections.abc import Iterator, Sequence

import libcst as cst

from jitlint.analysis.observations import GraphCall
from jitlint.analysis.tree import nodes_in, parents_of
from jitlint.analysis.values import BoundMethod, External, Framework, Function, Tensor, Value
from jitlint.finding import Fix, Safety, Withheld
from jitlint.project.modules import FunctionInfo

LINE_LENGTH = 100
TRACER = "tensorflow.function"
SIZES = frozenset({"shape", "get_shape"})
ELSEWHERE = "the function is handed to `tf.function` in another file"
NOT_ONE = "the call that hands the function to `tf.function` is not plain"
NO_NAME = "the file has no name for TensorFlow"
NOT_SPELLED = "the calls do not pass one tensor for each parameter"
NO_SPEC = "dtype and rank of what is passed are not known at every call"
DISAGREE = "its calls pass tensors of several dtypes or ranks"
READS = "the function reads sizes in Python, which would be None"


def fix_of_traces(call: GraphCall) -> Fix:
    """`@tf.function` → `@tf.function(input_signature=[…])`."""
    info = call.target
    if info.module is not call.module:
        raise Withheld(ELSEWHERE)
    root = call.module.local_name("tensorflow")
    if root is None:
        raise Withheld(NO_NAME)
    if any(_reads_size(node) for node in nodes_in(info.node.body)):
        raise Withheld(READS)
    columns = _columns(info, list(_calls_of(call)))
    specs = [_spec(root, column) for column in columns]
    maker = _maker(call)
    title = f"Trace `{info.name}` once, by the shapes of its calls (others will be refused)"
    return Fix(Safety.UNSAFE, title, {maker: _with_signature(call.module.tree, maker, specs)})


def _with_signature(
    module: cst.Module, maker: cst.BaseExpression, specs: Sequence[str]
) -> cst.BaseExpression:
    """On one line, or where that gets too long with an argument on each."""
    function = maker.func if isinstance(maker, cst.Call) else maker
    given = maker.args if isinstance(maker, cst.Call) else ()
    plain = [each.with_changes(comma=cst.MaybeSentinel.DEFAULT) for each in given]
    signature = f"input_signature=[{', '.join(specs)}]"
    arguments = [*map(module.code_for_node, plain), signature]
    name, indent = module.code_for_node(function), _indent(module, maker)
    short = f"{name}({', '.join(arguments)})"
    if len(indent) + len("@") + len(short) <= LINE_LENGTH:
        return cst.parse_expression(short)
    inner = "".join(f"\n{indent}    {each}," for each in arguments)
    return cst.parse_expression(f"{name}({inner}\n{indent})")


def _indent(module: cst.Module, node: cst.CSTNode) -> str:
    parents, depth = parents_of(module), 0
    while node in parents:
        node = parents[node]
        depth += isinstance(node, cst.IndentedBlock)
    return " " * 4 * depth


def _calls_of(call: GraphCall) -> Iterator[GraphCall]:
    for seen in call.moments[0].frame.machine.log:
        if isinstance(seen, GraphCall) and seen.target is call.target:
            yield seen


def _reads_size(node: cst.CSTNode) -> bool:
    match node:
        case cst.Attribute(attr=cst.Name(value=name)):
            return name in SIZES
        case cst.Call(func=cst.Name(value="len")):
            return True
    return False


# -- what the calls pass -------------------------------------------------------------------


def _columns(info: FunctionInfo, calls: Sequence[GraphCall]) -> list[list[Tensor]]:
    """What each parameter is given, in every call."""
    parameters = info.parameters
    is_method = any(isinstance(each.callee, BoundMethod) for each in calls)
    count = len(parameters) - is_method
    others = (info.node.params.kwonly_params, info.node.params.star_kwarg)
    is_plain = not any(others) and not isinstance(info.node.params.star_arg, cst.Param)
    if not is_plain or count == 0:
        raise Withheld(NOT_SPELLED)
    for each in calls:
        if each.keywords or len(each.positional) != count or len(each.node.args) != count:
            raise Withheld(NOT_SPELLED)
    return [[_tensor(each.positional[index]) for each in calls] for index in range(count)]


def _tensor(value: Value) -> Tensor:
    frameworks = (Framework.TENSORFLOW, Framework.NUMPY)
    if not isinstance(value, Tensor) or value.maybe or value.framework not in frameworks:
        raise Withheld(NO_SPEC)
    if value.dtype is None or value.shape is None or value.shape.more or value.shape.lost:
        raise Withheld(NO_SPEC)
    return value


def _spec(root: str, given: Sequence[Tensor]) -> str:
    """A size that is one number in all calls is pinned; any other is left open."""
    dtypes = {each.dtype for each in given}
    shapes = [each.shape.dims for each in given if each.shape is not None]
    if len(dtypes) > 1 or len(set(map(len, shapes))) > 1:
        raise Withheld(DISAGREE)
    dims = [
        str(sizes[0]) if isinstance(sizes[0], int) and len(set(sizes)) == 1 else "None"
        for sizes in zip(*shapes, strict=True)
    ]
    return f"{root}.TensorSpec([{', '.join(dims)}], {root}.{dtypes.pop()})"


# -- who hands the function over -----------------------------------------------------------


def _maker(call: GraphCall) -> cst.BaseExpression:
    """The decorator, or the call of `tf.function` that is given the function."""
    info = call.target
    found = [each for each in info.decorators if _makes_graph(call, each)]
    if not found and len(info.decorators) == 0:
        found = [
            node
            for node in nodes_in(call.module.tree)
            if isinstance(node, cst.Call)
            and _makes_graph(call, node.func)
            and len(node.args) > 0
            and call.value_of(node.args[0].value) == Function(info)
        ]
    if len(found) != 1 or len(info.decorators) > 1:
        raise Withheld(NOT_ONE)
    return found[0]


def _makes_graph(call: GraphCall, node: cst.BaseExpression) -> bool:
    function = node.func if isinstance(node, cst.Call) else node
    value = call.value_of(function)
    return isinstance(value, External) and value.name == TRACER
