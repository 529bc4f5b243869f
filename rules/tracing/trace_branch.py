"""Python control flow on a tensor's value, in code that a tracer follows."""

from collections.abc import Iterator

import libcst as cst

from jitlint.analysis.observations import Construct, TruthTest
from jitlint.analysis.values import Source, Static, Tensor, is_symbol
from jitlint.finding import Finding, Severity
from jitlint.region import GRAPHS, Region, RegionKind
from jitlint.rule import Context, Rule

from . import _graph_branches as in_graph
from ._graph_fixes import fix_of_test
from ._stops import DATA_DEPENDENT, is_asked
from .branch_fixes.fixes import fix_for, or_reordered
from .isolation.isolate import or_isolated

DYNAMO = (RegionKind.COMPILE, RegionKind.EXPORT)


class TraceBranch(Rule):
    """Branches in Python on the value of a tensor, where a compiler traces the code.

    ## Why it matters
    A tracer runs the function on tensors that have no values. `torch.compile` stops at the
    test ("Data-dependent branching", GB0170), compiles what came before, and goes back to
    Python; inside a loop, `try` or `with` the whole frame runs uncompiled, and
    `fullgraph=True` raises. `torch.export` refuses the program. `torch.jit.trace` is worse:
    it keeps the branch that the example input took, and the traced function returns wrong
    numbers for all others in silence. There a branch on a shape is frozen as well. In a
    graph of TensorFlow AutoGraph converts `if` and `while`, but not `assert`, `in`, `match`,
    `max()` and conditions of comprehensions, and nothing with `autograph=False` or in what
    Keras calls: there Python asks a tensor without a value ("Using a symbolic `tf.Tensor` as
    a Python `bool` is not allowed").

    ## Example
        def step(x):
            if x.sum() > 0:
                return x * 2
            return x / 2

    ## Use instead
        def step(x):
            return torch.where(x.sum() > 0, x * 2, x / 2)

    or `torch.cond(x.sum() > 0, lambda: ..., lambda: ..., ())` where an arm is costly, or
    has no finite derivative where it is not taken; `torch._assert_async(test, "message")`
    for a check that raises RuntimeError; a `@torch.jit.script` function under
    `torch.jit.trace`; an operator with an effect for what raises, warns or logs:

        @torch.library.custom_op("mylib::report", mutates_args=())
        def report(condition: torch.Tensor) -> None:
            if condition:
                warnings.warn("no samples")

        @report.register_fake
        def _(condition): return None

        report.register_effect(torch.library.EffectType.ORDERED)

    A layer that is skipped at random (LayerDrop) keeps its branch. Its rate is asked first,
    `if rate > 0 and draw < rate:`, so that a rate of 0, which it mostly is, leaves one graph;
    where it is not, compile the layers (`layer.compile()`) rather than the loop around them.

    ## Fix safety
    Safe where the test has one element, and both arms are pure, of one shape, dtype and
    stride, depend on the same differentiable values, take every dtype that the test takes, and
    have finite gradients where they are not taken. `torch.cond` is never safe: its gradient
    has no gradient, and its errors are those of the compiler. Nor is an early return whose
    rest may fail: it is computed always. In `tensor and flag` the flag is asked first, which
    is the same, and asks no tensor where the flag decides. A rate that is asked before a draw
    of torch from [0, 1) is never safe: compilers drop a draw of which nothing is used, and
    what is drawn later is something else. Before one of `random.uniform(0, 1)`, which is drawn
    in front of the graph, a rate that is a number is. An operator with an effect is never
    safe: it takes the types of its arguments from annotations and from the calls that were
    found, cannot be mapped over (`torch.vmap`) or scripted, and stands below autograd and
    autocast; code that asks for those, for its caller, or for a type, that multiplies
    matrices, or is written for TorchScript too, is left alone. Withheld when an arm returns
    its input itself, mutates, draws random numbers, calls a layer of the project or a function
    that does more than compute, or when the arms disagree in dtype, shape or the inputs that
    they use (a gradient of None would become zeros). In graphs of TensorFlow builtins, checks
    and conditional expressions become operators (`tf.maximum`, `tf.debugging.Assert`,
    `tf.where`), never safe: in a graph the old code raises, and where Python runs it, NaN,
    equal values and kinds of exceptions may differ.

    ## Measured
    torch 2.13.0: each construct of the fixture breaks with the id that is reported; a plain
    `assert tensor`, without a message or with a constant one, does not break; a branch on
    a shape, dtype, device, `is None`, or a flag does not break. `torch.where` changes the
    gradient to NaN when the arm that is not taken has an infinite derivative. The backward
    pass of `torch.cond` computes its arm again with other random numbers: a layer with
    dropout had right outputs and wrong gradients (eager, aot_eager). Without
    `register_effect` aot_eager drops an operator whose result nobody uses; with it warnings,
    logs and exceptions were those of the old code, once per call, in both modes. A graph
    takes no text that was made of a size which varies: sizes are arguments of the operator.
    With `torch._inductor.config.fallback_random`, which verification sets, aot_eager and
    inductor keep unused draws, and dropout behind them was that of eager code.

    ## References
    - https://docs.pytorch.org/docs/main/compile/programming_model.graph_breaks_index.html
    - https://docs.pytorch.org/docs/stable/cond.html
    - https://docs.pytorch.org/docs/stable/jit.html#tracing-edge-cases
    """

    name = "trace-branch"
    severity = Severity.WARNING
    fixable = True
    regions = GRAPHS | {RegionKind.COMPILE, RegionKind.EXPORT, RegionKind.TRACE}
    covers = frozenset(construct.code for construct in Construct)

    def visit_TruthTest(self, test: TruthTest, ctx: Context) -> Iterator[Finding]:
        region = _stopped_by(test, ctx)
        if region is None:
            return
        reason = in_graph.REASONS.get(region.kind)
        found = fix_of_test(test, region.kind, ctx, reason) if reason else fix_for(test, ctx)
        fix, no_fix_reason = or_reordered(or_isolated(found, test, ctx), test, ctx)
        yield ctx.finding(
            test.node,
            _message(test, region, ctx),
            severity=_severity(test, region),
            codes=_codes(test, region),
            region=region,
            fix=fix,
            no_fix_reason=no_fix_reason,
        )


