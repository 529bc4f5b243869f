"""Where regions begin: what the project's own code, or its configuration, compiles."""

import fnmatch
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import libcst as cst

from jitlint.analysis.frame import Frame
from jitlint.analysis.machine import Machine, RegionRequest
from jitlint.analysis.makers import EXPORTED, KERAS_COMPILE, KERAS_INPUTS, UNSCRIPTED, makers
from jitlint.analysis.shapes import BATCH_OPEN
from jitlint.analysis.shapes_of_operators import GRAPH_TENSOR
from jitlint.analysis.statements import execute
from jitlint.analysis.values import (
    STATIC,
    TENSOR,
    UNKNOWN,
    BoundMethod,
    Choice,
    Class,
    Dict,
    External,
    ExternalInstance,
    Framework,
    Function,
    Instance,
    Kernel,
    Optional,
    Origin,
    Partial,
    Sequence,
    Static,
    Tensor,
    Tuple,
    Unknown,
    Value,
    element_of,
    join_all,
)
from jitlint.analysis.values import given as given_value
from jitlint.positions import positions_of
from jitlint.project.crashes import Crashes
from jitlint.project.evidence import contradicted, is_called, is_member_of_numbers
from jitlint.project.index import BindingKind
from jitlint.project.modules import ClassInfo, FunctionInfo, Module, statements_of
from jitlint.region import GRAPHS, Region, RegionKind
from jitlint.source import UnparsableError

TRACERS = frozenset({RegionKind.COMPILE, RegionKind.EXPORT, RegionKind.TRACE})
"""The compilers that run a function to see what it does."""

TRIGGERS = (
    *(b"compile", b"optimize", b"export", b"trace", b"make_fx", b"script"),
    *(b"numba", b"tensorflow", b"keras"),
)
"""No file without one of these hands code to a compiler by name."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A function that a compiler is given. `examples`: its example inputs, where known.

    `is_own`: the user's own code compiles it, so that parameters without any evidence are
    taken for tensors; parameters of a library's entries need evidence. `is_part`: it is
    compiled along with what the compiler is given, and called with inputs of its own.
    """

    function: FunctionInfo
    receiver: Value | None
    kind: RegionKind
    origin: Module
    node: cst.CSTNode
    examples: Value = UNKNOWN
    fullgraph: bool = False
    is_own: bool = True
    is_part: bool = False
    maker: str = ""


def creates_regions(module: Module) -> bool:
    """Whether a file may hand code to a compiler (by substring, then by its index)."""
    if not any(trigger in module.source for trigger in TRIGGERS):
        return False
    facts = module.facts
    names = makers().keys()
    if facts.mentions & names or any(name.startswith(PIPELINES) for name in facts.mentions):
        return True
    if "compile" not in facts.methods:
        return False
    is_asked = b"jit_compile" in module.source  # of a model that may come from another file
    return is_asked or any(name.startswith(COMPILABLE) for name in facts.mentions)


COMPILABLE = ("torch.nn", "keras.", "tensorflow.keras.")
"""Packages with classes whose objects have a method `compile`."""
PIPELINES = (
    *("tensorflow.data.", "keras.layers.Lambda", "tensorflow.keras.layers.Lambda"),
    *KERAS_INPUTS,
)
"""What these are given runs in a graph, and layers that are called on what they make."""


def own_entries(machine: Machine, modules: Iterable[Module], crashes: Crashes) -> list[Entry]:
    """What the given files compile, found by reading their code outside of regions."""
    given = list(modules)
    sources = [module for module in given if creates_regions(module)]
    for module in sources:
        with crashes.of(module):
            _read_host_code(machine, module)
    wrappers = _wrappers(machine, sources)
    for module in given:
        if wrappers and module not in sources and module.facts.imports & wrappers:
            with crashes.of(module):
                _read_host_code(machine, module)
    entries: list[Entry] = []
    unresolved: dict[Module, RegionRequest] = {}
    for request in machine.requests:
        found = list(_entries_of(machine, request, request.target))
        entries.extend(found)
        if not found and isinstance(request.target, Unknown):
            unresolved.setdefault(request.module, request)
    for module, request in unresolved.items():
        entries.extend(_modules_of_file(machine, module, request))
    for module in given:
        entries.extend(_keras_entries(machine, module))
    return _distinct(entries)


