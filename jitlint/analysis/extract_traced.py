"""Measures what a tracer of torch freezes: traces a program, and runs it on other inputs.

    python -m jitlint.analysis.extract_traced > jitlint/analysis/tables/tracing-2.13.json

Each probe is a small function and two sets of inputs. It is traced with the first and run
with the second: "frozen" if the traced function then differs from Python, "raises" if it
cannot be traced or run; what is recorded is left out. `make_fx` is traced with symbolic
sizes, as with the default all sizes are frozen.

`varies` are functions of the standard library and of NumPy that give another value in each
call (`instances`: the class of an object with such methods, by what makes it), and `writes`
those that write to a stream, a log or a file. Both are called while a program is traced. (A
warning is shown once anyway.)
`mode_dependent` are modules that compute something else in `train()` than in `eval()`, as
they are made by default, and `training_by_default` functions whose `training` is true
(with the position of that parameter). `mode_switches` are the parameters of both, with their
positions, of which a false value (`Dropout(p=0)`) makes the mode irrelevant, and another one
(`InstanceNorm2d(…, track_running_stats=True)`) relevant.
"""

import contextlib
import copy
import importlib
import inspect
import io
import itertools
import json
import math
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

Inputs = tuple[Any, ...]
Probe = tuple[str, str, Callable[..., Any], Inputs, Inputs]

MATH = ("sqrt", "log", "log2", "log10", "exp", "ceil", "floor", "isqrt", "sin", "cos", "tanh")


def main() -> None:
    import torch

    warnings.simplefilter("ignore")
    sections: dict[str, dict[str, dict[str, str]]] = {}
    for section, name, function, example, other in _probes():
        outcomes = {
            tracer: outcome
            for tracer, trace in _tracers().items()
            if (outcome := _outcome(trace, function, example, other)) != "recorded"
        }
        if outcomes:
            sections.setdefault(section, {})[name] = outcomes
    table = {
        "schema": 1,
        "framework": "tracing",
        "version": torch.__version__.partition("+")[0],
        "aliases": {},
        **sections,
        "varies": sorted(_varying()),
        "instances": {maker: _class_of(_owner(maker)(*args)) for maker, args in GENERATORS.items()},
        "writes": sorted(_writing()),
        "mode_dependent": sorted(_mode_dependent()),
        "training_by_default": dict(sorted(_training_by_default())),
        "mode_switches": dict(sorted(_mode_switches())),
    }
    json.dump(table, sys.stdout, indent=1, sort_keys=True)
    sys.stdout.write("\n")


def _tracers() -> dict[str, Callable[..., Any]]:
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    return {
        "torch.jit.trace": partial(_jit_trace, torch),
        "torch.fx.symbolic_trace": lambda f, x: torch.fx.symbolic_trace(f),
        "torch.fx.experimental.proxy_tensor.make_fx": lambda f, x: make_fx(
            f, tracing_mode="symbolic"
        )(*x),
    }


def _jit_trace(torch: Any, function: Callable[..., Any], example: Inputs) -> Any:
    return torch.jit.trace(function, example, check_trace=False)


def _outcome(
    trace: Callable[..., Any], function: Callable[..., Any], example: Inputs, other: Inputs
) -> str:
    try:
        got = trace(function, example)(*other)
    except Exception:
        return "raises"
    return "recorded" if _is_same(got, function(*other)) else "frozen"


def _is_same(got: Any, wanted: Any) -> bool:
    import torch

    if isinstance(wanted, list | tuple) and isinstance(got, list | tuple):
        return len(got) == len(wanted) and all(map(_is_same, got, wanted))
    if not isinstance(wanted, torch.Tensor) or not isinstance(got, torch.Tensor):
        return type(got) is type(wanted) and bool(got == wanted)
    if (got.dtype, got.device, got.shape) != (wanted.dtype, wanted.device, wanted.shape):
        return False
    same_grad = got.requires_grad is wanted.requires_grad
    return same_grad and (got.is_meta or bool(torch.allclose(got.double(), wanted.double())))


