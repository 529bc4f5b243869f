"""Builtins and functions of the standard library that need more than a row of a table."""

import builtins
from dataclasses import replace

import libcst as cst

from jitlint.analysis import batches, narrowing, shapes
from jitlint.analysis.annotations import annotated_value
from jitlint.analysis.calls import Arguments, apply, handles, number_of, observe_order
from jitlint.analysis.frame import Frame
from jitlint.analysis.observations import Construct
from jitlint.analysis.operators import leaves_of, provenance, traits_of
from jitlint.analysis.values import (
    NONE,
    STATIC,
    UNKNOWN,
    Class,
    Dataset,
    Dict,
    Instance,
    Optional,
    Partial,
    Read,
    Sequence,
    Source,
    Static,
    StaticShape,
    Super,
    Tensor,
    Tuple,
    Unknown,
    Value,
    element_of,
    is_constant,
    is_none,
    is_tensor,
    join,
)


@handles("builtins.any", "builtins.all")
def _any(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    elements = arguments.first
    value = elements if is_tensor(elements) else element_of(elements)
    if is_tensor(value):
        frame.observe(node, value, Construct.BUILTIN, node)
        return Static(source=Source.DATA, read=Read(name.removeprefix("builtins.")))
    return STATIC


@handles("builtins.bool", "builtins.int", "builtins.float", "builtins.complex")
def _convert(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    value = arguments.first
    kind = name.removeprefix("builtins.")
    if kind != "bool":
        shapes.used(frame, node, value)
    if isinstance(value, Optional):
        value = value.value
    if is_tensor(value):
        return number_of([value], Read(kind, "GB0124"))
    if not isinstance(value, Static):
        return STATIC
    if is_constant(value) and isinstance(value.const, bool | int | float):
        try:
            return Static(getattr(builtins, kind)(value.const), value.source, value.read)
        except (TypeError, ValueError, OverflowError):
            return STATIC
    return Static(source=value.source, read=value.read)


@handles("builtins.len")
def _len(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    value = arguments.first
    if isinstance(value, StaticShape):
        if value.shape.lost is not None:
            frame.observe_need(value.shape.lost, node)
        return STATIC
    if is_tensor(value):
        return frame.machine.size_of(value)
    if isinstance(value, Instance):
        frame.machine.call_method(frame, value, "__len__", ())
    return Static(len(value.items)) if isinstance(value, Tuple) else STATIC


@handles("builtins.isinstance", "builtins.issubclass")
def _isinstance(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    if name == "builtins.isinstance" and isinstance(node, cst.Call) and len(node.args) == 2:
        classes = narrowing.classes_of(frame, node.args[1].value)
        decided = narrowing.instance_of(frame, arguments.first, classes)
        if decided is not None:
            return Static(decided)
    return STATIC


@handles("builtins.getattr")
def _getattr(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    values = arguments.positional
    if len(values) >= 2 and is_constant(values[1]) and isinstance(values[1].const, str):
        found = frame.machine.attribute(frame, values[0], values[1].const)
        if len(values) == 3 and isinstance(found, Unknown):
            return UNKNOWN
        return found
    return UNKNOWN


@handles("builtins.range")
def _range(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    shapes.used(frame, node, *arguments.positional)
    row = frame.machine.torch.construct("range_of_tensor")
    for bound in arguments.positional:
        if not is_tensor(bound):
            frame.observe_number(node, row, bound)
    bounds = [value for value in arguments.positional if isinstance(value, Static)]
    strongest = max((b.source for b in bounds), key=lambda s: s.value, default=Source.PYTHON)
    return Sequence(Static(source=strongest, varies=True))


@handles("builtins.enumerate")
def _enumerate(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    return Sequence(Tuple((STATIC, element_of(arguments.first))))


@handles("builtins.zip", "itertools.product", "itertools.zip_longest")
def _zip(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    if arguments.rest is not None:
        return UNKNOWN
    items = [element_of(value) for value in arguments.positional]
    if not all(any(batches.loaders_of(item)) for item in items):
        items = list(map(batches.whole, items))  # what else is gone through may be shorter
    return Sequence(Tuple(tuple(items)))


@handles("builtins.map")
def _map(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    function, *iterables = arguments.positional or [UNKNOWN]
    items = [element_of(value) for value in iterables]
    return Sequence(apply(frame, function, Arguments(items), node))


@handles("builtins.filter", "itertools.filterfalse", "itertools.takewhile", "itertools.dropwhile")
def _filter(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    if len(arguments.positional) != 2:
        return UNKNOWN
    function, items = arguments.positional
    element = element_of(items)
    kept = element if is_none(function) else apply(frame, function, Arguments([element]), node)
    if is_tensor(kept):
        frame.observe(node, kept, Construct.BUILTIN, node)
    return Sequence(element)


@handles("itertools.chain")
def _chain(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    if arguments.rest is not None or not arguments.positional:
        return UNKNOWN
    return Sequence(element_of(Tuple(tuple(map(element_of, arguments.positional)))))


@handles("itertools.islice")
def _part(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    return Sequence(batches.whole(element_of(arguments.first)))


@handles("itertools.cycle")
def _cycle(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    return Sequence(element_of(arguments.first))


@handles("itertools.pairwise", "itertools.combinations", "itertools.permutations")
def _groups(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    return Sequence(Sequence(element_of(arguments.first)))


@handles("itertools.groupby")
def _grouped(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    element = element_of(arguments.first)
    key = arguments.get(1, "key")
    if key is None:
        return Sequence(Tuple((element, Sequence(element))))
    by = apply(frame, key, Arguments([element]), node)
    if is_tensor(by):
        frame.observe(node, by, Construct.BUILTIN, node)
    return Sequence(Tuple((by, Sequence(element))))


@handles("itertools.accumulate")
def _accumulate(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    element = element_of(arguments.first)
    function = arguments.get(1, "func")
    if function is None:
        return Sequence(element)
    return Sequence(join(element, apply(frame, function, Arguments([element, element]), node)))


@handles("itertools.starmap")
def _starmap(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    if len(arguments.positional) != 2:
        return UNKNOWN
    function, items = arguments.positional
    item = element_of(items)
    given = Arguments(list(item.items)) if isinstance(item, Tuple) else Arguments(rest=UNKNOWN)
    return Sequence(apply(frame, function, given, node))


@handles("functools.reduce")
def _reduce(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    if len(arguments.positional) < 2:
        return UNKNOWN
    function, items, *start = arguments.positional
    element = element_of(items)
    first = start[0] if start else element
    return join(first, apply(frame, function, Arguments([first, element]), node))


@handles(
    *("builtins.list", "builtins.tuple", "builtins.set", "builtins.frozenset"),
    *("builtins.iter", "builtins.reversed", "collections.deque"),
)
def _collect(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    if not arguments.positional:
        return Tuple(())
    value = arguments.positional[0]
    if isinstance(value, Tuple | StaticShape) and name != "builtins.reversed":
        return value
    if isinstance(value, Dataset | Unknown) and name == "builtins.iter":
        return value
    return Sequence(element_of(value), CLASSES.get(name, ""))


CLASSES = {"collections.deque": "collections.deque"}
"""Containers with methods that a list has not."""


@handles("builtins.sorted")
def _sorted(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    element = element_of(arguments.first)
    observe_order(frame, element, arguments, node)
    return Sequence(element)


@handles("builtins.min", "builtins.max")
def _extreme(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    values = arguments.positional
    if len(values) == 1:
        element = element_of(values[0])
        if "key" in arguments.keywords:
            key = arguments.keywords["key"]
            ordered = apply(frame, key, Arguments([element]), node)
            compared = next(filter(is_tensor, leaves_of((element, ordered))), None)
            if compared is not None:
                frame.observe(node, compared, Construct.EXTREME, node)
        else:
            _observe_frozen_choice(frame, [element], node)
        return element
    _observe_frozen_choice(frame, values, node)
    tensors = [value for value in values if is_tensor(value)]
    if tensors:
        return Tensor(framework=tensors[0].framework, **traits_of(values))
    statics = [value for value in values if isinstance(value, Static)]
    if len(statics) == len(values) and statics:
        source, read = provenance(*statics)
        return Static(source=source, read=read)
    return UNKNOWN


def _observe_frozen_choice(frame: Frame, values: "list[Value]", node: cst.BaseExpression) -> None:
    """Dynamo traces `max(a, b)` of tensors and sizes; torch.jit.trace keeps the choice, and
    TensorFlow has none to make."""
    if not frame.records:
        return
    for value in values:
        if is_tensor(value) or (
            frame.tracer and (isinstance(value, Static) and value.source is Source.SHAPE)
        ):
            frame.observe(node, value, Construct.BUILTIN, node)
            return


@handles("builtins.sum")
def _sum(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    element = element_of(arguments.first)
    if is_tensor(element):
        return replace(element, maybe=False)
    return Static(source=element.source) if isinstance(element, Static) else UNKNOWN


@handles("builtins.abs", "builtins.round", "builtins.pow", "builtins.divmod")
def _arithmetic(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    value = arguments.first
    if is_tensor(value):
        return replace(value, origin=value.derived)
    if name == "builtins.divmod":
        frame.observe_number(node, frame.machine.torch.construct("divmod_of_item"), value)
    return Static(source=value.source, read=value.read) if isinstance(value, Static) else UNKNOWN


@handles("builtins.next")
def _next(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    return batches.whole(element_of(arguments.first))


@handles("builtins.super")
def _super(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    function = frame.function
    if function is None or function.cls is None or not function.parameters:
        return UNKNOWN
    receiver = frame.variables.get(function.parameters[0].name.value, UNKNOWN)
    return Super(receiver, function.cls)


@handles("builtins.dict", "collections.OrderedDict", "collections.defaultdict")
def _dict(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    first = arguments.first
    base = dict(first.items) if isinstance(first, Dict) else {}
    default = first.default if isinstance(first, Dict) else UNKNOWN
    if isinstance(first, Sequence | Tuple):
        pair = element_of(first)
        default = pair.items[1] if isinstance(pair, Tuple) and len(pair.items) == 2 else UNKNOWN
    return Dict(tuple({**base, **arguments.keywords}.items()), default)


@handles(
    *("builtins.str", "builtins.repr", "builtins.format", "builtins.hasattr", "builtins.id"),
    *("builtins.callable", "builtins.hash", "builtins.ord", "builtins.chr", "builtins.bytes"),
    *("math.prod", "math.ceil", "math.floor"),
)
def _to_static(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    value = arguments.first
    if name.startswith("math."):
        shapes.used(frame, node, value)
    if name.startswith("math.") and is_tensor(value):
        return Static(source=Source.DATA, read=Read(name, "GB0033"))
    if name == "builtins.str":
        frame.observe_number(node, frame.machine.torch.construct("string_of_item"), value)
    source = value.source if isinstance(value, Static) else Source.PYTHON
    return Static(source=source)


@handles("builtins.type")
def _type(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    value = arguments.first
    return Class(value.cls) if isinstance(value, Instance) else STATIC


@handles("builtins.print", "builtins.setattr", "warnings.warn")
def _none(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    return NONE


@handles("functools.partial")
def _partial(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    if not arguments.positional:
        return UNKNOWN
    function, *rest = arguments.positional
    return Partial(function, tuple(rest), tuple(arguments.keywords.items()))


@handles(
    *("copy.copy", "copy.deepcopy", "torch.vmap", "torch.func.vmap", "builtins.staticmethod"),
)
def _same(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    return arguments.first


@handles("typing.cast", "typing_extensions.cast")
def _typing_cast(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    if len(arguments.positional) != 2:
        return UNKNOWN
    value = arguments.positional[1]
    if isinstance(value, Unknown) and isinstance(node, cst.Call):
        return annotated_value(frame, node.args[0].value)
    return value
