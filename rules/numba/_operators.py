"""A kernel as an operator of torch, or behind `torch.compiler.disable`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from jitlint.analysis.observations import Call
from jitlint.analysis.scope import function_of, is_optional, names_written
from jitlint.analysis.tree import found_in, parents_of
from jitlint.analysis.values import External, Framework, Kernel, Static, Tensor, Value
from jitlint.finding import Fix, Replacement, Safety, Withheld
from jitlint.region import RegionKind
from jitlint.rule import Context

from ._arguments import Argument, arguments_of
from ._kernels import UFUNCS, Taking, may_write, taking
from ._results import Result, Width, result_of, returns_nothing

NOT_GLOBAL = "the kernel is no name of this module's top level, where an operator could call it"
OPTIONAL = "torch is optional here, and an operator is defined when the file is loaded"
NOT_WRITTEN = "the arguments are not all written in the call"
NOT_CONVERTED = "an argument is made an array elsewhere: an operator takes the tensor itself"
NOT_TYPED = "the type of a number that is passed is not known, which an operator has to declare"
NO_RESULT = "the shape and dtype of what the kernel returns are not plain from its body"
WIDENED = (
    "Numba computes float64 where a Python float takes part, an operator would return the "
    "tensor's own dtype: cast the result, or write the kernel's constants as np.float32"
)
NOT_BACK = "the result does not go straight back into a tensor (torch.from_numpy)"
TAKEN = "the name that the new function would get is taken"
MUTATES = "the kernel writes into its argument and returns a value as well"
TYPES = {bool: "bool", int: "int", float: "float", str: "str"}
TO_TENSOR = frozenset({"torch.from_numpy", "torch.as_tensor", "torch.tensor"})
CASTS = frozenset({"to", "float", "type_as", "type", "double", "half"})
LINE_LENGTH = 100
ARRAY_STEPS = frozenset({"numpy", "cpu", "contiguous"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the operator, and what the call passes for it."""

    name: str
    annotation: str
    node: cst.Arg
    new: cst.BaseExpression

    @property
    def is_tensor(self) -> bool:
        return self.annotation == "torch.Tensor"


@dataclass(frozen=True, slots=True)
class Place:
    """A call of a kernel by a global name."""

    call: Call
    kernel: Kernel
    name: str
    ctx: Context

    @property
    def module(self) -> cst.Module:
        return self.ctx.module

    def before_or_after(self) -> tuple[cst.BaseStatement, bool]:
        """Where new functions go: behind the kernel, else in front of what calls it."""
        for each in self.module.body:
            if isinstance(each, cst.FunctionDef) and each.name.value == self.name:
                return each, True
        statement: cst.CSTNode = self.call.node
        parents = parents_of(self.module)
        while parents[statement] is not self.module:
            statement = parents[statement]
        assert isinstance(statement, cst.BaseStatement)
        return statement, False

    def has(self, name: str) -> bool:
        return name in self.call.module.facts.bindings


def operator_fix(call: Call, kernel: Kernel, ctx: Context) -> Fix:
    """The call as a call of an operator that is written beside the kernel."""
    place = _place(call, kernel, ctx)
    parameters = [_parameter(each, place) for each in _written(call, kernel)]
    tensors = [each for each in parameters if each.is_tensor]
    if not tensors:
        raise Withheld(NOT_CONVERTED)
    written = [each.name for each in tensors if may_write(kernel, each.name)]
    if returns_nothing(kernel):
        return _in_place(place, parameters, written)
    if written:
        raise Withheld(MUTATES)
    result = result_of(kernel)
    if result is None or result.like not in {each.name for each in tensors}:
        raise Withheld(NO_RESULT)
    if kernel.maker in UFUNCS and len(tensors) > 1:
        raise Withheld(NO_RESULT)
    operator = f"{place.name}_op"
    edits: dict[cst.CSTNode, Replacement] = {}
    called = _called(place, operator, parameters)
    for node, new in _ways_back(place):
        if result.width is Width.WIDENED and not _is_cast(node, place):
            raise Withheld(WIDENED)
        edits[node] = called if new is None else new
    if all(isinstance(new, cst.Name) for new in edits.values()):
        edits[call.node] = called
    definition = _with_result(place, operator, parameters, result)
    return _fix(place, operator, definition, edits)


def disabled_fix(call: Call, kernel: Kernel, ctx: Context) -> Fix:
    """The call behind a function that Dynamo does not enter: one clean break."""
    if set(call.regions) != {RegionKind.COMPILE} or call.fullgraph:
        raise Withheld("")
    place = _place(call, kernel, ctx)
    name = f"{place.name}_eager"
    definition = (
        f"@torch.compiler.disable\ndef {name}(*args, **kwargs):\n"
        f"    return {place.name}(*args, **kwargs)\n"
    )
    edits: dict[cst.CSTNode, Replacement] = {call.node.func: cst.Name(name)}
    title = f"Call it as `{name}`, outside of the graph: its one break stays"
    return _fix(place, name, definition, edits, title)


