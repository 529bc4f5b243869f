"""What an annotation says of a value."""

import libcst as cst

from jitlint.analysis.frame import Frame
from jitlint.analysis.values import (
    BOOL_TENSOR,
    NONE,
    STATIC,
    TENSOR,
    UNKNOWN,
    Class,
    Dict,
    External,
    ExternalInstance,
    Framework,
    Function,
    Instance,
    Sequence,
    Tensor,
    Tuple,
    Value,
    is_none,
    is_tensor,
    join,
)

NUMPY_ARRAY = Tensor(framework=Framework.NUMPY)

TYPES: dict[str, Value] = {
    "torch.Tensor": TENSOR,
    "torch.BoolTensor": BOOL_TENSOR,
    "torch.ByteTensor": TENSOR,
    "torch.DoubleTensor": TENSOR,
    "torch.FloatTensor": TENSOR,
    "torch.HalfTensor": TENSOR,
    "torch.IntTensor": TENSOR,
    "torch.LongTensor": TENSOR,
    "torch.cuda.FloatTensor": TENSOR,
    "torch.cuda.LongTensor": TENSOR,
    "torch.nn.Parameter": Tensor(grad=True),
    "torch.nn.parameter.Parameter": Tensor(grad=True),
    "numpy.ndarray": NUMPY_ARRAY,
    "numpy.typing.NDArray": NUMPY_ARRAY,
    "tensorflow.Tensor": Tensor(framework=Framework.TENSORFLOW),
    "torch.Size": Sequence(STATIC, "torch.Size"),
    "torch.device": STATIC,
    "torch.dtype": STATIC,
    "builtins.bool": STATIC,
    "builtins.bytes": STATIC,
    "builtins.float": STATIC,
    "builtins.int": STATIC,
    "builtins.str": STATIC,
    "builtins.list": Sequence(UNKNOWN),
    "builtins.tuple": Sequence(UNKNOWN),
    "builtins.dict": Dict(),
}
SEQUENCES = {
    *("list", "List", "set", "Set", "frozenset", "FrozenSet", "Sequence", "Iterable"),
    *("Iterator", "Collection", "MutableSequence", "Generator", "deque"),
}
MAPPINGS = {"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict"}
TRANSPARENT = {"Annotated", "Final", "ClassVar", "Required", "NotRequired", "InitVar"}
ARRAY_ANNOTATIONS = ("jaxtyping.", "torchtyping.")


def annotated_value(frame: Frame, node: cst.BaseExpression) -> Value:
    """The value of a variable with this annotation; UNKNOWN when it says nothing."""
    match node:
        case cst.SimpleString() | cst.ConcatenatedString():
            text = node.evaluated_value
            return _parsed(frame, text) if isinstance(text, str) else UNKNOWN
        case cst.Subscript():
            return _generic(frame, node)
        case cst.BinaryOperation(operator=cst.BitOr()):
            left, right = (annotated_value(frame, side) for side in (node.left, node.right))
            return _union([left, right])
        case cst.Name(value="None"):
            return NONE
        case cst.Name() | cst.Attribute():
            return _named(frame, node)
    return UNKNOWN


def _parsed(frame: Frame, text: str) -> Value:
    try:
        return annotated_value(frame, cst.parse_expression(text.strip()))
    except cst.ParserSyntaxError:
        return UNKNOWN


def _named(frame: Frame, node: cst.BaseExpression) -> Value:
    from jitlint.analysis.expressions import evaluate

    with frame.quiet():
        value = evaluate(frame, node)
    match value:
        case External(name):
            if name in TYPES:
                return TYPES[name]
            if frame.machine.torch.module(name) is None:
                return UNKNOWN
            by_mode = frame.machine.tracing.depends_on_mode(name, lambda position, name: None)
            return ExternalInstance(name, by_mode=by_mode)
        case Class(info):
            return STATIC if frame.machine.is_enum(info) else Instance(info)
        case Function() | Instance():
            return UNKNOWN
    return UNKNOWN


def _generic(frame: Frame, node: cst.Subscript) -> Value:
    name = _last_name(node.value)
    arguments = [
        element.slice.value for element in node.slice if isinstance(element.slice, cst.Index)
    ]
    if not arguments:
        return UNKNOWN
    if name == "Optional":
        return _union([annotated_value(frame, arguments[0]), NONE])
    if name == "Union":
        return _union([annotated_value(frame, argument) for argument in arguments])
    if name in ("tuple", "Tuple"):
        return _tuple(frame, arguments)
    if name in SEQUENCES:
        return Sequence(annotated_value(frame, arguments[0]))
    if name in MAPPINGS and len(arguments) == 2:
        return Dict(default=annotated_value(frame, arguments[1]))
    if name in TRANSPARENT:
        return annotated_value(frame, arguments[0])
    if name in ("Literal", "LiteralString"):
        return STATIC
    return _array(frame, node, arguments)


def _array(frame: Frame, node: cst.Subscript, arguments: list[cst.BaseExpression]) -> Value:
    """`Float[Tensor, "b d"]` of jaxtyping, and `NDArray[float32]`."""
    from jitlint.analysis.expressions import evaluate

    with frame.quiet():
        base = evaluate(frame, node.value)
    if isinstance(base, External):
        if base.name.startswith(ARRAY_ANNOTATIONS):
            return annotated_value(frame, arguments[0])
        return TYPES.get(base.name, UNKNOWN)
    return UNKNOWN


def _tuple(frame: Frame, arguments: list[cst.BaseExpression]) -> Value:
    if len(arguments) == 2 and isinstance(arguments[1], cst.Ellipsis):
        return Sequence(annotated_value(frame, arguments[0]))
    return Tuple(tuple(annotated_value(frame, argument) for argument in arguments))


def _union(members: list[Value]) -> Value:
    """A union of a tensor and a container is no evidence until isinstance narrows it."""
    solid = [member for member in members if not is_none(member)]
    if not solid:
        return NONE
    result = solid[0]
    for member in solid[1:]:
        if is_tensor(result) != is_tensor(member) and not (member == STATIC or result == STATIC):
            return UNKNOWN
        result = join(result, member)
    return join(result, NONE) if len(solid) < len(members) else result


def _last_name(node: cst.BaseExpression) -> str:
    match node:
        case cst.Name(value=name):
            return name
        case cst.Attribute(attr=cst.Name(value=name)):
            return name
    return ""
