"""Calls: what Python's builtins, framework functions and methods return."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import libcst as cst

from jitlint.analysis import freezing, once, shapes
from jitlint.analysis.expressions import (
    asks_data,
    computed,
    evaluate,
    evaluate_target_path,
    observe_text,
)
from jitlint.analysis.frame import Frame
from jitlint.analysis.makers import makers
from jitlint.analysis.observations import Construct, GraphCall, ProgramCalls, Use
from jitlint.analysis.operators import broadcast_rank, is_of_data, leaves_of, provenance, traits_of
from jitlint.analysis.scope import free_names
from jitlint.analysis.tables import Operator, Returns
from jitlint.analysis.values import (
    ASSUMED_TENSOR,
    BOOL_TENSOR,
    DATA_SHAPE,
    MISSING,
    NONE,
    SHAPE,
    STATIC,
    TENSOR,
    TRUE,
    UNKNOWN,
    Batch,
    BoundMethod,
    Choice,
    Class,
    CutOff,
    Dataset,
    Dict,
    Exported,
    External,
    ExternalInstance,
    ExternalMethod,
    Framework,
    Function,
    Instance,
    Kernel,
    ModuleValue,
    Optional,
    Origin,
    Partial,
    Pinned,
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
    is_other_size,
    is_symbol,
    is_tensor,
    is_true,
    join,
    join_all,
    some_value_of,
    truth_of,
)
from jitlint.project.modules import FunctionInfo
from jitlint.region import RegionKind


@dataclass(slots=True)
class Arguments:
    """Evaluated arguments. `rest` is the element of a `*args` of unknown length, and
    `open` says that there is a `**kwargs` whose keys are not known."""

    positional: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    rest: Value | None = None
    open: bool = False

    def get(self, position: int, name: str) -> Value | None:
        if position < len(self.positional):
            return self.positional[position]
        return self.keywords.get(name)

    @property
    def first(self) -> Value:
        return self.positional[0] if self.positional else UNKNOWN

    def constant(self, position: int, name: str) -> Any:
        """The constant that is given; None where it is not known, or left out."""
        value = self.get(position, name)
        return value.const if value is not None and is_constant(value) else None

    def fills(self, slot: str) -> bool:
        """Whether something is given for a position or a keyword."""
        return slot in self.keywords or (slot.isdigit() and int(slot) < len(self.positional))

    def all(self) -> list[Value]:
        return [*self.positional, *self.keywords.values()]

    def after(self, *first: Value) -> "Arguments":
        return Arguments([*first, *self.positional], self.keywords, self.rest, self.open)


def evaluate_call(frame: Frame, node: cst.Call) -> Value:
    callee = _callee(frame, node.func)
    arguments = evaluate_arguments(frame, node.args)
    return apply(frame, callee, arguments, node)


FOLLOWED = (ModuleValue, External, Class, Instance, Super, Choice, CutOff, Pinned)
"""Values of which an attribute is a value of its own."""


def _callee(frame: Frame, node: cst.BaseExpression) -> Value:
    """The function of a call; a method of a plain value stays with its receiver."""
    if not isinstance(node, cst.Attribute):
        return evaluate(frame, node)
    path = evaluate_target_path(node)
    if path is not None and path in frame.variables:
        return frame.variables[path]
    receiver = evaluate(frame, node.value)
    if isinstance(receiver, Optional):
        receiver = receiver.value
    if isinstance(receiver, FOLLOWED):
        return frame.machine.attribute(frame, receiver, node.attr.value)
    return ExternalMethod(receiver, node.attr.value)


def evaluate_arguments(frame: Frame, nodes: Iterable[cst.Arg]) -> Arguments:
    arguments = Arguments()
    for node in nodes:
        value = evaluate(frame, node.value)
        if node.star == "*":
            if isinstance(value, Tuple) and arguments.rest is None:
                arguments.positional.extend(value.items)
            else:
                arguments.rest = element_of(value)
        elif node.star == "**":
            if isinstance(value, Dict):
                keywords = {k: v for k, v in value.items if isinstance(k, str)}
                arguments.keywords.update(keywords)
            arguments.open |= not (isinstance(value, Dict) and value.closed)
        elif node.keyword is not None:
            arguments.keywords[node.keyword.value] = value
        else:
            arguments.positional.append(value)
    return arguments


def apply(frame: Frame, callee: Value, arguments: Arguments, node: cst.BaseExpression) -> Value:
    """Call an abstract value."""
    machine = frame.machine
    match callee:
        case Function(info):
            if frame.in_graph:
                once.by_cached(frame, info, arguments.all(), node)
            _observe_graph_call(frame, callee, info, arguments, node)
            _observe_hidden(frame, machine.decorator_names(info), arguments, node)
            if info in machine.pinned:
                datasets.passed_to_static(frame, arguments.all(), node)
            return _differentiated(frame, info, machine.call(frame, callee, arguments))
        case BoundMethod(receiver, function):
            _observe_graph_call(frame, callee, function.info, arguments, node)
            _observe_hidden(frame, machine.decorator_names(function.info), arguments, node)
            result = machine.call(frame, function, arguments.after(receiver))
            return _differentiated(frame, function.info, result)
        case CutOff(function, by):
            is_module = isinstance(function, Instance | ExternalInstance)
            hidden = f"{by}:module" if is_module else by
            _observe_hidden(frame, [hidden], arguments, node)
            return machine.call_unseen(frame, function, by, arguments, node)
        case Pinned(target):
            datasets.passed_to_static(frame, arguments.all(), node)
            return apply(frame, target, arguments, node)
        case Exported():
            _observe_program_call(frame, callee, arguments)
            return UNKNOWN
        case Class():
            return machine.construct(frame, callee, arguments)
        case Instance():
            return _call_instance(frame, callee, arguments, node)
        case Partial(function, args, kwargs):
            merged = Arguments(
                [*args, *arguments.positional],
                {**dict(kwargs), **arguments.keywords},
                arguments.rest,
                arguments.open,
            )
            return apply(frame, function, merged, node)
        case External(name):
            name = machine.table_of(name).canonical(name)
            if name in machine.watched and isinstance(node, cst.Call):
                frame.observe_call(node, callee, arguments.positional, arguments.keywords)
            return call_external(frame, name, arguments, node)
        case Kernel(function):
            if isinstance(node, cst.Call):
                frame.observe_call(node, callee, arguments.positional, arguments.keywords)
            if isinstance(function, Function):
                return machine.declared_result(function.info)
            return UNKNOWN
        case ExternalInstance():
            return _call_module(frame, callee, arguments, node)
        case ExternalMethod(receiver, name):
            return call_method(frame, receiver, name, arguments, node)
        case Optional(value):
            return apply(frame, value, arguments, node)
        case Choice(options):
            return join_all([apply(frame, option, arguments, node) for option in options])
    return unknown_callee(arguments)


def _differentiated(frame: Frame, info: FunctionInfo, result: Value) -> Value:
    """`apply` of a `torch.autograd.Function`: torch.compile traces its backward as well, where
    an input requires a gradient (measured)."""
    region = frame.region
    if region is None or region.kind is not RegionKind.COMPILE or info.name != "forward":
        return result
    machine = frame.machine
    backward = machine.backward_of(info)
    if backward is not None:
        gradients = [TENSOR if is_tensor(each) else UNKNOWN for each in leaves_of((result,))]
        machine.call(frame, Function(backward), Arguments([UNKNOWN, *gradients]))
    return result


def _observe_graph_call(
    frame: Frame, callee: Value, info: FunctionInfo, arguments: Arguments, node: cst.CSTNode
) -> None:
    """Python calls a function that `tf.function` took over."""
    graph = frame.machine.graphs.get(info)
    if graph is None or frame.region is not None or frame.silent or not isinstance(node, cst.Call):
        return
    kind, options = graph
    call = frame.machine.log.other(
        GraphCall,
        node,
        frame.module,
        frame.function,
        callee=callee,
        target=info,
        options=options,
        kind=kind,
    )
    call.see(tuple(arguments.positional), arguments.keywords)
    call.reached(None, frame.moment())
    if kind is RegionKind.XLA:
        datasets.passed_to_static(frame, arguments.all(), node)


def _observe_hidden(
    frame: Frame, names: Iterable[str], arguments: Arguments, node: cst.BaseExpression
) -> None:
    """Compiled code calls what a decorator or function of these names hides."""
    if frame.region is None:
        return
    for name in names:
        row = frame.machine.torch.hidden_by(name)
        frame.observe_operation(node, row, Use.HIDDEN, arguments.positional, arguments.keywords)


def _observe_program_call(frame: Frame, program: Exported, arguments: Arguments) -> None:
    """Python calls the program that `torch.export.export` made."""
    calls = frame.machine.log.other(
        ProgramCalls,
        program.node,
        program.module,
        program.function,
        examples=UNKNOWN,
        keywords={},
    )
    calls.calls.append(tuple(arguments.positional))
    calls.reached(None, frame.moment())


def unknown_callee(arguments: Arguments) -> Value:
    """A callee that nothing is known of, given a tensor first, returns a tensor."""
    if arguments.positional and is_tensor(arguments.positional[0]):
        return ASSUMED_TENSOR
    return UNKNOWN


def _call_instance(
    frame: Frame, instance: Instance, arguments: Arguments, node: cst.BaseExpression
) -> Value:
    machine = frame.machine
    row = machine.torch.hooked(machine.hooks.get(instance.cls, ""))
    frame.observe_operation(node, row, Use.CALL, arguments.positional, arguments.keywords)
    method = machine.method(instance.cls, machine.run_by_call(instance.cls))
    if method is not None and machine.is_keras(instance.cls):
        return keras_calls.called(frame, instance, method, arguments, node)
    if method is not None:
        result = machine.call(frame, Function(method), arguments.after(instance))
        _watch(frame, machine.watchers.get(instance.cls, ()), instance, result, node)
        return result
    for base in machine.external_bases(instance.cls):
        operator = machine.table_of(base).module(base)
        if operator is not None:
            return _of_layer(frame, operator, operator_result(operator, base, arguments))
    return unknown_callee(arguments)


def _of_layer(frame: Frame, operator: Operator, result: Value) -> Value:
    """The result of a layer with parameters requires a gradient where one is recorded."""
    if not operator.grad or frame.machine.no_gradients:
        return result
    match result:
        case Tensor():
            return replace(result, grad=True)
        case Tuple(items):
            return Tuple(tuple(_of_layer(frame, operator, item) for item in items))
    return result


def _watch(
    frame: Frame,
    watchers: Iterable[Value],
    instance: Value,
    result: Value,
    node: cst.BaseExpression,
) -> None:
    """Run the forward hooks of a module."""
    for watcher in watchers:
        apply(frame, watcher, Arguments([instance, UNKNOWN, result]), node)


FORWARD_HOOKS = frozenset({"register_forward_hook", "register_forward_pre_hook"})


def _call_module(
    frame: Frame, instance: ExternalInstance, arguments: Arguments, node: cst.BaseExpression
) -> Value:
    result = _result_of_module(frame, instance, arguments, node)
    _watch(frame, instance.watchers, instance, result, node)
    return result


def _result_of_module(
    frame: Frame, instance: ExternalInstance, arguments: Arguments, node: cst.BaseExpression
) -> Value:
    if instance.name in SEQUENTIALS and instance.children:
        value = arguments.positional[0] if arguments.positional else UNKNOWN
        for child in instance.children:
            value = apply(frame, child, Arguments([value]), node)
        return value
    torch = frame.machine.torch
    operator = frame.machine.table_of(instance.name).module(instance.name)
    called = _of_object(instance, torch.standard(f"{instance.name}.__call__"))
    for row in (operator, called, torch.hooked(instance.hook)):
        frame.observe_operation(node, row, Use.CALL, arguments.positional, arguments.keywords)
    if operator is not None:
        shapes_of_operators.check(frame, operator, arguments, node)
        result = operator_result(operator, instance.name, arguments)
        result = _of_layer(frame, operator, result)
        return shapes_of_operators.behind_layer(operator, result, arguments)
    return unknown_callee(arguments)


# -- framework operators -------------------------------------------------------------------


def operator_result(operator: Operator, name: str, arguments: Arguments) -> Value:
    """What an operator of the tables returns for these arguments."""
    returns = operator.returns
    has_dim = "dim" in arguments.keywords or "axis" in arguments.keywords
    has_dim = has_dim or (operator.reduces and _has_positional_dim(arguments))
    if operator.with_dim is not None and has_dim:
        returns = operator.with_dim
    for flag, kind in operator.with_flags.items():
        if is_true(arguments.keywords.get(flag)):
            returns = kind
    match returns:
        case Returns.TENSOR:
            return _tensor_result(operator, arguments, has_dim)
        case Returns.TENSORS:
            items = operator.items or (2 if has_dim and operator.with_dim else None)
            shape = DATA_SHAPE if operator.dynamic_shape else None
            tensor = Tensor(**traits_of(arguments.all()), shape=shape)
            return Tuple((tensor,) * items) if items else Sequence(tensor)
        case Returns.SCALAR:
            tensors = [value for value in arguments.all() if isinstance(value, Tensor)]
            return number_of(tensors, Read(name, operator.reads or ""))
        case Returns.SIZE:
            return SHAPE
        case Returns.STATIC:
            return STATIC
        case Returns.NONE:
            return NONE
    return UNKNOWN


def number_of(tensors: list[Tensor], read: Read) -> Static:
    """What is read of tensors: a constant if they are, else a number that depends on data."""
    if tensors and all(tensor.origin is Origin.CONSTANT for tensor in tensors):
        return STATIC
    return Static(source=Source.DATA, read=replace(read, given=all(map(_is_given, tensors))))


def _is_given(tensor: Tensor) -> bool:
    """Whether the compiler may guard on what is read of a tensor, of whatever dtype that is."""
    may_guard = tensor.dtype is None or tensor.dtype in GUARDED
    return tensor.origin is not Origin.COMPUTED and may_guard


GUARDED = frozenset({"bool", "int64"})
"""Dtypes of which a number becomes a constant under a guard; others make a symbol (measured)."""


def _has_positional_dim(arguments: Arguments) -> bool:
    """`x.sum(1)` and `torch.sum(x, 1)`; the tensor itself is the first argument."""
    return len(arguments.positional) > 1 and not is_tensor(arguments.positional[1])


def _tensor_result(operator: Operator, arguments: Arguments, has_dim: bool) -> Tensor:
    tensors = [value for value in arguments.all() if isinstance(value, Tensor)]
    first = tensors[0] if tensors else None
    rank: int | None = None
    if operator.reduces and not has_dim:
        combines = operator.broadcasts and len(tensors) > 1
        rank = None if combines and any(each.rank != 0 for each in tensors) else 0
    elif operator.elementwise:
        rank = broadcast_rank(arguments.positional)
    is_bool: bool | None = True if operator.is_bool else None
    dtype = "bool" if operator.is_bool else None
    if not operator.is_bool:
        if operator.dtype == "same" and first is not None:
            is_bool, dtype = first.is_bool, first.dtype
            if is_bool and operator.from_bool:
                is_bool, dtype = operator.from_bool == "bool", operator.from_bool
        elif operator.dtype not in (None, "same"):
            is_bool, dtype = operator.dtype == "bool", operator.dtype
            dtype = None if dtype == "float" else dtype
    traits = traits_of(arguments.all())
    if operator.random:
        traits["origin"] = Origin.COMPUTED
    if not tensors:
        traits |= _created(arguments)
        dtype, is_bool = _created_dtype(operator, arguments) or (dtype, is_bool)
    requested = arguments.keywords.get("dtype", NONE)
    if not is_none(requested):
        dtype = _dtype_name(requested.name) if isinstance(requested, External) else None
        is_bool = None if dtype is None else dtype == "bool"
    if is_bool or (dtype is not None and not dtype.startswith(DIFFERENTIABLE)):
        traits["grad"] = False
    shape = DATA_SHAPE if operator.dynamic_shape else None
    return Tensor(is_bool, rank, False, Framework.TORCH, dtype, shape=shape, **traits)


DIFFERENTIABLE = ("float", "bfloat", "complex")


def _created(arguments: Arguments) -> dict[str, Any]:
    """Traits of a tensor that no other tensor goes into: a new leaf, on the CPU by default."""
    if not all(isinstance(value, Static | External) for value in leaves_of(arguments.all())):
        return {}
    wanted = arguments.keywords.get("requires_grad")
    device = arguments.keywords.get("device", Static("cpu"))
    return {
        "grad": wanted.const
        if isinstance(wanted, Static) and wanted.const is not MISSING
        else (None if wanted is not None else False),
        "device": _device(device),
    }


def _created_dtype(operator: Operator, arguments: Arguments) -> tuple[str, bool] | None:
    """The dtype of a tensor that is made of numbers, and whether that is bool; not a floating
    one, which is what `torch.set_default_dtype` says."""
    given = arguments.positional
    if not all(isinstance(value, Static) for value in leaves_of(given)):
        return None
    dtype = _common_dtype(given) if operator.created == "numbers" else operator.created
    return None if dtype is None or dtype.startswith(DIFFERENTIABLE) else (dtype, dtype == "bool")


def _device(value: Value) -> str | None:
    """ "cpu" of `device="cpu"`; None where the device is not a constant."""
    if isinstance(value, Static) and isinstance(value.const, str):
        return value.const.partition(":")[0]
    return None


def call_external(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    """Call a name of a library."""
    result = _result_of_external(frame, name, arguments, node)
    if frame.region is None:
        return _read_outside(result)
    if frame.machine.log.is_tested(node):
        return result
    read = _observe_numbers(frame, name, arguments, node)
    if read is not None and isinstance(result, Unknown):
        result = Static(source=Source.DATA, read=Read(name, read))
    _observe_opaque(frame, arguments, node)
    _observe_message(frame, name, arguments, node)
    operator = function_of(frame, name, arguments)
    frame.observe_operation(node, operator, Use.CALL, arguments.all(), {})
    if name in CONVERSIONS and isinstance(arguments.first, Static):
        frame.observe_number(node, _captured_conversion(frame, name), arguments.first)
    if is_tensor(result) and is_true(arguments.keywords.get("requires_grad")):
        row = frame.machine.torch.requires_grad("argument")
        frame.observe_operation(node, row, Use.CALL, (result,))
    is_passed_on = is_symbol(result) and result.read is not None and result.read.node is not None
    is_asked = is_passed_on and not frame.machine.torch.lists("symbols", name)
    if is_asked and name not in CONVERSIONS:
        result = computed(frame, node, *arguments.all())
    if frame.runs_once:
        once.by_function(frame, name, arguments.all(), node)
    if frame.tracer:
        result = freezing.by_function(frame, name, arguments, result, node)
    return _read_by(result, node)


def _observe_numbers(
    frame: Frame, operator: str, arguments: Arguments, node: cst.BaseExpression
) -> str | None:
    """Tell the log of tensors that are given where an operator asks for a number.

    The result is the break by which the call itself reads a number, if it does.
    """
    rows = frame.machine.torch.numbers(operator)
    read: str | None = None
    if not rows or frame.region is None:
        return None
    given = {str(position): value for position, value in enumerate(arguments.positional)}
    given |= arguments.keywords
    for slot, row in rows.items():
        if any(map(arguments.fills, row.unless)):
            continue
        if slot in given:
            frame.observe_number(_argument_node(node, arguments, slot), row, given[slot])
        elif not slot:
            frame.observe_operation(node, row, Use.CALL, arguments.all())
            read = row.reads
    return read


def _observe_opaque(frame: Frame, arguments: Arguments, node: cst.BaseExpression) -> None:
    """Tell the log of a generator from outside, which a graph does not take."""
    if any(value == GENERATOR for value in arguments.all()):
        row = frame.machine.torch.construct("draw_from_generator")
        frame.observe_operation(node, row, Use.CALL)


GENERATOR = ExternalInstance("torch.Generator")


def _observe_message(
    frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression
) -> None:
    """Tell the log of a message of which a graph cannot keep the text."""
    row = frame.machine.torch.message(name)
    message = None if row is None else arguments.get(row.position, "message")
    if row is None or message is None:
        return
    breaks = None
    if isinstance(message, Function) and message.closure is not None:
        breaks = row.with_tensor_held if _keeps_tensor(frame, message) else None
    elif isinstance(message, NO_MESSAGES):
        breaks = row.breaks
    frame.observe_operation(node, replace(row, breaks=breaks, with_tensor_held=None), Use.MESSAGE)


NO_MESSAGES = (Function, BoundMethod, Partial, Static)
"""The compiler takes functions of its own code alone, and no text and no None either."""


def _keeps_tensor(frame: Frame, function: Function) -> bool:
    """Whether a function keeps a tensor, or an object, of the code around it."""
    assert function.closure is not None
    node = function.info.node
    defaults = (each.default for each in (*node.params.params, *node.params.kwonly_params))
    held = [evaluate(frame, each) for each in defaults if each is not None]
    names = free_names(node, function.info.module.tree)
    held += [function.closure.variables.get(name, UNKNOWN) for name in names]
    return any(isinstance(each, Tensor | Instance) for each in held)


def _argument_node(node: cst.BaseExpression, arguments: Arguments, slot: str) -> cst.BaseExpression:
    """The expression at a place of a call; the call, where it cannot be told apart."""
    if not isinstance(node, cst.Call):
        return node
    if not slot.isdigit():
        named = (a.value for a in node.args if a.keyword is not None and a.keyword.value == slot)
        return next(named, node)
    positional = [a for a in node.args if a.keyword is None]
    index = int(slot) - len(arguments.positional) + len(positional)
    is_exact = 0 <= index < len(positional) and not any(a.star for a in positional)
    return positional[index].value if is_exact else node


def function_of(frame: Frame, name: str, arguments: Arguments) -> Operator | None:
    """The row of a function of a library; of a conversion, that of the special method."""
    machine = frame.machine
    special = CONVERSIONS.get(name)
    if special is not None and is_tensor(arguments.first):
        return machine.torch.method(special)
    operator = machine.table_of(name).function(name)
    if operator is None or not operator.is_notable:
        operator = machine.torch.standard(name) or operator
    if operator is None:
        return machine.torch.skipped(name)
    if operator.one_argument and len(arguments.all()) == 1:
        return operator.one_argument
    if any(arguments.fills(slot) for slot in operator.unless):
        return None
    leaves = list(leaves_of(arguments.all()))
    if operator.with_module and any(map(machine.is_layer, leaves)):
        captured = operator.with_module_captured
        return replace(operator, breaks=operator.with_module, captured=captured)
    if operator.with_tensor_held and any(map(machine.holds_tensor, leaves)):
        captured = operator.with_tensor_held_captured
        return replace(operator, breaks=operator.with_tensor_held, captured=captured)
    return operator


def _captured_conversion(frame: Frame, name: str) -> Operator | None:
    """The row of a conversion that a symbol goes through, unless it is refused."""
    row = frame.machine.torch.method(CONVERSIONS[name])
    return row if row is not None and row.captured else None


CONVERSIONS = {f"builtins.{name}": f"__{name}__" for name in ("bool", "int", "float", "complex")}
"""The special methods by which builtins read a tensor."""


def _read_outside(value: Value) -> Value:
    """A number that Python reads of a tensor outside of regions is one like any other."""
    is_read = isinstance(value, Static) and value.source is Source.DATA
    return STATIC if is_read else value


def _read_by(value: Value, node: cst.CSTNode) -> Value:
    """A value that was read out of a tensor knows by which call."""
    if isinstance(value, Static) and value.read is not None and value.read.node is None:
        return replace(value, read=replace(value.read, node=node))
    return value


def _result_of_external(
    frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression
) -> Value:
    handler = HANDLERS.get(name)
    if handler is not None:
        return handler(frame, name, arguments, node)
    maker = makers().get(name)
    if maker is not None:
        return frame.machine.make_region(frame, maker, arguments, node)
    generator = frame.machine.tracing.instance(name)
    if generator is not None:
        return ExternalInstance(generator)
    table = frame.machine.table_of(name)
    if name in KERAS_MODELS or name in MODULE_CONTAINERS or table.module(name) is not None:
        called = frame.machine.symbolic_calls if name in KERAS_MODELS else {}
        symbolic = called.get((frame.module, frame.function), [])
        by_mode = frame.machine.tracing.depends_on_mode(name, arguments.constant)
        children = tuple(dict.fromkeys([*_children(arguments), *symbolic]))
        return ExternalInstance(name, children, by_mode=by_mode)
    operator = table.function(name)
    if name.startswith("numpy.") and frame.runs_python and not _has_tensors(arguments):
        return UNKNOWN
    if frame.in_graph and table.framework != Framework.TORCH.value:
        lost = shapes_of_operators.lost_inside(frame, name, arguments, node)
        if lost is not None:
            return lost
    if name.startswith(NUMBERS_ONLY):
        shapes.used(frame, node, *arguments.all())
    if operator is None:
        return _result_of_standard(frame, name, arguments)
    if operator.one_argument and len(arguments.all()) == 1:
        operator = operator.one_argument
    result = operator_result(operator, name, arguments)
    if table.framework != Framework.TORCH.value:
        shapes_of_operators.check(frame, operator, arguments, node)
        return shapes_of_operators.result(frame, operator, result, arguments, node)
    if name.startswith("numpy."):
        if operator.folds and (number := _folded(arguments)) is not None:
            return number
        if operator.returns is None:
            return _result_of_standard(frame, name, arguments)
        result = _of_framework(result, Framework.NUMPY)
    if name in shapes.LITERALS and isinstance(result, Tensor):
        return _of_literal(frame, result, operator, arguments.first)
    if name in shapes.CONSTRUCTORS:
        return shapes.with_shape(result, shapes.constructed(arguments.positional))
    return result


def _has_tensors(arguments: Arguments) -> bool:
    return any(isinstance(value, Tensor) for value in leaves_of(arguments.all()))


LIMITS = frozenset({"torch.finfo", "torch.iinfo"})
"""The limits of a dtype are numbers."""


def _result_of_standard(frame: Frame, name: str, arguments: Arguments) -> Value:
    """What the standard library returns, as far as it matters: an object, or a number."""
    table = frame.machine.torch
    operator = table.standard(name)
    made_here = frame.region is not None
    if operator is not None and operator.instance is not None:
        return ExternalInstance(operator.instance, made_here=made_here)
    if table.bases(name):
        return ExternalInstance(name, made_here=made_here)
    if name in LIMITS:
        return STATIC
    if operator is not None and operator.symbolic:
        return _symbol_of(operator)
    if not name.startswith("math."):
        return UNKNOWN
    if is_tensor(arguments.first):
        code = "" if operator is None else operator.with_tensor or ""
        return Static(source=Source.DATA, read=Read(name, code))
    return _folded(arguments) or STATIC


def _symbol_of(drawn: Operator) -> Static:
    """A number that the compiler takes as an input of the graph, and does not know."""
    return Static(source=Source.DATA, read=Read(drawn.name, drawn.symbolic or "", unbroken=True))


def _folded(arguments: Arguments) -> Static | None:
    """A number that is computed of numbers; None where something else is given."""
    given = arguments.all()
    numbers = [value for value in given if isinstance(value, Static)]
    if not numbers or len(numbers) < len(given) or arguments.rest is not None:
        return None
    source, read = provenance(*numbers)
    return Static(source=source, read=read)


def _of_literal(frame: Frame, tensor: Tensor, operator: Operator, data: Value) -> Tensor:
    """A tensor made of numbers, or of what holds numbers; of one, a graph knows it."""
    shape = shapes.shape_of_literal(data)
    if shape is None or shape.more:
        return tensor
    dtype, numbers = tensor.dtype, list(leaves_of([data]))
    if operator.created == "numbers":
        dtype = dtype or _common_dtype(numbers)
        is_constant = len(numbers) == 1 and not is_of_data(numbers[0]) and frame.region is not None
        tensor = replace(tensor, origin=Origin.CONSTANT) if is_constant else tensor
    rank = len(shape.dims)
    is_bool = None if dtype is None else dtype == "bool"
    return replace(tensor, rank=rank if rank < 2 else None, dtype=dtype, is_bool=is_bool)


def _common_dtype(data: list[Value]) -> str | None:
    """The dtype that a tensor of these numbers has, where all of them are known."""
    kinds = {type(leaf.const) if isinstance(leaf, Static) else None for leaf in leaves_of(data)}
    if kinds == {int, float}:
        return LITERAL_DTYPES[float]
    return LITERAL_DTYPES.get(kinds.pop()) if len(kinds) == 1 else None


LITERAL_DTYPES: dict[type | None, str] = {bool: "bool", int: "int64", float: "float32"}


def _of_framework(value: Value, framework: Framework) -> Value:
    """The same result, of another framework's making."""
    match value:
        case Tensor():
            grad = value.grad if framework is Framework.TORCH else False
            return replace(value, framework=framework, assumed=False, grad=grad)
        case Tuple(items):
            return Tuple(tuple(_of_framework(item, framework) for item in items))
        case Sequence(element):
            return replace(value, element=_of_framework(element, framework))
    return value


