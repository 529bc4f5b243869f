"""Values that are frozen when a function is traced."""

from collections.abc import Iterator

import libcst as cst

from jitlint.analysis.frame import JIT_TRACE, ONCE
from jitlint.analysis.observations import Construct, Freeze, Frozen, TruthTest
from jitlint.analysis.once import ENVIRONMENT
from jitlint.analysis.tree import parents_of
from jitlint.analysis.values import Source, Static
from jitlint.finding import Finding, Severity
from jitlint.region import Region, RegionKind
from jitlint.rule import Context, Rule

from ._baked_fixes import fix_for
from ._once import is_bridge, recorded_in
from ._stops import is_asked


class TraceBakedValue(Rule):
    """A value that is computed once, while a function is traced, and is a constant from then on.

    ## Why it matters
    `torch.jit.trace` runs the function once, on the example inputs, and records the operators.
    What Python computes in between is not recorded: `.item()`, `len(x)`, `x.dtype`, `x.data`,
    the number of rounds of a loop. The traced function keeps what they were for the example,
    and returns wrong numbers for other inputs. For some of them there is a TracerWarning
    ("Converting a tensor to a Python number might cause the trace to be incorrect"), for a
    loop over `range(x.shape[0])`, a dtype, a device, `.data` and `no_grad` there is none.
    A graph of TensorFlow, and a program of torch.export, keep the state of Python that the
    function read when it was traced: a random number, the time, the environment, an attribute
    or a global that is changed later.

    ## Example
        def scaled(x, y):
            mask = torch.ones(len(x), dtype=x.dtype, device=x.device)
            return x / math.sqrt(x.shape[-1]) * y.max().item() * mask.sum()

    ## Use instead
        def scaled(x, y):
            mask = x.new_ones(x.shape[0])
            return x / x.shape[-1] ** 0.5 * y.max().detach() * mask.sum()

    A size stays a part of the trace as long as it is `x.shape[0]`, `x.size(0)`, `x.numel()`, or
    computed of those by `+ - * / // % **`. `torch.zeros_like(x)`, `x.new_zeros(n)` and
    `y.type_as(x)` take dtype and device from `x` when the traced function runs (`y.to(x)` does
    not). Instead of `with torch.no_grad():` use `.detach()`; a `@torch.jit.script` function
    keeps loops and branches. State goes into an argument, a buffer or a `tf.Variable`; random
    numbers come from `torch.rand` or `tf.random`.

    ## Fix safety
    Safe where Python computes the same: `x.new_zeros(n)` for a dtype and a device of `x`,
    `y.type_as(x)` for `y.to(x)`, `.detach()` for `.data` of which an operator takes the value.
    Unsafe: `x.shape[0]` for `len(x)` (another exception for a tensor without dimensions), `**`
    for a root (one size in a thousand differs in the last bit, and a trace computes it in
    float32), a tensor for the number that was read from it (its kind of number takes part in
    promotion), a dtype or device that the old code left to the default. Withheld where no form
    of the code is recorded, and where the state of Python would have to live elsewhere.

    ## Measured
    torch 2.13.0: each function, method, attribute, context manager and kind of loop was traced
    on one input by `torch.jit.trace`, `torch.fx.symbolic_trace` and `make_fx` (with symbolic
    sizes), and run on another; the table holds those that differ. `symbolic_trace` records a
    dtype, a device and `math` on a size, and refuses `len(x)` and `float(x)`. TensorFlow 2.21:
    six calls gave one number. Of attributes and globals a change has to be seen after the
    object was traced (by TensorFlow: called), or in a method that sets what it is given; of the
    mode, `.train()` of what the tracer returned. A device that a function, not
    a module, takes from its argument is a note: only modules are moved.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.jit.trace.html
    - https://docs.pytorch.org/docs/stable/fx.html
    - https://www.tensorflow.org/guide/function#limitations
    """

    name = "trace-baked-value"
    severity = Severity.ERROR
    fixable = True
    regions = ONCE

    def visit_Frozen(self, frozen: Frozen, ctx: Context) -> Iterator[Finding]:
        region = recorded_in(frozen)
        if frozen.freeze not in MESSAGES or _is_of_another_rule(frozen, region, ctx):
            return
        fix, reason = fix_for(frozen, ctx)
        yield ctx.finding(
            frozen.node,
            _message(frozen, region, ctx),
            severity=_severity(frozen, region),
            region=region,
            fix=fix,
            no_fix_reason=reason,
        )

    def visit_TruthTest(self, test: TruthTest, ctx: Context) -> Iterator[Finding]:
        region = test.regions.get(RegionKind.TRACE)
        value = test.value
        if region is None or not isinstance(value, Static) or value.source is not Source.METADATA:
            return
        if test.construct is Construct.ASSERT or _only_raises(test.owner):
            return  # a check of the inputs, which the example has passed
        yield ctx.finding(
            test.node,
            f"{test.construct.text} on {_of(value)}: `{ctx.shortened(test.node)}`; the trace "
            "keeps the outcome that the example input had",
            severity=Severity.NOTE if test.guarded else Severity.WARNING,
            region=region,
            no_fix_reason="a trace holds one path: put the branch into a `@torch.jit.script` "
            "function, or trace once for each of the two",
        )


