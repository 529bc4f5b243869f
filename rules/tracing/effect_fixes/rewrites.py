"""Calls that the compiler cannot enter, and what says the same in a graph."""

import libcst as cst

from jitlint.analysis.observations import Operation
from jitlint.analysis.tree import parents_of
from jitlint.analysis.values import Framework, Tensor, never_needs_gradient
from jitlint.finding import Fix, Safety
from jitlint.rule import Context

from ..branch_fixes.emit import conditional_fix
from ..branch_fixes.flow import code_of
from ..branch_fixes.withheld import NotMine, Withheld

ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BaseNumber)
"""Expressions that need no parentheses as an operand of `**`."""


def power(operation: Operation, ctx: Context) -> Fix:
    """`pow(a, b)` is `a ** b` by definition."""
    call = _call_of(operation)
    if len(call.args) != 2 or any(arg.star or arg.keyword for arg in call.args):
        raise Withheld("`pow` with a modulus has no operator")
    base, exponent = (_operand(argument.value) for argument in call.args)
    operator = (
        HUGGING if all(isinstance(each, SIMPLE) for each in (base, exponent)) else cst.Power()
    )
    new = cst.BinaryOperation(base, operator, exponent, lpar=call.lpar, rpar=call.rpar)
    if not call.lpar and not isinstance(_parent(operation, ctx), LOOSE):
        new = new.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return Fix(Safety.SAFE, "Write the operator `**`", {call: new})


SIMPLE = (cst.Name, cst.BaseNumber)
HUGGING = cst.Power(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
LOOSE = (
    *(cst.Arg, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Return, cst.Expr, cst.Element),
    *(cst.Index, cst.DictElement, cst.NamedExpr, cst.FormattedStringExpression),
)
"""What an operation stands in without parentheses, whatever its operator."""


def _operand(node: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(node, ATOMS) or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _parent(operation: Operation, ctx: Context) -> cst.CSTNode:
    return parents_of(ctx.module)[operation.node]


def deep_copy(operation: Operation, ctx: Context) -> Fix:
    """`copy.deepcopy(t)` is `t.clone()` of a tensor without a gradient.

    Of a leaf it makes a new leaf, to which gradients go; of another tensor that needs a
    gradient it raises.
    """
    return _method(operation, "clone", "Clone the tensor")


def shallow_copy(operation: Operation, ctx: Context) -> Fix:
    """`copy.copy(t)` shares its elements with `t`, and gradients do not pass it."""
    return _method(operation, "detach", "Take another view of the same elements")


def _method(operation: Operation, name: str, title: str) -> Fix:
    call = _call_of(operation)
    if len(call.args) != 1 or call.args[0].star or call.args[0].keyword:
        raise Withheld(f"`{code_of(call)}` is given more than the tensor")
    copied = call.args[0].value
    value = operation.value_of(copied)
    if not isinstance(value, Tensor) or value.maybe or value.framework is not Framework.TORCH:
        raise Withheld(f"`{code_of(copied)}` may be something other than a tensor of torch")
    receiver = (
        copied
        if isinstance(copied, ATOMS) and not isinstance(copied, cst.BaseNumber)
        else (
            copied
            if copied.lpar
            else copied.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        )
    )
    new = cst.Call(cst.Attribute(receiver, cst.Name(name)), lpar=call.lpar, rpar=call.rpar)
    phrase = f"`{code_of(copied)}` needs no gradient"
    conditions = [] if never_needs_gradient(value) else [phrase]
    return conditional_fix(f"{title} with `.{name}()`", conditions, {call: new})


def _call_of(operation: Operation) -> cst.Call:
    if not isinstance(operation.node, cst.Call):
        raise NotMine
    return operation.node
