"""The algebra of arms: a branch as a choice between expressions.

Every shape of branch (`if` with `elif`, early return, conditional expression, `match`) is
read into one `Branch`: cases, each with a test and an arm, and the arm of all the rest. An
arm is what each output becomes; temporaries are inlined, so that every expression speaks of
the values at the entry of the branch.
"""

import enum
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.tree import parents_of

from .withheld import Withheld

RETURNED = "return"
"""The output of an arm that returns: no name of a variable."""
EXPRESSION = "value"
MAX_CASES = 16
"""Longer chains are selections that nobody wants to read, and take long to judge."""


class Form(enum.Enum):
    """What becomes of the outputs of a branch."""

    ASSIGN = "assign"
    RETURN = "return"
    EXPRESSION = "expression"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True, eq=False)
class Arm:
    """What each output becomes, and the comments that stand in the arm.

    `dropped` are values that nothing uses, and `shared` the pairs of variables of which one
    may be, or be a part of, the object that the other is. `effects` are the statements that
    give nothing back, in their order; all of them speak of the values at the entry, too.
    `repeated` are the temporaries that the arm reads more than once, and so computes again.
    """

    outputs: Mapping[str, cst.BaseExpression] = field(default_factory=dict)
    comments: tuple[str, ...] = ()
    dropped: tuple[cst.BaseExpression, ...] = ()
    shared: frozenset[tuple[str, str]] = frozenset()
    effects: tuple[cst.Expr, ...] = ()
    repeated: tuple[tuple[str, cst.BaseExpression], ...] = ()

    @property
    def returns(self) -> bool:
        return RETURNED in self.outputs


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    test: cst.BaseExpression
    arm: Arm


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """`node` is the whole construct and `statement` the statement in which it stands.

    `between` are the statements behind an early return that lead to the last return, and
    `end` is that return: they are the arm of all the rest. Where that return stands behind the
    block, and other ways lead to it, the arm is written in terms of what there was before
    them, and they are `inlined`.
    """

    form: Form
    node: cst.CSTNode
    statement: cst.CSTNode
    cases: tuple[Case, ...]
    default: Arm
    between: tuple[cst.SimpleStatementLine, ...] = ()
    end: cst.SimpleStatementLine | None = None
    inlined: tuple[cst.SimpleStatementLine, ...] = ()

    @property
    def arms(self) -> tuple[Arm, ...]:
        return (*(case.arm for case in self.cases), self.default)

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for arm in self.arms for name in arm.outputs))


# -- reading branches ----------------------------------------------------------------------


def read_conditional(node: cst.IfExp, module: cst.Module) -> Branch:
    """A conditional expression, with those that its last arm consists of."""
    cases: list[Case] = []
    rest: cst.BaseExpression = node
    while isinstance(rest, cst.IfExp):
        cases.append(Case(rest.test, Arm({EXPRESSION: rest.body})))
        rest = rest.orelse
    statement = scope.statement_of(node, module)
    return Branch(Form.EXPRESSION, node, statement, tuple(cases), Arm({EXPRESSION: rest}))


def read_if(node: cst.If, module: cst.Module) -> Branch:
    """An `if` statement with its `elif`s; `node` may be an `elif` itself."""
    cases: list[Case] = []
    rest: cst.If | cst.Else | None = node
    while isinstance(rest, cst.If):
        if len(cases) == MAX_CASES:
            raise Withheld(f"more than {MAX_CASES} tests follow each other: look the arm up")
        header = _comments_of(rest.leading_lines) if rest is not node else ()
        cases.append(Case(rest.test, _read_block(rest.body, header)))
        rest = rest.orelse
    default = None
    if rest is not None:
        default = _read_block(rest.body, _comments_of(rest.leading_lines))
    return _branch(node, tuple(cases), default, module)


