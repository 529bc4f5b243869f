"""`x[i]` with a tensor of rank 0, which torch reads to take a view: index by one of rank 1."""

from collections.abc import Callable

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.observations import Operation
from jitlint.analysis.tree import ancestors_of, parents_of
from jitlint.analysis.values import External, ExternalMethod, Tensor
from jitlint.finding import Fix
from jitlint.rule import Context

from ..branch_fixes.arms import parenthesized
from ..branch_fixes.effects import writes_in_place
from ..branch_fixes.emit import conditional_fix
from ..branch_fixes.profile import Describer
from ..branch_fixes.uses import VALUES, use_of
from ..branch_fixes.withheld import NotMine, Withheld
from ..read_fixes.places import described, value_at
from ..read_fixes.rewriting import Edits, method

POSITIONS = frozenset({"argmax", "argmin"})


def indexed(operation: Operation, ctx: Context) -> Fix:
    """`x[i.reshape(1)].squeeze(0)` is a copy of what `x[i]` looks at, for negative `i` too."""
    found = subscript_of(operation.node, ctx.module)
    if found is None:
        raise NotMine
    describer = Describer(operation, scope.statement_of(found, ctx.module))
    index = scalar_index(found, describer)
    edits = Edits(ctx.module)
    edits.add(index, lambda new: method(parenthesized(new), "reshape", cst.Integer("1")))
    code = " ".join(describer.code(index).split())
    conditions = list(conditions_of_index(describer, found, index))
    parent = parents_of(ctx.module)[found]
    if isinstance(parent, cst.AssignTarget | cst.AugAssign) and _is_target(parent, found):
        conditions += _conditions_of_store(describer, found, parents_of(ctx.module)[parent], parent)
    else:
        add_squeeze(found, describer, edits)
    return conditional_fix(f"Index by `{code}.reshape(1)`", conditions, dict(edits.replacements()))


FIXERS: tuple[Callable[[Operation, Context], Fix], ...] = (indexed,)


def subscript_of(node: cst.CSTNode, module: cst.Module) -> cst.Subscript | None:
    """The subscript that `node` is, or is an index of."""
    if isinstance(node, cst.Subscript):
        return node
    parents = parents_of(module)
    parent = parents.get(node)
    if not isinstance(parent, cst.Index):
        return None
    found = parents[parents[parent]]
    return found if isinstance(found, cst.Subscript) else None


def scalar_index(node: cst.Subscript, describer: Describer) -> cst.BaseExpression:
    """The one index that is a tensor of rank 0. Raises NotMine."""
    if not isinstance(value_at(describer, node.value), Tensor):
        raise NotMine
    scalars = [
        each.slice.value
        for each in node.slice
        if isinstance(each.slice, cst.Index) and _is_scalar(describer, each.slice.value)
    ]
    if len(scalars) != 1:
        raise NotMine
    return scalars[0]


def _is_scalar(describer: Describer, node: cst.BaseExpression) -> bool:
    value = value_at(describer, node)
    if not isinstance(value, Tensor) or value.maybe or value.is_bool:
        return False
    found = described(describer, node)
    return value.rank == 0 or (found is not None and not getattr(found, "shape", True))


def dimension_of(node: cst.Subscript, index: cst.BaseExpression, describer: Describer) -> int:
    """The dimension that the index takes away. Raises Withheld where that is not clear."""
    dimension = 0
    for element in node.slice:
        match element.slice:
            case cst.Index(value=value, star=None) if value is index:
                return dimension
            case cst.Slice():
                dimension += 1
            case _:
                break
    code = " ".join(describer.code(node).split())
    raise Withheld(f"it is not clear which dimension of `{code}` goes away")


def add_squeeze(node: cst.Subscript, describer: Describer, edits: Edits) -> None:
    """Takes the dimension away again, if nothing tells a view from a copy."""
    index = next(each for each in node.slice if isinstance(each.slice, cst.Index)).slice
    for element in node.slice:
        if isinstance(element.slice, cst.Index) and element.slice.value in edits:
            index = element.slice
    assert isinstance(index, cst.Index)
    dimension = dimension_of(node, index.value, describer)
    code = " ".join(describer.code(node).split())
    if use_of(describer, node) not in VALUES:
        raise Withheld(f"`{code}` is a view of the tensor, and the new code would give a copy")
    function = scope.function_of(node, describer.module)
    if _is_kept(node, describer) and (function is None or writes_in_place(function)):
        raise Withheld(f"`{code}` is a view, and the function writes into tensors")
    edits.add(node, lambda new: method(new, "squeeze", cst.Integer(str(dimension))))


def _is_kept(node: cst.CSTNode, describer: Describer) -> bool:
    """Whether a variable holds the result."""
    for parent in ancestors_of(node, describer.module):
        if isinstance(parent, cst.Assign | cst.AnnAssign | cst.NamedExpr):
            return parents_of(describer.module)[node] is parent
        if isinstance(parent, cst.BaseStatement):
            return False
    return False


def conditions_of_index(
    describer: Describer, node: cst.Subscript, index: cst.BaseExpression
) -> "list[str]":
    """Positions of a maximum exist; others may not, which raises another error."""
    value = value_at(describer, node.value)
    is_line = isinstance(value, Tensor) and value.rank == 1
    at = index
    if isinstance(index, cst.Name):
        place = scope.statement_of(index, describer.module)
        definition = scope.definition_of(index.value, place, describer.module)
        at = definition.value if definition.value is not None else index
    if is_line and isinstance(at, cst.Call):
        match describer.test.value_of(at.func):
            case ExternalMethod(name=name) if name in POSITIONS:
                return []
            case External(name=name) if name.rpartition(".")[2] in POSITIONS:
                return []
    code = " ".join(describer.code(index).split())
    tensor = " ".join(describer.code(node.value).split())
    return [f"`{code}` is an index of `{tensor}`"]


def _is_target(parent: cst.CSTNode, node: cst.Subscript) -> bool:
    return isinstance(parent, cst.AssignTarget | cst.AugAssign) and parent.target is node


def _conditions_of_store(
    describer: Describer, node: cst.Subscript, statement: cst.CSTNode, parent: cst.CSTNode
) -> "list[str]":
    """`x[i.reshape(1)] = v` wants the dtype of `x`, which `x[i] = v` casts to."""
    value = parent.value if isinstance(parent, cst.AugAssign) else None
    if isinstance(statement, cst.Assign):
        value = statement.value
    if value is None or not isinstance(value_at(describer, value), Tensor):
        return []
    names = (" ".join(describer.code(each).split()) for each in (value, node.value))
    return ["`{}` has the dtype of `{}`".format(*names)]
