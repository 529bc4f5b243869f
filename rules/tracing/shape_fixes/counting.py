"""Operators whose size is known, though not to the compiler."""

from collections.abc import Callable, Iterable, Iterator

import libcst as cst
from libcst.helpers import parse_template_expression

from jitlint.analysis.observations import Operation
from jitlint.analysis.scope import Spelling, definition_of, statement_of
from jitlint.analysis.tree import parents_of
from jitlint.analysis.values import Sequence, Static, Tuple
from jitlint.finding import Fix
from jitlint.rule import Context

from ..branch_fixes.emit import TIGHT, conditional_fix
from ..branch_fixes.profile import Describer
from ..branch_fixes.withheld import NotMine, Withheld
from ..read_fixes.places import kept, operator_at, value_at

NAMES = frozenset({"bincount", "repeat_interleave"})


def counted(operation: Operation, ctx: Context) -> Fix:
    """`torch.bincount(x, minlength=n)`: longer than `n` where a value is not below it."""
    call, name, arguments, keywords = _call(operation, ctx)
    if name != "bincount":
        raise NotMine
    length = keywords.get("minlength")
    if length is None or len(arguments) != 1 or set(keywords) - {"minlength"}:
        raise Withheld(
            "the length of the counts is the largest value: with `minlength=` and values below "
            "it, `scatter_add_` counts as well"
        )
    describer = Describer(operation, statement_of(call, ctx.module))
    tensor = arguments[0]
    if not isinstance(tensor, cst.Name | cst.Attribute):
        raise Withheld(f"give `{_code(describer, tensor)}` a name: it is needed several times")
    if not isinstance(value_at(describer, length), Static):
        raise Withheld(f"`{_code(describer, length)}` is not known to be a Python number")
    is_long = kept(describer, tensor).is_int64
    spelling = Spelling(operation.module, operation.node)
    new = parse_template_expression(
        "{zeros}({n}, dtype={long}, device={x}.device).scatter_add_(0, {index}, {ones}({like}))",
        ctx.module.config_for_parsing,
        zeros=spelling.of("zeros"),
        n=length,
        long=spelling.of("long"),
        x=tensor,
        index=tensor if is_long else parse_template_expression("{x}.long()", x=tensor),
        ones=spelling.of("ones_like"),
        like=tensor,
    )
    if not is_long:
        new = _with_dtype(new, spelling)
    return conditional_fix(
        "Count with `scatter_add_`",
        [f"every value of `{_code(describer, tensor)}` is below `{_code(describer, length)}`"],
        {call: new},
        spelling.imports(),
    )


def _with_dtype(new: cst.BaseExpression, spelling: Spelling) -> cst.BaseExpression:
    """`torch.ones_like(x, dtype=torch.long)`"""
    outer = cst.ensure_type(new, cst.Call)
    ones = cst.ensure_type(outer.args[2].value, cst.Call)
    dtype = cst.Arg(spelling.of("long"), keyword=cst.Name("dtype"), equal=TIGHT)
    ones = ones.with_changes(args=[*ones.args, dtype])
    return outer.with_changes(args=[*outer.args[:2], outer.args[2].with_changes(value=ones)])


def repeated(operation: Operation, ctx: Context) -> Fix:
    """`torch.repeat_interleave(x, torch.tensor(counts))` of a list of Python numbers."""
    call, name, arguments, keywords = _call(operation, ctx)
    if name != "repeat_interleave":
        raise NotMine
    repeats = keywords.get("repeats", arguments[1] if len(arguments) > 1 else None)
    if repeats is None or "output_size" in keywords:
        raise NotMine
    describer = Describer(operation, statement_of(call, ctx.module))
    counts = _list_in(repeats, describer)
    if counts is None:
        raise Withheld(
            "the length is the sum of the repeats: give it as `output_size=` where Python knows it"
        )
    total = cst.Call(cst.Name("sum"), [cst.Arg(counts)])
    size = cst.Arg(total, keyword=cst.Name("output_size"), equal=TIGHT)
    new = call.with_changes(args=with_argument(call.args, size))
    return conditional_fix("Give `output_size=`", [], {call: new})


FIXERS: tuple[Callable[[Operation, Context], Fix], ...] = (counted, repeated)


def _list_in(repeats: cst.BaseExpression, describer: Describer) -> cst.BaseExpression | None:
    """`counts` of `torch.tensor(counts)`, if it is a list of Python numbers."""
    if not isinstance(repeats, cst.Call) or not repeats.args:
        return None
    if operator_at(describer, repeats) != ("tensor", False):
        return None
    counts = repeats.args[0].value
    return counts if _are_numbers(counts, describer) else None


def _are_numbers(node: cst.BaseExpression, describer: Describer) -> bool:
    """Whether a list is known to hold Python numbers."""
    if isinstance(node, cst.Name):
        definition = definition_of(
            node.value, statement_of(node, describer.module), describer.module
        )
        if definition.value is not None:
            return _are_numbers(definition.value, describer)
    if isinstance(node, cst.List | cst.Tuple):
        return all(isinstance(value_at(describer, each.value), Static) for each in node.elements)
    match describer.test.value_of(node):
        case Sequence(Static()):
            return True
        case Tuple(items):
            return all(isinstance(each, Static) for each in items)
    return False


def with_argument(arguments: Iterable[cst.Arg], new: cst.Arg) -> list[cst.Arg]:
    """One more argument behind the others, laid out as those are."""
    *before, last = arguments
    separator = before[0].comma if before else cst.MaybeSentinel.DEFAULT
    if not isinstance(separator, cst.Comma):
        separator = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    trailing = last.comma
    after = last.whitespace_after_arg
    return [
        *before,
        last.with_changes(comma=separator, whitespace_after_arg=cst.SimpleWhitespace("")),
        new.with_changes(comma=trailing, whitespace_after_arg=after),
    ]


def _call(
    operation: Operation, ctx: Context
) -> "tuple[cst.Call, str, list[cst.BaseExpression], dict[str, cst.BaseExpression]]":
    """A call of an operator: its name and its arguments, the receiver first."""
    describer = Describer(operation, statement_of(operation.node, ctx.module))
    for call in _calls_at(operation.node, ctx):
        found = operator_at(describer, call)
        if found is not None and found[0] in NAMES and not any(each.star for each in call.args):
            break
    else:
        raise NotMine
    name, is_method = found
    arguments = [each.value for each in call.args if each.keyword is None]
    if is_method:
        arguments.insert(0, cst.ensure_type(call.func, cst.Attribute).value)
    keywords = {each.keyword.value: each.value for each in call.args if each.keyword is not None}
    return call, name, arguments, keywords


def _calls_at(node: cst.CSTNode, ctx: Context) -> Iterator[cst.Call]:
    """The call that `node` is, or that it is an argument of."""
    parents = parents_of(ctx.module)
    argument = parents.get(node)
    for found in (node, parents.get(argument) if isinstance(argument, cst.Arg) else None):
        if isinstance(found, cst.Call):
            yield found


def _code(describer: Describer, node: cst.CSTNode) -> str:
    return " ".join(describer.code(node).split())
