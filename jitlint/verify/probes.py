"""Which sides of the rewritten truth tests ran: the old code, with probes put in.

Only an extra run of the old code is instrumented, so that the probes reach no compiler.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

PROBE = "__jitlint_probe__"
Place = tuple[int, int]


@dataclass(slots=True)
class Coverage:
    """`seen[place]` holds the truth values that the test at `place` had."""

    places: Sequence[Place]
    missing: list[Place] = field(default_factory=list)
    seen: dict[Place, set[bool]] = field(default_factory=dict)

    def probe(self, line: int, column: int, value: object) -> object:
        """Stands around a truth test. An operand without a truth value raises later."""
        try:
            truth = bool(value)
        except Exception:
            return value
        self.seen.setdefault((line, column), set()).add(truth)
        return value

    def gap(self) -> str | None:
        """Why the run does not cover every side, in a sentence; `None` if it does."""
        for line, column in self.missing:
            return f"no expression starts at line {line}, column {column}"
        for place in self.places:
            truths = self.seen.get(place, set())
            if not truths:
                return f"the test on line {place[0]} was never reached"
            if len(truths) == 1:
                side = "false" if True in truths else "true"
                return f"the test on line {place[0]} was never {side} on any input"
        return None


def instrument(tree: ast.Module, source: str, places: Sequence[Place]) -> Coverage:
    """Wraps, in `tree`, the expression that is tested at each of `places`."""
    coverage = Coverage(places)
    lines = source.splitlines(keepends=True)
    chosen: dict[ast.expr, Place] = {}
    for place in places:
        tested = _tested_at(tree, lines, place, places)
        if tested is None:
            coverage.missing.append(place)
        for node in tested or ():
            chosen[node] = place
    _Wrapper(chosen).visit(tree)
    ast.fix_missing_locations(tree)
    return coverage


def _tested_at(
    tree: ast.Module, lines: Sequence[str], place: Place, places: Sequence[Place]
) -> list[ast.expr] | None:
    starting = [node for node in _outermost_first(tree) if _start(node, lines) == place]
    if not starting:
        return None
    tests = _truth_tests(tree)
    node = next((node for node in starting if node in tests), starting[0])
    # `a and b` starts where `a` does: if `b` is named as well, `a` is meant.
    while isinstance(node, ast.BoolOp) and any(
        _start(value, lines) in places for value in node.values[1:]
    ):
        node = node.values[0]
    return [node]


def _outermost_first(tree: ast.Module) -> Iterator[ast.expr]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.expr))


def _truth_tests(tree: ast.Module) -> set[ast.expr]:
    found: set[ast.expr] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            found.add(node.test)
        elif isinstance(node, ast.comprehension):
            found.update(node.ifs)
        elif isinstance(node, ast.match_case) and node.guard is not None:
            found.add(node.guard)
        elif isinstance(node, ast.BoolOp):
            found.update(node.values)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            found.add(node.operand)
    return found


def _start(node: ast.expr, lines: Sequence[str]) -> Place:
    """Columns of `ast` count bytes from 0; places count characters from 1."""
    before = lines[node.lineno - 1].encode()[: node.col_offset]
    return node.lineno, len(before.decode(errors="replace")) + 1


class _Wrapper(ast.NodeTransformer):
    def __init__(self, chosen: dict[ast.expr, Place]) -> None:
        self._chosen = chosen

    def visit(self, node: ast.AST) -> ast.AST:
        visited: ast.AST = super().visit(node)
        place = self._chosen.get(node) if isinstance(node, ast.expr) else None
        if place is None or not isinstance(visited, ast.expr):
            return visited
        arguments = [ast.Constant(place[0]), ast.Constant(place[1]), visited]
        probe = ast.Name(PROBE, ast.Load())
        return ast.copy_location(ast.Call(probe, arguments, []), visited)
