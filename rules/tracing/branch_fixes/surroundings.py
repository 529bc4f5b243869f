"""What stands around a fix: names that it needs, and callers that it does not know."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.observations import Observation
from jitlint.analysis.tree import parents_of
from jitlint.analysis.values import Tensor
from jitlint.finding import Fix, Replacement

from .flow import code_of
from .withheld import Withheld


def check_names(fix: Fix, module: cst.Module) -> None:
    """Raises Withheld where `torch`, say, is a variable of the function."""
    for node, replacement in fix.replacements.items():
        added = _read_in(replacement) - scope.names_read(node)
        local = {
            name for each in scope.scopes_around(node, module) for name in scope.local_names(each)
        }
        if scope.imports_torch_before(node, module):
            local -= {"torch"}
        hidden = sorted(added & local & _outside(module))
        if hidden:
            raise Withheld(f"the fix needs `{hidden[0]}`, which is a variable of the function")


def _read_in(replacement: Replacement) -> frozenset[str]:
    if isinstance(replacement, cst.FlattenSentinel):
        return scope.names_read(*replacement)
    return scope.names_read(replacement) if isinstance(replacement, cst.CSTNode) else frozenset()


@lru_cache(maxsize=16)
def _outside(module: cst.Module) -> frozenset[str]:
    """Names that new code takes from outside of the function."""
    imported = (
        alias.evaluated_alias or alias.evaluated_name.partition(".")[0]
        for alias in parents_of(module)
        if isinstance(alias, cst.ImportAlias)
    )
    return frozenset({"torch", "range", *imported})


# -- callers -------------------------------------------------------------------------------


def check_callers(test: Observation, among: frozenset[str] | None = None) -> None:
    """Raises Withheld where some code calls the function with a number for a tensor.

    `among`: only these parameters matter, and what is None for them was sorted out before.
    """
    if test.function is None or not isinstance(test.function.node, cst.FunctionDef):
        return
    function = test.function.node
    names = [each.name.value for each in (*function.params.posonly_params, *function.params.params)]
    reaching = _reaching(test, function)
    for call in _calls_in(test.module.tree).get(function.name.value, ()):
        for index, argument in enumerate(call.args):
            name = argument.keyword.value if argument.keyword else (names[index:] or [""])[0]
            value = test.value_of(cst.Name(name)) if name in names else None
            if among is not None and (name not in among or _is_none(argument.value)):
                continue
            if name in reaching and isinstance(value, Tensor) and _is_number(argument.value):
                code = code_of(call)
                raise Withheld(f"`{code}` passes a number for `{name}`, and torch takes tensors")


def _reaching(test: Observation, function: cst.FunctionDef) -> frozenset[str]:
    """The names that the values of the statement are made of, whatever way is taken to it."""
    statement = scope.statement_of(test.node, test.module.tree)
    if _holds_return(statement):
        return scope.names_read(function.body)
    found = scope.names_read(statement) | scope.names_written(statement)
    while True:
        more = found.union(*(read for written, read in _bindings_of(function) if written & found))
        if more == found:
            return found
        found = more


BINDINGS = (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.For, cst.With)


@lru_cache(maxsize=64)
def _bindings_of(
    function: cst.FunctionDef,
) -> Sequence[tuple[frozenset[str], frozenset[str]]]:
    """What each binding of a function writes, and what it reads: asked with each of its fixes."""
    found = _bindings(function.body)
    return [(scope.names_written(each), scope.names_read(each)) for each in found]


def _bindings(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    for child in node.children:
        if isinstance(child, BINDINGS):
            yield child
        yield from _bindings(child)


def _holds_return(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Return) or any(map(_holds_return, node.children))


@lru_cache(maxsize=16)
def _calls_in(module: cst.Module) -> Mapping[str, Sequence[cst.Call]]:
    """The calls of plain names: those of a file are asked for with each of its fixes."""
    calls: dict[str, list[cst.Call]] = defaultdict(list)
    for node in parents_of(module):
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            calls[node.func.value].append(node)
    return calls


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _is_number(node: cst.BaseExpression) -> bool:
    match node:
        case cst.UnaryOperation(expression=inner):
            return _is_number(inner)
        case cst.Name(value=name):
            return name in ("True", "False", "None")
        case cst.Call(func=cst.Name(value=name)):
            return name in ("float", "int", "bool", "len")
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))):
            return name in ("item", "size", "numel")
    return isinstance(node, cst.BaseNumber)
