"""What the interpreter saw in compiled regions, as rules want to hear of it.

A rule's `visit_<Observation>` method is given the observation where `visit_<Node>` is given
a node. One place in the source is one observation, however many contexts reached it.
"""

import enum
from dataclasses import dataclass, field

import libcst as cst

from jitlint.analysis.values import Tensor, Value, join
from jitlint.project.modules import FunctionInfo, Module
from jitlint.region import Region, RegionKind


class Construct(enum.Enum):
    """The Python construct that asks for a truth value."""

    IF = "if"
    WHILE = "while"
    TERNARY = "conditional expression"
    ASSERT = "assert"
    NOT = "not"
    BOOLEAN = "and/or"
    CHAIN = "chained comparison"
    MATCH = "match"
    IN = "in"
    COMPREHENSION = "comprehension condition"
    BUILTIN = "builtin over elements"
    SORT = "sort"


@dataclass(eq=False, slots=True)
class TruthTest:
    """Python asks whether `node` is true. `value` is the join over all contexts.

    `owner` is the statement or expression that asks (`cst.If`, `cst.While`, …) and
    `function` the function in which it stands. `guarded`: in every context the test stands
    behind an undecided static test of the same expression. `regions` holds the first
    region of each kind that reached it; `fullgraph`: one of them is compiled with it.
    """

    node: cst.BaseExpression
    construct: Construct
    owner: cst.CSTNode
    module: Module
    function: FunctionInfo | None
    value: Value
    guarded: bool = False
    regions: dict[RegionKind, Region] = field(default_factory=dict)
    fullgraph: bool = False

    def see(self, value: Value, region: Region, guarded: bool) -> None:
        """Another context reached the same place."""
        new = not self.regions
        if not (isinstance(value, Tensor) and self.value == value):
            self.value = value if new else join(self.value, value)
        self.guarded = guarded if new else self.guarded and guarded
        self.regions.setdefault(region.kind, region)
        self.fullgraph = self.fullgraph or region.fullgraph


class Log:
    """All observations of a run, in the order in which they were first made."""

    def __init__(self) -> None:
        self._tests: dict[tuple[int, Construct], TruthTest] = {}

    def truth_test(self, candidate: TruthTest, region: Region, guarded: bool) -> None:
        key = (id(candidate.node), candidate.construct)
        self._tests.setdefault(key, candidate).see(candidate.value, region, guarded)

    def of(self, module: Module) -> list[TruthTest]:
        return [test for test in self._tests.values() if test.module is module]

    def modules(self) -> list[Module]:
        return list(dict.fromkeys(test.module for test in self._tests.values()))
