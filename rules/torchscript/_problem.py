"""One thing that TorchScript misreads, before it is a finding."""

from dataclasses import dataclass

import libcst as cst

from jitlint.finding import Fix


@dataclass(frozen=True, slots=True)
class Problem:
    node: cst.CSTNode
    message: str
    fix: Fix | None = None
    no_fix_reason: str | None = None
