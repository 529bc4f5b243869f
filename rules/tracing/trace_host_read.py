"""Values of tensors that Python asks for, in code that a tracer follows."""

from collections.abc import Iterator

from jitlint.analysis.observations import Frozen, Operation, Use
from jitlint.finding import Finding, Severity
from jitlint.region import GRAPHS, RegionKind
from jitlint.rule import Context, Rule

from ._once import graph_reads, is_bridge
from ._stops import DATA_DEPENDENT, Problem, is_asked, stop, stopped
from .isolation.isolate import or_isolated
from .read_fixes.fixes import fix_for


class TraceHostRead(Rule):
    """Reads the value of a tensor into Python, where a compiler traces the code.

    ## Why it matters
    A tracer has no values. `torch.compile` stops at the read ("Unsupported Tensor.item()
    call", GB0124; "Data dependent operator", GB0033), compiles what came before, and goes
    back to Python; in a loop, a `try` or a slice the whole frame runs uncompiled.
    `fullgraph=True` makes a symbol of the number instead, and raises where the program needs
    it to be a constant: as an index of a list, in `range`, for a dimension, in `math`.
    `torch.export` accepts `.item()`, and refuses most of what is done with the number. Unless it
    is strict, it refuses `int()`, `float()`, `bool()`, `.numpy()` and most of NumPy as well: it
    runs the program in Python, on tensors that have no data.
    On a GPU each read waits for all the kernels before it.

    ## Example
        def scaled(x):
            return x / x.abs().max().item()

    ## Use instead
        def scaled(x):
            return x / x.abs().max().detach()

    The tensor in the place of the number: `.item()` cuts the gradient, and `.detach()` keeps
    that. `x[i.reshape(1)].squeeze(0)` for `x[i]`, `torch.sqrt` for
    `math.sqrt`, and a function of torch for one of NumPy that is not traced. A read that has
    to stay belongs behind the region: return the tensor, and read it there. Where a symbol
    will do, `torch._dynamo.config.capture_scalar_outputs = True` captures it in default mode
    too, and `torch._check(n >= 0)` tells the compiler what it may rely on.

    ## Fix safety
    The number is followed through Python's arithmetic and plain variables, and stays a tensor
    if it ends in arithmetic, comparisons, `where`, `clamp` and the like with tensors; where
    Python computes with it, it is made float64 as Python's numbers are. Safe where tensor and
    number have one dtype and come from one tensor. Else the title says what is supposed: that
    a tensor is floating, has a dimension, is on the same device, that a divisor is not 0.
    An assertion, an index, and numbers that are made a tensor again are such fixes too; a
    branch on the number gets the fix of `trace-branch`. Withheld where the number is
    returned, kept in a container, formatted, a size, or given to other code.

    ## Measured
    torch 2.13.0: each line of the fixture breaks in default mode with the id that is
    reported. A tensor of rank 0 that the region is given is no break as an index of a tensor
    or as a size, at the price of a guard on its value; one that the region computes is.
    Which parameters of which operators ask for a number, and for a constant, is measured for
    each of them, and so is what torch.export refuses that `fullgraph=True` takes.

    ## References
    - https://docs.pytorch.org/docs/main/compile/programming_model.graph_breaks_index.html
    - https://docs.pytorch.org/docs/stable/torch.compiler_faq.html
    - https://docs.pytorch.org/docs/stable/export.html
    """

    name = "trace-host-read"
    severity = Severity.WARNING
    fixable = True
    regions = GRAPHS | {RegionKind.COMPILE, RegionKind.EXPORT, RegionKind.TRACE}
    covers = frozenset(
        {
            *(
                "GB0008",
                "GB0033",
                "GB0059",
                "GB0088",
                "GB0109",
                "GB0117",
                "GB0124",
                "GB0156",
                "GB0208",
            ),
            *("GB0294", "GB0569"),
        }
    )

    def visit_Operation(self, operation: Operation, ctx: Context) -> Iterator[Finding]:
        region = stopped(operation, Problem.HOST_READ)
        if region is None:
            return
        if operation.code == DATA_DEPENDENT and is_asked(operation.node, ctx.module):
            return  # a finding of trace-branch
        if operation.code is None and is_bridge(operation, ctx):
            return  # of numba-in-graph
        code = ctx.shortened(operation.node)
        found = or_isolated(fix_for(operation, ctx), operation, ctx)
        yield stop(operation, region, ctx, _problem(operation, code), found)

    def visit_Frozen(self, frozen: Frozen, ctx: Context) -> Iterator[Finding]:
        yield from graph_reads(frozen, ctx)


def _problem(operation: Operation, code: str) -> str:
    if operation.use is not Use.NUMBER:
        return f"`{code}` reads a tensor into Python"
    if operation.holds_tensor:
        return f"`{code}` is a tensor where a number is needed, and is read"
    if operation.holds_symbol:
        return f"`{code}` is a number that the compiler does not know, and a constant is needed"
    return f"`{code}` was read from a tensor, and a constant is needed"