def _place(call: Call, kernel: Kernel, ctx: Context) -> Place:
    function = call.node.func
    if not isinstance(function, cst.Name) or function.value not in call.module.facts.bindings:
        raise Withheld(NOT_GLOBAL)
    around = function_of(call.node, ctx.module)
    if around is not None and function.value in names_written(around):
        raise Withheld(NOT_GLOBAL)
    if is_optional("torch", call.module):
        raise Withheld(OPTIONAL)
    return Place(call, kernel, function.value, ctx)


def _fix(
    place: Place,
    name: str,
    definition: str,
    edits: dict[cst.CSTNode, Replacement],
    title: str = "",
) -> Fix:
    if place.has(name):
        _check_same(place, definition)
    else:
        anchor, is_behind = place.before_or_after()
        new = cst.parse_module(definition).body
        first = new[0].with_changes(leading_lines=_blank(2))
        rest = [each.with_changes(leading_lines=_blank(2)) for each in new[1:]]
        if is_behind:
            edits[anchor] = cst.FlattenSentinel([anchor, first, *rest])
        else:
            edits.update(_in_front(anchor, [first, *rest], edits))
    title = title or f"Call it as the operator `{name}` ({_gradient(place)})"
    return Fix(Safety.UNSAFE, title, edits, ("torch",))


def _gradient(place: Place) -> str:
    """What becomes of the gradient: no formula is written that is not there."""
    function = place.call.function
    machine = place.call.moments[0].frame.machine
    if function is not None and machine.has_formula(function):
        assert function.cls is not None
        return f"its gradient stays that of `{function.cls.qualname}`"
    return "it has no gradient, as the kernel had none"


def _check_same(place: Place, definition: str) -> None:
    """An earlier fix has written it; anything else of this name is not ours to call."""
    if definition.partition("\n\n\n")[0] not in place.module.code:
        raise Withheld(TAKEN)


def _in_front(
    anchor: cst.BaseStatement,
    new: list[cst.BaseStatement],
    edits: dict[cst.CSTNode, Replacement],
) -> dict[cst.CSTNode, Replacement]:
    """The statement with its edits made, as a node that is replaced is not edited inside."""
    made = dict(edits)
    edited = anchor
    for node, replacement in made.items():
        assert isinstance(replacement, cst.CSTNode)
        changed = edited.deep_replace(node, replacement)
        assert isinstance(changed, cst.BaseStatement)
        edited = changed
    edits.clear()
    return {anchor: cst.FlattenSentinel([*new, edited])}


def _blank(count: int) -> list[cst.EmptyLine]:
    return [cst.EmptyLine(indent=False)] * count


# -- arguments -------------------------------------------------------------------------------


def _written(call: Call, kernel: Kernel) -> list[Argument]:
    found = list(arguments_of(call, kernel))
    if not found or any(each.node is None or not each.parameter for each in found):
        raise Withheld(NOT_WRITTEN)
    return found


def _parameter(argument: Argument, place: Place) -> Parameter:
    node = argument.node
    assert node is not None
    kind = _number(argument.value)
    if kind is not None:
        return Parameter(argument.parameter, kind, node, node.value)
    tensor = _tensor_of(node.value, place)
    return Parameter(argument.parameter, "torch.Tensor", node, tensor)


def _number(value: Value) -> str | None:
    if not isinstance(value, Static):
        return None
    kind = TYPES.get(type(value.const))
    if kind is None:
        raise Withheld(NOT_TYPED)
    return kind


def _tensor_of(node: cst.BaseExpression, place: Place) -> cst.BaseExpression:
    """`x` of `x.cpu().numpy()`; a `.detach()` stays, as the gradient is meant to end there."""
    value = place.call.value_of(node)
    if isinstance(value, Tensor) and value.framework is Framework.TORCH:
        if taking(place.kernel) is Taking.CONVERTS:
            return node
        raise Withheld(NOT_TYPED)  # only a number could be passed as it is
    inner, steps = node, 0
    while (
        isinstance(inner, cst.Call)
        and isinstance(inner.func, cst.Attribute)
        and inner.func.attr.value in ARRAY_STEPS
    ):
        inner, steps = inner.func.value, steps + 1
    value = place.call.value_of(inner)
    if steps and isinstance(value, Tensor) and value.framework is Framework.TORCH:
        return inner
    raise Withheld(NOT_CONVERTED)


# -- results ---------------------------------------------------------------------------------


