"""Dimensions that a graph needs and nobody pins."""

from collections.abc import Iterator

import libcst as cst

from jitlint.analysis.batches import BATCH, LOADER
from jitlint.analysis.observations import (
    Call,
    CompiledFunction,
    GraphCall,
    LostShape,
    Observation,
    ProgramCalls,
    SizeUse,
)
from jitlint.analysis.values import (
    NONE,
    External,
    Size,
    Static,
    Tensor,
    Tuple,
    is_constant,
    is_none,
)
from jitlint.finding import Finding, Severity
from jitlint.region import GRAPHS, Region, RegionKind
from jitlint.rule import Context, Rule

from ._growing import growing_assignments
from ._shape_fixes import fix_of_call, fix_of_discarded, fix_of_loss, fix_of_size_use
from ._varying import differs, varying_argument

RAGGED = {
    LOADER: (
        "`torch.compile(dynamic=False)`",
        "`drop_last=True` leaves data out, and without `dynamic=False` the program is one for "
        "all sizes: which is meant is not in the code",
    ),
    BATCH: (
        "XLA",
        "`drop_remainder=True` leaves rows out of each epoch, `repeat()` in front of `batch` "
        "makes batches across epochs, and padding with a mask is right for functions that work "
        "row by row: which is meant is not in the code",
    ),
}
"""What makes a last batch that is smaller: which compiler has a program for each size, and why
there is no fix."""


class ShapePin(Rule):
    """A dimension that a graph needs, and that nothing in the code pins.

    ## Why it matters
    A TensorFlow graph is traced with static shapes. Where a dimension is not known there,
    `x.shape[0]` is None, and Python arithmetic or an operator on it raises ("None values not
    supported", "Cannot convert a partially known TensorShape"). Behind `tf.numpy_function`,
    `tf.py_function` and `Dataset.from_generator` without a signature not even the rank is
    known ("Cannot take the length of shape with unknown rank"), and a layer that has not been
    built refuses it. A function without a signature is traced again for each new shape, and
    under XLA compiled again. A program of `torch.export` without `dynamic_shapes` takes the
    sizes of its example only. `torch.compile(dynamic=False)` compiles again for the last batch
    of a DataLoader without `drop_last`, and XLA for that of `Dataset.batch` without
    `drop_remainder`, be it given to a `tf.function(jit_compile=True)` or to a Keras model that
    was compiled so.

    ## Example
        @tf.function
        def model(x):
            features = tf.numpy_function(spectrum, [x], tf.float32)
            return dense(features)

    ## Use instead
            features = tf.numpy_function(spectrum, [x], tf.float32)
            features = tf.ensure_shape(features, [None, 4])

    For a size that is only known when the graph runs: `tf.shape(x)[0]`, or -1 in a reshape.
    For a varying batch: `input_signature=[tf.TensorSpec([None], ...)]`, which gives one trace.
    Under `jit_compile=True` neither `input_signature` nor `ensure_shape` saves a compilation
    for each shape: pad the batch to a bucket. Never write a number for a size that depends on
    data (`boolean_mask`, `where`, `unique`): XLA takes the lie, and pads.

    ## Fix safety
    Safe in a function whose `input_signature` leaves the size open, as the old code never gave
    a result there: the size in `tf.reshape(x, [x.shape[0], 8])` becomes -1 where the others are
    those of `x`, else `tf.shape(x)[0]`, as in the shape that another operator is given. Safe: a
    pin by `x.shape` behind a NumPy function that works element by element. Unsafe: the first
    two where the size is known in some traces (Keras, `reduce_retracing`), whose results lose a
    static size; what stands in a `try`, whose handler may be what gives the result; to use a
    pin that was discarded, as a wrong shape then raises. Withheld: a reshape to the size of
    another tensor (a graph drops a reshape that keeps what it knows of the shape); a pin
    behind any other Python function, whose result is not known to have the shape of its
    input; padding and `dynamic_shapes`, which decide what callers may pass; a last batch, whose
    rows somebody may want. A signature is offered where all calls of the function show the
    dtype and the rank of each argument, and its body reads no size: unsafe, as it refuses what
    other callers may pass.

    ## Measured
    TensorFlow 2.21: `tf.ensure_shape(x, [None, 128])` does not pin the batch: five batch
    sizes give five traces, with `input_signature` one. XLA compiles for each concrete shape,
    however often the function is traced; with padding to one size it compiles once.
    `ensure_shape(boolean_mask(x), [3])` with a bound is an error in a graph; under XLA it
    returns padding in silence. A discarded `tf.ensure_shape(x, s)` pins nothing, and a graph
    prunes it. torch 2.13: a program exported with a batch of 2 raises for a batch of 3;
    epochs of 10, 11 and 9 rows by four make four programs with `dynamic=False`. Ten rows by
    four are two programs of XLA, and with `drop_remainder=True` one, in a loop of one's own
    and in `fit`, `evaluate` and `predict` of Keras 3.15.

    ## References
    - https://www.tensorflow.org/api_docs/python/tf/ensure_shape
    - https://www.tensorflow.org/guide/function#controlling_retracing
    - https://www.tensorflow.org/xla/known_issues
    - https://docs.pytorch.org/docs/stable/export.html#expressing-dynamism
    """

    name = "shape-pin"
    severity = Severity.ERROR
    fixable = True
    regions = GRAPHS | {RegionKind.EXPORT, RegionKind.COMPILE}
    watches = frozenset({"tensorflow.ensure_shape", "CompiledFunction"})

    def visit_SizeUse(self, use: SizeUse, ctx: Context) -> Iterator[Finding]:
        region = _first(use)
        fix, reason = fix_of_size_use(use)
        is_keras = region is not None and region.kind is RegionKind.KERAS
        yield ctx.finding(
            use.node,
            f"`{ctx.shortened(use.node)}` needs a size that is None in the graph"
            + (", as the batch of a symbolic input is" if is_keras else ""),
            severity=Severity.WARNING if is_keras else Severity.ERROR,
            region=region,
            fix=fix,
            no_fix_reason=reason,
        )

    def visit_LostShape(self, lost: LostShape, ctx: Context) -> Iterator[Finding]:
        if lost.regions and set(lost.regions) <= {RegionKind.XLA}:
            return  # XLA refuses the call itself
        need = ctx.shortened(lost.needed_by[0])
        if lost.loss.operator in RAGGED:
            compiler, choice = RAGGED[lost.loss.operator]
            yield ctx.finding(
                lost.node,
                f"the last batch is smaller, for which {compiler} compiles `{need}` again",
                severity=Severity.WARNING,
                no_fix_reason=choice,
            )
            return
        fix, reason = fix_of_loss(lost)
        yield ctx.finding(
            lost.node,
            f"the graph knows no shape behind `{lost.loss.operator}`, and `{need}` needs it",
            region=_first(lost),
            fix=fix,
            no_fix_reason=reason,
        )

    def visit_GraphCall(self, call: GraphCall, ctx: Context) -> Iterator[Finding]:
        is_xla = call.kind is RegionKind.XLA
        if not is_xla and _has_open_signature(call):
            return
        found = varying_argument(call)
        if found is None:
            return
        fix, reason = fix_of_call(call)
        cost = "XLA compiles" if is_xla else "`tf.function` traces"
        yield ctx.finding(
            call.node,
            f"`{ctx.shortened(found.value)}` has another shape in each call: "
            f"{cost} `{call.target.name}` again for each",
            severity=Severity.WARNING,
            fix=fix,
            no_fix_reason=reason,
        )

    def visit_Call(self, call: Call, ctx: Context) -> Iterator[Finding]:
        if call.callee != External("tensorflow.ensure_shape") or not call.regions:
            return
        region = _first(call)
        statement = _discarded(call, ctx)
        if statement is not None:
            fix, reason = fix_of_discarded(call, statement)
            yield ctx.finding(
                call.node,
                "the result of `ensure_shape` is not used, so that nothing is pinned",
                severity=Severity.WARNING,
                region=region,
                fix=fix,
                no_fix_reason=reason,
            )
        elif RegionKind.XLA in call.regions and _pins_data(call):
            yield ctx.finding(
                call.node,
                "a number for a size that depends on data: XLA takes a bound for the size, and "
                "returns padding",
                region=call.regions[RegionKind.XLA],
                no_fix_reason="the size is only known when the graph runs: leave it None, or "
                "mask instead of selecting",
            )

    def visit_ProgramCalls(self, program: ProgramCalls, ctx: Context) -> Iterator[Finding]:
        declared = program.keywords.get("dynamic_shapes", NONE)
        if not is_none(declared) or not isinstance(program.examples, Tuple):
            return
        if any(_differ(program.examples.items, passed) for passed in program.calls):
            yield ctx.finding(
                program.node,
                "exported for the sizes of its example, and called with others: the program "
                "refuses them",
                no_fix_reason="which dimensions vary is for `dynamic_shapes` to say",
            )

    def visit_CompiledFunction(self, function: CompiledFunction, ctx: Context) -> Iterator[Finding]:
        if not set(function.regions) & {RegionKind.GRAPH, RegionKind.XLA}:
            return
        for assignment, name in growing_assignments(function):
            yield ctx.finding(
                assignment.value,
                f"`{name}` has another shape after each round of a loop that runs in the graph",
                region=_first(function),
                no_fix_reason="`shape_invariants` of `set_loop_options` declares the growth for "
                "a graph, XLA refuses it; or a TensorArray of a fixed size",
            )


