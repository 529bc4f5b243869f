"""What a bench of arrays needs of a framework: TensorFlow, or NumPy alone."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from jitlint.region import RegionKind
from jitlint.verify.array_module import Entry, Given, Module
from jitlint.verify.compiler import Compiler
from jitlint.verify.derive.candidates import Tensors

ArrayCompiler = Compiler[Module, Entry, Given, Given]
"""A graph is built for an input: a layer is called on symbols of its shape."""


@dataclass(frozen=True, slots=True)
class Results:
    """What a call gave, and left of its arguments; gradients are those of the sum of all
    floating-point results."""

    outputs: tuple[Any, ...]
    gradients: tuple[Any, ...] = ()
    arguments: tuple[Any, ...] = ()


class Library(Protocol):
    @property
    def tensors(self) -> Tensors: ...

    @property
    def compilers(self) -> Mapping[RegionKind, ArrayCompiler]: ...

    def kind_of(self, found: Any) -> RegionKind:
        """`NUMBA` for what Python runs."""

    def is_layer(self, cls: type) -> bool:
        """Whether its objects are called in graphs, compiled or not."""

    def signature_of(self, function: Any) -> Sequence[Any] | None:
        """What a compiled function says of its arguments."""

    def seed(self, seed: int) -> None: ...

    def eagerly(self) -> AbstractContextManager[None]:
        """In force while Python runs what is compiled otherwise."""

    def results(self, call: Callable[[], Any], arguments: Any) -> Results: ...

    def declared(self, compiled: Any, given: Given) -> tuple[Any, ...]:
        """The static shapes of the results."""

    def draws(self, compiled: Any, given: Given) -> bool:
        """Whether random numbers are drawn."""

    def is_late(self, error: Exception) -> bool:
        """Whether it came when the graph ran, not when it was made."""

    def varied(self, arguments: Any, seed: int) -> Any:
        """Other numbers of the same shapes."""

    def edge_cases(self, arguments: Any) -> Iterator[tuple[str, Any]]: ...
