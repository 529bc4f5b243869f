"""Which graph break a call of the standard library, or of an object of torch, causes.

Section `standard` of a table: full dotted name -> entry. A name is that of a function
("time.time"), of a class that is called ("torch.nn.Linear"), of a class or static method
("datetime.datetime.now"), or of a method of an object ("logging.Logger.info") which was
made outside the region. An entry holds what there is to say of

- `breaks`: the break that every call causes whose result is not used; `held`: of a method,
  where it does not happen on an object that is made in the region;
- `with_tensor`: the break when a tensor is among the arguments, `with_tensor_inside`: in a
  list among them, `with_tensor_held`: in an object, and `with_module`: when a module is, of a
  call which breaks nothing without;
- `unless`: the places that have to be filled to avoid that break;
- `captured`, and the same of the others (`with_tensor_captured`, …): that break does not happen
  with `fullgraph=True` (tried for torch and tensors);
- `instance`: the class of the result, where that has methods of its own;
- `varies`: two calls with equal arguments in one process give different values;
- `symbolic`: the break where Python computes with the number that such a call returns, which
  the compiler does not know, and which breaks nothing by itself;
- `source`: "measured".

What is not listed does not break, or was not called with success, or was left alone
(`LEFT_ALONE`).
"""

import contextlib
import importlib
import inspect
import itertools
import os
import re
import sys
import tempfile
import time
import types
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from jitlint.analysis.extract_arguments import (
    SECONDS_TO_COMPILE,
    WRITTEN,
    evaluate,
    holding_calls,
    inside_calls,
    module_calls,
    plain_calls,
    spread,
    tensor_calls,
    working,
)
from jitlint.analysis.extract_regions import Outcome, compile_region, in_processes
from jitlint.time_limit import time_limit


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