KERAS_METHODS = ("call", "train_step", "test_step", "predict_step")
"""Methods that Keras runs in a graph, without AutoGraph (Keras 3)."""
KERAS_TRIGGERS = tuple(f"def {name}(".encode() for name in KERAS_METHODS)


def _keras_entries(machine: Machine, module: Module) -> Iterator[Entry]:
    """What Keras traces when a model of the project is fitted, or made of symbolic inputs."""
    source = module.source
    if b"keras" not in source or not any(text in source for text in KERAS_TRIGGERS):
        return
    for cls in module.classes.values():
        if not machine.is_keras(cls) or cls in machine.eager_models:
            continue
        for name in KERAS_METHODS:
            method = cls.methods.get(name)
            if method is not None:
                kind = RegionKind.KERAS
                yield Entry(method, Instance(cls), kind, module, method.node)


def _wrappers(machine: Machine, sources: Iterable[Module]) -> frozenset[str]:
    """Names of the project that compile what they are given: functions, aliases, partials."""
    names = {
        request.function.full_name
        for request in machine.requests
        if request.function is not None and isinstance(request.target, Unknown)
    }
    for module in sources:
        for name, binding in module.facts.bindings.items():
            if binding.kind is not BindingKind.FUNCTION and _is_maker(machine, module, name):
                names.add(f"{module.name}.{name}")
    return frozenset(names)


def _is_maker(machine: Machine, module: Module, name: str) -> bool:
    value = machine.global_value(module, name)
    if isinstance(value, Partial):
        value = value.function
    return isinstance(value, External) and value.name in makers()


def _read_host_code(machine: Machine, module: Module) -> None:
    try:
        body = module.tree.body
    except UnparsableError:
        return
    frame = Frame(machine, module)
    for statement in body:
        for part in statements_of(statement):
            execute(frame, part)
    for cls in module.classes.values():  # first: functions call the methods that they compile
        _read_host_class(machine, cls)
    for info in module.functions.values():
        _read_host_function(machine, info, None)


def _read_host_class(machine: Machine, cls: ClassInfo) -> None:
    machine.attributes(cls)
    for info in cls.methods.values():
        frame = Frame(machine, cls.module)
        for decorator in info.decorators:
            from jitlint.analysis.expressions import evaluate

            method = BoundMethod(Instance(cls), Function(info))
            machine.decorate(frame, evaluate(frame, decorator), method, decorator)
        _read_host_function(machine, info, cls)
    for nested in cls.classes.values():
        _read_host_class(machine, nested)


def _read_host_function(machine: Machine, info: FunctionInfo, cls: ClassInfo | None) -> None:
    bound = machine.declared(info)
    if cls is not None and info.parameters:
        bound[info.parameters[0].name.value] = Instance(cls)
    machine.run(Frame(machine, info.module), Function(info), bound)


def _entries_of(machine: Machine, request: RegionRequest, target: Value) -> Iterator[Entry]:
    match target:
        case Instance(cls) | Class(cls) if request.kind is RegionKind.SCRIPT:
            yield from _scripted(machine, request, cls, set())
        case Function(info):
            yield _entry(request, info, None)
        case BoundMethod(receiver, function):
            yield _entry(request, function.info, receiver)
        case Instance(cls) | Class(cls) if request.maker == KERAS_COMPILE:
            for name in KERAS_METHODS:
                method = machine.method(cls, name)
                if method is not None:
                    yield _entry(request, method, Instance(cls))
        case Instance(cls) | Class(cls):
            method = machine.method(cls, machine.run_by_call(cls))
            if method is not None:
                entry = _entry(request, method, Instance(cls))
                yield replace(entry, kind=machine.kind_inside(cls, entry.kind))
        case ExternalInstance(children=children):
            for child in children:
                yield from _entries_of(machine, request, child)
        case Optional(value):
            yield from _entries_of(machine, request, value)
        case Choice(options):
            for option in options:
                yield from _entries_of(machine, request, option)
        case Partial(function) | Kernel(function):
            yield from _entries_of(machine, request, function)


