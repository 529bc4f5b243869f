"""Functions of torch that need more than a row of a table."""

from dataclasses import replace

import libcst as cst

from jitlint.analysis import narrowing
from jitlint.analysis.calls import Arguments, apply, handles
from jitlint.analysis.expressions import condition_code
from jitlint.analysis.frame import Frame
from jitlint.analysis.makers import CUT_OFFS
from jitlint.analysis.values import (
    NONE,
    STATIC,
    TENSOR,
    UNKNOWN,
    CutOff,
    Dict,
    External,
    Framework,
    Partial,
    Sequence,
    Static,
    Tensor,
    Tuple,
    Value,
    is_callable,
    join_all,
)
from jitlint.region import RegionKind


@handles("torch.is_tensor")
def _is_tensor(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    decided = narrowing.instance_of(frame, arguments.first, [External("torch.Tensor")])
    return STATIC if decided is None else Static(decided)


@handles(*CUT_OFFS)
def _cut_off(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    """`torch.compiler.disable(f)`; without a function it is a decorator with options."""
    hidden = next(filter(is_callable, arguments.all()), None)
    return Partial(External(name)) if hidden is None else CutOff(hidden, name)


@handles("torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer")
def _parameter(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    value = arguments.get(0, "data") or UNKNOWN
    tensor = value if isinstance(value, Tensor) else TENSOR
    wanted = arguments.get(1, "requires_grad") or Static(not name.endswith("Buffer"))
    grad = wanted.const if isinstance(wanted, Static) and isinstance(wanted.const, bool) else None
    return replace(tensor, maybe=False, assumed=False, framework=Framework.TORCH, grad=grad)


@handles("torch.nn.ParameterList")
def _parameters(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    return Sequence(Tensor(grad=True))


@handles("torch.nn.ParameterDict")
def _by_name(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    return Dict(default=Tensor(grad=True))


@handles("torch.cond")
def _cond(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    operands = arguments.get(3, "operands")
    items = list(operands.items) if isinstance(operands, Tuple) else []
    results = []
    for position, keyword in ((1, "true_fn"), (2, "false_fn")):
        function = arguments.get(position, keyword)
        if function is not None:
            results.append(apply(frame, function, Arguments(list(items)), node))
    return join_all(results)


@handles("torch._check")
def _check(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    if isinstance(node, cst.Call) and node.args:
        frame.checked.add(condition_code(frame, node.args[0].value))
    return NONE


@handles("torch.utils.checkpoint.checkpoint")
def _checkpoint(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    if not arguments.positional:
        return UNKNOWN
    function, *rest = arguments.positional
    own = ("use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug")
    keywords = {k: v for k, v in arguments.keywords.items() if k not in own}
    return apply(frame, function, Arguments(rest, keywords, arguments.rest), node)


STATE_QUERIES: dict[str, frozenset[RegionKind]] = {
    "torch.compiler.is_compiling": frozenset({RegionKind.COMPILE, RegionKind.EXPORT}),
    "torch.compiler.is_dynamo_compiling": frozenset({RegionKind.COMPILE}),
    "torch._dynamo.is_compiling": frozenset({RegionKind.COMPILE, RegionKind.EXPORT}),
    "torch._dynamo.external_utils.is_compiling": frozenset({RegionKind.COMPILE}),
    "torch._utils.is_compiling": frozenset({RegionKind.COMPILE, RegionKind.EXPORT}),
    "torch.compiler.is_exporting": frozenset({RegionKind.EXPORT}),
    "torch.jit.is_tracing": frozenset({RegionKind.TRACE}),
    "torch._C._get_tracing_state": frozenset({RegionKind.TRACE}),
    "torch.jit.is_scripting": frozenset({RegionKind.SCRIPT}),
    "torch.onnx.is_in_onnx_export": frozenset(),
    "torch.overrides.has_torch_function": frozenset(),
    "torch.overrides.has_torch_function_unary": frozenset(),
    "torch.overrides.has_torch_function_variadic": frozenset(),
}
"""In which kinds of region these functions are true; in all others they are false."""


@handles(*STATE_QUERIES)
def _state_query(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    if frame.region is None:
        return STATIC
    return Static(frame.region.kind in STATE_QUERIES[name])
