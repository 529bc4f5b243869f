"""`t.requires_grad = True`, which no graph does, and few need."""

from collections.abc import Iterator

import libcst as cst
from libcst.helpers import parse_template_expression

from jitlint.analysis import scope
from jitlint.analysis.observations import Operation
from jitlint.analysis.tree import contains, parents_of
from jitlint.analysis.values import Static, Tensor
from jitlint.finding import Fix
from jitlint.rule import Context

from ..branch_fixes.arms import parenthesized
from ..branch_fixes.emit import LINE_LENGTH, conditional_fix
from ..branch_fixes.flow import code_of
from ..branch_fixes.profile import Describer
from ..branch_fixes.withheld import NotMine, Withheld
from ..isolation.mute import UNSEEN_ATTRIBUTES
from ..read_fixes.places import operator_at

OF_AUTOGRAD = UNSEEN_ATTRIBUTES | {"backward", "register_hook", "requires_grad_", "retain_grad"}
HANDING = (cst.Yield, cst.Element, cst.DictElement, cst.Assign, cst.NamedExpr)
"""What a tensor stands in that goes on as an object of another name."""


def requires_grad(operation: Operation, ctx: Context) -> Fix:
    """Sets the flag where Python runs the code, and not in a graph.

    The flag of a tensor of this function's own is seen in what is computed from it, which
    mostly meets parameters that require grad anyway.
    """
    statement, name = _store_of(operation, ctx)
    _check_fresh(operation, name, statement, ctx)
    for node in _seen(name, statement, ctx):
        raise Withheld(f"`{code_of(node)}` goes on, and could be asked for its gradient")
    spelling = scope.Spelling(operation.module, operation.node)
    return conditional_fix(
        "Set it in Python alone",
        [f"what is computed from `{name}` requires grad without it"],
        {_replaced(statement, ctx): _guarded(statement, spelling, ctx)},
        spelling.imports(),
    )


def _store_of(operation: Operation, ctx: Context) -> tuple[cst.SimpleStatementLine, str]:
    """The line `name.requires_grad = True`, and the name."""
    parents = parents_of(ctx.module)
    target = operation.node
    assign = parents.get(parents[target])
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        raise NotMine
    line, value = parents[assign], operation.value_of(assign.value)
    if not isinstance(value, Static) or value.const is not True:
        raise NotMine
    match target, line:
        case cst.Attribute(value=cst.Name(value=name)), cst.SimpleStatementLine(body=[_]):
            return line, name
    raise NotMine


def _check_fresh(
    operation: Operation, name: str, statement: cst.SimpleStatementLine, ctx: Context
) -> None:
    """The object is new here: nobody else holds it, and can look at its flag."""
    function = scope.function_of(statement, ctx.module)
    value = scope.definition_of(name, statement, ctx.module).value
    is_own = function is not None and name not in scope.shared_names(function)
    if not is_own or value is None or not _is_new(value, Describer(operation, statement)):
        raise Withheld(f"`{name}` is not known to be a new tensor, whose flag nobody else can see")


def _is_new(node: cst.BaseExpression, describer: Describer) -> bool:
    match node:
        case cst.BinaryOperation():
            return True
        case cst.Subscript(value=tensor, slice=elements):
            is_view = any(isinstance(each.slice, cst.Slice) for each in elements)
            return is_view or isinstance(describer.test.value_of(tensor), Tensor)
        case cst.Call():
            found = operator_at(describer, node)
            table = describer.table
            if found is None:
                return False
            value = describer.test.value_of(node.func)
            row = table.method(found[0]) if found[1] else table.function(getattr(value, "name", ""))
            return row is not None and not (row.view or row.mutates or found[0].endswith("_"))
    return False


def _seen(name: str, statement: cst.SimpleStatementLine, ctx: Context) -> Iterator[cst.CSTNode]:
    """Where the tensor itself goes on, or autograd is asked for it."""
    module, parents = ctx.module, parents_of(ctx.module)
    own = scope.definition_of(name, statement, module).place
    for read in scope.reads(scope.function_of(statement, module) or module):
        if read.value != name:
            continue
        found = scope.definition_read(read, module)
        is_certain = found.origin is not scope.Origin.UNCLEAR
        if found.place is not own and (is_certain or isinstance(found.place, cst.For | cst.While)):
            continue  # another tensor, or what a loop made of this one
        match parents[read]:
            case cst.Return() as parent:
                yield parent
            case parent if isinstance(parent, HANDING):
                yield read
            case cst.Attribute(attr=cst.Name(value=attribute)) as parent:
                if attribute in OF_AUTOGRAD and not contains(statement, parent):
                    yield parent


def _replaced(statement: cst.SimpleStatementLine, ctx: Context) -> cst.CSTNode:
    """The `if` that does nothing else, or the statement."""
    around = parents_of(ctx.module)[parents_of(ctx.module)[statement]]
    match around:
        case cst.If(body=cst.IndentedBlock(body=[_]), orelse=None):
            width = len(code_of(around.test)) + len(" and not torch.compiler.is_compiling()")
            return around if width + _indent(around, ctx) < LINE_LENGTH else statement
    return statement


def _indent(node: cst.CSTNode, ctx: Context) -> int:
    parents, depth = parents_of(ctx.module), 0
    while node in parents:
        node = parents[node]
        depth += isinstance(node, cst.IndentedBlock)
    return depth * len(ctx.module.default_indent) + len("if :")


def _guarded(
    statement: cst.SimpleStatementLine, spelling: scope.Spelling, ctx: Context
) -> cst.BaseStatement:
    test = parse_template_expression(
        "not {compiler}.is_compiling()", compiler=spelling.of("compiler")
    )
    around = _replaced(statement, ctx)
    if isinstance(around, cst.If):
        old = around.test
        if isinstance(old, cst.BooleanOperation) and isinstance(old.operator, cst.And):
            left: cst.BaseExpression = old
        else:
            left = parenthesized(old)
        return around.with_changes(test=cst.BooleanOperation(left, cst.And(), test))
    block = cst.IndentedBlock([statement.with_changes(leading_lines=())])
    return cst.If(test, block, leading_lines=statement.leading_lines)
