"""trace-side-effect."""

from collections.abc import Iterator

from jitlint.analysis.observations import Operation
from jitlint.finding import Finding, Severity
from jitlint.region import RegionKind
from jitlint.rule import Context, Rule

from ._stops import (
    Problem,
    breaking_region,
    codes_of,
    consequence,
    problem_of,
    severity_of,
    shortened,
)
from .isolation.isolate import isolated


class TraceSideEffect(Rule):
    """TODO."""

    name = "trace-side-effect"
    severity = Severity.WARNING
    regions = frozenset({RegionKind.COMPILE, RegionKind.EXPORT, RegionKind.TRACE})

    def visit_Operation(self, operation: Operation, ctx: Context) -> Iterator[Finding]:
        region = breaking_region(operation)
        if region is None or problem_of(operation) is not Problem.SIDE_EFFECT:
            return
        code = shortened(ctx, operation.node)
        yield ctx.finding(
            operation.node,
            f"`{code}` has to do with the world outside of the graph; {consequence(region)}",
            severity=severity_of(operation, region),
            codes=codes_of(operation, region),
            region=region,
            fix=(fix := isolated(operation, ctx)),
            no_fix_reason=None if fix else "TODO",
        )