def read_match(node: cst.Match, module: cst.Module) -> Branch:
    """A `match` whose cases are numbers: each is a test for equality."""
    cases: list[Case] = []
    default: Arm | None = None
    for case in node.cases:
        if case.guard is not None or default is not None:
            raise Withheld("a case of the `match` has a guard: write it as `if` first")
        arm = _read_block(case.body, _comments_of(case.leading_lines))
        pattern = case.pattern
        if isinstance(pattern, cst.MatchAs) and pattern.pattern is None and pattern.name is None:
            default = arm
        elif isinstance(pattern, cst.MatchValue):
            target = cst.ComparisonTarget(cst.Equal(), pattern.value)
            cases.append(Case(cst.Comparison(node.subject, [target]), arm))
        else:
            raise Withheld("the patterns of the `match` are more than single numbers")
    if not cases:
        raise Withheld("the `match` has no case that tests for a number")
    first, *others = cases
    header = _trailing(node.whitespace_after_colon)
    cases = [Case(first.test, _with_comments(first.arm, before=header)), *others]
    footer = _comments_of(node.footer)
    if footer:
        default = _with_comments(default or Arm(), after=footer)
    return _branch(node, tuple(cases), default, module)


def _with_comments(arm: Arm, before: Iterable[str] = (), after: Iterable[str] = ()) -> Arm:
    return replace(arm, comments=(*before, *arm.comments, *after))


def _branch(
    node: cst.If | cst.Match, cases: tuple[Case, ...], default: Arm | None, module: cst.Module
) -> Branch:
    statement = scope.statement_of(node, module)
    arms = [case.arm for case in cases] + ([] if default is None else [default])
    function = scope.function_of(node, module) or module
    _check_private([name for arm in arms for name in arm.outputs], function)
    if not any(arm.outputs or arm.dropped for arm in arms):
        return Branch(Form.NOTHING, node, statement, cases, default or Arm())
    if any(arm.returns for arm in arms):
        return _returning(node, statement, cases, default, module)
    return _assigning(node, statement, cases, default or Arm(), module)


LOOKS_AT_NAMES = frozenset({"locals", "vars", "eval", "exec", "dir"})


def _check_private(names: Iterable[str], function: cst.CSTNode) -> None:
    """Raises Withheld where variables can be seen by others than this function's code."""
    seen = sorted(scope.shared_names(function).intersection(names))
    if seen:
        raise Withheld(f"`{seen[0]}` is assigned, which other functions may read")
    looking = sorted(LOOKS_AT_NAMES & scope.names_read(function))
    if looking:
        raise Withheld(f"the function may look at its variables by name (`{looking[0]}`)")


def _returning(
    node: cst.CSTNode,
    statement: cst.CSTNode,
    cases: tuple[Case, ...],
    default: Arm | None,
    module: cst.Module,
) -> Branch:
    if not all(set(case.arm.outputs) == {RETURNED} for case in cases):
        raise Withheld("some of the arms return and others do not")
    if default is not None:
        if set(default.outputs) != {RETURNED}:
            raise Withheld("some of the arms return and others do not")
        return Branch(Form.RETURN, node, statement, cases, default)
    between, end = _tail(statement, module)
    _check_tail_names(between, statement, module)
    last = end.body[0]
    assert isinstance(last, cst.Return)
    if last.value is None:
        raise Withheld("one arm returns a tensor and the other None")
    is_elif = statement is not node
    if is_elif or scope.block_around(end, module) is not scope.block_around(statement, module):
        arm = Arm({RETURNED: _in_terms_before(last.value, between)})
        gone = () if is_elif else between
        return Branch(Form.RETURN, node, statement, cases, arm, inlined=gone)
    arm = Arm({RETURNED: last.value}, _comments_of(end.leading_lines))
    return Branch(Form.RETURN, node, statement, cases, arm, between, end)


