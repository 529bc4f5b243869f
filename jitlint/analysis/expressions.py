"""Expressions: the abstract value of each kind, and what Python tests for truth."""

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import libcst as cst

from jitlint.analysis import freezing, narrowing, once, shapes
from jitlint.analysis.frame import Frame, Variables, join_variables, truth
from jitlint.analysis.observations import Construct, Use
from jitlint.analysis.operators import binary, compare, leaves_of, provenance
from jitlint.analysis.tree import is_handed_on
from jitlint.analysis.values import (
    BOOL_TENSOR,
    DATA_SHAPE,
    DATA_SIZE,
    DATA_SIZES,
    FALSE,
    NONE,
    SHAPE,
    STATIC,
    TRUE,
    UNKNOWN,
    Batch,
    Class,
    Dict,
    ExternalInstance,
    Framework,
    Function,
    Instance,
    Kernel,
    Optional,
    Read,
    Sequence,
    Shape,
    Size,
    Source,
    Static,
    StaticShape,
    Tensor,
    Tuple,
    Unknown,
    Value,
    element_of,
    given,
    is_constant,
    is_none,
    is_other_size,
    is_symbol,
    is_tensor,
    join,
    join_all,
    size_value,
    some_value_of,
    tuple_of,
)


def evaluate(frame: Frame, node: cst.CSTNode) -> Value:
    """The value of an expression, in the order in which Python evaluates its parts."""
    handler = EXPRESSIONS.get(type(node))
    return handler(frame, node) if handler is not None else UNKNOWN


# -- truth ---------------------------------------------------------------------------------


def branch(
    frame: Frame, node: cst.BaseExpression, construct: Construct, owner: cst.CSTNode
) -> tuple[bool | None, Variables, Variables]:
    """Test `node` for truth: its truth where decided, and the variables on both ways out."""
    tested = _test(frame, node, construct, owner)
    return tested.decided, tested.when_true, tested.when_false


@dataclass(slots=True)
class _Tested:
    """An expression that was tested for truth: once, as a second look at each operand of
    `a and b and c …` would double with each of them."""

    value: Value
    decided: bool | None
    when_true: Variables
    when_false: Variables


def _test(
    frame: Frame, node: cst.BaseExpression, construct: Construct, owner: cst.CSTNode
) -> _Tested:
    match node:
        case cst.UnaryOperation(operator=cst.Not()):
            inner = _test(frame, node.expression, construct, owner)
            decided = None if inner.decided is None else not inner.decided
            return _Tested(_negation(inner.value), decided, inner.when_false, inner.when_true)
        case cst.BooleanOperation():
            return _test_boolean(frame, node, construct, owner)
        case cst.NamedExpr(target=cst.Name(value=name)):
            tested = _test(frame, node.value, construct, owner)
            for variables in (tested.when_true, tested.when_false):
                variables[name] = tested.value
            return tested
    value = evaluate(frame, node)
    if isinstance(value, Instance):
        frame.machine.call_method(frame, value, "__bool__", ())
    if isinstance(value, Optional):
        present = value.value
        if is_tensor(present):
            frame.observe(node, Tensor(present.is_bool, present.rank, True), construct, owner)
    elif asks_data(value) and (is_tensor(value) or not _is_checked(frame, node)):
        frame.observe(node, value, construct, owner)
    when_true, when_false = narrowing.split(frame, node, value)
    return _Tested(value, truth(value), when_true, when_false)


def _is_checked(frame: Frame, node: cst.BaseExpression) -> bool:
    """Whether the compiler knows that a test of symbols holds, and needs no guard (measured)."""
    return bool(frame.checked) and condition_code(frame, node) in frame.checked


def condition_code(frame: Frame, node: cst.BaseExpression) -> str:
    """The code of a condition, the same with parentheses around it and without."""
    return frame.module.tree.code_for_node(node.with_changes(lpar=(), rpar=()))


