"""Extracts the argument types of torch's operators, as `torch.jit.script` checks them.

    python -m jitlint.analysis.extract_script > jitlint/analysis/tables/torchscript-2.13.json

`operators` holds the overloads of each operator from `torch._C._jit_get_all_schemas()`:
"Tensor self, int[1]? dim, bool keepdim=, *, ScalarType? dtype=" (a `=` marks a default).
`functions` leads from public names to operators of another name, and `python` holds the annotated
signatures of functions that are scripted themselves (`torch.nn.functional.dropout`).
"""

import ast
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

NAMESPACES = ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special")
_ALIAS = re.compile(r"\([a-z*][^)]*\)")
_BROADCASTING = re.compile(r"BroadcastingList(?P<count>\d)\[(?P<element>\w+)\]")
_PARAMETER = re.compile(r"(?P<type>\S+) (?P<name>\w+)(?P<default>=.*)?")


def main() -> None:
    import torch

    functions, python = _public_names()
    wanted = set(functions.values()) | {name for name in dir(torch.Tensor) if name[0] != "_"}
    table = {
        "schema": 1,
        "framework": "torchscript",
        "version": torch.__version__.partition("+")[0],
        "source": "torch._C._jit_get_all_schemas(), inspect.signature",
        "operators": {name: found for name, found in _operators() if name in wanted},
        "functions": {name: op for name, op in sorted(functions.items()) if op != _last(name)},
        "python": dict(sorted(python.items())),
    }
    json.dump(table, sys.stdout, indent=0, ensure_ascii=True)
    sys.stdout.write("\n")


def _public_names() -> tuple[dict[str, str], dict[str, str]]:
    import importlib

    from torch.jit import _builtins

    find: Any = vars(_builtins)["_find_builtin"]
    functions: dict[str, str] = {}
    python: dict[str, str] = {}
    for namespace in NAMESPACES:
        for name, member in vars(importlib.import_module(namespace)).items():
            if name.startswith("_") or not callable(member):
                continue
            operator = find(member)
            if operator is not None and operator.startswith("aten::"):
                functions[f"{namespace}.{name}"] = operator.removeprefix("aten::")
            elif inspect.isfunction(member) and (signature := _signature(_dispatched(member))):
                python[f"{namespace}.{name}"] = signature
    return functions, python


def _dispatched(function: Any) -> Any:
    """Of a pair of functions that a flag decides on, such as `max_pool2d`, the usual one."""
    from torch import _jit_internal

    pair = vars(_jit_internal)["boolean_dispatched"].get(function)
    return function if pair is None else pair["if_false"]


def _operators() -> Iterator[tuple[str, list[str]]]:
    import torch

    found: dict[str, list[str]] = {}
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        overload = _overload(str(schema)) if namespace == "aten" else None
        if overload is not None and overload not in found.setdefault(name, []):
            found[name].append(overload)
    yield from sorted(found.items())


def _overload(schema: str) -> str | None:
    """The parameters of one overload; None of one that writes into `out`."""
    text = _ALIAS.sub("", schema.partition("(")[2].rpartition(") ->")[0])
    parameters = []
    for part in _split(text):
        if part == "*":
            parameters.append(part)
            continue
        match = _PARAMETER.fullmatch(part)
        if match is None or match["name"] == "out":
            return None
        kind = match["type"].replace("SymInt", "int")
        parameters.append(f"{kind} {match['name']}{'=' if match['default'] else ''}")
    return ", ".join(parameters)


def _split(text: str) -> Iterator[str]:
    depth, part = 0, ""
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            yield part.strip()
            part = ""
        else:
            part += character
    if part.strip():
        yield part.strip()


def _signature(function: Any) -> str | None:
    """In the notation of the schemas; None unless all parameters are annotated.

    None as well for a function with overloads, whose own annotations are not used.
    """
    from torch import _jit_internal

    internal: Any = vars(_jit_internal)
    if internal["_get_fn_overloads"](internal["_qualified_name"](function)):
        return None
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    found = []
    broadcast = _broadcast(function)
    for each in parameters:
        kind = "ScalarType?" if each.name == "dtype" else _kind(each.annotation)
        kind = broadcast.get(each.name, kind)
        if kind is None or each.kind is each.VAR_POSITIONAL or each.kind is each.VAR_KEYWORD:
            return None
        if each.kind is each.KEYWORD_ONLY and "*" not in found:
            found.append("*")
        found.append(f"{kind} {each.name}{'' if each.default is each.empty else '='}")
    return ", ".join(found)


def _broadcast(function: Any) -> dict[str, str]:
    """`BroadcastingList2[int]` is None when it is evaluated: it is read out of the source.

    An optional one takes no single number (torch 2.13: "Expected IntList but got Int").
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return {}
    arguments = next(each for each in ast.walk(tree) if isinstance(each, ast.arguments))
    found = {}
    for each in (*arguments.args, *arguments.kwonlyargs):
        text = "" if each.annotation is None else ast.unparse(each.annotation)
        match = _BROADCASTING.search(text)
        if match is not None:
            is_optional = "Optional" in text or "None" in text
            size = "[]?" if is_optional else f"[{match['count']}]"
            found[each.arg] = match["element"] + size
    return found


_KINDS = {
    **{name: name for name in ("Tensor", "int", "float", "bool", "str")},
    "torch.Tensor": "Tensor",
    "torch.dtype": "ScalarType",
    "torch.device": "Device",
}


def _kind(annotation: Any) -> str | None:
    if annotation is inspect.Parameter.empty:
        return None
    text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    text = text.replace("typing.", "").replace("'", "")
    if match := re.fullmatch(r"Optional\[(.+)\]", text) or re.fullmatch(r"(.+) \| None", text):
        inner = _kind(match[1])
        return None if inner is None else f"{inner}?"
    if match := re.fullmatch(r"(?:list|List)\[(.+)\]", text):
        inner = _kind(match[1])
        return None if inner is None else f"{inner}[]"
    return _KINDS.get(text.rpartition(".")[2] if "." in text else text, "Any")


def _last(name: str) -> str:
    return name.rpartition(".")[2]


if __name__ == "__main__":
    main()
