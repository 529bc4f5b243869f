"""Tensors that are tested as the numbers were that are read from them."""

import libcst as cst
from libcst.helpers import parse_template_expression

from jitlint.analysis.values import Static

from ..branch_fixes.arms import parenthesized
from ..branch_fixes.dtypes import NOTHING
from ..branch_fixes.profile import Describer
from ..branch_fixes.withheld import Withheld
from .places import kept, value_at
from .promotion import Category
from .reads import Conversion, Read, read_of

MAX_EXACT = 8
"""bfloat16 has eight bits: it holds all multiples of 1/16 up to here."""


def without_reads(node: cst.BaseExpression, describer: Describer) -> cst.BaseExpression:
    """A truth test with the tensors in it that it reads today. Raises Withheld."""
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        target = node.comparisons[0]
        left = _side(node.left, target.comparator, describer)
        right = _side(target.comparator, node.left, describer)
        if left is node.left and right is target.comparator:
            return node
        return node.with_changes(left=left, comparisons=[target.with_changes(comparator=right)])
    read = read_of(node, describer.test)
    if read is None or read.conversion is Conversion.BOOL:
        return node
    return _tensor(read, describer, is_exact=True)


def _side(
    node: cst.BaseExpression, other: cst.BaseExpression, describer: Describer
) -> cst.BaseExpression:
    read = read_of(node, describer.test)
    if read is None:
        return node
    value = value_at(describer, other)
    is_exact = isinstance(value, Static) and _is_exact(value.const)
    return _tensor(read, describer, is_exact)


def _tensor(read: Read, describer: Describer, is_exact: bool) -> cst.BaseExpression:
    """The tensor, in a dtype in which it compares as the number did."""
    tensor = kept(describer, read.tensor)
    if read.conversion is Conversion.INT:
        raise Withheld(f"`{describer.code(read.node)}` rounds the number")
    new = read.tensor
    if tensor.rank != 0:
        new = parse_template_expression("{t}.reshape(())", t=parenthesized(new))
    if is_exact or tensor.category(NOTHING) in (Category.WHOLE, Category.BOOL):
        return new
    return parse_template_expression("{t}.double()", t=parenthesized(new))


def _is_exact(const: object) -> bool:
    """Whether every floating dtype holds a number, so that comparing it needs no other."""
    return isinstance(const, int | float) and const * 16 % 1 == 0 and abs(const) <= MAX_EXACT
