"""Where the nodes of a tree stand, as `PositionProvider` says, at a third of its cost.

A provider makes two objects for each node and splits each token by a regular expression.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import TracebackType

import libcst as cst
from libcst._nodes.internal import CodegenState

from jitlint.finding import Span

_LINE_END = re.compile(r"\r\n?|\n")
_Point = tuple[int, int]


@lru_cache(maxsize=2)
def positions_of(module: cst.Module) -> "Positions":
    """The spans of the nodes of a module, made once for questions in a row."""
    return Positions(module)


class Positions:
    """The spans of the nodes of one module."""

    def __init__(self, module: cst.Module) -> None:
        state = _Recorder(module.default_indent, module.default_newline)
        module._codegen(state)
        self._ranges: Mapping[cst.CSTNode, tuple[_Point, _Point]] = state.ranges

    def __getitem__(self, node: cst.CSTNode) -> Span:
        (line, column), (end_line, end_column) = self._ranges[node]
        return Span(line, column + 1, end_line, end_column + 1)


class _Recorder(CodegenState):
    """Notes where the code of each node begins and ends while it is generated."""

    def __init__(self, indent: str, newline: str) -> None:
        super().__init__(default_indent=indent, default_newline=newline)
        self.ranges: dict[cst.CSTNode, tuple[_Point, _Point]] = {}
        self.line = 1
        self.column = 0
        self._starts: list[_Point] = []

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.add_token(token)

    def add_token(self, value: str) -> None:
        self.tokens = [value]  # the module asks whether there was one
        if "\n" in value or "\r" in value:
            segments = _LINE_END.split(value)
            self.line += len(segments) - 1
            self.column = len(segments[-1])
        else:
            self.column += len(value)

    def before_codegen(self, node: cst.CSTNode) -> None:
        self._starts.append((self.line, self.column))

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self._starts.pop()
        # What was recorded in between leaves out white space, and stays.
        self.ranges.setdefault(node, (start, (self.line, self.column)))

    def record_syntactic_position(  # type: ignore[override]
        self,
        node: cst.CSTNode,
        *,
        start_node: cst.CSTNode | None = None,
        end_node: cst.CSTNode | None = None,
    ) -> "_Syntactic":
        return _Syntactic(self, node, start_node, end_node)


class _Syntactic:
    """The part of a node's code without the white space that it owns."""

    __slots__ = ("_end_node", "_node", "_start", "_start_node", "_state")

    def __init__(
        self,
        state: _Recorder,
        node: cst.CSTNode,
        start_node: cst.CSTNode | None,
        end_node: cst.CSTNode | None,
    ) -> None:
        self._state = state
        self._node = node
        self._start_node = start_node
        self._end_node = end_node

    def __enter__(self) -> None:
        self._start = (self._state.line, self._state.column)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        ranges = self._state.ranges
        start = self._start if self._start_node is None else ranges[self._start_node][0]
        end = (self._state.line, self._state.column)
        if self._end_node is not None:
            end = ranges[self._end_node][1]
        ranges[self._node] = (start, end)
