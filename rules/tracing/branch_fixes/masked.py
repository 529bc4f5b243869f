"""`if test: x[mask] = 1`: the test becomes a part of the mask, which no size depends on."""

from collections.abc import Callable, Iterator

import libcst as cst
from libcst.helpers import parse_template_expression

from jitlint.analysis.observations import TruthTest
from jitlint.analysis.values import External, ExternalMethod, Optional, Static, Tensor
from jitlint.finding import Fix, Safety
from jitlint.rule import Context

from .arms import parenthesized
from .flow import asking, code_of, comments_in, only_statement, place_of
from .predicate import hazards_in, is_tensor_test, predicate
from .profile import Describer, plain
from .pure import require_computed
from .withheld import NotMine, Withheld


def masked(test: TruthTest, ctx: Context) -> Fix:
    """Never safe: a tensor that autograd has saved is now always written to."""
    branch = asking(test)
    if not isinstance(branch, cst.If) or branch.orelse is not None:
        raise NotMine
    store, target, index, mask = _mask(only_statement(branch.body), test)
    place = place_of(test, ctx)
    if isinstance(place.parent(branch), cst.If):
        raise Withheld("the branch that writes into tensors is an `elif`: make it an `if`")
    describer = Describer(test, branch, (branch,))
    if not is_tensor_test(describer, branch.test):
        raise NotMine
    condition = predicate(describer, branch.test, place.function, frozenset())
    if condition.bindings:
        raise Withheld("the middle of the chained comparison is costly: assign it before")
    rests = [
        *_of_the_tensor(test, target.value),
        *_failures(describer, mask, branch.test),
        *condition.conditions,
    ]
    new = mask
    if not _asks_for_any(test, branch.test, mask):
        new = parse_template_expression(
            "{mask} & {test}", mask=parenthesized(mask), test=parenthesized(condition.node)
        )
    element = target.slice[0].with_changes(slice=index.with_changes(value=new))
    written = store.with_changes(
        targets=[cst.AssignTarget(target.with_changes(slice=[element]))],
        semicolon=cst.MaybeSentinel.DEFAULT,
    )
    comments = comments_in([branch.body])
    lines = [*branch.leading_lines, *(cst.EmptyLine(comment=comment) for comment in comments)]
    return Fix(
        Safety.UNSAFE,
        f"Write through the mask alone, right if {' and '.join(dict.fromkeys(rests))}",
        {branch: cst.SimpleStatementLine([written], leading_lines=lines)},
        (),
        condition.tests,
    )


FIXERS: tuple[Callable[[TruthTest, Context], Fix], ...] = (masked,)


def _mask(
    store: cst.BaseSmallStatement | None, test: TruthTest
) -> tuple[cst.Assign, cst.Subscript, cst.Index, cst.BaseExpression]:
    """Of `x[mask] = number`: itself, what is written to, its index, and the mask."""
    match store:
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Subscript(slice=[element]) as target)],
            value=number,
        ) if isinstance(element.slice, cst.Index):
            mask = element.slice.value
            value = test.value_of(mask)
            is_mask = isinstance(value, Tensor) and value.is_bool and not value.maybe
            holder = test.value_of(target.value)
            if isinstance(holder, Optional):
                holder = holder.value
            if is_mask and isinstance(holder, Tensor) and isinstance(test.value_of(number), Static):
                return store, target, element.slice, mask
    raise NotMine


def _asks_for_any(test: TruthTest, node: cst.BaseExpression, mask: cst.BaseExpression) -> bool:
    """`mask.any()` or `torch.any(mask)`: a mask of nothing writes nothing."""
    if not isinstance(node, cst.Call) or len(node.args) > 1:
        return False
    match test.value_of(node.func):
        case ExternalMethod(receiver=Tensor(), name="any") if not node.args:
            return cst.ensure_type(node.func, cst.Attribute).value.deep_equals(mask)
        case External(name="torch.any") if node.args:
            return node.args[0].value.deep_equals(mask)
    return False


def _of_the_tensor(test: TruthTest, node: cst.BaseExpression) -> Iterator[str]:
    name = plain(code_of(node))
    yield f"no gradient needs `{name}`"
    if isinstance(test.value_of(node), Optional):
        yield f"`{name}` is not None"


def _failures(
    describer: Describer, mask: cst.BaseExpression, tested: cst.BaseExpression
) -> Iterator[str]:
    """What the mask may fail of, even where it is not computed today."""
    try:
        hazards = describer.describe(mask).hazards - hazards_in(describer, tested)
    except Withheld:
        require_computed(describer.test, mask)
        yield f"`{code_of(mask)}` never fails"
        return
    yield from sorted({each.condition or f"`{each.code}` never fails" for each in hazards})
