"""In which mode a module is when it is handed to a compiler: what the code before says.

A module that was made here is in training mode until `.eval()` is called on it. Whatever
else may have changed the mode (a parameter, a function that is not the project's) says that
nothing is known.
"""

import enum
from collections.abc import Iterator, Sequence

import libcst as cst

from jitlint.analysis.calls import KEEPS_MODULE, MODULE_CONTAINERS
from jitlint.analysis.machine import Machine
from jitlint.analysis.observations import Call
from jitlint.analysis.values import (
    BoundMethod,
    Class,
    External,
    ExternalInstance,
    ExternalMethod,
    Function,
    Instance,
    Value,
)
from jitlint.project.modules import FunctionInfo, statements_of

MAX_DEPTH = 3
"""Factories that call factories are followed so far."""

SAME = frozenset(
    {
        *("copy.copy", "copy.deepcopy", "torch.jit.script", "torch.compile"),
        *("torch.jit.optimize_for_inference", "torch.nn.DataParallel"),
    }
)
"""Functions that return a module in the mode of their first argument."""
LEAVES_ALONE = (
    "torch.",
    "builtins.",
    "copy.",
    "numpy.",
    "collections.",
    "itertools.",
    "functools.",
)
"""Packages whose functions do not switch the mode of a module that they are given."""


class Mode(enum.Enum):
    TRAINING = "training"
    EVAL = "eval"
    UNKNOWN = "unknown"


def joined(modes: Sequence[Mode]) -> Mode:
    distinct = set(modes)
    return distinct.pop() if len(distinct) == 1 else Mode.UNKNOWN


