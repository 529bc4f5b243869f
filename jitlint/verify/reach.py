"""Which changes ran: a proof says nothing of code that no input reached."""

import ast
import difflib
import sys
import types
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

CONVERTED = "__autograph_generated_file"
"""In the name of the file that AutoGraph writes the functions to that it has converted."""
Functions = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Place:
    """A change in a function of the old file. `line` is that of its code: the first decorator's.

    `changed` are the lines of the statements in its body that are changed, one of which has
    to run; none where the change is in the head of the function.
    """

    name: str
    line: int
    changed: frozenset[int] = frozenset()


def changed_functions(old: Sequence[str], new: Sequence[str]) -> list[Place]:
    """The innermost functions of `old` in which lines are replaced, deleted or added."""
    functions = [node for node in ast.walk(ast.parse("".join(old))) if isinstance(node, Functions)]
    found: dict[Place, None] = {}
    for changes in _changes(old, new):
        touched: dict[Functions, set[int]] = {}
        for first, last in changes:
            node = _innermost(functions, first, last)
            if node is not None:
                touched.setdefault(node, set()).update({first, last})
        for node, lines in touched.items():
            found[Place(node.name, _first_line(node), _lines_to_run(node, lines))] = None
    return list(found)


def _innermost(functions: Sequence[Functions], first: int, last: int) -> Functions | None:
    around = [node for node in functions if _first_line(node) <= first and last <= _end(node)]
    return max(around, key=_first_line, default=None)


def _lines_to_run(function: Functions, touched: Collection[int]) -> frozenset[int]:
    """The lines of the statements at these lines: of those with a block, of their head."""
    found: set[int] = set()
    statements = [each for node in function.body for each in ast.walk(node)]
    spans = [_head(each) for each in statements if isinstance(each, ast.stmt)]
    for line in touched:
        around = [span for span in spans if line in span]
        innermost = max(around, key=lambda span: span.start, default=range(0))
        found.update(innermost)
    return frozenset(found)


def _head(node: ast.stmt) -> range:
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if body else _end(node)
    return range(_first_line(node), max(last, node.lineno) + 1)


def _first_line(node: ast.stmt) -> int:
    decorators: Sequence[ast.expr] = getattr(node, "decorator_list", ())
    return min([node.lineno, *(each.lineno for each in decorators)])


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[list[tuple[int, int]]]:
    """Each change: its lines of `old`, and for what is added the two between which it comes."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, first, last, _, _ in matcher.get_opcodes():
        if tag == "insert":
            yield [(first, first + 1)]
        elif tag != "equal":
            yield [(line, line) for line in range(first + 1, last + 1)]


@dataclass(slots=True)
class Reach:
    """The functions of one file that were entered, and the lines that ran."""

    path: str
    codes: set[types.CodeType] = field(default_factory=set)
    lines: set[int] = field(default_factory=set)

    @contextmanager
    def recorded(self) -> Iterator[None]:
        def step(frame: types.FrameType, event: str, argument: object) -> Any:
            self.lines.add(frame.f_lineno)
            return step

        def enter(frame: types.FrameType, event: str, argument: object) -> Any:
            if not self._is_own(frame.f_code):
                return None
            self.codes.add(frame.f_code)
            return step if frame.f_code.co_filename == self.path else None

        before = sys.gettrace()
        sys.settrace(enter)
        try:
            yield
        finally:
            sys.settrace(before)

    def _is_own(self, code: types.CodeType) -> bool:
        return code.co_filename == self.path or CONVERTED in code.co_filename

    def missed(self, changed: Sequence[Place], namespace: Mapping[str, Any]) -> list[Place]:
        """Those that did not run. What is compiled counts where its name was used."""
        own = [code for code in self.codes if code.co_filename == self.path]
        entered = {code.co_firstlineno for code in own}
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
            if not self._ran(place, entered) and place.name not in compiled | converted
        ]

    def _ran(self, place: Place, entered: Collection[int]) -> bool:
        return place.line in entered and (not place.changed or bool(place.changed & self.lines))
