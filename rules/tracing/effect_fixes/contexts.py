"""Context managers that a compiler cannot enter, and what says the same without them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.observations import Operation
from jitlint.analysis.tables import Table
from jitlint.analysis.tree import ancestors_of, parents_of
from jitlint.analysis.values import (
    External,
    ExternalInstance,
    Static,
    Tensor,
    Unknown,
    Value,
)
from jitlint.finding import Fix, Replacement, Safety
from jitlint.rule import Context

from ..branch_fixes.comments import comment_line, comments_in
from ..branch_fixes.emit import TIGHT
from ..branch_fixes.flow import code_of
from ..branch_fixes.withheld import NotMine, Withheld


def device(operation: Operation, ctx: Context) -> Fix:
    """`with torch.device(d): t = torch.zeros(3)` is `t = torch.zeros(3, device=d)`."""
    statement, item = _with_of(operation, ctx)
    if len(statement.items) != 1 or item.asname is not None:
        raise Withheld("the `with` statement enters something else as well")
    device = _device(operation)
    made = scope.names_written(statement.body)
    if scope.names_read(device) & made:
        raise Withheld("the device is another one after the first statements of the block")
    table = operation.moments[0].frame.machine.torch
    replacements: dict[cst.CSTNode, Replacement] = {}
    for call in _calls(statement.body):
        if _takes_device(call, operation, table, made):
            argument = cst.Arg(device, cst.Name("device"), equal=TIGHT)
            replacements[call] = call.with_changes(args=[*_with_comma(call.args), argument])
    assert isinstance(statement.body, cst.IndentedBlock)
    body = _replaced(statement.body, replacements)
    header = [comment_line(each) for each in comments_in(statement.body.header)]
    new = _after_lines(list(body.body), [*statement.leading_lines, *header])
    title = "Name the device where a tensor is made"
    return Fix(Safety.SAFE, title, {statement: cst.FlattenSentinel(new)})


def _with_of(operation: Operation, ctx: Context) -> tuple[cst.With, cst.WithItem]:
    parents = parents_of(ctx.module)
    item = parents[operation.node]
    statement = parents.get(item)
    if not isinstance(item, cst.WithItem) or not isinstance(statement, cst.With):
        raise NotMine
    if not isinstance(statement.body, cst.IndentedBlock) or statement.asynchronous:
        raise Withheld("the block stands on the line of its `with`")
    return statement, item


def _device(operation: Operation) -> cst.BaseExpression:
    match operation.node:
        case cst.Call(args=[cst.Arg(value=cst.SimpleString() | cst.Name() as value, star="")]):
            return value
    raise Withheld("the device is computed in the `with` statement")


def _takes_device(call: cst.Call, operation: Operation, table: Table, made: frozenset[str]) -> bool:
    """Whether the call makes a tensor on the device of the block, and names none.

    Raises Withheld where a call may make tensors out of sight.
    """
    match operation.value_of(call.func):
        case External(name):
            name = table.canonical(name)
            if table.obeys_device(name):
                return _names_no_device(call, operation)
            if name.startswith("builtins.") or _follows_its_tensors(
                name, call, operation, table, made
            ):
                return False
    if isinstance(call.func, cst.Attribute) and table.method(call.func.attr.value) is not None:
        receiver: Value = operation.value_of(call.func.value)
        if isinstance(receiver, Tensor | Unknown):
            return False
    raise Withheld(f"`{code_of(call)}` may make tensors on the device of the block")


def _names_no_device(call: cst.Call, operation: Operation) -> bool:
    """Whether the block decides on the device; `device=None` leaves that to it as well."""
    if any(arg.star == "**" for arg in call.args):
        raise Withheld(f"`{code_of(call)}` may be given a device")
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == "device":
            value = operation.value_of(arg.value)
            is_text = isinstance(value, Static) and isinstance(value.const, str)
            if not is_text and not _is_device(value):
                raise Withheld(f"`device={code_of(arg.value)}` may be None, which asks the block")
            return False
    return True


def _is_device(value: Value) -> bool:
    return isinstance(value, ExternalInstance | External) and value.name == "torch.device"


def _follows_its_tensors(
    name: str, call: cst.Call, operation: Operation, table: Table, made: frozenset[str]
) -> bool:
    """Whether an operator computes where the tensors are that it is given, or the block made."""
    if table.function(name) is None:
        return False
    return any(
        isinstance(operation.value_of(arg.value), Tensor)
        or (isinstance(arg.value, cst.Name) and arg.value.value in made)
        for arg in call.args
    )


def _calls(node: cst.CSTNode) -> Iterator[cst.Call]:
    if isinstance(node, cst.Call):
        yield node
    if isinstance(node, cst.FunctionDef | cst.Lambda | cst.ClassDef):
        raise Withheld("a function that is defined in the block may make tensors on its device")
    for child in node.children:
        yield from _calls(child)


def _with_comma(arguments: Sequence[cst.Arg]) -> list[cst.Arg]:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    last = [argument.with_changes(comma=comma) for argument in arguments[-1:]]
    return [*arguments[:-1], *last]


class _Replacer(cst.CSTTransformer):
    """Replaces calls, those inside of others first."""

    def __init__(self, replacements: Mapping[cst.CSTNode, Replacement]) -> None:
        super().__init__()
        self.replacements = replacements

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        new = self.replacements.get(original_node)
        if not isinstance(new, cst.Call):
            return updated_node
        return updated_node.with_changes(args=[*_with_comma(updated_node.args), new.args[-1]])


def _replaced(
    body: cst.BaseSuite, replacements: Mapping[cst.CSTNode, Replacement]
) -> cst.IndentedBlock:
    new = body.visit(_Replacer(replacements))
    assert isinstance(new, cst.IndentedBlock)
    return new


def _after_lines(
    statements: list[cst.BaseStatement], lines: Sequence[cst.EmptyLine]
) -> list[cst.BaseStatement]:
    """The statements, the first of them behind the comments that stood before the block."""
    first = statements[0]
    assert isinstance(first, cst.SimpleStatementLine | cst.BaseCompoundStatement)
    old = getattr(first, "leading_lines", ())
    return [first.with_changes(leading_lines=[*lines, *old]), *statements[1:]]


def exit_stack(operation: Operation, ctx: Context) -> Fix:
    """`with ExitStack() as s: s.enter_context(a)` is `with a:`"""
    statement, name = _stack_of(operation, ctx)
    assert isinstance(statement.body, cst.IndentedBlock)
    entered, rest = _entered(statement.body.body, name)
    if not entered:
        raise Withheld("nothing enters the stack at once: it depends on what the block does")
    if not rest:
        raise Withheld("the block does nothing but enter the stack")
    function = scope.function_of(statement, ctx.module)
    around = function if function is not None else ctx.module
    if _mentions(name, around) != 1 + len(entered):
        raise Withheld(f"`{name}` is used for more than to enter what the block needs")
    new = statement.with_changes(
        items=[
            each.with_changes(comma=cst.MaybeSentinel.DEFAULT if each is entered[-1] else COMMA)
            for each in entered
        ],
        body=statement.body.with_changes(body=rest),
    )
    lost = Counter(comments_in(statement)) - Counter(comments_in(new))
    new = new.with_changes(
        leading_lines=[*statement.leading_lines, *map(comment_line, lost.elements())]
    )
    return Fix(Safety.SAFE, "Enter it in the `with` statement", {statement: new})


def _mentions(name: str, node: cst.CSTNode) -> int:
    if isinstance(node, cst.Attribute):
        return _mentions(name, node.value)
    if isinstance(node, cst.Name):
        return node.value == name
    return sum(_mentions(name, child) for child in node.children)


def _stack_of(operation: Operation, ctx: Context) -> tuple[cst.With, str]:
    """The `with` statement that makes the stack, and its name."""
    match operation.node:
        case cst.Call(func=cst.Attribute(value=cst.Name(value=name))):
            pass
        case _:
            raise NotMine
    for parent in ancestors_of(operation.node, ctx.module):
        match parent:
            case cst.With(
                items=[cst.WithItem(asname=cst.AsName(name=cst.Name(value=stack)))],
                body=cst.IndentedBlock(),
                asynchronous=None,
            ) if stack == name:
                return parent, name
    raise Withheld(f"`{name}` is not all that a `with` statement enters")


COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def _entered(
    body: Sequence[cst.BaseStatement], stack: str
) -> tuple[list[cst.WithItem], list[cst.BaseStatement]]:
    """What the first statements enter, and the statements behind them."""
    entered: list[cst.WithItem] = []
    for index, statement in enumerate(body):
        item = _item_of(statement, stack)
        if item is None:
            return entered, list(body[index:])
        entered.append(item)
    return entered, []


def _item_of(statement: cst.BaseStatement, stack: str) -> cst.WithItem | None:
    """`with` of what a statement enters: `a` of `s.enter_context(a)`.

    Not of `n = s.enter_context(a)`: Dynamo binds None in `with torch.autocast(…) as n`, where
    Python binds what entering returns (measured).
    """
    match statement:
        case cst.SimpleStatementLine(
            body=[
                cst.Expr(
                    value=cst.Call(
                        func=cst.Attribute(
                            value=cst.Name(value=name), attr=cst.Name(value="enter_context")
                        ),
                        args=[cst.Arg(value=context, star="", keyword=None)],
                    )
                )
            ]
        ) if name == stack:
            return cst.WithItem(context)
    return None
