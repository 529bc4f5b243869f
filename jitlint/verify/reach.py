"""Which changed functions ran: a proof says nothing of code that no input entered."""

import ast
import difflib
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

CONVERTED = "__autograph_generated_file"
"""In the name of the file that AutoGraph writes the functions to that it has converted."""
Functions = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Place:
    """A function of the old file. `line` is that of its code: the first decorator's."""

    name: str
    line: int


def changed_functions(old: Sequence[str], new: Sequence[str]) -> list[Place]:
    """The innermost functions of `old` in which lines are replaced, deleted or added."""
    functions = [
        (node, _first_line(node), node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse("".join(old)))
        if isinstance(node, Functions)
    ]
    found: dict[Place, None] = {}
    for first, last in _changes(old, new):
        around = [(begin, node) for node, begin, end in functions if begin <= first and last <= end]
        if around:
            begin, node = max(around, key=lambda pair: pair[0])
            found[Place(node.name, begin)] = None
    return list(found)


def _first_line(node: Functions) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Lines of `old`, and for what is added the two between which it comes."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, first, last, _, _ in matcher.get_opcodes():
        if tag == "insert":
            yield first, first + 1
        elif tag != "equal":
            yield from ((line, line) for line in range(first + 1, last + 1))


@dataclass(slots=True)
class Reach:
    """The functions of one file that were entered."""

    path: str
    codes: set[types.CodeType] = field(default_factory=set)

    @contextmanager
    def recorded(self) -> Iterator[None]:
        def enter(frame: types.FrameType, event: str, argument: object) -> None:
            if event == "call" and self._is_own(frame.f_code):
                self.codes.add(frame.f_code)

        before = sys.getprofile()
        sys.setprofile(enter)
        try:
            yield
        finally:
            sys.setprofile(before)

    def _is_own(self, code: types.CodeType) -> bool:
        return code.co_filename == self.path or CONVERTED in code.co_filename

    def missed(self, changed: Sequence[Place], namespace: Mapping[str, Any]) -> list[Place]:
        """Those that were not entered. What is compiled counts where its name was used."""
        own = [code for code in self.codes if code.co_filename == self.path]
        lines = {code.co_firstlineno for code in own}
        converted = {code.co_name.removeprefix("tf__") for code in self.codes.difference(own)}
        used = {name for code in self.codes for name in (*code.co_names, *code.co_freevars)}
        compiled = {
            name
            for name in used
            if not isinstance(namespace.get(name, len), types.FunctionType | type)
        }
        return [
            place
            for place in changed
            if place.line not in lines and place.name not in compiled | converted
        ]
