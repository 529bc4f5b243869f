"""`if tensor and flag:` asks the flag first: where it is false nobody asks the tensor."""

import libcst as cst

from jitlint.analysis.observations import TruthTest
from jitlint.analysis.scope import statement_of
from jitlint.analysis.tree import found_in, parents_of
from jitlint.analysis.values import Source, Static, Tensor
from jitlint.finding import Fix
from jitlint.rule import Context

from .arms import parenthesized
from .emit import conditional_fix
from .flow import asking, code_of
from .hazards import conditions_for
from .numbers import failing
from .predicate import hazards_in, is_tensor_test
from .profile import Describer, Number
from .withheld import NotMine, Withheld

ASKING = (cst.If, cst.While, cst.IfExp, cst.Assert)


def static_first(test: TruthTest, ctx: Context) -> Fix:
    """Both operands only compute, so that it is the same to ask the second one first."""
    operation = _operation(test, ctx)
    at = statement_of(operation, ctx.module)
    describer = Describer(test, at)
    value = test.value_of(operation.right)
    is_static = isinstance(value, Static) and value.source is not Source.DATA
    if not is_static or not is_tensor_test(describer, operation.left):
        raise NotMine
    if not isinstance(describer.describe(operation.right), Number):
        raise NotMine
    for node in found_in(operation.right, cst.Attribute):
        describer.check_property(test.value_of(node.value), node)
    if next(failing(test, operation.right, at), None) is not None:
        raise Withheld(f"`{code_of(operation.right)}` may fail, and is not always asked today")
    conditions = list(conditions_for(hazards_in(describer, operation.left)))
    tested = test.value_of(test.node)
    if not isinstance(tested, Static) and not (isinstance(tested, Tensor) and tested.rank == 0):
        conditions.append(f"`{code_of(test.node)}` has one element")
    left, right = _operand(operation.right), _operand(operation.left)
    new = operation.with_changes(left=left, right=right)
    title = f"Ask `{code_of(operation.right)}` first"
    return conditional_fix(title, conditions, {operation: new})


def _operation(test: TruthTest, ctx: Context) -> cst.BooleanOperation:
    """The outermost `tensor and other` that begins with the test."""
    if not isinstance(asking(test), ASKING):
        raise NotMine
    parents = parents_of(ctx.module)
    node: cst.CSTNode = test.node
    while isinstance(parents[node], cst.UnaryOperation):
        node = parents[node]
    parent = parents[node]
    if not isinstance(parent, cst.BooleanOperation) or parent.left is not node:
        raise NotMine
    return parent


def _operand(node: cst.BaseExpression) -> cst.BaseExpression:
    is_loose = isinstance(node, cst.BooleanOperation | cst.IfExp | cst.Lambda)
    return parenthesized(node) if is_loose else node
