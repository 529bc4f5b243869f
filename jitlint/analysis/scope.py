"""Names in a function: where they are read, written, and last defined before a point."""

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst

from jitlint.analysis.tree import found_in, parents_of
from jitlint.finding import Withheld
from jitlint.project.index import BindingKind, Branch
from jitlint.project.modules import Module

Statement = cst.BaseStatement | cst.BaseSmallStatement


class Origin(enum.Enum):
    """Where the value of a name comes from."""

    PARAMETER = "parameter"
    ASSIGNMENT = "assignment"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """The one definition of a name that reaches a point.

    `value` is the assigned expression of a plain `name = value`; `place` the statement, or
    the statement (or function) behind which it is not clear.
    """

    origin: Origin
    place: cst.CSTNode
    value: cst.BaseExpression | None = None


def reads(node: cst.CSTNode) -> Iterator[cst.Name]:
    """The names that are read (or both read and written, as in `x += 1`) inside `node`."""
    match node:
        case cst.Name():
            yield node
            return
        case cst.Attribute():
            yield from reads(node.value)
            return
        case cst.Arg():
            yield from reads(node.value)
            return
        case cst.Param():
            if node.default is not None:
                yield from reads(node.default)
            return
        case cst.Assign():
            for target in node.targets:
                yield from _read_in_target(target.target)
            yield from reads(node.value)
            return
        case cst.AnnAssign():
            if node.value is not None:
                yield from reads(node.value)
            return
        case cst.For() | cst.CompFor():
            yield from _read_in_target(node.target)
            for child in node.children:
                if child is not node.target:
                    yield from reads(child)
            return
        case cst.NamedExpr():
            yield from reads(node.value)
            return
        case cst.Annotation() | cst.Import() | cst.ImportFrom() | cst.Global() | cst.Nonlocal():
            return
        case cst.FunctionDef() | cst.Module():
            yield from _reads_in_scope(node)
            return
    for child in node.children:
        yield from reads(child)


@lru_cache(maxsize=64)
def _reads_in_scope(node: cst.CSTNode) -> tuple[cst.Name, ...]:
    """Asked again for each branch of a function."""
    return tuple(name for child in node.children for name in reads(child))


def _read_in_target(target: cst.CSTNode) -> Iterator[cst.Name]:
    match target:
        case cst.Name():
            return
        case cst.Tuple() | cst.List():
            for element in target.elements:
                yield from _read_in_target(element.value)
        case _:
            yield from reads(target)


def names_read(*nodes: cst.CSTNode) -> frozenset[str]:
    return frozenset(name.value for node in nodes for name in reads(node))


def names_written(*nodes: cst.CSTNode) -> frozenset[str]:
    """The names that `nodes` bind anywhere, those of nested functions included."""
    return frozenset[str]().union(*map(_written_in, nodes))


def is_bound_once(name: str, node: cst.CSTNode) -> bool:
    """Whether there is one place in `node` that binds a name."""
    return [*_written(node)].count(name) == 1


@lru_cache(maxsize=4096)
def _written_in(node: cst.CSTNode) -> frozenset[str]:
    """Asked of the same statements for each name of a fix."""
    return frozenset(_written(node))


def _written(node: cst.CSTNode) -> Iterator[str]:
    match node:
        case cst.AssignTarget() | cst.AugAssign() | cst.AnnAssign() | cst.NamedExpr():
            yield from _bound(node.target)
        case cst.For() | cst.CompFor():
            yield from _bound(node.target)
        case cst.AsName() | cst.ImportAlias():
            yield from _bound(node.name)
        case cst.Del():
            yield from _bound(node.target)
        case cst.MatchAs() | cst.MatchStar():
            if node.name is not None:
                yield node.name.value
        case cst.FunctionDef() | cst.ClassDef():
            yield node.name.value
    for child in node.children:
        yield from _written(child)


def _bound(target: cst.CSTNode) -> Iterator[str]:
    match target:
        case cst.Name(value=name):
            yield name
        case cst.Tuple() | cst.List():
            for element in target.elements:
                yield from _bound(element.value)


def statement_of(node: cst.CSTNode, module: cst.Module) -> cst.CSTNode:
    """The statement of a block in which `node` stands."""
    parents = parents_of(module)
    while not isinstance(parents[node], cst.IndentedBlock | cst.Module):
        node = parents[node]
    return node


def function_of(node: cst.CSTNode, module: cst.Module) -> cst.FunctionDef | cst.Lambda | None:
    """The innermost function around `node`."""
    parents = parents_of(module)
    while node in parents:
        node = parents[node]
        if isinstance(node, cst.FunctionDef | cst.Lambda):
            return node
    return None


def block_around(statement: cst.CSTNode, module: cst.Module) -> Sequence[cst.BaseStatement]:
    """The statements of the block in which `statement` stands."""
    block = parents_of(module)[statement]
    assert isinstance(block, cst.IndentedBlock | cst.Module)
    return block.body


