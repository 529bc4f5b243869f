"""Modules that are traced, frozen or exported in training mode."""

from collections.abc import Iterator

import libcst as cst

from jitlint.analysis.machine import Machine
from jitlint.analysis.observations import Call, Freeze, Frozen
from jitlint.analysis.tree import ancestors_of, nodes_in
from jitlint.analysis.values import FALSE, External, ExternalInstance, Instance, Value
from jitlint.finding import Finding, Fix, Safety, Severity
from jitlint.region import RegionKind
from jitlint.rule import Context, Rule

from ._modes import Mode, Modes
from .branch_fixes.emit import TIGHT

TAKERS: dict[str, tuple[str, Severity]] = {
    "torch.jit.trace": ("func", Severity.ERROR),
    "torch.jit.trace_module": ("mod", Severity.ERROR),
    "torch.jit.freeze": ("mod", Severity.ERROR),
    "torch.jit.optimize_for_inference": ("mod", Severity.ERROR),
    "torch.export.export": ("mod", Severity.WARNING),
    "torch.onnx.export": ("model", Severity.WARNING),
}
"""Who keeps the mode of a module for ever, and by which parameter it is given."""
REFUSES = frozenset({"torch.jit.freeze"})
"""Those that raise for any module in training mode."""


class TraceTrainingMode(Rule):
    """A module that is traced, frozen or exported while it is in training mode.

    ## Why it matters
    A trace, and an exported program, hold what the module did when it was recorded. In
    training mode a dropout drops, and a batch norm uses the statistics of the batch and
    updates its own. `.eval()` on the traced module does not change that any more, and an
    exported program has no `.eval()`. `torch.jit.freeze` refuses ("Freezing is currently only
    implemented for modules in eval mode"). A module is in training mode when it is made.

    ## Example
        model = Classifier()
        traced = torch.jit.trace(model, example)

    ## Use instead
        model = Classifier()
        model.eval()
        traced = torch.jit.trace(model, example)

    ## Fix safety
    Never safe: with `.eval()` the traced module computes something else, which is the point,
    and the model stays in that mode afterwards. Offered where the module is a variable of the
    function, or is made in the call itself. Where the variable is used again after the call,
    it may be trained on: then the fix is withheld.

    ## Measured
    torch 2.13.0: a trace of `Dropout` or `BatchNorm1d` made in training mode still differs
    from the module after `.eval()` on both. Which modules depend on the mode is measured on
    each class of `torch.nn`. Silent where the mode is not known: a parameter, an attribute,
    a module that a function which is not the project's has seen. Arguments that make the mode
    irrelevant (`Dropout(p=0)`, `track_running_stats=False`) are measured for each layer.

    ## References
    - https://docs.pytorch.org/docs/stable/generated/torch.jit.trace.html
    - https://docs.pytorch.org/docs/stable/generated/torch.jit.freeze.html
    """

    name = "trace-training-mode"
    severity = Severity.ERROR
    fixable = True
    regions = frozenset({RegionKind.TRACE, RegionKind.EXPORT, RegionKind.SCRIPT})
    watches = frozenset(TAKERS)

    def visit_Call(self, call: Call, ctx: Context) -> Iterator[Finding]:
        taker = call.callee.name if isinstance(call.callee, External) else ""
        if taker not in TAKERS or _is_in_eval_by_itself(taker, call):
            return
        parameter, severity = TAKERS[taker]
        argument = _argument(call.node, parameter)
        if argument is None or Modes(call).of(argument) is not Mode.TRAINING:
            return
        machine: Machine = call.moments[0].frame.machine
        layer = _mode_dependent(call.value_of(argument), machine, set())
        if layer is None and taker not in REFUSES:
            return
        code = ctx.module.code_for_node(argument)
        because = "" if layer is None else f", and its {layer} depends on the mode"
        fix, reason = _fix(call, argument, ctx)
        yield ctx.finding(
            call.node,
            f"`{code}` is in training mode here{because}: `{taker}` "
            + ("refuses it" if taker in REFUSES else "keeps it that way"),
            severity=severity,
            fix=fix,
            no_fix_reason=reason,
        )

    def visit_Frozen(self, frozen: Frozen, ctx: Context) -> Iterator[Finding]:
        around = ancestors_of(frozen.node, ctx.module)
        if frozen.freeze is not Freeze.TRAINING or any(map(_is_about_mode, around)):
            return
        name = frozen.name.rpartition(".")[2]
        fix, reason = _fix_of_function(frozen)
        yield ctx.finding(
            frozen.node,
            f"`{name}` is in training mode unless it is told otherwise: the trace keeps that, "
            "whatever mode the module was in",
            severity=Severity.WARNING,
            region=frozen.regions[RegionKind.TRACE],
            fix=fix,
            no_fix_reason=reason,
        )


