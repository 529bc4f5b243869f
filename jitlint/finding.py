"""What a rule reports, and what a machine reads of it."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

import libcst as cst

from jitlint.region import Region

Replacement = cst.CSTNode | cst.RemovalSentinel | cst.FlattenSentinel[cst.BaseStatement]


class Severity(enum.Enum):
    """`ERROR` dies or is silently wrong, `WARNING` is slow or fragile, `NOTE` is advice."""

    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class Safety(enum.Enum):
    """`SAFE`: same outputs, gradients, mutations and exceptions on every input, from a
    precondition that the rule has checked. `UNSAFE`: may differ; needs a verification."""

    SAFE = "safe"
    UNSAFE = "unsafe"


class Withheld(Exception):  # noqa: N818
    """Why there is no fix: one sentence for the user, who can act on it."""


class Verdict(enum.Enum):
    VERIFIED = "verified"
    REFUTED = "refuted"
    UNVERIFIED = "unverified"


@dataclass(frozen=True, slots=True, eq=False)
class Fix:
    """An edit of one file: nodes of its tree (by identity) and what stands there instead.

    `imports` is what the new code needs: `import torch` is `"torch"`, and
    `from typing import List` is `"typing:List"`.
    `tests` are the truth tests that the edit rewrites: a verification counts only if its
    inputs made each of them both true and false.
    """

    safety: Safety
    title: str
    replacements: Mapping[cst.CSTNode, Replacement]
    imports: tuple[str, ...] = ()
    tests: tuple[cst.CSTNode, ...] = ()

    @classmethod
    def remove(cls, node: cst.CSTNode, title: str = "Remove the statement") -> "Fix":
        return cls(Safety.SAFE, title, {node: cst.RemoveFromParent()})


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """A rule's word about one node of one tree. Every finding has a fix or says why not."""

    rule: str
    family: str
    severity: Severity
    message: str
    node: cst.CSTNode
    codes: tuple[str, ...] = ()
    region: Region | None = None
    fix: Fix | None = None
    no_fix_reason: str | None = None


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Lines and columns (in characters) count from 1; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding with its place in a file: plain data for reports, caches and processes."""

    path: str
    span: Span
    rule: str
    family: str
    severity: Severity
    message: str
    codes: tuple[str, ...] = ()
    region: Region | None = None
    fix_safety: Safety | None = None
    fix_title: str | None = None
    no_fix_reason: str | None = None
    sort_key: tuple[str, Span, str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sort_key", (self.path, self.span, self.rule, self.message))
