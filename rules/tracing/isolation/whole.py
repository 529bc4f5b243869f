"""A function that returns nothing, as an operator."""

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.observations import Observation
from jitlint.analysis.scope import Spelling, local_names
from jitlint.analysis.tree import definitions_of, parents_of
from jitlint.finding import Fix, Safety
from jitlint.rule import Context

from ..branch_fixes.withheld import Withheld
from .mute import Judge, check_mute
from .operator import NOT_TAKEN, Operator, in_schema, is_schema_type


def function_as_operator(seen: Observation, ctx: Context) -> Fix:
    """The function around a break with a decorator, and what is registered for it."""
    function = function_around(seen)
    params = _signature(function, seen, ctx)
    if not function.name.value.startswith("_") and function.get_docstring() is not None:
        raise Withheld(f"`{function.name.value}` has a page, which an operator would not have")
    _check_returns(function.body)
    _check_uses(function, ctx)
    machine = seen.moments[0].frame.machine
    judge = Judge(machine, seen.value_of)
    check_mute([function.body], local_names(function), judge)
    operator = Operator(seen.module, function.name.value, params, function.body)
    decorated = function.with_changes(
        params=params,
        decorators=[operator.decorator],
        returns=function.returns or operator.definition().returns,
    )
    return Fix(
        Safety.UNSAFE,
        f"Make `{function.name.value}` an operator with an effect, right if its arguments have "
        f"the types that they are annotated with, and {NOT_TAKEN}",
        {function: cst.FlattenSentinel([decorated, *operator.registrations()])},
        Spelling(seen.module).imports(),
    )


def function_around(seen: Observation) -> cst.FunctionDef:
    if seen.function is None or not isinstance(seen.function.node, cst.FunctionDef):
        raise Withheld("the code stands in no function")
    return seen.function.node


def check_position(function: cst.FunctionDef, ctx: Context) -> None:
    name = function.name.value
    if not isinstance(parents_of(ctx.module)[function], cst.Module) or function.decorators:
        raise Withheld(f"`{name}` is a method, nested, or decorated")
    if function.asynchronous is not None:
        raise Withheld(f"`{name}` is a coroutine")


def _signature(function: cst.FunctionDef, seen: Observation, ctx: Context) -> cst.Parameters:
    """The parameters, in types that a schema knows. Raises Withheld where it cannot."""
    check_position(function, ctx)
    name = function.name.value
    params = function.params
    if params.posonly_params or params.star_kwarg or isinstance(params.star_arg, cst.Param):
        raise Withheld(f"`{name}` has parameters that no schema can name")
    returns = function.returns
    if returns is not None and not _is_none(returns.annotation):
        raise Withheld(f"`{name}` returns a value")
    return params.with_changes(
        params=[_typed(each, seen) for each in params.params],
        kwonly_params=[_typed(each, seen) for each in params.kwonly_params],
    )


def _typed(param: cst.Param, seen: Observation) -> cst.Param:
    name = param.name.value
    if param.annotation is None:
        raise Withheld(f"the type of `{name}` is not known")
    annotation = in_schema(param.annotation.annotation, seen)
    if not is_schema_type(annotation, seen):
        raise Withheld(f"the type of `{name}` is none that a schema knows")
    return param.with_changes(annotation=param.annotation.with_changes(annotation=annotation))


def _check_uses(function: cst.FunctionDef, ctx: Context) -> None:
    """An operator can be called, and not be mapped over, scripted, or told by its type."""
    name = function.name.value
    parents = parents_of(ctx.module)
    found = [each for each in scope.reads(ctx.module) if each.value == name]
    for each in found:
        parent = parents[each]
        if not isinstance(parent, cst.FunctionDef) and not (
            isinstance(parent, cst.Call) and parent.func is each
        ):
            raise Withheld(f"`{name}` is handed on as an object, which an operator would replace")
    if definitions_of(ctx.module)[name] > 1:
        raise Withheld(f"`{name}` is defined more than once")


def _check_returns(node: cst.CSTNode) -> None:
    if isinstance(node, cst.Return) and not (node.value is None or _is_none(node.value)):
        raise Withheld("the function returns a value")
    for child in node.children:
        _check_returns(child)


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"
