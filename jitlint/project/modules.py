"""Modules, classes and functions of the project, parsed when they are first asked for."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import libcst as cst

from jitlint import source as sources
from jitlint.project.index import ModuleFacts, index
from jitlint.source import UnparsableError


@dataclass(eq=False)
class FunctionInfo:
    """A function, method or lambda. `cls` is the class in whose body it stands."""

    module: "Module"
    qualname: str
    node: cst.FunctionDef | cst.Lambda
    cls: "ClassInfo | None" = None

    def __repr__(self) -> str:
        return f"FunctionInfo({self.full_name})"

    @property
    def name(self) -> str:
        return self.qualname.rpartition(".")[2]

    @property
    def full_name(self) -> str:
        return f"{self.module.name}.{self.qualname}"

    @cached_property
    def parameters(self) -> tuple[cst.Param, ...]:
        """Positional parameters, in order."""
        return (*self.node.params.posonly_params, *self.node.params.params)

    @cached_property
    def decorators(self) -> tuple[cst.BaseExpression, ...]:
        if isinstance(self.node, cst.Lambda):
            return ()
        return tuple(decorator.decorator for decorator in self.node.decorators)


@dataclass(eq=False)
class ClassInfo:
    """A class. `methods` are those of its own body, `assignments` its class variables."""

    module: "Module"
    qualname: str
    node: cst.ClassDef
    methods: dict[str, FunctionInfo] = field(default_factory=dict)
    classes: "dict[str, ClassInfo]" = field(default_factory=dict)
    assignments: dict[str, cst.Assign | cst.AnnAssign] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"ClassInfo({self.full_name})"

    @property
    def full_name(self) -> str:
        return f"{self.module.name}.{self.qualname}"

    @cached_property
    def bases(self) -> tuple[cst.BaseExpression, ...]:
        return tuple(argument.value for argument in self.node.bases if argument.star == "")


class Module:
    """One source file. Raises nothing: a file that does not parse has no definitions.

    `is_unread`: its tree was asked for, and there is none.
    """

    def __init__(self, path: Path, name: str, source: bytes) -> None:
        self.path = path
        self.name = name
        self.source = source
        self.is_package = path.name == "__init__.py"
        self.is_unread = False

    def __repr__(self) -> str:
        return f"Module({self.name})"

    def local_name(self, target: str) -> str | None:
        """The name under which the file has what a dotted name stands for."""
        bindings = self.facts.bindings.items()
        return next((name for name, binding in bindings if binding.target == target), None)

    @property
    def package(self) -> str:
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @cached_property
    def facts(self) -> ModuleFacts:
        try:
            tree = sources.parse_ast(sources.decode(self.source).text)
            return index(tree, self.package)
        except UnparsableError:
            return ModuleFacts()

    @cached_property
    def tree(self) -> cst.Module:
        """The LibCST tree that interpreter, rules and fixes share.

        Raises UnparsableError.
        """
        try:
            return sources.parse_module(sources.decode(self.source).text, self.facts.depth)
        except UnparsableError:
            self.is_unread = True
            raise

    @cached_property
    def _definitions(self) -> "_Definitions":
        definitions = _Definitions()
        with suppress(UnparsableError):
            _define(self, self.tree.body, definitions)
        return definitions

    @property
    def functions(self) -> dict[str, FunctionInfo]:
        return self._definitions.functions

    @property
    def classes(self) -> dict[str, ClassInfo]:
        return self._definitions.classes

    @property
    def assignments(self) -> dict[str, list[cst.BaseExpression]]:
        """The expressions assigned to each top-level name, in order."""
        return self._definitions.assignments


@dataclass
class _Definitions:
    functions: dict[str, FunctionInfo] = field(default_factory=dict)
    classes: dict[str, ClassInfo] = field(default_factory=dict)
    assignments: dict[str, list[cst.BaseExpression]] = field(default_factory=dict)


def statements_of(block: cst.CSTNode) -> Iterator[cst.BaseStatement | cst.BaseSmallStatement]:
    """The statements of a suite; those of one line come one by one."""
    body = block.body if isinstance(block, cst.IndentedBlock | cst.Module) else (block,)
    for statement in body:
        if isinstance(statement, cst.SimpleStatementLine | cst.SimpleStatementSuite):
            yield from statement.body
        else:
            yield statement  # type: ignore[misc]


def suites_of(statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The suites of a compound statement other than a definition."""
    match statement:
        case cst.If() | cst.For() | cst.While():
            yield statement.body
            if isinstance(statement.orelse, cst.If):
                yield from suites_of(statement.orelse)
            elif statement.orelse is not None:
                yield statement.orelse.body
        case cst.Try() | cst.TryStar():
            yield statement.body
            for handler in statement.handlers:
                yield handler.body
            if statement.orelse is not None:
                yield statement.orelse.body
            if statement.finalbody is not None:
                yield statement.finalbody.body
        case cst.With():
            yield statement.body