def _scripted(
    machine: Machine, request: RegionRequest, cls: ClassInfo, seen: set[ClassInfo]
) -> Iterator[Entry]:
    """What torch.jit.script compiles of a class: of a Module the forward and the exported
    methods, and those of the Modules that it holds, called or not; of a class all methods."""
    if cls in seen:
        return
    seen.add(cls)
    methods = {name: info for each in machine.mro(cls) for name, info in each.methods.items()}
    for name in methods:
        method = machine.method(cls, name)
        assert method is not None
        decorators = machine.decorator_names(method)
        is_compiled = name == "forward" or EXPORTED in decorators
        if (is_compiled or not machine.is_module(cls)) and not decorators & UNSCRIPTED:
            is_part = name != "forward" or len(seen) > 1
            yield replace(_entry(request, method, Instance(cls)), is_part=is_part)
    if machine.is_module(cls):
        for held in machine.attributes(cls).values():
            yield from _held_modules(machine, request, held, seen)


def _held_modules(
    machine: Machine, request: RegionRequest, held: Value, seen: set[ClassInfo]
) -> Iterator[Entry]:
    match held:
        case Instance(cls) if machine.is_module(cls):
            yield from _scripted(machine, request, cls, seen)
        case ExternalInstance(children=children):
            for child in children:
                yield from _held_modules(machine, request, child, seen)


def _entry(request: RegionRequest, info: FunctionInfo, receiver: Value | None) -> Entry:
    return Entry(
        info,
        receiver,
        request.kind,
        request.module,
        request.node,
        request.examples,
        request.fullgraph,
        maker=request.maker,
    )


def _modules_of_file(machine: Machine, module: Module, request: RegionRequest) -> Iterator[Entry]:
    """A file that compiles something unknown and defines modules compiles those."""
    for cls in module.classes.values():
        method = cls.methods.get("forward")
        if method is not None and machine.is_module(cls):
            yield _entry(request, method, Instance(cls))


def _distinct(entries: Iterable[Entry]) -> list[Entry]:
    seen: dict[object, Entry] = {}
    for entry in entries:
        key = (entry.function, entry.receiver, entry.kind, entry.fullgraph)
        known = seen.get(key)
        if known is None or isinstance(known.examples, Unknown):
            seen[key] = entry
    return list(seen.values())


# -- entries that the configuration names ----------------------------------------------------


def configured_entries(
    machine: Machine, modules: Iterable[Module], patterns: Iterable[str], crashes: Crashes
) -> list[Entry]:
    """`pkg` is every nn.Module.forward in it, `pkg:*` its public functions, `pkg:name` one."""
    selectors = [(p.partition(":")[0], p.partition(":")[2]) for p in patterns]
    entries: list[Entry] = []
    for module in modules:
        for package, member in selectors:
            if not _is_in(module.name, package):
                continue
            with crashes.of(module):
                if member:
                    entries.extend(_members(machine, module, member))
                else:
                    entries.extend(_forwards(machine, module))
    return _distinct(entries)


def _is_in(name: str, package: str) -> bool:
    return fnmatch.fnmatchcase(name, package) or fnmatch.fnmatchcase(name, f"{package}.*")


def _library_entry(info: FunctionInfo, receiver: Value | None) -> Entry:
    return Entry(info, receiver, RegionKind.COMPILE, info.module, info.node, is_own=False)


def _forwards(machine: Machine, module: Module) -> Iterator[Entry]:
    if b"forward" not in module.source:
        return
    for cls in module.classes.values():
        method = cls.methods.get("forward")
        if method is not None and machine.is_module(cls):
            yield _library_entry(method, Instance(cls))


def _members(machine: Machine, module: Module, pattern: str) -> Iterator[Entry]:
    is_glob = any(character in pattern for character in "*?[")
    if is_glob:
        yield from _given_out(machine, module, pattern)
    if is_glob and b"def " not in module.source:
        return
    names = [n for n, b in module.facts.bindings.items() if b.kind is BindingKind.FUNCTION]
    for name in names:
        if not fnmatch.fnmatchcase(name, pattern) or (is_glob and name.startswith("_")):
            continue
        info = module.functions.get(name)
        if info is not None and (not is_glob or _has_tensor_evidence(machine, info)):
            yield _library_entry(info, None)
    cls_name, _, method_name = pattern.partition(".")
    cls = module.classes.get(cls_name) if method_name and cls_name in module.facts.classes else None
    if cls is not None:
        for name, info in cls.methods.items():
            if fnmatch.fnmatchcase(name, method_name):
                yield _library_entry(info, Instance(cls))


