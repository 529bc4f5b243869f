"""A module that uses TensorFlow: executed, and what in it is to be called."""

import contextlib
import inspect
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import tensorflow as tf

from jitlint.verify.derive import Parameter, Trial, parameters_of, plain_trials
from jitlint.verify.reach import Place
from jitlint.verify.tensorflow_values import TensorflowTensors

ATTEMPTS = 40
SECONDS = 10.0


class LoadError(Exception):
    """The module cannot be executed; the message says why."""


@dataclass(frozen=True, slots=True)
class Module:
    """The executed module, and the file in which AutoGraph finds its source."""

    module: types.ModuleType
    file: str

    @property
    def namespace(self) -> dict[str, Any]:
        return self.module.__dict__

    def own(self, kind: type | tuple[type, ...]) -> Iterator[tuple[str, Any]]:
        """Functions and classes that the module defines; those that give inputs left out."""
        for name, value in list(self.namespace.items()):
            is_own = getattr(value, "__module__", None) == self.module.__name__
            if isinstance(value, kind) and is_own and not name.startswith("make_inputs"):
                yield name, value


@contextlib.contextmanager
def loaded(path: Path, source: bytes) -> Iterator[Module]:
    name = f"{path.stem.replace('.', '_')}_under_test"
    module = types.ModuleType(name)
    module.__file__ = str(path)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        copy = Path(folder) / f"{name}.py"
        copy.write_bytes(source)
        before = sys.modules.get(name)
        sys.modules[name] = module
        sys.path.insert(0, str(path.parent))
        try:
            _execute(module, source, copy)
            yield Module(module, str(copy))
        finally:
            sys.path.remove(str(path.parent))
            sys.modules.pop(name, None)
            if before is not None:
                sys.modules[name] = before


def _execute(module: types.ModuleType, source: bytes, copy: Path) -> None:
    try:
        tf.keras.utils.set_random_seed(0)
        exec(compile(source, str(copy), "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:
        raise LoadError(f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class Entry:
    """`kind` is graph, xla, keras, or eager for what calls a kernel of Numba. `owner` is the
    object of a method, which a `tf.function` does not keep alive."""

    name: str
    kind: str
    function: Callable[..., Any]
    owner: Any = None

    def traces(self) -> int:
        counter = getattr(self.function, "experimental_get_tracing_count", None)
        return counter() if counter is not None else 0

    @property
    def python(self) -> Callable[..., Any]:
        """What has the signature."""
        if self.kind == "keras":
            call: Callable[..., Any] = vars(type(self.function)).get("call", self.function)
            return types.MethodType(call, self.function)
        function: Callable[..., Any] = getattr(self.function, "python_function", self.function)
        return function

    def parameters(self, new: "Entry") -> list[Parameter] | None:
        """A signature says more than annotations; of a layer, `training` and masks are left."""
        found = parameters_of(self.python, new.python)
        specs = getattr(self.function, "input_signature", None)
        if found is not None and specs is not None:
            pairs = zip(found, specs, strict=False)
            return [Parameter(each.name, (spec,), each.default) for each, spec in pairs]
        return found


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an entry comes from: a name of the module, what it gives when it is called with
    the arguments of `trial`, and an attribute of that."""

    name: str
    trial: Trial | None = None
    attribute: str = ""

    @property
    def title(self) -> str:
        return f"{self.name}.{self.attribute}" if self.attribute else self.name

    def entry(self, module: Module) -> Entry | None:
        """None where this version of the module has no such thing."""
        try:
            owner = module.namespace[self.name]
            if self.trial is not None:
                tf.keras.utils.set_random_seed(0)
                owner = owner(*self.trial.args, **self.trial.kwargs)
            found = getattr(owner, self.attribute) if self.attribute else owner
        except Exception:
            return None
        return Entry(self.title, _kind(found), found, owner)


def _kind(found: Any) -> str:
    if isinstance(found, tf.keras.layers.Layer):
        return "keras"
    if isinstance(found, tf.types.experimental.PolymorphicFunction):
        return "xla" if getattr(found, "_jit_compile", False) else "graph"
    return "eager"


def origins(module: Module) -> Iterator[Origin]:
    """The `tf.function`s and layers of the module."""
    for name, found in list(module.namespace.items()):
        if isinstance(found, tf.types.experimental.PolymorphicFunction):
            yield Origin(name)
    for name, cls in module.own(type):
        if issubclass(cls, tf.keras.layers.Layer):
            yield from _made(module, name)


def more_origins(module: Module, missed: Sequence[Place]) -> Iterator[Origin]:
    """What functions and constructors compile, and what calls a kernel at one of the places."""
    for name, function in module.own(types.FunctionType):
        if "function" in function.__code__.co_names:
            yield from (each for each in _made(module, name) if _is_graph(each, module))
    lines = {place.line for place in missed} if _has_kernels(module) else set()
    for name, function in module.own(types.FunctionType):
        if inspect.unwrap(function).__code__.co_firstlineno in lines:
            yield Origin(name)
    for name, cls in module.own(type):
        for made in _made(module, name):
            for attribute in dir(made.entry(module).function):  # type: ignore[union-attr]
                each = Origin(name, made.trial, attribute)
                if _is_graph(each, module) or _line(vars(cls).get(attribute)) in lines:
                    yield each


def _made(module: Module, name: str) -> Iterator[Origin]:
    """The first way to call it that works."""
    function = module.namespace[name]
    deadline = time.monotonic() + SECONDS
    for trial in islice(plain_trials(function, TensorflowTensors()), ATTEMPTS):
        origin = Origin(name, trial)
        if origin.entry(module) is not None:
            yield origin
            return
        if time.monotonic() > deadline:
            return


def _is_graph(origin: Origin, module: Module) -> bool:
    entry = origin.entry(module)
    return entry is not None and entry.kind in ("graph", "xla")


def _line(function: object) -> int:
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return 0 if code is None else int(code.co_firstlineno)


def _has_kernels(module: Module) -> bool:
    roots = (type(value).__module__.partition(".")[0] for value in module.namespace.values())
    return "numba" in roots
