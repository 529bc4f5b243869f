"""What Python does once, while TensorFlow or torch.jit.trace turns a function into a graph.

Both run the function to see which operators it calls. What else it does (it prints, draws a
number, appends to a list) is done then, and not when the graph runs.
"""

from collections.abc import Iterable

import libcst as cst

from jitlint.analysis.frame import Frame
from jitlint.analysis.observations import Freeze
from jitlint.analysis.operators import leaves_of
from jitlint.analysis.values import (
    UNKNOWN,
    Dataset,
    Dict,
    External,
    Framework,
    Instance,
    Sequence,
    Source,
    Static,
    Tensor,
    Tuple,
    Unknown,
    Value,
    is_tensor,
)
from jitlint.project.modules import FunctionInfo
from jitlint.region import RegionKind

ENVIRONMENT = "os.environ"
ENVIRONMENT_READS = frozenset({"os.getenv", "os.environ.get"})
CACHES = frozenset({"functools.lru_cache", "functools.cache"})
CONVERSIONS = frozenset({"builtins.int", "builtins.float", "builtins.complex"})
CONVERTED = frozenset({RegionKind.GRAPH, RegionKind.XLA})
"""Regions whose source AutoGraph rewrites."""


def by_function(frame: Frame, name: str, given: list[Value], node: cst.BaseExpression) -> None:
    """A function of a library is called in a region that records operators."""
    table = frame.machine.tracing
    if not frame.records and frame.machine.torch.standard(name) is not None:
        return  # what torch.export makes of it is in the table of torch
    takes_next = name == "builtins.next" and bool(given) and _is_iterator(given[0])
    if takes_next or table.lists("varies", name):
        _note(frame, node, Freeze.VARIES, name)
    elif frame.records and table.lists("writes", name):
        _note(frame, node, Freeze.EFFECT, name)
    elif name in ENVIRONMENT_READS:
        _note(frame, node, Freeze.STATE, ENVIRONMENT)
    elif frame.in_graph:
        _of_symbolic(frame, name, given, node)


def _is_iterator(value: Value) -> bool:
    """An iterator of Python's; that of a `tf.data.Dataset` is part of the graph."""
    return isinstance(value, Tuple | Sequence)


def _of_symbolic(frame: Frame, name: str, given: list[Value], node: cst.BaseExpression) -> None:
    """NumPy and `math` ask a tensor for its value, which there is none of in a graph."""
    tensor = next(filter(_is_symbolic, leaves_of(given)), None)
    if tensor is None:
        return
    asks = name.startswith(("numpy.", "math."))
    asks = asks or (name == "builtins.bool" and _is_symbolic(given[0]))
    asks = asks or (name in CONVERSIONS and _is_plain(frame) and _is_symbolic(given[0]))
    if asks:
        _note(frame, node, Freeze.DATA, name, tensor)


def _is_symbolic(value: Value) -> bool:
    is_graph = isinstance(value, Tensor) and value.framework is Framework.TENSORFLOW
    return is_graph and isinstance(value, Tensor) and not value.maybe


def _is_plain(frame: Frame) -> bool:
    return frame.region is not None and frame.region.kind not in CONVERTED


def by_method(frame: Frame, receiver: Value, name: str, node: cst.BaseExpression) -> None:
    """A method of a tensor that only an eager one has."""
    if frame.in_graph and _is_symbolic(receiver):
        table = frame.machine.table_of("tensorflow.Tensor")
        if table.lists("eager_only", name):
            _note(frame, node, Freeze.DATA, name, receiver)


def by_cached(
    frame: Frame, function: FunctionInfo, given: Iterable[Value], node: cst.CSTNode
) -> None:
    """A function that remembers its results needs arguments that can be hashed."""
    if any(map(_is_symbolic, given)) and frame.machine.decorator_names(function) & CACHES:
        _note(frame, node, Freeze.HASH, function.name)


# -- state of Python -----------------------------------------------------------------------

GROWS = frozenset(
    {
        *("append", "appendleft", "extend", "insert", "add", "update", "pop", "popleft"),
        *("remove", "clear", "setdefault", "popitem", "discard", "sort", "reverse"),
    }
)
"""Methods that change a list, a set, a deque or a dict (those of the builtin types)."""


def by_container(frame: Frame, name: str, given: list[Value], node: cst.BaseExpression) -> None:
    """A method of a list or a dict, which changes it."""
    if name not in GROWS or not isinstance(node, cst.Call):
        return
    if not all(isinstance(value, Tensor | Static) for value in leaves_of(given)):
        return  # layers that are made at the first call are kept in lists
    if isinstance(node.func, cst.Attribute) and _is_outer(frame, node.func.value):
        _note(frame, node, Freeze.EFFECT, name)