def _probes() -> Iterator[Probe]:
    yield from _of_sizes()
    yield from _of_data()
    yield from _of_metadata()
    yield from _of_copies()
    yield from _of_modes()
    yield from _of_loops()


def _of_sizes() -> Iterator[Probe]:
    """Functions that are given a size: `x * float(function(x.shape[-1]))`."""
    import numpy as np
    import torch

    example, other = (torch.ones(2, 4),), (torch.ones(3, 9),)

    functions: dict[str, Callable[[Any], Any]] = {
        "builtins.int": int,
        "builtins.float": float,
        "builtins.abs": abs,
        "builtins.str": lambda n: len(str(n * n * n)),
        "builtins.range": lambda n: sum(1 for _ in range(n)),
        "builtins.pow": lambda n: pow(n, 2),
        "numpy": lambda n: np.sqrt(n).item(),
        **{f"math.{name}": _math(name) for name in MATH},
    }
    for name, function in functions.items():
        yield "sizes", name, _of_size(function), example, other
    yield "sizes", "builtins.len", lambda x: x * len(x), example, other
    yield "sizes", "builtins.sum", lambda x: x * sum(x.shape), example, other
    yield "sizes", "math.prod", lambda x: x * math.prod(x.shape), example, other
    for name in ("tensor", "as_tensor", "Tensor"):
        yield "sizes", f"torch.{name}", _listed_size(getattr(torch, name)), example, other
    yield "sizes", "torch.Size.numel", lambda x: x * x.shape.numel(), example, other
    yield "sizes", "return", lambda x: x.shape[0], example, other


def _math(name: str) -> Callable[[Any], Any]:
    """Looked up in each call: fx replaces the functions of `math` while it traces."""
    return lambda n: getattr(math, name)(n)