def _stopped_by(test: TruthTest, ctx: Context) -> Region | None:
    """The first region that stops at the test, or freezes it; None if all go through."""
    for kind, region in test.regions.items():
        if kind is RegionKind.TRACE and _freezes(test):
            return region
        if kind in DYNAMO and _breaks(test, kind, ctx):
            return region
        if kind in GRAPHS and in_graph.is_refused(test, kind):
            return region
    return None


def _breaks(test: TruthTest, kind: RegionKind, ctx: Context) -> bool:
    if isinstance(test.value, Tensor):
        return kind is RegionKind.EXPORT or not _is_rewritten_assert(test)
    if not isinstance(test.value, Static) or test.value.source is not Source.DATA:
        return False
    read = test.value.read
    if read is not None and read.code == DATA_DEPENDENT:
        return read.node is None or is_asked(read.node, ctx.module)
    # a number that was read is captured as a symbol, and a test of a symbol is refused
    if kind is RegionKind.EXPORT:
        return True
    is_given = read is not None and read.given
    is_reached = test.fullgraph or is_symbol(test.value)  # the read itself broke no graph
    return is_reached and not is_given and not _is_rewritten_assert(test)


def _is_rewritten_assert(test: TruthTest) -> bool:
    """Dynamo turns `assert tensor` into an operator unless its message is computed.

    Of `assert flag and tensor` it does so with the last operand; not behind a `not`.
    """
    if test.construct is not Construct.ASSERT or not isinstance(test.owner, cst.Assert):
        return False
    last = test.owner.test
    while isinstance(last, cst.BooleanOperation) and last is not test.node:
        last = last.right
    message = test.owner.msg
    is_literal = isinstance(message, cst.SimpleString | cst.ConcatenatedString)
    return last is test.node and (message is None or is_literal)


def _freezes(test: TruthTest) -> bool:
    """torch.jit.trace keeps the outcome of every test on a tensor, on data or on a size."""
    if isinstance(test.value, Tensor):
        return True
    sources = (Source.SHAPE, Source.DATA)
    return isinstance(test.value, Static) and test.value.source in sources


def _severity(test: TruthTest, region: Region) -> Severity:
    if test.guarded:
        return Severity.NOTE
    if region.kind is RegionKind.COMPILE and not test.fullgraph:
        return Severity.WARNING
    return Severity.ERROR


def _codes(test: TruthTest, region: Region) -> tuple[str, ...]:
    if region.kind is not RegionKind.COMPILE:
        return ()
    read = test.value.read if isinstance(test.value, Static) else None
    if read is not None and not read.unbroken:
        return (read.code,) if read.code else ()
    return (test.construct.code,)


def _message(test: TruthTest, region: Region, ctx: Context) -> str:
    code = ctx.shortened(test.node)
    tested = f"{test.construct.text} on {_subject(test)}: `{code}`"
    if region.kind is RegionKind.TRACE:
        return f"{tested}; the trace keeps the outcome that the example input had"
    if region.kind is RegionKind.EXPORT:
        return f"{tested}; torch.export cannot follow it"
    if region.kind in GRAPHS:
        return f"{tested}; {in_graph.consequence(region)}"
    if test.fullgraph:
        return f"{tested}; torch.compile(fullgraph=True) raises here"
    return f"{tested}; torch.compile breaks the graph here"


def _subject(test: TruthTest) -> str:
    if isinstance(test.value, Static):
        if test.value.source is Source.SHAPE:
            return "a tensor's size"
        if test.value.read is not None:
            return f"the result of `{test.value.read.operator}`"
    return "the value of a tensor"
