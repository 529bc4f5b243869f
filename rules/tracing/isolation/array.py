"""A function that fills an array, as an operator that returns a tensor of its shape.

The function keeps its name, arguments and result: it becomes `operator(…).numpy()`, which
Dynamo follows. Measured with torch 2.13.0 (eager and aot_eager, with and without
`dynamic=True` and `fullgraph=True`): equal arrays, gradients and states of NumPy's generator.
"""

from collections.abc import Iterator, Sequence

import libcst as cst
from libcst.helpers import parse_template_expression

from jitlint.analysis import scope
from jitlint.analysis.observations import Observation
from jitlint.analysis.tree import definitions_of, nodes_in, parents_of
from jitlint.analysis.values import External
from jitlint.finding import Fix, Replacement, Safety
from jitlint.rule import Context

from ..branch_fixes.emit import TIGHT
from ..branch_fixes.withheld import Withheld
from .operator import BLANK, NOT_TAKEN, Operator, is_schema_type
from .whole import check_position, function_around

CONSTRUCTORS = frozenset({"numpy.zeros", "numpy.ones", "numpy.empty"})
SAME_NAME = frozenset(
    {
        *("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8"),
        *("complex64", "complex128"),
    }
)
DTYPES = {f"numpy.{name}": name for name in SAME_NAME} | {
    **dict.fromkeys(("builtins.bool", "numpy.bool_", "numpy.bool"), "bool"),
    "builtins.int": "int64",
    "builtins.float": "float64",
}
"""The dtype of torch for what is given as the `dtype` of an array."""
Binding = cst.Assign | cst.AnnAssign | cst.AugAssign | cst.NamedExpr | cst.For
FORBIDDEN = (cst.Global, cst.Nonlocal, cst.Yield, cst.Await)


def array_as_operator(seen: Observation, ctx: Context) -> Fix:
    """The function around a break, which makes an array whose shape and dtype are plain."""
    function = function_around(seen)
    if function.returns is None or name_of(seen, function.returns.annotation) != "numpy.ndarray":
        raise Withheld(f"`{function.name.value}` is not declared to return an array")
    python, operator = names_behind(function, seen, ctx)
    schema = Schema(seen, function)
    spelling = scope.Spelling(seen.module)
    made = cst.Call(spelling.of("from_numpy"), [cst.Arg(schema.call(python, keep=False))])
    _check_body(function, schema.tensors, ctx)
    new = Operator(
        seen.module,
        operator,
        schema.parameters(),
        cst.IndentedBlock([cst.SimpleStatementLine([cst.Return(made)])]),
        spelling.of("Tensor"),
        _Fake(seen, function).statements(),
        function.whitespace_before_params,
    )
    call = parse_template_expression("{call}.numpy()", call=schema.call(operator, keep=True))
    front = with_body(function, [cst.SimpleStatementLine([cst.Return(call)])])
    return Fix(
        Safety.UNSAFE,
        f"Make the array in the operator `{operator}`, which has an effect, right if the "
        f"arguments have the types that they are annotated with, and {NOT_TAKEN}",
        behind(front, function, python, new),
        scope.Spelling(seen.module).imports(),
    )


def names_behind(function: cst.FunctionDef, seen: Observation, ctx: Context) -> tuple[str, str]:
    """Names for what the function did so far, and for the operator that runs that."""
    name = function.name.value
    check_position(function, ctx)
    if definitions_of(ctx.module)[name] > 1:
        raise Withheld(f"`{name}` is defined more than once")
    python, operator = (f"_{name.strip('_')}_{end}" for end in ("in_python", "operator"))
    taken = {python, operator} & set(seen.module.facts.bindings)
    if taken:
        raise Withheld(f"`{min(taken)}` is another name in the file")
    return python, operator


def behind(
    front: cst.FunctionDef, function: cst.FunctionDef, python: str, operator: Operator
) -> dict[cst.CSTNode, Replacement]:
    """The function under its new name, the operator, and what calls that under the old name."""
    code = [
        function.with_changes(name=cst.Name(python)),
        operator.definition(),
        *operator.registrations(),
        front.with_changes(leading_lines=BLANK),
    ]
    return {function: cst.FlattenSentinel(code)}


def name_of(seen: Observation, node: cst.BaseExpression) -> str:
    value = seen.value_of(node)
    return value.name if isinstance(value, External) else ""


def with_body(
    function: cst.FunctionDef, statements: Sequence[cst.BaseStatement]
) -> cst.FunctionDef:
    """The function with another body, and the text that documents it."""
    documentation = []
    first = function.body.body[0] if function.body.body else None
    if isinstance(first, cst.SimpleStatementLine) and function.get_docstring() is not None:
        documentation = [first]
    return function.with_changes(body=cst.IndentedBlock([*documentation, *statements]))


