"""What a parameter is given: its default, and the arguments of the calls that are known."""

from collections.abc import Iterable, Iterator, Mapping

import libcst as cst

from jitlint.analysis.observations import CompiledFunction
from jitlint.analysis.values import (
    MISSING,
    Dict,
    External,
    Framework,
    Optional,
    Origin,
    Sequence,
    Source,
    Static,
    Tensor,
    Tuple,
    Unknown,
    Value,
)
from jitlint.harness import EXAMPLES
from jitlint.project.modules import FunctionInfo
from jitlint.region import Region, RegionKind

from ._types import (
    DEVICE,
    DTYPE,
    FLOAT,
    INT,
    NONE,
    TENSOR,
    UNKNOWN,
    Type,
    dict_of,
    join_all,
    list_of,
    optional,
    tuple_of,
)
from ._uses import DTYPES

MADE: Mapping[Value, Type] = {
    External("torch.device"): DEVICE,
    External("builtins.len"): INT,
    **{External(f"builtins.{kind.__name__}"): Type(kind.__name__) for kind in (int, float, str)},
    **{External(f"math.{name}"): FLOAT for name in ("sqrt", "exp", "log", "log2", "log10", "pow")},
}
"""What the result of a call, as a default, is."""
FLOATS = frozenset(f"math.{name}" for name in ("pi", "e", "tau", "inf", "nan"))


def default_type(parameter: cst.Param, seen: CompiledFunction) -> Type | None:
    """The type of a default; None where there is none, or it may be a tensor."""
    node = parameter.default
    if node is None:
        return None
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        node = node.expression  # of the same type
    made = MADE.get(seen.moments[0].evaluate(node.func)) if isinstance(node, cst.Call) else None
    return literal_type(node, seen) if made is None else made


def literal_type(node: cst.BaseExpression, seen: CompiledFunction) -> Type | None:
    match node:
        case cst.List(elements=elements):
            inner = join_all(_elements(elements, seen))
            return None if inner is None else list_of(inner)
        case cst.Tuple(elements=elements):
            return tuple_of(_elements(elements, seen))
        case cst.Dict(elements=elements):
            pairs = [each for each in elements if isinstance(each, cst.DictElement)]
            keys = join_all(literal_type(each.key, seen) or UNKNOWN for each in pairs)
            values = join_all(literal_type(each.value, seen) or UNKNOWN for each in pairs)
            return dict_of(keys or UNKNOWN, values or UNKNOWN)
    return value_type(seen.moments[0].evaluate(node))


def _elements(elements: Iterable[cst.BaseElement], seen: CompiledFunction) -> list[Type]:
    return [literal_type(element.value, seen) or UNKNOWN for element in elements]


def value_type(value: Value) -> Type | None:
    """The type of an argument: UNKNOWN if it is no tensor, None if nothing is known."""
    match value:
        case Static(const=const) if const is None:
            return NONE
        case Static(const=const) if const is not MISSING:
            return Type(type(const).__name__)
        case Static(source=Source.SHAPE):
            return INT
        case Static():
            return UNKNOWN
        case Tensor(framework=Framework.TORCH, maybe=False):
            return TENSOR
        case Optional(inner):
            kind = value_type(inner)
            return None if kind is None else optional(kind)
        case External(name) if name in FLOATS:
            return FLOAT
        case External(name):
            return DTYPE if name in DTYPES else None
    return _container_type(value)


def _container_type(value: Value) -> Type | None:
    match value:
        case Tuple(items):
            kinds = [value_type(item) or UNKNOWN for item in items]
            inner = join_all(kinds)
            return tuple_of(kinds) if inner is None else list_of(inner)
        case Sequence(element):
            return list_of(value_type(element) or UNKNOWN)
        case Dict(items, default):
            keys = join_all(Type(type(key).__name__) for key, _ in items)
            values = join_all([*(value_type(item) or UNKNOWN for _, item in items)])
            if not items:
                return dict_of(UNKNOWN, value_type(default) or UNKNOWN)
            return dict_of(keys or UNKNOWN, values or UNKNOWN)
    return None


