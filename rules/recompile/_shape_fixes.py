"""The rewrites of `shape-pin`, each with its precondition, and why there is none."""

from collections.abc import Sequence
from math import prod

import libcst as cst

from jitlint.analysis import shapes
from jitlint.analysis.handlers import may_be_caught
from jitlint.analysis.observations import Call, GraphCall, LostShape, Observation, SizeUse
from jitlint.analysis.scope import binder_of, definition_of, statement_of
from jitlint.analysis.values import External, Size, StaticShape, Tensor
from jitlint.finding import Fix, Replacement, Safety, Withheld
from jitlint.region import RegionKind

from ._signatures import fix_of_traces

Result = tuple[Fix | None, str | None]

RESHAPES = frozenset({"tensorflow.reshape"})
ALWAYS_NONE = frozenset({RegionKind.GRAPH, RegionKind.GRAPH_PLAIN, RegionKind.XLA})


# -- a size that is None -------------------------------------------------------------------


def fix_of_size_use(use: SizeUse) -> Result:
    """The size that the graph has when it runs, where an operator takes it as a tensor."""
    if not isinstance(use.node, cst.Call):
        return None, (
            "Python computes with the size: `tf.shape(x)[i]` is a tensor, of a dtype that has "
            "to be cast to that of the other operand"
        )
    callee = use.value_of(use.node.func)
    name = callee.name if isinstance(callee, External) else ""
    root = _root(use.node.func)
    if not name.startswith("tensorflow.") or root is None:
        return None, (
            "`tf.shape(x)[i]` gives the size as a tensor, which this call may not take: pin what "
            "is known by `tf.ensure_shape`"
        )
    for argument in use.node.args:
        value = use.value_of(argument.value)
        if not shapes.holds_open(value):
            continue
        if name in RESHAPES and isinstance(argument.value, cst.List | cst.Tuple):
            return _inferred(use, root, argument.value)
        if isinstance(value, StaticShape):
            return _whole_shape(use, root, argument.value)
        if isinstance(argument.value, cst.List | cst.Tuple):
            return _dynamic_sizes(use, root, argument.value)
    return None, "write `tf.shape(x)[i]` where the size is read"


OTHER_TENSOR = (
    "the size is not known to be that of the tensor that is reshaped, and neither -1 nor "
    "`tf.shape` raises where it is another one (a graph drops a reshape that looks like none)"
)


def _inferred(use: SizeUse, root: str, spelled: cst.List | cst.Tuple) -> Result:
    """`tf.reshape(x, [x.shape[0], 8])`: one size follows from the others where these are those
    of the tensor. Elsewhere -1 takes in silence what the reshape should refuse."""
    if any(_is_minus_one(e.value) for e in spelled.elements):
        return None, "a reshape can infer one size only: write `tf.shape(x)[i]` for the others"
    assert isinstance(use.node, cst.Call)
    given = use.node.args[0].value
    sizes = [e.value for e in spelled.elements if shapes.is_open(use.value_of(e.value))]
    reads = [_read_of(use, size) for size in sizes]
    if not isinstance(given, cst.Name) or any(r is None or r[0] != given.value for r in reads):
        return None, OTHER_TENSOR
    if len(sizes) != 1 or not _keeps_size(use, given, spelled.elements, sizes[0]):
        return _dynamic_sizes(use, root, spelled)
    minus_one = cst.UnaryOperation(cst.Minus(), cst.Integer("1"))
    return _fix(use, "Let the reshape infer the size", {sizes[0]: minus_one}), None


def _keeps_size(
    use: SizeUse,
    given: cst.Name,
    elements: Sequence[cst.BaseElement],
    size: cst.BaseExpression,
) -> bool:
    """Whether the other sizes are as many numbers as all other dimensions of the tensor that
    is reshaped, from which `size` is read."""
    read, tensor = _read_of(use, size), use.value_of(given)
    shape = tensor.shape if isinstance(tensor, Tensor) else None
    if read is None or shape is None or shape.more or shape.lost is not None:
        return False
    dims, index = list(shape.dims), read[1]
    if not -len(dims) <= index < len(dims):
        return False
    del dims[index]
    others = [shapes.size_of(use.value_of(e.value)) for e in elements if e.value is not size]
    kept, spelled = _numbers(dims), _numbers(others)
    return len(kept) == len(dims) and len(spelled) == len(others) and prod(kept) == prod(spelled)


