"""Reads the registry of graph breaks of the installed torch, the section `graph_breaks`."""

import ast
import json
from pathlib import Path
from typing import Any


def registry() -> dict[str, dict[str, Any]]:
    """Each graph break by its id, as the newest entry of the registry describes it.

    `raised` is false for a break that no line of this release causes any more.
    """
    import torch

    root = Path(torch.__file__).parent
    path = root / "_dynamo" / "graph_break_registry.json"
    if not path.exists():
        return {}
    entries = json.loads(path.read_text(encoding="utf-8"))
    causes = _strings(root)
    return {name: _entry(newest, causes) for name, (newest, *_) in sorted(entries.items())}


def _entry(found: dict[str, Any], causes: set[str]) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": found["Gb_type"],
        "explanation": _literal(found["Explanation"]),
        "hints": _joined(found["Hints"]),
    }
    return entry if found["Gb_type"] in causes else {**entry, "raised": False}


def _strings(root: Path) -> set[str]:
    """Every string of the modules that cause graph breaks."""
    sources = (path.read_text(encoding="utf-8") for path in root.rglob("*.py"))
    return {
        node.value
        for source in sources
        if "gb_type" in source
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def _literal(text: str) -> str:
    """What is fixed in a text that the registry may hold as the expression that makes it."""
    try:
        made = ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return text
    parts = [node for node in ast.walk(made) if isinstance(node, ast.Constant)]
    parts.sort(key=lambda node: (node.lineno, node.col_offset))
    return "".join(str(node.value) for node in parts).strip()


def _joined(hints: list[str]) -> list[str]:
    """Sentences: the registry holds one that is written over several lines as several."""
    joined: list[str] = []
    for hint in hints:
        if joined and _is_open(joined[-1], hint):
            joined[-1] += hint
        else:
            joined.append(hint)
    return [" ".join(hint.split()) for hint in joined]


def _is_open(hint: str, following: str) -> bool:
    blank = hint[-1:].isspace() or following[:1].isspace()
    return blank and not hint.rstrip().endswith(".")
