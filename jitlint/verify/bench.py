"""What the judge needs of a framework: both versions of a file, loaded, and run.

Each framework has a bench; the compilers that it compares with implement
`jitlint.verify.compiler.Compiler`, one module each.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from jitlint.verify.findings import Findings
from jitlint.verify.reach import Place
from jitlint.verify.records import EntryResult, Request

Jobs = Any
"""What is to be called, in the bench's own terms."""


class LoadError(Exception):
    """The old module cannot be executed; the message says why."""


class NewLoadError(Exception):
    """The new module cannot be executed, though the old one can."""


class OtherEntriesError(Exception):
    """The new module has not the entries of the old one."""


class Checked(Protocol):
    """One entry, after it was run. `counted` says what its compiler is judged by beside the
    results ("breaks", "traces"; "" for nothing), and how many there were, before and after."""

    @property
    def findings(self) -> Findings: ...

    @property
    def labels(self) -> Sequence[str]:
        """The modes in which it was compiled."""

    @property
    def counted(self) -> tuple[str, int, int]: ...

    def result(self) -> EntryResult: ...


class Bench(Protocol):
    def first(self) -> Jobs:
        """What the module hands to a compiler when it is imported."""

    def searches(self) -> Sequence[Callable[[Sequence[Place]], Jobs]]:
        """Further ways to reach places that are missed, to be tried in turn."""

    def run(self, jobs: Jobs) -> Sequence[Checked]:
        """Raises `OtherEntriesError`, `NewLoadError`."""

    def missed(self) -> Sequence[Place]:
        """Changed functions that nothing entered so far."""

    def gap(self) -> str | None:
        """Why not every side of the rewritten tests has run."""


class Framework(Protocol):
    @property
    def uses_gpu(self) -> bool: ...

    def opened(self, request: Request) -> AbstractContextManager[Bench]:
        """Raises `LoadError`, `NewLoadError`."""
