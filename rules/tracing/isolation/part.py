"""A statement that gives nothing back, as an operator in front of its function."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst
from libcst.helpers import get_full_name_for_node

from jitlint.analysis import scope
from jitlint.analysis.observations import Observation
from jitlint.analysis.tree import (
    ancestors_of,
    contains,
    definitions_of,
    found_in,
    nodes_in,
    parents_of,
)
from jitlint.analysis.values import (
    UNKNOWN,
    External,
    Framework,
    Source,
    Static,
    Tensor,
    Unknown,
    Value,
    join_all,
)
from jitlint.finding import Fix, Safety
from jitlint.layout import on_one_line, one_a_line
from jitlint.rule import Context

from ..branch_fixes.flow import Place, comments_in, statements_in
from ..branch_fixes.withheld import Withheld
from .mute import Judge, check_mute
from .operator import NOT_TAKEN, Operator, in_schema, is_schema_type

TYPES = {bool: "bool", int: "int", float: "float", str: "str"}
TEXTS = (cst.FormattedString, cst.ConcatenatedString)
NUMBERS = frozenset({"int", "float", "complex", "Any", "object", "Number"})
LEAVES = (cst.Return, cst.Break, cst.Continue)
TYPE_TESTS = frozenset({"builtins.isinstance", "builtins.type", "torch.is_tensor"})


def part_as_operator(seen: Observation, ctx: Context) -> Fix:
    """The statement around a break as a call of an operator that does the same."""
    place = place_around(seen, ctx)
    before = top_level_before(place, ctx)
    statement, rest = _without_rest(place.node, seen)
    _check_flow(place, statement)
    machine = seen.moments[0].frame.machine
    local = scope.local_names(place.function)
    check_mute([statement], local, Judge(machine, seen.value_of))
    arguments = Arguments(seen, place, local)
    arguments.collect([statement])
    moved = arguments.renamed(statement)
    kind = "check" if isinstance(statement, cst.If) else "report"
    name = free_name(kind, place, seen)
    body = cst.IndentedBlock([moved.with_changes(leading_lines=())])
    operator = Operator(seen.module, name, arguments.parameters(), body)
    call = arguments.call(name, arguments.passed()).with_changes(
        leading_lines=statement.leading_lines  # type: ignore[attr-defined]
    )
    conditions = [NOT_TAKEN, *arguments.conditions]
    return Fix(
        Safety.UNSAFE,
        f"Move the statement into the operator `{name}`, which has an effect and no result, "
        f"right if {' and '.join(conditions)}",
        {
            before: cst.FlattenSentinel([before, operator.definition(), *operator.registrations()]),
            place.node: cst.FlattenSentinel([call, *rest]),
        },
        scope.Spelling(seen.module).imports(),
    )


def place_around(seen: Observation, ctx: Context) -> Place:
    """The statement: an `if` or `assert` that asks, else the one that the break is in."""
    function = seen.function.node if seen.function is not None else None
    if not isinstance(function, cst.FunctionDef):
        raise Withheld("the code stands in no function")
    statement = scope.statement_of(seen.node, ctx.module)
    parents = parents_of(ctx.module)
    if isinstance(statement, cst.BaseSmallStatement):
        statement = parents[statement]
    while isinstance(statement, cst.If) and isinstance(parents[statement], cst.If):
        statement = parents[statement]
    if len(list(scope.scopes_around(statement, ctx.module))) != 1:
        raise Withheld("the function is nested in another, whose variables it may read")
    return Place(statement, function, parents.__getitem__)


def top_level_before(place: Place, ctx: Context) -> cst.BaseStatement:
    node: cst.CSTNode = place.node
    for parent in ancestors_of(place.node, ctx.module):
        if isinstance(parent, cst.Module):
            break
        node = parent
    body = ctx.module.body
    index = next(i for i, each in enumerate(body) if each is node)
    if index == 0:
        raise Withheld("there is nothing in front of the function to put an operator behind")
    before = body[index - 1]
    assert isinstance(before, cst.BaseStatement)
    return before


def check_surroundings(place: Place) -> None:
    for around in place.outward():
        if isinstance(around.owner, cst.Try | cst.TryStar):
            raise Withheld("the statement stands in a `try`, which an operator's error may escape")


def _without_rest(
    node: cst.CSTNode, seen: Observation
) -> tuple[cst.BaseStatement, Sequence[cst.BaseStatement]]:
    """Of `if bad: raise …` with an `else` the check alone; the rest can stand behind it."""
    assert isinstance(node, cst.BaseStatement)
    if not isinstance(node, cst.If) or node.orelse is None or not _raises(node.body):
        return node, ()
    if not contains(node.test, seen.node):
        return node, ()
    check = node.with_changes(orelse=None)
    if isinstance(node.orelse, cst.If):
        return check, [node.orelse]
    body = node.orelse.body
    if not isinstance(body, cst.IndentedBlock) or any(comments_in([body.header, *body.footer])):
        return node, ()
    return check, list(body.body)


def _raises(suite: cst.BaseSuite) -> bool:
    last = statements_in(suite)[-1:]
    return any(
        isinstance(each, cst.SimpleStatementLine) and isinstance(each.body[-1], cst.Raise)
        for each in last
    )


def _check_flow(place: Place, statement: cst.BaseStatement) -> None:
    check_surroundings(place)
    _check_leaves(statement)
    left = scope.names_written(statement) & place.read_later()
    if left:
        raise Withheld(f"the statement leaves `{sorted(left)[0]}` behind")


def _check_leaves(node: cst.CSTNode) -> None:
    if isinstance(node, LEAVES):
        raise Withheld("the statement leaves the block that it stands in")
    for child in node.children:
        _check_leaves(child)


def free_name(kind: str, place: Place, seen: Observation) -> str:
    """`_check_step`, `_check_net_forward`: a name for an operator that the module can have."""
    path = [place.function.name.value, *_classes_around(place)]
    words = [_snake_case(each.strip("_")) for each in reversed(path)]
    base = "_".join(["", *([] if words[0].startswith(f"{kind}_") else [kind]), *words])
    taken = {each.strip("_") for each in seen.module.facts.bindings}
    if definitions_of(seen.module.tree)[".".join(reversed(path))] > 1:
        raise Withheld(f"`{path[0]}` is defined more than once")
    names = (base if number == 1 else f"{base}_{number}" for number in range(1, 1000))
    return next(name for name in names if name.strip("_") not in taken)


def _classes_around(place: Place) -> Iterator[str]:
    node: cst.CSTNode = place.function
    while not isinstance(node, cst.Module):
        node = place.parent(node)
        if isinstance(node, cst.ClassDef):
            yield node.name.value


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


@dataclass(eq=False)
class Arguments:
    """What the statement reads of its function, and the parameters that it becomes.

    `conditions` says on what that rests, in words.
    """

    seen: Observation
    place: Place
    local: frozenset[str]
    annotations: dict[str, cst.BaseExpression] = field(default_factory=dict)
    values: dict[str, cst.BaseExpression] = field(default_factory=dict)
    nodes: dict[cst.CSTNode, str] = field(default_factory=dict)
    conditions: dict[str, None] = field(default_factory=dict)

    def collect(self, statements: Sequence[cst.CSTNode]) -> None:
        """What these statements, which are a part of `place`, read."""
        own = scope.names_written(*statements)
        for statement in statements:
            for node in _texts(statement):
                if self._is_fixed_text(node, own):
                    self._add(node, "message", cst.Name("str"))
                else:
                    self.conditions.update(dict.fromkeys(self._floats_in(node)))
        for statement in statements:
            for node in self._paths(statement, own):
                self._add_path(node)
            self._check_type_tests(statement)

    def _check_type_tests(self, statement: cst.CSTNode) -> None:
        """What has another type would not come as far as the test."""
        for call in found_in(statement, cst.Call):
            tested = self.nodes.get(call.args[0].value) if call.args else None
            function = self.seen.value_of(call.func)
            if tested and isinstance(function, External) and function.name in TYPE_TESTS:
                raise Withheld(f"the code asks for the type of `{tested}`, which an operator fixes")

    def give(self, name: str) -> None:
        """A parameter for a tensor that the code does not have yet."""
        self.annotations[name] = scope.Spelling(self.seen.module).of("Tensor")
        self.values[name] = cst.Name(name)

    def _is_fixed_text(self, node: cst.BaseExpression, own: frozenset[str]) -> bool:
        """A text that every trace knows, such as an f-string of dtypes and modes."""
        names = scope.names_read(node)
        if names & own or not names & self.local:
            return False
        return all(map(self._is_fixed, _embedded(node)))

    def _floats_in(self, text: cst.BaseExpression) -> Iterator[str]:
        for node in _embedded(text):
            declared = self._declared(node)
            if declared is not None and "float" in scope.names_read(declared):
                name = self.seen.module.tree.code_for_node(node)
                yield f"`{name}` is no whole number, which the text would tell from a float"

    def _is_fixed(self, node: cst.BaseExpression) -> bool:
        """Sizes, and numbers that are arguments, can become symbols, which no text can hold
        (measured with torch 2.13: a graph takes no text that was made of a symbol)."""
        value = self.seen.value_of(node)
        if isinstance(value, Unknown) and self._is_setting(node):
            code = self.seen.module.tree.code_for_node(node)
            self.conditions[f"`{code}` is no tensor and no size of one"] = None
            return True
        if isinstance(value, Tensor | Unknown):
            return False
        if not isinstance(node, cst.Attribute):
            return isinstance(value, Static) and (
                isinstance(value.const, str | bool) or self._is_no_number(node)
            )
        if isinstance(self.seen.value_of(node.value), Tensor):
            return node.attr.value in ("dtype", "device", "layout")
        return not isinstance(value, Static) or value.source is not Source.SHAPE

    def _is_setting(self, node: cst.BaseExpression) -> bool:
        """Whether it is made of attributes of the object, by Python alone: `max(self.sizes)`."""
        tree, function = self.seen.module.tree, self.place.function
        if isinstance(node, cst.Name):
            defined = scope.definition_of(node.value, self.place.node, tree).value
            return not isinstance(defined, cst.Name | None) and self._is_setting(defined)
        owners = {each.name.value for each in function.params.params[:1]}
        is_method = self.seen.function is not None and self.seen.function.cls is not None
        calls = [each.func for each in nodes_in(node) if isinstance(each, cst.Call)]
        is_plain = all(_is_builtin(self.seen.value_of(each)) for each in calls)
        return is_method and is_plain and scope.names_read(node) & self.local == owners

    def _is_no_number(self, node: cst.BaseExpression) -> bool:
        """Whether a parameter is annotated as something else, such as a `Literal` of modes.

        A float may be a whole number, of which an operator would make 1.0: its text is put
        together before.
        """
        declared = self._declared(node)
        return declared is not None and not scope.names_read(declared) & NUMBERS - {"float"}

    def _paths(self, node: cst.CSTNode, own: frozenset[str]) -> Iterator[cst.BaseExpression]:
        """The names of the function, and attributes of what is no tensor, that are read."""
        if node in self.nodes:
            return
        if isinstance(node, cst.Attribute) and self._is_attribute_to_pass(node):
            yield node
            return
        if isinstance(node, cst.Name):
            if node.value in self.local and (
                node.value not in own or self.place.is_defined(node.value)
            ):
                yield node
            return
        for child in _read_children(node):
            yield from self._paths(child, own)

    def _is_attribute_to_pass(self, node: cst.Attribute) -> bool:
        path = get_full_name_for_node(node)
        root: cst.BaseExpression = node
        while isinstance(root, cst.Attribute):
            root = root.value
        if path is None or not isinstance(root, cst.Name) or root.value not in self.local:
            return False
        if isinstance(self.seen.value_of(root), Tensor):
            return False
        return isinstance(self.seen.value_of(node), Tensor | Static)

    def _add_path(self, node: cst.BaseExpression) -> None:
        root = scope.names_read(node)
        for name in root:
            if not scope.is_surely_bound(name, self.place.node, self.seen.module.tree):
                raise Withheld(f"`{name}` may have no value yet, where nothing asks for it today")
        wanted = node.attr.value if isinstance(node, cst.Attribute) else _name_of(node)
        self._add(node, wanted, self._annotation(node))

    def _annotation(self, node: cst.BaseExpression) -> cst.BaseExpression:
        value = self._evidence(node)
        declared = self._declared(node)
        if isinstance(value, Tensor) and not value.maybe and value.framework is Framework.TORCH:
            return scope.Spelling(self.seen.module).of("Tensor")
        if isinstance(value, Static) and (
            declared is None or "float" not in scope.names_read(declared)
        ):
            kind = "int" if value.source is Source.SHAPE else TYPES.get(type(value.const))
            if kind is not None:
                return cst.Name(kind)
        if declared is not None:
            declared = in_schema(declared, self.seen)
            if is_schema_type(declared, self.seen):
                return declared
        code = self.seen.module.tree.code_for_node(node)
        raise Withheld(f"the type of `{code}` is not known, which an operator has to declare")

    def _evidence(self, node: cst.BaseExpression) -> Value:
        """What the node is in all calls; of a name that is asked for, in those that tell.

        The break is there because the calls that tell are right.
        """
        value = self.seen.value_of(node)
        if not isinstance(node, cst.Name) or node.value not in scope.names_read(self.seen.node):
            return value
        values = (moment.evaluate(node) for moment in self.seen.moments)
        told = join_all(each for each in values if each != UNKNOWN)
        is_size = isinstance(told, Static) and told.source is Source.SHAPE
        if told == value or not (isinstance(told, Tensor) or is_size):
            return value
        self.conditions[f"`{node.value}` is a {'size' if is_size else 'tensor'}"] = None
        return told

    def _declared(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """The annotation of a parameter that keeps its value."""
        function = self.place.function
        if not isinstance(node, cst.Name) or node.value in scope.names_written(function.body):
            return None
        params = function.params
        for each in (*params.posonly_params, *params.params, *params.kwonly_params):
            if each.name.value == node.value and each.annotation is not None:
                return each.annotation.annotation
        return None

    def _add(self, node: cst.BaseExpression, wanted: str, annotation: cst.BaseExpression) -> None:
        for name, known in self.values.items():
            if known.deep_equals(node):
                self.nodes[node] = name
                return
        name = wanted
        if not isinstance(node, cst.Name):
            name = scope.fresh_name(wanted, self.place.function)
        while name in self.values:
            name += "_"
        self.values[name] = node
        self.annotations[name] = annotation
        self.nodes[node] = name

    def renamed(self, statement: cst.BaseStatement) -> cst.BaseStatement:
        moved = statement.visit(_Renamed(self.nodes))
        assert isinstance(moved, cst.BaseStatement)
        return moved

    def parameters(self) -> cst.Parameters:
        return cst.Parameters(
            [
                cst.Param(cst.Name(name), cst.Annotation(annotation))
                for name, annotation in self.annotations.items()
            ]
        )

    def passed(self) -> list[cst.Arg]:
        return [cst.Arg(value) for value in self.values.values()]

    def call(self, name: str, arguments: Sequence[cst.Arg]) -> cst.SimpleStatementLine:
        """`name(arguments)`, whose arguments get lines of their own if one takes several."""
        call = cst.Call(cst.Name(name), arguments)
        is_broken = any("\n" in self.seen.module.tree.code_for_node(each) for each in arguments)
        return cst.SimpleStatementLine([cst.Expr(one_a_line(call) if is_broken else call)])


class _Renamed(cst.CSTTransformer):
    def __init__(self, names: Mapping[cst.CSTNode, str]) -> None:
        super().__init__()
        self._names = names

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node not in self._names

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode:
        name = self._names.get(original_node)
        if name is not None:
            return cst.Name(name)
        if isinstance(original_node, cst.Call) and any(
            arg.value in self._names and isinstance(arg.value, TEXTS) for arg in original_node.args
        ):
            return on_one_line(cst.ensure_type(updated_node, cst.Call))
        return updated_node


def _is_builtin(value: Value) -> bool:
    return isinstance(value, External) and value.name.startswith("builtins.")


def _name_of(node: cst.BaseExpression) -> str:
    return node.value if isinstance(node, cst.Name) else "value"


def _texts(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """The texts that are put together when the code runs."""
    if isinstance(node, TEXTS):
        yield node
        return
    for child in node.children:
        yield from _texts(child)


def _embedded(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.FormattedStringExpression):
        yield node.expression
        return
    for child in node.children:
        yield from _embedded(child)


def _read_children(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The parts of a node that are read: no keywords, attribute names, targets."""
    match node:
        case cst.Attribute():
            yield node.value
        case cst.Arg():
            yield node.value
        case cst.AssignTarget(target=cst.Name()) | cst.Param():
            return
        case _:
            yield from node.children