def _first(seen: Observation) -> Region | None:
    return next(iter(seen.regions.values()), None)


def _differ(examples: tuple[object, ...], passed: tuple[object, ...]) -> bool:
    return any(differs(a, b) for a, b in zip(examples, passed, strict=False))  # type: ignore[arg-type]


def _has_open_signature(call: GraphCall) -> bool:
    relaxed = call.options.get("reduce_retracing") or call.options.get("experimental_relax_shapes")
    return "input_signature" in call.options or relaxed == Static(True)


def _discarded(call: Call, ctx: Context) -> cst.Expr | None:
    """The statement that consists of nothing but the call."""
    root = ctx.module if call.function is None else call.function.node
    return _expression_of(root, call.node)


def _expression_of(root: cst.CSTNode, node: cst.Call) -> cst.Expr | None:
    if isinstance(root, cst.Expr):
        return root if root.value is node else None
    return next((found for c in root.children if (found := _expression_of(c, node))), None)


def _pins_data(call: Call) -> bool:
    if len(call.positional) < 2 or not isinstance(call.positional[1], Tuple):
        return False
    value, spelled = call.positional[0], call.positional[1].items
    dims = value.shape.dims if isinstance(value, Tensor) and value.shape is not None else ()
    pairs = zip(dims, spelled, strict=False)
    return any(
        dim is Size.DATA and is_constant(item) and isinstance(item.const, int)
        for dim, item in pairs
    )
