"""What Python's operators do to abstract values."""

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from jitlint.analysis.values import (
    MISSING,
    STATIC,
    UNKNOWN,
    Batch,
    Dict,
    External,
    Framework,
    Instance,
    Optional,
    Origin,
    Read,
    Sequence,
    Shape,
    Source,
    Static,
    Tensor,
    Tuple,
    Value,
    element_of,
    join,
    tuple_of,
)

BITWISE = {"BitAnd", "BitOr", "BitXor"}
MAX_DIGITS = 1_000_000
FOLD: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add,
    "Subtract": operator.sub,
    "Multiply": operator.mul,
    "Divide": operator.truediv,
    "FloorDivide": operator.floordiv,
    "Modulo": operator.mod,
    "Equal": operator.eq,
    "NotEqual": operator.ne,
    "LessThan": operator.lt,
    "LessThanEqual": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanEqual": operator.ge,
}


def binary(name: str, left: Value, right: Value) -> Value:
    """`left <op> right`; `name` is the LibCST class of the operator, without `Assign`."""
    name = name.removesuffix("Assign")
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return _tensor_arithmetic(name, left, right)
    if isinstance(left, Static) and isinstance(right, Static):
        return fold(name, left, right)
    if name == "Add" and isinstance(left, Tuple) and isinstance(right, Tuple):
        return tuple_of(left.items + right.items)
    if name == "Add" and isinstance(left, Tuple | Sequence) and isinstance(right, Tuple | Sequence):
        return Sequence(join(element_of(left), element_of(right)))
    if name == "Multiply" and isinstance(left, Tuple | Sequence):
        return Sequence(element_of(left))
    if name == "Modulo" and isinstance(left, Static) and isinstance(left.const, str):
        return STATIC
    if name == "BitOr" and isinstance(left, Dict) and isinstance(right, Dict):
        return Dict(tuple({**dict(left.items), **dict(right.items)}.items()), left.default)
    if isinstance(left, Optional) or isinstance(right, Optional):
        return binary(name, _present(left), _present(right))
    for batch, other in ((left, right), (right, left)):
        if isinstance(batch, Batch) and isinstance(other, Static):
            return batch
    return UNKNOWN


def _present(value: Value) -> Value:
    return value.value if isinstance(value, Optional) else value


def compare(name: str, left: Value, right: Value) -> Value:
    """`left <op> right` for the orderings, `==` and `!=`."""
    left, right = _present(left), _present(right)
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        other = right if isinstance(left, Tensor) else left
        if isinstance(other, Static) and isinstance(other.const, str | None):
            return STATIC
        if name in ("Equal", "NotEqual") and isinstance(other, Tuple | Sequence | Dict):
            return STATIC
        result = _tensor_arithmetic(name, left, right)
        return replace(result, is_bool=True, dtype="bool", grad=False)
    if isinstance(left, Static) and isinstance(right, Static):
        return fold(name, left, right)
    sources = [side for side in (left, right) if isinstance(side, Static)]
    if any(side.source is not Source.PYTHON for side in sources):
        source, read = provenance(*sources)
        return Static(source=source, read=read)
    if isinstance(left, Instance) or isinstance(right, Instance):
        return UNKNOWN
    return STATIC if len(sources) == 2 else UNKNOWN


def fold(name: str, left: Static, right: Static) -> Static:
    """An operation on static values: its constant where small, and where it comes from."""
    source, read = provenance(left, right)
    function = FOLD.get(name)
    if function is None or left.const is MISSING or right.const is MISSING:
        return Static(source=source, read=read, varies=left.varies or right.varies)
    if _is_large(left.const) or _is_large(right.const) or _repeats(name, left, right):
        return Static(source=source, read=read)
    try:
        return Static(function(left.const, right.const), source, read)
    except (TypeError, ValueError, ArithmeticError):
        return Static(source=source, read=read)


def provenance(*values: Static) -> tuple[Source, Read | None]:
    """Of several sources the strongest: data over shapes over plain Python."""
    strongest = max(values, key=lambda value: value.source.value)
    return strongest.source, strongest.read


def _is_large(const: object) -> bool:
    if isinstance(const, str | bytes):
        return len(const) > 1000
    return isinstance(const, int) and abs(const) > MAX_DIGITS