DTYPE_ALIASES = {"half": "float16", "float": "float32", "double": "float64", "bool_": "bool"}


def _dtype_name(dotted: str) -> str:
    """`torch.half` and `numpy.float16` are "float16"."""
    name = dotted.rpartition(".")[2]
    return DTYPE_ALIASES.get(name, name)


NUMBERS_ONLY = ("numpy.", "math.")
"""Functions that take no None for a size."""

KERAS_MODELS = {"keras.Model", "keras.Sequential"}
"""A functional model holds the layers that were called where it is made."""
SEQUENTIALS = {"torch.nn.Sequential", "keras.Sequential"}
MODULE_CONTAINERS = {"torch.nn.ModuleList", "torch.nn.ModuleDict", *SEQUENTIALS}


def _children(arguments: Arguments) -> tuple[Value, ...]:
    children: list[Value] = []
    for value in [*arguments.positional, *([arguments.rest] if arguments.rest else [])]:
        match value:
            case Instance() | ExternalInstance() | Function():
                children.append(value)
            case Tuple() | Sequence():
                items = value.items if isinstance(value, Tuple) else (value.element,)
                children.extend(i for i in items if isinstance(i, Instance | ExternalInstance))
            case Dict(items):
                children.extend(v for _, v in items if isinstance(v, Instance | ExternalInstance))
    return tuple(dict.fromkeys(children))


