"""Branches under torch.jit.trace, kept by a function that is scripted when it is traced."""

from collections.abc import Callable, Sequence

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.expressions import evaluate
from jitlint.analysis.frame import Frame
from jitlint.analysis.observations import Construct, TruthTest
from jitlint.analysis.values import External, Tensor, is_none
from jitlint.finding import Fix, Safety
from jitlint.region import RegionKind
from jitlint.rule import Context

from .extract import extracted
from .flow import Place, code_of, parameters_of, place_of
from .scriptable import Judge
from .where import fix_branch
from .withheld import NotMine, Withheld

SCRIPTED_TYPES = frozenset({"Tensor", "int", "float", "bool", "str"})
WITHOUT_SCRIPTS = ("make_fx", "symbolic_trace")
NO_TRUTH = (Construct.BUILTIN, Construct.SORT)
"""They compare elements with each other: there is no side that a run could miss."""


def scripted(test: TruthTest, ctx: Context) -> Fix:
    """The whole function where TorchScript takes it, else the branch as a function.

    Raises NotMine where a selection is as good, or nothing can be scripted though a
    selection may be possible.
    """
    if set(test.regions) != {RegionKind.TRACE}:
        raise NotMine
    place = place_of(test, ctx)
    _check_tracers(test)
    try:
        return _decorated(test, place)
    except Withheld as reason:
        if _is_selection(test) and _is_safely_selected(test, ctx):
            raise NotMine from None
        try:
            return extracted(test, place, _decorator(test))
        except (Withheld, NotMine) as other:
            if _is_selection(test):
                raise NotMine from None
            raise (other if isinstance(other, Withheld) else reason) from None


def _is_selection(test: TruthTest) -> bool:
    return isinstance(test.value, Tensor) and test.construct in (
        Construct.IF,
        Construct.TERNARY,
    )


def _is_safely_selected(test: TruthTest, ctx: Context) -> bool:
    try:
        return fix_branch(test, ctx).safety is Safety.SAFE
    except (Withheld, NotMine):
        return False


def _check_tracers(test: TruthTest) -> None:
    """torch.fx traces too, and knows nothing of scripts."""
    machine = test.moments[0].frame.machine
    for request in machine.requests:
        if request.kind is RegionKind.TRACE and isinstance(request.node, cst.Call):
            tracer = evaluate(Frame(machine, request.module), request.node.func)
            if isinstance(tracer, External) and tracer.name.endswith(WITHOUT_SCRIPTS):
                raise NotMine


# -- whole functions -----------------------------------------------------------------------


def _decorated(test: TruthTest, place: Place) -> Fix:
    function = place.function
    _check_function(test, place)
    names = scope.names_written(function.body) | {e.name.value for e in parameters_of(function)}
    Judge(test, frozenset(names)).check(_code_in(function))
    safe = _is_plain(test, function)
    note = "" if safe else ", right if TorchScript infers the types that Python has"
    return Fix(
        Safety.SAFE if safe else Safety.UNSAFE,
        f"Script `{function.name.value}` when it is traced{note}",
        {function: function.with_changes(decorators=[_decorator(test)])},
        scope.Spelling(test.module).imports(),
        () if test.construct in NO_TRUTH else (test.node,),
    )


def _decorator(test: TruthTest) -> cst.Decorator:
    """`@torch.jit.script_if_tracing`"""
    jit = scope.Spelling(test.module).of("jit")
    return cst.Decorator(cst.Attribute(jit, cst.Name("script_if_tracing")))


def _check_function(test: TruthTest, place: Place) -> None:
    if scope.is_optional("torch", test.module):
        raise Withheld("a script is made when the file is loaded, which has to do without torch")
    function = place.function
    name = function.name.value
    if not isinstance(place.parent(function), cst.Module):
        raise Withheld(f"`{name}` is a method or nested: move the branch into a function")
    if function.decorators:
        raise Withheld(f"`{name}` is decorated, and TorchScript would drop the decorator")
    if function.asynchronous is not None:
        raise Withheld("TorchScript knows no coroutines")
    params = function.params
    if len(params.params) != len(parameters_of(function)):
        raise Withheld(f"`{name}` has parameters that are not plain positional ones")
    for parameter in params.params:
        _check_parameter(parameter, test)


def _check_parameter(parameter: cst.Param, test: TruthTest) -> None:
    name = parameter.name.value
    if parameter.annotation is not None:
        kind = code_of(parameter.annotation.annotation)
        default = parameter.default
        if default is not None and is_none(test.value_of(default)):
            raise Withheld(f"`{name}` is None by default, which `{kind}` is not in TorchScript")
        if kind.rpartition(".")[2] in SCRIPTED_TYPES:
            return
        raise Withheld(f"`{name}: {kind}` is not known to be a type of TorchScript")
    value = test.value_of(parameter.name)
    if parameter.default is not None or not isinstance(value, Tensor) or value.maybe:
        raise Withheld(f"`{name}` needs an annotation: TorchScript takes it for a tensor")


def _code_in(function: cst.FunctionDef) -> Sequence[cst.CSTNode]:
    """The statements of a function, its docstring aside."""
    body: Sequence[cst.CSTNode] = function.body.body
    match body[0]:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.SimpleString())]):
            return body[1:]
    return body


def _is_plain(test: TruthTest, function: cst.FunctionDef) -> bool:
    """Whether all variables are tensors all the time, so that there are no types to infer."""
    if any(_is_narrow(each) for each in function.params.params):
        return False
    values = _Results()
    function.body.visit(values)
    if values.has_loops:
        return False
    kinds = [test.value_of(value) for value in values.found]
    return all(isinstance(kind, Tensor) and not kind.maybe for kind in kinds)


def _is_narrow(parameter: cst.Param) -> bool:
    """A type of which Python takes more: a float for an `int`."""
    annotation = parameter.annotation
    if annotation is None:
        return False
    return code_of(annotation.annotation).rpartition(".")[2] not in ("Tensor", "float")


class _Results(cst.CSTVisitor):
    """The expressions that are assigned or returned."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[cst.BaseExpression] = []
        self.has_loops = False

    def visit_Assign(self, node: cst.Assign) -> None:
        self.found.append(node.value)

    def visit_Return(self, node: cst.Return) -> None:
        if node.value is not None:
            self.found.append(node.value)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self.found.append(node.target)

    def visit_While(self, node: cst.While) -> None:
        self.has_loops = True

    def visit_For(self, node: cst.For) -> None:
        self.has_loops = True


FIXERS: tuple[Callable[[TruthTest, Context], Fix], ...] = (scripted,)