class Modes:
    """Reads the code around one call."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._machine: Machine = call.moments[0].frame.machine

    def of(self, node: cst.BaseExpression) -> Mode:
        """The mode of the module that an argument of the call is."""
        function = self._call.function
        body = self._call.module.tree if function is None else function.node
        return self._of(node, self._call.node, body, function, 0)

    def _of(
        self,
        node: cst.BaseExpression,
        until: cst.CSTNode,
        body: cst.CSTNode,
        function: FunctionInfo | None,
        depth: int,
    ) -> Mode:
        match node:
            case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value=name))) if (
                switched := switches_to(node)
            ) is not None or name in KEEPS_MODULE:
                if switched is not None:
                    return switched
                return self._of(receiver, until, body, function, depth)
            case cst.Call():
                return self._made_by(node, until, body, function, depth)
            case cst.Name(value=name):
                flow = _Flow(self, name, until, body, function, depth)
                return flow.result()
        return Mode.UNKNOWN

    def _made_by(
        self,
        node: cst.Call,
        until: cst.CSTNode,
        body: cst.CSTNode,
        function: FunctionInfo | None,
        depth: int,
    ) -> Mode:
        match self.value(node.func):
            case Class(info) if self._machine.is_module(info):
                classes = self._machine.mro(info)
                return Mode.UNKNOWN if any(_switches(c.node) for c in classes) else Mode.TRAINING
            case External(name) if name in SAME and node.args:
                return self._of(node.args[0].value, until, body, function, depth)
            case External(name) if name in MODULE_CONTAINERS or self._is_layer(name):
                return Mode.TRAINING
            case Function(info) if depth < MAX_DEPTH and isinstance(info.node, cst.FunctionDef):
                returned = list(_returns(info.node))
                if not returned or any(each.value is None for each in returned):
                    return Mode.UNKNOWN
                return joined(
                    [
                        self._of(each.value, each, info.node, info, depth + 1)
                        for each in returned
                        if each.value is not None
                    ]
                )
        return Mode.UNKNOWN

    def _is_layer(self, name: str) -> bool:
        return self._machine.table_of(name).module(name) is not None

    def value(self, node: cst.BaseExpression) -> Value:
        return self._call.value_of(node)

    def may_switch(self, function: Value) -> bool:
        """Whether calling a function may change the mode of a module that it is given."""
        match function:
            case Function(info):
                return _switches(info.node)
            case BoundMethod(function=Function(info)):
                return _switches(info.node)
            case Class(info):
                return any(_switches(each.node) for each in self._machine.mro(info))
            case External(name):
                is_plain = name.startswith(LEAVES_ALONE)
                return not is_plain or "quant" in name or "eval" in name
            case ExternalInstance(name):
                return not name.startswith(LEAVES_ALONE)
            case Instance() | ExternalMethod(receiver=Instance() | ExternalInstance()):
                return False
        return True


class _Flow:
    """The mode of what a name holds, statement by statement, up to `until`."""

    def __init__(
        self,
        modes: Modes,
        name: str,
        until: cst.CSTNode,
        body: cst.CSTNode,
        function: FunctionInfo | None,
        depth: int,
    ) -> None:
        self._modes, self._name, self._until = modes, name, until
        self._body, self._function, self._depth = body, function, depth
        self._found: Mode | None = None

    def result(self) -> Mode:
        if isinstance(self._body, cst.FunctionDef):
            start = self._of_global(self._body)
            self._run(self._body.body, start)
        else:
            self._run(self._body, Mode.UNKNOWN)
        return self._found or Mode.UNKNOWN

    def _of_global(self, function: cst.FunctionDef) -> Mode:
        """The mode of a module of the file that no function of the file switches."""
        if self._function is None or _binds(function, self._name):
            return Mode.UNKNOWN
        tree = self._function.module.tree
        if any(_switches_name(each, self._name) for each in tree.body if not _is_line(each)):
            return Mode.UNKNOWN
        flow = _Flow(self._modes, self._name, cst.Pass(), tree, None, self._depth)
        return flow._run(tree, Mode.UNKNOWN)

    def _run(self, block: cst.CSTNode, mode: Mode) -> Mode:
        for statement in statements_of(block):
            if self._found is not None:
                break
            mode = self._after(statement, mode)
        return mode

    def _after(self, statement: cst.CSTNode, mode: Mode) -> Mode:
        match statement:
            case cst.FunctionDef() | cst.ClassDef():
                return mode
            case cst.If():
                mode = self._expression(statement.test, mode)
                ends = [self._run(statement.body, mode)]
                orelse = statement.orelse
                if isinstance(orelse, cst.If):
                    ends.append(self._after(orelse, mode))
                else:
                    ends.append(mode if orelse is None else self._run(orelse.body, mode))
                return joined(ends)
            case cst.For() | cst.While():
                test = statement.iter if isinstance(statement, cst.For) else statement.test
                mode = self._expression(test, mode)
                return self._loop(statement.body, mode)
            case cst.With():
                for item in statement.items:
                    mode = self._expression(item.item, mode)
                return self._run(statement.body, mode)
            case cst.Try():
                ends = [self._run(statement.body, mode)]
                ends += [
                    self._run(each.body, joined([mode, ends[0]])) for each in statement.handlers
                ]
                after = joined(ends)
                final = statement.finalbody
                return after if final is None else self._run(final.body, after)
        return self._simple(statement, mode)

    def _loop(self, body: cst.CSTNode, mode: Mode) -> Mode:
        """The first round decides what the call sees; a later one must not differ."""
        end = self._run(body, mode)
        if self._found is not None and _switches(body):
            self._found = joined([self._found, Mode.UNKNOWN])
        return joined([mode, end])

    def _simple(self, statement: cst.CSTNode, mode: Mode) -> Mode:
        value = getattr(statement, "value", None)
        mode = self._expression(statement, mode)
        if self._found is not None:
            return mode
        if isinstance(statement, cst.Assign):
            for target in statement.targets:
                mode = self._bound(target.target, statement.value, mode)
        elif isinstance(statement, cst.AnnAssign) and value is not None:
            mode = self._bound(statement.target, value, mode)
        return mode

    def _bound(self, target: cst.CSTNode, value: cst.BaseExpression, mode: Mode) -> Mode:
        if isinstance(target, cst.Name) and target.value == self._name:
            if _mentions(value, self._name):
                return mode
            return self._modes._of(value, value, self._body, self._function, self._depth)
        if isinstance(target, cst.Tuple | cst.List) and _mentions(target, self._name):
            return Mode.UNKNOWN
        is_alias = isinstance(value, cst.Name) and value.value == self._name
        return Mode.UNKNOWN if is_alias else mode

    def _expression(self, node: cst.CSTNode, mode: Mode) -> Mode:
        """The calls in an expression, the inner ones first."""
        if isinstance(node, cst.Lambda):
            return mode
        for child in node.children:
            mode = self._expression(child, mode)
            if self._found is not None:
                return mode
        if node is self._until:
            self._found = mode
        if isinstance(node, cst.Call):
            mode = self._called(node, mode)
        return mode

    def _called(self, node: cst.Call, mode: Mode) -> Mode:
        if isinstance(node.func, cst.Attribute) and _is_name(node.func.value, self._name):
            switched = switches_to(node)
            if switched is not None:
                return switched
            if node.func.attr.value in KEEPS_MODULE:
                return mode
            return Mode.UNKNOWN if self._modes.may_switch(self._modes.value(node.func)) else mode
        if any(_mentions_itself(each.value, self._name) for each in node.args):
            function = self._modes.value(node.func)
            return Mode.UNKNOWN if self._modes.may_switch(function) else mode
        return mode


def switches_to(node: cst.Call) -> Mode | None:
    """The mode that `m.eval()`, `m.train()` or `m.train(False)` switches to."""
    if not isinstance(node.func, cst.Attribute):
        return None
    match node.func.attr.value, [each.value for each in node.args]:
        case "eval", []:
            return Mode.EVAL
        case "train", [] | [cst.Name(value="True")]:
            return Mode.TRAINING
        case "train", [cst.Name(value="False")]:
            return Mode.EVAL
        case "train", _:
            return Mode.UNKNOWN
    return None


def _switches(node: cst.CSTNode) -> bool:
    """Whether code may switch a module to `eval`, of its own or by a method that it defines."""
    if isinstance(node, cst.FunctionDef) and node.name.value in ("train", "eval"):
        return True
    if isinstance(node, cst.Call) and switches_to(node) in (Mode.EVAL, Mode.UNKNOWN):
        return True
    return any(map(_switches, node.children))


def _switches_name(node: cst.CSTNode, name: str) -> bool:
    if isinstance(node, cst.Call) and switches_to(node) is not None:
        assert isinstance(node.func, cst.Attribute)
        return _is_name(node.func.value, name)
    return any(_switches_name(child, name) for child in node.children)


def _is_line(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine)


def _binds(function: cst.FunctionDef, name: str) -> bool:
    """Whether a name is a parameter or a variable of the function."""
    return _mentions(function.params, name) or _assigns(function.body, name)


def _assigns(node: cst.CSTNode, name: str) -> bool:
    if isinstance(node, cst.AssignTarget | cst.For | cst.AsName | cst.AnnAssign | cst.NamedExpr):
        target = node.name if isinstance(node, cst.AsName) else node.target
        if _mentions(target, name):
            return True
    return any(_assigns(child, name) for child in node.children)


def _returns(node: cst.CSTNode) -> Iterator[cst.Return]:
    if isinstance(node, cst.Return):
        yield node
    for child in node.children:
        if not isinstance(child, cst.FunctionDef | cst.ClassDef | cst.Lambda):
            yield from _returns(child)


def _is_name(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _mentions(node: cst.CSTNode, name: str) -> bool:
    return _is_name(node, name) or any(_mentions(child, name) for child in node.children)


def _mentions_itself(node: cst.CSTNode, name: str) -> bool:
    """Whether an argument is the object itself, or a container that holds it."""
    if isinstance(node, cst.Tuple | cst.List | cst.Set | cst.Element | cst.StarredElement):
        return any(_mentions_itself(child, name) for child in node.children)
    return _is_name(node, name)