# -- methods -------------------------------------------------------------------------------


def call_method(
    frame: Frame, receiver: Value, name: str, arguments: Arguments, node: cst.BaseExpression
) -> Value:
    """Call a method of a value whose class is not of the project."""
    if name in datasets.RUNS and not isinstance(receiver, Static | Tensor):
        datasets.run_on(frame, receiver, name, arguments, node)
    if frame.records and isinstance(receiver, Tuple | Sequence | Dict):
        once.by_container(frame, name, arguments.all(), node)
    match receiver:
        case Tensor():
            if name == "set_shape" and receiver.framework is Framework.TENSORFLOW:
                pinned = shapes.shape_of(arguments.get(0, "shape"))
                rebind(frame, node, replace(receiver, shape=pinned))
                return NONE
            if name == "get_shape":
                return frame.machine.attribute(frame, receiver, "shape")
            return _tensor_method(frame, receiver, name, arguments, node)
        case Static():
            if name in ("format", "format_map"):
                observe_text(frame, node, arguments.all())
            return _static_method(receiver, name)
        case Tuple() | Sequence():
            return _list_method(frame, receiver, name, arguments, node)
        case Dict():
            return _dict_method(frame, receiver, name, arguments, node)
        case Instance():
            return _inherited_method(frame, receiver, name, arguments, node)
        case ExternalInstance():
            return _module_method(frame, receiver, name, arguments, node)
        case StaticShape(shape):
            if name != "as_list":
                return STATIC
            if shape.lost is not None:
                frame.observe_need(shape.lost, node)
            return receiver
        case Dataset():
            return datasets.method(frame, receiver, name, arguments, node)
        case Exported():
            return receiver if name in ("module", "run_decompositions") else UNKNOWN
        case Batch() if name in KEEPS_MODULE or name in TRAITS:
            result = _unknown_method(frame, receiver, name, arguments, node)
            return datasets.of_batch(receiver, result)
        case Unknown() if name == "save_for_backward" and frame.region is not None:
            frame.machine.save_for_backward(frame, arguments.positional)
            return NONE
        case Unknown():
            return _unknown_method(frame, receiver, name, arguments, node)
    return unknown_callee(arguments)