def asks_data(value: Value) -> bool:
    """Whether testing this value for truth is something a compiler may stop at."""
    return is_tensor(value) or (
        isinstance(value, Static) and value.source is not Source.PYTHON and not is_constant(value)
    )


def _test_boolean(
    frame: Frame, node: cst.BooleanOperation, construct: Construct, owner: cst.CSTNode
) -> _Tested:
    is_and = isinstance(node.operator, cst.And)
    left = _test(frame, node.left, construct, owner)
    if left.decided is not None and left.decided is not is_and:
        return left
    frame.variables = left.when_true if is_and else left.when_false
    condition = left.value if left.decided is None else TRUE
    with frame.guarded(condition, exempt=_is_training(node.left)):
        right = _test(frame, node.right, construct, owner)
    value = _either(is_and, left, right.value)
    if is_and:
        decided = False if right.decided is False else (right.decided if left.decided else None)
        when_false = join_variables(left.when_false, right.when_false) or right.when_false
        return _Tested(value, decided, right.when_true, when_false)
    decided = True if right.decided is True else (right.decided if left.decided is False else None)
    when_true = join_variables(left.when_true, right.when_true) or right.when_true
    return _Tested(value, decided, when_true, right.when_false)


def _either(is_and: bool, left: _Tested, right: Value) -> Value:
    """The value of `left and right` or `left or right` where `right` is evaluated."""
    if left.decided is not None:
        return right
    value = left.value
    if not is_and and isinstance(value, Optional):
        value = value.value
    return join(value, right)


def _is_training(node: cst.BaseExpression) -> bool:
    """`self.training` is not a guard: models are run in both modes."""
    return isinstance(node, cst.Attribute) and node.attr.value == "training"


# -- leaves --------------------------------------------------------------------------------


CONSTANTS = {"None": NONE, "True": TRUE, "False": FALSE, "__debug__": TRUE}


def _name(frame: Frame, node: cst.Name) -> Value:
    name = node.value
    if name in CONSTANTS:
        return CONSTANTS[name]
    if name in frame.variables:
        return frame.variables[name]
    closure = frame.closure
    if closure is not None and name in closure.variables:
        return closure.variables[name]
    value = frame.machine.global_value(frame.module, name)
    if frame.runs_once:
        once.by_name(frame, node, value)
    return value if frame.region is None else given(value)


@lru_cache(maxsize=4096)
def _constant(text: str) -> Static:
    """The value of a literal; LibCST would parse it again each time it is asked."""
    value = ast.literal_eval(text)
    return Static(value) if isinstance(value, int | float | str) else STATIC


def _literal(frame: Frame, node: cst.Integer | cst.Float | cst.SimpleString) -> Value:
    return _constant(node.value)


def _concatenated(frame: Frame, node: cst.ConcatenatedString) -> Value:
    parts = [evaluate(frame, part) for part in (node.left, node.right)]
    texts = [part.const for part in parts if isinstance(part, Static)]
    return Static("".join(texts)) if all(isinstance(text, str) for text in texts) else STATIC


def _formatted(frame: Frame, node: cst.FormattedString) -> Value:
    for part in node.parts:
        if isinstance(part, cst.FormattedStringExpression):
            observe_text(frame, node, [evaluate(frame, part.expression)], part.expression)
    return STATIC


def observe_text(
    frame: Frame,
    text: cst.BaseExpression,
    values: Iterable[Value],
    place: cst.BaseExpression | None = None,
) -> None:
    """Tell the log of tensors of which a text is made; Python does that where it is read."""
    row = frame.machine.torch.construct(FORMATS[not is_handed_on(text, frame.module.tree)])
    for value in values:
        if is_tensor(value) and value.framework is not Framework.NUMPY:
            frame.observe_number(place or text, row, value, Use.FORMAT)


FORMATS = {True: "format_tensor", False: "format_tensor_unread"}
"""What it does to make a text of a tensor: one that is read, or only returned."""


