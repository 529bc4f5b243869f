"""What a call does beside returning a value, and what hides a function from the compiler.

Sections of a table, each entry measured:

- `effect`, in entries of `standard`: what the call does to the world outside of the program
  ("output", "random" for a generator's state, "system" for the operating system);
- `hiding`: dotted name of a function or decorator -> the break at a call of the function
  that was handed to it; "<name>:module" the same for a module; "skipped package": at a call
  of a function of a package that torch skips;
- `hooks`: name of a method -> the break at a call of a module on which it registered a hook;
- `requires_grad`: the break where the flag of a tensor is set by an "argument" of a
  function that makes it, and by the "method";
- `device_constructors`: functions that make a tensor on the device of `with torch.device(d):`.
"""

import builtins
import contextlib
import importlib
import inspect
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from types import FrameType, ModuleType
from typing import Any

from jitlint.analysis.extract_arguments import evaluate, plain_calls, working
from jitlint.analysis.extract_regions import Outcome, compile_region, in_processes
from jitlint.analysis.extract_skipped import skipped
from jitlint.analysis.extract_standard import (
    LIBRARY,
    TORCH,
    Subject,
    compile_call,
    measure,
    methods_of,
    prepare_imports,
    public,
    subjects,
)
from jitlint.analysis.makers import CUT_OFFS, SCRIPTED
from jitlint.time_limit import time_limit

SYSTEM = frozenset(
    {
        *("posix", "nt", "time", "_io", "io", "_socket", "select", "_signal", "resource"),
        *("fcntl", "_posixsubprocess"),
    }
)
"""Modules in C by whose functions a program reaches the operating system."""
CALLS = 3
SECONDS = 5

# -- effects -------------------------------------------------------------------------------


