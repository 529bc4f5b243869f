"""What a kernel returns, told from its body: an array like which of its parameters?"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from jitlint.analysis.scope import is_bound_once, names_written
from jitlint.analysis.values import Kernel
from jitlint.project.modules import FunctionInfo

from ._kernels import UFUNCS, body_of, parameters_of


class Width(enum.Enum):
    """How the result's dtype follows: Numba widens float32 where a Python float takes part."""

    SAME = 0
    UNCLEAR = 1
    WIDENED = 2


@dataclass(frozen=True, slots=True)
class Result:
    """A new array with the shape of the parameter `like`."""

    like: str
    width: Width


LIKE = frozenset({"empty_like", "zeros_like", "ones_like", "full_like", "copy"})
ELEMENTWISE = frozenset(
    {"abs", "exp", "log", "sqrt", "sin", "cos", "tan", "tanh", "floor", "ceil", "sign"}
    | {"square", "log1p", "expm1", "negative", "maximum", "minimum", "where", "clip"}
)
NUMPY = ("np", "numpy")


def result_of(kernel: Kernel) -> Result | None:
    """None where the body does not say what is returned."""
    info = body_of(kernel)
    parameters = parameters_of(kernel)
    if info is None or not parameters:
        return None
    if kernel.maker == "numba.vectorize":
        return Result(parameters[0], Width.UNCLEAR)
    if kernel.maker in UFUNCS:
        return None
    # once it is bound again, the name of a parameter says nothing of the argument
    parameters = [each for each in parameters if each not in names_written(info.node.body)]
    found = {_returned(value, info, parameters) for value in _returns(info)}
    return found.pop() if len(found) == 1 else None


def returns_nothing(kernel: Kernel) -> bool:
    info = body_of(kernel)
    return info is not None and not any(True for _ in _returns(info))


def _returns(info: FunctionInfo) -> Iterator[cst.BaseExpression]:
    if isinstance(info.node, cst.Lambda):
        yield info.node.body
        return
    for node in _statements(info.node.body):
        if isinstance(node, cst.Return) and node.value is not None:
            yield node.value


def _statements(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in node.children:
        if not isinstance(child, cst.FunctionDef | cst.Lambda):
            yield from _statements(child)


def _returned(
    value: cst.BaseExpression, info: FunctionInfo, parameters: list[str]
) -> Result | None:
    if isinstance(value, cst.Name):
        assigned = list(_assigned(value.value, info))
        if len(assigned) != 1 or not is_bound_once(value.value, info.node.body):
            return None
        value = assigned[0]
    return _like(value, parameters) or _elementwise(value, parameters)


def _assigned(name: str, info: FunctionInfo) -> Iterator[cst.BaseExpression]:
    for node in _statements(info.node.body):
        if isinstance(node, cst.Assign):
            for each in node.targets:
                if isinstance(each.target, cst.Name) and each.target.value == name:
                    yield node.value


def _like(value: cst.BaseExpression, parameters: list[str]) -> Result | None:
    """`np.empty_like(x)` and `x.copy()`."""
    match value:
        case cst.Call(
            func=cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(value=name)),
            args=arguments,
        ):
            if owner in parameters and name == "copy" and not arguments:
                return Result(owner, Width.SAME)
            if owner in NUMPY and name in LIKE and arguments:
                has_dtype = any(
                    each.keyword is not None and each.keyword.value == "dtype" for each in arguments
                ) or (len(arguments) > 1 and name != "full_like")
                first = arguments[0].value
                if not has_dtype and isinstance(first, cst.Name) and first.value in parameters:
                    return Result(first.value, Width.SAME)
    return None


def _elementwise(value: cst.BaseExpression, parameters: list[str]) -> Result | None:
    """Arithmetic of one array parameter and literals."""
    names = set(_names_in(value))
    if len(names) != 1 or not names <= set(parameters) or isinstance(value, cst.Name):
        return None
    width = _width(value)
    return None if width is None else Result(names.pop(), width)


def _width(node: cst.BaseExpression) -> Width | None:
    """None for anything that is not computed element by element."""
    match node:
        case cst.Name() | cst.Integer():
            return Width.SAME
        case cst.Float():
            return Width.WIDENED
        case cst.UnaryOperation(expression=inner):
            return _width(inner)
        case cst.BinaryOperation(left=left, right=right):
            if isinstance(node.operator, cst.MatrixMultiply):
                return None
            return _widest(_width(left), _width(right))
        case cst.Call(
            func=cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(value=name)),
            args=arguments,
        ) if owner in NUMPY and name in ELEMENTWISE:
            return _widest(*(_width(each.value) for each in arguments))
    return None


def _widest(*widths: Width | None) -> Width | None:
    known = [each for each in widths if each is not None]
    return max(known, key=lambda each: each.value) if len(known) == len(widths) else None


def _names_in(node: cst.CSTNode) -> Iterator[str]:
    match node:
        case cst.Name(value=name):
            yield name
        case cst.Attribute(value=value) if isinstance(value, cst.Name) and value.value in NUMPY:
            return
        case cst.Arg(value=value):
            yield from _names_in(value)
        case _:
            for child in node.children:
                yield from _names_in(child)