def _static(frame: Frame, node: cst.CSTNode) -> Value:
    return STATIC


# -- containers ----------------------------------------------------------------------------


def _items(frame: Frame, elements: Iterable[cst.BaseElement]) -> tuple[list[Value], bool]:
    """The values of elements, and whether their number is known."""
    values: list[Value] = []
    exact = True
    for element in elements:
        value = evaluate(frame, element.value)
        if not isinstance(element, cst.StarredElement):
            values.append(value)
        elif isinstance(value, Tuple):
            values.extend(value.items)
        elif isinstance(value, StaticShape) and not value.shape.more:
            values.extend(map(size_value, value.shape.dims))
        else:
            exact = False
            values.append(element_of(value))
    return values, exact


def _tuple(frame: Frame, node: cst.Tuple | cst.List) -> Value:
    values, exact = _items(frame, node.elements)
    if exact:
        return tuple_of(values)
    return Sequence(element_of(Tuple(tuple(values))))


def _set(frame: Frame, node: cst.Set) -> Value:
    values, _ = _items(frame, node.elements)
    return Sequence(element_of(Tuple(tuple(values))))


def _dict(frame: Frame, node: cst.Dict) -> Value:
    items: dict[Any, Value] = {}
    default: Value | None = None
    for element in node.elements:
        if isinstance(element, cst.StarredDictElement):
            merged = evaluate(frame, element.value)
            if isinstance(merged, Dict):
                items.update(merged.items)
                default = merged.default if default is None else join(default, merged.default)
            else:
                default = UNKNOWN
            continue
        assert isinstance(element, cst.DictElement)
        key = evaluate(frame, element.key)
        value = evaluate(frame, element.value)
        if is_constant(key):
            items[key.const] = value
        else:
            default = value if default is None else join(default, value)
    return Dict(tuple(items.items()), UNKNOWN if default is None else default)


# -- operators -----------------------------------------------------------------------------


def _binary(frame: Frame, node: cst.BinaryOperation) -> Value:
    left = evaluate(frame, node.left)
    right = evaluate(frame, node.right)
    if isinstance(node.operator, cst.Add) and StaticShape in (type(left), type(right)):
        return shapes.joined(left, right)
    if shapes.is_open(left) or shapes.is_open(right):
        shapes.used(frame, node, left, right)
    asking = _operator_of_number(node.operator, left)
    if asking is not None:
        frame.observe_number(node, frame.machine.torch.construct(asking), right)
    are_numbers = isinstance(left, Static) and isinstance(right, Static)
    if are_numbers and (is_symbol(left) or is_symbol(right)):
        return computed(frame, node, left, right)
    overloaded = frame.machine.overloaded(frame, type(node.operator).__name__, left, right)
    if overloaded is not None:
        return overloaded
    return binary(type(node.operator).__name__, left, right)


def _operator_of_number(operator: cst.BaseBinaryOp, left: Value) -> str | None:
    """The construct by which an operator asks its right operand for a number."""
    is_list = isinstance(left, Tuple | Sequence)
    is_text = isinstance(left, Static) and isinstance(left.const, str)
    match operator:
        case cst.Multiply() if is_list:
            return "repeat_list_by_item"
        case cst.Modulo() if is_text:
            return "percent_format_item"
    return None


def computed(
    frame: Frame, node: cst.BaseExpression, *values: Value, captured: bool = False
) -> Value:
    """Python computes with a number that the compiler made a symbol of: there the graph ends,
    unless all of the code has to be one (`captured`)."""
    for value in values:
        if is_symbol(value) and value.read is not None and not frame.settles(value):
            row = frame.machine.torch.standard(value.read.operator)
            if row is not None:
                row = replace(row, breaks=row.symbolic, captured=captured)
                frame.observe_operation(node, row, Use.CALL, values)
    return STATIC


