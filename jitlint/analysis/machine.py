"""The interpreter's memory: calls, classes, globals and regions across all files."""

import builtins
import functools
import sys
from collections import Counter
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace

import libcst as cst

from jitlint.analysis import freezing, tables
from jitlint.analysis import makers as tables_of_makers
from jitlint.analysis.annotations import annotated_value
from jitlint.analysis.calls import Arguments, apply
from jitlint.analysis.changes import Changes
from jitlint.analysis.expressions import evaluate
from jitlint.analysis.frame import Frame
from jitlint.analysis.makers import Maker
from jitlint.analysis.observations import Log
from jitlint.analysis.operators import leaves_of
from jitlint.analysis.statements import execute_block
from jitlint.analysis.tables import Returns, Table
from jitlint.analysis.values import (
    DATA_SIZE,
    DATA_SIZES,
    NONE,
    SHAPE,
    STATIC,
    TENSOR,
    TORCH_SIZE,
    UNKNOWN,
    BoundMethod,
    Choice,
    Class,
    Closure,
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
    Partial,
    Pinned,
    Sequence,
    Size,
    Static,
    StaticShape,
    Super,
    Tensor,
    Tuple,
    Unknown,
    Value,
    given,
    is_callable,
    is_constant,
    is_none,
    is_true,
    join,
    join_all,
    tuple_of,
)
from jitlint.project.index import BindingKind
from jitlint.project.modules import ClassInfo, FunctionInfo, Module
from jitlint.project.project import Project
from jitlint.region import GRAPHS, Region, RegionKind

MAX_DEPTH = 14
"""Calls nested deeper than this return what their annotation says."""
MAX_HOST_DEPTH = 4
"""The same for code outside of regions, which is only read for what it hands to compilers."""
MAX_CONTEXTS = 60
"""A function analysed with more different arguments returns what its annotation says."""

STANDARD = frozenset(sys.stdlib_module_names)
"""Modules of Python's own, after which scripts are named now and then."""

OVERLOADS = {
    "Equal": "__eq__",
    "NotEqual": "__ne__",
    "LessThan": "__lt__",
    "LessThanEqual": "__le__",
    "GreaterThan": "__gt__",
    "GreaterThanEqual": "__ge__",
    "Add": "__add__",
    "Subtract": "__sub__",
    "Multiply": "__mul__",
    "Divide": "__truediv__",
    "MatrixMultiply": "__matmul__",
}


@dataclass(frozen=True, slots=True)
class RegionRequest:
    """A call that hands `target` to a compiler, found in code outside of regions.

    `function` is the function in which the call stands; None in a module body.
    """

    kind: RegionKind
    target: Value
    examples: Value
    fullgraph: bool
    module: Module
    function: FunctionInfo | None
    node: cst.CSTNode
    maker: str = ""