def _of_size(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: x * function(x.shape[-1])


def _listed_size(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: make([x.shape[0]]) * 2


def _listed_sums(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: make([x.sum(), x.sum()]) * 2


def _number(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    import torch

    return lambda x: torch.ones(2) * float(read(x))


def _cast(name: str) -> Callable[[Any], Any]:
    import torch

    return lambda x: getattr(torch.zeros(2), name)(x)


def _of_data() -> Iterator[Probe]:
    """What reads a tensor into Python."""
    import numpy as np
    import torch

    example, other = (torch.ones(2),), (3 * torch.ones(2),)
    reads: dict[str, Callable[[Any], Any]] = {
        "torch.Tensor.item": lambda x: x * x.sum().item(),
        "torch.Tensor.tolist": lambda x: x * x.tolist()[0],
        "torch.Tensor.numpy": lambda x: x * float(x.numpy().sum()),
        "torch.Tensor.__int__": lambda x: x * int(x.sum()),
        "torch.Tensor.__float__": lambda x: x * float(x.sum()),
        "torch.equal": lambda x: x * float(torch.equal(x, torch.ones(2))),
        "torch.allclose": lambda x: x * float(torch.allclose(x, torch.ones(2))),
        "math.sqrt": lambda x: x * math.sqrt(x.sum()),
        "numpy": lambda x: x * float(np.asarray(x).sum()),
    }
    for name, function in reads.items():
        yield "data", name, function, example, other


def _of_metadata() -> Iterator[Probe]:
    """What a tensor is, beside its data and its sizes, as a Python value."""
    import torch

    plain = torch.ones(2, 3)
    others = {
        "dtype": torch.ones(2, 3, dtype=torch.float64),
        "device": torch.ones(2, 3, device="meta"),
        "layout": torch.ones(3, 2).t(),
        "requires_grad": torch.ones(2, 3, requires_grad=True),
    }
    numbers: dict[str, tuple[str, Callable[[Any], Any]]] = {
        "requires_grad": ("requires_grad", lambda x: x.requires_grad),
        "itemsize": ("dtype", lambda x: x.itemsize),
        "nbytes": ("dtype", lambda x: x.nbytes),
        "element_size": ("dtype", lambda x: x.element_size()),
        "is_contiguous": ("layout", lambda x: x.is_contiguous()),
        "stride": ("layout", lambda x: x.stride(0)),
        "is_complex": ("dtype", lambda x: x.is_complex()),
    }
    for name, (other, read) in numbers.items():
        value = torch.ones(2, 3, dtype=torch.complex64) if name == "is_complex" else others[other]
        yield "metadata", name, _number(read), (plain,), (value,)
    whole = torch.ones(2, 3, dtype=torch.int64)
    floating = _number(lambda x: x.is_floating_point())
    yield "metadata", "is_floating_point", floating, (plain,), (whole,)
    dtype, device = others["dtype"], others["device"]
    yield "metadata", "dtype", lambda x: torch.zeros(2, dtype=x.dtype), (plain,), (dtype,)
    yield "metadata", "type", lambda x: torch.zeros(2).type(x.type()), (plain,), (dtype,)
    yield "metadata", "device", lambda x: torch.zeros(2, device=x.device), (plain,), (device,)
    yield "metadata", "is_cpu", _number(lambda x: x.is_cpu), (plain,), (device,)
    yield "metadata", "is_meta", _number(lambda x: x.is_meta), (plain,), (device,)
    for name in ("to", "type_as"):
        yield "casts", name, _cast(name), (plain,), (dtype,)


def _of_copies() -> Iterator[Probe]:
    """What makes another tensor of a tensor: does the trace know where it comes from?"""
    import torch

    example, other = (torch.ones(2),), (3 * torch.ones(2),)
    copies: dict[str, Callable[[Any], Any]] = {
        "data": lambda x: x.data * 2,
        "real": lambda x: x.real * 2,
        "T": lambda x: x.T * 2,
        "mT": lambda x: x[None].mT * 2,
        "torch.Tensor.detach": lambda x: x.detach() * 2,
        "torch.Tensor.clone": lambda x: x.clone() * 2,
        "torch.Tensor.cpu": lambda x: x.cpu() * 2,
        "torch.Tensor.new_tensor": lambda x: x.new_tensor(x) * 2,
        "torch.tensor": lambda x: torch.tensor(x) * 2,
        "torch.as_tensor": lambda x: torch.as_tensor(x) * 2,
        "torch.nn.Parameter": lambda x: torch.nn.Parameter(x) * 2,
        "copy.copy": lambda x: copy.copy(x) * 2,
        "copy.deepcopy": lambda x: copy.deepcopy(x) * 2,
    }
    for name, function in copies.items():
        yield "copies", name, function, example, other
    listed: dict[str, Callable[[Any], Any]] = {
        "torch.tensor": torch.tensor,
        "torch.Tensor": torch.Tensor,
        "torch.FloatTensor": torch.FloatTensor,
        "torch.as_tensor": torch.as_tensor,
    }
    for name, make in listed.items():
        yield "listed", name, _listed_sums(make), example, other


def _of_modes() -> Iterator[Probe]:
    """Context managers: does the traced function run in them?"""
    import torch

    example, other = (torch.ones(2, 2),), (torch.ones(2, 2, requires_grad=True),)

    def inside(manager: Callable[[], Any]) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            with manager():
                y = torch.mm(x, x)
            return y + 1

        return run

    managers: dict[str, Callable[[], Any]] = {
        "torch.no_grad": torch.no_grad,
        "torch.inference_mode": torch.inference_mode,
        "torch.set_grad_enabled": lambda: torch.set_grad_enabled(False),
        "torch.enable_grad": torch.enable_grad,
        "torch.autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    }
    for name, manager in managers.items():
        yield "modes", name, inside(manager), example, other


def _of_loops() -> Iterator[Probe]:
    """Loops that go around as often as a tensor is long."""
    import torch

    example, other = (torch.ones(4, 4),), (torch.ones(8, 4),)
    loops: dict[str, Callable[[Any], Any]] = {
        "tensor": lambda x: sum(row.sum() for row in x),
        "torch.Tensor.unbind": lambda x: sum(row.sum() for row in x.unbind()),
        "torch.Tensor.split": lambda x: sum(part.sum() for part in x.split(2)),
        "torch.Tensor.chunk": lambda x: sum(part.sum() for part in x.chunk(2)),
    }
    for name, function in loops.items():
        yield "loops", name, function, example, other


VARYING = (
    "time",
    "datetime.datetime",
    "datetime.date",
    "random",
    "numpy.random",
    "secrets",
    "uuid",
)
"""Modules and classes whose functions are called several times over."""
NOT_CALLED = ("_", "seed", "set", "sleep", "pthread", "clock_set")
ARGUMENTS: tuple[Inputs, ...] = (
    *((), (3,), (3.0, 4.0), ([1, 2, 3, 4, 5, 6, 7, 8],), (1, 100)),
    *((3, 0.5), ([1, 2, 3, 4, 5, 6, 7, 8], 3)),
)
GENERATORS = {"numpy.random.default_rng": (), "numpy.random.RandomState": (), "random.Random": ()}
"""What makes objects whose methods are called several times over."""


def _varying() -> Iterator[str]:
    for place in VARYING:
        yield from _varying_members(place, _owner(place))
    for maker, arguments in GENERATORS.items():
        generator = _owner(maker)(*arguments)
        yield from _varying_members(_class_of(generator), generator)
    yield "os.urandom"


def _class_of(instance: Any) -> str:
    cls = type(instance)
    return f"{cls.__module__.partition('._')[0].replace('.mtrand', '')}.{cls.__name__}"


def _varying_members(place: str, owner: Any) -> Iterator[str]:
    for name in dir(owner):
        function = getattr(owner, name)
        if name.startswith(NOT_CALLED) or not inspect.isroutine(function):
            continue
        if any(_varies(function, arguments) for arguments in ARGUMENTS):
            yield f"{place}.{name}"


def _owner(place: str) -> Any:
    head, _, tail = place.rpartition(".")
    return getattr(importlib.import_module(head), tail) if head else importlib.import_module(place)


def _varies(function: Callable[..., Any], arguments: Inputs) -> bool:
    """Whether it returns other values, or leaves its first argument in another order."""
    seen = set()
    for _ in range(4):
        given = copy.deepcopy(arguments)
        try:
            result = function(*given)
        except Exception:
            return False
        seen.add(_plain(given[0]) if result is None and given else _plain(result))
    return len(seen) > 1


def _plain(value: Any) -> str | None:
    """What can be compared of a value; None for an object, which is another each time."""
    import datetime
    import uuid

    value = value.tolist() if hasattr(value, "tolist") else value
    types = (int, float, str, bytes, list, tuple, datetime.date, uuid.UUID)
    return repr(value) if isinstance(value, types) else None


def _writing() -> Iterator[str]:
    import builtins
    import logging
    import pprint
    import traceback

    import numpy as np

    logger = logging.getLogger("probe")
    levels = ("debug", "info", "warning", "error", "critical", "exception")
    functions: dict[str, Callable[..., Any]] = {
        "builtins.print": builtins.print,
        "pprint.pprint": pprint.pprint,
        "pprint.pp": pprint.pp,
        "traceback.print_stack": lambda _: traceback.print_stack(),
        "sys.stdout.write": lambda text: sys.stdout.write(text),
        "sys.stderr.write": lambda text: sys.stderr.write(text),
        **{f"logging.{level}": getattr(logging, level) for level in levels},
        **{f"logging.Logger.{level}": getattr(logger, level) for level in levels},
        "logging.log": partial(logging.log, logging.ERROR),
        "logging.Logger.log": partial(logger.log, logging.ERROR),
        "numpy.save": lambda text: np.save(text, np.ones(2)),
        "numpy.savetxt": lambda text: np.savetxt(text, np.ones(2)),
        "numpy.ndarray.tofile": lambda text: np.ones(2).tofile(text),
        "builtins.open": lambda text: open(text, "w").close(),  # noqa: PTH123
        "math.sqrt": lambda text: math.sqrt(len(text)),
    }
    for name, function in functions.items():
        if _writes(function):
            yield name


def _writes(function: Callable[..., Any]) -> bool:
    """Whether a call of it leaves something on a stream, in a log, or in a folder."""
    import logging

    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    root = logging.getLogger()
    root.setLevel(logging.DEBUG)
    root.addHandler(handler)
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(stream),
        contextlib.redirect_stderr(stream),
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("always")
        function(str(Path(folder) / "probe"))
        files = list(Path(folder).iterdir())
    root.removeHandler(handler)
    return bool(stream.getvalue() or warned or files)


MODULE_ARGUMENTS: tuple[Inputs, ...] = ((), (4,), (4, 4), (4, 4, 1), (4, 2))
MODULE_SHAPES = ((4, 4), (4, 4, 4), (4, 4, 4, 4), (4, 4, 4, 4, 4))
MODULE_INPUTS = (1, 2, 3)


def _mode_dependent() -> Iterator[str]:
    """The first arguments and inputs that a module takes decide."""

    yield from (f"torch.nn.{name}" for name, cls in _modules() if _depends_on_mode(cls, {}))


def _modules() -> Iterator[tuple[str, Any]]:
    import torch

    for name, cls in vars(torch.nn).items():
        if isinstance(cls, type) and issubclass(cls, torch.nn.Module):
            yield name, cls


def _mode_switches() -> Iterator[tuple[str, dict[str, int]]]:
    for name, cls in _modules():
        found = dict(_switches(cls, partial(_depends_on_mode, cls)))
        if found:
            yield f"torch.nn.{name}", found
    for dotted, _ in _training_by_default():
        function = getattr(sys.modules["torch.nn.functional"], dotted.rpartition(".")[2])
        found = dict(_switches(function, partial(_draws, function)))
        if found:
            yield dotted, found


def _switches(
    maker: Any, depends: Callable[[dict[str, Any]], bool | None]
) -> Iterator[tuple[str, int]]:
    """Parameters with a number or a flag as default that decide, and their positions."""
    for position, (name, parameter) in enumerate(inspect.signature(maker).parameters.items()):
        kind = type(parameter.default)
        other = {bool: True, float: 0.5}.get(kind)
        if other is not None and depends({name: other}) and depends({name: kind(0)}) is False:
            yield name, position


def _draws(function: Any, given: dict[str, Any]) -> bool | None:
    import torch

    given = {"training": True, **given}
    try:
        return not torch.equal(function(torch.ones(4, 4, 4), **given), torch.ones(4, 4, 4))
    except TypeError:
        return None


def _depends_on_mode(cls: Any, given: dict[str, Any]) -> bool | None:
    """Whether a module made with `given` computes something else in each mode; None: it fails."""
    import torch

    for arguments, shape, count in itertools.product(
        MODULE_ARGUMENTS, MODULE_SHAPES, MODULE_INPUTS
    ):
        results = []
        try:
            for mode in (True, False):
                torch.manual_seed(0)
                module = cls(*arguments, **given).train(mode)
                results.append(module(*[torch.rand(shape) - 0.5] * count))
        except Exception:
            continue
        first, second = (r[0] if isinstance(r, tuple) else r for r in results)
        if isinstance(first, torch.Tensor):
            return not torch.allclose(first, second, equal_nan=True)
    return None


def _training_by_default() -> Iterator[tuple[str, int]]:
    import torch

    for name, function in vars(torch.nn.functional).items():
        if inspect.isfunction(function) and not name.startswith("_"):
            parameters = inspect.signature(function).parameters
            if "training" in parameters and parameters["training"].default is True:
                yield f"torch.nn.functional.{name}", list(parameters).index("training")


if __name__ == "__main__":
    main()