def _is_of_another_rule(frozen: Frozen, region: Region, ctx: Context) -> bool:
    """A test is a finding of trace-branch, a graph's read of trace-host-read, and a kernel's
    argument of numba-in-graph."""
    if frozen.freeze is not Freeze.DATA:
        return False
    is_graph = region.kind is not RegionKind.TRACE
    return is_graph or is_asked(frozen.node, ctx.module) or is_bridge(frozen, ctx)


def _severity(frozen: Frozen, region: Region) -> Severity:
    match frozen.freeze:
        case Freeze.METADATA if _is_device(frozen.value) and not _is_module(region):
            return Severity.NOTE  # nobody moves a function to another device
        case Freeze.STATE if frozen.name == ENVIRONMENT:
            return Severity.WARNING
        case Freeze.METADATA | Freeze.CAST | Freeze.MODE:
            return Severity.WARNING
    return Severity.ERROR


def _is_device(value: object) -> bool:
    return isinstance(value, Static) and value.read is not None and value.read.operator == "device"


def _is_module(region: Region) -> bool:
    return region.chain[0].endswith(".forward")


def _only_raises(owner: cst.CSTNode) -> bool:
    body = owner.body if isinstance(owner, cst.If) else None
    statements = body.body if isinstance(body, cst.IndentedBlock) else ()
    lines = [each.body[-1] for each in statements if isinstance(each, cst.SimpleStatementLine)]
    return bool(lines) and isinstance(lines[-1], cst.Raise)


MESSAGES = {
    Freeze.DATA: "`{code}` reads the example's data: the trace keeps that number",
    Freeze.SIZE: "`{code}` makes a Python number of a tensor's size: the trace keeps that of "
    "the example",
    Freeze.METADATA: "`{code}` uses {value}: the trace keeps that of the example",
    Freeze.CAST: "`{code}` takes dtype and device of another tensor: the trace keeps those of "
    "the example",
    Freeze.COPY: "`{code}` is not recorded: the trace keeps the example's tensor as a constant",
    Freeze.MODE: "`{code}` is not recorded: the traced function runs without it",
    Freeze.LOOP: "a loop over `{code}` is unrolled for the example's size",
    Freeze.VARIES: "`{code}` is called once, while the function is traced: its result is a "
    "constant from then on",
    Freeze.STATE: "`{code}` is read once, while the function is traced: a later "
    "change has no effect",
    Freeze.RESULT: "`{code}` is a Python number, which the traced function returns as a tensor",
}
REFUSED = "`{code}` cannot be traced: it makes a Python value of a tensor"


def _message(frozen: Frozen, region: Region, ctx: Context) -> str:
    refused = frozen.outcome == "raises" and frozen.moments[0].frame.tracer != JIT_TRACE
    text = REFUSED if refused else MESSAGES[frozen.freeze]
    code = ctx.shortened(_shown(frozen, ctx))
    return text.format(code=code, value=_of(frozen.value))


def _shown(frozen: Frozen, ctx: Context) -> cst.CSTNode:
    """Of a `with` or a decorator, all of it."""
    parent = parents_of(ctx.module).get(frozen.node)
    return parent if isinstance(parent, cst.WithItem) else frozen.node


def _of(value: object) -> str:
    if isinstance(value, Static) and value.read is not None:
        return f"`{value.read.operator}` of a tensor"
    return "a tensor"