def by_item(frame: Frame, target: cst.Subscript, container: Value, value: Value) -> None:
    """A tensor is stored in a list or a dict."""
    is_container = isinstance(container, Dict | Sequence | Tuple) and isinstance(value, Tensor)
    if is_container and _is_outer(frame, target.value):
        _note(frame, target, Freeze.EFFECT, "[]=")


def _is_outer(frame: Frame, node: cst.BaseExpression) -> bool:
    """Whether a container was there before the call: a global, an attribute of `self`, or a
    local list of a loop that AutoGraph makes an operator of."""
    from jitlint.analysis.expressions import evaluate_target_path

    path = evaluate_target_path(node)
    if path is None:
        return False
    if any(path in loop.outside for loop in frame.loops):
        return True
    if path in frame.variables:
        return False
    root = path.partition(".")[0]
    return root not in frame.variables or isinstance(frame.variables[root], Instance)


def by_store(frame: Frame, target: cst.CSTNode, old: Value, value: cst.CSTNode | None) -> None:
    """`self.n += 1`, `self.n = self.n + 1` (`value`), and a global of the same kind."""
    from jitlint.analysis.expressions import evaluate, evaluate_target_path

    path = evaluate_target_path(target)
    if path is None:
        return
    if isinstance(target, cst.Name):
        if target.value in frame.globals:
            _note(frame, target, Freeze.EFFECT, target.value)
        return
    assert isinstance(target, cst.Attribute)
    if not isinstance(evaluate(frame, target.value), Instance):
        return
    counts = isinstance(old, Static) and old.source is Source.PYTHON
    if value is None:
        if counts:
            _note(frame, target, Freeze.EFFECT, path)
    elif (counts or (frame.tracer and is_tensor(old))) and _mentions(value, path):
        _note(frame, target, Freeze.EFFECT, path)


def _mentions(node: cst.CSTNode, path: str) -> bool:
    from jitlint.analysis.expressions import evaluate_target_path

    if isinstance(node, cst.Attribute) and evaluate_target_path(node) == path:
        return True
    return any(_mentions(child, path) for child in node.children)


def outside_of_loop(frame: Frame, iterated: Value) -> frozenset[str]:
    """The variables before a loop over a tensor, if AutoGraph makes an operator of the loop."""
    converted = frame.region is not None and frame.region.kind in CONVERTED
    is_operator = converted and (_is_symbolic(iterated) or isinstance(iterated, Dataset))
    return frozenset(frame.variables) if is_operator else frozenset()


def by_key(frame: Frame, container: Value, index: Value | None, node: cst.Subscript) -> None:
    """A tensor is looked up in a dict."""
    if frame.in_graph and isinstance(container, Dict) and index is not None and _is_symbolic(index):
        _note(frame, node, Freeze.HASH, "a dict")


def by_environment(frame: Frame, container: Value, node: cst.BaseExpression) -> None:
    if container == External(ENVIRONMENT):
        _note(frame, node, Freeze.STATE, ENVIRONMENT)


def note_item_store(frame: Frame, target: cst.Subscript) -> None:
    """Python stores an item of a dict that is a global, or an attribute of an object."""
    from jitlint.analysis.expressions import evaluate

    match target.value:
        case cst.Name(value=name) if name not in frame.variables:
            frame.machine.changes.note(frame.module, name, target, frame)
        case cst.Attribute(value=owner, attr=cst.Name(value=name)):
            receiver = evaluate(frame, owner)
            if isinstance(receiver, Instance):
                frame.machine.changes.note(receiver.cls, name, target, frame)


def by_name(frame: Frame, node: cst.Name, value: Value) -> None:
    """A global that is another one later."""
    if _is_plain_value(value) and frame.machine.changes.of(frame.module, node.value, frame):
        _note(frame, node, Freeze.STATE, node.value)


def by_attribute(frame: Frame, receiver: Value, node: cst.Attribute, value: Value) -> None:
    """An attribute of an object that is another one later."""
    if not isinstance(receiver, Instance) or not _is_plain_value(value):
        return
    classes = frame.machine.mro(receiver.cls)
    if any(frame.machine.changes.of(cls, node.attr.value, frame) for cls in classes):
        _note(frame, node, Freeze.STATE, node.attr.value)


def _is_plain_value(value: Value) -> bool:
    """Data, and no code."""
    is_static = isinstance(value, Static) and value.source is Source.PYTHON
    return is_static or isinstance(value, Tensor | Dict | Unknown)


def _note(
    frame: Frame, node: cst.CSTNode, freeze: Freeze, name: str, value: Value = UNKNOWN
) -> None:
    frame.observe_frozen(node, freeze, name, "frozen", value)