def _tensor_method(
    frame: Frame, receiver: Tensor, name: str, arguments: Arguments, node: cst.BaseExpression
) -> Value:
    table = frame.machine.tables.get(receiver.framework.value, frame.machine.torch)
    operator = table.method(name)
    given = arguments.after(receiver)
    row = _row_by_dtype(frame, receiver, name, operator)
    if receiver.framework is Framework.NUMPY and not (row is not None and row.break_ids):
        row = table.array(name) or row
    frame.observe_operation(node, row, _use_of(name), given.positional, given.keywords)
    if name == "requires_grad_" and _changes_grad(receiver, arguments.get(0, "requires_grad")):
        row = table.requires_grad("method")
        frame.observe_operation(node, row, Use.CALL, (receiver,))
    match node:
        case cst.Call(func=cst.Attribute(value=changed)) if name == "requires_grad_":
            frame.set_grad(changed, receiver, arguments.get(0, "requires_grad") or TRUE)
    _observe_numbers(frame, f"Tensor.{name}", given, node)
    _observe_opaque(frame, arguments, node)
    result = _result_of_method(frame, receiver, name, arguments, operator)
    is_one_of_others = receiver.rank != 1 and is_other_size(arguments.get(0, "dim"))
    if result == SHAPE and not is_one_of_others:
        result = frame.machine.size_of(receiver)
    drawn = frame.machine.torch.standard(f"torch.Tensor.{name}")
    if drawn is not None and drawn.symbolic and receiver.framework is Framework.TORCH:
        result = _symbol_of(drawn)
    if frame.records:
        once.by_method(frame, receiver, name, node)
    if frame.tracer:
        result = freezing.by_method(frame, name, arguments.all(), result, node)
    return _read_outside(result) if frame.region is None else _read_by(result, node)


