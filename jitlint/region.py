"""Compiled regions: which compiler takes over a function, and from where."""

import enum
from dataclasses import dataclass


class RegionKind(enum.Enum):
    """The compilers, as far as they differ in what is legal inside them."""

    COMPILE = "compile"
    EXPORT = "export"
    TRACE = "trace"
    SCRIPT = "script"
    GRAPH = "graph"
    XLA = "xla"
    NUMBA = "numba"
    NUMBA_CUDA = "numba-cuda"


@dataclass(frozen=True, slots=True)
class Region:
    """One function under one compiler.

    `entry` says where the region was created, as `path:line`. `chain` names the functions
    from the entry (first) to the function that holds a finding (last).
    """

    kind: RegionKind
    entry: str
    chain: tuple[str, ...] = ()
    fullgraph: bool = False
