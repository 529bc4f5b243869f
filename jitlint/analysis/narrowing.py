"""What is known of variables on either way out of a test."""

from dataclasses import replace

import libcst as cst

from jitlint.analysis.frame import Frame, Variables
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
    is_none,
)

TENSOR_CLASSES = {"torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter"}
SCALAR_CLASSES = {f"builtins.{name}" for name in ("int", "float", "bool", "str", "complex")}
SEQUENCE_CLASSES = {"builtins.list", "builtins.tuple", "builtins.set"}


def split(frame: Frame, node: cst.BaseExpression, value: Value) -> tuple[Variables, Variables]:
    """The variables when `node` was true, and when it was false."""
    when_true, when_false = dict(frame.variables), dict(frame.variables)
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