def _ways_back(place: Place) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression | None]]:
    """Where the array becomes a tensor again, and what stands there instead: None for the
    call of the operator itself, else the name that then holds a tensor."""
    call = place.call
    parents = parents_of(place.module)
    argument = parents[call.node]
    around = parents.get(argument)
    if isinstance(around, cst.Call) and _is_to_tensor(around, place):
        yield around, None
        return
    if isinstance(argument, cst.Assign) and len(argument.targets) == 1:
        target = argument.targets[0].target
        if isinstance(target, cst.Name):
            yield from _reads_back(target.value, place)
            return
    if any(isinstance(value, Tensor) and _is_torch(value) for value in call.positional):
        yield call.node, None  # a ufunc that was given a tensor returns one
        return
    raise Withheld(NOT_BACK)


def _is_torch(tensor: Tensor) -> bool:
    return tensor.framework is Framework.TORCH


def _is_to_tensor(node: cst.Call, place: Place) -> bool:
    value = place.call.value_of(node.func)
    return isinstance(value, External) and value.name in TO_TENSOR and len(node.args) == 1


def _reads_back(name: str, place: Place) -> Iterator[tuple[cst.BaseExpression, cst.Name]]:
    """Every read of the array's name is one that makes a tensor of it."""
    function = function_of(place.call.node, place.module)
    if function is None:
        raise Withheld(NOT_BACK)
    parents = parents_of(place.module)
    found = [node for node in found_in(function.body, cst.Name) if node.value == name]
    statement = parents[place.call.node]
    for node in found:
        if isinstance(parents[node], cst.AssignTarget) and parents[parents[node]] is statement:
            continue
        around = parents.get(parents[node])
        if not isinstance(around, cst.Call) or not _is_to_tensor(around, place):
            raise Withheld(NOT_BACK)
        yield around, cst.Name(name)


def _is_cast(node: cst.BaseExpression, place: Place) -> bool:
    """`node.to(x.dtype)`: the wider dtype is gone at once."""
    parents = parents_of(place.module)
    attribute = parents[node]
    return (
        isinstance(attribute, cst.Attribute)
        and attribute.attr.value in CASTS
        and isinstance(parents[attribute], cst.Call)
    )


# -- code ------------------------------------------------------------------------------------


def _called(place: Place, operator: str, parameters: list[Parameter]) -> cst.Call:
    arguments = [each.node.with_changes(value=each.new) for each in parameters]
    return place.call.node.with_changes(func=cst.Name(operator), args=arguments)


def _head(place: Place, operator: str, parameters: list[Parameter], mutated: list[str]) -> str:
    space = re.sub(r"\W", "_", place.ctx.path.stem) or "kernels"
    written = "".join(f'"{name}", ' for name in mutated)
    typed = ", ".join(f"{each.name}: {each.annotation}" for each in parameters)
    target = "None" if mutated else "torch.Tensor"
    return (
        f'@torch.library.custom_op("{space}::{place.name}", mutates_args=({written.strip()}))\n'
        f"def {operator}({typed}) -> {target}:\n"
    )


def _with_result(place: Place, operator: str, parameters: list[Parameter], result: Result) -> str:
    """The operator and its fake, for a kernel that returns a new array."""
    names = ", ".join(each.name for each in parameters)
    like = result.like
    return (
        _head(place, operator, parameters, [])
        + _result_line(place, parameters)
        + f"    return result.to(dtype={like}.dtype, device={like}.device)\n\n\n"
        + f"@{operator}.register_fake\n"
        + f"def _({names}):\n"
        + f"    return torch.empty({like}.shape, dtype={like}.dtype, device={like}.device)\n"
    )


def _result_line(place: Place, parameters: list[Parameter]) -> str:
    passed = [
        f"{each.name}.detach().cpu().contiguous().numpy()" if each.is_tensor else each.name
        for each in parameters
    ]
    maker = "as_tensor" if place.kernel.maker in UFUNCS else "from_numpy"
    line = f"    result = torch.{maker}({place.name}({', '.join(passed)}))\n"
    if len(line) <= LINE_LENGTH:
        return line
    arguments = "".join(f"            {each},\n" for each in passed)
    return f"    result = torch.{maker}(\n        {place.name}(\n{arguments}        )\n    )\n"


def _in_place(place: Place, parameters: list[Parameter], written: list[str]) -> Fix:
    """A kernel that only writes: the operator says into which argument."""
    if not isinstance(parents_of(place.module)[place.call.node], cst.Expr):
        raise Withheld(NOT_BACK)
    if not written or any(each.is_tensor and each.name not in written for each in parameters):
        raise Withheld(MUTATES)
    operator = f"{place.name}_op"
    passed = ", ".join(
        f"{each.name}.detach().numpy()" if each.is_tensor else each.name for each in parameters
    )
    definition = _head(place, operator, parameters, written) + f"    {place.name}({passed})\n"
    edits: dict[cst.CSTNode, Replacement] = {place.call.node: _called(place, operator, parameters)}
    return _fix(place, operator, definition, edits)
