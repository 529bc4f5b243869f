"""What is known of variables on either way out of a test."""

from collections.abc import Iterator
from dataclasses import replace

import libcst as cst

from jitlint.analysis import shapes
from jitlint.analysis.batches import loaders_of, whole
from jitlint.analysis.frame import Frame, Variables
from jitlint.analysis.tree import nodes_in
from jitlint.analysis.values import (
    NONE,
    STATIC,
    TENSOR,
    UNKNOWN,
    Class,
    Dict,
    External,
    Instance,
    Optional,
    Sequence,
    Static,
    Tensor,
    Tuple,
    Unknown,
    Value,
    is_constant,
    is_none,
)

TENSOR_CLASSES = {"torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter"}
SCALAR_CLASSES = {f"builtins.{name}" for name in ("int", "float", "bool", "str", "complex")}
SEQUENCE_CLASSES = {"builtins.list", "builtins.tuple", "builtins.set"}


def split(frame: Frame, node: cst.BaseExpression, value: Value) -> tuple[Variables, Variables]:
    """The variables when `node` was true, and when it was false."""
    when_true, when_false = dict(frame.variables), dict(frame.variables)
    _split_sizes(frame, node, when_true, when_false)
    if frame.region is None and isinstance(node, cst.Comparison):
        _split_batches(frame, node, when_true, when_false)
    match node:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget() as target]):
            _split_none(frame, left, target, when_true, when_false)
        case cst.Call():
            _split_call(frame, node, when_true, when_false)
        case cst.Name() | cst.Attribute():
            path = _path(frame, node)
            if path is not None and isinstance(value, Optional):
                when_true[path] = value.value
    return when_true, when_false


def _path(frame: Frame, node: cst.CSTNode) -> str | None:
    """The path of a variable that is about to be narrowed."""
    from jitlint.analysis.expressions import evaluate_target_path

    path = evaluate_target_path(node)
    if path is not None:
        frame.note(path)
    return path


def _split_none(
    frame: Frame,
    left: cst.BaseExpression,
    target: cst.ComparisonTarget,
    when_true: Variables,
    when_false: Variables,
) -> None:
    from jitlint.analysis.expressions import evaluate

    is_identity = isinstance(target.operator, cst.Is | cst.IsNot)
    if not is_identity or not _is_none_literal(target.comparator):
        return
    if isinstance(left, cst.NamedExpr):
        left = left.target
    path = _path(frame, left)
    if path is None:
        return
    with frame.quiet():
        value = evaluate(frame, left)
    present = value.value if isinstance(value, Optional) else value
    is_none_way, other_way = when_true, when_false
    if isinstance(target.operator, cst.IsNot):
        is_none_way, other_way = when_false, when_true
    is_none_way[path] = NONE
    other_way[path] = UNKNOWN if is_none(present) else present