def _tail(
    statement: cst.CSTNode, module: cst.Module
) -> tuple[tuple[cst.SimpleStatementLine, ...], cst.SimpleStatementLine]:
    """What follows an early return: plain assignments and one return, or it is withheld.

    Of the blocks around its own only that return can follow.
    """
    between: list[cst.SimpleStatementLine] = []
    outer: cst.CSTNode | None = statement
    while outer is not None:
        block = scope.block_around(outer, module)
        index = next(i for i, each in enumerate(block) if each is outer)
        for each in block[index + 1 :]:
            match each:
                case cst.SimpleStatementLine(body=[cst.Return()]):
                    return tuple(between), each
                case cst.SimpleStatementLine(
                    body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name())])]
                ) if outer is statement:
                    between.append(each)
                case _:
                    raise Withheld(SKIPS_MORE)
        outer = _branch_around(outer, module)
    raise Withheld(SKIPS_MORE)


SKIPS_MORE = "the early return skips more than plain assignments: move them into a function"


def _branch_around(statement: cst.CSTNode, module: cst.Module) -> cst.If | None:
    """The `if` behind which the code goes on when the block of the statement ends."""
    parents = parents_of(module)
    node = parents[parents[statement]]
    if isinstance(node, cst.Else):
        node = parents[node]
    while isinstance(node, cst.If) and isinstance(parents[node], cst.If):
        node = parents[node]
    return node if isinstance(node, cst.If) else None


def _in_terms_before(
    value: cst.BaseExpression, statements: Iterable[cst.SimpleStatementLine]
) -> cst.BaseExpression:
    outputs: dict[str, cst.BaseExpression] = {}
    for statement in statements:
        for name, assigned in _outputs_of(statement.body[0]):
            outputs[name] = _inlined(assigned, outputs)
    return _inlined(value, outputs)


def _check_tail_names(
    between: Sequence[cst.CSTNode], statement: cst.CSTNode, module: cst.Module
) -> None:
    """What is assigned behind the early return is assigned always from now on."""
    function = scope.function_of(statement, module) or module
    names = scope.names_written(*between)
    _check_private(names, function)
    inside = {id(each) for node in between for each in scope.reads(node)}
    for place in _entered_later(function):
        for each in scope.reads(place):
            if each.value in names and id(each) not in inside:
                raise Withheld(f"`{each.value}` gets another value behind the early return")


