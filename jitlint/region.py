"""Compiled regions: which compiler takes over a function, and from where."""

import enum
from dataclasses import dataclass, field


class RegionKind(enum.Enum):
    """The compilers, as far as they differ in what is legal inside them."""

    COMPILE = "compile"
    EXPORT = "export"
    TRACE = "trace"
    SCRIPT = "script"
    GRAPH = "graph"
    GRAPH_PLAIN = "graph-plain"
    KERAS = "keras"
    XLA = "xla"
    NUMBA = "numba"
    NUMBA_CUDA = "numba-cuda"


GRAPHS = frozenset({RegionKind.GRAPH, RegionKind.GRAPH_PLAIN, RegionKind.KERAS, RegionKind.XLA})
"""TensorFlow graphs. AutoGraph converts `GRAPH` and `XLA`; `GRAPH_PLAIN` is
`autograph=False`, `KERAS` what Keras calls (`Layer.call`, `train_step`)."""


@dataclass(frozen=True, slots=True)
class Region:
    """One function under one compiler.

    `entry` says where the region was created, as `path:line`. `chain` names the functions
    from the entry (first) to the function that holds a finding (last). `fullgraph`: also
    of an export that is strict. `maker` is the dotted name of the function that created the
    region, where analysis needs it.
    """

    kind: RegionKind
    entry: str
    chain: tuple[str, ...] = ()
    fullgraph: bool = False
    maker: str = field(default="", compare=False)