def _define(module: Module, body: object, into: _Definitions) -> None:
    for statement in _statements(body):
        match statement:
            case cst.FunctionDef():
                name = statement.name.value
                into.functions[name] = FunctionInfo(module, name, statement)
            case cst.ClassDef():
                info = define_class(module, statement, "")
                into.classes[info.qualname] = info
            case cst.Assign():
                for target in statement.targets:
                    for name, value in _assigned(target.target, statement.value):
                        into.assignments.setdefault(name, []).append(value)
            case cst.AnnAssign(target=cst.Name(value=name), value=cst.BaseExpression() as value):
                into.assignments.setdefault(name, []).append(value)
            case _:
                for suite in suites_of(statement):
                    _define(module, suite, into)


def _assigned(
    target: cst.BaseExpression, value: cst.BaseExpression
) -> Iterator[tuple[str, cst.BaseExpression]]:
    """The names that an assignment binds, with the expression of each where it is written."""
    match target, value:
        case cst.Name(value=name), _:
            yield name, value
        case cst.Tuple(elements=names) | cst.List(elements=names), cst.Tuple(elements=values):
            is_plain = all(isinstance(each, cst.Element) for each in (*names, *values))
            if is_plain and len(names) == len(values):
                for each, part in zip(names, values, strict=True):
                    yield from _assigned(each.value, part.value)


def _statements(body: object) -> Iterator[cst.CSTNode]:
    if isinstance(body, cst.CSTNode):
        yield from statements_of(body)
        return
    for statement in body:  # type: ignore[attr-defined]
        yield from statements_of(statement)


def define_class(module: Module, node: cst.ClassDef, prefix: str) -> ClassInfo:
    """The record of a class statement."""
    info = ClassInfo(module, f"{prefix}{node.name.value}", node)
    _fill_class(info, node.body)
    return info


def _fill_class(info: ClassInfo, body: cst.CSTNode) -> None:
    for statement in statements_of(body):
        match statement:
            case cst.FunctionDef():
                name = statement.name.value
                if name in info.methods and _is_accessor(statement):
                    continue
                method = FunctionInfo(info.module, f"{info.qualname}.{name}", statement, info)
                info.methods[name] = method
            case cst.ClassDef():
                nested = define_class(info.module, statement, f"{info.qualname}.")
                info.classes[statement.name.value] = nested
            case cst.Assign():
                for target in statement.targets:
                    if isinstance(target.target, cst.Name):
                        info.assignments[target.target.value] = statement
            case cst.AnnAssign(target=cst.Name(value=name)):
                info.assignments[name] = statement
            case _:
                for suite in suites_of(statement):
                    _fill_class(info, suite)


def _is_accessor(node: cst.FunctionDef) -> bool:
    """`@name.setter` and `@name.deleter` do not replace the property; overloads do."""
    return any(
        isinstance(decorator.decorator, cst.Attribute)
        and decorator.decorator.attr.value in ("setter", "deleter")
        for decorator in node.decorators
    )