OF_INTEGERS = {"tolist": "list_of_integers"}
"""Methods that a compiler treats in another way where the tensor holds (signed) integers."""


def _row_by_dtype(
    frame: Frame, receiver: Tensor, name: str, operator: Operator | None
) -> Operator | None:
    """The row of a method, which may depend on the dtype; unknown, it passes where either does."""
    of_integers = frame.machine.torch.construct(OF_INTEGERS.get(name, ""))
    if of_integers is None or operator is None:
        return operator
    if receiver.dtype is None:
        return replace(operator, captured=of_integers.captured)
    if not receiver.dtype.startswith("int"):
        return operator
    return None if receiver.origin is Origin.CONSTANT else of_integers


def _use_of(method: str) -> Use:
    return Use.CONVERSION if method in OF_INTEGERS else Use.CALL


def _changes_grad(receiver: Tensor, wanted: Value | None) -> bool:
    """Whether `requires_grad_(wanted)` changes the flag, as far as that is known.

    One that is already set is not a change (measured); without a word a tensor has none.
    """
    if wanted is None or is_true(wanted):
        return receiver.grad is not True
    return is_constant(wanted) and receiver.grad is True


def _result_of_method(
    frame: Frame, receiver: Tensor, name: str, arguments: Arguments, operator: Operator | None
) -> Value:
    if operator is None:
        if receiver.framework is not Framework.NUMPY:
            return UNKNOWN
        return _cast(receiver, arguments) if name == "astype" else NUMPY_ARRAY
    if name == "size" or (operator.returns is Returns.SIZE and name == "stride"):
        if arguments.positional or arguments.keywords:
            return SHAPE
        return frame.machine.attribute(frame, receiver, "shape")
    if name in ("to", "type"):
        return _cast(receiver, arguments)
    if name in ("numpy", "__array__"):
        return replace(
            receiver,
            framework=Framework.NUMPY,
            assumed=False,
            grad=False,
            origin=Origin.COMPUTED,
        )
    result = operator_result(operator, f"torch.Tensor.{name}", arguments.after(receiver))
    if receiver.framework is not Framework.TORCH:
        return _of_framework(result, receiver.framework)
    if isinstance(result, Tensor) and name == "requires_grad_":
        return replace(result, grad=truth_of(arguments.get(0, "requires_grad") or TRUE))
    if isinstance(result, Tensor) and name in TRAITS:
        return replace(result, **TRAITS[name])
    return result