def _unary(frame: Frame, node: cst.UnaryOperation) -> Value:
    if isinstance(node.operator, cst.Not):
        return _not(frame, node, evaluate(frame, node.expression))
    value = evaluate(frame, node.expression)
    if is_symbol(value):
        return computed(frame, node, value)
    if isinstance(value, Static) and is_constant(value):
        return _negated(node.operator, value)
    return replace(value, origin=value.derived) if is_tensor(value) else value


def _not(frame: Frame, node: cst.UnaryOperation, value: Value) -> Value:
    if asks_data(value):
        frame.observe(node, value, Construct.NOT, node)
    return _negation(value)


def _negation(value: Value) -> Value:
    if is_tensor(value):
        return Static(source=Source.DATA, read=Read("not"))
    decided = truth(value)
    if decided is not None:
        return FALSE if decided else TRUE
    if isinstance(value, Static):
        return Static(source=value.source, read=value.read)
    return STATIC


def _negated(operator: cst.BaseUnaryOp, value: Static) -> Value:
    try:
        match operator:
            case cst.Minus():
                return Static(-value.const)
            case cst.BitInvert():
                return Static(~value.const)
    except TypeError:
        return STATIC
    return value


def _boolean(frame: Frame, node: cst.BooleanOperation) -> Value:
    """`a and b` as a value: `a` is tested, `b` is not."""
    is_and = isinstance(node.operator, cst.And)
    before = frame.variables
    left = _test(frame, node.left, Construct.BOOLEAN, node)
    if left.decided is not None and left.decided is not is_and:
        frame.variables = before
        return left.value
    frame.variables = left.when_true if is_and else left.when_false
    condition = left.value if left.decided is None else TRUE
    with frame.guarded(condition, exempt=_is_training(node.left)):
        right = evaluate(frame, node.right)
    frame.variables = before
    return _either(is_and, left, right)


def _comparison(frame: Frame, node: cst.Comparison) -> Value:
    left = evaluate(frame, node.left)
    results: list[Value] = []
    for target in node.comparisons:
        right = evaluate(frame, target.comparator)
        result = _compare_one(frame, node, target.operator, left, right)
        results.append(result)
        left = right
    if len(results) > 1:
        for result in results[:-1]:
            if is_tensor(result) or is_symbol(result):
                frame.observe(node, result, Construct.CHAIN, node)
    if any(is_tensor(result) for result in results):
        return join_all(result for result in results if is_tensor(result))
    if len(results) == 1:
        return results[0]
    if any(truth(result) is False for result in results):
        return FALSE
    if all(truth(result) is True for result in results):
        return TRUE
    statics = [result for result in results if isinstance(result, Static)]
    source, read = provenance(*statics) if statics else (Source.PYTHON, None)
    return Static(source=source, read=read)


def _compare_one(
    frame: Frame, node: cst.Comparison, operator: cst.BaseCompOp, left: Value, right: Value
) -> Value:
    overloaded = frame.machine.overloaded(frame, type(operator).__name__, left, right)
    if overloaded is not None:
        return overloaded
    match operator:
        case cst.Is() | cst.IsNot():
            return _identity(left, right, isinstance(operator, cst.Is))
        case cst.In() | cst.NotIn():
            return _membership(frame, node, left, right, isinstance(operator, cst.In))
    if shapes.is_open(left) or shapes.is_open(right):
        if not isinstance(operator, cst.Equal | cst.NotEqual):
            shapes.used(frame, node, left, right)
        return STATIC
    if frame.tracer and (freezing.holds_size(left) or freezing.holds_size(right)):
        return SHAPE  # a comparison of sizes, or of one
    if _meets_tensors(left, right):
        frame.observe(node, BOOL_TENSOR, Construct.CONTAINERS, node)
        return Static(source=Source.DATA, read=Read("=="))
    return compare(type(operator).__name__, left, right)


