"""A kernel of Numba is called where another compiler takes over."""

from collections.abc import Iterator

import libcst as cst

from jitlint.analysis.observations import Call
from jitlint.analysis.values import Kernel, Source, Static, Value
from jitlint.finding import Finding, Fix, Severity, Withheld
from jitlint.region import GRAPHS, Region, RegionKind
from jitlint.rule import Context, Rule

from ._numpy_function import numpy_function_fix
from ._operators import disabled_fix, operator_fix

NO_TENSORFLOW = "under tf.function the kernel needs tf.numpy_function"
NO_KERAS = (
    "Keras differentiates what it trains, and tf.numpy_function has no gradient: call the kernel "
    "on the data, in front of the model, or make it tf.custom_gradient with the formula"
)
NO_XLA = "XLA runs no Python: the kernel has to be called outside of the function"
CODES = {"njit": "GB0156", "jit": "GB0156", "vectorize": "GB0006"}
OUTCOMES = {
    RegionKind.COMPILE: "torch.compile breaks the graph here",
    RegionKind.EXPORT: "torch.export cannot take it in",
    RegionKind.TRACE: "the trace keeps the numbers that it returned for the example input",
    RegionKind.GRAPH: "tf.function passes it symbols instead of numbers",
    RegionKind.GRAPH_PLAIN: "tf.function passes it symbols instead of numbers",
    RegionKind.KERAS: "Keras passes it symbols instead of numbers when it trains or predicts",
    RegionKind.XLA: "XLA cannot take it in",
}
IGNORED = frozenset({"numba.cfunc"})


class NumbaInGraph(Rule):
    """A kernel of Numba is called where another compiler takes over.

    ## Why it matters
    No tracer looks into machine code. `torch.compile` breaks the graph ("Unsupported method
    call", GB0156), and where the kernel is not compiled yet it traces Numba's own compiler,
    which breaks many times more or dies. `fullgraph=True` and `torch.export` raise.
    Keras traces `call` and `train_step` when it trains, evaluates or predicts, and has XLA
    compile them after `model.compile(jit_compile=True)`.
    `torch.jit.trace` is worse: the kernel runs once, and its numbers are a constant of the
    traced function.

    ## Example
        @njit
        def decay(x, rate): ...

        @torch.compile
        def step(x):
            return torch.from_numpy(decay(x.numpy(), 0.9))

    ## Use instead
        @torch.library.custom_op("filters::decay", mutates_args=())
        def decay_op(x: torch.Tensor, rate: float) -> torch.Tensor:
            result = torch.from_numpy(decay(x.detach().cpu().contiguous().numpy(), rate))
            return result.to(dtype=x.dtype, device=x.device)

        @decay_op.register_fake
        def _(x, rate):
            return torch.empty(x.shape, dtype=x.dtype, device=x.device)

    In a `tf.function`, with the dtype that the kernel returns:

        tf.ensure_shape(tf.numpy_function(kernel, [x], x.dtype), x.shape)

    ## Fix safety
    Unsafe: an operator is opaque, so that it needs a verification. It is written where the
    kernel's body shows that it returns a new array with the shape of a parameter, and with
    its dtype, or the result is cast at once; numbers must be constants, as an operator
    declares their types. A kernel that only writes is declared in `mutates_args`. No formula
    of a gradient is registered: none was there, as `.numpy()` ends it; that of a
    `torch.autograd.Function` around it stays the gradient of its result. The smaller step is
    `torch.compiler.disable` around the call, which keeps one break. Withheld under export and
    trace where no operator can be written. `tf.numpy_function` has no gradient, and lends the
    graph's memory: withheld where a GradientTape of the file records, where the kernel writes,
    where its result is used as an array, in what Keras trains, and under XLA, which runs no
    Python.

    ## Measured
    torch 2.13.0, numba 0.68.0: Numba computes `float32 * 2.0` in float64. Where the operator
    returns that and its fake says float32, eager and aot_eager are right and inductor returns
    garbage in silence; `torch.library.opcheck` sees it, and `.to(dtype=x.dtype)` cures it.
    A fake by `empty_like` of a strided tensor promises strides that the result has not.
    TensorFlow 2.21: a graph compares the dtype with what the kernel returns ("0-th value
    returned by pyfunc_0 is double, but expects float"), eager code does not. Keras 3.15:
    `fit`, `evaluate` and `predict` die at a kernel in `call`, whatever `jit_compile` says, and
    with `jit_compile=True` at `tf.numpy_function` too; `jit_compile="auto"` is False on a CPU.

    ## References
    - https://docs.pytorch.org/tutorials/advanced/python_custom_ops.html
    - https://docs.pytorch.org/docs/stable/generated/torch.compiler.disable.html
    """

    name = "numba-in-graph"
    severity = Severity.ERROR
    fixable = True
    regions = frozenset({RegionKind.COMPILE, RegionKind.EXPORT, RegionKind.TRACE, *GRAPHS})
    covers = frozenset(CODES.values())

    def visit_Call(self, call: Call | cst.Call, ctx: Context) -> Iterator[Finding]:
        if not isinstance(call, Call) or not isinstance(call.callee, Kernel):
            return
        kernel = call.callee
        region = _stopped_by(call, kernel)
        if region is None:
            return
        fix, reason = _fix(call, kernel, ctx)
        yield ctx.finding(
            call.node,
            f"a kernel of Numba is called: {_outcome(call, region)}",
            severity=_severity(call, region),
            codes=_codes(kernel, region),
            region=region,
            fix=fix,
            no_fix_reason=reason,
        )


