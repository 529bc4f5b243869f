"""`collections.namedtuple`: all of its fields are Tensors to TorchScript."""

from collections.abc import Iterator

import libcst as cst

from jitlint.analysis.observations import CompiledFunction
from jitlint.analysis.values import External
from jitlint.finding import Fix, Safety
from jitlint.region import RegionKind

from ._annotations import Writer
from ._given import literal_type
from ._problem import Problem
from ._types import TENSOR, UNKNOWN, Type, join_all

FACTORY = External("collections.namedtuple")
NO_STATEMENT = "no class is proposed: its fields are not a list of names, or they have defaults"
NO_TYPE = "no class is proposed: the type of `{}` is not known"

Fields = dict[str, list[Type]]


def named_tuples(seen: CompiledFunction) -> Iterator[Problem]:
    """The definitions whose first compiled use is in this function."""
    for name, definitions in seen.module.assignments.items():
        definition = definitions[-1]
        if not isinstance(definition, cst.Call) or not _is_factory(seen, definition):
            continue
        users = [each for each in _functions(seen) if _calls(each, name)]
        if users and users[0] is seen:
            yield from _problem(seen, name, definition, users)


def _is_factory(seen: CompiledFunction, node: cst.Call) -> bool:
    return seen.moments[0].evaluate(node.func) == FACTORY


def _functions(seen: CompiledFunction) -> list[CompiledFunction]:
    return [
        each
        for each in seen.moments[0].frame.machine.log
        if isinstance(each, CompiledFunction)
        and each.module is seen.module
        and RegionKind.SCRIPT in each.regions
        and not each.signature_only
    ]


def _calls(seen: CompiledFunction, name: str) -> list[cst.Call]:
    found = _Calls(name)
    seen.node.body.visit(found)
    return found.calls


class _Calls(cst.CSTVisitor):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.calls: list[cst.Call] = []
        self._name = name

    def visit_Call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Name) and node.func.value == self._name:
            self.calls.append(node)


def _problem(
    seen: CompiledFunction, name: str, definition: cst.Call, users: list[CompiledFunction]
) -> Iterator[Problem]:
    names = _field_names(definition)
    fields: Fields = {each: [] for each in names}
    for user in users:
        for call in _calls(user, name):
            for position, arg in enumerate(call.args):
                field = arg.keyword.value if arg.keyword is not None else None
                if field is None and position < len(names):
                    field = names[position]
                kind = literal_type(arg.value, user)
                if field in fields and kind is not None:
                    fields[field].append(kind)
    other = [each for each, kinds in fields.items() if any(kind != TENSOR for kind in kinds)]
    if not other:
        return
    fix, reason = _fix(seen, name, definition, fields)
    yield Problem(
        definition,
        f"the fields of a collections.namedtuple are Tensors to torch.jit.script, but "
        f"`{other[0]}` is given something else",
        fix,
        reason,
    )


def _field_names(definition: cst.Call) -> list[str]:
    if len(definition.args) != 2 or any(arg.keyword or arg.star for arg in definition.args):
        return []
    fields = definition.args[1].value
    if isinstance(fields, cst.SimpleString) and isinstance(fields.evaluated_value, str):
        return fields.evaluated_value.replace(",", " ").split()
    if not isinstance(fields, cst.List | cst.Tuple):
        return []
    values = [element.value for element in fields.elements]
    return [
        value.evaluated_value
        for value in values
        if isinstance(value, cst.SimpleString) and isinstance(value.evaluated_value, str)
    ]


def _fix(
    seen: CompiledFunction, name: str, definition: cst.Call, fields: Fields
) -> tuple[Fix | None, str | None]:
    statement = _statement(seen, definition)
    if statement is None:
        return None, NO_STATEMENT
    kinds = {field: join_all(found) if found else TENSOR for field, found in fields.items()}
    for field, kind in kinds.items():
        if kind is None or kind == UNKNOWN or not kind.is_complete:
            return None, NO_TYPE.format(field)
    writer = Writer(seen.module)
    base = writer.typing("NamedTuple")
    lines = [f"    {field}: {writer.text(kind)}\n" for field, kind in kinds.items() if kind]
    code = f"class {name}({base}):\n{''.join(lines)}"
    new = cst.ensure_type(cst.parse_statement(code), cst.ClassDef)
    blank = [cst.EmptyLine(indent=False)] * 2
    comments = [line for line in statement.leading_lines if line.comment is not None]
    new = new.with_changes(leading_lines=[*blank, *comments])
    title = f"Define `{name}` as a typing.NamedTuple"
    return Fix(Safety.UNSAFE, title, {statement: new}, tuple(writer.imports)), None


def _statement(seen: CompiledFunction, definition: cst.Call) -> cst.SimpleStatementLine | None:
    """The line that holds the definition and nothing else."""
    for statement in seen.module.tree.body:
        match statement:
            case cst.SimpleStatementLine(body=[cst.Assign(targets=[_], value=value)]):
                if value is definition:
                    return statement
    return None
