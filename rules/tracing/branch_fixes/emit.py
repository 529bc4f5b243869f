"""New code: nested selections, written as one would by hand."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.tree import found_in
from jitlint.finding import Fix, Replacement, Safety
from jitlint.layout import one_a_line

from .arms import bare
from .withheld import Withheld

LINE_LENGTH = 88
TIGHT = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
"""The sign between a keyword and its argument."""
MAX_BROKEN = 4

Expressions = Sequence[cst.BaseExpression]
Leaf = Callable[[Expressions], cst.BaseExpression]


@dataclass(frozen=True, slots=True)
class Writer:
    """Builds calls; those nested less deep than `broken` get a line per argument."""

    spelling: scope.Spelling
    broken: int = 0

    def where(
        self,
        tests: Sequence[cst.BaseExpression],
        arms: Sequence[cst.BaseExpression],
        depth: int = 0,
    ) -> cst.BaseExpression:
        """The first arm whose test is true, else the last arm."""
        if not tests:
            return bare(arms[0])
        rest = self.where(tests[1:], arms[1:], depth + 1)
        return self.call("where", [bare(tests[0]), bare(arms[0]), rest], depth)

    def cond(
        self,
        tests: Sequence[cst.BaseExpression],
        arms: Sequence[cst.BaseExpression],
        depth: int = 0,
    ) -> cst.BaseExpression:
        if not tests:
            return arms[0] if isinstance(arms[0], cst.Tuple) else bare(arms[0])
        rest = self.cond(tests[1:], arms[1:], depth + 1)
        first = arms[0] if isinstance(arms[0], cst.Tuple) else bare(arms[0])
        arguments = [bare(tests[0]), _thunk(first), _thunk(rest), cst.Tuple([])]
        return self.call("cond", arguments, depth)

    def call(self, name: str, values: Sequence[cst.BaseExpression], depth: int) -> cst.Call:
        function = self.spelling.of(name)
        arguments = [cst.Arg(_without_parentheses(value).deep_clone()) for value in values]
        call = cst.Call(function, arguments)
        return call if depth >= self.broken else one_a_line(call, depth)


def _without_parentheses(value: cst.BaseExpression) -> cst.BaseExpression:
    """An argument goes on over lines in those of the call."""
    is_open = bool(value.lpar) and isinstance(
        value.lpar[0].whitespace_after, cst.ParenthesizedWhitespace
    )
    needs_them = isinstance(value, cst.Tuple | cst.GeneratorExp | cst.Yield)
    if not is_open or needs_them or any(found_in(value, cst.Comment)):
        return value
    return value.with_changes(lpar=value.lpar[1:], rpar=value.rpar[:-1])


def _thunk(value: cst.BaseExpression) -> cst.Lambda:
    if isinstance(value, cst.Tuple) and not value.lpar:
        value = value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return cst.Lambda(cst.Parameters(), value, whitespace_after_lambda=cst.SimpleWhitespace(""))


def map_structure(nodes: Sequence[cst.BaseExpression], leaf: Leaf) -> cst.BaseExpression:
    """One expression for several of the same structure: tuples, lists, dicts item by item."""
    first = nodes[0]
    if any(isinstance(node, cst.Tuple | cst.List) for node in nodes):
        return _map_sequence(nodes, leaf)
    if isinstance(first, cst.Dict) or any(isinstance(node, cst.Dict) for node in nodes):
        return _map_dict(nodes, leaf)
    return leaf(nodes)


def leaves(nodes: Expressions) -> list[Expressions]:
    """The leaves of the common structure of several expressions, side by side."""
    found: list[Expressions] = []

    def leaf(items: Expressions) -> cst.BaseExpression:
        found.append(items)
        return items[0]

    map_structure(nodes, leaf)
    return found


def _map_sequence(nodes: Sequence[cst.BaseExpression], leaf: Leaf) -> cst.BaseExpression:
    kind = cst.List if isinstance(nodes[0], cst.List) else cst.Tuple
    tuples = [node for node in nodes if isinstance(node, kind)]
    if len(tuples) != len(nodes) or len({len(each.elements) for each in tuples}) != 1:
        what = "lists" if kind is cst.List else "tuples"
        raise Withheld(f"the arms are {what} of different lengths, or not all {what}")
    if any(isinstance(e, cst.StarredElement) for each in tuples for e in each.elements):
        raise Withheld("an arm unpacks a sequence of unknown length")
    columns = zip(*(each.elements for each in tuples), strict=True)
    items = [map_structure([element.value for element in column], leaf) for column in columns]
    elements = [
        element.with_changes(value=item)
        for element, item in zip(tuples[0].elements, items, strict=True)
    ]
    return tuples[0].with_changes(elements=elements)


def _map_dict(nodes: Sequence[cst.BaseExpression], leaf: Leaf) -> cst.BaseExpression:
    dicts = [node for node in nodes if isinstance(node, cst.Dict)]
    keys = [[_key(element) for element in each.elements] for each in dicts]
    if len(dicts) != len(nodes) or any(each != keys[0] for each in keys):
        raise Withheld("the arms are dicts with different keys, or not all dicts")
    columns = zip(*(each.elements for each in dicts), strict=True)
    items = [map_structure([element.value for element in column], leaf) for column in columns]
    elements = [
        element.with_changes(value=item)
        for element, item in zip(dicts[0].elements, items, strict=True)
    ]
    return dicts[0].with_changes(elements=elements)


def _key(element: cst.BaseDictElement) -> str:
    match element:
        case cst.DictElement(key=cst.SimpleString() as key):
            return str(key.evaluated_value)
    raise Withheld("the keys of a dict in an arm are not plain strings")


def assignment(targets: Sequence[str], value: cst.BaseExpression) -> cst.SimpleStatementLine:
    names: list[cst.BaseExpression] = [cst.Name(name) for name in targets]
    target = names[0] if len(names) == 1 else cst.Tuple([cst.Element(n) for n in names], (), ())
    return cst.SimpleStatementLine(
        [cst.Assign([cst.AssignTarget(target)], value)]  # type: ignore[arg-type]
    )


def fitting(
    build: Callable[[int], list[cst.SimpleStatementLine]], module: cst.Module, indent: int
) -> list[cst.SimpleStatementLine]:
    """The statements with as few calls broken over lines as the length of a line allows."""
    statements: list[cst.SimpleStatementLine] = []
    for broken in range(MAX_BROKEN + 1):
        statements = build(broken)
        lines = [line for each in statements for line in module.code_for_node(each).split("\n")]
        if all(len(line) + indent <= LINE_LENGTH for line in lines):
            break
    return statements


def _not_implied(phrases: Sequence[str]) -> list[str]:
    """What is floating is real, and not bool."""
    subjects = {e.removesuffix(" is floating") for e in phrases if e.endswith(" is floating")}
    implied = {f"{subject} {what}" for subject in subjects for what in ("is not bool", "is real")}
    return [phrase for phrase in phrases if phrase not in implied]


def conditional_fix(
    title: str,
    conditions: Iterable[str],
    replacements: dict[cst.CSTNode, Replacement],
    imports: tuple[str, ...] = (),
    tests: Sequence[cst.CSTNode] = (),
) -> Fix:
    """Safe without conditions; with some, unsafe, and its title names them."""
    phrases = _not_implied(list(conditions))
    if not phrases:
        return Fix(Safety.SAFE, title, replacements, imports, tuple(tests))
    title = f"{title}, right if {' and '.join(phrases)}"
    return Fix(Safety.UNSAFE, title, replacements, imports, tuple(tests))
