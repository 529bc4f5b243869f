"""trace-host-read."""

from collections.abc import Iterator

from jitlint.analysis.observations import Frozen, Operation
from jitlint.finding import Finding, Severity
from jitlint.region import GRAPHS, RegionKind
from jitlint.rule import Context, Rule

from ._once import graph_reads
from ._stops import (
    DATA_DEPENDENT,
    Problem,
    breaking_region,
    codes_of,
    consequence,
    is_asked,
    problem_of,
    severity_of,
    shortened,
)
from .isolation.isolate import isolated
from .read_fixes.fixes import fix_for


class TraceHostRead(Rule):
    """TODO."""

    name = "trace-host-read"
    severity = Severity.WARNING
    fixable = True
    regions = GRAPHS | {RegionKind.COMPILE, RegionKind.EXPORT, RegionKind.TRACE}

    def visit_Operation(self, operation: Operation, ctx: Context) -> Iterator[Finding]:
        region = breaking_region(operation)
        if region is None or problem_of(operation) is not Problem.HOST_READ:
            return
        if operation.code == DATA_DEPENDENT and is_asked(operation.node, ctx.module):
            return  # a finding of trace-branch
        code = shortened(ctx, operation.node)
        fix, no_fix_reason = fix_for(operation, ctx)
        if fix is None and (fix := isolated(operation, ctx)):
            no_fix_reason = None
        yield ctx.finding(
            operation.node,
            f"`{code}` reads a tensor into Python; {consequence(region)}",
            severity=severity_of(operation, region),
            codes=codes_of(operation, region),
            region=region,
            fix=fix,
            no_fix_reason=no_fix_reason,
        )

    def visit_Frozen(self, frozen: Frozen, ctx: Context) -> Iterator[Finding]:
        yield from graph_reads(frozen, ctx)