def _numbers(dims: Sequence[int | Size]) -> list[int]:
    return [dim for dim in dims if isinstance(dim, int) and dim > 0]


def _read_of(use: SizeUse, size: cst.BaseExpression) -> tuple[str, int] | None:
    """The variable, as it is at the use, and the index from which a size is read: as
    `x.shape[0]`, or before, in `n = x.shape[0]` or `n, width = x.shape`."""
    if not isinstance(size, cst.Name):
        return _spelled_read(size)
    module = use.module.tree
    at = statement_of(use.node, module)
    assignment = definition_of(size.value, at, module).place
    match assignment:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[target], value=value)]):
            read = _unpacked_read(target.target, value, size.value)
        case _:
            return None
    if read is None or binder_of(use.node, read[0], at, module) is not None:
        return None
    then, now = (definition_of(read[0], place, module) for place in (assignment, at))
    return read if then.place is now.place else None


def _unpacked_read(
    target: cst.BaseExpression, value: cst.BaseExpression, name: str
) -> tuple[str, int] | None:
    match target, value:
        case cst.Name(), _:
            return _spelled_read(value)
        case cst.Tuple(elements=elements), cst.Attribute(
            value=cst.Name(value=tensor), attr=cst.Name(value="shape")
        ):
            names = [e.value.value if isinstance(e.value, cst.Name) else "" for e in elements]
            starred = any(isinstance(e, cst.StarredElement) for e in elements)
            return (tensor, names.index(name)) if not starred and name in names else None
    return None


def _spelled_read(size: cst.BaseExpression) -> tuple[str, int] | None:
    match size:
        case cst.Subscript(
            value=cst.Attribute(value=cst.Name(value=tensor), attr=cst.Name(value="shape")),
            slice=[cst.SubscriptElement(slice=cst.Index(value=index))],
        ):
            match index:
                case cst.Integer(value=number):
                    return tensor, int(number, 0)
                case cst.UnaryOperation(cst.Minus(), cst.Integer(value=number)):
                    return tensor, -int(number, 0)
    return None


def _is_minus_one(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus)


def _whole_shape(use: SizeUse, root: str, spelled: cst.BaseExpression) -> Result:
    if not isinstance(spelled, cst.Attribute) or not isinstance(spelled.value, cst.Name):
        return None, "write `tf.shape(x)` where the shape is read"
    dynamic = cst.parse_expression(f"{root}.shape({spelled.value.value})")
    return _fix(
        use, "Use the shape that the tensor has when the graph runs", {spelled: dynamic}
    ), None


def _dynamic_sizes(use: SizeUse, root: str, spelled: cst.List | cst.Tuple) -> Result:
    replacements: dict[cst.CSTNode, Replacement] = {}
    for element in spelled.elements:
        if not shapes.is_open(use.value_of(element.value)):
            continue
        read = _read_of(use, element.value)
        if read is None:
            return None, "write `tf.shape(x)[i]` where the size is read"
        replacements[element.value] = cst.parse_expression(f"{root}.shape({read[0]})[{read[1]}]")
    return _fix(use, "Use the size that the tensor has when the graph runs", replacements), None


def _fix(use: SizeUse, title: str, replacements: dict[cst.CSTNode, Replacement]) -> Fix:
    """Where the size is None in every trace, the old code never gave a result."""
    is_safe = set(use.regions) <= ALWAYS_NONE and _has_signature(use) and not _is_caught(use)
    return Fix(Safety.SAFE if is_safe else Safety.UNSAFE, title, replacements)


