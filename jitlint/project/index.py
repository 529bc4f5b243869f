"""What a file defines, imports and mentions, by one walk over its `ast`.

The index decides which files LibCST ever sees: parsing with `ast` costs a seventh.
"""

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass, field, replace


class BindingKind(enum.Enum):
    IMPORT = "import"
    FUNCTION = "function"
    CLASS = "class"
    ASSIGNMENT = "assignment"


class Branch(enum.IntEnum):
    """Where a top-level statement stands, the less sure the higher: always run, in a block
    that may not, in what is left of an `if` or `try`, or in the body of `if TYPE_CHECKING:`,
    the `else` of which may make something else of the name."""

    ALWAYS = 0
    BODY = 1
    FALLBACK = 2
    TYPING = 3
    REPLACED = 4


@dataclass(frozen=True, slots=True)
class Binding:
    """What a top-level name stands for; `target` is the dotted name of an import."""

    kind: BindingKind
    target: str = ""
    branch: Branch = Branch.ALWAYS


@dataclass(slots=True)
class ModuleFacts:
    """Everything that later stages ask of a file before they parse it with LibCST.

    `mentions` holds the dotted names, resolved through the file's imports, of everything
    that is read or called; `methods` the names of methods called on anything; `imports`
    the targets of all imports; `lines` where functions and methods are defined. `depth`
    is how deeply the tree is nested.
    """

    bindings: dict[str, Binding] = field(default_factory=dict)
    stars: tuple[str, ...] = ()
    mentions: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()
    classes: tuple[str, ...] = ()
    lines: dict[str, int] = field(default_factory=dict)
    depth: int = 0


def index(tree: ast.Module, package: str) -> ModuleFacts:
    """Facts of a module. `package` is the package that its relative imports start from."""
    facts = ModuleFacts()
    stars: list[str] = []
    for statement, branch in _top_level(tree.body):
        for name, plain in _bind(statement, package, stars):
            binding = replace(plain, branch=branch)
            known = facts.bindings.get(name)
            if known is None or not _is_weaker(binding, known):
                facts.bindings[name] = binding
            elif known.branch is Branch.TYPING:
                facts.bindings[name] = replace(known, branch=Branch.REPLACED)
    facts.stars = tuple(stars)
    facts.classes = tuple(n for n, b in facts.bindings.items() if b.kind is BindingKind.CLASS)
    facts.lines = dict(_definition_lines(tree.body, ""))
    _collect_mentions(tree, package, facts)
    return facts


def _definition_lines(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, int]]:
    for statement, _ in _top_level(body):
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield f"{prefix}{statement.name}", statement.lineno
            case ast.ClassDef():
                yield from _definition_lines(statement.body, f"{prefix}{statement.name}.")


def absolute(module: str | None, level: int, package: str) -> str:
    """The absolute name of an imported module."""
    if not level:
        return module or ""
    parts = package.split(".") if package else []
    base = parts[: len(parts) - (level - 1)]
    return ".".join([*base, module] if module else base)


def _is_weaker(new: Binding, known: Binding) -> bool:
    """`X = None` behind `import X` is the fallback of an optional dependency."""
    if new.branch is Branch.FALLBACK:
        return True
    if new.branch is Branch.TYPING and new.target == known.target:
        return True
    return new.kind is BindingKind.ASSIGNMENT and known.kind is not BindingKind.ASSIGNMENT


def _top_level(
    body: list[ast.stmt], branch: Branch = Branch.ALWAYS
) -> Iterator[tuple[ast.stmt, Branch]]:
    """Statements that run at import, and where they stand."""
    for statement in body:
        yield statement, branch
        match statement:
            case ast.If():
                inner = Branch.TYPING if _is_for_typing(statement.test) else Branch.BODY
                yield from _top_level(statement.body, max(branch, inner))
                yield from _top_level(statement.orelse, max(branch, Branch.FALLBACK))
            case ast.Try():
                inside = max(branch, Branch.BODY)
                yield from _top_level(statement.body, inside)
                for handler in statement.handlers:
                    yield from _top_level(handler.body, max(branch, Branch.FALLBACK))
                yield from _top_level(statement.orelse + statement.finalbody, inside)
            case ast.With() | ast.For() | ast.While():
                yield from _top_level(statement.body, max(branch, Branch.BODY))


