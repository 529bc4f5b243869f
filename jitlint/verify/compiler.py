"""What the verifier needs of a compiler. One module implements it for each."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from jitlint.region import RegionKind
from jitlint.verify.aspects import Aspect, Failure
from jitlint.verify.records import Break, Options

VersionT = TypeVar("VersionT", contravariant=True)
EntryT = TypeVar("EntryT", contravariant=True)
GivenT = TypeVar("GivenT", contravariant=True)
TargetT = TypeVar("TargetT", contravariant=True)


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to compile. `whole` modes refuse a function that is not one graph.

    Graphs and breaks are read where the mode `counts`. `slack` multiplies the tolerance,
    and `ignored` aspects are not kept by the backend, which says so.
    """

    label: str
    backend: str = ""
    whole: bool = False
    counts: bool = True
    slack: float = 1.0
    ignored: frozenset[Aspect] = frozenset()


@dataclass(frozen=True, slots=True)
class Log:
    """`skipped`: a whole frame fell back to eager, so that later breaks were not seen."""

    graphs: int = 0
    breaks: tuple[Break, ...] = ()
    recompiles: int = 0
    skipped: bool = False


class RefusalError(Exception):
    """The compiler does not take the function at all."""

    def __init__(self, broken: Break) -> None:
        super().__init__(f"{broken.code} {broken.reason}".strip())
        self.broken = broken


class Session(Protocol[TargetT]):
    """One mode, one entry of one version, from empty caches on."""

    def build(self, target: TargetT) -> Callable[..., Any]:
        """The compiled target; raises `RefusalError`."""

    def log(self) -> Log: ...


class Compiler(Protocol[VersionT, EntryT, GivenT, TargetT]):
    """Versions, entries, inputs and targets are those of the framework.

    A compiler inherits from it, and says only what is otherwise than here.
    """

    kind: RegionKind
    # What has to be as in the old eager code, whatever the old compiled code does.
    strict: frozenset[Aspect] = frozenset()
    compared: frozenset[Aspect]
    # The code of the break that stands for a backend's failure.
    backend_failed: str = ""
    # Codes of breaks that the code asks for itself, such as by torch.compiler.disable.
    asked_for: frozenset[str] = frozenset()

    def modes(self, options: Options) -> tuple[Mode, ...]: ...

    def session(
        self, version: VersionT, entry: EntryT, mode: Mode
    ) -> AbstractContextManager[Session[TargetT]]: ...

    def accepts(self, entry: EntryT, given: GivenT) -> bool:
        """Whether the compiled form is meant to be called with this input."""
        return True

    def answers(self, entry: EntryT, given: GivenT) -> bool:
        """Whether a difference on this input is for the fix to answer for."""
        return True

    def refuses(self, failure: Failure) -> bool:
        """Whether the failure is the compiler's no, not an exception of the code."""
        return False

    def has_no_reference(self, failure: Failure) -> bool:
        """Whether nothing is known of what the refused code should have done."""
        return False

    def reference(self) -> AbstractContextManager[None]:
        """In force while the old code runs eagerly: cures what a compiler refuses there."""
        return nullcontext()
