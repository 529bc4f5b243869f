"""How a function uses its parameters, and what types that leaves for each."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from jitlint.analysis import tables
from jitlint.analysis.observations import CompiledFunction
from jitlint.analysis.tables import Table
from jitlint.analysis.values import (
    BoundMethod,
    Class,
    External,
    ExternalInstance,
    ExternalMethod,
    Function,
    Instance,
    ModuleValue,
    Tensor,
    Unknown,
    Value,
)
from jitlint.project.modules import FunctionInfo, statements_of

from ._annotations import read_annotation
from ._operators import Accepted, Place, accepted_by_function, accepted_by_method
from ._types import (
    CONVERTED,
    DEVICE,
    DTYPE,
    FLOAT,
    INT,
    STR,
    TENSOR,
    UNKNOWN,
    Type,
    dict_of,
    list_of,
)

MAX_CALLS = 3
"""Helpers without annotations are followed this deep."""
ANY_LIST = list_of(UNKNOWN)
OF_DICT = frozenset({"items", "keys", "values", "get", "update", "setdefault", "popitem"})
OF_LIST = frozenset({"append", "extend", "insert"})
OF_STR = frozenset(
    {
        *("startswith", "endswith", "lower", "upper", "strip", "lstrip", "rstrip", "join"),
        *("replace", "encode", "isdigit", "splitlines", "title", "capitalize"),
    }
)
CONTAINERS = frozenset({"ModuleList", "Sequential", "ModuleDict", "ParameterList"})
BY_NAME = {
    **dict.fromkeys(("device", "dev", "map_location"), DEVICE),
    **dict.fromkeys(("dtype", "dt", "out_dtype", "data_type"), DTYPE),
}
"""What a parameter of this name is where an operator takes either of them."""
INTS = list_of(INT)
OF_INTS = re.compile(r"(\w+_)?(dims|axes|sizes|shape|strides|perm|permutation|repeats)")
"""Names of lists, where an operator takes one int or a list of them."""


@dataclass(frozen=True, slots=True)
class Use:
    """`accepted` are the types that fit, the likeliest first. `code` is where it is used.

    `takes_tensors`: TorchScript compiles it for a Tensor, too, which it converts.
    """

    accepted: tuple[Type, ...]
    code: cst.CSTNode
    takes_tensors: bool = False
    is_none_test: bool = False
    by_name: bool = False

    @property
    def excludes_tensors(self) -> bool:
        return bool(self.accepted) and TENSOR not in self.accepted

    @property
    def asks_for_tensor(self) -> bool:
        return self.accepted == (TENSOR,)


def uses_of(seen: CompiledFunction, names: Iterable[str]) -> dict[str, list[Use]]:
    return _uses(seen, seen.function, names, MAX_CALLS)


def _uses(
    seen: CompiledFunction, info: FunctionInfo, names: Iterable[str], calls: int
) -> dict[str, list[Use]]:
    found: dict[str, list[Use]] = {name: [] for name in names}
    active = set(found)
    for statement in statements_of(info.node.body):
        statement.visit(_Collector(seen, info, found, active, calls))
        active -= set(_rebound(statement))
    return found


def _rebound(statement: cst.CSTNode) -> Iterator[str]:
    """Names that mean something else after a statement of the outermost level."""
    if not isinstance(statement, cst.Assign):
        return
    for target in statement.targets:
        match target.target:
            case cst.Name(value=name) if not _is_shifted(statement.value, name):
                yield name
            case cst.Tuple(elements=elements):
                names = [each.value for each in elements]
                yield from (each.value for each in names if isinstance(each, cst.Name))


def _is_shifted(value: cst.BaseExpression, name: str) -> bool:
    """`n = n + 1`: a number is a number still, and a tensor a tensor."""
    if not isinstance(value, cst.BinaryOperation):
        return False
    sides = (value.left, value.right)
    return any(isinstance(side, cst.Name) and side.value == name for side in sides) and any(
        isinstance(side, cst.BaseNumber) for side in sides
    )


class _Collector(cst.CSTVisitor):
    def __init__(
        self,
        seen: CompiledFunction,
        info: FunctionInfo,
        found: dict[str, list[Use]],
        active: set[str],
        calls: int,
    ) -> None:
        super().__init__()
        self._seen = seen
        self._info = info
        self._found = found
        self._active = active
        self._calls = calls

    def _name(self, node: cst.CSTNode | None) -> str | None:
        if isinstance(node, cst.Name) and node.value in self._active:
            return node.value
        return None

    def _add(
        self,
        node: cst.CSTNode | None,
        accepted: tuple[Type, ...],
        code: cst.CSTNode,
        converts: bool = False,
    ) -> None:
        name = self._name(node)
        if name is None:
            return
        by_name = _named(name, accepted)
        if by_name is not None and by_name in accepted and len(accepted) > 1:
            takes_tensors = converts or TENSOR in accepted
            self._found[name].append(Use((by_name,), code, takes_tensors, by_name=True))
        else:
            self._found[name].append(Use(accepted, code, converts))

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:
        return False

    def visit_Name(self, node: cst.Name) -> None:
        self._add(node, (), node)

    def visit_Comparison(self, node: cst.Comparison) -> None:
        for target in node.comparisons:
            for one, other in ((node.left, target.comparator), (target.comparator, node.left)):
                self._compared(node, one, target.operator, other)

    def _compared(
        self, node: cst.Comparison, one: cst.BaseExpression, how: cst.CSTNode, other: cst.CSTNode
    ) -> None:
        name = self._name(one)
        if name is None:
            return
        if isinstance(other, cst.Name) and other.value == "None":
            self._found[name].append(Use((), node, is_none_test=True))
        elif _is_string(other) or _are_strings(other):
            if not isinstance(how, cst.In | cst.NotIn) or one is node.left:
                self._add(one, (STR,), node)
        elif isinstance(other, cst.Attribute) and _is_dtype(self._value(other)):
            self._add(one, (DTYPE,), node, converts=True)

    def visit_Subscript(self, node: cst.Subscript) -> None:
        for element in node.slice:
            if isinstance(element.slice, cst.Slice):
                for bound in (element.slice.lower, element.slice.upper, element.slice.step):
                    self._add(bound, (INT,), node, converts=True)
            elif isinstance(element.slice, cst.Index) and _is_string(element.slice.value):
                self._add(node.value, (dict_of(STR, UNKNOWN),), node)

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)  # the keyword is a name as well, but not of a variable
        return False

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        name = node.attr.value
        table = self._seen.moments[0].frame.machine.torch
        if name in OF_DICT:
            self._add(node.value, (dict_of(UNKNOWN, UNKNOWN),), node)
        elif name in OF_LIST:
            self._add(node.value, (ANY_LIST,), node)
        elif name in OF_STR:
            self._add(node.value, (STR,), node)
        elif table.is_tensor_only(name) or table.attribute(name) is not None:
            self._add(node.value, (TENSOR,), node)
        node.value.visit(self)
        return False

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> None:
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(node.operator, cst.Add) and isinstance(other, cst.SimpleString):
                self._add(one, (STR,), node)
            elif isinstance(node.operator, cst.MatrixMultiply):
                self._add(one, (TENSOR,), node)

    def visit_Call(self, node: cst.Call) -> None:
        keywords = frozenset(arg.keyword.value for arg in node.args if arg.keyword is not None)
        count = sum(arg.keyword is None for arg in node.args)
        if any(arg.star for arg in node.args):
            return
        for position, arg in enumerate(node.args):
            if self._name(arg.value) is not None:
                keyword = None if arg.keyword is None else arg.keyword.value
                place = Place(position, keyword, count, keywords)
                accepted = self._accepted(node, place)
                self._add(arg.value, accepted.kinds, node, accepted.converts)

    @property
    def _table(self) -> Table:
        """What TorchScript accepts in the release that the interpreter knows."""
        return tables.load("torchscript", self._seen.moments[0].frame.machine.torch.version)

    def _value(self, node: cst.BaseExpression) -> Value:
        return self._seen.moments[0].evaluate(node)

    def _accepted(self, node: cst.Call, place: Place) -> Accepted:
        match self._value(node.func):
            case External("builtins.range"):
                return Accepted((INT,))
            case External(name) if name.startswith("math."):
                return Accepted((TENSOR, FLOAT, INT))
            case External(name):
                return accepted_by_function(name, place, self._table)
            case Function(info):
                return self._accepted_by_project(info, 0, place)
            case BoundMethod(_, Function(info)):
                return self._accepted_by_project(info, 1, place)
            case Instance(cls):
                method = self._seen.moments[0].frame.machine.method(cls, "forward")
                return Accepted() if method is None else self._accepted_by_project(method, 1, place)
            case ExternalInstance(name) if name.startswith("torch.nn."):
                return Accepted(() if name.rpartition(".")[2] in CONTAINERS else (TENSOR,))
            case Class() | ModuleValue():
                return Accepted()
        if isinstance(node.func, cst.Attribute) and self._may_be_tensor(node.func.value):
            return accepted_by_method(node.func.attr.value, place, self._table)
        return Accepted()

    def _may_be_tensor(self, receiver: cst.BaseExpression) -> bool:
        value = self._value(receiver)
        return isinstance(value, Tensor | ExternalMethod | Unknown)

    def _accepted_by_project(self, info: FunctionInfo, bound: int, place: Place) -> Accepted:
        parameters = info.parameters[bound:]
        every = (*parameters, *info.node.params.kwonly_params)
        if place.keyword is not None:
            found = [each for each in every if each.name.value == place.keyword]
        else:
            found = list(parameters[place.position : place.position + 1])
        if not found:
            return Accepted()
        parameter = found[0]
        if parameter.annotation is not None:
            kind = read_annotation(parameter.annotation.annotation)
            return Accepted() if kind is None else Accepted((kind,), kind in CONVERTED)
        if self._calls == 0 or info is self._info:
            return Accepted()
        name = parameter.name.value
        below = _uses(self._seen_in(info), info, [name], self._calls - 1)[name]
        hard = [use for use in below if use.excludes_tensors or use.asks_for_tensor]
        return Accepted(hard[0].accepted, hard[0].takes_tensors) if hard else Accepted()

    def _seen_in(self, info: FunctionInfo) -> CompiledFunction:
        """The observation of a helper; of one that was not seen, this one must do."""
        for each in self._seen.moments[0].frame.machine.log:
            if isinstance(each, CompiledFunction) and each.function is info and each.moments:
                return each
        return self._seen


def _named(name: str, accepted: tuple[Type, ...]) -> Type | None:
    if INTS in accepted and OF_INTS.fullmatch(name):
        return INTS
    return BY_NAME.get(name)


def _is_string(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleString)


def _are_strings(node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.Tuple | cst.List | cst.Set) or not node.elements:
        return False
    return all(_is_string(element.value) for element in node.elements)


DTYPES = tables.load().constants("dtype")


def _is_dtype(value: Value) -> bool:
    return isinstance(value, External) and value.name in DTYPES
