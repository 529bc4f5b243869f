"""Applying fixes: nodes of a tree are replaced, everything else stays as it was."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor
from libcst.helpers import get_full_name_for_node

from jitlint.finding import Fix, Replacement
from jitlint.layout import laid_out
from jitlint.source import NotWritableError, Text, lines_with_ends


class EditError(Exception):
    """A fix that does not fit the tree it was made for: a mistake of its rule."""


@dataclass(frozen=True, slots=True)
class Edited:
    """The new tree, and which of the fixes are in it. The others overlap with those."""

    module: cst.Module
    applied: tuple[Fix, ...]
    waiting: tuple[Fix, ...]


def apply(module: cst.Module, fixes: Sequence[Fix]) -> Edited:
    """`module` with as many of the fixes as do not overlap; on overlap the first wins."""
    outside = _Enclosing({node for fix in fixes for node in fix.replacements})
    module.visit(outside)
    applied: list[Fix] = []
    waiting: list[Fix] = []
    replaced: set[cst.CSTNode] = set()
    around: set[cst.CSTNode] = set()
    for fix in fixes:
        nodes = set(fix.replacements)
        enclosing = outside.of(fix)
        if replaced & (nodes | enclosing) or around & nodes:
            waiting.append(fix)
            continue
        applied.append(fix)
        replaced |= nodes
        around |= enclosing
    replacements = {node: new for fix in applied for node, new in fix.replacements.items()}
    edited = laid_out(module, module.visit(_Replace(replacements)))
    edited = _with_imports(edited, [name for fix in applied for name in fix.imports])
    return Edited(edited, tuple(applied), tuple(waiting))


class _Enclosing(cst.CSTVisitor):
    """For each of some nodes, those of the others that it lies in."""

    def __init__(self, nodes: set[cst.CSTNode]) -> None:
        super().__init__()
        self._nodes = nodes
        self._open: list[cst.CSTNode] = []
        self._found: dict[cst.CSTNode, frozenset[cst.CSTNode]] = {}

    def on_visit(self, node: cst.CSTNode) -> bool:
        if node in self._nodes:
            self._found[node] = frozenset(self._open)
            self._open.append(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if original_node in self._nodes:
            self._open.pop()

    def of(self, fix: Fix) -> frozenset[cst.CSTNode]:
        if not self._found.keys() >= fix.replacements.keys():
            raise EditError(f"the fix `{fix.title}` edits a node that is not in the file")
        enclosing = frozenset().union(*(self._found[node] for node in fix.replacements))
        if not enclosing.isdisjoint(fix.replacements):
            raise EditError(f"the fix `{fix.title}` edits inside a node that it replaces")
        return enclosing


class _Replace(cst.CSTTransformer):
    def __init__(self, replacements: dict[cst.CSTNode, Replacement]) -> None:
        super().__init__()
        self._replacements = replacements

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node not in self._replacements

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> Replacement:
        return self._replacements.get(original_node, updated_node)


def _with_imports(module: cst.Module, names: Sequence[str]) -> cst.Module:
    """The imports that the module does not have at its top already."""
    present = _imported(module)
    context = CodemodContext()
    for name in dict.fromkeys(names):
        source, _, member = name.partition(":")
        if name not in present:
            AddImportsVisitor.add_needed_import(context, source, member or None)
    if not context.scratch:
        return module
    return AddImportsVisitor(context).transform_module(module)


def _imported(module: cst.Module) -> set[str]:
    names: set[str] = set()
    for statement in module.body:
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        for small in statement.body:
            if isinstance(small, cst.Import):
                for alias in small.names:
                    if alias.asname is None:
                        names.add(get_full_name_for_node(alias.name) or "")
    return names


def render(text: Text, before: cst.Module, after: cst.Module) -> bytes:
    """The bytes of `after` for a file that holds `text`, whose tree is `before`.

    Raises NotWritableError when something outside of the edit would change.
    """
    return text.encode(splice(text.text, before.code, after.code))


def splice(text: str, before: str, after: str) -> str:
    """The edit `before` → `after`, made in `text`.

    LibCST loses form feeds in indentation, so that `before` can differ from `text`; lines
    that the edit leaves alone are then taken from `text`.
    """
    if text == before:
        return after
    original, old, new = (lines_with_ends(each) for each in (text, before, after))
    origin = {
        block.b + offset: block.a + offset
        for block in _matcher(original, old).get_matching_blocks()
        for offset in range(block.size)
    }
    result: list[str] = []
    done = 0
    for kind, i, j, k, m in _matcher(old, new).get_opcodes():
        if kind == "equal":
            continue
        start = _start(origin, i, j)
        places = [origin.get(line) for line in range(i, j)]
        if start < 0 or places != list(range(start, start + len(places))):
            raise NotWritableError(f"LibCST does not reproduce the code at line {i + 1} exactly")
        result += original[done:start] + new[k:m]
        done = start + j - i
    return "".join(result + original[done:])


def _start(origin: Mapping[int, int], i: int, j: int) -> int:
    """Where the lines from `i` to `j` stand; if these are none, the end of the line before.

    -1 when that line is not as it was.
    """
    if i < j:
        return origin.get(i, -1)
    return 0 if i == 0 else origin.get(i - 1, -2) + 1


def _matcher(a: list[str], b: list[str]) -> "difflib.SequenceMatcher[str]":
    return difflib.SequenceMatcher(None, a, b, autojunk=False)
