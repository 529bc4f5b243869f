"""`torch.jit.script` without its deprecation warnings, and without memory of failures."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.jit import _recursive, _state

SCRIPT: Callable[..., Any] = vars(torch.jit)["script"]
"""The function itself, whatever stands in its place while entries are recorded."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Where TorchScript keeps what it has compiled, by qualified name.

    Two versions of a module have the same names: each needs a unit of its own, or the
    second is refused ("Can't redefine NamedTuple").
    """

    unit: Any = field(default_factory=torch._C.CompilationUnit)

    def activate(self) -> None:
        vars(_state)["_python_cu"] = self.unit


def script(target: Any, frames_up: int = 0) -> Any:
    """A class is compiled in the names of the frame that lies so far above the caller.

    Types of Modules are kept by class, and one whose compilation failed stays half defined:
    the next attempt would fail with "Can't redefine method".
    """
    store: Any = vars(_recursive)["ConcreteTypeStore"]
    vars(_recursive)["concrete_type_store"] = store()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SCRIPT(target, _frames_up=frames_up + 1)
