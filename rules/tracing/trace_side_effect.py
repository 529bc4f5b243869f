"""Effects on the world outside of a graph, and values that come from there."""

from collections.abc import Iterator

from jitlint.analysis import tables
from jitlint.analysis.observations import Frozen, Operation
from jitlint.finding import Finding, Severity
from jitlint.region import GRAPHS, RegionKind
from jitlint.rule import Context, Rule

from ._once import effects
from ._stops import Problem, breaking_region, problem_of, stop
from .effect_fixes.fixes import fix_for


class TraceSideEffect(Rule):
    """Printing, logging, clocks, random numbers of Python and files, in compiled code.

    ## Why it matters
    A graph holds operations on tensors. What a program does besides, or learns from the
    world outside, has no place in it: `torch.compile` ends the graph, lets Python do it, and
    begins another one ("Failed to trace builtin operator", GB0059, at a `print`; "logging
    method not supported", GB0291; "Attempted to call function marked as skipped", GB0007, at
    `warnings.warn`, `time.time()`, `random.random()`). Inside a loop, `try` or `with` the
    whole function runs uncompiled, and with `fullgraph=True` the call raises.
    `random.randint`, `randrange` and `uniform` do not break by themselves: the compiler makes
    a symbol of the number, and stops where Python computes with it, or where a size, an index
    or a bound needs it (GB0213).
    `torch.export` runs it once, when it traces the program: what was printed is never
    printed again, and a time or a random number is a constant of the program from then on.
    `torch.jit.trace` and TensorFlow run the function once as well, to record its operators:
    what it prints, logs, counts in an attribute or appends to a list from outside shows once
    for each trace, and a tensor of a graph that is kept in such a list has no value.

    ## Example
        @torch.compile
        def step(x):
            y = x * 2
            print("step", x.shape[0])
            return y

    ## Use instead
        @torch.compile
        def step(x):
            y = x * 2
            torch._higher_order_ops.print("step {}", x.shape[0])
            return y

    Log and warn where the compiled function is called. Pass a time or a random number of
    Python as an argument, or draw it with `torch.rand`. What has to stay goes into a function
    of its own behind `torch.compiler.disable`: one break instead of several.

    ## Fix safety
    Unsafe. For a `print` of text, numbers, sizes, dtypes, devices and tensors: the operator
    prints the same text at the same point of every call, and when Python runs it, but it
    raises under the transforms of functorch (`torch.vmap`, `torch.func.grad`) and
    `torch.jit.trace`, and a tensor's text lacks the `grad_fn`. Withheld
    for lists, tuples and objects, which the operator does not take, for `file=`, `end=` and
    `flush=`, and where a release of torch has no such operator. A warning or a line of a log
    becomes an operator with an effect, unsafe: it cannot be mapped over (torch.vmap) or
    scripted. Withheld where `stacklevel=` names a caller. A call that fails while it is
    compiled does not print what it would have printed before. To drop the statement, or to
    guard it by `torch.compiler.is_compiling()`, loses it: neither is offered. In a graph of
    TensorFlow a `print` becomes `tf.print`, never safe: it prints values instead of symbols, to
    the standard error, each time. XLA refuses it.

    ## Measured
    torch 2.13.0: each function of the standard library was called in a compiled function;
    the table holds those that break, and those of them that write output, move a generator
    on, reach the operating system, or return another value when they are called again. The
    operator that prints was compared with `print` on the eager, aot_eager and inductor
    backends, in both modes, for several shapes, with and without gradients.
    `torch.seed()`, an object of `random.Random`, and changes of lists, dicts, globals and
    attributes do not break a graph. Behind a flag that a module reads from the environment, or
    another setting of the process that is not known here, all this is a note.

    ## References
    - https://docs.pytorch.org/docs/main/compile/programming_model.common_graph_breaks.html
    - https://docs.pytorch.org/docs/stable/export.html
    """

    name = "trace-side-effect"
    severity = Severity.WARNING
    fixable = True
    covers = frozenset[str]().union(
        *(row.break_ids for row in tables.load().rows("standard") if row.effect or row.varies)
    )
    regions = GRAPHS | {RegionKind.COMPILE, RegionKind.EXPORT, RegionKind.TRACE}

    def visit_Operation(self, operation: Operation, ctx: Context) -> Iterator[Finding]:
        if problem_of(operation) is not Problem.SIDE_EFFECT:
            return
        region, ending, severity = breaking_region(operation), None, None
        if region is None:
            region = operation.regions.get(RegionKind.EXPORT)
            ending, severity = FROZEN if operation.operator.varies else LOST
        if region is not None:
            found = fix_for(operation, ctx, _reason(operation))
            problem = _problem(operation, ctx)
            yield stop(operation, region, ctx, problem, found, ending=ending, severity=severity)

    def visit_Frozen(self, frozen: Frozen, ctx: Context) -> Iterator[Finding]:
        yield from effects(frozen, ctx)


FROZEN = "torch.export keeps the value of its one run in the program", Severity.ERROR
LOST = "torch.export does that once, and the program never does", Severity.WARNING


WORDS = {
    "output": "writes output",
    "random": "draws from a generator outside of the graph",
    "system": "calls the operating system",
}
CHANGES = "gives another value at each call"


def _problem(operation: Operation, ctx: Context) -> str:
    words = WORDS.get(operation.operator.effect or "", CHANGES)
    return f"`{ctx.shortened(operation.node)}` {words}"


REASONS = {
    "output": "no graph can write this; write it where the compiled function is called, or in a "
    "function of its own behind `torch.compiler.disable`",
    "random": "a graph cannot draw from this generator; draw the number outside and pass it as an "
    "argument, or use torch.rand, whose numbers are others",
    "system": "no graph can do this; do it where the compiled function is called, and pass its "
    "result as an argument",
}
VALUE = "the value is another one at each call; read it outside and pass it as an argument"


def _reason(operation: Operation) -> str:
    return REASONS.get(operation.operator.effect or "", VALUE)