class Machine:
    """Interprets functions on demand, each once per combination of argument values."""

    def __init__(
        self,
        project: Project,
        torch: Table,
        watched: frozenset[str] = frozenset(),
        others: Items[Table] = (),
    ) -> None:
        """`watched` are the library functions whose calls are to be observed."""
        self.project = project
        self.torch = torch
        self.tables = {root: table for table in (torch, *others) for root in table.roots}
        self.graphs: dict[FunctionInfo, tuple[RegionKind, dict[str, Value]]] = {}
        self.pinned: set[FunctionInfo] = set()
        self.watched = watched
        self.watches_functions = COMPILED_FUNCTION in watched
        self.log = Log()
        self.changes = Changes()
        self.requests: list[RegionRequest] = []
        self.call_sites: dict[FunctionInfo, list[dict[str, Value]]] = {}
        self.symbolic_calls: dict[tuple[Module, FunctionInfo | None], list[Value]] = {}
        self.eager_models: set[ClassInfo] = set()
        self.fused_models: set[ClassInfo] = set()
        self.settings: dict[tuple[Module, str], bool] = {}
        self._saved: dict[ClassInfo, Value] = {}
        self._globals: dict[tuple[Module, str], Value] = {}
        self._memo: dict[object, Value] = {}
        self._active: set[object] = set()
        self._contexts: Counter[tuple[FunctionInfo, bool]] = Counter()
        self._tables: dict[ClassInfo, dict[str, Value]] = {}
        self._mros: dict[ClassInfo, tuple[ClassInfo, ...]] = {}
        self._external_bases: dict[ClassInfo, tuple[str, ...]] = {}
        self._nested: dict[int, FunctionInfo] = {}
        self.hooks: dict[ClassInfo, str] = {}
        self.watchers: dict[ClassInfo, tuple[Value, ...]] = {}
        self._decorators: dict[FunctionInfo, frozenset[str]] = {}
        self._kernels: dict[FunctionInfo, Value] = {}
        self._wrappers: dict[FunctionInfo, Function | BoundMethod | None] = {}
        self._bare_results: dict[FunctionInfo, Value] = {}
        self.no_gradients = 0
        """How many contexts are entered under which torch records no gradient."""

    @functools.cached_property
    def tracing(self) -> Table:
        """What the tracers of torch freeze."""
        return tables.load("tracing", self.torch.version)

    def table_of(self, dotted: str) -> Table:
        """The table of the framework that a dotted name belongs to."""
        return self.tables.get(dotted.partition(".")[0], self.torch)

    # -- names -----------------------------------------------------------------------------

    def named(self, dotted: str) -> Value:
        """The value of an absolute dotted name."""
        found = self.project.resolve(dotted)
        if found is None:
            return External(dotted)
        definition, rest = found
        if isinstance(definition, Module) and rest:
            first, _, rest = rest.partition(".")
            value = self.global_value(definition, first)
        else:
            value = self._value_of(definition)
        frame = Frame(self, definition if isinstance(definition, Module) else definition.module)
        for name in filter(None, rest.split(".")):
            value = self.attribute(frame, value, name)
        return value

    def _value_of(self, definition: Module | FunctionInfo | ClassInfo) -> Value:
        if isinstance(definition, Module):
            return ModuleValue(definition)
        return Class(definition) if isinstance(definition, ClassInfo) else self.defined(definition)

    def global_value(self, module: Module, name: str) -> Value:
        """The value of a top-level name, or of a builtin."""
        key = (module, name)
        if key not in self._globals:
            self._globals[key] = UNKNOWN  # while it is computed
            self._globals[key] = self._global(module, name)
        return self._globals[key]

    def _global(self, module: Module, name: str) -> Value:
        binding = self.project.binding(module, name)
        if binding is None:
            return self._starred(module, name)
        if binding.kind is BindingKind.IMPORT:
            if module.name == binding.target.partition(".")[0] and module.name in STANDARD:
                return External(binding.target)  # a file does not import itself
            return self.named(binding.target)
        if binding.kind is BindingKind.FUNCTION and name in module.functions:
            return self.defined(module.functions[name])
        if binding.kind is BindingKind.CLASS and name in module.classes:
            return Class(module.classes[name])
        frame = Frame(self, module)
        return join_all(evaluate(frame, value) for value in module.assignments.get(name, ()))

    def _starred(self, module: Module, name: str) -> Value:
        if module.facts.stars:
            value = self.named(f"{module.name}.{name}")
            if not isinstance(value, Unknown):
                return value
        if hasattr(builtins, name):
            return External(f"builtins.{name}")
        return STATIC if name.startswith("__") else UNKNOWN

    def set_global(self, module: Module, name: str, value: Value) -> None:
        """A statement of the module's body says more of a top-level name."""
        self._globals[module, name] = value

    # -- classes ---------------------------------------------------------------------------

    def mro(self, cls: ClassInfo) -> tuple[ClassInfo, ...]:
        """The project classes among the bases of a class, itself first."""
        if cls not in self._mros:
            self._mros[cls] = (cls,)  # while it is computed
            found = [cls]
            external: list[str] = []
            frame = Frame(self, cls.module)
            for base in cls.bases:
                value = evaluate(frame, base)
                if isinstance(value, Class):
                    found.extend(self.mro(value.info))
                    external.extend(self.external_bases(value.info))
                elif isinstance(value, External):
                    external.append(value.name)
            self._mros[cls] = tuple(dict.fromkeys(found))
            self._external_bases[cls] = tuple(dict.fromkeys(external))
        return self._mros[cls]

    def external_bases(self, cls: ClassInfo) -> tuple[str, ...]:
        self.mro(cls)
        return self._external_bases.get(cls, ())

    def is_module(self, cls: ClassInfo) -> bool:
        """Whether it is an nn.Module; of an unknown base a `forward` method says so."""
        bases = self.external_bases(cls)
        if any(base.startswith("torch.nn.") for base in bases):
            return True
        outside = [base for base in bases if not base.startswith(("builtins.", "typing.", "abc."))]
        return (
            bool(outside)
            and self.method(cls, "forward") is not None
            and not any(map(_is_autograd, bases))
        )

    def is_keras(self, cls: ClassInfo) -> bool:
        """Whether it is a `keras.Layer` or a `keras.Model`."""
        return any(
            base.removeprefix("tensorflow.").startswith("keras.")
            and base.rpartition(".")[2] in ("Layer", "Model", "Sequential")
            for base in self.external_bases(cls)
        )

    def run_by_call(self, cls: ClassInfo) -> str:
        """The method that runs when an object of the class is called."""
        if self.is_module(cls):
            return "forward"
        return "call" if self.is_keras(cls) else "__call__"

    def kind_inside(self, cls: ClassInfo, kind: RegionKind) -> RegionKind:
        """AutoGraph does not follow a call of a Keras object."""
        is_left = kind is RegionKind.GRAPH and self.is_keras(cls)
        return RegionKind.KERAS if is_left else kind

    def is_enum(self, cls: ClassInfo) -> bool:
        return any(base.startswith("enum.") for base in self.external_bases(cls))

    def method(
        self, cls: ClassInfo, name: str, after: ClassInfo | None = None
    ) -> FunctionInfo | None:
        """A method by name; with `after`, the one that `super()` in that class finds."""
        mro = self.mro(cls)
        if after is not None and after in mro:
            mro = mro[mro.index(after) + 1 :]
        return next((info.methods[name] for info in mro if name in info.methods), None)

    def attributes(self, cls: ClassInfo) -> dict[str, Value]:
        """What `__init__` (its own, or inherited) and class annotations store in `self`."""
        if cls not in self._tables:
            table = self._tables[cls] = {}
            for info in reversed(self.mro(cls)):
                self._annotated_attributes(info, table)
            init = self.method(cls, "__init__")
            if init is not None:
                self._run_init(cls, init)
        return self._tables[cls]

    def _annotated_attributes(self, info: ClassInfo, table: dict[str, Value]) -> None:
        frame = Frame(self, info.module)
        for name, statement in info.assignments.items():
            if isinstance(statement, cst.AnnAssign):
                value = annotated_value(frame, statement.annotation.annotation)
                if not isinstance(value, Unknown):
                    table[name] = value

    def _run_init(self, cls: ClassInfo, init: FunctionInfo) -> None:
        frame = Frame(self, init.module, init, depth=1)
        for name, value in self.declared(init).items():
            frame.variables[name] = _of_any_call(value)
        for parameter in init.parameters[:1]:
            frame.variables[parameter.name.value] = Instance(cls)
        if isinstance(init.node, cst.FunctionDef):
            execute_block(frame, init.node.body)

    def store_attribute(self, cls: ClassInfo, name: str, value: Value) -> None:
        table = self.attributes(cls)
        table[name] = join(table[name], value) if name in table else value

    def register(self, receiver: Instance, arguments: Arguments) -> None:
        """`register_buffer(name, tensor)`, `register_parameter`, torchmetrics' `add_state`."""
        name = arguments.get(0, "name")
        value = arguments.get(1, "tensor") or arguments.get(1, "default") or TENSOR
        if name is not None and is_constant(name):
            known = value if isinstance(value, Tensor) else TENSOR
            stored = Optional(TENSOR) if is_none(value) else known
            self.store_attribute(receiver.cls, str(name.const), stored)

    # -- attributes ------------------------------------------------------------------------

    def attribute(self, frame: Frame, receiver: Value, name: str) -> Value:
        match receiver:
            case ModuleValue(module):
                return self.named(f"{module.name}.{name}")
            case External(dotted) if dotted.partition(".")[0] in STANDARD:
                return External(f"{dotted}.{name}")
            case External(dotted):
                return self.named(f"{dotted}.{name}")
            case Instance():
                return self._instance_attribute(frame, receiver, name)
            case Class(info):
                return self._class_attribute(info, name, bound=None)
            case Super(instance, cls):
                return self._super_attribute(instance, cls, name)
            case Optional(value) | CutOff(function=value) | Pinned(value):
                return self.attribute(frame, value, name)
            case Choice(options):
                return join_all([self.attribute(frame, option, name) for option in options])
            case Tensor() if frame.tracer and freezing.is_metadata(frame, name):
                return freezing.metadata(name)
            case Tensor():
                return self._tensor_attribute(receiver, name)
            case Static():
                return Static(source=receiver.source)
            case StaticShape():
                return STATIC if name in ("rank", "ndims") else ExternalMethod(receiver, name)
            case Dataset() | Exported():
                return ExternalMethod(receiver, name)
            case ExternalInstance():
                return PARAMETERS.get(name) or ExternalMethod(receiver, name)
            case Unknown() if name == "saved_tensors" and frame.function is not None:
                holder = frame.function.cls
                return UNKNOWN if holder is None else self._saved.get(holder, UNKNOWN)
        return self._unknown_attribute(name)

    @staticmethod
    def size_of(tensor: Tensor) -> Static:
        """One of the sizes of a tensor of torch, or their product."""
        is_dynamic = tensor.shape is not None and Size.DATA in tensor.shape.dims
        return DATA_SIZE if is_dynamic else SHAPE

    def _tensor_attribute(self, receiver: Tensor, name: str) -> Value:
        kind = self.tables.get(receiver.framework.value, self.torch).attribute(name)
        if name == "shape":
            if receiver.shape is not None and receiver.framework is Framework.TENSORFLOW:
                return StaticShape(receiver.shape)
            return _shape_of(receiver)
        match kind:
            case Returns.SIZE:
                return SHAPE if name != "ndim" else STATIC
            case Returns.STATIC:
                return STATIC
            case Returns.TENSOR:
                rank = receiver.rank if name in ("T", "data", "real", "mT", "H") else None
                grad = False if name == "data" else receiver.grad
                return replace(
                    receiver, rank=rank, maybe=False, grad=grad, shape=None, origin=receiver.derived
                )
            case None if name == "ndim":
                return STATIC
        return ExternalMethod(receiver, name)

    def _unknown_attribute(self, name: str) -> Value:
        """Metadata is static whatever it belongs to."""
        if name == "shape":
            return Sequence(SHAPE)
        if name in METADATA:
            return STATIC
        return UNKNOWN

    def _instance_attribute(self, frame: Frame, receiver: Instance, name: str) -> Value:
        cls = receiver.cls
        table = self.attributes(cls)
        if name in table:
            return given(table[name]) if frame.region is not None else table[name]
        if name == "__class__":
            return Class(cls)
        method = self.method(cls, name)
        if method is not None:
            decorators = self.decorator_names(method)
            if any(d.endswith(("property", "cached_property")) for d in decorators):
                return self.call(frame, Function(method), Arguments([receiver]))
            if "builtins.staticmethod" in decorators:
                return self.defined(method)
            bound = Class(cls) if "builtins.classmethod" in decorators else receiver
            return BoundMethod(bound, Function(method))
        assigned = self._class_attribute(cls, name, bound=receiver)
        if not isinstance(assigned, Unknown):
            return assigned
        if name in METADATA or (name == "training" and self.is_module(cls)):
            return STATIC
        return ExternalMethod(receiver, name) if self.external_bases(cls) else UNKNOWN

    def backward_of(self, forward: FunctionInfo) -> FunctionInfo | None:
        """The formula that belongs to the `forward` of a `torch.autograd.Function`."""
        cls = forward.cls
        return (
            self.method(cls, "backward") if cls is not None and self.has_formula(forward) else None
        )

    def has_formula(self, method: FunctionInfo) -> bool:
        """Whether it is a method of a `torch.autograd.Function`."""
        cls = method.cls
        return cls is not None and any(map(_is_autograd, self.external_bases(cls)))

    def save_for_backward(self, frame: Frame, tensors: Items[Value]) -> None:
        """Remember what the context of a `torch.autograd.Function` keeps."""
        holder = frame.function.cls if frame.function is not None else None
        if holder is not None:
            saved = tuple_of(tensors)
            self._saved[holder] = join(self._saved.get(holder, saved), saved)

    def _applied(self, cls: ClassInfo) -> Value | None:
        """`apply` of a `torch.autograd.Function`, which calls `forward` with a context."""
        forward = self.method(cls, "forward")
        if forward is None or not any(map(_is_autograd, self.external_bases(cls))):
            return None
        function = Function(forward)
        has_context = self.method(cls, "setup_context") is None
        return BoundMethod(UNKNOWN, function) if has_context else function

    def _class_attribute(self, cls: ClassInfo, name: str, bound: Value | None) -> Value:
        if name == "apply" and (applied := self._applied(cls)) is not None:
            return applied
        for info in self.mro(cls):
            if name in info.methods:
                method = info.methods[name]
                if "builtins.classmethod" in self.decorator_names(method):
                    return BoundMethod(Class(cls), Function(method))
                return self.defined(method)
            if name in info.classes:
                return Class(info.classes[name])
            if name in info.assignments:
                if self.is_enum(cls):
                    return STATIC
                value = info.assignments[name].value
                return evaluate(Frame(self, info.module), value) if value is not None else UNKNOWN
        return UNKNOWN

    def _super_attribute(self, instance: Value, cls: ClassInfo, name: str) -> Value:
        if isinstance(instance, Instance | Class):
            owner = instance.cls if isinstance(instance, Instance) else instance.info
            method = self.method(owner, name, after=cls)
            if method is not None:
                return BoundMethod(instance, Function(method))
        if name == "__init__":
            return ExternalMethod(STATIC, name)
        if name in ("forward", "__call__"):  # of the library's class, not of the project's
            bases = self.external_bases(cls)
            known = (base for base in bases if self.table_of(base).module(base) is not None)
            return ExternalMethod(ExternalInstance(next(known, "")), name)
        return ExternalMethod(instance, name)

    def call_method(
        self, frame: Frame, receiver: Instance, name: str, positional: Items[Value]
    ) -> Value:
        method = self.method(receiver.cls, name)
        if method is None:
            return UNKNOWN
        return self.call(frame, Function(method), Arguments([receiver, *positional]))

    def overloaded(self, frame: Frame, name: str, left: Value, right: Value) -> Value | None:
        """An operator that a project class defines."""
        if isinstance(left, Instance) and name in OVERLOADS:
            method = self.method(left.cls, OVERLOADS[name])
            if method is not None:
                return self.call(frame, Function(method), Arguments([left, right]))
        return None

    def external_item(self, container: Value, index: Items[Value | None]) -> Value:
        if isinstance(container, ExternalInstance) and container.children:
            key = index[0]
            count = len(container.children)
            position = key.const if isinstance(key, Static) else None
            if isinstance(position, int) and -count <= position < count:
                return container.children[position]
            return container if key is None else join_all(container.children)
        return container if isinstance(container, External) else UNKNOWN

    def entered(self, frame: Frame, context: Value, node: cst.CSTNode) -> Value:
        """What `with context as …` binds."""
        if isinstance(context, Instance):
            return self.call_method(frame, context, "__enter__", ())
        if isinstance(context, ExternalInstance) and self.torch.enters_itself(context.name):
            return context
        return context.element if isinstance(context, Sequence) else UNKNOWN

    def is_layer(self, value: Value) -> bool:
        """Whether an object is an nn.Module, of torch or of the project."""
        if isinstance(value, ExternalInstance):
            return "torch.nn.Module" in self.torch.bases(value.name)
        return isinstance(value, Instance) and self.is_module(value.cls)

    def holds_tensor(self, value: Value) -> bool:
        """Whether an object has an attribute that is a tensor."""
        if not isinstance(value, Instance):
            return False
        held = self.attributes(value.cls).values()
        return any(isinstance(leaf, Tensor) for leaf in leaves_of(held))

    def left(self, frame: Frame, context: Value) -> None:
        """What the end of a `with` block calls, where nothing was raised in it."""
        if isinstance(context, Instance):
            self.call_method(frame, context, "__exit__", (NONE, NONE, NONE))

    # -- functions -------------------------------------------------------------------------

    def nested_function(self, frame: Frame, node: cst.FunctionDef) -> FunctionInfo:
        known = frame.module.functions.get(node.name.value)
        if known is not None and known.node is node:
            return known
        if id(node) not in self._nested:
            prefix = f"{frame.function.qualname}." if frame.function is not None else ""
            name = f"{prefix}{node.name.value}"
            self._nested[id(node)] = FunctionInfo(frame.module, name, node)
        return self._nested[id(node)]

    def lambda_value(self, frame: Frame, node: cst.Lambda) -> Function:
        if id(node) not in self._nested:
            self._nested[id(node)] = FunctionInfo(frame.module, "<lambda>", node)
        return Function(self._nested[id(node)], self.closure_of(frame))

    def closure_of(self, frame: Frame) -> Closure | None:
        """The variables that a function defined here can see."""
        if frame.function is None:
            return None
        outer = frame.closure.variables if frame.closure is not None else {}
        return Closure({**outer, **frame.variables} if outer else frame.variables)

    def decorator_names(self, info: FunctionInfo) -> frozenset[str]:
        """The dotted names of a function's decorators, called or not."""
        if info not in self._decorators:
            self._decorators[info] = frozenset()  # while it is computed
            frame = Frame(self, info.module)
            names = set()
            for node in info.decorators:
                value = evaluate(frame, node.func if isinstance(node, cst.Call) else node)
                if isinstance(value, Partial):
                    value = value.function
                if isinstance(value, External):
                    names.add(value.name)
                elif isinstance(value, Function | Class):
                    names.add(value.info.qualname)
            self._decorators[info] = frozenset(names)
        return self._decorators[info]

    def defined(self, info: FunctionInfo) -> Value:
        """The value of a `def`: a kernel if a decorator makes one of it."""
        if not self.decorator_names(info) & tables_of_makers.KERNELS:
            return Function(info)
        if info not in self._kernels:
            frame = Frame(self, info.module)
            value: Value = Function(info)
            for node in reversed(info.decorators):
                value = self.decorate(frame, evaluate(frame, node), value, node)
            self._kernels[info] = value
        return self._kernels[info]

    def decorate(
        self, frame: Frame, decorator: Value, value: Value, node: cst.BaseExpression
    ) -> Value:
        """What a decorator makes of a function: a kernel, or what is made of one.

        All others are transparent.
        """
        callee = decorator.function if isinstance(decorator, Partial) else decorator
        name = callee.name if isinstance(callee, External) else ""
        if name in tables_of_makers.KERNELS or isinstance(value, Kernel):
            return apply(frame, decorator, Arguments([value]), node)
        is_maker = name in tables_of_makers.makers() or isinstance(decorator, Function | Partial)
        if is_maker and frame.region is None:
            apply(frame, decorator, Arguments([value]), node)
        return value

    def construct(self, frame: Frame, cls: Class, arguments: Arguments) -> Value:
        """An object of a project class, which a tracer sees made. An Enum's members are static."""
        if self.is_enum(cls.info):
            return STATIC
        bases = self.external_bases(cls.info)
        if any(map(_is_autograd, bases)):
            return UNKNOWN
        made = Instance(cls.info)
        if frame.region is not None and not _is_scripted(frame.region):
            init = self.method(cls.info, "__init__")
            after = self.method(cls.info, "__post_init__")
            if init is not None:
                self.call(frame, Function(init), arguments.after(made))
            elif after is not None:
                self.call(frame, Function(after), Arguments([made]))
        return made

    def declared(self, info: FunctionInfo) -> dict[str, Value]:
        """Parameters by annotation, else by the constant that is their default."""
        values: dict[str, Value] = {}
        frame = Frame(self, info.module)
        parameters = info.node.params
        for parameter in (*info.parameters, *parameters.kwonly_params):
            values[parameter.name.value] = self._declared_one(frame, parameter)
        if isinstance(parameters.star_arg, cst.Param):
            element = self._annotation(frame, parameters.star_arg)
            values[parameters.star_arg.name.value] = Sequence(element)
        if parameters.star_kwarg is not None:
            element = self._annotation(frame, parameters.star_kwarg)
            values[parameters.star_kwarg.name.value] = Dict(default=element)
        return values

    def _annotation(self, frame: Frame, parameter: cst.Param) -> Value:
        if parameter.annotation is None:
            return UNKNOWN
        return annotated_value(frame, parameter.annotation.annotation)

    def _declared_one(self, frame: Frame, parameter: cst.Param) -> Value:
        annotated = self._annotation(frame, parameter)
        default = UNKNOWN if parameter.default is None else evaluate(frame, parameter.default)
        if isinstance(annotated, Tensor | Optional) and is_constant(default):
            # `flag: Tensor = False` is a slip of the annotation
            present = annotated.value if isinstance(annotated, Optional) else annotated
            return Optional(present) if is_none(default) else default
        if isinstance(annotated, Unknown) or (
            isinstance(annotated, Static) and is_constant(default) and not is_none(default)
        ):
            return UNKNOWN if is_none(default) else default
        return annotated

    def declared_result(self, info: FunctionInfo) -> Value:
        node = info.node
        if isinstance(node, cst.FunctionDef) and node.returns is not None:
            return annotated_value(Frame(self, info.module), node.returns.annotation)
        return UNKNOWN

    def bind_arguments(
        self, frame: Frame, info: FunctionInfo, arguments: Arguments
    ) -> dict[str, Value]:
        """Parameters of a call: what is passed, else the default, else the annotation."""
        parameters = info.node.params
        host = Frame(self, info.module)
        bound: dict[str, Value] = {}
        keywords = dict(arguments.keywords)
        positional = list(arguments.positional)
        for parameter in info.parameters:
            name = parameter.name.value
            if positional:
                value: Value | None = positional.pop(0)
            elif name in keywords:
                value = keywords.pop(name)
            else:
                value = arguments.rest
            bound[name] = self._bind_one(host, parameter, value, arguments.open)
        if isinstance(parameters.star_arg, cst.Param):
            rest = tuple_of(positional) if arguments.rest is None else Sequence(arguments.rest)
            if isinstance(rest, Tuple):
                rest = replace(rest, gathered=True)
            bound[parameters.star_arg.name.value] = rest
        for parameter in parameters.kwonly_params:
            name = parameter.name.value
            value = keywords.pop(name, None)
            bound[name] = self._bind_one(host, parameter, value, arguments.open)
        if parameters.star_kwarg is not None:
            items = tuple(sorted(keywords.items()))
            given = Dict(items, closed=not arguments.open, gathered=True)
            bound[parameters.star_kwarg.name.value] = given
        return bound

    def _bind_one(
        self, host: Frame, parameter: cst.Param, value: Value | None, is_open: bool
    ) -> Value:
        if value is None and parameter.default is not None and not is_open:
            value = evaluate(host, parameter.default)
        if value is None:
            return self._declared_one(host, parameter)
        if isinstance(value, Unknown):
            return self._annotation(host, parameter)
        return value

    def call(self, frame: Frame, function: Function, arguments: Arguments) -> Value:
        """Interpret a call, once per region kind and combination of argument values."""
        info = function.info
        if self.is_cut_off(frame, info):
            self._observe_signature(frame, info, arguments)
            return self._unseen_result(frame, function, arguments)
        bound = self.bind_arguments(frame, info, arguments)
        if frame.region is None:
            self.call_sites.setdefault(info, []).append(bound)
        if function.bare:
            return self._bare_results.get(info, UNKNOWN)
        result = self.run(frame, function, bound)
        wrapper = self._wrapper_of(frame, info) if frame.region is not None else None
        if wrapper is not None:
            self._bare_results[info] = result
            if isinstance(wrapper, BoundMethod):
                arguments = arguments.after(wrapper.receiver)
                wrapper = wrapper.function
            self.run(frame, wrapper, self.bind_arguments(frame, wrapper.info, arguments))
        return result

    def _wrapper_of(self, frame: Frame, info: FunctionInfo) -> Function | BoundMethod | None:
        """What the project's own decorators make of a function: it runs around it.

        The function itself is interpreted by its own arguments, and what it returns is taken
        for the result of both: a wrapper passes on what it does not know.
        """
        if info not in self._wrappers:
            self._wrappers[info] = None  # while it is computed
            host = Frame(self, info.module, region=frame.region, depth=frame.depth, silent=1)
            bare: Function | BoundMethod = Function(info, bare=True)
            value = bare
            for node in reversed(info.decorators):
                decorator = evaluate(host, node)
                if isinstance(decorator, Function | Class | Instance):
                    made = self._callable(apply(host, decorator, Arguments([value]), node))
                    value = value if made is None else made
            self._wrappers[info] = None if value == bare else value
        return self._wrappers[info]

    def _callable(self, value: Value) -> Function | BoundMethod | None:
        """The code that a call of a value runs, if it is the project's."""
        if isinstance(value, Instance) and not self.is_module(value.cls):
            method = self.method(value.cls, "__call__")
            return None if method is None else BoundMethod(value, Function(method))
        return value if isinstance(value, Function | BoundMethod) else None

    def _observe_signature(self, frame: Frame, info: FunctionInfo, arguments: Arguments) -> None:
        """TorchScript compiles a call of what it leaves to Python, so that types matter."""
        if self.watches_functions and _is_scripted(frame.region):
            bound = self.bind_arguments(frame, info, arguments)
            caller = replace(frame, module=info.module, function=info, variables=bound)
            caller.observe_function(info, signature_only=True)

    def _unseen_result(self, frame: Frame, function: Function, arguments: Arguments) -> Value:
        """What a function gives whose body no tracer enters. TorchScript keeps its meaning."""
        info = function.info
        if self.decorator_names(info) & tables_of_makers.SCRIPTED:
            bound = self.bind_arguments(frame, info, arguments)
            if frame.region is None:
                self.call_sites.setdefault(info, []).append(bound)
            return self.run(replace(frame, region=None, depth=0), function, bound)
        return self.declared_result(info)

    def call_unseen(
        self, frame: Frame, callee: Value, by: str, arguments: Arguments, node: cst.BaseExpression
    ) -> Value:
        """Call what is hidden from tracers by `by`; Python and TorchScript look into it."""
        is_scripted = by in tables_of_makers.SCRIPTED
        if frame.region is None or (is_scripted and _is_scripted(frame.region)):
            return apply(frame, callee, arguments, node)
        if is_scripted:
            return apply(replace(frame, region=None, depth=0), callee, arguments, node)
        function = callee.function if isinstance(callee, BoundMethod) else callee
        return self.declared_result(function.info) if isinstance(function, Function) else UNKNOWN

    def run(self, frame: Frame, function: Function, bound: dict[str, Value]) -> Value:
        info = function.info
        region = frame.region
        limit = MAX_HOST_DEPTH if region is None else MAX_DEPTH
        mode = (region.kind, region.fullgraph) if region is not None else None
        key: object = (info, function.closure, mode, frame.optional, tuple(bound.items()))
        if key in self._memo:
            return self._memo[key]
        if frame.silent:
            key = (key, "silent")  # what was not observed is interpreted once more
            if key in self._memo:
                return self._memo[key]
        context = (info, region is None)
        if frame.depth >= limit or key in self._active or self._contexts[context] >= MAX_CONTEXTS:
            return self.declared_result(info)
        self._contexts[context] += 1
        self._active.add(key)
        result = self._interpret(frame, function, bound)
        self._active.discard(key)
        self._memo[key] = result
        return result

    def _interpret(self, caller: Frame, function: Function, bound: dict[str, Value]) -> Value:
        info = function.info
        region = caller.region
        if region is not None:
            chain = (*region.chain, info.full_name)
            region = replace(region, chain=chain)
        frame = Frame(
            self, info.module, info, region, dict(bound), function.closure, caller.depth + 1
        )
        frame.silent, frame.optional = caller.silent, caller.optional
        if isinstance(info.node, cst.Lambda):
            return evaluate(frame, info.node.body)
        if self.watches_functions:
            frame.observe_function(info)
        if frame.tracer:
            freezing.in_mode_of_decorators(frame, info)
        is_off = bool(self.decorator_names(info) & tables_of_makers.NO_GRADIENTS)
        self.no_gradients += is_off
        falls = execute_block(frame, info.node.body)
        self.no_gradients -= is_off
        if frame.yielded:
            return Sequence(join_all(frame.yielded))
        results = frame.returned + ([NONE] if falls else [])
        result = join_all(results)
        if isinstance(result, Unknown) or (is_none(result) and not frame.returned):
            declared = self.declared_result(info)
            return result if isinstance(declared, Unknown) else declared
        return result

    def is_cut_off(self, frame: Frame, info: FunctionInfo) -> bool:
        """Whether the decorators of a function hide its body from the tracer of a frame."""
        names = self.decorator_names(info)
        if names & tables_of_makers.CUT_OFFS:
            return True
        if _is_scripted(frame.region):
            return bool(names & tables_of_makers.UNSCRIPTED)
        is_traced = frame.region is not None and frame.region.kind is RegionKind.TRACE
        return bool(names & tables_of_makers.SCRIPTED) and (
            is_traced or "torch.jit.script" in names
        )

    # -- regions ---------------------------------------------------------------------------

    def make_region(
        self, frame: Frame, maker: Maker, arguments: Arguments, node: cst.CSTNode
    ) -> Value:
        """A maker is called: note what it compiles, and return the same value, callable."""
        target = arguments.get(0, maker.target)
        is_kernel = maker.name in tables_of_makers.KERNELS
        if is_kernel and not isinstance(target, Function | BoundMethod):
            return _with_signatures(maker, arguments)
        if target is None or maker.target == "":
            name = maker.name if maker.target else "torch.compile"
            return Partial(External(name), (), tuple(arguments.keywords.items()))
        if frame.region is None and not is_true(arguments.keywords.get(maker.off)):
            examples = arguments.get(maker.examples_position, maker.examples)
            self.requests.append(
                RegionRequest(
                    _kind_of(maker, arguments),
                    target,
                    UNKNOWN if examples is None or not maker.examples else examples,
                    any(is_true(arguments.keywords.get(name)) for name in WHOLE),
                    frame.module,
                    frame.function,
                    node,
                    maker.name,
                )
            )
        self._note_graph(maker, target, arguments)
        if maker.name in PROGRAMS and isinstance(node, cst.Call):
            frame.observe_program(node, arguments.get(1, "args") or UNKNOWN, arguments.keywords)
            return Exported(target, node, frame.module, frame.function)
        if maker.name in tables_of_makers.SCRIPTED and is_callable(target):
            return CutOff(target, maker.name)
        if is_kernel:
            options = tuple(arguments.keywords.items())
            return Kernel(target, maker.name, options, "signature" in arguments.keywords)
        if _is_pinned(maker, arguments):
            if not isinstance(target, Function):
                return Pinned(target)
            self.pinned.add(target.info)
        return target

    def request_graph(
        self, frame: Frame, target: Value, examples: Value, node: cst.CSTNode
    ) -> None:
        """A function that a TensorFlow graph calls, such as that of `Dataset.map`."""
        if frame.region is None and not frame.silent:
            kind = RegionKind.GRAPH
            request = RegionRequest(
                kind, target, examples, False, frame.module, frame.function, node
            )
            self.requests.append(request)

    def request_symbolic(
        self,
        frame: Frame,
        instance: Instance,
        method: FunctionInfo,
        arguments: Arguments,
        node: cst.CSTNode,
    ) -> None:
        """A layer is called on symbols, of the shapes that `keras.Input` gave them."""
        target = BoundMethod(instance, Function(method))
        examples = tuple_of(arguments.positional)
        place = (frame.module, frame.function, node)
        if not frame.silent:
            self.requests.append(RegionRequest(RegionKind.KERAS, target, examples, False, *place))

    def _note_graph(self, maker: Maker, target: Value, arguments: Arguments) -> None:
        """Remember with which options `tf.function` took a function over."""
        function = target.function if isinstance(target, BoundMethod) else target
        kind = _kind_of(maker, arguments)
        if maker.name == tables_of_makers.KERAS_COMPILE:
            return  # Python still calls the method or the function itself
        if kind in GRAPHS and isinstance(function, Function):
            self.graphs[function.info] = kind, dict(arguments.keywords)