def _meets_tensors(left: Value, right: Value) -> bool:
    """Whether a comparison of containers comes to two tensors: it stops at what differs."""
    if isinstance(left, Tuple) and isinstance(right, Tuple):
        pairs = zip(left.items, right.items, strict=False)
        first = next((pair for pair in pairs if pair[0] != pair[1] or is_tensor(pair[0])), ())
        return bool(first) and all(map(is_tensor, first))
    return all(
        isinstance(value, Tuple | Sequence) and is_tensor(element_of(value))
        for value in (left, right)
    )


def _identity(left: Value, right: Value, positive: bool) -> Value:
    if is_none(right) or is_none(left):
        other = left if is_none(right) else right
        if is_none(other):
            return Static(positive)
        if isinstance(other, Unknown | Optional) or (is_tensor(other) and other.maybe):
            return STATIC
        if isinstance(other, Static) and not is_constant(other):
            return STATIC
        return Static(not positive)
    if is_constant(left) and is_constant(right) and isinstance(left.const, bool):
        return Static((left == right) is positive)
    return STATIC


def _membership(
    frame: Frame, node: cst.Comparison, needle: Value, container: Value, positive: bool
) -> Value:
    if isinstance(container, Tuple) and is_constant(needle):
        constants = [item.const for item in container.items if is_constant(item)]
        if len(constants) == len(container.items):
            return Static((needle.const in constants) is positive)
    if isinstance(container, Instance):
        return frame.machine.call_method(frame, container, "__contains__", [needle])
    if isinstance(container, Dict) and is_constant(needle):
        known = dict(container.items)
        if needle.const in known:
            return Static(positive)
        if container.closed:
            return Static(not positive)
        if isinstance(container.default, Unknown) and not known:
            return STATIC
    if frame.tracer and isinstance(needle, Static) and needle.source is not Source.PYTHON:
        return Static(source=needle.source, read=needle.read)
    if is_tensor(container):
        frame.observe(node, container, Construct.CONTAINS, node)
        return Static(source=Source.DATA, read=Read("in"))
    if frame.in_graph and is_tensor(needle) and isinstance(container, Tuple | Sequence):
        frame.observe(node, needle, Construct.CONTAINS, node)
        return Static(source=Source.DATA, read=Read("in"))
    if _compares_tensors(needle, container):
        if positive:  # Dynamo builds a tensor, and stops where that is tested
            return Tensor(is_bool=True, rank=0, dtype="bool")
        frame.observe(node, BOOL_TENSOR, Construct.NOT_IN, node)
        return Static(source=Source.DATA, read=Read("not in"))
    return STATIC


def _compares_tensors(needle: Value, container: Value) -> bool:
    if not isinstance(container, Tuple | Sequence):
        return False
    items = container.items if isinstance(container, Tuple) else (container.element,)
    if is_tensor(needle):
        return any(not isinstance(item, Unknown) for item in items)
    return isinstance(needle, Static) and any(is_tensor(item) for item in items)


def _conditional(frame: Frame, node: cst.IfExp) -> Value:
    test = _test(frame, node.test, Construct.TERNARY, node)
    decided, when_true, when_false = test.decided, test.when_true, test.when_false
    before = frame.variables
    values: list[Value] = []
    condition = test.value if decided is None else TRUE
    with frame.guarded(condition, exempt=_is_training(node.test)):
        if decided is not False:
            frame.variables = when_true
            values.append(evaluate(frame, node.body))
        if decided is not True:
            frame.variables = when_false
            values.append(evaluate(frame, node.orelse))
    frame.variables = before
    return join_all(values)


def _walrus(frame: Frame, node: cst.NamedExpr) -> Value:
    value = evaluate(frame, node.value)
    if isinstance(node.target, cst.Name):
        frame.assign(node.target.value, value)
    return value


# -- access --------------------------------------------------------------------------------