def own_statements(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What belongs to a function, without those that it defines."""
    for child in node.children:
        if not isinstance(child, cst.FunctionDef | cst.Lambda | cst.ClassDef):
            yield child
            yield from own_statements(child)


# -- the signature ---------------------------------------------------------------------------


class Schema:
    """The parameters of a function, in types that a schema knows."""

    def __init__(self, seen: Observation, function: cst.FunctionDef) -> None:
        self._seen = seen
        self._params = function.params
        self.tensors: set[str] = set()
        self._tuples: set[str] = set()
        if (
            self._params.posonly_params
            or self._params.star_kwarg
            or isinstance(self._params.star_arg, cst.Param)
        ):
            raise Withheld("the function has parameters that no schema can name")
        self._new = {each.name.value: self._typed(each) for each in self._all}

    @property
    def _all(self) -> Sequence[cst.Param]:
        return [*self._params.params, *self._params.kwonly_params]

    def parameters(self) -> cst.Parameters:
        return self._params.with_changes(
            params=[self._new[each.name.value] for each in self._params.params],
            kwonly_params=[self._new[each.name.value] for each in self._params.kwonly_params],
        )

    def call(self, function: str, keep: bool) -> cst.Call:
        """A call with the parameters for arguments; `keep` them, or make them what they were."""
        arguments = []
        for each in self._all:
            value: cst.BaseExpression = cst.Name(each.name.value)
            if each.name.value in self._tuples and not keep:
                value = cst.Call(cst.Name("tuple"), [cst.Arg(value)])
            if each in self._params.kwonly_params:
                keyword = cst.Name(each.name.value)
                arguments.append(cst.Arg(value, keyword=keyword, equal=TIGHT))
            else:
                arguments.append(cst.Arg(value))
        return cst.Call(cst.Name(function), arguments)

    def _typed(self, parameter: cst.Param) -> cst.Param:
        name = parameter.name.value
        if parameter.annotation is None:
            raise Withheld(f"the type of `{name}` is not known")
        found = self._translated(parameter.annotation.annotation, name)
        if not is_schema_type(found, self._seen):
            raise Withheld(f"the type of `{name}` is none that a schema knows")
        annotation = parameter.annotation.with_changes(annotation=found)
        return parameter.with_changes(annotation=annotation)

    def _translated(self, node: cst.BaseExpression, name: str) -> cst.BaseExpression:
        """`list[int]` for `tuple[int, int]`, and `Tensor` for `LongTensor`."""
        match node:
            case cst.BinaryOperation(left=left, right=right):
                return node.with_changes(
                    left=self._translated(left, name), right=self._translated(right, name)
                )
            case cst.Subscript(value=generic, slice=elements):
                inner = [e.slice.value for e in elements if isinstance(e.slice, cst.Index)]
                if name_of(self._seen, generic) in ("builtins.tuple", "typing.Tuple"):
                    return self._list(inner, name)
                new = [self._translated(each, name) for each in inner]
                pairs = zip(elements, new, strict=True)
                return node.with_changes(
                    slice=[
                        each.with_changes(slice=each.slice.with_changes(value=value))
                        for each, value in pairs
                    ]
                )
        dotted = name_of(self._seen, node)
        if dotted.startswith("torch.") and dotted.endswith("Tensor"):
            self.tensors.add(name)
            return scope.Spelling(self._seen.module).of("Tensor")
        return node

    def _list(self, inner: Sequence[cst.BaseExpression], name: str) -> cst.BaseExpression:
        kinds = {each.value for each in inner if isinstance(each, cst.Name)}
        if kinds != {"int"}:
            raise Withheld(f"the type of `{name}` is none that a schema knows")
        self._tuples.add(name)
        return parse_template_expression("list[int]")


# -- the body --------------------------------------------------------------------------------


def _check_body(function: cst.FunctionDef, tensors: set[str], ctx: Context) -> None:
    """Raises Withheld where the function may give, or change, more than its array."""
    parents = parents_of(ctx.module)
    for node in nodes_in(function.body):
        if isinstance(node, FORBIDDEN):
            raise Withheld("the function binds names of others, or yields")
        if not isinstance(node, cst.Name) or node.value not in tensors:
            continue
        parent = parents[node]
        if isinstance(parent, cst.Arg) and parent.keyword is node:
            continue
        is_method = isinstance(parent, cst.Attribute) and not parent.attr.value.endswith("_")
        is_test = isinstance(parent, cst.Comparison) and parent.left is node
        if not is_method and not is_test:
            raise Withheld(f"`{node.value}` may be changed")


class _Fake:
    """The shape and the dtype of the array, without its values."""

    def __init__(self, seen: Observation, function: cst.FunctionDef) -> None:
        self._seen = seen
        self._function = function
        self._name = self._returned()
        self._statement, self._call = self._constructor()

    def statements(self) -> Sequence[cst.BaseStatement]:
        """What the shape is computed from, and an empty tensor of that shape."""
        shape, dtype = self._shape_and_dtype()
        spelling = scope.Spelling(self._seen.module)
        empty = parse_template_expression(
            "{empty}({shape}, dtype={dtype})",
            empty=spelling.of("empty"),
            shape=shape,
            dtype=spelling.of(dtype),
        )
        return [*self._needed(shape), cst.SimpleStatementLine([cst.Return(empty)])]

    def _returned(self) -> str:
        found = {
            each.value.value if isinstance(each.value, cst.Name) else ""
            for each in own_statements(self._function.body)
            if isinstance(each, cst.Return)
        }
        if len(found) != 1 or "" in found:
            raise Withheld("the function returns more than one variable")
        return found.pop()

    def _constructor(self) -> tuple[cst.SimpleStatementLine, cst.Call]:
        """The one assignment of the array: later ones could give it another shape."""
        if any(map(self._reshapes, nodes_in(self._function.body))):
            raise Withheld(f"`{self._name}` may get another shape in place")
        targets = [
            each
            for each in nodes_in(self._function)
            if isinstance(
                each, cst.Assign | cst.AnnAssign | cst.AugAssign | cst.NamedExpr | cst.For
            )
            and self._name in scope.names_written(*_targets(each))
        ]
        for statement in self._function.body.body:
            if not isinstance(statement, cst.SimpleStatementLine) or len(targets) != 1:
                continue
            match statement.body:
                case [cst.Assign(value=cst.Call() as call) as assign] if assign is targets[0]:
                    if name_of(self._seen, call.func) in CONSTRUCTORS:
                        return statement, call
        raise Withheld(f"the shape of `{self._name}` is not given by one call")

    def _reshapes(self, node: cst.CSTNode) -> bool:
        """`mask.resize(…)` and `mask.shape = …`"""
        target = node.target if isinstance(node, cst.AssignTarget) else None
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            target = node.func if node.func.attr.value == "resize" else None
        return isinstance(target, cst.Attribute) and self._name in scope.names_read(target)

    def _shape_and_dtype(self) -> tuple[cst.BaseExpression, str]:
        given: dict[str, cst.BaseExpression] = {}
        names = ["shape", "dtype"]
        for position, argument in enumerate(self._call.args):
            keyword = argument.keyword.value if argument.keyword else (names[position:] or [""])[0]
            given[keyword] = argument.value
        if "shape" not in given or not given.keys() <= set(names):
            raise Withheld(f"the shape and the dtype of `{self._name}` are not plain")
        dtype = "float64"
        if "dtype" in given:
            dtype = DTYPES.get(name_of(self._seen, given["dtype"]), "")
        if not dtype:
            raise Withheld(f"the dtype of `{self._name}` is not plain")
        return given["shape"], dtype

    def _needed(self, shape: cst.BaseExpression) -> Sequence[cst.BaseStatement]:
        """The statements before the constructor that the shape depends on."""
        body = self._function.body.body
        index = next(i for i, each in enumerate(body) if each is self._statement)
        parameters = scope.local_names(self._function) - scope.names_written(self._function.body)
        missing = set(self._locals(shape)) - parameters
        found: list[cst.SimpleStatementLine] = []
        for statement in reversed(body[:index]):
            written = scope.names_written(statement)
            if not written & missing:
                continue
            if not _is_plain(statement):
                raise Withheld(f"`{min(written & missing)}`, a size, depends on more than sizes")
            missing = (missing - written) | (set(self._locals(statement)) - parameters - written)
            found.insert(0, cst.ensure_type(statement, cst.SimpleStatementLine))
        if missing:
            raise Withheld(f"`{min(missing)}`, a size, is not known")
        return [each.with_changes(leading_lines=()) for each in found]

    def _locals(self, node: cst.CSTNode) -> frozenset[str]:
        return scope.names_read(node) & scope.local_names(self._function)


def _targets(node: Binding) -> Sequence[cst.CSTNode]:
    if isinstance(node, cst.Assign):
        return node.targets
    target = node.target
    assert isinstance(target, cst.BaseAssignTargetExpression)
    return [cst.AssignTarget(target)]


def _is_plain(statement: cst.CSTNode) -> bool:
    """`rows, columns = shape`, or arithmetic of sizes."""
    match statement:
        case cst.SimpleStatementLine(body=[cst.Assign(value=value)]):
            return not any(isinstance(each, cst.Call) for each in nodes_in(value))
    return False