LIBRARY = words(
    """
    builtins time datetime random uuid secrets hashlib hmac zlib gzip bz2 lzma base64 binascii
    struct json pickle copy heapq bisect collections itertools functools operator math cmath
    statistics decimal fractions numbers string re textwrap difflib os os.path pathlib shutil
    tempfile io sys gc weakref types inspect traceback warnings logging logging.handlers contextlib
    threading multiprocessing concurrent.futures queue asyncio socket signal platform importlib
    importlib.util importlib.metadata importlib.resources pkgutil abc enum dataclasses typing array
    calendar locale getpass glob fnmatch csv configparser argparse urllib.parse ast dis tokenize
    linecache pprint reprlib contextvars atexit timeit cProfile pstats tracemalloc resource ctypes
    graphlib unicodedata codecs html zoneinfo copyreg sched selectors stat errno keyword token
    mimetypes shlex ipaddress numpy numpy.random numpy.testing numpy.lib.stride_tricks
    """
)
TORCH = words(
    """
    torch torch.random torch.autograd torch.autograd.functional torch.autograd.graph
    torch.autograd.profiler torch.autograd.forward_ad torch.jit torch.nn torch.nn.parameter
    torch.nn.utils torch.nn.utils.parametrizations torch.nn.utils.parametrize torch.nn.utils.prune
    torch.nn.utils.rnn torch.nn.utils.stateless torch.nn.attention torch.optim
    torch.optim.lr_scheduler torch.optim.swa_utils torch.profiler torch.func torch.utils.data
    torch.utils.checkpoint torch.utils.dlpack torch.utils.hooks torch.utils.flop_counter
    torch.utils.benchmark torch.utils.cpp_extension torch.utils.collect_env torch.utils.model_zoo
    torch.utils.mobile_optimizer torch.hub torch.distributions torch.serialization torch.compiler
    torch.library torch.overrides torch.amp torch.cuda torch.cuda.amp torch.export torch.fx
    torch.multiprocessing torch.storage torch.package torch.monitor torch.futures torch.testing
    torch.backends
    """
)
LEFT_ALONE: dict[str, tuple[str, ...]] = {
    "starts processes": (
        r"os\.(fork|exec|spawn|posix_spawn|popen|system|wait|register_at_fork)\w*",
        r"asyncio\.(create_)?subprocess.*",
        r"(torch\.)?multiprocessing\.(Process|Pool|Manager|\w*Context)\b.*",
        r"(torch\.)?multiprocessing\.(spawn|start_processes|freeze_support)",
        r"multiprocessing\.set_forkserver_preload",
        r"concurrent\.futures\.ProcessPoolExecutor.*",
        r"torch\.utils\.(collect_env|cpp_extension|model_zoo)\..*",
    ),
    "ends or signals processes": (
        r"os\.(_exit|abort|kill|killpg|pidfd_\w+|pause)",
        r"signal\.(pthread_\w+|raise_signal|alarm|setitimer|pause|sig\w+|pidfd\w+)",
    ),
    "changes who runs": (r"os\.(set\w*[ug]id|set\w*groups?|initgroups|setpg\w+|setsid|setns)",),
    "changes the machine or the interpreter": (
        r"os\.(chroot|nice|setpriority|sched_set\w+|tcsetpgrp|mount|umount|unshare)",
        r"(socket\.sethostname|time\.clock_settime\w*|resource\.(setrlimit|prlimit))",
        r"sys\.(setrecursionlimit|_\w+)",
    ),
    "uses the network": (
        r"socket\.(create_|has_dualstack)\w*",
        r"socket\.get(?!hostname$)\w*(addr|host|name|serv|proto)\w*",
        r"socket\.socket\.(connect|bind|send|listen|accept)\w*",
        r"asyncio\.(open|start)_\w+",
        r"torch\.hub\..*",
    ),
    "touches memory": (r"ctypes\.(string_at|wstring_at|mem\w+|cast|py_object)",),
}
"""Names that are not called, and why."""
RECEIVERS: dict[str, str] = {
    "builtins.str": "'string'",
    "builtins.bytes": "b'abcd'",
    "builtins.bytearray": "bytearray(b'abcd')",
    "builtins.memoryview": "memoryview(b'abcd')",
    "builtins.list": "[3, 1, 2]",
    "builtins.tuple": "(1, 2)",
    "builtins.dict": "{'a': 1}",
    "builtins.set": "{1, 2}",
    "builtins.frozenset": "frozenset({1, 2})",
    "builtins.int": "2",
    "builtins.float": "0.5",
    "builtins.complex": "complex(1, 2)",
    "builtins.range": "range(3)",
    "builtins.slice": "slice(3)",
    "numpy.random.Generator": "numpy.random.default_rng(2)",
    "numpy.random.RandomState": "numpy.random.RandomState(2)",
    "numpy.vectorize": "numpy.vectorize(abs)",
    "torch.nn.Module": "layer",
    "torch.nn.ModuleList": "torch.nn.ModuleList([layer])",
    "torch.nn.ModuleDict": "torch.nn.ModuleDict({'a': layer})",
    "torch.nn.Sequential": "torch.nn.Sequential(layer)",
    "torch.nn.ParameterList": "torch.nn.ParameterList([weight])",
    "torch.nn.ParameterDict": "torch.nn.ParameterDict({'a': weight})",
    "torch.optim.Optimizer": "torch.optim.SGD([weight], 0.1)",
    "torch.optim.lr_scheduler.LRScheduler": "torch.optim.lr_scheduler.StepLR("
    "torch.optim.SGD([weight], 0.1), 1)",
    "torch.Generator": "torch.Generator()",
    "torch.autograd.Function": "operation",
    "torch.device": "torch.device('cpu')",
    "torch.dtype": "torch.float32",
    "torch.Size": "torch.Size([2, 3])",
    "torch.jit.ScriptFunction": "torch.jit.trace(function_of_one, vector)",
    "torch.jit.ScriptModule": "torch.jit.trace(layer, matrix)",
    "torch.utils.data.DataLoader": "torch.utils.data.DataLoader([vector, vector])",
    "torch.utils.data.Dataset": "torch.utils.data.TensorDataset(matrix)",
}
"""Objects whose methods are called, beside those that a call of the library returns."""
CAPTURED = {
    "breaks": "captured",
    "with_tensor": "with_tensor_captured",
    "with_tensor_inside": "with_tensor_inside_captured",
    "with_tensor_held": "with_tensor_held_captured",
    "with_module": "with_module_captured",
}
"""Fields of breaks, and where it stands that fullgraph captures them."""
TENSOR_CALLS = {
    "with_tensor": tensor_calls,
    "with_tensor_inside": inside_calls,
    "with_tensor_held": holding_calls,
    "with_module": module_calls,
}
"""Fields of breaks that a tensor or a module causes, and the calls that tell."""
OF_OBJECTS = frozenset({"with_tensor_held", "with_module"})
SAMPLES = 2
TENSOR_SAMPLES = 3
"""How many calls that work are compiled, without and with tensors."""
REPEATS = 6
"""How many results of equal calls are compared."""
AT_ONCE = 10
"""How many subjects share a process, unless they may change its state."""
STATEFUL = words(
    """
    add basic capture ch clear close default dis dup en eval exec exit freeze ftrunc import init
    insert install invalidate lock manual no patch pop put quit register rel rem reset run seed
    set shutdown start stop trunc umask un use write
    """
)
"""How names begin of what may change the state of the process."""
SIMPLE = re.compile(r"[^a-z]*('\w+'|b'\w+'|[\s,\[\](){}:.\d]|None|True|int)*")
"""Arguments that are literals, which cannot break anything themselves."""
IDENTITY = re.compile(r"function|thing|module|stream|iter|layer")
"""Arguments that equal nothing but themselves."""
OF_TENSORS = re.compile(r"scalar|vector|matrix|leaf|weight")
"""Arguments that are tensors, or made of them."""
MADE = re.compile(r"[\w.]+\(.*\)")
"""An object that a call makes."""
NAME = re.compile(r"(?<![\w.])[a-z]\w*")
CALLED = frozenset({"forward", "__call__"})
"""What is called of a module is a subject of its own."""
TYPES = types.FunctionType | types.BuiltinFunctionType | types.MethodType | type


