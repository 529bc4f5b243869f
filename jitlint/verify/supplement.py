"""Entries for changed code that is not compiled, or called, when the module is imported.

Functions and constructors that hand something to a compiler are called, with arguments that
are derived. A function or method that calls a kernel of Numba is an entry itself.
"""

import copy
import inspect
import time
import types
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch

from jitlint.region import RegionKind
from jitlint.time_limit import TookTooLongError, time_limit
from jitlint.verify import recorder
from jitlint.verify.derive import Trial, plain_trials
from jitlint.verify.inputs import prepared
from jitlint.verify.loading import Version
from jitlint.verify.numba_kernels import PROVIDER, has_kernels, own_functions
from jitlint.verify.outcome import Streams, seed_everything
from jitlint.verify.reach import Place
from jitlint.verify.recorder import Entry
from jitlint.verify.state import Target
from jitlint.verify.torch_values import TorchTensors

DOORS = frozenset({"compile", "optimize", "trace", "export", "script"})
RECORDER = recorder.__name__
SECONDS = 10.0
ATTEMPTS = 60
FAILED = object()
EXPORT = torch._jit_internal.FunctionModifiers.EXPORT


@dataclass(frozen=True, slots=True)
class Supplement:
    """What is chosen on the first version is repeated on the others."""

    versions: Sequence[Version]
    streams: Streams
    device: str

    def exported(self, missed: Sequence[Place]) -> list[list[Entry]]:
        """Of each version, the missed methods of scripted Modules besides `forward`."""
        wanted = {(place.line, place.name) for place in missed}
        names = [
            (entry.names, name)
            for entry in self.versions[0].entries
            for name, method in _exported_methods(entry)
            if (inspect.unwrap(method).__code__.co_firstlineno, name) in wanted
        ]
        return [
            [
                _method_entry(entry, name)
                for entry in version.entries
                for name, _ in _exported_methods(entry)
                if (entry.names, name) in names
            ]
            for version in self.versions
        ]

    def compiled(self, missed: Sequence[Place]) -> list[list[Entry]]:
        """Of each version, what its functions and constructors hand to a compiler."""
        found: list[list[Entry]] = [[] for _ in self.versions]
        old = self.versions[0]
        for name in _factories(old):
            deadline = time.monotonic() + SECONDS
            for trial in _attempts(old.namespace[name]):
                if time.monotonic() > deadline:
                    break
                made = self._handed_over(old, name, trial)
                if made and all(map(self._takes_its_example, made)):
                    found[0] += made
                    for version, entries in zip(self.versions[1:], found[1:], strict=True):
                        entries += self._handed_over(version, name, trial)
                    break
        return found

    def hosts(self, missed: Sequence[Place]) -> list[list[Entry]]:
        """Of each version, the code at the missed places, if it may call a kernel."""
        if not has_kernels(self.versions[0].namespace):
            return [[] for _ in self.versions]
        return [
            [entry for place in missed for entry in self._hosts(version, place)]
            for version in self.versions
        ]

    # -- what hands something to a compiler --------------------------------------------------

    def _handed_over(self, version: Version, name: str, trial: Trial) -> list[Entry]:
        """The entries that a call makes, whether it comes to its end or not."""
        known = list(version.entries)
        with version.recorder.installed(recording=True):
            made = self._called(version, version.namespace[name], trial)
            for method in _methods_with_doors(made):
                self._called(version, getattr(made, method), Trial((), {}))
        new = version.entries[len(known) :]
        version.entries[:] = known
        calls = [entry.target.call for entry in known]
        return [
            replace(entry, is_main=not known) for entry in new if entry.target.call not in calls
        ]

    def _called(self, version: Version, function: Any, trial: Trial) -> Any:
        args, kwargs = copy.deepcopy((trial.args, trial.kwargs))
        version.activate()
        seed_everything(0)
        with (
            suppress(Exception, SystemExit, TookTooLongError),
            self.streams.captured(),
            time_limit(SECONDS),
        ):
            return function(*args, **kwargs)
        return FAILED

    def _takes_its_example(self, entry: Entry) -> bool:
        if entry.example is None:
            return True
        args, kwargs = copy.deepcopy(prepared(entry.example, self.device))
        with (
            suppress(Exception, TookTooLongError),
            self.streams.captured(),
            time_limit(SECONDS),
        ):
            entry.target.fresh().call(*args, **kwargs)
            return True
        return False

    # -- what calls a kernel -----------------------------------------------------------------

    def _hosts(self, version: Version, place: Place) -> Iterator[Entry]:
        """The function or method that stands at a place of the old file."""
        old = self.versions[0]
        owner, is_main = _class_of(old, place), not old.entries
        if owner is None:
            function = version.namespace.get(place.name)
            is_own = place.name in dict(own_functions(old.namespace, old.module.__name__))
            if is_own and callable(function):
                target = Target(function)
                yield Entry(RegionKind.NUMBA, target, (place.name,), is_main=is_main)
            return
        made = self._made(version, owner)
        if made is not FAILED:
            names = (f"{owner}.{place.name}", place.name, owner)
            target = Target(getattr(made, place.name))
            yield Entry(RegionKind.NUMBA, target, names, is_main=is_main)

    def _made(self, version: Version, owner: str) -> Any:
        cls = version.namespace[owner]
        made = (self._called(version, cls, trial) for trial in _attempts(cls))
        return next((each for each in made if each is not FAILED), FAILED)