FOR_TYPING = frozenset({"TYPE_CHECKING", "MYPY"})
"""What type checkers take for true, and Python for false."""


def _is_for_typing(test: ast.expr) -> bool:
    return dotted_name(test).rpartition(".")[2] in FOR_TYPING


def _bind(statement: ast.stmt, package: str, stars: list[str]) -> Iterator[tuple[str, Binding]]:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield statement.name, Binding(BindingKind.FUNCTION)
        case ast.ClassDef():
            yield statement.name, Binding(BindingKind.CLASS)
        case ast.Import() | ast.ImportFrom():
            yield from imported_names(statement, package, stars)
        case ast.Assign():
            for target in statement.targets:
                yield from _assigned(target)
        case ast.AnnAssign() | ast.AugAssign():
            yield from _assigned(statement.target)
        case ast.For():
            yield from _assigned(statement.target)
        case ast.With():
            for item in statement.items:
                if item.optional_vars is not None:
                    yield from _assigned(item.optional_vars)


def imported_names(
    statement: ast.Import | ast.ImportFrom, package: str, stars: list[str]
) -> Iterator[tuple[str, Binding]]:
    """The names that an import binds; star imports go to `stars`."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            target = alias.name if alias.asname else alias.name.partition(".")[0]
            yield alias.asname or target, Binding(BindingKind.IMPORT, target)
        return
    base = absolute(statement.module, statement.level, package)
    for alias in statement.names:
        if alias.name == "*":
            stars.append(base)
        else:
            yield alias.asname or alias.name, Binding(BindingKind.IMPORT, f"{base}.{alias.name}")


def _assigned(target: ast.expr) -> Iterator[tuple[str, Binding]]:
    if isinstance(target, ast.Name):
        yield target.id, Binding(BindingKind.ASSIGNMENT)
    elif isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _assigned(element)


def _collect_mentions(tree: ast.Module, package: str, facts: ModuleFacts) -> None:
    imported: dict[str, str] = {}
    stars: list[str] = []
    imports: set[str] = set()
    chains: list[ast.Attribute | ast.Name] = []
    methods: set[str] = set()
    for facts.depth, node in walk(tree):
        match node:
            case ast.Attribute() | ast.Name():
                chains.append(node)
            case ast.Call(func=ast.Attribute(attr=name)):
                methods.add(name)
            case ast.Import() | ast.ImportFrom():
                for name, binding in imported_names(node, package, stars):
                    imported.setdefault(name, binding.target)
                    imports.add(binding.target)
                if isinstance(node, ast.Import):
                    imports.update(alias.name for alias in node.names)
    mentions = set()
    for chain in chains:
        dotted = dotted_name(chain)
        root, _, rest = dotted.partition(".")
        if root in imported:
            mentions.add(f"{imported[root]}.{rest}" if rest else imported[root])
    facts.mentions = frozenset(mentions)
    facts.methods = frozenset(methods)
    facts.imports = frozenset(imports | set(stars))


def walk(tree: ast.AST) -> Iterator[tuple[int, ast.AST]]:
    """All nodes, outer ones first, with their depth in LibCST's tree.

    `a and b and c` is flat here and nested there.
    """
    level = [tree]
    depth = 0
    while level:
        depth += max(1, *(len(n.values) for n in level if isinstance(n, ast.BoolOp)), 1)
        below: list[ast.AST] = []
        for node in level:
            yield depth, node
            for name in node._fields:
                if name == "ctx":
                    continue
                value = getattr(node, name, None)
                if isinstance(value, ast.AST):
                    below.append(value)
                elif isinstance(value, list):
                    below.extend(item for item in value if isinstance(item, ast.AST))
        level = below


def dotted_name(node: ast.expr) -> str:
    """`a.b.c` of a chain of attributes of a name; "" for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])
