"""The rewrites of `trace-baked-value`: forms that a trace records, each with what must hold."""

from collections.abc import Callable

import libcst as cst

from jitlint.analysis.observations import Freeze, Frozen
from jitlint.analysis.tree import parents_of
from jitlint.analysis.values import (
    Source,
    Static,
    Tensor,
    Value,
    is_tensor,
)
from jitlint.finding import Fix, Safety
from jitlint.region import GRAPHS
from jitlint.rule import Context

Result = tuple[Fix | None, str | None]

REASONS = {
    Freeze.DATA: "keep the value a tensor: a trace records operators, and no Python numbers",
    Freeze.SIZE: "a trace records sizes and their arithmetic (`+ - * / // % **`); what needs a "
    "Python number belongs into a `@torch.jit.script` function",
    Freeze.METADATA: "no operator of torch makes this with the dtype and the device that "
    "another tensor has when the trace runs; `x.new_zeros(n)`, `torch.zeros_like(x)` and "
    "`y.type_as(x)` do",
    Freeze.CAST: "only `y.type_as(x)` is recorded",
    Freeze.COPY: "`x.detach().clone()` is recorded, but is another kind of object",
    Freeze.MODE: "which results the mode was meant for is not known: `.detach()` on them is "
    "recorded",
    Freeze.LOOP: "a trace has no loops: use an operator on the whole tensor, or a "
    "`@torch.jit.script` function",
    Freeze.RESULT: "a trace returns tensors: return the tensor itself, or read the size from it "
    "in the caller",
    Freeze.VARIES: "pass the value as an argument, or draw it with an operator of the "
    "framework, which draws other numbers",
    Freeze.STATE: "pass the value as an argument, or keep it in a buffer (torch) or a "
    "`tf.Variable`",
}
"""Why there is no fix, where there is none."""


class NotMineError(Exception):
    """The fix does not apply; there may be another."""


def fix_for(frozen: Frozen, ctx: Context) -> Result:
    in_graph = any(kind in GRAPHS for kind in frozen.regions)
    for rewrite in () if in_graph else REWRITES.get(frozen.freeze, ()):
        try:
            return rewrite(frozen, ctx), None
        except NotMineError:
            continue
    return None, REASONS[frozen.freeze]


def _require(condition: object) -> None:
    if not condition:
        raise NotMineError


def _call_of(frozen: Frozen) -> cst.Call:
    if not isinstance(frozen.node, cst.Call):
        raise NotMineError
    return frozen.node


def _only_argument(call: cst.Call) -> cst.BaseExpression:
    _require(len(call.args) == 1 and call.args[0].keyword is None and not call.args[0].star)
    return call.args[0].value


def _method(receiver: cst.BaseExpression, name: str, args: tuple[cst.Arg, ...] = ()) -> cst.Call:
    return cst.Call(cst.Attribute(_closed(receiver), cst.Name(name)), args)


