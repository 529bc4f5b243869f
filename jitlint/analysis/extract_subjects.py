"""The functions and methods of torch that get an entry in the table, and their other names."""

import importlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jitlint.analysis.extract_calls import bare_samples, written_samples
from jitlint.analysis.extract_samples import Sample, operator_samples, signature_samples
from jitlint.analysis.extract_stubs import (
    Overload,
    Parameter,
    read_functions,
    read_methods,
    signature_of,
)

NAMESPACES = (
    "torch",
    "torch.nn.functional",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.nn.utils.rnn",
    "torch.nn.utils.parametrize",
    "torch.func",
    "torch.autograd",
    "torch.autograd.functional",
    "torch.autograd.forward_ad",
    "torch.signal.windows",
    "torch.sparse",
    "torch.nested",
    "torch.masked",
    "torch.random",
    "torch.cuda",
    "torch.compiler",
    "torch.jit",
    "torch.utils.checkpoint",
    "torch.amp",
    "torch.overrides",
    "torch.onnx",
    "torch.distributed",
    "torch.testing",
    "torch.accelerator",
    "torch.backends.cuda",
    "torch.backends.cudnn",
    "torch.backends.mps",
    "torch.backends.mkldnn",
    "torch.backends.mkl",
    "torch.backends.openmp",
    "torch.backends.opt_einsum",
    "torch.backends.cusparselt",
    "torch.backends.nnpack",
    "torch.xpu",
    "torch.mps",
    "torch.cpu",
    "torch.utils.data",
    "torch.nn.attention.flex_attention",
)
CHECKS = re.compile(r"_(assert|check)")
"""Private names of `torch` that its documentation recommends."""


@dataclass
class Subject:
    """A function or method that gets an entry."""

    name: str
    call: Callable[..., Any]
    method: bool
    overloads: list[Overload]
    operators: list[tuple[Any, Callable[..., Any]]] = field(default_factory=list)
    written: Callable[[], list[Sample]] | None = None

    def samples(self) -> list[Sample]:
        if self.written is not None:
            return self.written()
        overloads = self.overloads
        if self.method:
            overloads = [_with_self(overload) for overload in overloads]
        found: list[Sample] = []
        for operator, call in self.operators:
            wrapped = call is not self.call
            found += operator_samples(operator, call, overloads, wrapped=wrapped)
        found += signature_samples(self.call, self.overloads, method=self.method)
        found += written_samples(self.name, self.call)
        return found or bare_samples(self.name, self.call)


def _with_self(overload: Overload) -> Overload:
    return Overload((Parameter("self", "Tensor", True), *overload.parameters), overload.returns)


def functions() -> list[Subject]:
    """The public functions, each under the first of its names."""
    stubs = function_stubs()
    found: dict[int, Subject] = {}
    for namespace in NAMESPACES:
        module = import_or_none(namespace)
        for name in _names_in(module):
            function: Any = getattr(module, name, None)
            if _is_public_function(namespace, name, function) and id(function) not in found:
                dotted = f"{namespace}.{name}"
                overloads = stubs.get(dotted) or signature_of(function)
                found[id(function)] = Subject(dotted, function, False, overloads)
    for operator in operators():
        for name in (operator.name, *(alias.name for alias in operator.aliases)):
            if subject := found.get(id(_resolve(f"torch.{name}"))):
                subject.operators.append((operator, operator.op))
    return list(found.values())


def _names_in(module: Any) -> list[str]:
    """The names of a module; some of torch.backends stand in for another one, `m`."""
    inner = getattr(module, "m", None)
    return sorted({*dir(module), *dir(inner)}) if module else []


def methods() -> list[Subject]:
    import torch

    root = Path(torch.__file__).parent
    stubs = read_methods(root / "_C" / "__init__.pyi", "TensorBase")
    found: dict[str, Subject] = {}
    for name in dir(torch.Tensor):
        method = getattr(torch.Tensor, name)
        private = name.startswith("_") and not name.endswith("__")
        if private or not callable(method) or isinstance(method, type) or name in dir(object):
            continue
        overloads = stubs.get(name) or [_without_self(o) for o in signature_of(method)]
        found[name] = Subject(f"Tensor.{name}", method, True, overloads)
    for name in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
        found[name] = Subject(f"Tensor.{name}", getattr(torch.Tensor, name), True, stubs[name])
    for operator in operators():
        for name in (operator.name, *(alias.name for alias in operator.aliases)):
            for variant in (name, f"{name}_"):
                if subject := found.get(variant):
                    subject.operators.append((operator, subject.call))
    return list(found.values())


def _without_self(overload: Overload) -> Overload:
    return Overload(overload.parameters[1:], overload.returns)


def operators() -> list[Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def function_stubs() -> dict[str, list[Overload]]:
    import torch

    root = Path(torch.__file__).parent
    found = {
        f"torch.{name}": overloads
        for name, overloads in read_functions(root / "_C" / "_VariableFunctions.pyi").items()
    }
    for name, overloads in read_functions(root / "nn" / "functional.pyi").items():
        found[f"torch.nn.functional.{name}"] = overloads
    return found


def import_or_none(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _is_public_function(namespace: str, name: str, value: object) -> bool:
    if name.startswith("_") and not (namespace == "torch" and CHECKS.match(name)):
        return False
    home = getattr(value, "__module__", None) or "torch"
    return callable(value) and not isinstance(value, type) and home.startswith("torch")


def aliases(known: dict[str, Any]) -> dict[str, str]:
    """Other dotted names of a function with an entry, such as `torch.functional.einsum`."""
    places: dict[int, str] = {}
    for name in sorted(known, key=lambda dotted: (dotted.count("."), dotted)):
        places.setdefault(id(_resolve(name)), name)
    found = {}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] != "torch" or "._" in name or module is None:
            continue
        for attribute, value in list(vars(module).items()):
            dotted = f"{name}.{attribute}"
            target = places.get(id(value))
            if target and dotted not in known and not attribute.startswith("_"):
                found[dotted] = target
    return {**found, **_module_aliases()}


def _module_aliases() -> dict[str, str]:
    import torch

    return {
        f"{cls.__module__}.{name}": f"torch.nn.{name}"
        for name, cls in vars(torch.nn).items()
        if isinstance(cls, type) and issubclass(cls, torch.nn.Module)
    }


def _resolve(dotted: str) -> Any:
    import torch

    value: Any = torch
    for part in dotted.split(".")[1:]:
        value = getattr(value, part, None)
    return value
