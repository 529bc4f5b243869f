"""The functions that hand code to a compiler: a table, one row per function."""

from dataclasses import dataclass
from functools import cache

from jitlint.region import RegionKind


@dataclass(frozen=True, slots=True)
class Maker:
    """`target` and `examples` are the parameters (position and keyword) that take the code
    and the example inputs. `off`: a keyword that switches the maker off when it is true.
    `variants`: a keyword with a constant that makes another kind of region."""

    name: str
    kind: RegionKind
    target: str
    examples: str = ""
    examples_position: int = 1
    off: str = ""
    variants: tuple[tuple[str, object, RegionKind], ...] = ()


ROWS = (
    # torch 2.13: torch/__init__.py, def compile(model, *, fullgraph, dynamic, …, disable)
    Maker("torch.compile", RegionKind.COMPILE, "model", off="disable"),
    Maker("torch._dynamo.optimize", RegionKind.COMPILE, "", off="disable"),
    Maker("torch._dynamo.optimize_assert", RegionKind.COMPILE, ""),
    # torch/export/__init__.py, def export(mod, args, kwargs=None, *, dynamic_shapes, strict)
    Maker("torch.export.export", RegionKind.EXPORT, "mod", "args"),
    Maker("torch.export.export_for_training", RegionKind.EXPORT, "mod", "args"),
    Maker("torch.export.draft_export", RegionKind.EXPORT, "mod", "args"),
    # torch/onnx/__init__.py: dynamo=True since 2.9; dynamo=False still traces
    Maker(
        *("torch.onnx.export", RegionKind.EXPORT, "model", "args"),
        variants=(("dynamo", False, RegionKind.TRACE),),
    ),
    # torch/jit/_trace.py, def trace(func, example_inputs=None, …)
    Maker("torch.jit.trace", RegionKind.TRACE, "func", "example_inputs"),
    Maker("torch.jit.trace_module", RegionKind.TRACE, "mod", "inputs"),
    Maker("torch.fx.symbolic_trace", RegionKind.TRACE, "root"),
    Maker("torch.fx.experimental.proxy_tensor.make_fx", RegionKind.TRACE, "f"),
    # torch/jit/_script.py, def script(obj, optimize=None, …)
    Maker("torch.jit.script", RegionKind.SCRIPT, "obj"),
    # torch/jit/_script.py, def script_method(fn); torch/_jit_internal.py, def export(fn)
    Maker("torch.jit.script_method", RegionKind.SCRIPT, "fn"),
    Maker("torch.jit.export", RegionKind.SCRIPT, "fn"),
    # tensorflow/python/eager/polymorphic_function: function(func=None, input_signature=None,
    # autograph=True, jit_compile=None, …)
    Maker(
        *("tensorflow.function", RegionKind.GRAPH, "func"),
        variants=(
            ("jit_compile", True, RegionKind.XLA),
            ("experimental_compile", True, RegionKind.XLA),
            ("autograph", False, RegionKind.GRAPH_PLAIN),
        ),
    ),
    # keras/src/trainers/trainer.py (3.15), def compile(self, optimizer, loss, …, jit_compile);
    # jit_compile="auto", the default, is False on a CPU (measured)
    Maker(
        *("keras.Model.compile", RegionKind.KERAS, "self"),
        off="run_eagerly",
        variants=(("jit_compile", True, RegionKind.XLA),),
    ),
    # numba 0.68: core/decorators.py, np/ufunc/decorators.py, stencils/stencil.py
    Maker("numba.njit", RegionKind.NUMBA, "py_func"),
    Maker("numba.jit", RegionKind.NUMBA, "py_func", off="forceobj"),
    Maker("numba.vectorize", RegionKind.NUMBA, "py_func"),
    Maker("numba.guvectorize", RegionKind.NUMBA, "py_func"),
    Maker("numba.stencil", RegionKind.NUMBA, "py_func"),
    Maker("numba.cfunc", RegionKind.NUMBA, "py_func"),
    Maker("numba.cuda.jit", RegionKind.NUMBA_CUDA, "py_func"),
)

KERNELS = frozenset({row.name for row in ROWS if row.name.startswith("numba.")})
"""Makers whose result is a kernel: an object of its own, which no tracer looks into."""

CUT_OFFS = frozenset(
    {
        "torch.compiler.disable",
        "torch._dynamo.disable",
        "torch._disable_dynamo",
        "torch.library.custom_op",
        "torch.library.triton_op",
        "torch.compiler.allow_in_graph",
        "torch._dynamo.allow_in_graph",
        "torch.compiler.assume_constant_result",
        "torch.fx.wrap",
        "triton.jit",
    }
)
"""Decorators behind which a torch tracer does not look."""

UNSCRIPTED = frozenset({"torch.jit.ignore", "torch.jit.unused"})
"""Decorators whose function TorchScript calls by its signature and leaves to Python."""

NO_GRADIENTS = frozenset(
    {
        *("torch.no_grad", "torch.inference_mode"),
        *("torch.autograd.no_grad", "torch.autograd.inference_mode"),
        *("torch.autograd.grad_mode.no_grad", "torch.autograd.grad_mode.inference_mode"),
    }
)
"""Context managers and decorators under which torch records no gradient."""

KERAS_COMPILE = "keras.Model.compile"

KERAS_INPUTS = tuple(
    f"{package}.{name}"
    for package in ("keras", "tensorflow.keras")
    for name in ("Input", "layers.Input")
)
"""What makes the symbol on which layers are called."""

EXPORTED = "torch.jit.export"

SCRIPTED = frozenset({"torch.jit.script", "torch.jit.script_if_tracing"})
"""Decorators whose function torch.jit.trace records as a whole, branches included."""


@cache
def makers() -> dict[str, Maker]:
    return {row.name: row for row in ROWS}
