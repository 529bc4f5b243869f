"""Parameters without a type, which `torch.jit.script` takes for Tensors."""

import re
from collections.abc import Iterator

from jitlint.analysis.machine import COMPILED_FUNCTION
from jitlint.analysis.observations import CompiledFunction
from jitlint.finding import Finding, Severity
from jitlint.region import Region, RegionKind
from jitlint.rule import Context, Rule

from ._problem import Problem
from ._problems import problems

_TYPE_COMMENT = re.compile(r"#\s*type:\s*\(")


class ScriptSignature(Rule):
    """Parameters that TorchScript takes for Tensors although they are not.

    ## Why it matters
    `torch.jit.script` reads types from annotations only, and a parameter without one is a
    Tensor. A default that is no tensor is refused ("Expected a default value of type
    Tensor (inferred) on parameter"), and so is a use that no tensor has ("all inputs of
    range must be ints, found Tensor (inferred)"). Worse, where the use could be a tensor's
    as well, compiling succeeds, and the first call with a number, a string or a list fails:
    "Expected a value of type 'Tensor (inferred)' for argument 'n' but instead found type
    'int'". A place that asks for an int, a float or a dtype is such a use, as a tensor of one
    element is converted there; where a call in the project passes a tensor, that is silent
    here. A default of None compiles too, and the call that relies on it fails.

    ## Example
        @torch.jit.script
        def scaled_gelu(x, scale=1.702):
            return x * torch.sigmoid(scale * x)

    ## Use instead
        @torch.jit.script
        def scaled_gelu(x, scale: float = 1.702):
            return x * torch.sigmoid(scale * x)

    A parameter that is a Tensor needs no annotation. `torch.tensor` is a function: the
    type is `torch.Tensor`. What may be None is `Optional[...]`.

    ## Fix safety
    An annotation changes nothing in Python. Safe where the default alone says the type, or
    where everything agrees that is known: the default, the operators and helpers that the
    parameter is passed to, and the arguments of the calls in the project. Unsafe where a
    likely type was chosen among several (`dim` may be an int or a list), where an int
    default becomes a float, or where a list as default becomes a tuple: the verification
    then compiles and calls both versions. Unsafe, too, where only uses say the type that a
    tensor has as well: it is right if no caller passes one, as a tensor that requires a
    gradient, or a fraction for an int, is refused before and cut after. Withheld where a call
    passes a tensor, and where the evidence is contradictory or says too little; a default of
    None says nothing of the type.

    ## Measured
    torch 2.13.0: a parameter of each type in the fixtures is refused without its
    annotation, at compile time or at the call, and agrees with eager with it. PEP 604 and
    585 annotations, postponed ones, type comments, NamedTuples and keyword-only parameters
    without a default are accepted, and silent here. Tensors are converted
    to int, float, complex and dtype, and not to bool, str or a list. The argument types of
    operators are those of `torch._C._jit_get_all_schemas()`.

    ## References
    - https://docs.pytorch.org/docs/stable/jit_language_reference.html#default-types
    - https://docs.pytorch.org/docs/stable/jit_language_reference.html#supported-type
    """

    name = "script-signature"
    severity = Severity.ERROR
    fixable = True
    regions = frozenset({RegionKind.SCRIPT})
    watches = frozenset({COMPILED_FUNCTION})

    def visit_CompiledFunction(self, seen: CompiledFunction, ctx: Context) -> Iterator[Finding]:
        region = seen.regions.get(RegionKind.SCRIPT)
        if region is None or _has_type_comment(seen, ctx):
            return
        for problem in problems(seen, ctx.module):
            yield _finding(problem, region, ctx)


def _finding(problem: Problem, region: Region, ctx: Context) -> Finding:
    return ctx.finding(
        problem.node,
        problem.message,
        region=region,
        fix=problem.fix,
        no_fix_reason=problem.no_fix_reason,
    )


def _has_type_comment(seen: CompiledFunction, ctx: Context) -> bool:
    return _TYPE_COMMENT.search(ctx.module.code_for_node(seen.node)) is not None