def _closed(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression that an attribute or an operator may follow."""
    tight = cst.Name | cst.Attribute | cst.Call | cst.Subscript | cst.Integer
    if isinstance(node, tight) or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _is_evident(value: Value) -> bool:
    return isinstance(value, Tensor) and not value.maybe and not value.assumed


# -- sizes ---------------------------------------------------------------------------------


def _length(frozen: Frozen, ctx: Context) -> Fix:
    """`len(x)` → `x.shape[0]`."""
    _require(frozen.name == "builtins.len")
    argument = _only_argument(_call_of(frozen))
    _require(_is_evident(frozen.value_of(argument)))
    shape = cst.Attribute(_closed(argument), cst.Name("shape"))
    index = cst.SubscriptElement(cst.Index(cst.Integer("0")))
    size = cst.Subscript(shape, [index])
    title = "Read the size of the tensor (without dimensions another exception is raised)"
    return Fix(Safety.UNSAFE, title, {frozen.node: size})


def _root(frozen: Frozen, ctx: Context) -> Fix:
    """`math.sqrt(n)` → `n ** 0.5`."""
    _require(frozen.name == "math.sqrt")
    argument = _only_argument(_call_of(frozen))
    _require(_is_size(frozen, argument))
    power: cst.BaseExpression = cst.BinaryOperation(
        _closed(argument), cst.Power(), cst.Float("0.5")
    )
    parent = parents_of(ctx.module)[frozen.node]
    if not isinstance(parent, cst.BinaryOperation) or isinstance(parent.operator, cst.Power):
        power = _placed(power, frozen.node, ctx)
    title = "Take the root by `**` (which may differ in the last bit; in a trace it is float32)"
    return Fix(Safety.UNSAFE, title, {frozen.node: power})


def _placed(node: cst.BaseExpression, instead_of: cst.CSTNode, ctx: Context) -> cst.BaseExpression:
    """An operation in parentheses, where it becomes an operand."""
    operand = cst.BinaryOperation | cst.UnaryOperation | cst.Attribute | cst.Subscript
    if isinstance(parents_of(ctx.module)[instead_of], operand):
        return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return node


def _whole(frozen: Frozen, ctx: Context) -> Fix:
    """`int(n / 2)` → `n // 2`, and `int(n)` → `n`."""
    _require(frozen.name in ("builtins.int", "math.floor"))
    argument = _only_argument(_call_of(frozen))
    rounded: cst.BaseExpression
    match argument:
        case cst.BinaryOperation(operator=cst.Divide(), right=cst.Integer(value=digits)):
            _require(_is_size(frozen, argument.left) and int(digits, 0) > 0)
            divided = cst.BinaryOperation(argument.left, cst.FloorDivide(), argument.right)
            rounded = _placed(divided, frozen.node, ctx)
        case cst.Subscript() | cst.Name() | cst.Call():
            _require(_is_size(frozen, argument) and _is_whole(frozen, argument))
            rounded = argument
        case _:
            raise NotMineError
    title = "Keep the size, which a trace records, a size"
    return Fix(Safety.UNSAFE, title, {frozen.node: rounded})


def _is_size(frozen: Frozen, node: cst.BaseExpression) -> bool:
    value = frozen.value_of(node)
    return isinstance(value, Static) and value.source is Source.SHAPE


def _is_whole(frozen: Frozen, node: cst.BaseExpression) -> bool:
    """Whether an expression reads a size itself, so that it is an int."""
    match node:
        case cst.Subscript(value=cst.Attribute(attr=cst.Name(value="shape"), value=tensor)):
            return is_tensor(frozen.value_of(tensor))
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="size" | "numel"), value=tensor)):
            return is_tensor(frozen.value_of(tensor))
    return False


# -- dtype and device ----------------------------------------------------------------------

FACTORIES = {
    "torch.zeros": "new_zeros",
    "torch.ones": "new_ones",
    "torch.empty": "new_empty",
    "torch.full": "new_full",
}
DRAWN = {"torch.rand": "uniform_", "torch.randn": "normal_"}
"""The method that draws the same numbers into a new tensor (measured, for each dtype)."""


def _new(frozen: Frozen, ctx: Context) -> Fix:
    """`torch.zeros(n, dtype=x.dtype, device=x.device)` → `x.new_zeros(n)`."""
    _require(frozen.name in FACTORIES or frozen.name in DRAWN)
    call = _call_of(frozen)
    keywords = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
    like = [_owner(keywords.get(name), name) for name in ("dtype", "device")]
    owners = [each for each in like if each is not None]
    _require(owners and all(each.deep_equals(owners[0]) for each in owners))
    owner = owners[0]
    _require(_is_evident(frozen.value_of(owner)) and "out" not in keywords)
    taken = {name for name, each in zip(("dtype", "device"), like, strict=True) if each is not None}
    rest = [arg for arg in call.args if arg.keyword is None or arg.keyword.value not in taken]
    _require(rest)
    rest[-1] = rest[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    made = _method(owner, FACTORIES.get(frozen.name, "new_empty"), tuple(rest))
    if frozen.name in DRAWN:
        _require("requires_grad" not in keywords and "generator" not in keywords)
        made = _method(made, DRAWN[frozen.name])
    text = ctx.module.code_for_node(owner)
    missing = [name for name, each in zip(("dtype", "device"), like, strict=True) if each is None]
    implicit = [name for name in missing if name not in keywords]
    title = f"Make it of `{text}`"
    if not implicit:
        return Fix(Safety.SAFE, title, {frozen.node: made})
    condition = " and ".join(f"the default {name}" for name in implicit)
    return Fix(Safety.UNSAFE, f"{title}, right if that is of {condition}", {frozen.node: made})


def _owner(node: cst.BaseExpression | None, attribute: str) -> cst.BaseExpression | None:
    match node:
        case cst.Attribute(value=cst.Name() as tensor, attr=cst.Name(value=name)):
            return tensor if name == attribute else None
    return None


def _type_as(frozen: Frozen, ctx: Context) -> Fix:
    """`a.to(b.dtype)` and `a.to(b)` → `a.type_as(b)`."""
    call = _call_of(frozen)
    _require(isinstance(call.func, cst.Attribute) and call.func.attr.value in ("to", "type"))
    assert isinstance(call.func, cst.Attribute)
    argument = _only_argument(call)
    receiver = frozen.value_of(call.func.value)
    other = argument if frozen.freeze is Freeze.CAST else _owner(argument, "dtype")
    _require(other is not None and _is_evident(receiver))
    assert other is not None
    given = frozen.value_of(other)
    _require(_is_evident(given))
    cast = _method(call.func.value, "type_as", (cst.Arg(other),))
    if frozen.freeze is Freeze.CAST:
        return Fix(Safety.SAFE, "Cast by `type_as`, which a trace records", {frozen.node: cast})
    title = "Cast by `type_as`, right if both tensors are on one device"
    return Fix(Safety.UNSAFE, title, {frozen.node: cast})


# -- data ----------------------------------------------------------------------------------

PURE_PARENTS = (cst.BinaryOperation, cst.Comparison, cst.ComparisonTarget)


def _detached(frozen: Frozen, ctx: Context) -> Fix:
    """`x.data` → `x.detach()`."""
    _require(frozen.name == "data" and isinstance(frozen.node, cst.Attribute))
    assert isinstance(frozen.node, cst.Attribute)
    detached = _method(frozen.node.value, "detach")
    parent = parents_of(ctx.module)[frozen.node]
    if isinstance(parent, PURE_PARENTS):
        title = "Detach the tensor, which a trace records"
        return Fix(Safety.SAFE, title, {frozen.node: detached})
    title = "Detach the tensor, right if nothing writes into the result"
    return Fix(Safety.UNSAFE, title, {frozen.node: detached})


def _kept(frozen: Frozen, ctx: Context) -> Fix:
    """`x * y.sum().item()` → `x * y.sum().detach()`."""
    parent = parents_of(ctx.module)[frozen.node]
    _require(isinstance(parent, cst.BinaryOperation))
    assert isinstance(parent, cst.BinaryOperation)
    other = parent.right if parent.left is frozen.node else parent.left
    tensor = _read_tensor(frozen)
    value, operand = frozen.value_of(tensor), frozen.value_of(other)
    _require(isinstance(value, Tensor) and value.rank == 0 and not value.is_bool)
    _require(isinstance(operand, Tensor) and not operand.maybe and operand.rank != 0)
    detached = _method(tensor, "detach")
    title = "Keep the number a tensor, right if both operands are of the same kind of number"
    return Fix(Safety.UNSAFE, title, {frozen.node: detached})


def _read_tensor(frozen: Frozen) -> cst.BaseExpression:
    call = _call_of(frozen)
    if frozen.name == "torch.Tensor.item":
        assert isinstance(call.func, cst.Attribute)
        return call.func.value
    _require(frozen.name == "builtins.float")
    return _only_argument(call)


REWRITES: dict[Freeze, tuple[Callable[[Frozen, Context], Fix], ...]] = {
    Freeze.SIZE: (_length, _root, _whole),
    Freeze.METADATA: (_new, _type_as),
    Freeze.CAST: (_type_as,),
    Freeze.COPY: (_detached,),
    Freeze.DATA: (_kept,),
}
