"""`x[mask].view(x.shape[0], -1)`, equally many of each row, that go into a reduction of rows."""

from collections.abc import Callable, Mapping

import libcst as cst
from libcst.helpers import parse_template_expression

from jitlint.analysis import scope
from jitlint.analysis.observations import Operation
from jitlint.analysis.tree import parents_of
from jitlint.analysis.values import Static
from jitlint.finding import Fix
from jitlint.rule import Context

from ..branch_fixes.arms import bare
from ..branch_fixes.emit import conditional_fix
from ..branch_fixes.profile import Describer
from ..branch_fixes.withheld import NotMine
from ..read_fixes.places import operator_at
from .indexing import subscript_of
from .masked import ORDER
from .selection import mask_of

LOW, HIGH = 'float("-inf")', 'float("inf")'
FILLS: Mapping[str, str] = {"amax": LOW, "max": LOW, "amin": HIGH, "min": HIGH, "sum": "0"}
"""What a reduction leaves out of its result, by its name."""
WITH_INDICES = frozenset({"max", "min"})
"""Reductions along a dimension that also tell where: in the selection, and not in the row."""
VIEWS = frozenset({"reshape", "view"})


def by_rows(operation: Operation, ctx: Context) -> Fix:
    """Reduces whole rows, with something that does not matter where the mask is false."""
    node = subscript_of(operation.node, ctx.module)
    if node is None:
        raise NotMine
    describer = Describer(operation, scope.statement_of(node, ctx.module))
    mask = mask_of(node, describer)
    view = _view_of(node, describer)
    name = _reduction_of(view, describer)
    if mask is None:
        raise NotMine
    spelling = scope.Spelling(operation.module, operation.node)
    new = parse_template_expression(
        "{where}({mask}, {x}, {fill})",
        where=spelling.of("where"),
        mask=bare(mask),
        x=bare(node.value),
        fill=cst.parse_expression(FILLS[name]),
    )
    tensor, selecting = (" ".join(describer.code(each).split()) for each in (node.value, mask))
    conditions = [
        f"`{selecting}` selects as many, and some, of each row of `{tensor}`",
        f"`{tensor}` has two dimensions and some rows",
        ORDER if name == "sum" else f"`{tensor}` is floating and finite",
    ]
    where = describer.code(spelling.of("where"))
    title = f"Reduce the rows of `{where}`"
    return conditional_fix(title, conditions, {view: new}, spelling.imports())


FIXERS: tuple[Callable[[Operation, Context], Fix], ...] = (by_rows,)


def _view_of(node: cst.Subscript, describer: Describer) -> cst.Call:
    """`x[mask].view(x.shape[0], -1)` around `x[mask]`. Raises NotMine."""
    parents = parents_of(describer.module)
    attribute = parents[node]
    call = parents[attribute]
    match attribute, call:
        case (
            cst.Attribute(attr=cst.Name(value=name)),
            cst.Call(args=[cst.Arg(value=rows), cst.Arg(value=rest)]),
        ) if name in VIEWS and call.func is attribute:
            tensor = describer.code(node.value)
            is_rest = describer.code(rest) == "-1"
            lengths = (f"{tensor}.shape[0]", f"{tensor}.size(0)", f"len({tensor})")
            if is_rest and describer.code(rows) in lengths:
                return call
    raise NotMine


def _reduction_of(view: cst.Call, describer: Describer) -> str:
    """The name of the reduction along the rows that the view goes into. Raises NotMine."""
    parents = parents_of(describer.module)
    parent = parents[view]
    call = parents[parent]
    if not isinstance(call, cst.Call) or not isinstance(parent, cst.Arg | cst.Attribute):
        raise NotMine
    operator = operator_at(describer, call)
    if operator is None or operator[0] not in FILLS:
        raise NotMine
    name, is_method = operator
    arguments = list(call.args) if is_method else list(call.args[1:])
    is_first = call.func is parent if is_method else call.args[0] is parent
    if not is_first or len(arguments) != 1 or not _is_along_rows(arguments[0], describer):
        raise NotMine
    if name in WITH_INDICES and not _is_of_values(call, describer):
        raise NotMine
    return name


def _is_along_rows(argument: cst.Arg, describer: Describer) -> bool:
    if argument.keyword is not None and argument.keyword.value != "dim":
        return False
    value = describer.test.value_of(argument.value)
    return isinstance(value, Static) and value.const in (1, -1)


def _is_of_values(call: cst.Call, describer: Describer) -> bool:
    """`….max(dim=1)[0]` or `….max(dim=1).values`"""
    match parents_of(describer.module)[call]:
        case cst.Attribute(attr=cst.Name(value="values")):
            return True
        case cst.Subscript(
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="0")))]
        ):
            return True
    return False