def _given_out(machine: Machine, module: Module, pattern: str) -> Iterator[Entry]:
    """Private functions of the package with a public name: `from ._impl import _f as f`."""
    package = module.name.partition(".")[0]
    for name, binding in module.facts.bindings.items():
        is_private = binding.target.rpartition(".")[2].startswith("_")
        if binding.kind is not BindingKind.IMPORT or not is_private or name.startswith("_"):
            continue
        if not (fnmatch.fnmatchcase(name, pattern) and _is_in(binding.target, package)):
            continue
        match machine.project.resolve(binding.target):
            case (FunctionInfo() as info, "") if _has_tensor_evidence(machine, info):
                yield _library_entry(info, None)


def _has_tensor_evidence(machine: Machine, info: FunctionInfo) -> bool:
    """Measured: public functions without it are factories and file helpers."""
    return any(_mentions_tensor(value) for value in machine.declared(info).values())


def _mentions_tensor(value: Value) -> bool:
    match value:
        case Tensor(framework=framework):
            return framework is Framework.TORCH
        case Optional(inner):
            return _mentions_tensor(inner)
        case Tuple() | Sequence():
            return _mentions_tensor(element_of(value))
        case Dict():
            return _mentions_tensor(value.default)
    return False


def label(entry: Entry, root: Path) -> str:
    """`path:line` of the place where the region is created."""
    path = entry.origin.path
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    line = entry.origin.facts.lines.get(entry.function.qualname)
    if entry.is_own:
        line = positions_of(entry.origin.tree)[entry.node].line
    return f"{shown.as_posix()}:{line}"


# -- running them ----------------------------------------------------------------------------


def run(machine: Machine, entry: Entry, label: str) -> None:
    """Interpret an entry in its region; the machine's log then holds what was seen."""
    region = Region(entry.kind, label, (), entry.fullgraph, entry.maker)
    frame = Frame(machine, entry.function.module, region=region)
    if entry.kind in TRACERS and machine.is_cut_off(frame, entry.function):
        return  # `torch.jit.trace(f, …)` of a scripted `f`
    machine.run(frame, Function(entry.function), _parameters(machine, entry))


def _parameters(machine: Machine, entry: Entry) -> dict[str, Value]:
    info = entry.function
    bound = machine.declared(info)
    names = [parameter.name.value for parameter in info.parameters]
    if entry.receiver is not None and names:
        bound[names.pop(0)] = entry.receiver
    for name in names:
        bound[name] = _any_mode(bound[name])
    if entry.kind in GRAPHS:
        return _in_graph(machine, entry, bound, names)
    given = _given_inputs(machine, entry)
    for position, name in enumerate(names):
        value = given[position] if position < len(given) else UNKNOWN
        if not isinstance(value, Unknown):
            bound[name] = value
        elif isinstance(bound[name], Unknown):
            bound[name] = _without_evidence(machine, entry, position, name)
    if entry.is_own and entry.kind in TRACERS:
        bound |= {name: given_value(bound[name]) for name in names}
    return bound


def _in_graph(
    machine: Machine,
    entry: Entry,
    bound: dict[str, Value],
    names: list[str],
) -> dict[str, Value]:
    """Parameters of a graph: what the signature says, else tensors of any static shape."""
    _, options = machine.graphs.get(entry.function, (entry.kind, {}))
    signature = options.get("input_signature")
    specs = _items_of(entry.examples if signature is None else signature)
    for position, name in enumerate(names):
        if position < len(specs) and not isinstance(specs[position], Unknown):
            bound[name] = specs[position]
        elif isinstance(bound[name], Unknown | Tensor):
            is_number = _is_passed_numbers(machine, entry.function, name)
            given = _graph_parameter(entry, options, position, name)
            bound[name] = STATIC if is_number else given
    return bound


