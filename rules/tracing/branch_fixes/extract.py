"""A branch of a method as a function of its own, which can be scripted."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.observations import TruthTest
from jitlint.analysis.values import Instance, Source, Static, Tensor
from jitlint.finding import Fix, Replacement, Safety

from .flow import Place, parameter_names
from .scriptable import Judge, annotation_of, path_of
from .withheld import NotMine, Withheld

Construct = cst.If | cst.While | cst.For


def extracted(test: TruthTest, place: Place, decorator: cst.Decorator) -> Fix:
    """The statement that branches, moved into a function in front of the class."""
    statement = _outermost(place)
    if not isinstance(statement.node, Construct):
        raise NotMine
    piece = _Piece(test, statement)
    before = _top_level_before(statement)
    name = _free_name(statement.function.name.value, test)
    helper = piece.function(name, decorator)
    replacements: dict[cst.CSTNode, Replacement] = {
        before: cst.FlattenSentinel([before, helper]),
        statement.node: piece.call(name),
        **{each: cst.RemoveFromParent() for each in piece.rest},
    }
    return Fix(
        Safety.UNSAFE,
        f"Move the branch into `{name}`, scripted when it is traced, right if TorchScript infers "
        "the types that Python has",
        replacements,
        scope.Spelling(test.module).imports(),
        (test.node,),
    )


def _outermost(place: Place) -> Place:
    """The `if` of which an `elif` is a part."""
    node = place.node
    while isinstance(place.parent(node), cst.If):
        node = place.parent(node)
    return place.at(node)


def _top_level_before(place: Place) -> cst.BaseStatement:
    """The statement of the module in front of the one that holds `place`."""
    node: cst.CSTNode = place.node
    while not isinstance(place.parent(node), cst.Module):
        node = place.parent(node)
    body = cst.ensure_type(place.parent(node), cst.Module).body
    index = next(i for i, each in enumerate(body) if each is node)
    if index == 0:
        raise Withheld("there is nothing in front of the class to put a function behind")
    before = body[index - 1]
    assert isinstance(before, cst.BaseStatement)
    return before


def _free_name(method: str, test: TruthTest) -> str:
    taken = test.module.facts.bindings
    wanted = f"_{method.strip('_')}_branch"
    candidates = (wanted if number == 1 else f"{wanted}_{number}" for number in range(1, 1000))
    return next(name for name in candidates if name not in taken)


@dataclass(eq=False)
class _Piece:
    """What moves: a statement, and what follows it where that is reached by one side only.

    `outputs` are the variables that it leaves behind; none if it returns.
    """

    test: TruthTest
    place: Place
    rest: Sequence[cst.BaseStatement] = ()
    outputs: tuple[str, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if _returns(self.place.node):
            self.rest = self._code_behind()
        else:
            later = self.place.read_later()
            written = scope.names_written(self.place.node)
            self.outputs = tuple(sorted(written & later))
            if not self.outputs:
                raise Withheld("the branch leaves no variable behind")
        self.inputs = self._inputs()
        self._moved = [each.visit(_Renamed(self.attributes)) for each in self._statements]
        paths = frozenset(self.attributes)
        Judge(self.test, self._names(), paths).check(self._statements)

    @property
    def _statements(self) -> list[cst.CSTNode]:
        return [self.place.node, *self.rest]

    def _names(self) -> frozenset[str]:
        return scope.names_written(*self._statements) | set(self.inputs)

    def _code_behind(self) -> list[cst.BaseStatement]:
        """All that is left of the function, which an early return would skip."""
        if self.place.owner is not self.place.function:
            raise Withheld("the branch returns from inside of another statement")
        return [each for each in self.place.after if isinstance(each, cst.BaseStatement)]

    def _inputs(self) -> dict[str, cst.BaseExpression]:
        """Arguments by the name that they have in the function."""
        local = parameter_names(self.place.function) | scope.names_written(self.place.function.body)
        found: dict[str, cst.BaseExpression] = {}
        for path in _own_paths(self._statements, self.test):
            name = scope.fresh_name(path.attr.value, self.place.function)
            self.attributes[path_of(path)] = name
            found[name] = path
        names = scope.names_read(*self._statements) | set(self.outputs)
        for name in sorted(names & local):
            is_object = isinstance(self.test.value_of(cst.Name(name)), Instance)
            if self.place.is_defined(name) and not is_object:
                found[name] = cst.Name(name)
        return found

    # -- new code --------------------------------------------------------------------------

    def function(self, name: str, decorator: cst.Decorator) -> cst.FunctionDef:
        parameters = []
        for each, value in self.inputs.items():
            kind = annotation_of(value, self.test)
            annotation = None if kind is None else cst.Annotation(cst.Name(kind))
            parameters.append(cst.Param(cst.Name(each), annotation))
        body = [each for each in self._moved if isinstance(each, cst.BaseStatement)]
        first, *others = body
        body = [first.with_changes(leading_lines=_comments(first)), *others]
        if self.outputs:
            body.append(cst.SimpleStatementLine([cst.Return(self._output())]))
        blank = cst.EmptyLine(indent=False)
        return cst.FunctionDef(
            cst.Name(name),
            cst.Parameters(parameters),
            cst.IndentedBlock(body),
            decorators=[decorator],
            leading_lines=[blank, blank],
        )

    def _output(self) -> cst.Name | cst.Tuple:
        names = [cst.Name(name) for name in self.outputs]
        if len(names) == 1:
            return names[0]
        return cst.Tuple([cst.Element(name) for name in names], lpar=[], rpar=[])

    def call(self, name: str) -> cst.SimpleStatementLine:
        call = cst.Call(cst.Name(name), [cst.Arg(value) for value in self.inputs.values()])
        small: cst.BaseSmallStatement = cst.Return(call)
        if self.outputs:
            small = cst.Assign([cst.AssignTarget(self._output())], call)
        lines = getattr(self.place.node, "leading_lines", ())
        blanks = [line for line in lines if line.comment is None]
        return cst.SimpleStatementLine([small], leading_lines=blanks)


def _comments(statement: cst.CSTNode) -> list[cst.EmptyLine]:
    lines = getattr(statement, "leading_lines", ())
    return [line for line in lines if line.comment is not None]


def _returns(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Return) or any(map(_returns, node.children))


def _own_paths(nodes: Iterable[cst.CSTNode], test: TruthTest) -> Iterator[cst.Attribute]:
    """`self.scale` in `self.scale.sum()`: what belongs to an object and is a value."""
    seen: set[str] = set()
    for node in nodes:
        for path in _paths(node, test):
            if path_of(path) not in seen:
                seen.add(path_of(path))
                yield path


def _paths(node: cst.CSTNode, test: TruthTest) -> Iterator[cst.Attribute]:
    if isinstance(node, cst.Attribute):
        inner = list(_paths(node.value, test))
        if inner:
            yield from inner
        elif path_of(node) and _is_passable(node, test):
            yield node
        return
    for child in node.children:
        yield from _paths(child, test)


def _is_passable(node: cst.Attribute, test: TruthTest) -> bool:
    """A value of an object, not of a tensor: that is known inside of the function too."""
    value, owner = test.value_of(node), test.value_of(node.value)
    if isinstance(owner, Tensor | Static):
        return False
    is_static = isinstance(value, Static) and value.source is Source.PYTHON
    return isinstance(value, Tensor) or is_static


class _Renamed(cst.CSTTransformer):
    """Paths become names, wherever they stand."""

    def __init__(self, names: dict[str, str]) -> None:
        super().__init__()
        self._names = names

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        name = self._names.get(path_of(original_node))
        return updated_node if name is None else cst.Name(name)
