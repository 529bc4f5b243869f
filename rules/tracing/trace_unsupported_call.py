"""Calls that a compiler cannot enter, in code that it traces."""

from collections.abc import Iterator

from jitlint.analysis import tables
from jitlint.analysis.makers import CUT_OFFS
from jitlint.analysis.observations import Frozen, Operation, Use
from jitlint.analysis.tables import Operator
from jitlint.finding import Finding, Severity
from jitlint.region import GRAPHS, Region, RegionKind
from jitlint.rule import Context, Rule

from ._once import hashes
from ._stops import DYNAMIC_SHAPE, SCALAR_READ, Problem, stop, stopped
from .effect_fixes.fixes import fix_for

READS = frozenset({DYNAMIC_SHAPE, SCALAR_READ})


CONSTRUCTS = (
    *("class_in_region", "draw_from_generator", "store_on_function", "store_to_environment"),
)


def _rows() -> Iterator[Operator]:
    """What the table knows to break a graph, effects and reads aside."""
    table = tables.load()
    yield from table.rows("contexts", "stores", "attribute_breaks", "hiding", "hooks")
    yield from table.rows("requires_grad", "messages", "arrays")
    yield from filter(None, map(table.construct, CONSTRUCTS))
    for row in table.rows("standard", "functions", "methods", "modules"):
        if not (row.effect or row.varies or row.reads or row.dynamic_shape):
            yield row


class TraceUnsupportedCall(Rule):
    """Calls, attributes and context managers that the compiler cannot enter.

    ## Why it matters
    Dynamo runs Python by itself, instruction by instruction. It stops at a function in C that
    it has no model of (`json.dumps`, `heapq.heappush`, "Attempted to call function marked as
    skipped", GB0007), at operations whose effect on autograd it does not model
    (`loss.backward()` GB0123, `t.requires_grad = True` GB0206, `t.requires_grad_()` GB8985,
    `t.retain_grad()` GB0108, `optimizer.step()`, a hook that is registered), at objects that
    it cannot hold (a sparse tensor, a new `nn.Parameter`, a ScriptModule GB4695, an LSTM
    GB0014, a generator that was made outside, GB0055), at a class that is defined there
    (GB8977), at an attribute that a function is given (GB0467), at a check whose message shows
    a tensor or a module (`torch._check(ok, lambda: f"{x.shape}")`, GB9158), at an in-place
    view of an input (`x.t_()`, GB0148), at the dtype of an array of NumPy (GB0157), and at
    context managers that it does not know (`ExitStack`, `torch.device`). The graph ends there;
    inside a loop, `try` or `with` the whole function runs uncompiled; with `fullgraph=True`
    the call raises. A function behind `functools.lru_cache` cannot be given a tensor of a
    graph of TensorFlow ("Tensor is unhashable").

    ## Example
        @torch.compile
        def step(x):
            with torch.device("cpu"):
                weights = torch.ones(4)
            return pow(x, 2) * weights

    ## Use instead
        @torch.compile
        def step(x):
            weights = torch.ones(4, device="cpu")
            return x**2 * weights

    What has to stay in Python goes where the compiled function is called, or into the
    smallest function behind `torch.compiler.disable`; a kernel of your own becomes an
    operator by `torch.library.custom_op`, with `register_fake` and `register_autograd`.

    ## Fix safety
    Safe: `pow(a, b)` by `a ** b`, which it is by definition; `copy.deepcopy(t)` by
    `t.clone()` and `copy.copy(t)` by `t.detach()` of a tensor that needs no gradient;
    `with torch.device(d):` by the argument `device=d` where every call in the block is known;
    an `ExitStack` that is entered at once, and used for nothing else, by a plain `with`
    (not where what entering gives is used: Dynamo binds None in `with torch.autocast(…) as n`).
    Unsafe: a copy of a tensor that may need a gradient, since the copy is a new leaf; and
    `t.requires_grad = True` of a new tensor, which is left to Python by `if not
    torch.compiler.is_compiling()`: right if what is computed from `t` requires grad without it,
    as behind a layer with parameters. Withheld in all other cases:
    `t.detach().requires_grad_()` breaks as `t.requires_grad = True` does, and no operation in a
    graph means the same.

    ## Measured
    torch 2.13.0: each public function, method, context manager and attribute of the standard
    library and of torch was compiled, in both modes. `requires_grad_()` breaks only where it
    changes the flag. A call of a function behind `torch.compiler.disable` breaks (GB0098): it
    is meant to, and a note in default mode. A function of `torch.library.custom_op`,
    `torch.compiler.allow_in_graph` or `torch.jit.script` does not break, a module of
    `torch.jit.script` does. Forward hooks do not break, backward hooks do (GB0083), where
    their module is called. `torch.export` runs Python, and takes nearly all of this.

    ## References
    - https://docs.pytorch.org/docs/main/compile/programming_model.graph_breaks_index.html
    - https://docs.pytorch.org/docs/stable/library.html
    """

    name = "trace-unsupported-call"
    severity = Severity.WARNING
    fixable = True
    covers = frozenset[str]().union(*(row.break_ids for row in _rows())) - READS
    regions = GRAPHS | {RegionKind.COMPILE, RegionKind.EXPORT, RegionKind.TRACE}

    def visit_Operation(self, operation: Operation, ctx: Context) -> Iterator[Finding]:
        region = stopped(operation, Problem.UNSUPPORTED)
        if region is None:
            return
        found = fix_for(operation, ctx, _reason(operation))
        severity = Severity.NOTE if _is_meant(operation, region) else None
        yield stop(operation, region, ctx, _problem(operation, ctx), found, severity=severity)

    def visit_Frozen(self, frozen: Frozen, ctx: Context) -> Iterator[Finding]:
        yield from hashes(frozen, ctx)


def _is_meant(operation: Operation, region: Region) -> bool:
    """Whether the user cut the function off from the compiler, to break the graph."""
    name = operation.operator.name.partition(":")[0]
    is_cut_off = operation.use is Use.HIDDEN and name in CUT_OFFS
    return is_cut_off and operation.default_mode is region


SUBJECTS = {
    Use.CONTEXT: "the compiler cannot enter the context manager `{code}`",
    Use.STORE: "the compiler cannot set `{code}`",
    Use.ATTRIBUTE: "the compiler cannot read `{code}`",
    Use.DEFINITION: "the compiler cannot follow the definition `{code}`",
    Use.MESSAGE: "the compiler cannot keep the message of `{code}`",
    Use.HIDDEN: "`{code}` calls what is hidden from the compiler",
}
CALL = "the compiler cannot follow the call `{code}`"


def _problem(operation: Operation, ctx: Context) -> str:
    return SUBJECTS.get(operation.use, CALL).format(code=ctx.shortened(operation.node))


REASONS = {
    Use.CONTEXT: "the block has to run in Python: enter it where the compiled function is called",
    Use.STORE: "no operation of a graph sets this attribute: set it before the compiled function "
    "is called",
    Use.ATTRIBUTE: "a graph holds no such object: read it where the compiled function is called",
    Use.DEFINITION: "a graph defines no class: define it outside of the compiled function",
    Use.MESSAGE: "a graph keeps the text, made of constants by a function of the compiled code: "
    "read what it tells of a tensor or a module into variables before",
    Use.HIDDEN: "it was cut off on purpose; make it an operator with `torch.library.custom_op`, "
    "or call it outside",
}
OUTSIDE = (
    "no operation of a graph means the same: call it before or after the compiled function, or "
    "in a function of its own behind `torch.compiler.disable`"
)


def _reason(operation: Operation) -> str:
    return REASONS.get(operation.use, OUTSIDE)
