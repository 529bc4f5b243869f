"""What a kernel is: how it takes its arguments, and what it does to them."""

import enum
from collections.abc import Iterator

import libcst as cst

from jitlint.analysis.tree import nodes_in
from jitlint.analysis.values import Function, Kernel, Static
from jitlint.project.modules import FunctionInfo


class Taking(enum.Enum):
    """What a kernel does with an argument that is no NumPy array."""

    REFUSES = "refuses"
    CONVERTS = "converts"
    IGNORES = "ignores"


UFUNCS = frozenset({"numba.vectorize", "numba.guvectorize"})
NOPYTHON = frozenset({"numba.njit", "numba.jit", "numba.stencil"})


def taking(kernel: Kernel) -> Taking:
    """A ufunc with signatures converts by `__array__`; object mode takes anything."""
    if kernel.maker in UFUNCS:
        return Taking.CONVERTS if _has_signatures(kernel) else Taking.REFUSES
    options = dict(kernel.options)
    if kernel.maker in NOPYTHON and options.get("forceobj") != Static(True):
        return Taking.REFUSES
    return Taking.IGNORES


def _has_signatures(kernel: Kernel) -> bool:
    """`guvectorize("(n)->(n)")` gives a layout only; its types follow from the call."""
    given = dict(kernel.options).get("signature")
    is_layout = isinstance(given, Static) and "->" in str(given.const)
    return kernel.signatures and not is_layout


def body_of(kernel: Kernel) -> FunctionInfo | None:
    return kernel.function.info if isinstance(kernel.function, Function) else None


def parameters_of(kernel: Kernel) -> list[str]:
    info = body_of(kernel)
    return [] if info is None else [each.name.value for each in info.parameters]


# -- writes ----------------------------------------------------------------------------------

MUTATORS = frozenset({"fill", "sort", "partition", "put", "itemset", "resize", "setflags"})
VIEWS = frozenset(
    {"reshape", "ravel", "view", "transpose", "T", "flat", "squeeze", "swapaxes", "real", "imag"}
)
READERS = frozenset(
    {"len", "range", "enumerate", "zip", "min", "max", "sum", "abs", "int", "float", "bool"}
    | {"prange", "print", "sorted", "round", "isinstance", "str", "hasattr", "type", "reversed"}
)


def may_write(kernel: Kernel, parameter: str) -> bool:
    """Whether the kernel may store into the memory of an argument. In doubt, yes."""
    info = body_of(kernel)
    if info is None:
        return True
    views = {parameter}
    while True:
        more = views | {name for node in nodes_in(info.node.body) for name in _aliases(node, views)}
        if more == views:
            break
        views = more
    return any(_writes(node, views) for node in nodes_in(info.node.body))


def _aliases(node: cst.CSTNode, views: set[str]) -> Iterator[str]:
    """Names that this statement makes look into the same memory."""
    match node:
        case cst.Assign(targets=targets, value=value) if _looks_into(value, views):
            yield from (name for each in targets for name in _names(each.target))
        case cst.For(target=target, iter=iterable) if _looks_into(iterable, views):
            yield from _names(target)
        case cst.NamedExpr(target=cst.Name(value=name), value=value) if _looks_into(value, views):
            yield name


def _names(target: cst.BaseExpression) -> Iterator[str]:
    match target:
        case cst.Name(value=name):
            yield name
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from _names(element.value)


def _looks_into(node: cst.BaseExpression, views: set[str]) -> bool:
    match node:
        case cst.Name(value=name):
            return name in views
        case cst.Subscript(value=value):
            return _looks_into(value, views)
        case cst.Attribute(value=value, attr=cst.Name(value=name)):
            return name in VIEWS and _looks_into(value, views)
        case cst.Call(func=cst.Attribute(value=value, attr=cst.Name(value=name)), args=arguments):
            if name in VIEWS | {"asarray", "ascontiguousarray", "atleast_1d", "atleast_2d"}:
                return _looks_into(value, views) or any(
                    _looks_into(each.value, views) for each in arguments
                )
            return False
        case cst.Call(func=cst.Name(value="enumerate" | "zip" | "reversed"), args=arguments):
            return any(_looks_into(each.value, views) for each in arguments)
        case cst.IfExp(body=body, orelse=orelse):
            return _looks_into(body, views) or _looks_into(orelse, views)
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return any(_looks_into(each.value, views) for each in elements)
    return False


def _writes(node: cst.CSTNode, views: set[str]) -> bool:
    match node:
        case cst.Assign(targets=targets):
            return any(_stores(each.target, views) for each in targets)
        case cst.AugAssign(target=target):
            return _looks_into(target, views)
        case cst.For(target=target):
            return _stores(target, views)
        case cst.Call():
            return _call_writes(node, views)
    return False


def _stores(target: cst.BaseExpression, views: set[str]) -> bool:
    if isinstance(target, cst.Tuple | cst.List):
        return any(_stores(each.value, views) for each in target.elements)
    return isinstance(target, cst.Subscript) and _looks_into(target.value, views)


def _call_writes(node: cst.Call, views: set[str]) -> bool:
    """Methods that change their array, `out=`, and functions that nothing is known of."""
    passed = [each for each in node.args if _looks_into(each.value, views)]
    match node.func:
        case cst.Name(value=name):
            return bool(passed) and name not in READERS
        case cst.Attribute(value=value, attr=cst.Name(value=name)):
            if _looks_into(value, views):
                return name in MUTATORS
            is_numpy = isinstance(value, cst.Name) and value.value in ("np", "numpy", "math")
            is_output = any(each.keyword is not None for each in passed)
            return bool(passed) and (is_output or not is_numpy or name in ("copyto", "put"))
    return bool(passed)
