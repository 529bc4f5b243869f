"""What is asked of the verifier, and what it answers: plain data, no framework."""

from dataclasses import dataclass
from pathlib import Path

from jitlint.finding import Verdict

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Options:
    """`timeout` is in seconds of wall clock for each request, `memory_limit` in bytes.

    `device` is `auto` (CUDA where there is one), `cpu`, `cuda`, `cuda:1`, …
    """

    device: str = "auto"
    backends: tuple[str, ...] = ("eager", "aot_eager")
    timeout: float = 120.0
    memory_limit: int = 8 * GIB
    seeds: int = 8
    workers: int = 1


@dataclass(frozen=True, slots=True)
class Request:
    """One file before and after a fix.

    `tests` are the places (line and column, from 1, in `old`) where a rewritten truth test
    starts: a verification counts only if its inputs made each both true and false.
    """

    path: Path
    old: bytes
    new: bytes
    tests: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Break:
    """A place where the compiler gave up on one graph. `code` is `GB0170`, or empty."""

    code: str
    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class EntryResult:
    """What one compiled function did. `None` in an `…_equal` field: not compared.

    The state of the random generators counts as a mutation.
    """

    entry: str
    kind: str
    graphs_before: int = 0
    graphs_after: int = 0
    breaks_before: tuple[Break, ...] = ()
    breaks_after: tuple[Break, ...] = ()
    recompiles_before: int = 0
    recompiles_after: int = 0
    errors: tuple[str, ...] = ()
    outputs_equal: bool | None = None
    gradients_equal: bool | None = None
    mutations_equal: bool | None = None
    exceptions_equal: bool | None = None
    stdout_equal: bool | None = None
    inputs: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """`counterexample` names the entry, the input and the aspect that differ."""

    path: Path
    verdict: Verdict
    reason: str
    entries: tuple[EntryResult, ...] = ()
    counterexample: str | None = None