NUMPY_ARRAY = Tensor(framework=Framework.NUMPY)
SPARSE_LAYOUTS = ("", "_coo", "_csr", "_csc", "_bsr", "_bsc")
TRAITS: dict[str, dict[str, Any]] = {
    "cpu": {"device": "cpu"},
    "cuda": {"device": "cuda"},
    "detach": {"grad": False},
    "detach_": {"grad": False},
    **{f"to_sparse{layout}": {"sparse": True} for layout in SPARSE_LAYOUTS},
}
"""Methods that set a trait of their tensor."""


def _cast(receiver: Tensor, arguments: Arguments) -> Tensor:
    result = replace(receiver, maybe=False, origin=receiver.derived)
    for value in arguments.all():
        if isinstance(value, External) and value.name.startswith(("torch.", "numpy.")):
            dtype = _dtype_name(value.name)
            grad = receiver.grad if dtype.startswith(DIFFERENTIABLE) else False
            result = replace(result, is_bool=dtype == "bool", dtype=dtype, grad=grad)
        elif isinstance(value, Static) and isinstance(value.const, str):
            result = replace(result, device=_device(value))
        elif not isinstance(value, Static) or value.const is MISSING:
            result = replace(result, is_bool=None, dtype=None, device=None)
    return result


def _static_method(receiver: Static, name: str) -> Value:
    if name in ("split", "rsplit", "splitlines", "partition"):
        return Sequence(STATIC)
    return Static(source=receiver.source, read=receiver.read)