def _is_caught(seen: SizeUse | LostShape) -> bool:
    """Whether the error that the use is has a handler, around it or around a call of the
    function, which gives a result in its place."""
    needs = seen.needed_by if isinstance(seen, LostShape) else ()
    calls = [
        (call, call.node)
        for call in seen.moments[0].frame.machine.log
        if isinstance(call, GraphCall) and call.target is seen.function
    ]
    places: list[tuple[Observation, cst.CSTNode]] = [
        *((seen, node) for node in (seen.node, *needs)),
        *calls,
    ]
    return any(may_be_caught(node, place) for place, node in places)


def _has_signature(use: SizeUse) -> bool:
    graphs = use.moments[0].frame.machine.graphs
    entry = graphs.get(use.function) if use.function is not None else None
    return entry is not None and "input_signature" in entry[1]


def _root(function: cst.BaseExpression) -> str | None:
    """The name under which the file has TensorFlow, from `tf.zeros`."""
    while isinstance(function, cst.Attribute):
        function = function.value
    return function.value if isinstance(function, cst.Name) else None


# -- a shape that is lost ------------------------------------------------------------------


def fix_of_loss(lost: LostShape) -> Result:
    """`tf.ensure_shape(…, x.shape)` around a call of a kernel that works element by element."""
    if lost.loss.operator == "from_generator":
        return None, "the generator alone knows: declare `output_signature=tf.TensorSpec(...)`"
    if lost.loss.operator not in ("numpy_function", "py_function"):
        return None, "the size of the data is not known: pin what you know by `tf.ensure_shape`"
    unknown = "what the Python function returns is not known to have the shape of its input"
    arguments = {a.keyword.value if a.keyword else i: a.value for i, a in enumerate(lost.node.args)}
    kernel, given = arguments.get(0, arguments.get("func")), arguments.get(1, arguments.get("inp"))
    root = _root(lost.node.func)
    if kernel is None or root is None or not _is_elementwise(lost, kernel):
        return None, unknown
    match given:
        case cst.List(elements=[cst.Element(value=cst.Name(value=tensor))]):
            pinned = cst.Call(
                func=cst.parse_expression(f"{root}.ensure_shape"),
                args=[cst.Arg(lost.node), cst.Arg(cst.parse_expression(f"{tensor}.shape"))],
            )
            title = "Pin the shape of the input, which the kernel keeps"
            safety = Safety.UNSAFE if _is_caught(lost) else Safety.SAFE
            return Fix(safety, title, {lost.node: pinned}), None
    return None, unknown


def _is_elementwise(lost: LostShape, kernel: cst.BaseExpression) -> bool:
    """A function of NumPy of one argument whose result has the shape of that."""
    value = lost.value_of(kernel)
    if not isinstance(value, External) or not value.name.startswith("numpy."):
        return False
    operator = lost.moments[0].frame.machine.tables["tensorflow"].function(value.name)
    return operator is not None and operator.elementwise


# -- calls ---------------------------------------------------------------------------------


PAD = (
    "XLA compiles for each concrete shape, whatever the signature says: pad the batch to a few "
    "sizes, and mask or cut the result (right for functions that work row by row)"
)
SIGNATURE = (
    "one trace for all needs `input_signature=[tf.TensorSpec([None, ...], dtype)]`, or "
    "`reduce_retracing=True`, which decide what callers may pass"
)


def fix_of_call(call: GraphCall) -> Result:
    if call.kind is RegionKind.XLA:
        return None, PAD
    try:
        return fix_of_traces(call), None
    except Withheld as withheld:
        return None, f"{SIGNATURE}: {withheld}"


def fix_of_discarded(call: Call, statement: cst.Expr) -> Result:
    """`tf.ensure_shape(x, s)` → `x = tf.ensure_shape(x, s)`."""
    first = call.node.args[0].value if call.node.args else None
    if not isinstance(first, cst.Name):
        return None, "there is no variable that the pinned tensor could replace"
    assigned = cst.Assign([cst.AssignTarget(cst.Name(first.value))], call.node)
    title = "Use the pinned tensor (a shape that was accepted in silence will raise)"
    return Fix(Safety.UNSAFE, title, {statement: assigned}), None
