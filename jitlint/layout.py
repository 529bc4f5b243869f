"""New lines that are longer than those of the file: their calls get a line for each argument."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import libcst as cst

from jitlint.analysis.tree import found_in

SHORTEST, LONGEST = 100, 120
"""What a file's own lines say of the length that is allowed lies between these."""
INDENT = "    "
MAX_BROKEN = 4

Broken = TypeVar("Broken", cst.Call, cst.FunctionDef)
Line = TypeVar("Line", cst.SimpleStatementLine, cst.Decorator)


def laid_out(before: cst.Module, after: cst.Module) -> cst.Module:
    """`after`, whose lines that `before` does not have are no longer than those it has."""
    old, new = before.code.splitlines(), after.code.splitlines()
    limit = min(max(SHORTEST, *map(len, old)), LONGEST) if old else SHORTEST
    known = {line.strip() for line in old}
    long = {line.strip() for line in new if len(line) > limit} - known
    return after.visit(_Layout(after, limit, long)) if long else after


class _Layout(cst.CSTTransformer):
    def __init__(self, module: cst.Module, limit: int, long: set[str]) -> None:
        super().__init__()
        self._module = module
        self._limit = limit
        self._long = long
        self._indents: list[int] = []

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self._indents.append(len(node.indent or self._module.default_indent))

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        self._indents.pop()
        return updated_node

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine:
        return self._broken(updated_node)

    def leave_Decorator(
        self, original_node: cst.Decorator, updated_node: cst.Decorator
    ) -> cst.Decorator:
        return self._broken(updated_node)

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        head = updated_node.with_changes(
            body=cst.SimpleStatementSuite([cst.Pass()]), decorators=(), leading_lines=()
        )
        code = self._module.code_for_node(head).removesuffix(" pass\n")
        params = updated_node.params
        if _others(params) or not params.params or code.strip() not in self._long:
            return updated_node
        return updated_node.with_changes(
            params=params.with_changes(params=_separated(params.params, 0)),
            whitespace_before_params=line_break(1),
        )

    def _broken(self, line: Line) -> Line:
        if line.trailing_whitespace.comment is not None:
            return line  # it may be about this line
        if not any(each.strip() in self._long for each in self._lines(line)):
            return line
        for _ in range(MAX_BROKEN):
            calls = list(_calls(line, 0))
            call, depth = max(calls, key=self._length, default=(None, 0))
            if self._fits(line) or call is None or self._length((call, 0)) < self._limit // 3:
                break
            replaced = line.deep_replace(call, one_a_line(call, depth))
            assert isinstance(replaced, type(line))
            line = replaced
        return line

    def _lines(self, line: Line) -> list[str]:
        return self._module.code_for_node(line).splitlines()

    def _fits(self, line: Line) -> bool:
        indent = sum(self._indents)
        return all(len(each) + indent <= self._limit for each in self._lines(line))

    def _length(self, found: tuple[cst.Call, int]) -> int:
        """Of the arguments, which is what a break takes out of the line."""
        return sum(len(self._module.code_for_node(each)) for each in found[0].args)


def _others(params: cst.Parameters) -> bool:
    stars = (params.star_arg, params.star_kwarg)
    is_starred = any(isinstance(each, cst.Param | cst.ParamStar) for each in stars)
    return is_starred or bool(params.kwonly_params or params.posonly_params)


def _calls(node: cst.CSTNode, depth: int) -> Iterator[tuple[cst.Call, int]]:
    """The outermost calls that can be broken, and how deep they stand in those that are."""
    match node:
        case cst.FormattedString():
            return
        case cst.Call(args=[_, *_], whitespace_before_args=cst.SimpleWhitespace()):
            if not any(isinstance(each.value, cst.GeneratorExp) for each in node.args):
                yield node, depth
                yield from _calls(node.func, depth)
                return
        case cst.Call():
            yield from _calls(node.func, depth)
            for each in node.args:
                yield from _calls(each, depth + 1)
            return
    for child in node.children:
        yield from _calls(child, depth)


def one_a_line(call: cst.Call, depth: int = 0) -> cst.Call:
    """The call with a line for each argument; `depth`: of the call, in others like that."""
    return call.with_changes(
        args=_separated(call.args, depth), whitespace_before_args=line_break(depth + 1)
    )


def on_one_line(call: cst.Call) -> cst.Call:
    """The call without line breaks between its arguments, unless comments stand there."""
    if any(found_in(call, cst.Comment)):
        return call
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    commas = [comma] * (len(call.args) - 1) + [cst.MaybeSentinel.DEFAULT]
    empty = cst.SimpleWhitespace("")
    args = [
        arg.with_changes(comma=comma, whitespace_after_arg=empty)
        for arg, comma in zip(call.args, commas, strict=True)
    ]
    return call.with_changes(args=args, whitespace_before_args=empty)


Separated = TypeVar("Separated", cst.Arg, cst.Param)


def _separated(parts: Sequence[Separated], depth: int) -> list[Separated]:
    commas = [cst.Comma(whitespace_after=line_break(depth + 1))] * (len(parts) - 1)
    commas.append(cst.Comma(whitespace_after=line_break(depth)))
    return [part.with_changes(comma=comma) for part, comma in zip(parts, commas, strict=True)]


def line_break(depth: int) -> cst.ParenthesizedWhitespace:
    return cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace(INDENT * depth))
