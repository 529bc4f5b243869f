"""Which framework's judge a file needs, decided by what it imports."""

import ast

TORCH, TENSORFLOW = "torch", "tensorflow"
ROOTS = {"torch": TORCH, "tensorflow": TENSORFLOW, "keras": TENSORFLOW}


def framework_of(source: bytes) -> str:
    """The framework of a file: torch's, unless it imports TensorFlow and not torch."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return TORCH
    found = {ROOTS[root] for root in _imported(tree) if root in ROOTS}
    return TENSORFLOW if found == {TENSORFLOW} else TORCH


def _imported(tree: ast.Module) -> set[str]:
    roots: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            roots.add(node.module.partition(".")[0])
    return roots
