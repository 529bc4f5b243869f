"""Sizes that depend on data, in code that a tracer follows."""

from collections.abc import Iterator

from jitlint.analysis.observations import Operation, Use
from jitlint.finding import Finding, Severity
from jitlint.region import RegionKind
from jitlint.rule import Context, Rule

from ._stops import Problem, stop, stopped
from .isolation.isolate import or_isolated
from .shape_fixes.fixes import fix_for


class TraceDynamicShape(Rule):
    """Makes tensors whose size depends on data, where a compiler traces the code.

    ## Why it matters
    The shapes of a graph are known when it is compiled. `torch.compile` stops at an operator
    whose result has as many elements as the data says ("Dynamic shape operator", GB0036),
    and at a slice that ends where a tensor says. `fullgraph=True` and `torch.export` make a
    symbol of the size, and raise where the program then loops over it, tests it or divides
    by it.

    ## Example
        def loss(error, mask):
            return error[mask].sum()

    ## Use instead
        def loss(error, mask):
            return torch.where(mask, error, 0).sum()

    `torch.where` and not `error * mask`, as NaN times 0 is NaN. `x[mask] = value` does not
    break, and nor does `masked_fill`. `torch.repeat_interleave(x, n, output_size=total)`,
    `one_hot(x, classes)` and `torch.nonzero_static(x, size=n)` say how many there will be.
    `torch._dynamo.config.capture_dynamic_output_shape_ops = True` captures these operators
    in default mode too, and `torch._check` tells the compiler what it may rely on.

    ## Fix safety
    A selection by a mask is followed through operators that work element by element, until it
    is summed up, or stored through the same mask. What the mask leaves out gets a number at
    which every derivative is finite, since an infinite one times 0 is NaN. Safe where mask and
    tensors are known to have one shape and nothing is added up in another order; unsafe where
    that is supposed, where a layer is taken to treat each row alone, where a selection is seen
    as rows and each row is reduced (`x[m].view(len(x), -1).amax(1)`), and for `bincount`, whose
    values have to be below `minlength`. Withheld where the selection itself leaves the
    function, where other code is given it, and where a reduction fails on an empty selection
    (`max`). A function that makes masks or indices of tensors of integers, in loops over what
    it finds, becomes an operator, unsafe: its annotations are taken at their word.

    ## Measured
    torch 2.13.0: each line of the fixture breaks in default mode with the id that is
    reported; loading through a mask breaks and storing through one does not, unless the mask
    has rank 0; `repeat_interleave` breaks with a tensor and without `output_size`.

    ## References
    - https://docs.pytorch.org/docs/main/compile/programming_model.graph_breaks_index.html
    - https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html
    """

    name = "trace-dynamic-shape"
    severity = Severity.WARNING
    fixable = True
    covers = frozenset({"GB0033", "GB0036", "GB0124", "GB0246"})
    regions = frozenset({RegionKind.COMPILE, RegionKind.EXPORT, RegionKind.TRACE})

    def visit_Operation(self, operation: Operation, ctx: Context) -> Iterator[Finding]:
        region = stopped(operation, Problem.DYNAMIC_SHAPE)
        if region is None:
            return
        code = ctx.shortened(operation.node)
        found = or_isolated(fix_for(operation, ctx), operation, ctx)
        yield stop(operation, region, ctx, _problem(operation, code), found)


def _problem(operation: Operation, code: str) -> str:
    if operation.use is Use.BOUND:
        return f"the size of a slice depends on the tensor `{code}`"
    if operation.use is Use.NUMBER:
        return f"the size of the result depends on the tensor `{code}`"
    return f"the size of the result of `{code}` depends on data"
