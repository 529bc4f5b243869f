"""A module that uses arrays: executed, and what in it is to be called."""

import contextlib
import copy
import inspect
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jitlint.region import RegionKind
from jitlint.verify.bench import LoadError
from jitlint.verify.derive import Parameter, Trial, parameters_of, plain_trials
from jitlint.verify.numba_kernels import PROVIDER, has_kernels, own_functions
from jitlint.verify.reach import Place

if TYPE_CHECKING:
    from jitlint.verify.library import Library

ATTEMPTS = 40
SECONDS = 10.0


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
            if isinstance(value, kind) and is_own and not name.startswith(PROVIDER):
                yield name, value


@contextlib.contextmanager
def loaded(path: Path, source: bytes, library: "Library") -> Iterator[Module]:
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
            library.seed(0)
            _execute(module, source, copy)
            yield Module(module, str(copy))
        finally:
            sys.path.remove(str(path.parent))
            sys.modules.pop(name, None)
            if before is not None:
                sys.modules[name] = before


def _execute(module: types.ModuleType, source: bytes, copy: Path) -> None:
    try:
        exec(compile(source, str(copy), "exec", dont_inherit=True), module.__dict__)
    except (Exception, SystemExit) as error:
        raise LoadError(f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True, slots=True)
class Given:
    """One set of arguments, copied for every call. What the code may rightly refuse is an
    `edge` case, which does not count as a trace either."""

    label: str
    seed: int
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    edge: bool = False

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return copy.deepcopy((self.args, dict(self.kwargs)))


@dataclass(frozen=True, slots=True)
class Entry:
    """`owner` is the object of a method, which a `tf.function` does not keep alive."""

    name: str
    kind: RegionKind
    function: Callable[..., Any]
    owner: Any = None

    @property
    def python(self) -> Callable[..., Any]:
        """What has the signature."""
        if self.kind is RegionKind.KERAS:
            call: Callable[..., Any] = vars(type(self.function)).get("call", self.function)
            return types.MethodType(call, self.function)
        function: Callable[..., Any] = getattr(self.function, "python_function", self.function)
        return function

    def parameters(self, new: "Entry", library: "Library") -> list[Parameter] | None:
        """A signature says more than annotations, be it that of the new version, which its
        callers have to prove; of a layer, `training` and masks are left."""
        found = parameters_of(self.python, new.python)
        specs = library.signature_of(self.function) or library.signature_of(new.function)
        if found is not None and specs is not None:
            pairs = zip(found, specs, strict=False)
            return [Parameter(each.name, (spec,), each.default) for each, spec in pairs]
        return found


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an entry comes from: a name of the module, what it gives when it is called with
    the arguments of `trial`, and an attribute of that. `calls`: it is run for what it calls,
    which stays compiled."""

    name: str
    trial: Trial | None = None
    attribute: str = ""
    calls: bool = False

    @property
    def title(self) -> str:
        return f"{self.name}.{self.attribute}" if self.attribute else self.name

    def entry(self, module: Module, library: "Library") -> Entry | None:
        """None where this version of the module has no such thing."""
        try:
            owner = module.namespace[self.name]
            if self.trial is not None:
                library.seed(0)
                owner = owner(*self.trial.args, **self.trial.kwargs)
            found = getattr(owner, self.attribute) if self.attribute else owner
        except Exception:
            return None
        return Entry(self.title, library.kind_of(found), found, owner)


@dataclass(frozen=True, slots=True)
class Origins:
    """The entries of a module."""

    module: Module
    library: "Library"

    def compiled(self) -> Iterator[Origin]:
        """What stands in the module compiled, its layers, and functions with inputs of
        their own."""
        namespace, library = self.module.namespace, self.library
        for name, found in list(namespace.items()):
            if library.kind_of(found) in (RegionKind.GRAPH, RegionKind.XLA):
                yield Origin(name)
        for name, cls in self.module.own(type):
            if library.is_layer(cls):
                yield from self._made(name)
        for name, _ in own_functions(namespace, self.module.module.__name__):
            if f"{PROVIDER}_{name}" in namespace and has_kernels(namespace):
                yield Origin(name)

    def callers(self, called: str) -> Iterator[str]:
        """Functions of the module that call something by its name."""
        for name, function in self.module.own(types.FunctionType):
            if called.rpartition(".")[2] in _names_in(function.__code__):
                yield name

    def more(self, missed: Sequence[Place]) -> Iterator[Origin]:
        """What functions and constructors compile, and what calls a kernel at one of the
        places."""
        functions = dict(self.module.own(types.FunctionType))
        for name, function in functions.items():
            if "function" in function.__code__.co_names:
                yield from (each for each in self._made(name) if self._is_graph(each))
        is_host = has_kernels(self.module.namespace)
        lines = {place.line for place in missed} if is_host else set()
        kernels = (place.name for place in missed if is_host and place.name not in functions)
        for kernel in kernels:
            yield from map(Origin, self.callers(kernel))
        for name, function in functions.items():
            if _line(function) in lines:
                yield Origin(name)
        for name, cls in self.module.own(type):
            for made in self._made(name):
                entry = made.entry(self.module, self.library)
                for attribute in dir(entry.function) if entry is not None else ():
                    each = Origin(name, made.trial, attribute)
                    if self._is_graph(each) or _line(vars(cls).get(attribute)) in lines:
                        yield each

    def _made(self, name: str) -> Iterator[Origin]:
        """The first way to call it that works."""
        function = self.module.namespace[name]
        deadline = time.monotonic() + SECONDS
        for trial in islice(plain_trials(function, self.library.tensors), ATTEMPTS):
            origin = Origin(name, trial)
            if origin.entry(self.module, self.library) is not None:
                yield origin
                return
            if time.monotonic() > deadline:
                return

    def _is_graph(self, origin: Origin) -> bool:
        entry = origin.entry(self.module, self.library)
        return entry is not None and entry.kind in (RegionKind.GRAPH, RegionKind.XLA)


def _names_in(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


def _line(function: object) -> int:
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    return 0 if code is None else int(code.co_firstlineno)