def _is_about_mode(node: cst.CSTNode) -> bool:
    """A branch that follows the mode of its module already."""
    return isinstance(node, cst.If | cst.IfExp) and _asks_mode(node.test)


def _is_in_eval_by_itself(taker: str, call: Call) -> bool:
    """The exporter of ONNX that traces switches to `eval` while it does."""
    return taker == "torch.onnx.export" and call.keywords.get("dynamo") == FALSE


def _argument(node: cst.Call, parameter: str) -> cst.BaseExpression | None:
    for index, each in enumerate(node.args):
        if each.keyword is not None and each.keyword.value == parameter:
            return each.value
        if index == 0 and each.keyword is None and each.star == "":
            return each.value
    return None


def _mode_dependent(value: Value, machine: Machine, seen: set[object]) -> str | None:
    """The first layer of a module that computes something else in training mode."""
    match value:
        case ExternalInstance(name, children, by_mode=by_mode):
            if by_mode:
                return f"`{name.rpartition('.')[2]}`"
            found = (_mode_dependent(child, machine, seen) for child in children)
            return next(filter(None, found), None)
        case Instance(cls) if cls not in seen:
            seen.add(cls)
            methods = [info for each in machine.mro(cls) for info in each.methods.values()]
            if any(_asks_mode(info.node) for info in methods):
                return "`self.training`"
            held = machine.attributes(cls).values()
            found = (_mode_dependent(each, machine, seen) for each in held)
            return next(filter(None, found), None)
    return None


def _asks_mode(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Attribute) and node.attr.value == "training":
        return isinstance(node.value, cst.Name)
    return any(map(_asks_mode, node.children))


# -- the fixes -----------------------------------------------------------------------------


def _fix_of_function(frozen: Frozen) -> tuple[Fix | None, str | None]:
    """`F.dropout(x, p, training=self.training)` in a method of a module."""
    function = frozen.function
    if function is None or function.cls is None or not function.parameters:
        return None, "pass `training=False`, or the mode as an argument"
    if not frozen.moments[0].frame.machine.is_module(function.cls):
        return None, "pass `training=False`, or the mode as an argument"
    assert isinstance(frozen.node, cst.Call)
    owner = function.parameters[0].name.value
    mode = cst.Arg(
        cst.Attribute(cst.Name(owner), cst.Name("training")),
        keyword=cst.Name("training"),
        equal=TIGHT,
    )
    call = frozen.node.with_changes(args=[*frozen.node.args, mode])
    title = "Follow the mode of the module (in evaluation mode it then does nothing)"
    return Fix(Safety.UNSAFE, title, {frozen.node: call}), None


TITLE = "Switch `{name}` to evaluation mode (the traced module then computes something else)"


def _fix(call: Call, argument: cst.BaseExpression, ctx: Context) -> tuple[Fix | None, str | None]:
    """`model.eval()` before the statement, or `Net().eval()` in it."""
    if isinstance(argument, cst.Call):
        switched = cst.Call(cst.Attribute(argument, cst.Name("eval")))
        title = TITLE.format(name=ctx.module.code_for_node(argument))
        return Fix(Safety.UNSAFE, title, {argument: switched}), None
    if not isinstance(argument, cst.Name):
        return None, "the module has no name on which `.eval()` could be called"
    name = argument.value
    line = next(
        (e for e in ancestors_of(call.node, ctx.module) if isinstance(e, cst.SimpleStatementLine)),
        None,
    )
    if line is None:
        return None, "the call does not stand in a statement of its own"
    root = ctx.module if call.function is None else call.function.node
    if _is_used_again(root, line, name, ctx):
        return (
            None,
            f"`{name}` is used again after the call, and may be meant to be in training mode",
        )
    statement = cst.parse_statement(f"{name}.eval()")
    assert isinstance(statement, cst.SimpleStatementLine)
    first = statement.with_changes(leading_lines=line.leading_lines)
    rest = line.with_changes(leading_lines=())
    replacement = cst.FlattenSentinel([first, rest])
    return Fix(Safety.UNSAFE, TITLE.format(name=name), {line: replacement}), None


def _is_used_again(root: cst.CSTNode, line: cst.CSTNode, name: str, ctx: Context) -> bool:
    """Whether a variable is read behind a statement, or in another round of a loop around it."""
    own = set(nodes_in(line))
    nodes = list(nodes_in(root))
    last = max(index for index, node in enumerate(nodes) if node in own)
    later = nodes[last + 1 :]
    for each in ancestors_of(line, ctx.module):
        if isinstance(each, cst.For | cst.While):
            later += [node for node in nodes_in(each) if node not in own]
        if each is root:
            break
    return any(isinstance(node, cst.Name) and node.value == name for node in later)
