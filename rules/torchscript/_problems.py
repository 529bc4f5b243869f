"""The parameters of one compiled function that TorchScript misreads, and their fixes."""

from collections.abc import Iterator, Mapping

import libcst as cst

from jitlint.analysis.observations import CompiledFunction
from jitlint.analysis.values import External
from jitlint.finding import Fix, Safety

from ._annotations import Writer, read_annotation
from ._infer import Evidence, Inferred, infer
from ._named_tuples import named_tuples
from ._problem import Problem
from ._types import NONE, TENSOR, UNKNOWN, Type
from ._uses import Use, uses_of

CONSTRUCTOR = External("torch.tensor")
MUTABLE = "TorchScript takes no mutable default, and this one cannot become a tuple"


def problems(seen: CompiledFunction, module: cst.Module) -> Iterator[Problem]:
    parameters = _parameters(seen)
    untyped = [each for each in parameters if each.annotation is None]
    uses = uses_of(seen, [each.name.value for each in parameters])
    for parameter in untyped:
        yield from _untyped(seen, module, parameter, uses[parameter.name.value])
    for parameter in parameters:
        if parameter.annotation is not None:
            yield from _typed(seen, parameter, uses[parameter.name.value])
    if seen.node.returns is not None:
        yield from _constructor(seen, seen.node.returns, "the result")
    if not seen.signature_only:
        yield from named_tuples(seen)


def _parameters(seen: CompiledFunction) -> list[cst.Param]:
    """Those that a call names; TorchScript knows the type of `self` itself."""
    info = seen.function
    decorators = seen.moments[0].frame.machine.decorator_names(info)
    has_receiver = info.cls is not None and "builtins.staticmethod" not in decorators
    return [*info.parameters[has_receiver:], *info.node.params.kwonly_params]


# -- parameters without annotation -----------------------------------------------------------


def _untyped(
    seen: CompiledFunction, module: cst.Module, parameter: cst.Param, uses: list[Use]
) -> Iterator[Problem]:
    evidence = Evidence.of(parameter, seen, uses)
    why = _why(evidence, parameter, module)
    if why is None:
        return
    inferred = infer(evidence)
    name = parameter.name.value
    message = f"`{name}` has no annotation, so that torch.jit.script takes it for a Tensor; {why}"
    if inferred.kind is None:
        yield Problem(parameter, message, None, f"no annotation is proposed: {inferred.reason}")
        return
    yield _annotated(seen, parameter, evidence, inferred, message)


def _why(evidence: Evidence, parameter: cst.Param, module: cst.Module) -> str | None:
    """What the parameter is that no Tensor is; None if it may be one."""
    default, other = evidence.default, evidence.other
    if default == NONE and evidence.uses and not evidence.always_passed:
        return "its default is None, and a call that relies on it fails"
    if default not in (None, NONE, TENSOR):
        assert default is not None
        return f"its default is {_article(default)}"
    if other is not None:
        return f"a call passes {_article(other)}"
    return None if evidence.excluding is None else _misused(evidence, evidence.excluding, module)


def _misused(evidence: Evidence, use: Use, module: cst.Module) -> str | None:
    code = _code(use.code, module)
    if not use.takes_tensors:
        return f"`{code}` takes no Tensor there"
    if TENSOR in evidence.given:
        return None
    return f"`{code}` asks for {_article(use.accepted[0])}, and a call that passes one fails"


def _article(kind: Type) -> str:
    name = {"List": "list", "Dict": "dict", "Tuple": "tuple"}.get(kind.name, kind.name)
    if kind == NONE:
        return "None"
    if kind == UNKNOWN:
        return "a value that is no Tensor"
    if kind.name == "Optional":
        return f"{_article(kind.args[0])} or None"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _code(node: cst.CSTNode, module: cst.Module, limit: int = 50) -> str:
    text = " ".join(module.code_for_node(node).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _annotated(
    seen: CompiledFunction,
    parameter: cst.Param,
    evidence: Evidence,
    inferred: Inferred,
    message: str,
) -> Problem:
    assert inferred.kind is not None
    writer = Writer(seen.module)
    default, reason = _immutable(parameter.default)
    if reason is not None:
        return Problem(parameter, message, None, reason)
    spaced = cst.AssignEqual() if default is not None else parameter.equal
    new = parameter.with_changes(
        annotation=writer.annotation(inferred.kind), default=default, equal=spaced
    )
    sure = inferred.sure and default is parameter.default
    title = f"Annotate `{parameter.name.value}: {writer.text(inferred.kind)}`"
    if inferred.condition:
        title = f"{title}, right if {inferred.condition}"
    safety = Safety.SAFE if sure else Safety.UNSAFE
    return Problem(parameter, message, Fix(safety, title, {parameter: new}, tuple(writer.imports)))


def _immutable(
    default: cst.BaseExpression | None,
) -> tuple[cst.BaseExpression | None, str | None]:
    """A list of constants as default becomes a tuple, which Python does not share."""
    if isinstance(default, cst.Dict) or (isinstance(default, cst.List) and not default.elements):
        return None, MUTABLE
    if not isinstance(default, cst.List):
        return default, None
    elements = list(default.elements)
    if len(elements) == 1:
        elements = [elements[0].with_changes(comma=cst.Comma())]
    return cst.Tuple(elements), None


# -- parameters with one ---------------------------------------------------------------------


def _typed(seen: CompiledFunction, parameter: cst.Param, uses: list[Use]) -> Iterator[Problem]:
    assert parameter.annotation is not None
    named = list(_constructor(seen, parameter.annotation, f"`{parameter.name.value}`", parameter))
    yield from named
    if named or not uses or not _is_none(parameter.default):
        return
    written = parameter.annotation.annotation
    kind = read_annotation(written)
    if kind is None or kind.name == "Optional":
        return
    writer = Writer(seen.module)
    new = parameter.annotation.with_changes(annotation=writer.optional_of(written))
    tested = any(use.is_none_test for use in uses)
    name = parameter.name.value
    yield Problem(
        parameter,
        f"`{name}` is None by default, but its annotation does not say so; "
        "torch.jit.script drops tests for None, and a call that relies on the default fails",
        Fix(
            Safety.SAFE if tested else Safety.UNSAFE,
            f"Annotate `{name}` as Optional",
            {parameter.annotation: new},
            tuple(writer.imports),
        ),
    )


def _is_none(node: cst.BaseExpression | None) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _constructor(
    seen: CompiledFunction, annotation: cst.Annotation, what: str, at: cst.CSTNode | None = None
) -> Iterator[Problem]:
    """`torch.tensor`, which makes tensors, where the type `torch.Tensor` is meant."""
    found = [
        node
        for node in _names(annotation.annotation)
        if seen.moments[0].evaluate(node) == CONSTRUCTOR
    ]
    if not found:
        return
    writer = Writer(seen.module)
    replacements: Mapping[cst.CSTNode, cst.CSTNode] = {
        node: writer.of_torch("Tensor") for node in found
    }
    yield Problem(
        at or annotation.annotation,
        f"the annotation of {what} is the function torch.tensor; torch.jit.script refuses it, "
        "the type is torch.Tensor",
        Fix(Safety.SAFE, "Annotate with the type", replacements, tuple(writer.imports)),
    )


def _names(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    if isinstance(node, cst.Name | cst.Attribute):
        yield node
        return
    for child in node.children:
        yield from _names(child)