def _is_none_literal(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _split_sizes(
    frame: Frame, node: cst.BaseExpression, when_true: Variables, when_false: Variables
) -> None:
    """`x.shape[0] is None`, `x.shape.is_fully_defined()`: which sizes a tensor has."""
    from jitlint.analysis.expressions import evaluate, evaluate_index

    size: cst.Subscript | None = None
    match node:
        case cst.Comparison(
            left=cst.Subscript(value=cst.Attribute(value=tensor, attr=cst.Name("shape"))) as read,
            comparisons=[
                cst.ComparisonTarget(cst.Is() | cst.IsNot() as operator, cst.Name("None"))
            ],
        ):
            size = read
            is_known = when_true if isinstance(operator, cst.IsNot) else when_false
        case cst.Call(
            func=cst.Attribute(
                value=cst.Attribute(value=tensor, attr=cst.Name("shape")),
                attr=cst.Name("is_fully_defined"),
            )
        ):
            is_known = when_true
        case _:
            return
    path = _path(frame, tensor)
    with frame.quiet():
        value = evaluate(frame, tensor)
        index = evaluate_index(frame, size)[0] if size is not None else None
    if path is None or not isinstance(value, Tensor) or value.shape is None:
        return
    position = index.const if isinstance(index, Static) and is_constant(index) else None
    if size is None or isinstance(position, int):
        is_known[path] = replace(value, shape=shapes.known(value.shape, position))


def _split_batches(
    frame: Frame, node: cst.Comparison, when_true: Variables, when_false: Variables
) -> None:
    """A test of the size of a batch: it is not the last one, or whoever wrote it knows."""
    tested = {loader for size in _sizes_in(frame, node) for loader in loaders_of(size)}
    if not tested:
        return
    for ways in (when_true, when_false):
        judged = {p: v for p, v in ways.items() if not tested.isdisjoint(loaders_of(v))}
        ways.update({path: whole(value) for path, value in judged.items()})


SIZES = {External("builtins.len"), External("tensorflow.shape"), External("tensorflow.size")}


def _sizes_in(frame: Frame, node: cst.CSTNode) -> Iterator[Value]:
    """What an expression reads the size of."""
    from jitlint.analysis.expressions import evaluate

    for each in nodes_in(node):
        with frame.quiet():
            match each:
                case cst.Attribute(value=of, attr=cst.Name("shape" | "size")):
                    yield evaluate(frame, of)
                case cst.Call(func=cst.Attribute(value=of, attr=cst.Name("get_shape"))):
                    yield evaluate(frame, of)
                case cst.Call(func=function, args=[cst.Arg(value=of), *_]):
                    if evaluate(frame, function) in SIZES:
                        yield evaluate(frame, of)


def _split_call(frame: Frame, node: cst.Call, when_true: Variables, when_false: Variables) -> None:
    from jitlint.analysis.expressions import evaluate

    with frame.quiet():
        function = evaluate(frame, node.func)
    if not isinstance(function, External) or not node.args:
        return
    path = _path(frame, node.args[0].value)
    if path is None:
        return
    with frame.quiet():
        value = evaluate(frame, node.args[0].value)
    if function.name == "torch.is_tensor":
        classes: list[Value] = [External("torch.Tensor")]
    elif function.name == "builtins.isinstance" and len(node.args) == 2:
        classes = classes_of(frame, node.args[1].value)
    else:
        return
    when_true[path] = _as_instance(value, classes)
    when_false[path] = _as_other(value, classes)


def classes_of(frame: Frame, node: cst.BaseExpression) -> list[Value]:
    """The classes that the second argument of isinstance names."""
    from jitlint.analysis.expressions import evaluate

    with frame.quiet():
        value = evaluate(frame, node)
    return list(value.items) if isinstance(value, Tuple) else [value]


def instance_of(frame: Frame, value: Value, classes: list[Value]) -> bool | None:
    """isinstance, where it is decided. A static value is never an instance of Tensor."""
    names = {c.name for c in classes if isinstance(c, External)}
    known = all(isinstance(c, External | Class) for c in classes)
    match value:
        case Tensor(maybe=False):
            if names & TENSOR_CLASSES:
                return True
            return False if known and names <= SCALAR_CLASSES | SEQUENCE_CLASSES else None
        case Static(const=None):
            return False if known else None
        case Static():
            if names and names <= TENSOR_CLASSES and len(names) == len(classes):
                return False
            if isinstance(value.const, int | float | str) and known:
                return any(f"builtins.{t.__name__}" in names for t in type(value.const).__mro__)
            return None
        case Tuple() | Sequence() | Dict():
            return False if known and names and names <= TENSOR_CLASSES else None
        case Instance(cls):
            mro = frame.machine.mro(cls)
            if any(isinstance(c, Class) and c.info in mro for c in classes):
                return True
            return False if known and names <= SCALAR_CLASSES | TENSOR_CLASSES else None
    return None


def _as_instance(value: Value, classes: list[Value]) -> Value:
    names = {c.name for c in classes if isinstance(c, External)}
    present = value.value if isinstance(value, Optional) else value
    if isinstance(present, Tensor) and names & TENSOR_CLASSES:
        return replace(present, maybe=False)
    if isinstance(present, Unknown | Tensor):
        if names and names <= TENSOR_CLASSES:
            return TENSOR
        if names and names <= SCALAR_CLASSES:
            return STATIC
        if names and names <= SEQUENCE_CLASSES:
            return Sequence(UNKNOWN)
        if len(classes) == 1 and isinstance(classes[0], Class):
            return Instance(classes[0].info)
        return UNKNOWN if isinstance(present, Tensor) and present.maybe else present
    return present


def _as_other(value: Value, classes: list[Value]) -> Value:
    names = {c.name for c in classes if isinstance(c, External)}
    if isinstance(value, Tensor) and value.maybe and names & TENSOR_CLASSES:
        return UNKNOWN
    return value