WHOLE = ("fullgraph", "strict")
"""Options of torch.compile and torch.export with which Dynamo must not break the graph."""

PROGRAMS = frozenset({"torch.export.export"})
"""Makers whose result is a program of its own, which is called by `program.module()(…)`."""


def _is_pinned(maker: Maker, arguments: Arguments) -> bool:
    is_static = arguments.keywords.get("dynamic") == Static(False)
    return maker.name == "torch.compile" and is_static


def _is_autograd(base: str) -> bool:
    return base.startswith("torch.autograd")


def _is_scripted(region: Region | None) -> bool:
    return region is not None and region.kind is RegionKind.SCRIPT


def _kind_of(maker: Maker, arguments: Arguments) -> RegionKind:
    for keyword, constant, kind in maker.variants:
        if arguments.keywords.get(keyword) == Static(constant):
            return kind
    return maker.kind


def _with_signatures(maker: Maker, arguments: Arguments) -> Value:
    """`njit("f8(f8[:])", …)` and `njit(parallel=True)` wait for their function."""
    keywords = dict(arguments.keywords)
    if arguments.positional:
        keywords["signature"] = arguments.positional[0]
    return Partial(External(maker.name), (), tuple(keywords.items()))


COMPILED_FUNCTION = "CompiledFunction"
"""Watched like a name: functions that a compiler takes over are to be observed."""

METADATA = frozenset(
    {
        *("dtype", "device", "ndim", "layout", "requires_grad", "is_cuda", "is_sparse"),
        *("is_leaf", "is_quantized", "is_meta", "itemsize", "nbytes", "names", "training"),
    }
)


PARAMETERS = {
    "weight": Tensor(grad=True),
    "bias": Tensor(grad=True),
    "running_mean": Tensor(grad=False),
    "running_var": Tensor(grad=False),
}
"""Attributes of a framework's layers that are tensors."""


def _shape_of(tensor: Tensor) -> Value:
    """A torch.Size where it is known that a tensor of torch is asked."""
    if Machine.size_of(tensor) is DATA_SIZE:
        return Tuple((DATA_SIZE,)) if tensor.rank == 1 else DATA_SIZES
    is_torch = tensor.framework is Framework.TORCH and not (tensor.assumed or tensor.maybe)
    return TORCH_SIZE if is_torch else Sequence(SHAPE)


def _of_any_call(value: Value) -> Value:
    """A default is what one caller in many passes."""
    if is_none(value):
        return UNKNOWN
    return STATIC if is_constant(value) else value