@dataclass(frozen=True, slots=True)
class Subject:
    """`owner.attribute` is called; `owner` is written as source text."""

    name: str
    owner: str
    attribute: str

    def resolve(self) -> Any:
        (owner,), _ = evaluate(self.owner)
        return _called(owner, self.attribute)

    def call(self, text: str) -> Any:
        args, kwargs = evaluate(text)
        return self.resolve()(*args, **kwargs)

    @property
    def of_torch(self) -> bool:
        return self.name.startswith("torch.")

    @property
    def may_change_state(self) -> bool:
        return self.attribute.lstrip("_").startswith(STATEFUL)


def _called(owner: Any, attribute: str) -> Any:
    """What a subject calls: an object itself, or one of its attributes."""
    return owner if attribute == "__call__" else getattr(owner, attribute)


@dataclass(frozen=True, slots=True)
class Found:
    """What a child process saw of one subject."""

    entry: dict[str, Any]
    maker: str = ""
    methods: tuple[tuple[str, bool], ...] = ()
    """The methods of the result, and whether each belongs to the class."""


def standard(
    known: Iterable[str],
    only: Collection[str] | None = None,
    declared: Collection[str] = (),
) -> dict[str, dict[str, Any]]:
    """The section; `known` are functions that are described elsewhere, and `declared` those of
    which everything but their breaks is.

    `only`: the entries of these, which have to be functions and classes.
    """
    prepare_imports()
    found: dict[str, Found] = {}
    skip = set(known)
    chosen = [subject for subject in subjects() if subject.name not in skip]
    if only is None:
        _measure(chosen, found)
        _measure(list(method_subjects(found)), found)
    else:
        _measure([subject for subject in chosen if subject.name in only], found)
    for name in declared:
        if name in found:
            entry = found[name].entry
            entry = {field: entry[field] for field in ("breaks", "captured") if field in entry}
            found[name] = replace(found[name], entry=entry)
    entries = {name: seen.entry for name, seen in found.items() if seen.entry}
    return {name: {**entry, "source": "measured"} for name, entry in sorted(entries.items())}


def _measure(chosen: list[Subject], found: dict[str, Found]) -> None:
    alone = [subject for subject in chosen if subject.may_change_state]
    others = [subject for subject in chosen if not subject.may_change_state]
    for some, at_once in ((others, AT_ONCE), (alone, 1)):
        for subject, seen in in_processes(measure, some, at_once):
            if seen is None:
                print(f"{subject.name} ended its process", file=sys.stderr)
            else:
                found[subject.name] = seen


def prepare_imports() -> None:
    for name in (*LIBRARY, *TORCH):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def subjects() -> Iterator[Subject]:
    """The public functions and classes, and the methods of `RECEIVERS`."""
    described: set[int] = set()
    for module_name in (*LIBRARY, *TORCH):
        for name, value in public(module_name):
            dotted = f"{module_name}.{name}"
            if module_name in TORCH and id(value) in described:
                continue
            described.add(id(value))
            if not left_alone(dotted):
                yield Subject(dotted, module_name, name)
                yield from _class_methods(dotted, value)
    for dotted, owner in RECEIVERS.items():
        (value,), _ = evaluate(owner)
        own = set(vars(type(value))) | set(vars(_resolved(dotted)))
        for name, belongs in methods_of(type(value)):
            if name in own and not belongs:
                yield Subject(f"{dotted}.{name}", owner, name)
    yield Subject("torch.autograd.Function.apply", "operation", "apply")