def evaluate_target_path(node: cst.CSTNode) -> str | None:
    """`self.a.b` as a key of the variables; None for anything but names and attributes."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    return ".".join([node.value, *reversed(parts)])


def _attribute(frame: Frame, node: cst.Attribute) -> Value:
    path = evaluate_target_path(node)
    if path is not None and path in frame.variables:
        return frame.variables[path]
    receiver = evaluate(frame, node.value)
    if is_tensor(receiver):
        is_array = receiver.framework is Framework.NUMPY
        table = frame.machine.torch
        row = (table.array if is_array else table.read)(node.attr.value)
        frame.observe_operation(node, row, Use.ATTRIBUTE, (receiver,))
        if frame.tracer:
            return freezing.by_attribute(frame, receiver, node)
    value = frame.machine.attribute(frame, receiver, node.attr.value)
    if frame.runs_once:
        once.by_attribute(frame, receiver, node, value)
    return value


def _subscript(frame: Frame, node: cst.Subscript) -> Value:
    container = evaluate(frame, node.value)
    index = evaluate_index(frame, node)
    if isinstance(container, Optional):
        container = container.value
    _observe_index(frame, node, container, index)
    if frame.runs_once:
        once.by_environment(frame, container, node)
        once.by_key(frame, container, index[0], node)
    match container:
        case Tensor():
            item = _tensor_item(container, index)
            return replace(item, shape=_item_shape(frame, node, container, index))
        case StaticShape(shape):
            return _shape_item(frame, node, shape, index[0])
        case Tuple():
            return _tuple_item(container, index)
        case Sequence(element):
            if container == DATA_SIZES and is_other_size(index[0]):
                return SHAPE
            return container if index[0] is None else element
        case Batch():
            return container
        case Dict():
            return _dict_item(container, index[0])
        case Static():
            return Static(source=container.source)
        case Class() | Function() | Kernel():  # of a CUDA kernel: its launch configuration
            return container
        case Instance():
            return frame.machine.call_method(frame, container, "__getitem__", [index[0] or STATIC])
    return frame.machine.external_item(container, index)


def evaluate_index(frame: Frame, node: cst.Subscript) -> list[Value | None]:
    """The values of the indices of a subscript."""
    return [_index(frame, element.slice) for element in node.slice]


def _index(frame: Frame, node: cst.BaseSlice) -> Value | None:
    """The value of an index; None for a slice."""
    if isinstance(node, cst.Index):
        return evaluate(frame, node.value)
    if isinstance(node, cst.Slice):
        for bound, construct in zip(
            (node.lower, node.upper, node.step), SLICE_CONSTRUCTS, strict=True
        ):
            if bound is not None:
                row = frame.machine.torch.construct(construct)
                frame.observe_number(bound, row, evaluate(frame, bound), Use.BOUND)
    return None


SLICE_CONSTRUCTS = ("slice_from_tensor", "slice_to_tensor", "slice_by_tensor_step")


def _observe_index(
    frame: Frame, node: cst.Subscript, container: Value, index: list[Value | None]
) -> None:
    """Tell the log of an index that depends on data: a mask of a tensor, a tensor of a list."""
    if isinstance(container, Tensor):
        _observe_masks(frame, node, container, index)
        observe_scalar_indices(frame, node, index, "index_by_scalar", "index_by_scalar_mask")
        return
    is_dict = isinstance(container, Dict)
    construct = "index_dict_by_item" if is_dict else LOOKUPS.get(type(container))
    if construct is None:
        return
    row = frame.machine.torch.construct(construct)
    for element, value in zip(node.slice, index, strict=True):
        if value is None or (is_dict and is_tensor(value)):
            continue  # a slice, or a tensor that is a key itself
        if isinstance(element.slice, cst.Index):
            frame.observe_number(element.slice.value, row, value)


LOOKUPS: dict[type[Value], str] = {
    Tuple: "index_list_by_tensor",
    Sequence: "index_list_by_tensor",
    ExternalInstance: "index_list_by_tensor",
}
"""What Python looks up in by a number."""


def _observe_masks(
    frame: Frame, node: cst.Subscript, container: Tensor, index: list[Value | None]
) -> None:
    given = list(leaves_of(value for value in index if value is not None))
    if any(_is_mask(value) and value.rank != 0 for value in given if is_tensor(value)):
        row = frame.machine.torch.construct("index_by_mask")
        frame.observe_operation(node, row, Use.INDEX, (container, *given))


def observe_scalar_indices(
    frame: Frame,
    node: cst.Subscript,
    index: list[Value | None],
    by_number: str,
    by_mask: str,
) -> None:
    """Tell the log of tensors of rank 0 among the indices of a tensor: they are read."""
    for element, value in zip(node.slice, index, strict=True):
        for leaf in leaves_of([] if value is None else [value]):
            is_scalar = leaf.rank == 0 if is_tensor(leaf) else is_symbol(leaf)
            if is_scalar and isinstance(element.slice, cst.Index):
                row = frame.machine.torch.construct(by_mask if _is_mask(leaf) else by_number)
                frame.observe_number(element.slice.value, row, leaf)


def _is_mask(value: Value) -> bool:
    return isinstance(value, Tensor) and value.is_bool is True


def _tensor_item(tensor: Tensor, index: list[Value | None]) -> Tensor:
    rank: int | None = None
    if tensor.rank == 1 and len(index) == 1:
        scalar = isinstance(index[0], Static) and not is_none(index[0])
        rank = 0 if scalar else (1 if index[0] is None else None)
    return replace(tensor, rank=rank, origin=tensor.derived)


def _item_shape(
    frame: Frame, node: cst.Subscript, tensor: Tensor, index: list[Value | None]
) -> Shape | None:
    """The first dimension of `x[mask]` depends on data, that of `x[:n]` on a counter."""
    first = index[0]
    is_mask = isinstance(first, Tensor) and first.is_bool is True
    if is_mask:
        return DATA_SHAPE
    bounds = node.slice[0].slice
    if isinstance(bounds, cst.Slice) and bounds.lower is None and bounds.upper is not None:
        upper = evaluate(frame, bounds.upper)
        if isinstance(upper, Static) and upper.varies:
            return Shape((Size.VARIES,), more=True)
        if frame.region is None and len(node.slice) == 1:
            return shapes.first_rows(tensor.shape, upper)
    lost = tensor.shape is not None and tensor.shape.lost is not None
    return tensor.shape if lost else None


def _shape_item(frame: Frame, node: cst.Subscript, shape: Shape, key: Value | None) -> Value:
    is_part = isinstance(node.slice[0].slice, cst.Slice)
    if shape.lost is not None:
        return StaticShape(shape) if is_part else shapes.lost_size(shape.lost)
    if isinstance(node.slice[0].slice, cst.Slice):
        bounds = node.slice[0].slice
        lower, upper = (
            None if bound is None else evaluate(frame, bound)
            for bound in (bounds.lower, bounds.upper)
        )
        return shapes.part(shape, lower, upper)
    if isinstance(key, Static) and isinstance(key.const, int):
        return shapes.item(shape, key.const)
    return SHAPE


def _tuple_item(container: Tuple, index: list[Value | None]) -> Value:
    items, key = container.items, index[0]
    if key is None:
        return Sequence(element_of(Tuple(items)))
    if isinstance(key, Static) and isinstance(key.const, int):
        if -len(items) <= key.const < len(items):
            return items[key.const]
        return UNKNOWN
    return UNKNOWN if container.gathered else element_of(Tuple(items))


def _dict_item(container: Dict, key: Value | None) -> Value:
    if key is not None and is_constant(key):
        return container.get(key.const)
    return some_value_of(container)


# -- functions and comprehensions ----------------------------------------------------------


def _lambda(frame: Frame, node: cst.Lambda) -> Value:
    return frame.machine.lambda_value(frame, node)


def _call(frame: Frame, node: cst.Call) -> Value:
    from jitlint.analysis.calls import evaluate_call

    return evaluate_call(frame, node)


def _comprehension(frame: Frame, node: cst.ListComp | cst.SetComp | cst.GeneratorExp) -> Value:
    before = frame.variables
    frame.variables = dict(before)
    exact = _enter(frame, node.for_in)
    element = evaluate(frame, node.elt)
    frame.variables = before
    return Tuple((element,) * exact) if exact is not None else Sequence(element)


def _dict_comprehension(frame: Frame, node: cst.DictComp) -> Value:
    before = frame.variables
    frame.variables = dict(before)
    _enter(frame, node.for_in)
    evaluate(frame, node.key)
    value = evaluate(frame, node.value)
    frame.variables = before
    return Dict((), value)


def iterated(frame: Frame, node: cst.BaseExpression, value: Value) -> Value:
    """What a loop over `value` goes through; a graph has to know how often."""
    if isinstance(value, Instance):
        return _iterated_object(frame, value)
    shape = value.shape if isinstance(value, Tensor) else None
    if shape is not None and Size.DATA in shape.dims:
        frame.observe_number(node, frame.machine.torch.construct("iterate_masked"), DATA_SIZE)
    return element_of(value)


def _iterated_object(frame: Frame, value: Instance) -> Value:
    made = frame.machine.call_method(frame, value, "__iter__", ())
    if isinstance(made, Instance):
        return frame.machine.call_method(frame, made, "__next__", ())
    return element_of(made)


def _enter(frame: Frame, clause: cst.CompFor) -> int | None:
    """Bind the targets of `for … in …`; None, as the number of elements is not followed."""
    from jitlint.analysis.statements import bind

    collection = evaluate(frame, clause.iter)
    if frame.tracer:
        freezing.by_loop(frame, collection, clause.iter)
    bind(frame, clause.target, iterated(frame, clause.iter, collection))
    for condition in clause.ifs:
        _, when_true, _ = branch(frame, condition.test, Construct.COMPREHENSION, clause)
        frame.variables = when_true
    if clause.inner_for_in is not None:
        _enter(frame, clause.inner_for_in)
    return None


def _await(frame: Frame, node: cst.Await) -> Value:
    return evaluate(frame, node.expression)


def _yield(frame: Frame, node: cst.Yield) -> Value:
    if node.value is not None:
        value = evaluate(frame, node.value.item if isinstance(node.value, cst.From) else node.value)
        is_from = isinstance(node.value, cst.From)
        frame.yielded.append(element_of(value) if is_from else value)
    else:
        frame.yielded.append(NONE)
    return UNKNOWN


EXPRESSIONS: dict[type[cst.CSTNode], Callable[[Frame, Any], Value]] = {
    cst.Attribute: _attribute,
    cst.Await: _await,
    cst.BinaryOperation: _binary,
    cst.BooleanOperation: _boolean,
    cst.Call: _call,
    cst.Comparison: _comparison,
    cst.ConcatenatedString: _concatenated,
    cst.Dict: _dict,
    cst.DictComp: _dict_comprehension,
    cst.Ellipsis: _static,
    cst.Float: _literal,
    cst.FormattedString: _formatted,
    cst.GeneratorExp: _comprehension,
    cst.IfExp: _conditional,
    cst.Imaginary: _static,
    cst.Integer: _literal,
    cst.Lambda: _lambda,
    cst.List: _tuple,
    cst.ListComp: _comprehension,
    cst.Name: _name,
    cst.NamedExpr: _walrus,
    cst.Set: _set,
    cst.SetComp: _comprehension,
    cst.SimpleString: _literal,
    cst.Subscript: _subscript,
    cst.Tuple: _tuple,
    cst.UnaryOperation: _unary,
    cst.Yield: _yield,
}
