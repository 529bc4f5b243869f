"""Checks that read their condition: `assert x.max().item() < n`, `torch._check_tensor_all`."""

from collections.abc import Callable

import libcst as cst
from libcst.helpers import parse_template_expression

from jitlint.analysis import scope
from jitlint.analysis.observations import Operation
from jitlint.analysis.tree import parents_of
from jitlint.finding import Fix, Safety
from jitlint.rule import Context

from ..branch_fixes.arms import parenthesized
from ..branch_fixes.dtypes import NOTHING
from ..branch_fixes.profile import Describer
from ..branch_fixes.withheld import NotMine, Withheld
from .places import kept
from .promotion import Category
from .reads import Conversion, Read, read_of

CHECK_ALL = "torch._check_tensor_all"
MESSAGE = (
    '"Expected cond to be True, but got False. (Could this error message be improved? If so, '
    'please report an enhancement request to PyTorch.)"'
)
"""What the check says (torch 2.13): an assertion without a message is dropped by backends."""


def asserted(operation: Operation, ctx: Context) -> Fix:
    """`assert x.max().item() <= n`: Dynamo takes an assertion about a tensor into the graph."""
    read = read_of(operation.node, operation)
    if read is None:
        raise NotMine
    parents = parents_of(ctx.module)
    comparison = parents[read.node]
    if isinstance(comparison, cst.ComparisonTarget):
        comparison = parents[comparison]
    statement = parents[comparison]
    if not isinstance(comparison, cst.Comparison) or len(comparison.comparisons) != 1:
        raise NotMine
    if not isinstance(statement, cst.Assert) or statement.test is not comparison:
        raise NotMine
    if statement.msg is not None and not isinstance(statement.msg, cst.SimpleString):
        raise Withheld("a graph cannot compute the message of an assertion: make it constant")
    describer = Describer(operation, scope.statement_of(read.node, ctx.module))
    code = " ".join(describer.code(comparison).split())
    return Fix(
        Safety.UNSAFE,
        f"Assert it of the tensor, right if `{code}` always holds (a graph raises RuntimeError)",
        {read.node: _exact(read, describer)},
    )


def _exact(read: Read, describer: Describer) -> cst.BaseExpression:
    """The tensor, in a dtype in which it compares as the number did."""
    tensor = kept(describer, read.tensor)
    if tensor.rank != 0 or read.conversion is Conversion.INT:
        raise Withheld("the tensor may have more than one element, or is rounded")
    if tensor.category(NOTHING) in (Category.WHOLE, Category.BOOL):
        return read.tensor
    return parse_template_expression("{x}.double()", x=parenthesized(read.tensor))


def checked(operation: Operation, ctx: Context) -> Fix:
    """`torch._check_tensor_all(x)` reads whether all are true; an assertion does not."""
    node = operation.node
    if operation.operator.name != CHECK_ALL or not isinstance(node, cst.Call):
        raise NotMine
    if len(node.args) != 1 or node.args[0].star or node.args[0].keyword is not None:
        raise Withheld("the message of the check is computed, and a graph cannot do that")
    if not isinstance(parents_of(ctx.module)[node], cst.Expr):
        raise NotMine
    spelling = scope.Spelling(operation.module, operation.node)
    new = parse_template_expression(
        "{check}({x}.all(), {message})",
        ctx.module.config_for_parsing,
        check=spelling.of("_assert_async"),
        x=parenthesized(node.args[0].value),
        message=cst.SimpleString(MESSAGE),
    )
    function = ctx.module.code_for_node(spelling.of("_assert_async"))
    return Fix(
        Safety.UNSAFE,
        f"Check with `{function}`, right if the tensors are on the CPU (CUDA reports a failure "
        "later)",
        {node: new},
        spelling.imports(),
    )


FIXERS: tuple[Callable[[Operation, Context], Fix], ...] = (asserted, checked)