def _repeats(name: str, left: Static, right: Static) -> bool:
    """`"a" * n` and `"%9d" % n`, which are as long as a number says."""
    return name in ("Multiply", "Modulo") and any(
        isinstance(side.const, str | bytes) for side in (left, right)
    )


def _tensor_arithmetic(name: str, left: Value, right: Value) -> Tensor:
    tensors = [_present(side) for side in (left, right) if isinstance(_present(side), Tensor)]
    first = tensors[0]
    assert isinstance(first, Tensor)
    flags = [side.is_bool for side in tensors if isinstance(side, Tensor)]
    is_bool: bool | None = None
    if all(flag is True for flag in flags) and len(flags) == 2 and name in BITWISE:
        is_bool = True
    elif any(flag is False for flag in flags) or name == "Divide":
        is_bool = False
    return Tensor(
        is_bool=is_bool,
        rank=broadcast_rank((left, right)),
        maybe=all(t.maybe for t in tensors if isinstance(t, Tensor)),
        framework=first.framework,
        dtype=_promoted(name, left, right),
        shape=_arithmetic_shape(left, right),
        **traits_of((left, right)),
    )


def leaves_of(values: Iterable[Value]) -> Iterator[Value]:
    """The values, and what is in those that are containers, as an operator sees them."""
    for value in values:
        match _present(value):
            case Tuple(items):
                yield from leaves_of(items)
            case Sequence(element):
                yield from leaves_of((element,))
            case present:
                yield present


def traits_of(values: Iterable[Value]) -> dict[str, Any]:
    """What a tensor that is computed from these values has of its operands.

    A scalar follows the tensors; a value that nothing is known of may be anything.
    """
    given = list(leaves_of(values))
    tensors = [value for value in given if isinstance(value, Tensor)]
    is_known = all(isinstance(value, Tensor | Static | External) for value in given)
    arrays = [tensor for tensor in tensors if tensor.framework is Framework.NUMPY]
    grads = {False if tensor in arrays else tensor.grad for tensor in tensors}
    devices = {"cpu" if tensor in arrays else tensor.device for tensor in tensors}
    grad = True if True in grads else (False if grads == {False} and is_known else None)
    is_constant = bool(tensors) and is_known and not any(map(is_of_data, given))
    return {
        "assumed": bool(tensors) and all(tensor.assumed for tensor in tensors),
        "grad": grad,
        "device": devices.pop() if len(devices) == 1 and is_known else None,
        "origin": Origin.CONSTANT if is_constant else Origin.COMPUTED,
    }


def is_of_data(value: Value) -> bool:
    """Whether a value is not the same in each call."""
    if isinstance(value, Tensor):
        return value.origin is not Origin.CONSTANT
    return isinstance(value, Static) and value.source is Source.DATA


def _arithmetic_shape(left: Value, right: Value) -> Shape | None:
    """The shape of `x * 2`, and that nothing is known behind a loss."""
    shapes = [side.shape for side in (left, right) if isinstance(side, Tensor)]
    lost = next((shape for shape in shapes if shape is not None and shape.lost), None)
    if lost is not None:
        return lost
    return shapes[0] if len(shapes) == 1 and Static in (type(left), type(right)) else None


def _promoted(name: str, left: Value, right: Value) -> str | None:
    """The result's dtype where promotion is trivial; true division of ints is not."""
    dtypes = {side.dtype for side in (left, right) if isinstance(side, Tensor)}
    if len(dtypes) != 1:
        return None
    dtype = dtypes.pop()
    others = [side for side in (left, right) if not isinstance(side, Tensor)]
    if dtype is None or not all(isinstance(other, Static) for other in others):
        return None
    if dtype.startswith("int"):
        is_integral = name not in ("Divide", "Power") and all(map(_is_integer, others))
        return dtype if is_integral else None
    return dtype if dtype.startswith(("float", "bfloat")) else None


def _is_integer(value: Value) -> bool:
    return isinstance(value, Static) and type(value.const) is int


def broadcast_rank(values: Iterable[Value]) -> int | None:
    """The rank of an elementwise result; None unless the rank of every operand is known."""
    ranks: list[int] = []
    for value in values:
        rank = value.rank if isinstance(value, Tensor) else 0 if isinstance(value, Static) else None
        if rank is None:
            return None
        ranks.append(rank)
    return max(ranks, default=None)