def given_types(seen: CompiledFunction, name: str) -> list[Type]:
    """The types of the arguments in all calls that were seen."""
    given = [bound[name] for bound in _calls(seen) if name in bound]
    found = [value_type(value) for value in given if not _is_supposed(value)]
    return list(dict.fromkeys(kind for kind in found if kind is not None))


def _is_supposed(value: Value) -> bool:
    """A parameter of the caller that has no type either says nothing."""
    return isinstance(value, Tensor) and value.origin is Origin.SUPPOSED


def is_always_passed(seen: CompiledFunction, name: str) -> bool:
    """Whether it is called by compiled code alone, which passes something each time.

    The `forward` of a submodule is compiled for its own sake as well, by the same call.
    """
    regions = [each.frame.region for each in seen.moments]
    moments = list(zip(regions, seen.arguments, strict=True))
    called = [(region, bound) for region, bound in moments if not _is_entry(region)]
    compiled_by = {region.entry for region, _ in called if region is not None}
    if len(called) < len(moments) and seen.function.name != "forward":
        return False
    machine = seen.moments[0].frame.machine
    given = [*(bound for _, bound in called), *machine.call_sites.get(seen.function, ())]
    return all(region is not None and region.entry in compiled_by for region in regions) and all(
        _is_passed(bound.get(name)) for bound in given
    )


def _is_passed(value: Value | None) -> bool:
    """What nothing is known of is no None, and has to be a Tensor in compiled code."""
    return isinstance(value, Tensor | Unknown) and not (isinstance(value, Tensor) and value.maybe)


def _calls(seen: CompiledFunction) -> Iterator[Mapping[str, Value]]:
    for moment, bound in zip(seen.moments, seen.arguments, strict=True):
        yield _without_assumptions(seen, bound) if _is_entry(moment.frame.region) else bound
    yield from seen.moments[0].frame.machine.call_sites.get(seen.function, ())
    variables = list(filter(EXAMPLES.fullmatch, seen.module.assignments))
    if variables and _is_main_entry(seen):
        yield from _examples(seen, variables)


def _without_assumptions(seen: CompiledFunction, bound: Mapping[str, Value]) -> Mapping[str, Value]:
    """Parameters of an entry are taken for tensors where nothing says otherwise."""
    untyped = {each.name.value for each in _called_with(seen.function) if each.annotation is None}
    return {
        name: value
        for name, value in bound.items()
        if name not in untyped or not isinstance(value, Tensor)
    }


def _is_main_entry(seen: CompiledFunction) -> bool:
    """Whether it is what the one call of `torch.jit.script` in the file is given."""
    entries = [
        each
        for each in seen.moments[0].frame.machine.log
        if isinstance(each, CompiledFunction)
        and each.module is seen.module
        and _is_entry(each.regions.get(RegionKind.SCRIPT))
    ]
    calls = {each.regions[RegionKind.SCRIPT].entry for each in entries}
    forwards = [each for each in entries if each.function.name == "forward"]
    return len(calls) == 1 and seen is (forwards or entries)[0]


def _is_entry(region: Region | None) -> bool:
    return region is not None and len(region.chain) == 1


def _examples(seen: CompiledFunction, variables: list[str]) -> Iterator[Mapping[str, Value]]:
    """`ARGS = [(tensor, 3)]` beside the one function that the file compiles."""
    machine = seen.moments[0].frame.machine
    names = [each.name.value for each in _called_with(seen.function)]
    required = sum(each.default is None for each in _called_with(seen.function))
    for variable in variables:
        rows = machine.global_value(seen.module, variable)
        if not isinstance(rows, Tuple):
            continue
        table = all(isinstance(row, Tuple) for row in rows.items)
        for row in rows.items if table else (rows,):
            if isinstance(row, Tuple) and required <= len(row.items) <= len(names):
                yield dict(zip(names, row.items, strict=False))


def _called_with(info: FunctionInfo) -> tuple[cst.Param, ...]:
    return info.parameters[1:] if info.cls is not None else info.parameters