def other_names(standard: Iterable[str]) -> dict[str, str]:
    """The names of functions and classes of torch under which a module has them as well."""
    prepare_imports()
    known = set(standard)
    places: dict[int, str] = {}
    found: dict[str, str] = {}
    for module_name in TORCH:
        for name, value in public(module_name):
            dotted = f"{module_name}.{name}"
            if dotted in known:
                places.setdefault(id(value), dotted)
            elif id(value) in places:
                found[dotted] = places[id(value)]
    return found


def public(module_name: str) -> Iterator[tuple[str, Any]]:
    module = sys.modules.get(module_name)
    listed = getattr(module, "__all__", ())
    for name in sorted({*listed, *(name for name in dir(module) if name[0] != "_")}):
        value = getattr(module, name, None)
        if isinstance(value, TYPES) and (name in listed or _is_at_home(value, module_name)):
            yield name, value


def _is_at_home(value: Any, module_name: str) -> bool:
    if isinstance(value, type) and issubclass(value, BaseException):
        return False
    home = (getattr(value, "__module__", None) or module_name).split(".")[0].lstrip("_")
    return home == module_name.split(".")[0] or module_name == "builtins"


def left_alone(dotted: str) -> bool:
    return any(re.fullmatch(p, dotted) for patterns in LEFT_ALONE.values() for p in patterns)


def _class_methods(dotted: str, value: Any) -> Iterator[Subject]:
    if isinstance(value, type):
        for name, belongs in methods_of(value):
            if belongs and not left_alone(f"{dotted}.{name}"):
                yield Subject(f"{dotted}.{name}", dotted, name)


def methods_of(cls: type) -> list[tuple[str, bool]]:
    """The public methods and `__call__`, and whether each is called on the class."""
    found = []
    for name in dir(cls):
        is_module = issubclass(cls, _module_class())
        if (name[0] == "_" and name != "__call__") or (is_module and name in CALLED):
            continue
        raw = inspect.getattr_static(cls, name, None)
        belongs = isinstance(raw, classmethod | staticmethod | types.ClassMethodDescriptorType)
        belongs |= isinstance(raw, types.BuiltinFunctionType)
        if belongs or callable(raw):
            found.append((name, belongs))
    return found


def _module_class() -> Any:
    import torch

    return torch.nn.Module


def method_subjects(found: dict[str, Found]) -> Iterator[Subject]:
    """Methods of the objects that calls returned, each class made in the simplest way."""
    seen = set(RECEIVERS)
    made_by = {name: made for name, made in found.items() if made.methods}
    own = [name for name, made in made_by.items() if made.entry["instance"] == name]
    for made in (made_by[name] for name in (*sorted(own), *sorted(made_by))):
        cls = made.entry["instance"]
        if cls in seen:
            continue
        seen.add(cls)
        for method, belongs in made.methods:
            dotted = f"{cls}.{method}"
            if not belongs and not left_alone(dotted) and dotted not in found:
                yield Subject(dotted, made.maker, method)


def measure(subject: Subject) -> Found | None:
    """In a child process: call, compile, and describe."""
    try:
        function = subject.resolve()
    except Exception:
        return None
    texts = working(plain_calls(subject.name, function, of_torch=subject.of_torch), subject.call)
    entry: dict[str, Any] = {}
    found = _described(subject, texts, entry) if texts else Found(entry)
    breaks = {"breaks": _common_break(subject, spread(_without_iterators(texts), SAMPLES))}
    if breaks["breaks"] is None and not _takes_tensors(subject):
        for field, made in TENSOR_CALLS.items():
            if subject.of_torch and field in OF_OBJECTS:
                continue  # functions of torch are given modules above
            given = working(made(subject.name, function), subject.call, 3 * TENSOR_SAMPLES)
            chosen = spread(given, TENSOR_SAMPLES)
            breaks[field] = _common_break(subject, chosen, computed=True)
    for field, common in breaks.items():
        if common is not None:
            entry[field], captured = common
            if captured:
                entry[CAPTURED[field]] = True
    unless = _by_key(subject) if breaks.get("with_tensor_inside") else []
    if unless:
        entry["unless"] = unless
    if breaks["breaks"] is not None and _is_followed_inside(subject, texts[0]):
        entry["held"] = entry.pop("breaks")
        entry.pop("captured", None)
    if entry.get("varies") and breaks["breaks"] is None:
        entry.update(_symbolic(subject, texts[0]))
    return found