def _list_method(
    frame: Frame,
    receiver: Tuple | Sequence,
    name: str,
    arguments: Arguments,
    node: cst.BaseExpression,
) -> Value:
    element = element_of(receiver)
    if isinstance(receiver, Sequence) and receiver.cls:
        row = frame.machine.torch.standard(f"{receiver.cls}.{name}")
        if row is not None and row.breaks:
            frame.observe_operation(node, row, Use.CALL, arguments.all())
    match name:
        case "append" | "add" | "insert" | "appendleft":
            added = arguments.positional[-1] if arguments.positional else UNKNOWN
            rebind(frame, node, _grown(receiver, added))
            return NONE
        case "extend" | "update":
            added = element_of(arguments.positional[0]) if arguments.positional else UNKNOWN
            rebind(frame, node, _grown(receiver, added))
            return NONE
        case "pop" | "popleft":
            return element
        case "copy":
            return receiver
        case "sort":
            observe_order(frame, element, arguments, node)
            return NONE
        case "index" | "remove":
            if arguments.positional and is_tensor(arguments.positional[0]):
                frame.observe(node, BOOL_TENSOR, Construct.BUILTIN, node)
            return STATIC
        case "count":
            return STATIC
    return UNKNOWN


def observe_order(
    frame: Frame, element: Value, arguments: Arguments, node: cst.BaseExpression
) -> None:
    """Sorting asks whether one key is less than another."""
    key = arguments.keywords.get("key")
    ordered = element if key is None else apply(frame, key, Arguments([element]), node)
    asked = next(filter(asks_data, leaves_of((ordered,))), None)
    if asked is not None:
        frame.observe(node, asked, Construct.SORT, node)


def _grown(receiver: Tuple | Sequence, added: Value) -> Value:
    if isinstance(receiver, Tuple) and not receiver.items:
        return Sequence(added)
    cls = receiver.cls if isinstance(receiver, Sequence) else ""
    return Sequence(element_of(Tuple((element_of(receiver), added))), cls)


def rebind(frame: Frame, node: cst.BaseExpression, value: Value) -> None:
    """A list that grew is a new value of the variable that holds it."""
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        path = evaluate_target_path(node.func.value)
        if path is not None:
            frame.assign(path, value)
            if frame.function is None and frame.region is None and "." not in path:
                frame.machine.set_global(frame.module, path, value)
        holder = node.func.value
        if isinstance(value, ExternalInstance) and isinstance(holder, cst.Attribute):
            owner = evaluate(frame, holder.value)
            if isinstance(owner, Instance):
                frame.machine.attributes(owner.cls)[holder.attr.value] = value


def _dict_method(
    frame: Frame, receiver: Dict, name: str, arguments: Arguments, node: cst.BaseExpression
) -> Value:
    values = [value for _, value in receiver.items]
    joined = element_of(Tuple(tuple(values))) if values else receiver.default
    match name:
        case "get" | "pop" | "setdefault":
            key = arguments.positional[0] if arguments.positional else UNKNOWN
            found = receiver.get(key.const) if is_constant(key) else some_value_of(receiver)
            default = arguments.positional[1] if len(arguments.positional) > 1 else NONE
            if is_constant(key) and key.const in dict(receiver.items):
                return found
            return join(found, default)
        case "items":
            return Sequence(Tuple((STATIC, joined)))
        case "values":
            return Tuple(tuple(values)) if values else Sequence(joined)
        case "keys":
            return Sequence(STATIC)
        case "copy":
            return receiver
        case "update":
            rebind(frame, node, replace(receiver, default=UNKNOWN, closed=False))
            return NONE
    return UNKNOWN


KEEPS_MODULE = {
    *("to", "cuda", "cpu", "eval", "train", "half", "float", "double", "bfloat16", "type"),
    *("requires_grad_", "apply", "share_memory"),
}


PARAMETERS = {
    "parameters": Sequence(Tensor(grad=True)),
    "buffers": Sequence(Tensor(grad=False)),
    "named_parameters": Sequence(Tuple((STATIC, Tensor(grad=True)))),
    "named_buffers": Sequence(Tuple((STATIC, Tensor(grad=False)))),
}
"""What the methods of a module give by which its tensors are gone through."""


