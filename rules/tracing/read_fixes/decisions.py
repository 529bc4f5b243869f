"""`if x.sum().item() > 0`: the branch becomes what it would with the tensor itself."""

from collections.abc import Callable

import libcst as cst

from jitlint.analysis.observations import Construct, Operation, TruthTest
from jitlint.analysis.tree import parents_of
from jitlint.analysis.values import Tensor
from jitlint.finding import Fix
from jitlint.rule import Context

from ..branch_fixes import fixes
from ..branch_fixes.withheld import NotMine, Withheld
from .reads import read_of

CONSTRUCTS: dict[type[cst.CSTNode], Construct] = {
    cst.If: Construct.IF,
    cst.IfExp: Construct.TERNARY,
}


def decided(operation: Operation, ctx: Context) -> Fix:
    """A fix of trace-branch, for the test that the number takes part in."""
    read = read_of(operation.node, operation)
    if read is None:
        raise NotMine
    tested, owner = _asked(read.node, ctx)
    test = TruthTest(
        node=tested,
        construct=CONSTRUCTS[type(owner)],
        owner=owner,
        module=operation.module,
        function=operation.function,
        regions=operation.regions,
        fullgraph=operation.fullgraph,
        default_mode=operation.default_mode,
        moments=operation.moments,
        value=Tensor(is_bool=True, rank=0),
        guarded=operation.guarded,
    )
    fix, reason = fixes.fix_for(test, ctx)
    if fix is None:
        raise Withheld(reason or "")
    return fix


def _asked(node: cst.BaseExpression, ctx: Context) -> tuple[cst.BaseExpression, cst.CSTNode]:
    """The truth test that a read takes part in, and the branch that asks it."""
    parents = parents_of(ctx.module)
    tested: cst.BaseExpression = node
    parent = parents[node]
    if isinstance(parent, cst.ComparisonTarget):
        parent = parents[parent]
    if isinstance(parent, cst.Comparison):
        tested, parent = parent, parents[parent]
    child: cst.CSTNode = tested
    while isinstance(parent, cst.BooleanOperation) or (
        isinstance(parent, cst.UnaryOperation) and isinstance(parent.operator, cst.Not)
    ):
        child, parent = parent, parents[parent]
    if type(parent) not in CONSTRUCTS or getattr(parent, "test", None) is not child:
        raise NotMine
    return tested, parent


FIXERS: tuple[Callable[[Operation, Context], Fix], ...] = (decided,)
