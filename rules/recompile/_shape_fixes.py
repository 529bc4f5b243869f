"""The rewrites of `shape-pin`, each with its precondition, and why there is none."""

import libcst as cst

from jitlint.analysis import shapes
from jitlint.analysis.observations import Call, GraphCall, LostShape, SizeUse
from jitlint.analysis.values import External, StaticShape
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
            return _inferred(use, argument.value)
        if isinstance(value, StaticShape):
            return _whole_shape(use, root, argument.value)
        if isinstance(argument.value, cst.List | cst.Tuple):
            return _dynamic_sizes(use, root, argument.value)
    return None, "write `tf.shape(x)[i]` where the size is read"


def _inferred(use: SizeUse, spelled: cst.List | cst.Tuple) -> Result:
    """`tf.reshape(x, [x.shape[0], 8])`: one size follows from the others."""
    open_elements = [e for e in spelled.elements if shapes.is_open(use.value_of(e.value))]
    if len(open_elements) != 1 or any(_is_minus_one(e.value) for e in spelled.elements):
        return None, "a reshape can infer one size only: write `tf.shape(x)[i]` for the others"
    minus_one = cst.UnaryOperation(cst.Minus(), cst.Integer("1"))
    replacements: dict[cst.CSTNode, Replacement] = {open_elements[0].value: minus_one}
    return _fix(use, "Let the reshape infer the size", replacements), None


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
        match element.value:
            case cst.Subscript(
                value=cst.Attribute(value=cst.Name(value=tensor), attr=cst.Name(value="shape")),
                slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value=index)))],
            ):
                dynamic = cst.parse_expression(f"{root}.shape({tensor})[{index}]")
                replacements[element.value] = dynamic
            case _:
                return None, "write `tf.shape(x)[i]` where the size is read"
    return _fix(use, "Use the size that the tensor has when the graph runs", replacements), None


def _fix(use: SizeUse, title: str, replacements: dict[cst.CSTNode, Replacement]) -> Fix:
    """Where the size is None in every trace, the old code never gave a result."""
    is_safe = set(use.regions) <= ALWAYS_NONE and _has_signature(use)
    return Fix(Safety.SAFE if is_safe else Safety.UNSAFE, title, replacements)


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
            return Fix(Safety.SAFE, title, {lost.node: pinned}), None
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
