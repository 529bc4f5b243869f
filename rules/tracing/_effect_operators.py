"""A warning or a log record becomes an operator of its own, which the graph calls.

An operator that is registered with `EffectType.ORDERED` runs at each run of the compiled
code, in order; without that, AOT and Inductor drop what returns nothing. Measured with torch
2.13 on the eager, aot_eager and inductor backends, in both modes, and in an exported program.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.observations import Operation
from jitlint.analysis.tree import ancestors_of
from jitlint.analysis.values import (
    SHAPE,
    External,
    Framework,
    Sequence,
    Source,
    Static,
    Tensor,
    Value,
    is_constant,
)
from jitlint.finding import Fix, Replacement, Safety
from jitlint.rule import Context

from ._printing import is_number
from .branch_fixes.flow import code_of
from .branch_fixes.withheld import Withheld

TOOL = "torch.library.EffectType"
TYPES = (bool, int, float, str)
PLACES = frozenset({"stacklevel", "stack_info", "exc_info"})
"""Arguments that ask for where the call stands, or for what is handled there."""


def operator(operation: Operation, ctx: Context) -> Fix:
    """`warnings.warn("…")` is a call of `_warn_in_f()`, an operator that does it."""
    call = operation.node
    ancestors = list(ancestors_of(call, ctx.module))
    if not isinstance(call, cst.Call) or not isinstance(ancestors[0], cst.Expr):
        raise Withheld("its result is used, and an operator without tensors has none")
    machine = operation.moments[0].frame.machine
    if machine.torch.function(TOOL) is None:
        raise Withheld("this release of torch has no operators with an effect")
    function = scope.function_of(call, ctx.module)
    if not isinstance(function, cst.FunctionDef):
        raise Withheld("it does not stand in a function of its own")
    _check_callee(call, operation, ctx)
    body = _Body(operation, _local_names(call, ctx))
    called = call.with_changes(args=[body.argument(each) for each in call.args])
    name = _free_name(f"_{_method(call)}_in_{function.name.value}", operation)
    spelling = scope.Spelling(operation.module)
    torch = ctx.module.code_for_node(spelling.of("library"))
    parameters = ", ".join(f"{each.name}: {each.type}" for each in body.parameters)
    names = ", ".join(each.name for each in body.parameters)
    space = "".join(c if c.isalnum() else "_" for c in operation.module.name) or "effects"
    definition = (
        f'@{torch}.custom_op("{space}::{name}", mutates_args=())\n'
        f"def {name}({parameters}) -> None:\n"
        f"    {ctx.module.code_for_node(called)}\n\n\n"
        f"@{name}.register_fake\n"
        f"def {name}_fake({names}):\n"
        f"    return None\n\n\n"
        f"{name}.register_effect({torch}.EffectType.ORDERED)\n"
    )
    new = cst.Call(cst.Name(name), [cst.Arg(each.node) for each in body.parameters])
    anchor = ancestors[-2]
    assert isinstance(anchor, cst.BaseStatement)
    return Fix(
        Safety.UNSAFE,
        f"Call it as the operator `{name}`, right if nobody minds that it names another line",
        _in_front(anchor, definition, call, new),
        spelling.imports(),
    )


def _in_front(
    anchor: cst.BaseStatement, definition: str, call: cst.Call, new: cst.Call
) -> dict[cst.CSTNode, Replacement]:
    """The definition, two lines in front of the statement in which the call is replaced."""
    statements = cst.parse_module(definition).body
    lines = getattr(anchor, "leading_lines", ())
    blank = [cst.EmptyLine(indent=False)] * 2
    first = statements[0].with_changes(leading_lines=[*_blank_only(lines)])
    edited = anchor.deep_replace(call, new)
    assert isinstance(edited, cst.BaseStatement)
    comments = [line for line in lines if line.comment is not None]
    rest = [each.with_changes(leading_lines=blank) for each in statements[1:]]
    last = edited.with_changes(leading_lines=[*blank, *comments])
    return {anchor: cst.FlattenSentinel([first, *rest, last])}


def _blank_only(lines: "tuple[cst.EmptyLine, ...]") -> Iterator[cst.EmptyLine]:
    return (line for line in lines if line.comment is None)


def _method(call: cst.Call) -> str:
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else code_of(call.func)


def _free_name(wanted: str, operation: Operation) -> str:
    taken = operation.module.facts.bindings
    number, name = 1, wanted
    while name in taken or f"{name}_fake" in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def _local_names(node: cst.CSTNode, ctx: Context) -> frozenset[str]:
    """The names that mean something in a function around a node only."""
    return frozenset(
        name for each in scope.scopes_around(node, ctx.module) for name in scope.local_names(each)
    )


def _check_callee(call: cst.Call, operation: Operation, ctx: Context) -> None:
    """Raises Withheld unless the module itself knows what is called."""
    if scope.names_read(call.func) & _local_names(call, ctx):
        raise Withheld(f"`{code_of(call.func)}` is known in the function only")


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    type: str
    node: cst.BaseExpression


@dataclass(slots=True)
class _Body:
    """The call as it stands in the operator, and what that is given."""

    operation: Operation
    local: frozenset[str]
    parameters: list[_Parameter] = field(default_factory=list)

    def argument(self, argument: cst.Arg) -> cst.Arg:
        if argument.star:
            raise Withheld("it is given arguments that are not written out")
        if argument.keyword is not None and argument.keyword.value in PLACES:
            raise Withheld(f"`{code_of(argument)}` asks for the place of the call")
        return argument.with_changes(value=self.expression(argument.value))

    def expression(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The expression with parameters for what the module does not know."""
        if not scope.names_read(node) & self.local:
            return node
        match node:
            case cst.FormattedString():
                return node.with_changes(parts=[self._part(part) for part in node.parts])
            case cst.ConcatenatedString():
                left, right = self.expression(node.left), self.expression(node.right)
                return node.with_changes(left=left, right=right)
            case cst.BinaryOperation(operator=cst.Modulo(), left=cst.SimpleString()):
                return node.with_changes(right=self.expression(node.right))
            case cst.Tuple(elements=elements):
                return node.with_changes(
                    elements=[e.with_changes(value=self.expression(e.value)) for e in elements]
                )
        return self._parameter(node)

    def _part(self, part: cst.BaseFormattedStringContent) -> cst.BaseFormattedStringContent:
        if not isinstance(part, cst.FormattedStringExpression):
            return part
        if part.equal is not None:
            raise Withheld("the text of an f-string with `=` names the expression")
        return part.with_changes(expression=self.expression(part.expression))

    def _parameter(self, node: cst.BaseExpression) -> cst.Name:
        for known in self.parameters:
            if known.node.deep_equals(node):
                return cst.Name(known.name)
        wanted = _name_for(node)
        taken = {each.name for each in self.parameters}
        number, name = 1, wanted
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        self.parameters.append(_Parameter(name, self._type(node), node))
        return cst.Name(name)

    def _type(self, node: cst.BaseExpression) -> str:
        match self.operation.value_of(node):
            case Tensor(maybe=False, assumed=False, framework=Framework.TORCH):
                return f"{_torch(self.operation)}.Tensor"
            case Static(source=Source.DATA):
                raise Withheld(f"`{code_of(node)}` is read from a tensor: log the tensor itself")
            case Static() as value if is_constant(value) and type(value.const) in TYPES:
                return type(value.const).__name__
        if declared := is_number(node, self.operation):
            return declared
        if _is_size(node, self.operation):
            return "int"
        raise Withheld(
            f"an operator takes tensors, numbers and text, and `{code_of(node)}` may be something "
            "else"
        )