def _entered_later(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Code that runs out of order: nested functions, handlers and the ends of `try`."""
    for child in node.children:
        match child:
            case cst.FunctionDef() | cst.Lambda() | cst.ExceptHandler() | cst.Finally():
                yield child
            case _:
                yield from _entered_later(child)


def _assigning(
    node: cst.CSTNode,
    statement: cst.CSTNode,
    cases: tuple[Case, ...],
    default: Arm,
    module: cst.Module,
) -> Branch:
    arms = [*(case.arm for case in cases), default]
    names = dict.fromkeys(name for arm in arms for name in arm.outputs)
    kept = [name for name in names if _is_read_after(name, statement, node, module)]
    if not kept:
        raise Withheld("nothing that the arms assign is read afterwards")
    full = [_with_all(arm, kept) for arm in arms]
    new_cases = tuple(Case(case.test, arm) for case, arm in zip(cases, full, strict=False))
    return Branch(Form.ASSIGN, node, statement, new_cases, full[-1])


def _with_all(arm: Arm, names: Sequence[str]) -> Arm:
    """An arm that leaves a variable alone gives it the value that it had."""
    unused = (value for name, value in arm.outputs.items() if name not in names)
    outputs = {name: arm.outputs.get(name, cst.Name(name)) for name in names}
    return replace(arm, outputs=outputs, dropped=(*arm.dropped, *unused))


def _is_read_after(
    name: str, statement: cst.CSTNode, node: cst.CSTNode, module: cst.Module
) -> bool:
    """Whether anything outside of the branch may read `name`; loops come round again."""
    function = scope.function_of(node, module) or module
    inside = {id(each) for each in scope.reads(node)}
    return any(each.value == name and id(each) not in inside for each in scope.reads(function))


# -- reading arms --------------------------------------------------------------------------


def _read_block(body: cst.BaseSuite, comments: Sequence[str] = ()) -> Arm:
    outputs: dict[str, cst.BaseExpression] = {}
    dropped: list[cst.BaseExpression] = []
    shared: set[tuple[str, str]] = set()
    effects: list[cst.Expr] = []
    repeated: dict[str, cst.BaseExpression] = {}
    kept = [*comments, *_suite_comments(body)]
    for small in _small_statements(body):
        if isinstance(small, cst.Expr):
            effects.append(_effect(small, outputs))
        for name, value in _outputs_of(small):
            if RETURNED in outputs:
                raise Withheld("there is code behind a return")
            if name in outputs:
                dropped.append(outputs[name])
            shared.update((name, other) for other in _handed_on(value) if other in outputs)
            repeated |= _repeated(value, outputs)
            outputs[name] = _inlined(value, outputs)
            if name in repeated and not repeated[name].deep_equals(outputs[name]):
                raise Withheld(f"an arm gives its `{name}` two values: use two names")
    if RETURNED in outputs:
        dropped += (value for name, value in outputs.items() if name != RETURNED)
        outputs = {RETURNED: outputs[RETURNED]}
    return Arm(
        outputs,
        tuple(kept),
        tuple(dropped),
        frozenset(shared),
        tuple(effects),
        tuple(repeated.items()),
    )


def _effect(statement: cst.Expr, outputs: Mapping[str, cst.BaseExpression]) -> cst.Expr:
    if RETURNED in outputs:
        raise Withheld("there is code behind a return")
    if scope.names_read(statement).intersection(outputs) or scope.names_written(statement):
        raise Withheld("an arm has an effect that speaks of what it has just computed")
    return statement


def _handed_on(node: cst.CSTNode) -> Iterator[str]:
    """The variables whose objects the value of an expression may be, or hold, or look into."""
    if isinstance(node, cst.Name):
        yield node.value
    elif not isinstance(node, cst.BinaryOperation | cst.Comparison):
        for child in node.children:
            yield from _handed_on(child)


def _small_statements(body: cst.BaseSuite) -> Iterator[cst.BaseSmallStatement]:
    for statement in body.body:
        if isinstance(statement, cst.SimpleStatementLine):
            yield from statement.body
        elif isinstance(statement, cst.BaseSmallStatement):
            yield statement
        else:
            keyword = type(statement).__name__.lower()
            raise Withheld(f"an arm contains a statement of its own (`{keyword}`)")


def _outputs_of(small: cst.BaseSmallStatement) -> Iterator[tuple[str, cst.BaseExpression]]:
    match small:
        case cst.Pass() | cst.Expr():
            return
        case cst.Return(value=None) | cst.Return(value=cst.Name(value="None")):
            raise Withheld("an arm returns None, where the other returns a tensor")
        case cst.Return(value=cst.BaseExpression() as value):
            yield RETURNED, value
        case cst.Assign(targets=[cst.AssignTarget(target=target)], value=value):
            yield from _assigned(target, value)
        case cst.AnnAssign(target=cst.Name(value=name), value=cst.BaseExpression() as value):
            yield name, value
        case cst.Raise():
            raise Withheld("an arm raises an exception, which a graph cannot do")
        case cst.Break() | cst.Continue():
            raise Withheld("an arm leaves the loop early, and the loop is not bounded simply")
        case cst.AugAssign(target=cst.Name(value=name)):
            raise Withheld(f"an arm changes `{name}` in place: write `{name} = {name} …`")
        case cst.AugAssign():
            raise Withheld("an arm writes into an object, which outlives the branch")
        case _:
            keyword = type(small).__name__.lower()
            raise Withheld(f"an arm contains a `{keyword}` statement")


def _assigned(
    target: cst.BaseExpression, value: cst.BaseExpression
) -> Iterator[tuple[str, cst.BaseExpression]]:
    match target, value:
        case cst.Name(value=name), _:
            yield name, value
        case cst.Tuple(elements=targets), cst.Tuple(elements=values) if len(targets) == len(values):
            names = [_name_of(each.value) for each in targets]
            if scope.names_read(value) & set(names):
                raise Withheld("an arm swaps variables: assign them one by one")
            for name, element in zip(names, values, strict=True):
                yield name, element.value
        case ((cst.Attribute() | cst.Subscript()), _):
            raise Withheld("an arm writes into an object, which outlives the branch")
        case _:
            raise Withheld("an arm unpacks a value into several variables")


def _name_of(node: cst.BaseExpression) -> str:
    if not isinstance(node, cst.Name):
        raise Withheld("an arm writes into an object, which outlives the branch")
    return node.value


class _Inline(cst.CSTTransformer):
    def __init__(self, values: Mapping[str, cst.BaseExpression]) -> None:
        super().__init__()
        self._values = values

    def visit_Attribute_attr(self, node: cst.Attribute) -> None:
        return None

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        value = self._values.get(original_node.value)
        return updated_node if value is None else parenthesized(value)


def _inlined(
    value: cst.BaseExpression, outputs: Mapping[str, cst.BaseExpression]
) -> cst.BaseExpression:
    """`value` in terms of what there was before the arm."""
    used = {name: outputs[name] for name in scope.names_read(value) if name in outputs}
    if not used:
        return value
    result = value.visit(_Inline(used))
    assert isinstance(result, cst.BaseExpression)
    return result


def _repeated(
    value: cst.BaseExpression, outputs: Mapping[str, cst.BaseExpression]
) -> dict[str, cst.BaseExpression]:
    """The temporaries that `value` reads more than once, unless they are as short as names."""
    counts = Counter(name.value for name in scope.reads(value))
    return {
        name: outputs[name]
        for name, count in counts.items()
        if count > 1 and name in outputs and not isinstance(outputs[name], SHORT)
    }


SHORT = (cst.Name, cst.Integer, cst.Float)
ATOMS = (
    cst.Name,
    cst.Attribute,
    cst.Call,
    cst.Subscript,
    cst.Integer,
    cst.Float,
    cst.Tuple,
    cst.List,
    cst.Dict,
)


def parenthesized(node: cst.BaseExpression) -> cst.BaseExpression:
    """`node` as an operand of any operator."""
    if node.lpar or isinstance(node, ATOMS):
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def bare(node: cst.BaseExpression) -> cst.BaseExpression:
    """`node` without the parentheses around it, where it needs none."""
    if len(node.lpar) != 1 or isinstance(node, cst.Tuple | cst.GeneratorExp | cst.Yield):
        return node
    paren = node.lpar[0].whitespace_after
    if isinstance(paren, cst.ParenthesizedWhitespace):
        return node
    return node.with_changes(lpar=[], rpar=[])


# -- comments ------------------------------------------------------------------------------


def _comments_of(lines: Sequence[cst.EmptyLine]) -> tuple[str, ...]:
    return tuple(line.comment.value for line in lines if line.comment is not None)


def _suite_comments(body: cst.BaseSuite) -> Iterator[str]:
    """Comments of a suite, its header aside, in their order."""
    if isinstance(body, cst.SimpleStatementSuite):
        yield from _trailing(body.trailing_whitespace)
        return
    assert isinstance(body, cst.IndentedBlock)
    yield from _trailing(body.header)
    for statement in body.body:
        if isinstance(statement, cst.SimpleStatementLine):
            yield from _comments_of(statement.leading_lines)
            yield from _trailing(statement.trailing_whitespace)
    yield from _comments_of(body.footer)


def _trailing(whitespace: cst.TrailingWhitespace) -> Iterator[str]:
    if whitespace.comment is not None:
        yield whitespace.comment.value
