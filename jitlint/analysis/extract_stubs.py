"""What type stubs and signatures of a framework say, without running anything."""

import ast
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

DIM_NAMES = frozenset({"dim", "dims", "axis"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """`name` is "*size" of a parameter that takes any number of arguments."""

    name: str
    annotation: str
    required: bool
    keyword_only: bool = False


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function; of a method, without `self`."""

    parameters: tuple[Parameter, ...]
    returns: str

    @property
    def has_dim(self) -> bool:
        return any(parameter.name in DIM_NAMES for parameter in self.parameters)


def read_functions(path: Path) -> dict[str, list[Overload]]:
    """The overloads of each function of a stub file."""
    return _overloads(ast.parse(path.read_text(encoding="utf-8")).body, skip_self=False)


def read_methods(path: Path, class_name: str) -> dict[str, list[Overload]]:
    """The overloads of each method of a class of a stub file or module."""
    return _overloads(_class(path, class_name).body, skip_self=True)


def read_attributes(path: Path, class_name: str) -> dict[str, str]:
    """The annotated attributes of a class of a stub file."""
    return {
        statement.target.id: ast.unparse(statement.annotation)
        for statement in _class(path, class_name).body
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
    }


def signature_of(function: Callable[..., Any]) -> list[Overload]:
    """The signature of a Python function as a list of one overload; empty where it has none."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return []
    parameters = tuple(
        Parameter(
            parameter.name,
            _annotation(parameter.annotation),
            parameter.default is parameter.empty,
            parameter.kind is parameter.KEYWORD_ONLY,
        )
        for parameter in signature.parameters.values()
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    )
    return [Overload(parameters, _annotation(signature.return_annotation))]


def _annotation(annotation: object) -> str:
    if annotation is inspect.Signature.empty:
        return ""
    if annotation is None:
        return "None"
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    if hasattr(annotation, "__args__"):
        text = str(annotation)
    for prefix in ("torch._tensor.", "torch.return_types.", "typing.", "torch."):
        if prefix != "torch.return_types.":
            text = text.replace(prefix, "")
    return text.strip("'\"")


def _class(path: Path, name: str) -> ast.ClassDef:
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ClassDef) and statement.name == name:
            return statement
    raise ValueError(f"{path} has no class `{name}`")


def _overloads(body: Iterable[ast.stmt], *, skip_self: bool) -> dict[str, list[Overload]]:
    result: dict[str, list[Overload]] = {}
    for statement in body:
        if isinstance(statement, ast.FunctionDef):
            result.setdefault(statement.name, []).append(_overload(statement, skip_self))
    return result


def _overload(node: ast.FunctionDef, skip_self: bool) -> Overload:
    positional = [*node.args.posonlyargs, *node.args.args]
    optional = len(node.args.defaults)
    parameters = [
        _parameter(argument, required=index < len(positional) - optional)
        for index, argument in enumerate(positional)
    ]
    if node.args.vararg is not None:
        variadic = _parameter(node.args.vararg, required=False)
        parameters.append(replace(variadic, name=f"*{variadic.name}"))
    for argument, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        parameters.append(_parameter(argument, required=default is None, keyword_only=True))
    returns = ast.unparse(node.returns) if node.returns else ""
    return Overload(tuple(parameters[1:] if skip_self else parameters), returns)


def _parameter(argument: ast.arg, *, required: bool, keyword_only: bool = False) -> Parameter:
    annotation = ast.unparse(argument.annotation) if argument.annotation else ""
    return Parameter(argument.arg, annotation, required, keyword_only)