def _symbolic(subject: Subject, text: str) -> dict[str, str]:
    """The break where Python computes with the number that a call returns."""
    import torch

    (owner,), _ = evaluate(subject.owner)
    args, kwargs = evaluate(text)
    if not isinstance(_called(owner, subject.attribute)(*args, **kwargs), int | float):
        return {}

    def region(x: Any, args: Any, kwargs: Any) -> Any:
        return x * (_called(owner, subject.attribute)(*args, **kwargs) - 2)

    found = compile_region(region, torch.ones(2), args, kwargs).identifier
    return {"symbolic": found} if found else {}


def _without_iterators(texts: list[str]) -> list[str]:
    """An iterator that was made outside breaks by itself: nothing follows from such a call."""
    return [] if "iter(" in "".join(texts[:1]) else [text for text in texts if "iter(" not in text]


def _common_break(
    subject: Subject, texts: list[str], *, computed: bool = False
) -> tuple[str, bool] | None:
    """The first break where every call breaks, and whether most pass with fullgraph."""
    broken = []
    for text in texts:
        outcome = compile_call(subject, text, computed=computed)
        if outcome.clean:
            return None
        if outcome.identifier:
            broken.append((text, outcome.identifier))
    if not broken or not any(_arguments_are_clean(text) for text, _ in broken):
        return None
    if not (computed or subject.of_torch):
        return broken[0][1], False
    clean = [
        compile_call(subject, text, computed=computed, fullgraph=True).clean for text, _ in broken
    ]
    return broken[0][1], 2 * sum(clean) > len(clean)


def compile_call(
    subject: Subject, text: str, *, computed: bool = False, fullgraph: bool = False
) -> Outcome:
    """Compile the call, with an owner and arguments that were made outside the region.

    `computed`: tensors are computed in the region. An input of rank 0 can be read without a
    break, at the price of a guard on its value.
    """
    import torch

    os.chdir(tempfile.mkdtemp(dir="."))  # where an earlier call has left nothing
    (owner,), _ = evaluate(subject.owner)
    attribute = subject.attribute
    args, kwargs = evaluate(text)

    def region(x: Any, args: Any, kwargs: Any) -> Any:
        _called(owner, attribute)(*args, **kwargs)
        return x + 1

    def region_of_tensors(x: Any, args: Any, kwargs: Any) -> Any:
        _called(owner, attribute)(*[_computed(argument) for argument in args], **kwargs)
        return x + 1

    chosen = region_of_tensors if computed else region
    try:
        with time_limit(SECONDS_TO_COMPILE, TimeoutError):
            return compile_region(chosen, torch.ones(2), args, kwargs, fullgraph=fullgraph)
    except (TimeoutError, SystemExit):
        return Outcome(failed=True)


def _takes_tensors(subject: Subject) -> bool:
    """Whether a call as programs write it is given a tensor, and breaks nothing."""
    written = [text for text in WRITTEN.get(subject.name, ()) if OF_TENSORS.search(text)]
    return any(compile_call(subject, text).clean for text in written)


def _by_key(subject: Subject) -> list[str]:
    """The places of a function `key` with which a call does not compare tensors."""
    try:
        names = list(inspect.signature(subject.resolve()).parameters)
    except (TypeError, ValueError):
        return []
    text = "[vector, vector], key=function"
    if "key" not in names or not working(iter([text]), subject.call):
        return []
    is_clean = compile_call(subject, text, computed=True).clean
    return [str(names.index("key")), "key"] if is_clean else []


def _is_followed_inside(subject: Subject, text: str) -> bool:
    """Whether a call breaks nothing on an object that a call in the region makes."""
    import torch

    if not MADE.fullmatch(subject.owner):
        return False
    call = "" if subject.attribute == "__call__" else f".{subject.attribute}"
    names: dict[str, Any] = {}
    for name in NAME.findall(subject.owner):
        with contextlib.suppress(Exception):
            names[name] = evaluate(name)[0][0]
    body = f"{subject.owner}{call}(*args, **kwargs)"
    exec(f"def region(x, args, kwargs):\n    {body}\n    return x + 1", names)
    return compile_region(names["region"], torch.ones(2), *evaluate(text)).clean