def with_effects(standard: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The section `standard` with the effects of whatever breaks a graph."""
    found = effects(standard)
    return {
        name: {**entry, "effect": found[name]} if name in found else entry
        for name, entry in standard.items()
    }


def effects(standard: dict[str, dict[str, Any]]) -> dict[str, str]:
    prepare_imports()
    wanted = {name for name, entry in standard.items() if "breaks" in entry}
    every = [*subjects(), *_object_methods()]
    functions = [subject for subject in every if subject.name in wanted]
    makers = _makers(standard, {name.rpartition(".")[0] for name in wanted})
    known = {subject.name: subject for subject in every if subject.name in makers.values()}
    classes = [(known[m], cls) for cls, m in makers.items() if m in known]
    found: dict[str, str] = {}
    for _, seen in in_processes(lambda subject: _effect_of(subject, wanted), functions):
        found.update(seen or {})
    for _, seen in in_processes(lambda pair: _effects_of_methods(*pair, wanted), classes):
        found.update(seen or {})
    return dict(sorted(found.items()))


def _makers(standard: dict[str, dict[str, Any]], classes: Iterable[str]) -> dict[str, str]:
    """The function that makes an object of each class; the class itself is preferred."""
    made = {entry["instance"]: name for name, entry in standard.items() if "instance" in entry}
    own = {cls: cls for cls in classes if standard.get(cls, {}).get("instance") == cls}
    return {cls: name for cls, name in {**made, **own}.items() if cls in set(classes)}


def self_entered(standard: dict[str, dict[str, Any]]) -> list[str]:
    """The section `self_entered`: context managers that `with … as name` binds to `name`."""
    prepare_imports()
    makers = _makers(
        standard, {entry["instance"] for entry in standard.values() if "instance" in entry}
    )
    known = {subject.name: subject for subject in subjects()}
    pairs = [(known[name], cls) for cls, name in makers.items() if name in known]
    return sorted(cls for (_, cls), is_self in in_processes(_enters_itself, pairs) if is_self)


def _enters_itself(pair: tuple[Subject, str]) -> bool:
    maker, _ = pair
    made = plain_calls(maker.name, maker.resolve(), of_torch=maker.of_torch)
    for text in working(made, maker.call, 1):
        with contextlib.suppress(Exception), time_limit(SECONDS, TimeoutError):
            manager = maker.call(text)
            return hasattr(type(manager), "__enter__") and manager.__enter__() is manager
    return False


def _effect_of(subject: Subject, wanted: Iterable[str]) -> dict[str, str]:
    effect = _observed(subject)
    return {subject.name: effect} if effect else {}


def _effects_of_methods(maker: Subject, cls: str, wanted: Iterable[str]) -> dict[str, str]:
    """The effects of the methods of an object that `maker` makes."""
    found = {}
    for text in working(
        plain_calls(maker.name, maker.resolve(), of_torch=maker.of_torch), maker.call
    )[:1]:
        source = f"{maker.owner}.{maker.attribute}({text})"
        for name in wanted:
            if name.rpartition(".")[0] == cls:
                effect = _observed(Subject(name, source, name.rpartition(".")[2]))
                found.update({name: effect} if effect else {})
    return found


def _observed(subject: Subject) -> str | None:
    """The effect of a call that works."""
    try:
        function = subject.resolve()
    except Exception:
        return None
    _speak()
    texts = working(plain_calls(subject.name, function, of_torch=subject.of_torch), subject.call)
    effects = (_effect_of_call(subject, text) for text in texts[:CALLS])
    return next(filter(None, effects), None)


def _effect_of_call(subject: Subject, text: str) -> str | None:
    """The effect of one call, with an owner and arguments that are there already."""
    function = subject.resolve()
    args, kwargs = evaluate(text)
    with contextlib.suppress(Exception, SystemExit), time_limit(SECONDS, TimeoutError):
        return effect_of(lambda: function(*args, **kwargs))
    return None


def _speak() -> None:
    """Let warnings and loggers reach the output."""
    import logging
    import warnings

    warnings.simplefilter("always")
    logging.disable(logging.NOTSET)
    logging.basicConfig(level=1, force=True)
    logging.lastResort = logging.StreamHandler()


def effect_of(call: Callable[[], Any]) -> str | None:
    """Whether a call writes output, moves a generator on, or reaches the system."""
    state, written = _random_state(), _output_size()
    with _system_calls() as reached:
        call()
    if _output_size() != written:
        return "output"
    if _random_state() != state:
        return "random"
    return "system" if reached else None


def _output_size() -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    return os.fstat(1).st_size


def _random_state() -> tuple[Any, ...]:
    import numpy
    import torch

    numbers = str(numpy.random.get_state(legacy=False))
    return random.getstate(), numbers, bytes(torch.get_rng_state().numpy())


@contextlib.contextmanager
def _system_calls() -> Iterator[list[str]]:
    """The functions of `SYSTEM` that are called meanwhile."""
    reached: list[str] = []

    def see(_frame: FrameType, event: str, function: Any) -> None:
        module = getattr(function, "__module__", None)
        if event == "c_call" and module in SYSTEM:
            reached.append(f"{module}.{function.__name__}")

    sys.setprofile(see)
    try:
        yield reached
    finally:
        sys.setprofile(None)


# -- calls that no made-up argument makes ----------------------------------------------------

WRITTEN = {
    "os.popen": "'true'",
    "os.system": "'true'",
    "subprocess.Popen": "['true']",
    "subprocess.call": "['true']",
    "subprocess.check_call": "['true']",
    "subprocess.check_output": "['true']",
    "subprocess.getoutput": "'true'",
    "subprocess.run": "['true']",
    "torch.autograd.grad": "(x * 2).sum(), x",
    "torch.autograd.backward": "(x * 2).sum()",
    "torch.manual_seed": "0",
    "torch.nested.nested_tensor": "[x, x]",
    "torch.nn.Parameter": "torch.ones(2)",
    "torch.sparse_coo_tensor": "torch.zeros(1, 2, dtype=torch.int64), x, (3,)",
}
"""Arguments by function; `x` is a leaf that needs a gradient."""


def written() -> dict[str, dict[str, Any]]:
    """Entries for the section `standard`."""
    found = dict(in_processes(_written_call, WRITTEN))
    return {name: _entry(outcome) for name, outcome in found.items() if outcome.identifier}


def _written_call(name: str) -> Outcome:
    import torch

    root = name.partition(".")[0]
    namespace: dict[str, Any] = {"torch": torch, root: importlib.import_module(root)}
    exec(f"def region(x):\n    {name}({WRITTEN[name]})\n    return x + 1\n", namespace)
    return compile_region(namespace["region"], torch.ones(2, requires_grad=True))


PATCHED = {"logging.Logger": "warning"}
"""Classes to which libraries add methods of their own, and what those do (`warning_once`)."""


def added_methods() -> dict[str, dict[str, Any]]:
    """Entries "<class>.*" of the section `standard`: a call of a method that was added, which
    is taken to do what it is added for."""
    found = dict(in_processes(_call_of_added, PATCHED))
    return {
        f"{name}.*": {**_entry(outcome), **({"effect": effect} if effect else {})}
        for name, (outcome, effect) in found.items()
        if outcome.identifier
    }


def _call_of_added(name: str) -> tuple[Outcome, str | None]:
    import torch

    cls = _resolved(name)
    cls.an_added_method = getattr(cls, PATCHED[name])
    thing = cls("name")

    def region(x: Any) -> Any:
        thing.an_added_method("text")
        return x + 1

    outcome = compile_region(region, torch.ones(2))
    _speak()
    return outcome, effect_of(lambda: thing.an_added_method("text"))


PLAIN = (str, bytes, int, float, tuple, list, dict, set, frozenset, type, ModuleType, Enum)
"""What a module holds beside functions whose methods are measured already."""
SHARED = ("sys", "os", "logging", "warnings", "random", "time", "threading", "gc", "io", "copyreg")
"""Modules with objects that programs call methods of, such as `sys.stdout`."""


def objects() -> dict[str, dict[str, Any]]:
    """Entries for the section `standard`: methods of objects that modules hold."""
    prepare_imports()
    found = {}
    for subject, seen in in_processes(measure, list(_object_methods())):
        if seen is not None and seen.entry:
            found[subject.name] = {**seen.entry, "source": "measured"}
    return dict(sorted(found.items()))


def _object_methods() -> Iterator[Subject]:
    for module_name in SHARED:
        for name, value in vars(importlib.import_module(module_name)).items():
            is_plain = isinstance(value, PLAIN) or callable(value) or value is None
            if name.startswith("_") or is_plain:
                continue
            for method, _ in methods_of(type(value)):
                if method not in ("close", "detach"):
                    yield Subject(f"{module_name}.{name}.{method}", f"{module_name}.{name}", method)


def bases(standard: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
    """The section `bases`: classes, and those above them whose methods are in `standard`."""
    prepare_imports()
    owners = {name.rpartition(".")[0] for name in standard}
    described: dict[type, str] = {}
    classes: dict[str, type] = {}
    for module_name in (*LIBRARY, *TORCH):
        for name, value in public(module_name):
            if isinstance(value, type):
                classes[f"{module_name}.{name}"] = value
                if f"{module_name}.{name}" in owners:
                    described[value] = f"{module_name}.{name}"
    found = {
        name: [described[base] for base in cls.__mro__[1:] if base in described]
        for name, cls in classes.items()
    }
    return {name: above for name, above in sorted(found.items()) if above}


# -- what the compiler does not look into ----------------------------------------------------

OPTIONS: dict[str, tuple[Any, ...]] = {
    "torch.library.custom_op": ("jitlint::measured",),
    "torch.library.triton_op": ("jitlint::measured",),
}
"""Arguments that stand before the function."""
KEYWORDS: dict[str, dict[str, Any]] = {
    "torch.library.custom_op": {"mutates_args": ()},
    "torch.library.triton_op": {"mutates_args": ()},
}


def hiding() -> dict[str, dict[str, Any]]:
    """The section `hiding`."""
    names = sorted(CUT_OFFS | SCRIPTED)
    cases = [(name, is_module) for name in names for is_module in (False, True)]
    found = {}
    for (name, is_module), outcome in in_processes(_call_of_hidden, cases):
        if outcome is not None and outcome.identifier:
            found[f"{name}:module" if is_module else name] = _entry(outcome)
    for _, outcome in in_processes(_call_of_skipped, [skipped()["third_party"]]):
        if outcome is not None and outcome.identifier:
            found["skipped package"] = _entry(outcome)
    return dict(sorted(found.items()))


def _call_of_skipped(packages: list[str]) -> Outcome | None:
    """A call of a function of the first package that is here, of those that are skipped."""
    for name in sorted(set(packages) - KNOWN, reverse=True):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
            for attribute, function in public(name):
                subject = Subject(f"{name}.{attribute}", name, attribute)
                for text in working(plain_calls(subject.name, function), subject.call, 1):
                    return compile_call(subject, text)
    return None


KNOWN = frozenset({"numpy"})
"""Packages that have a section of their own."""


def _call_of_hidden(case: tuple[str, bool]) -> Outcome | None:
    import torch

    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    name, is_module = case
    try:
        hide: Any = _resolved(name)
        target: Any = torch.nn.Linear(2, 2) if is_module else doubled
        hidden = hide(*OPTIONS.get(name, ()), target, **KEYWORDS.get(name, {}))
        if hasattr(hidden, "register_fake"):
            hidden.register_fake(lambda x: torch.empty_like(x))
        hidden(torch.ones(2, 2))
    except Exception:
        return None
    return compile_region(lambda x: hidden(x) + 1, torch.ones(2, 2))


def _resolved(dotted: str) -> Any:
    owner, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(owner), name)


def hooks() -> dict[str, dict[str, Any]]:
    """The section `hooks`."""
    import torch

    names = [n for n in dir(torch.nn.Module) if n.startswith("register_") and n.endswith("hook")]
    found = {}
    for name, outcome in in_processes(_call_of_hooked, names):
        if outcome is not None and outcome.identifier:
            found[name] = _entry(outcome)
    return dict(sorted(found.items()))


def _call_of_hooked(name: str) -> Outcome | None:
    import torch

    layer = torch.nn.Linear(2, 2)
    try:
        getattr(layer, name)(lambda *_: None)
    except Exception:
        return None
    return compile_region(lambda x: layer(x) + 1, torch.ones(2, 2))


def requires_grad() -> dict[str, dict[str, Any]]:
    """The section `requires_grad`."""
    import torch

    def by_argument(x: Any) -> Any:
        return x + torch.zeros(2, requires_grad=True)

    def by_method(x: Any) -> Any:
        return (x * 2).requires_grad_() + 1

    regions = {"argument": by_argument, "method": by_method}
    outcomes = {name: compile_region(region, torch.ones(2)) for name, region in regions.items()}
    return {name: _entry(outcome) for name, outcome in outcomes.items() if outcome.identifier}


def messages() -> dict[str, dict[str, Any]]:
    """The section `messages`: what the message of a check may not be, by the check. `breaks`:
    a function of elsewhere, `with_tensor_held`: one that holds a tensor. `position` is its own."""
    import torch

    names = [name for name in dir(torch) if name.startswith("_check")]
    found = {f"torch.{name}": _message_breaks(getattr(torch, name)) for name in names}
    return {name: entry for name, entry in found.items() if entry}


def _message_breaks(check: Callable[..., Any]) -> dict[str, Any]:
    import torch

    parameters = list(inspect.signature(check).parameters)
    if not {"cond", "message"}.issubset(parameters):
        return {}
    errors = [ValueError] if "error_type" in parameters else []
    takes_tensor = "tensor" in check.__name__

    def elsewhere(x: Any) -> Any:
        check(*errors, x > -100 if takes_tensor else x.shape[0] > 0, _text)
        return x + 1

    def holding(x: Any) -> Any:
        check(*errors, x > -100 if takes_tensor else x.shape[0] > 0, lambda: f"{x.shape}")
        return x + 1

    ways = {"breaks": elsewhere, "with_tensor_held": holding}
    outcomes = {
        way: compile_region(region, torch.ones(2), fullgraph=True) for way, region in ways.items()
    }
    entry = {way: each.identifier for way, each in outcomes.items() if each.identifier}
    position = parameters.index("message")
    return {**entry, "position": position, "source": "measured"} if entry else {}


def _text() -> str:
    return "text"


OF_NUMBERS: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("abs", "float", "int", "round"), ()),
    **dict.fromkeys(("divmod", "max", "min", "pow"), (0.5,)),
}
"""Builtins that compute with a number, and what else they are given."""


def symbols() -> list[str]:
    """The section `symbols`: builtins that make of a number which the compiler does not know
    another such number."""
    import torch

    def outcome(function: Callable[..., Any], *others: float) -> Outcome:
        def region(x: Any) -> Any:
            return x * function(random.uniform(0, 1), *others)

        return compile_region(region, torch.ones(2))

    found = (n for n, others in OF_NUMBERS.items() if outcome(getattr(builtins, n), *others).clean)
    return sorted(f"builtins.{name}" for name in found)


def device_constructors() -> list[str]:
    """The section `device_constructors`: what makes a tensor on the device of a block."""
    import torch
    from torch.utils._device import _device_constructors

    names = {
        f"{module.__name__}.{name}"
        for module in (torch, torch.fft)
        for name, function in vars(module).items()
        if not name.startswith("_") and callable(function) and function in _device_constructors()
    }
    return sorted(names)


def tools() -> dict[str, dict[str, Any]]:
    """The operator that prints from a graph, for the section `functions`, if there is one."""
    import torch

    def region(x: Any) -> Any:
        torch._higher_order_ops.print("text")
        return x + 1

    name = "torch._higher_order_ops.print"
    try:
        outcome = compile_region(region, torch.ones(2), fullgraph=True)
    except AttributeError:
        return {}
    return {name: {"returns": "none", "source": "measured"}} if outcome.clean else {}


def _entry(outcome: Outcome) -> dict[str, Any]:
    return {"breaks": outcome.identifier, "source": "measured"}
