"""A number drawn from [0, 1) against a rate: a rate that decides alone is asked first.

`torch.rand([]) < rate` is false for every draw where `rate` is 0, as it is by default where
layers may be skipped at random (LayerDrop). Asked first, such a rate keeps the draw, and the
random stream with it, and takes the test of the draw, and its graph break, out of the way.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst
from libcst.helpers import parse_template_expression

from jitlint.analysis import scope
from jitlint.analysis.observations import TruthTest
from jitlint.analysis.tree import ancestors_of, found_in, parents_of
from jitlint.analysis.values import External, Static, Tensor, is_symbol
from jitlint.finding import Fix
from jitlint.rule import Context

from .._stops import is_asked
from .arms import bare, parenthesized
from .emit import conditional_fix
from .flow import asking, code_of
from .predicate import has_one_element
from .profile import Describer
from .withheld import NotMine

UNIFORM = frozenset({"torch.rand", "torch.rand_like"})
"""Draws from [0, 1), whatever the dtype."""
PLAIN = frozenset({"device", "generator", "layout", "pin_memory", "requires_grad"})
"""Arguments that leave a draw a new tensor of real numbers."""
ON_HOST = "random.uniform"
"""From `random.uniform(0, 1)`, which is drawn before the graph runs, whether it is used or not."""
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


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """`node` compares what `call` drew with a `rate`, as in `draw OPERATOR rate`."""

    node: cst.Comparison
    operator: type[cst.BaseCompOp]
    call: cst.Call
    rate: cst.BaseExpression


def rate_first(test: TruthTest, ctx: Context) -> Fix:
    """The test behind another one of the rate. Raises NotMine where there is no draw."""
    asked = _asked(test, ctx)
    describer = Describer(test, scope.statement_of(asked, ctx.module))
    compared = (each for each in _operands(asked) if isinstance(each, cst.Comparison))
    draw = next(filter(None, (_as_draw(describer, each) for each in compared)), None)
    if draw is None:
        raise NotMine
    template, word = DECIDED[draw.operator]
    first = parse_template_expression(template, rate=draw.rate)
    if any(first.deep_equals(bare(each)) for each in _asked_before(draw.node, ctx)):
        raise NotMine
    is_tensor = isinstance(describer.test.value_of(draw.call), Tensor)
    conditions = [OTHER_STREAM] if is_tensor else []
    rate = describer.test.value_of(draw.rate)
    if not isinstance(rate, Static):
        conditions.append(f"`{code_of(draw.rate)}` is a number")
    elif isinstance(draw.rate, cst.Attribute):
        conditions.append(f"`{code_of(draw.rate)}` is no property")
    if is_tensor and not has_one_element(describer, draw.call):
        conditions.append(f"`{code_of(bare(draw.node))}` has one element")
    new = parse_template_expression(f"{{a}} {word} {{b}}", a=first, b=bare(draw.node))
    new = new.with_changes(lpar=draw.node.lpar, rpar=draw.node.rpar)
    if _binds_tighter(parents_of(ctx.module)[draw.node], word):
        new = parenthesized(new)
    title = f"Ask `{code_of(first)}` first: no draw decides otherwise"
    return conditional_fix(title, conditions, {draw.node: new})


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


def _asked(test: TruthTest, ctx: Context) -> cst.BaseExpression:
    """The test itself, or what its variable was given."""
    if not isinstance(asking(test), cst.If | cst.IfExp):
        raise NotMine
    return _given(test.node, ctx) if isinstance(test.node, cst.Name) else test.node


def _given(name: cst.Name, ctx: Context) -> cst.BaseExpression:
    """What a variable was given that is asked for its truth and for nothing else."""
    defined = scope.definition_read(name, ctx.module)
    function = scope.function_of(name, ctx.module)
    if defined.value is None or function is None:
        raise NotMine
    reads = [each for each in scope.reads(function) if each.value == name.value]
    if any(_is_compared(each, ctx.module) or not is_asked(each, ctx.module) for each in reads):
        raise NotMine
    return defined.value


def _is_compared(node: cst.CSTNode, module: cst.Module) -> bool:
    return isinstance(parents_of(module)[node], cst.Comparison | cst.ComparisonTarget)


def _operands(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    match node:
        case cst.BooleanOperation(left=left, right=right):
            yield from _operands(left)
            yield from _operands(right)
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            yield from _operands(inner)
        case _:
            yield node


def _as_draw(describer: Describer, node: cst.Comparison) -> Draw | None:
    """The comparison of a draw with a rate that is only read."""
    match node:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(sign, right)]):
            operator, rate, call = type(sign), right, _drawn(describer, left)
        case _:
            return None
    if call is None:
        operator, rate = MIRRORED.get(operator, operator), left
        call = _drawn(describer, right)
    if call is None or operator not in DECIDED or not isinstance(rate, cst.Name | cst.Attribute):
        return None
    for each in found_in(rate, cst.Attribute):
        describer.check_property(describer.test.value_of(each.value), each)
    value = describer.test.value_of(rate)
    if isinstance(value, Tensor) or is_symbol(value):
        return None
    return Draw(node, operator, call, rate)


def _drawn(describer: Describer, node: cst.BaseExpression) -> cst.Call | None:
    """What a variable drew: before the test, so that it is drawn whatever the rate decides."""
    if not isinstance(node, cst.Name) or not _is_only_compared(node.value, describer):
        return None
    value = scope.definition_read(node, describer.module).value
    if not isinstance(value, cst.Call):
        return None
    function = describer.test.value_of(value.func)
    name = function.name if isinstance(function, External) else ""
    is_draw = name in UNIFORM and _has_own_memory(value)
    return value if is_draw or (name == ON_HOST and _is_unit(value)) else None


def _has_own_memory(call: cst.Call) -> bool:
    """Whether it draws real numbers into a new tensor, which nothing else can change."""
    keywords = {each.keyword.value for each in call.args if each.keyword is not None}
    return keywords <= PLAIN and not any(each.star == "**" for each in call.args)


def _is_unit(call: cst.Call) -> bool:
    """Whether it is given 0 and 1."""
    match call.args:
        case [
            cst.Arg(value=cst.Integer() | cst.Float() as low, keyword=None, star=""),
            cst.Arg(value=cst.Integer() | cst.Float() as high, keyword=None, star=""),
        ]:
            return bool(low.evaluated_value == 0 and high.evaluated_value == 1)
    return False


def _is_only_compared(name: str, describer: Describer) -> bool:
    """Nothing else is done with it, and so nothing that changes it."""
    reads = (each for each in scope.reads(describer.function) if each.value == name)
    return all(_is_compared(each, describer.module) for each in reads)
