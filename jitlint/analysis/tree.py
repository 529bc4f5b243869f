"""In what the nodes of a tree stand; LibCST nodes do not know."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache, lru_cache
from typing import TypeVar

import libcst as cst

Kind = TypeVar("Kind", bound=cst.CSTNode)


@cache
def _fields_of(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def parts_of(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The children of a node, in no particular order; `node.children` copies them to find out,
    which takes three times as long."""
    for name in _fields_of(type(node)):
        value = getattr(node, name)
        if isinstance(value, cst.CSTNode):
            yield value
        elif isinstance(value, list | tuple):
            yield from (each for each in value if isinstance(each, cst.CSTNode))


@lru_cache(maxsize=16)
def parents_of(module: cst.Module) -> Mapping[cst.CSTNode, cst.CSTNode]:
    """The parent of every node: for rules that have a finding and want to fix it."""
    parents: dict[cst.CSTNode, cst.CSTNode] = {}
    pending: list[cst.CSTNode] = [module]
    while pending:
        node = pending.pop()
        for child in parts_of(node):
            parents[child] = node
            pending.append(child)
    return parents


def ancestors_of(node: cst.CSTNode, module: cst.Module) -> Iterator[cst.CSTNode]:
    """What a node stands in, from the inside out."""
    parents = parents_of(module)
    while node in parents:
        node = parents[node]
        yield node


@lru_cache(maxsize=16)
def definitions_of(module: cst.Module) -> Mapping[str, int]:
    """How many functions of a module have each dotted name."""
    found: Counter[str] = Counter()
    for node in parents_of(module):
        if isinstance(node, cst.FunctionDef):
            scopes = [node, *ancestors_of(node, module)]
            named = [e.name.value for e in scopes if isinstance(e, cst.FunctionDef | cst.ClassDef)]
            found[".".join(reversed(named))] += 1
    return found


PLACES = (cst.Element, cst.Tuple, cst.List, cst.Dict, cst.DictElement)
"""What holds a value and asks nothing of it."""


def is_handed_on(node: cst.CSTNode, module: cst.Module) -> bool:
    """Whether a function does nothing with a value but return it, or a variable that has it."""
    for parent in ancestors_of(node, module):
        match parent:
            case cst.Return():
                return True
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
                return _is_only_returned(name, parent, module)
            case cst.DictElement(key=key) if key is node:
                return False
            case _ if not isinstance(parent, PLACES):
                return False
        node = parent
    return False


def _is_only_returned(name: str, assigned: cst.Assign, module: cst.Module) -> bool:
    ancestors = ancestors_of(assigned, module)
    function = next((each for each in ancestors if isinstance(each, cst.FunctionDef)), None)
    if function is None:
        return False
    uses = [each for each in found_in(function.body, cst.Name) if each.value == name]
    stores = [target.target for target in found_in(function.body, cst.AssignTarget)]
    return all(each in stores or _is_returned(each, module) for each in uses)


def _is_returned(node: cst.CSTNode, module: cst.Module) -> bool:
    for parent in ancestors_of(node, module):
        if not isinstance(parent, PLACES):
            return isinstance(parent, cst.Return)
    return False


def nodes_in(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and what is in it, from the outside in, in the order of the code."""
    yield node
    for child in node.children:
        yield from nodes_in(child)


def found_in(node: cst.CSTNode, kind: type[Kind]) -> Iterator[Kind]:
    """Of a node and what is in it the nodes of one kind."""
    return (each for each in nodes_in(node) if isinstance(each, kind))


def contains(node: cst.CSTNode, inner: cst.CSTNode) -> bool:
    """Whether `inner` is this node, or is somewhere in it."""
    return node is inner or any(contains(child, inner) for child in node.children)