def host_entries(version: Version) -> list[Entry]:
    """The eager functions that the module gives inputs for, if it has kernels at all.

    `make_inputs_<function>` names one; plain `make_inputs` stands for the only public
    function of a module that hands nothing to another compiler.
    """
    namespace = version.namespace
    if not has_kernels(version.namespace):
        return []
    functions = dict(own_functions(namespace, version.module.__name__))
    known = {name for entry in version.entries for name in entry.names}
    named = [name for name in functions if f"{PROVIDER}_{name}" in namespace and name not in known]
    if not named and not version.entries and PROVIDER in namespace:
        public = [name for name in functions if not name.startswith("_")]
        named = public if len(public) == 1 else []
    return [Entry(RegionKind.NUMBA, Target(functions[name]), (name,)) for name in named]


def _exported_methods(entry: Entry) -> Iterator[tuple[str, types.FunctionType]]:
    owner = entry.target.owner
    if entry.kind is not RegionKind.SCRIPT or owner is None:
        return
    for name, method in _functions_of(type(owner)).items():
        if getattr(method, "_torchscript_modifier", None) is EXPORT:
            yield name, method


def _method_entry(entry: Entry, name: str) -> Entry:
    owner = type(entry.target.owner).__name__
    target = Target(getattr(entry.target.owner, name))
    return Entry(entry.kind, target, (f"{owner}.{name}", name), is_main=False)


def _attempts(function: Any) -> Iterator[Trial]:
    return islice(plain_trials(function, TorchTensors()), ATTEMPTS)


def _factories(version: Version) -> Iterator[str]:
    """Functions of the module, and classes, in whose code a compiler is mentioned."""
    for name, value in _own(version):
        if isinstance(value, type):
            if any(map(_has_door, _functions_of(value).values())):
                yield name
        elif _has_door(value):
            yield name


def _own(version: Version) -> Iterator[tuple[str, Any]]:
    """Functions and classes, but those that give inputs."""
    module = version.module.__name__
    yield from own_functions(version.namespace, module)
    for name, value in list(version.namespace.items()):
        if isinstance(value, type) and value.__module__ == module:
            yield name, value


def _functions_of(cls: type) -> dict[str, types.FunctionType]:
    return {
        name: value for name, value in vars(cls).items() if isinstance(value, types.FunctionType)
    }


def _methods_with_doors(made: object) -> list[str]:
    """Those of an object that was made which compile something, besides its constructor."""
    functions = _functions_of(type(made))
    return [name for name, each in functions.items() if name != "__init__" and _has_door(each)]


def _has_door(function: types.FunctionType) -> bool:
    return any(
        name in DOORS or getattr(function.__globals__.get(name), "__module__", "") == RECORDER
        for name in _names_in(function.__code__)
    )


def _names_in(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)


def _class_of(version: Version, place: Place) -> str | None:
    """The class of the module whose method stands at a place of the old file."""
    for name, value in _own(version):
        if isinstance(value, type):
            function = _functions_of(value).get(place.name)
            if function is not None and inspect.unwrap(function).__code__.co_firstlineno == (
                place.line
            ):
                return name
    return None
