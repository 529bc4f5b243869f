"""Arguments that the module itself writes: in variables of examples, and in calls."""

import ast
import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jitlint.harness import EXAMPLES
from jitlint.verify.derive.signatures import Parameter

MAX_ROWS = 4
DEPTH = 6


@dataclass(frozen=True, slots=True)
class Row:
    """One set of arguments. `label` says where it comes from."""

    label: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    seed: int = 0


def written_rows(
    source: str,
    namespace: Mapping[str, Any],
    names: Sequence[str],
    parameters: Sequence[Parameter],
) -> list[Row]:
    """What fits the parameters by number and name; a variable of examples comes first."""
    rows = [row for row in _examples(namespace) if _binds(row, parameters)]
    if not rows:
        rows = [row for row in _calls(source, namespace, names) if _binds(row, parameters)]
    return rows[:MAX_ROWS]


def _binds(row: Row, parameters: Sequence[Parameter]) -> bool:
    names = [each.name for each in parameters]
    given = {*names[: len(row.args)], *row.kwargs}
    required = {each.name for each in parameters if each.is_required}
    return len(row.args) <= len(names) and required <= given <= set(names)


# -- variables of examples -------------------------------------------------------------------


def _examples(namespace: Mapping[str, Any]) -> Iterator[Row]:
    for name, value in namespace.items():
        if not EXAMPLES.fullmatch(name) or not isinstance(value, tuple | list):
            continue
        is_table = all(isinstance(row, tuple | list) for row in value)
        for row in value if is_table else (value,):
            yield Row(f"`{name}`", tuple(row), {})


# -- calls ---------------------------------------------------------------------------------


def _calls(source: str, namespace: Mapping[str, Any], names: Sequence[str]) -> Iterator[Row]:
    """Calls of the code by one of its names, or by a variable that was made of it."""
    for scope in _scopes(ast.parse(source)):
        assigned = _assignments(scope)
        for call in _own_nodes(scope):
            if isinstance(call, ast.Call) and _leads_to(call.func, names, assigned):
                row = _row(call, _Evaluator(namespace, assigned))
                if row is not None:
                    yield row


Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef


def _scopes(tree: ast.Module) -> Iterator[Scope]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _own_nodes(child)


def _assignments(scope: Scope) -> dict[str, ast.expr]:
    """Names that have one value in the scope."""
    found: dict[str, list[ast.expr | None]] = {}
    for node in _own_nodes(scope):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                found.setdefault(name, []).append(value)
            case ast.Name(id=name, ctx=ast.Store()):
                found.setdefault(name, []).append(None)
    # each assignment was seen twice: as a statement, and as its target
    return {
        name: values[0]
        for name, values in found.items()
        if len(values) == 2 and isinstance(values[0], ast.expr)
    }


def _leads_to(function: ast.expr, names: Sequence[str], assigned: Mapping[str, ast.expr]) -> bool:
    match function:
        case ast.Name(id=name):
            if name in names:
                return True
            value = assigned.get(name)
            return value is not None and _mentions(value, names, assigned)
        case ast.Attribute(value=owner, attr=name):
            return name in names and isinstance(owner, ast.Name)
        case ast.Call():
            return _mentions(function, names, assigned)
    return False


def _mentions(
    node: ast.expr, names: Sequence[str], assigned: Mapping[str, ast.expr], depth: int = DEPTH
) -> bool:
    found = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    if found & set(names):
        return True
    further = [assigned[name] for name in found if name in assigned]
    return depth > 0 and any(_mentions(each, names, assigned, depth - 1) for each in further)


def _row(call: ast.Call, evaluator: "_Evaluator") -> Row | None:
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None
    if any(each.arg is None for each in call.keywords):
        return None
    try:
        args = tuple(evaluator.value(each) for each in call.args)
        kwargs = {str(each.arg): evaluator.value(each.value) for each in call.keywords}
    except Exception:
        return None
    return Row(f"the call on line {call.lineno}", args, kwargs)


@dataclass(frozen=True, slots=True)
class _Evaluator:
    """Values of expressions of module names and of names with one assignment."""

    namespace: Mapping[str, Any]
    assigned: Mapping[str, ast.expr]

    def value(self, node: ast.expr, depth: int = DEPTH) -> Any:
        used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        local = {
            name: self.value(self.assigned[name], depth - 1)
            for name in used
            if name in self.assigned and depth > 0
        }
        known = local.keys() | self.namespace.keys() | set(vars(builtins))
        if not used <= known:
            raise NameError(", ".join(sorted(used - known)))
        expression = compile(ast.Expression(node), "<arguments>", "eval")
        return eval(expression, {**self.namespace, **local})