def definition_of(name: str, at: cst.CSTNode, module: cst.Module) -> Definition:
    """The definition of `name` that reaches the statement `at` on every way to it."""
    parents = parents_of(module)
    statement = at
    while True:
        block = parents.get(statement)
        if isinstance(block, cst.IndentedBlock | cst.Module):
            found = _before(name, statement, block.body)
            if found is not None:
                return found
        if block is None or isinstance(block, cst.Module | cst.Lambda):
            return Definition(Origin.UNCLEAR, statement)
        if isinstance(block, cst.FunctionDef):
            is_parameter = name in {each.value for each in _parameters(block.params)}
            return Definition(Origin.PARAMETER if is_parameter else Origin.UNCLEAR, block)
        if isinstance(block, cst.For | cst.While) and name in names_written(block):
            return Definition(Origin.UNCLEAR, block)
        if isinstance(block, cst.If | cst.With) and name in names_written(*_header(block)):
            return Definition(Origin.UNCLEAR, block)
        if isinstance(block, cst.Try | cst.TryStar | cst.Match) and name in names_written(block):
            return Definition(Origin.UNCLEAR, block)
        statement = block


def definition_read(read: cst.Name, module: cst.Module) -> Definition:
    """The definition whose value a name has where it is read: the test of a `while` is asked
    behind the body too."""
    statement = statement_of(read, module)
    if isinstance(statement, cst.While) and read.value in names_written(statement.body):
        return Definition(Origin.UNCLEAR, statement)
    return definition_of(read.value, statement, module)


def _header(block: cst.If | cst.With) -> Sequence[cst.CSTNode]:
    return [block.test] if isinstance(block, cst.If) else block.items


def _before(
    name: str, statement: cst.CSTNode, body: Sequence[cst.BaseStatement]
) -> Definition | None:
    index = next(i for i, each in enumerate(body) if each is statement)
    for earlier in reversed(body[:index]):
        if name not in names_written(earlier):
            continue
        if isinstance(earlier, cst.SimpleStatementLine) and len(earlier.body) == 1:
            match earlier.body[0]:
                case cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name(value=target))], value=value
                ) if target == name:
                    return Definition(Origin.ASSIGNMENT, earlier, value)
        return Definition(Origin.UNCLEAR, earlier)
    return None


def scopes_around(node: cst.CSTNode, module: cst.Module) -> Iterator[cst.FunctionDef | cst.Lambda]:
    """The functions around `node`, from the innermost."""
    function = function_of(node, module)
    while function is not None:
        yield function
        function = function_of(function, module)


def local_names(function: cst.FunctionDef | cst.Lambda) -> frozenset[str]:
    """Parameters, and the names that the body binds; those of nested functions included."""
    return names_written(function.body) | {each.value for each in _parameters(function.params)}


@lru_cache(maxsize=64)
def shared_names(function: cst.CSTNode) -> frozenset[str]:
    """Names that a `global` or `nonlocal` hands to other functions, which may run any time."""
    return frozenset(_shared(function))


def _shared(node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, cst.NameItem):
        yield node.name.value
    for child in node.children:
        yield from _shared(child)


def binder_of(
    node: cst.CSTNode, name: str, at: cst.CSTNode, module: cst.Module
) -> cst.CSTNode | None:
    """The lambda or comprehension inside of the statement `at` that gives `name` its value."""
    parents = parents_of(module)
    while node in parents and node is not at:
        node = parents[node]
        if isinstance(node, cst.Lambda) and name in {e.value for e in _parameters(node.params)}:
            return node
        if isinstance(node, cst.BaseComp) and name in names_written(node.for_in):
            return node
    return None


def free_names(function: cst.FunctionDef | cst.Lambda, module: cst.Module) -> frozenset[str]:
    """The names that the body of a function reads of the code around it."""
    own = local_names(function)
    return frozenset(
        each.value
        for each in reads(function.body)
        if each.value not in own and binder_of(each, each.value, function, module) is None
    )


def is_surely_bound(name: str, at: cst.CSTNode, module: cst.Module) -> bool:
    """Whether reading `name` at the statement `at` cannot raise: it is bound on every way,
    or not a local variable at all."""
    parents = parents_of(module)
    function = function_of(at, module)
    if function is None or name not in names_written(function):
        return True
    statement = at
    while statement in parents:
        block = parents[statement]
        if isinstance(block, cst.FunctionDef | cst.Lambda):
            return name in {each.value for each in _parameters(block.params)}
        if isinstance(block, cst.For | cst.With) and name in _bound_by_header(block):
            return True
        if isinstance(block, cst.IndentedBlock):
            index = next(i for i, each in enumerate(block.body) if each is statement)
            if any(_binds_always(name, each) for each in block.body[:index]):
                return True
        statement = block
    return True