def _is_passed_numbers(machine: Machine, function: FunctionInfo, name: str) -> bool:
    """Whether every call that is known passes a Python value: a constant of the graph."""
    passed = [site.get(name, UNKNOWN) for site in machine.call_sites.get(function, ())]
    return bool(passed) and all(isinstance(value, Static) for value in passed)


def _items_of(value: Value) -> tuple[Value, ...]:
    return value.items if isinstance(value, Tuple) else ()


def _graph_parameter(entry: Entry, options: dict[str, Value], position: int, name: str) -> Value:
    is_number = position == 0 and is_member_of_numbers(entry.function, name)
    if contradicted(entry.function, name) and not is_number:
        return UNKNOWN
    if entry.kind is RegionKind.KERAS or entry.maker == KERAS_COMPILE:
        is_input = position == 0 and entry.function.name == "call"
        if is_input or entry.receiver is None:  # a loss and a metric take tensors
            return replace(GRAPH_TENSOR, shape=replace(BATCH_OPEN, nested=is_input))
        return UNKNOWN
    relaxed = any(options.get(name) == Static(True) for name in RELAXING)
    return replace(GRAPH_TENSOR, shape=BATCH_OPEN if relaxed else None)


RELAXING = ("reduce_retracing", "experimental_relax_shapes")
"""Options that make a dimension None when a second size of it arrives."""


def _any_mode(value: Value) -> Value:
    """Callers of an entry may choose any mode; flags are mostly left at their default."""
    if isinstance(value, Static) and isinstance(value.const, int | float | str):
        return value if isinstance(value.const, bool) else STATIC
    return value


def _given_inputs(machine: Machine, entry: Entry) -> tuple[Value, ...]:
    """The example inputs of the maker, else what the file's `make_inputs` returns."""
    match entry.examples:
        case Tuple(items):
            return items
        case Tensor():
            return (entry.examples,)
    module = entry.origin
    name = entry.function.qualname.partition(".")[0]
    providers = (f"make_inputs_{name}", "make_inputs")
    for provider in () if entry.is_part else providers:
        info = module.functions.get(provider)
        if info is not None:
            result = machine.run(Frame(machine, module), Function(info), _seeded(machine, info))
            return result.items if isinstance(result, Tuple) else ()
    return ()


def _seeded(machine: Machine, info: FunctionInfo) -> dict[str, Value]:
    """The parameters of an input provider: it is called with a number."""
    declared = machine.declared(info).items()
    return {name: STATIC if isinstance(v, Unknown) else v for name, v in declared}


def _without_evidence(machine: Machine, entry: Entry, position: int, name: str) -> Value:
    parameter = entry.function.parameters[position + (entry.receiver is not None)]
    if entry.kind is RegionKind.SCRIPT:
        return _scripted_parameter(entry, parameter)
    if not entry.is_own or entry.kind not in TRACERS:
        return UNKNOWN
    passed = [site.get(name, UNKNOWN) for site in machine.call_sites.get(entry.function, ())]
    known = [value for value in passed if not isinstance(value, Unknown)]
    if known:
        value = join_all(known)
        return Static(source=value.source) if isinstance(value, Static) else value
    if is_called(entry.function, name):
        return _modules_beside(machine, entry.function.module)
    if contradicted(entry.function, name):
        return UNKNOWN
    has_none = parameter.default is not None
    return given_value(Optional(TENSOR) if has_none else TENSOR, Origin.SUPPOSED)


def _modules_beside(machine: Machine, module: Module) -> Value:
    """What a compiled function calls that it is given: one of the modules of its file."""
    found = [
        Instance(cls)
        for cls in module.classes.values()
        if "forward" in cls.methods and machine.is_module(cls)
    ]
    return join_all(found) if found else UNKNOWN


def _scripted_parameter(entry: Entry, parameter: cst.Param) -> Value:
    """To TorchScript what has no annotation is a Tensor, whatever it is meant to be."""
    if parameter.annotation is not None or parameter.default is not None:
        return UNKNOWN
    is_other = contradicted(entry.function, parameter.name.value)
    return UNKNOWN if is_other else TENSOR