def _inherited_method(
    frame: Frame, receiver: Instance, name: str, arguments: Arguments, node: cst.BaseExpression
) -> Value:
    """A method that an object of a project class has from a class of a library."""
    machine = frame.machine
    classes = [*machine.external_bases(receiver.cls)]
    classes += ["torch.nn.Module"] if machine.is_module(receiver.cls) else []
    _observe_method(frame, classes, receiver, name, arguments, node)
    if machine.torch.hooked(name) is not None and machine.is_module(receiver.cls):
        machine.hooks[receiver.cls] = name
    is_switch = name == "train" and arguments.constant(0, "mode") in (None, True)
    if is_switch and frame.region is None and isinstance(node, cst.Call):
        machine.changes.note_mode(receiver.cls, node.func, frame)
    if name in FORWARD_HOOKS and machine.is_module(receiver.cls):
        known = machine.watchers.get(receiver.cls, ())
        machine.watchers[receiver.cls] = tuple(dict.fromkeys([*known, arguments.first]))
    match name:
        case "register_buffer" | "register_parameter" | "add_state":
            machine.register(receiver, arguments)
            return NONE
        case "compile" if machine.is_module(receiver.cls):
            maker = makers()["torch.compile"]
            machine.make_region(frame, maker, Arguments([receiver], arguments.keywords), node)
            return NONE
        case "compile" if machine.is_keras(receiver.cls):
            return keras_calls.compiled(frame, receiver, arguments, node)
        case "forward" | "__call__":
            return _call_instance(frame, receiver, arguments, node)
        case _ if name in PARAMETERS:
            return PARAMETERS[name]
        case "state_dict":
            return Dict(default=TENSOR)
    if name in KEEPS_MODULE:
        return receiver
    return UNKNOWN


def _observe_method(
    frame: Frame,
    classes: list[str],
    receiver: Value,
    name: str,
    arguments: Arguments,
    node: cst.BaseExpression,
) -> Operator | None:
    """The row of a method that an object has from one of these classes; the log is told."""
    table = frame.machine.torch
    classes = [*classes, *(base for cls in classes for base in table.bases(cls))]
    found = (table.standard(f"{cls}.{name}") for cls in classes)
    operator = _of_object(receiver, next(filter(None, found), None))
    given = arguments.after(receiver)
    frame.observe_operation(node, operator, Use.CALL, given.positional, given.keywords)
    if frame.runs_once:
        for cls in classes:
            once.by_function(frame, f"{cls}.{name}", arguments.all(), node)
    return operator


def _of_object(receiver: Value, row: Operator | None) -> Operator | None:
    """The row of a method, which may break only on an object from outside of the region."""
    if row is None or row.held is None:
        return row
    is_held = isinstance(receiver, ExternalInstance) and not receiver.made_here
    return replace(row, breaks=row.held) if is_held else row


def _module_method(
    frame: Frame,
    receiver: ExternalInstance,
    name: str,
    arguments: Arguments,
    node: cst.BaseExpression,
) -> Value:
    classes = [receiver.name]
    classes += ["torch.nn.Module"] if frame.machine.torch.module(receiver.name) else []
    method = _observe_method(frame, classes, receiver, name, arguments, node)
    if frame.machine.torch.hooked(name) is not None and len(classes) > 1:
        rebind(frame, node, replace(receiver, hook=name))
    if name in FORWARD_HOOKS and len(classes) > 1:
        watchers = tuple(dict.fromkeys([*receiver.watchers, arguments.first]))
        rebind(frame, node, replace(receiver, watchers=watchers))
    match name:
        case "forward" | "__call__":
            return _call_module(frame, receiver, arguments, node)
        case "compile" if receiver.name in KERAS_MODELS:
            return keras_calls.compiled(frame, receiver, arguments, node)
        case "append" | "add":
            children = (*receiver.children, *_children(arguments))
            rebind(frame, node, replace(receiver, children=tuple(dict.fromkeys(children))))
            return receiver
        case "values":
            return Tuple(receiver.children)
        case "items" | "named_children":
            return Sequence(Tuple((STATIC, join_all(receiver.children))))
        case "children":
            return Tuple(receiver.children)
        case _ if name in PARAMETERS:
            return PARAMETERS[name]
        case "state_dict":
            return Dict(default=Tensor(grad=False))
    if name in KEEPS_MODULE:
        return receiver
    if method is not None and method.instance is not None:
        return ExternalInstance(method.instance)
    if method is not None and method.symbolic and frame.region is not None:
        return _read_by(_symbol_of(method), node)
    return UNKNOWN


def _unknown_method(
    frame: Frame, receiver: Value, name: str, arguments: Arguments, node: cst.BaseExpression
) -> Value:
    """A method that only tensors have says that its receiver is one."""
    table = frame.machine.torch
    if name == "size":
        return SHAPE if arguments.positional else Sequence(SHAPE)
    if table.is_tensor_only(name):
        tensor = ASSUMED_TENSOR if name in ARRAY_METHODS else TENSOR
        return _tensor_method(frame, tensor, name, arguments, node)
    return unknown_callee(arguments)


ARRAY_METHODS = frozenset(
    {
        *("all", "any", "argmax", "argmin", "argsort", "clip", "conj", "cumprod", "cumsum"),
        *("diagonal", "dot", "flatten", "item", "max", "mean", "min", "nonzero", "prod", "put"),
        *("ravel", "repeat", "reshape", "resize", "round", "size", "squeeze", "std", "sum"),
        *("swapaxes", "take", "tolist", "trace", "transpose", "var", "view"),
    }
)
"""Methods that an array of NumPy has as well (numpy 2.4): they tell a tensor from a plain
value, but not from an array."""


# -- functions that need more than a row of a table ------------------------------------------

Handler = Callable[[Frame, str, Arguments, cst.BaseExpression], Value]
HANDLERS: dict[str, Handler] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    def register(function: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = function
        return function

    return register


# The handlers of these modules call what stands above.
from jitlint.analysis import (  # noqa: E402
    builtin_calls,  # noqa: F401
    datasets,
    keras_calls,
    shapes_of_operators,
    torch_calls,  # noqa: F401
)
