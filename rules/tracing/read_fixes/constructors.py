"""`torch.tensor([a.item(), b.item()])`: tensors that are read, to be made tensors again."""

from collections.abc import Callable, Iterator

import libcst as cst

from jitlint.analysis import scope
from jitlint.analysis.observations import Operation
from jitlint.analysis.tree import ancestors_of
from jitlint.analysis.values import External
from jitlint.finding import Fix
from jitlint.rule import Context

from ..branch_fixes.arms import parenthesized
from ..branch_fixes.dtypes import NOTHING, is_floating
from ..branch_fixes.emit import TIGHT, conditional_fix
from ..branch_fixes.profile import Describer
from ..branch_fixes.withheld import NotMine, Withheld
from .places import kept
from .promotion import Category, Kept
from .reads import Conversion, Read, read_of
from .rewriting import method

OPTIONS = frozenset({"dtype", "device"})


def rebuilt(operation: Operation, ctx: Context) -> Fix:
    """The tensors themselves, stacked, in the dtype that the numbers got."""
    call = _constructor(operation, ctx)
    describer = Describer(operation, scope.statement_of(call, ctx.module))
    options = {each.keyword.value: each.value for each in call.args[1:] if each.keyword}
    if len(options) != len(call.args) - 1 or set(options) - OPTIONS:
        raise Withheld("the new tensor has options that a stack of others has not")
    given = call.args[0].value
    reads = [_read(each, operation) for each in _items(given)]
    spelling = scope.Spelling(operation.module, operation.node)
    tensors = [_tensor(each, describer) for each in reads]
    conditions: dict[str, None] = {}
    if "device" not in options:
        names = "`, `".join(dict.fromkeys(_code(describer, each.tensor) for each in reads))
        conditions[f"`{names}` {'is' if len(reads) == 1 else 'are'} on the default device"] = None
    if isinstance(given, cst.List | cst.Tuple):
        items = [cst.Element(each) for each in tensors]
        new: cst.BaseExpression = cst.Call(spelling.of("stack"), [cst.Arg(cst.List(items))])
    else:
        new = method(tensors[0], "clone")
    arguments = list(_casts(reads, options, describer, spelling, conditions))
    if arguments:
        new = cst.Call(cst.Attribute(new, cst.Name("to")), arguments)
    title = f"Use `{ctx.module.code_for_node(spelling.of('stack'))}`"
    if not isinstance(given, cst.List | cst.Tuple):
        title = "Copy the tensor"
    return conditional_fix(title, conditions, {call: new}, spelling.imports())


FIXERS: tuple[Callable[[Operation, Context], Fix], ...] = (rebuilt,)


def _constructor(operation: Operation, ctx: Context) -> cst.Call:
    """The `torch.tensor(…)` around a read, with at most one list between."""
    for node in ancestors_of(operation.node, ctx.module):
        match node:
            case cst.Arg() | cst.Element() | cst.List() | cst.Tuple():
                continue
            case cst.Call(args=[_, *_]):
                function = operation.value_of(node.func)
                is_plain = not node.args[0].star and node.args[0].keyword is None
                if isinstance(function, External) and function.name == "torch.tensor" and is_plain:
                    return node
        break
    raise NotMine


def _items(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(node, cst.List | cst.Tuple):
        return [each.value for each in node.elements if isinstance(each, cst.Element)]
    return [node]


def _read(node: cst.BaseExpression, operation: Operation) -> Read:
    read = read_of(node, operation)
    if read is None:
        raise Withheld("not all of the numbers are read from tensors")
    return read


def _tensor(read: Read, describer: Describer) -> cst.BaseExpression:
    tensor = kept(describer, read.tensor)
    new = parenthesized(read.tensor)
    if tensor.profile is None or tensor.profile.sources:
        new = method(new, "detach")
    if tensor.rank != 0:
        new = method(new, "reshape", cst.Tuple([]))
    return new


def _casts(
    reads: list[Read],
    options: dict[str, cst.BaseExpression],
    describer: Describer,
    spelling: scope.Spelling,
    conditions: dict[str, None],
) -> Iterator[cst.Arg]:
    """The arguments of `.to(…)`: numbers get the default dtype, or int64, or the one asked for."""
    if "device" in options:
        yield cst.Arg(options["device"], keyword=cst.Name("device"), equal=TIGHT)
    if "dtype" in options:
        yield cst.Arg(options["dtype"], keyword=cst.Name("dtype"), equal=TIGHT)
        return
    categories = {_category(read, describer) for read in reads}
    if len(categories) > 1:
        raise Withheld("the numbers are of different types")
    match categories.pop():
        case Category.WHOLE:
            dtype: cst.BaseExpression = spelling.of("int64")
        case Category.BOOL:
            return
        case Category.FLOATING:
            dtype = cst.Call(spelling.of("get_default_dtype"))
        case _:
            for read in reads:
                tensor = kept(describer, read.tensor)
                conditions[f"`{_name(tensor)}` is floating"] = None
            dtype = cst.Call(spelling.of("get_default_dtype"))
    yield cst.Arg(dtype, keyword=cst.Name("dtype"), equal=TIGHT)


def _category(read: Read, describer: Describer) -> Category:
    if read.conversion is Conversion.FLOAT:
        return Category.FLOATING
    found = kept(describer, read.tensor).category(NOTHING)
    if read.conversion is Conversion.INT and found is not Category.WHOLE:
        raise Withheld("`int()` raises for numbers that are not finite")
    return found


def _name(tensor: Kept) -> str:
    leaves = tensor.dtype.leaves if tensor.dtype is not None else frozenset()
    names = [leaf for leaf in leaves if leaf.isidentifier() and not is_floating(leaf)]
    return names[0] if len(names) == 1 == len(leaves) else tensor.code


def _code(describer: Describer, node: cst.CSTNode) -> str:
    return " ".join(describer.code(node).split())
