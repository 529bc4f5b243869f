"""`print` becomes the operator that prints from a graph.

`torch._higher_order_ops.print(format, *arguments)` is an operator: it prints at each run of
the compiled code, in order, and also when Python runs it. Measured with torch 2.13, each
backend: text, numbers, sizes, dtypes, devices and tensors as arguments print the same; lists
and tuples are refused, and of a tensor that needs a gradient the text lacks `grad_fn`.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.observations import Operation
from jitlint.analysis.tree import parents_of
from jitlint.analysis.values import (
    MISSING,
    Framework,
    Source,
    Static,
    Tensor,
    never_needs_gradient,
)
from jitlint.finding import Fix
from jitlint.rule import Context

from ..branch_fixes.emit import conditional_fix
from ..branch_fixes.flow import code_of
from ..branch_fixes.withheld import Withheld

OPERATOR = "torch._higher_order_ops.print"
NOT_TRANSFORMED = "no caller maps over it (torch.vmap), differentiates it (torch.func) or traces it"
"""The operator knows nothing of the transforms of functorch, nor of `torch.jit.trace`: they raise
where a `print` is run (measured with torch 2.13)."""
METADATA = frozenset({"dtype", "device", "layout"})
"""Attributes of a tensor that an operator takes as an argument."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Text of a format, and the expression that goes into it, if any."""

    text: str
    node: cst.BaseExpression | None = None


def printed(operation: Operation, ctx: Context) -> Fix:
    """`print("loss", x.detach())` is `torch._higher_order_ops.print("loss {!s}", x.detach())`."""
    call = operation.node
    if not isinstance(call, cst.Call) or not operation.moments:
        raise Withheld("what is printed is not known")
    if operation.moments[0].frame.machine.torch.function(OPERATOR) is None:
        raise Withheld("this release of torch has no operator that prints from a graph")
    if not isinstance(parents_of(ctx.module)[call], cst.Expr):
        raise Withheld("the operator that prints from a graph is a statement of its own")
    pieces = list(_pieces(call, operation))
    text = "".join(piece.text for piece in pieces)
    if not text:
        raise Withheld("the operator that prints from a graph prints no empty line")
    spelling = scope.Spelling(operation.module, operation.node)
    nodes = [piece.node for piece in pieces if piece.node is not None]
    new = call.with_changes(
        func=cst.Attribute(spelling.of("_higher_order_ops"), cst.Name("print")),
        args=[cst.Arg(quoted(text)), *(cst.Arg(node) for node in nodes)],
    )
    name = ctx.module.code_for_node(new.func)
    return conditional_fix(
        f"Print from the graph with `{name}`",
        [NOT_TRANSFORMED, *(each for node in nodes for each in _conditions(node, operation))],
        {call: new},
        spelling.imports(),
    )


def _pieces(call: cst.Call, operation: Operation) -> Iterator[Piece]:
    separator = " "
    arguments = []
    for argument in call.args:
        name = argument.keyword.value if argument.keyword is not None else ""
        if name == "sep" and isinstance(argument.value, cst.SimpleString):
            separator = str(argument.value.evaluated_value)
        elif name or argument.star:
            raise Withheld(f"the operator that prints from a graph takes no `{code_of(argument)}`")
        else:
            arguments.append(argument.value)
    for index, node in enumerate(arguments):
        if index:
            yield Piece(escaped(separator))
        yield from _pieces_of(node, operation)


def _pieces_of(node: cst.BaseExpression, operation: Operation) -> Iterator[Piece]:
    match node:
        case cst.SimpleString() if isinstance(node.evaluated_value, str):
            yield Piece(escaped(node.evaluated_value))
        case cst.ConcatenatedString(left=left, right=right):
            yield from _pieces_of(left, operation)
            yield from _pieces_of(right, operation)
        case cst.FormattedString():
            for part in node.parts:
                yield _formatted(node, part, operation)
        case _:
            _check(node, operation)
            is_tensor = isinstance(operation.value_of(node), Tensor)
            yield Piece("{!s}" if is_tensor else "{}", _plain(node))


def _formatted(
    string: cst.FormattedString, part: cst.BaseFormattedStringContent, operation: Operation
) -> Piece:
    if isinstance(part, cst.FormattedStringText):
        # doubled braces stay doubled: the text becomes part of a format
        prefix = string.prefix.lower().replace("f", "")
        return Piece(str(ast.literal_eval(f"{prefix}{string.quote}{part.value}{string.quote}")))
    assert isinstance(part, cst.FormattedStringExpression)
    if part.equal is not None:
        raise Withheld("the text of an f-string with `=` is not a format")
    _check(part.expression, operation)
    conversion = f"!{part.conversion}" if part.conversion else ""
    spec = "".join(_specification(each) for each in part.format_spec or ())
    return Piece(f"{{{conversion}{':' if spec else ''}{spec}}}", _plain(part.expression))


def _specification(part: cst.BaseFormattedStringContent) -> str:
    if isinstance(part, cst.FormattedStringText):
        return part.value
    raise Withheld("the format depends on a value")


def _plain(node: cst.BaseExpression) -> cst.BaseExpression:
    """Without the parentheses that an argument does not need."""
    if isinstance(node, cst.Tuple | cst.GeneratorExp | cst.NamedExpr):
        return node
    return node.with_changes(lpar=(), rpar=())


def _check(node: cst.BaseExpression, operation: Operation) -> None:
    """Raises Withheld unless the operator takes the value and prints it as Python does."""
    match operation.value_of(node):
        case Tensor(maybe=False, assumed=False, framework=Framework.TORCH):
            return
        case Static(source=Source.DATA):
            raise Withheld(f"`{code_of(node)}` is read from a tensor: print the tensor itself")
        case Static(const=const, source=source, varies=varies):
            if const is not MISSING or source is Source.SHAPE or varies:
                return
            if isinstance(node, cst.Attribute) and node.attr.value in METADATA:
                return
            if is_number(node, operation):
                return
    raise Withheld(
        f"the operator that prints from a graph takes text, numbers and tensors, and "
        f"`{code_of(node)}` may be something else"
    )


SCALARS = frozenset({"int", "float", "bool", "str"})


def is_number(node: cst.BaseExpression, operation: Operation) -> str:
    """The type of a parameter that is declared as a number or text, and never bound anew."""
    function = operation.function.node if operation.function is not None else None
    if not isinstance(node, cst.Name) or not isinstance(function, cst.FunctionDef):
        return ""
    if node.value in scope.names_written(function.body):
        return ""
    for parameter in (*function.params.params, *function.params.kwonly_params):
        if parameter.name.value == node.value and parameter.annotation is not None:
            declared = code_of(parameter.annotation.annotation)
            return declared if declared in SCALARS else ""
    return ""


def _conditions(node: cst.BaseExpression, operation: Operation) -> Iterator[str]:
    value = operation.value_of(node)
    if not never_needs_gradient(value) and not _is_detached(node):
        yield f"no gradient goes through `{code_of(node)}` (else the text lacks its `grad_fn`)"


def _is_detached(node: cst.BaseExpression) -> bool:
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="detach")), args=[]):
            return True
    return False


def escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def quoted(text: str) -> cst.SimpleString:
    """A string literal, in double quotes where that needs no escapes."""
    literal = repr(text)
    if literal.startswith("'") and '"' not in literal:
        literal = '"' + literal[1:-1].replace("\\'", "'") + '"'
    return cst.SimpleString(literal)
