"""Attributes and globals that the project changes after code that reads them has been traced.

Only a change that is seen to come later is evidence: the object was called before, or a
method sets what it is given. What is set up once is no change.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import libcst as cst

from jitlint.analysis.makers import makers
from jitlint.analysis.tree import ancestors_of
from jitlint.analysis.values import External
from jitlint.project.modules import ClassInfo, FunctionInfo, Module
from jitlint.region import GRAPHS, RegionKind

if TYPE_CHECKING:
    from jitlint.analysis.frame import Frame

Owner = ClassInfo | Module

SETS_UP = frozenset(
    {"__init__", "__post_init__", "__new__", "__setstate__", "__enter__", "build", "setup", "reset"}
)
"""Methods that run before the others."""


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """A store, in code that Python runs. `owner` is what has the attribute or the global.
    `is_mode`: `target` is not stored to, but called, and switches the mode of a module."""

    target: cst.CSTNode
    module: Module
    function: FunctionInfo | None
    owner: Owner
    is_mode: bool = False


class Changes:
    """All stores to attributes and globals, by owner and name."""

    def __init__(self) -> None:
        self._stores: dict[tuple[Owner, str], dict[cst.CSTNode, Change]] = defaultdict(dict)
        self._behind: dict[Change, bool] = {}

    def note(self, owner: Owner, name: str, target: cst.CSTNode, frame: "Frame") -> None:
        change = Change(target, frame.module, frame.function, owner)
        self._stores[owner, name][target] = change

    def _is_behind_trace(self, change: Change, frame: "Frame") -> bool:
        if change not in self._behind:
            self._behind[change] = _is_behind_trace(change, frame)
        return self._behind[change]

    def note_mode(self, owner: ClassInfo, method: cst.CSTNode, frame: "Frame") -> None:
        """`m.train()` sets `m.training`."""
        change = Change(method, frame.module, frame.function, owner, is_mode=True)
        self._stores[owner, "training"][method] = change

    def of(self, owner: Owner, name: str, frame: "Frame") -> bool:
        """Whether there is one after the code of `frame`'s region was traced."""
        stores = self._stores.get((owner, name))
        if stores is None or frame.region is None:
            return False
        traced = frozenset(part for each in frame.region.chain for part in each.split("."))
        is_at_call = frame.region.kind in GRAPHS
        return any(
            _is_later(change, traced, is_at_call) or self._is_behind_trace(change, frame)
            for change in stores.values()
        )


def _is_later(change: Change, traced: frozenset[str], is_at_call: bool) -> bool:
    """`is_at_call`: the first call of the object traces it."""
    function = change.function
    if change.is_mode:
        return False
    if function is not None and (function.name in SETS_UP or function.name in traced):
        return False
    if isinstance(change.target, cst.Subscript):  # tables are filled before they are used
        root = _first_name(change.target)
        return any(
            _last_name(call.func) in traced or _first_name(call.func) == root
            for call in _calls_before(change)
        )
    if _is_own(change):
        return not _is_called_by_setup(change) and _sets_what_it_is_given(change)
    if isinstance(change.owner, Module):
        if function is not None and _sets_what_it_is_given(change):
            return True
        return any(_last_name(call.func) in traced for call in _calls_before(change))
    root = _first_name(change.target)
    return is_at_call and any(_first_name(call.func) == root for call in _calls_before(change))


def _is_behind_trace(change: Change, frame: "Frame") -> bool:
    """Whether a tracer was given the object before it is changed, and is not again; of a mode,
    whether what the tracer returned is switched. (A module may be trained on behind a trace.)"""
    root, is_before, is_behind = _first_name(change.target), True, False
    for node in _nodes_of(_root_of(change)):
        is_before = is_before and node is not change.target
        if isinstance(node, cst.Call) and _is_tracer(node, change.module, frame):
            given = {_first_name(each.value) for each in node.args[:1]}
            bound = _bound_to(node, change.module) if change.is_mode else given
            if root in bound and not is_before:
                return False
            is_behind = is_behind or root in bound
    return is_behind


def _root_of(change: Change) -> cst.CSTNode:
    """The body in which it stands."""
    return change.module.tree if change.function is None else change.function.node


def _is_tracer(call: cst.Call, module: Module, frame: "Frame") -> bool:
    """Whether a call records a function or a module at once."""
    from jitlint.analysis.expressions import evaluate

    host = replace(frame, module=module, region=None, variables={}, silent=1)
    value = evaluate(host, call.func)
    maker = makers().get(value.name) if isinstance(value, External) else None
    return maker is not None and maker.kind in (RegionKind.TRACE, RegionKind.EXPORT)


def _bound_to(call: cst.Call, module: Module) -> set[str | None]:
    """The names that the result of a call is bound to."""
    statement = next(ancestors_of(call, module.tree), None)
    targets = statement.targets if isinstance(statement, cst.Assign) else ()
    return {_first_name(each.target) for each in targets}


def _is_own(change: Change) -> bool:
    """A method stores an attribute of its own object."""
    function = change.function
    if function is None or function.cls is None or not function.parameters:
        return False
    return _first_name(change.target) == function.parameters[0].name.value


def _is_called_by_setup(change: Change) -> bool:
    assert change.function is not None and isinstance(change.owner, ClassInfo)
    methods = [info for name, info in change.owner.methods.items() if name in SETS_UP]
    name = change.function.name
    return any(_last_name(call.func) == name for info in methods for call in _calls_in(info.node))


def _sets_what_it_is_given(change: Change) -> bool:
    """Whether the new value is a parameter, or made of the old value. A constant may say that
    something is done for good (`self.built = True`)."""
    statement = next(ancestors_of(change.target, change.module.tree), None)
    if isinstance(statement, cst.AssignTarget):
        statement = next(ancestors_of(statement, change.module.tree), None)
    if isinstance(statement, cst.AugAssign):
        return True
    if not isinstance(statement, cst.Assign) or change.function is None:
        return False
    value = statement.value
    if isinstance(value, cst.Name):
        parameters = {each.name.value for each in change.function.parameters}
        return value.value in parameters
    return any(node.deep_equals(change.target) for node in _nodes_of(value))


def _calls_before(change: Change) -> Iterator[cst.Call]:
    """The calls of the same body that run before a store, if need be in an earlier round."""
    root = _root_of(change)
    outer = [
        each
        for each in ancestors_of(change.target, change.module.tree)
        if isinstance(each, cst.For | cst.While)
    ]
    for node in _nodes_of(root):
        if node is change.target:
            break
        if isinstance(node, cst.Call):
            yield node
    for loop in outer:
        yield from _calls_in(loop)


def _calls_in(node: cst.CSTNode) -> Iterator[cst.Call]:
    return (each for each in _nodes_of(node) if isinstance(each, cst.Call))


def _nodes_of(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """In the order in which Python runs them, more or less: the value before the target."""
    yield node
    children = list(node.children)
    if isinstance(node, cst.Assign | cst.AugAssign | cst.AnnAssign):
        children.reverse()
    for child in children:
        if not isinstance(child, cst.FunctionDef | cst.ClassDef):
            yield from _nodes_of(child)


def _first_name(node: cst.CSTNode) -> str | None:
    while isinstance(node, cst.Attribute | cst.Subscript):
        node = node.value
    return node.value if isinstance(node, cst.Name) else None


def _last_name(node: cst.CSTNode) -> str | None:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else None