def _stopped_by(call: Call, kernel: Kernel) -> Region | None:
    if kernel.maker in IGNORED:
        return None
    for kind, region in call.regions.items():
        if kind is RegionKind.COMPILE or (kind in OUTCOMES and not _is_constant(call)):
            return region
    return None


def _is_constant(call: Call) -> bool:
    """Of Python's own numbers a tracer may well keep the result."""
    return all(map(_is_python, (*call.positional, *call.keywords.values())))


def _is_python(value: Value) -> bool:
    return isinstance(value, Static) and value.source is not Source.DATA


def _outcome(call: Call, region: Region) -> str:
    if region.kind is RegionKind.COMPILE and call.fullgraph:
        return "torch.compile(fullgraph=True) raises here"
    return OUTCOMES[region.kind]


def _severity(call: Call, region: Region) -> Severity:
    is_optional = region.kind is RegionKind.KERAS  # a layer may be called in Python alone
    if is_optional or (region.kind is RegionKind.COMPILE and not call.fullgraph):
        return Severity.WARNING
    return Severity.ERROR


def _codes(kernel: Kernel, region: Region) -> tuple[str, ...]:
    code = CODES.get(kernel.maker.rpartition(".")[2])
    return (code,) if code and region.kind is RegionKind.COMPILE else ()


def _tensorflow_fix(call: Call, kernel: Kernel, ctx: Context) -> tuple[Fix | None, str | None]:
    try:
        return numpy_function_fix(call, kernel, ctx), None
    except Withheld as withheld:
        return None, f"{NO_TENSORFLOW}: {withheld}"


def _fix(call: Call, kernel: Kernel, ctx: Context) -> tuple[Fix | None, str | None]:
    if RegionKind.XLA in call.regions:
        return None, NO_XLA
    if RegionKind.KERAS in call.regions:
        return None, NO_KERAS
    if not call.regions.keys().isdisjoint(GRAPHS):
        return _tensorflow_fix(call, kernel, ctx)
    try:
        return operator_fix(call, kernel, ctx), None
    except Withheld as withheld:
        reason = str(withheld)
    try:
        return disabled_fix(call, kernel, ctx), None
    except Withheld:
        return None, reason