def _binds_always(name: str, statement: cst.CSTNode) -> bool:
    """Whether `name` has a value behind the statement, whatever way was taken through it."""
    match statement:
        case cst.If(body=body, orelse=cst.CSTNode() as orelse):
            return all(_binds_always(name, each) for each in (body, orelse))
        case cst.Else(body=body) | cst.With(body=body):
            return name in _bound_by_header(statement) or _binds_always(name, body)
        case cst.IndentedBlock(body=body):
            return any(_binds_always(name, each) for each in body)
        case cst.SimpleStatementLine() | cst.FunctionDef() | cst.ClassDef():
            return name in names_written(statement) and not _deletes(statement)
    return False


def _bound_by_header(statement: cst.CSTNode) -> frozenset[str]:
    if isinstance(statement, cst.With):
        return names_written(*statement.items)
    if isinstance(statement, cst.For):
        return frozenset(_bound(statement.target))
    return frozenset()


def _deletes(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and any(
        isinstance(each, cst.Del) for each in statement.body
    )


def _parameters(parameters: cst.Parameters) -> Iterator[cst.Name]:
    for group in (parameters.posonly_params, parameters.params, parameters.kwonly_params):
        for parameter in group:
            yield parameter.name
    for star in (parameters.star_arg, parameters.star_kwarg):
        if isinstance(star, cst.Param):
            yield star.name


def fresh_name(wanted: str, function: cst.CSTNode) -> str:
    """`wanted`, or with a number behind it where the function has a name like that."""
    taken = names_read(function) | names_written(function)
    if isinstance(function, cst.FunctionDef):
        taken |= {name.value for name in _parameters(function.params)}
    number = 1
    name = wanted
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name


def imported_as(target: str, module: Module) -> Iterator[str]:
    """The names that a file gives to what it imports; an import for type checkers alone is
    not there when the file runs."""
    for local, binding in module.facts.bindings.items():
        is_import = binding.kind is BindingKind.IMPORT and binding.target == target
        if is_import and binding.branch < Branch.TYPING:
            yield local


def is_optional(package: str, module: Module) -> bool:
    """Whether a file imports a package only where it needs it, or only if it is there: what
    runs when the file is loaded must not ask for it."""

    def is_of_package(target: str) -> bool:
        return target.partition(".")[0] == package

    bound = [each for each in module.facts.bindings.values() if is_of_package(each.target)]
    if any(each.branch is Branch.ALWAYS for each in bound):
        return False
    return any(map(is_of_package, module.facts.imports))


SCRIPTED = frozenset(
    f"torch.jit.{name}"
    for name in (
        *("is_scripting", "script", "script_method", "script_if_tracing", "interface"),
        *("export", "annotate", "Final", "Attribute", "_overload", "_overload_method"),
    )
)


def may_be_scripted(module: Module) -> bool:
    """Whether a file has code for TorchScript, which takes no operators of Python's
    (`torch.library.custom_op`). Functions that it is to leave alone tell nothing of others."""
    return not SCRIPTED.isdisjoint(module.facts.mentions)


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a module writes a function of torch, at a node, and what it must import for it."""

    module: Module
    at: cst.CSTNode | None = None

    def of(self, name: str) -> cst.BaseExpression:
        """`torch.where`, `th.where` or `where`, whatever the file can say already."""
        local = next(imported_as(f"torch.{name}", self.module), None)
        if local is not None:
            return cst.Name(local)
        return cst.Attribute(cst.Name(self._torch() or "torch"), cst.Name(name))

    def imports(self) -> tuple[str, ...]:
        """Raises Withheld where the file is loaded without torch, or has another `torch`."""
        is_local = self.at is not None and imports_torch_before(self.at, self.module.tree)
        if self._torch() or is_local:
            return ()
        bound = self.module.facts.bindings.get("torch")
        if is_optional("torch", self.module) or (bound and bound.branch is Branch.REPLACED):
            raise Withheld("torch is imported where it is needed, and the fix needs it elsewhere")
        return ("torch",)

    def _torch(self) -> str | None:
        found = list(imported_as("torch", self.module))
        return "torch" if "torch" in found else next(iter(found), None)


def imports_torch_before(at: cst.CSTNode, module: cst.Module) -> bool:
    """Whether the function around `at` imports torch in front of it, whatever way leads there."""
    function = function_of(at, module)
    if function is None or "torch" not in names_written(function):
        return False
    if not is_bound_once("torch", function):
        return False
    is_import = any(map(_imports_torch, found_in(function, cst.SimpleStatementLine)))
    return is_import and is_surely_bound("torch", statement_of(at, module), module)


def _imports_torch(line: cst.SimpleStatementLine) -> bool:
    match line.body:
        case [cst.Import(names=[cst.ImportAlias(name=cst.Name("torch"), asname=None)])]:
            return True
    return False