WHOLE = (cst.Add, cst.Subtract, cst.Multiply, cst.FloorDivide, cst.Modulo)
COUNTS = frozenset({"size", "dim", "ndimension", "numel", "nelement", "stride"})


def _is_size(node: cst.BaseExpression, operation: Operation) -> bool:
    """Whether the expression is an integer: a size, a rank, or computed from such."""
    match node:
        case cst.Integer():
            return True
        case cst.BinaryOperation(operator=operator):
            return isinstance(operator, WHOLE) and all(
                _is_size(side, operation) for side in (node.left, node.right)
            )
        case cst.Subscript(value=sizes, slice=[cst.SubscriptElement(slice=cst.Index())]):
            return _are_sizes(operation.value_of(sizes))
        case cst.Attribute(attr=cst.Name(value="ndim")):
            return isinstance(operation.value_of(node.value), Tensor)
        case cst.Call(func=cst.Attribute(value=tensor, attr=cst.Name(value=name)), args=args):
            is_tensor = isinstance(operation.value_of(tensor), Tensor)
            return is_tensor and name in COUNTS and (name != "size" or len(args) == 1)
        case cst.Call(func=function):
            return operation.value_of(function) == External("builtins.len")
        case cst.Name(value=name):
            return _is_size_of_name(name, operation)
    return False


def _is_size_of_name(name: str, operation: Operation) -> bool:
    tree = operation.module.tree
    found = scope.definition_of(name, scope.statement_of(operation.node, tree), tree)
    if found.value is not None:
        return _is_size(found.value, operation)
    match found.place:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements))], value=value)]
        ):
            plain = all(isinstance(each, cst.Element) for each in elements)
            return plain and _are_sizes(operation.value_of(value))
    return False


def _are_sizes(value: Value) -> bool:
    return isinstance(value, Sequence) and value.element == SHAPE


def _torch(operation: Operation) -> str:
    code: str = cst.Module([]).code_for_node(scope.Spelling(operation.module).of("Tensor"))
    return code.rpartition(".")[0] or "torch"


def _name_for(node: cst.BaseExpression) -> str:
    match node:
        case cst.Name(value=name):
            return name
        case cst.Attribute(attr=cst.Name(value=name)):
            return name
    return "value"
