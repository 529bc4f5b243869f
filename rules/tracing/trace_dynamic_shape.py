"""trace-dynamic-shape."""

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
from .shape_fixes.fixes import fix_for


class TraceDynamicShape(Rule):
    """TODO."""

    name = "trace-dynamic-shape"
    severity = Severity.WARNING
    fixable = True
    regions = frozenset({RegionKind.COMPILE, RegionKind.EXPORT, RegionKind.TRACE})

    def visit_Operation(self, operation: Operation, ctx: Context) -> Iterator[Finding]:
        region = breaking_region(operation)
        if region is None or problem_of(operation) is not Problem.DYNAMIC_SHAPE:
            return
        code = shortened(ctx, operation.node)
        fix, no_fix_reason = fix_for(operation, ctx)
        if fix is None and (fix := isolated(operation, ctx)):
            no_fix_reason = None
        yield ctx.finding(
            operation.node,
            f"the size of the result of `{code}` depends on data; {consequence(region)}",
            severity=severity_of(operation, region),
            codes=codes_of(operation, region),
            region=region,
            fix=fix,
            no_fix_reason=no_fix_reason,
        )