def _computed(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return value.clone()
    return [_computed(item) for item in value] if isinstance(value, list) else value


def _arguments_are_clean(text: str) -> bool:
    """Whether the arguments alone break nothing."""
    import torch

    if SIMPLE.fullmatch(text):
        return True

    args, kwargs = evaluate(text)

    def keep(*args: Any, **kwargs: Any) -> None:
        return None

    def region(x: Any, args: Any, kwargs: Any) -> Any:
        keep(*args, **kwargs)
        return x + 1

    return compile_region(region, torch.ones(2), args, kwargs).clean


def _described(subject: Subject, texts: list[str], entry: dict[str, Any]) -> Found:
    if any(_varies(subject, text) for text in texts if not IDENTITY.search(text)):
        entry["varies"] = True
    text, first = next(_results(subject, texts), ("", None))
    name = class_name(subject, first)
    if name is None:
        return Found(entry)
    entry["instance"] = name
    owned = vars(type(first)) if subject.of_torch else dir(type(first))
    methods = tuple(pair for pair in methods_of(type(first)) if pair[0] in owned)
    if isinstance(first, _module_class()):
        methods = ()
    return Found(entry, f"{subject.owner}.{subject.attribute}({text})", methods)


def _results(subject: Subject, texts: list[str]) -> Iterator[tuple[str, Any]]:
    for text in texts:
        with contextlib.suppress(Exception):
            yield text, subject.call(text)


def _varies(subject: Subject, text: str) -> bool:
    """Whether another call gives another value. A clock without arguments is also moved."""
    made = [(subject.resolve(), *evaluate(text)) for _ in range(REPEATS)]
    with contextlib.suppress(Exception), time_limit(3, TimeoutError):
        values = []
        for function, args, kwargs in made:
            values.append(function(*args, **kwargs))
            time.sleep(0.001)
        if any(_differ(values[0], value) for value in values[1:]):
            return True
        if text:
            return False
        functions = [function for function, _, _ in made]
        if _differ(_in_zone("Etc/GMT-14", functions[0]), _in_zone("Etc/GMT+12", functions[1])):
            return True
        if isinstance(values[0], time.struct_time):
            time.sleep(1.1)
            return _differ(values[0], functions[0]())
    return False


def _in_zone(zone: str, call: Callable[[], Any]) -> Any:
    os.environ["TZ"] = zone
    time.tzset()
    return call()


def _differ(value: Any, other: Any) -> bool:
    import torch

    if isinstance(value, torch.Tensor):
        return not torch.equal(value, other)
    if isinstance(value, list | tuple) and len(value) == len(other):
        return any(itertools.starmap(_differ, zip(value, other, strict=True)))
    if isinstance(value, dict) or not any("__eq__" in vars(c) for c in type(value).__mro__[:-1]):
        return False
    return bool(value == value and value != other)


def class_name(subject: Subject, value: Any) -> str | None:
    """The dotted name of the class of an object of the libraries."""
    cls = type(value)
    name = f"{cls.__module__}.{cls.__qualname__}"
    called = inspect.getattr_static(evaluate(subject.owner)[0][0], subject.attribute, None)
    owner, _, _ = subject.name.rpartition(".")
    if cls.__module__ == "builtins" or isinstance(value, type | BaseException):
        return None
    if isinstance(called, type) and isinstance(value, called):
        return subject.name
    if _resolves(owner) and isinstance(value, _resolved(owner)):
        return owner
    if cls.__module__.split(".")[0].lstrip("_") not in _roots() or not methods_of(cls):
        return None
    is_made = isinstance(called, type) or not isinstance(value, _module_class())
    if isinstance(value, _arrays()) or not is_made:
        return None  # a module that a function returns is one that it was given
    return _places().get(id(cls), name)


def _arrays() -> tuple[type, ...]:
    import numpy
    import torch

    return torch.Tensor, numpy.ndarray, numpy.generic


def _resolves(dotted: str) -> bool:
    try:
        return isinstance(_resolved(dotted), type)
    except Exception:
        return False


def _resolved(dotted: str) -> Any:
    return evaluate(dotted)[0][0]


def _roots() -> set[str]:
    return {name.split(".")[0] for name in (*LIBRARY, "torch", "thread", "struct")}


def _places() -> dict[int, str]:
    """Public names of classes by identity: that of the module that defines it, or the first."""
    found: dict[int, str] = {}
    for module_name in (*LIBRARY, *TORCH):
        for name, value in public(module_name):
            if isinstance(value, type) and (
                id(value) not in found or value.__module__ == module_name
            ):
                found[id(value)] = f"{module_name}.{name}"
    return found
