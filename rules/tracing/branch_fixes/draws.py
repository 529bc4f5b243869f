"""A number drawn from [0, 1) against a rate: a rate that decides alone is asked first.

`torch.rand([]) < rate` is false for every draw where `rate` is 0, as it is by default where
layers may be skipped at random (LayerDrop). Asked first, such a rate keeps the draw, and the
random stream with it, and takes the test of the draw, and its graph break, out of the way.
"""

from collections.abc import Iterator

import libcst as cst
from libcst.helpers import parse_template_expression

from jitlint.analysis import scope
from jitlint.analysis.observations import TruthTest
from jitlint.analysis.tree import ancestors_of, found_in, parents_of
from jitlint.analysis.values import External, Static, Tensor
from jitlint.finding import Fix
from jitlint.rule import Context

from .._stops import is_asked
from .arms import bare, parenthesized
from .effects import writes_in_place
from .emit import conditional_fix
from .flow import asking, code_of
from .predicate import has_one_element
from .profile import Describer
from .withheld import NotMine, Withheld

UNIFORM = frozenset({"torch.rand", "torch.rand_like"})
"""Draws from [0, 1), whatever the dtype."""
DECIDED: dict[type[cst.BaseCompOp], tuple[str, str]] = {
    cst.LessThan: ("{rate} > 0", "and"),
    cst.GreaterThanEqual: ("{rate} <= 0", "or"),
    cst.GreaterThan: ("{rate} < 1", "and"),
    cst.LessThanEqual: ("{rate} >= 1", "or"),
}
"""What to ask of a rate before `draw OP rate`, and how to join the two. NaN decides nothing."""
MIRRORED: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.LessThan: cst.GreaterThan,
    cst.GreaterThan: cst.LessThan,
    cst.LessThanEqual: cst.GreaterThanEqual,
    cst.GreaterThanEqual: cst.LessThanEqual,
}

OTHER_STREAM = "no later draw has to be that of eager code"
"""Measured: AOT backends drop a draw of which nothing is used, unless `torch._inductor.config`
has `fallback_random`; the draws behind it are then others."""


def or_rate_first(
    found: tuple[Fix | None, str | None], test: TruthTest, ctx: Context
) -> tuple[Fix | None, str | None]:
    """A fix or the reason for none; and instead of a reason the rate first, if that helps."""
    if found[0] is not None:
        return found
    try:
        return _rate_first(test, ctx), None
    except (NotMine, Withheld):
        return found


def _rate_first(test: TruthTest, ctx: Context) -> Fix:
    comparison = _comparison(test, ctx)
    describer = Describer(test, scope.statement_of(comparison, ctx.module))
    operator, draw, rate = _against_draw(describer, comparison)
    if operator not in DECIDED:
        raise NotMine
    template, word = DECIDED[operator]
    asked = parse_template_expression(template, rate=rate)
    if any(asked.deep_equals(bare(each)) for each in _asked_before(comparison, ctx)):
        raise NotMine
    conditions = [OTHER_STREAM]
    if not isinstance(describer.test.value_of(rate), Static):
        conditions.append(f"`{code_of(rate)}` is a number")
    if not has_one_element(describer, draw):
        conditions.append(f"`{code_of(bare(comparison))}` has one element")
    new = parse_template_expression(f"{{a}} {word} {{b}}", a=asked, b=bare(comparison))
    new = new.with_changes(lpar=comparison.lpar, rpar=comparison.rpar)
    if _binds_tighter(parents_of(ctx.module)[comparison], word):
        new = parenthesized(new)
    title = f"Ask `{code_of(asked)}` first: no draw decides otherwise"
    return conditional_fix(title, conditions, {comparison: new})


def _binds_tighter(around: cst.CSTNode, word: str) -> bool:
    match around:
        case cst.BooleanOperation(operator=cst.And()):
            return word == "or"
        case cst.UnaryOperation():
            return True
    return False


def _asked_before(comparison: cst.Comparison, ctx: Context) -> Iterator[cst.BaseExpression]:
    """What was asked, in the same condition or around it, before the comparison is."""
    child: cst.CSTNode = comparison
    for parent in ancestors_of(comparison, ctx.module):
        match parent:
            case cst.BooleanOperation(left=left, right=right) if right is child:
                yield from _operands(left)
            case cst.If(test=asked, body=body) if body is child:
                yield from _operands(asked)
            case cst.FunctionDef() | cst.Lambda():
                return
        child = parent


def _comparison(test: TruthTest, ctx: Context) -> cst.Comparison:
    """The comparison that is asked: in the test itself, or in what its variable was given."""
    if not isinstance(asking(test), cst.If | cst.IfExp | cst.While):
        raise NotMine
    node = test.node
    if isinstance(node, cst.Name):
        node = _given(node, ctx)
    compared = [each for each in _operands(node) if isinstance(each, cst.Comparison)]
    if len(compared) != 1:
        raise NotMine
    return compared[0]


def _given(name: cst.Name, ctx: Context) -> cst.BaseExpression:
    """What a variable was given that is asked for its truth and for nothing else."""
    at = scope.statement_of(name, ctx.module)
    defined = scope.definition_of(name.value, at, ctx.module)
    function = scope.function_of(name, ctx.module)
    if defined.value is None or function is None:
        raise NotMine
    reads = [each for each in scope.reads(function) if each.value == name.value]
    if not all(is_asked(each, ctx.module) for each in reads):
        raise NotMine
    return defined.value


def _operands(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    match node:
        case cst.BooleanOperation(left=left, right=right):
            yield from _operands(left)
            yield from _operands(right)
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            yield from _operands(inner)
        case _:
            yield node


def _against_draw(
    describer: Describer, node: cst.Comparison
) -> tuple[type[cst.BaseCompOp], cst.Call, cst.BaseExpression]:
    """As `draw OP rate`: the operator, the call that draws, and the rate, which is only read."""
    match node:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(sign, right)]):
            operator = type(sign)
        case _:
            raise NotMine
    draw = _drawn(describer, left)
    if draw is None:
        operator, draw, right = MIRRORED.get(operator, operator), _drawn(describer, right), left
    if draw is None or not isinstance(right, cst.Name | cst.Attribute):
        raise NotMine
    for each in found_in(right, cst.Attribute):
        describer.check_property(describer.test.value_of(each.value), each)
    if isinstance(describer.test.value_of(right), Tensor):
        raise NotMine
    return operator, draw, right


def _drawn(describer: Describer, node: cst.BaseExpression) -> cst.Call | None:
    """What a variable drew: before the test, so that it is drawn whatever the rate decides."""
    if not isinstance(node, cst.Name) or writes_in_place(describer.function):
        return None
    value = scope.definition_of(node.value, describer.at, describer.module).value
    if not isinstance(value, cst.Call):
        return None
    function = describer.test.value_of(value.func)
    is_draw = isinstance(function, External) and function.name in UNIFORM
    return value if is_draw else None
