"""Expressions that read one number out of a tensor."""

import enum
from dataclasses import dataclass

import libcst as cst

from jitlint.analysis.observations import Observation
from jitlint.analysis.values import External, ExternalMethod, Framework, Tensor, Value

from ..branch_fixes.withheld import Withheld


class Conversion(enum.Enum):
    """What becomes of the number on its way."""

    NONE = "item"
    FLOAT = "float"
    INT = "int"
    BOOL = "bool"


@dataclass(frozen=True, slots=True)
class Read:
    """`node` gives the one number in `tensor`, converted."""

    node: cst.Call
    tensor: cst.BaseExpression
    conversion: Conversion


CONVERSIONS = {
    "builtins.float": Conversion.FLOAT,
    "builtins.int": Conversion.INT,
    "builtins.bool": Conversion.BOOL,
}


def read_of(node: cst.CSTNode, observation: Observation) -> Read | None:
    """`tensor.item()`, or `float(tensor)` and its like; None if `node` is none of these.

    Raises Withheld if it is, and the tensor is not one of torch in every case.
    """
    match node:
        case cst.Call(func=cst.Attribute(value=tensor, attr=cst.Name("item")) as func, args=[]):
            value = observation.value_of(func)
            if isinstance(value, ExternalMethod) and isinstance(value.receiver, Tensor):
                return _checked(Read(node, tensor, Conversion.NONE), value.receiver)
        case cst.Call(func=cst.Name() as func, args=[cst.Arg(value=tensor, star="")]):
            function, value = observation.value_of(func), observation.value_of(tensor)
            if isinstance(function, External) and isinstance(value, Tensor):
                conversion = CONVERSIONS.get(function.name)
                return (
                    None if conversion is None else _checked(Read(node, tensor, conversion), value)
                )
    return None


def _checked(read: Read, value: Value) -> Read:
    assert isinstance(value, Tensor)
    if value.framework is not Framework.TORCH:
        raise Withheld("the number is read from a NumPy array: compute it with torch")
    if value.maybe:
        raise Withheld("what is read may be something other than a tensor")
    return read
