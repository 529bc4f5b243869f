"""`print` in a graph of TensorFlow becomes `tf.print`, which prints when the graph runs."""

import libcst as cst

from jitlint.analysis.observations import Frozen
from jitlint.finding import Fix, Safety
from jitlint.region import GRAPHS, RegionKind

from .branch_fixes.emit import TIGHT

Result = tuple[Fix | None, str | None]

EFFECT = (
    "move it behind the call of the traced function, where its results have values, or leave it "
    "if it is meant to show when the function is traced"
)
MUTATION = (
    "return the value and store it in the caller, or keep it in a `tf.Variable`, a buffer, or a "
    "`tf.TensorArray`"
)
NO_PRINT_IN_XLA = "XLA refuses `tf.print` as well: print behind the call"
NOT_PLAIN = "`tf.print` formats tensors by itself: it takes no format specifications"


def fix_of_effect(frozen: Frozen, is_mutation: bool) -> Result:
    if is_mutation:
        return None, MUTATION
    if frozen.name != "builtins.print" or not set(frozen.regions) <= GRAPHS:
        return None, EFFECT
    if RegionKind.XLA in frozen.regions:
        return None, NO_PRINT_IN_XLA
    return _tf_print(frozen)


def _tf_print(frozen: Frozen) -> Result:
    root = frozen.module.local_name("tensorflow")
    call = frozen.node
    if root is None or not isinstance(call, cst.Call):
        return None, EFFECT
    if any(arg.keyword is not None or arg.star for arg in call.args):
        return None, EFFECT
    values = [arg.value for arg in call.args]
    formatted = any(isinstance(value, cst.FormattedString) for value in values)
    if formatted and len(values) > 1:
        return None, NOT_PLAIN
    arguments = [cst.Arg(value) for value in values]
    if formatted:
        parts = _parts(values[0])
        if parts is None:
            return None, NOT_PLAIN
        arguments = [*map(cst.Arg, parts), _no_separator()]
    function = cst.Attribute(cst.Name(root), cst.Name("print"))
    printed = call.with_changes(func=function, args=arguments)
    title = "Print when the graph runs (values instead of symbols, to the standard error)"
    return Fix(Safety.UNSAFE, title, {call: printed}), None


def _no_separator() -> cst.Arg:
    return cst.Arg(cst.SimpleString('""'), keyword=cst.Name("sep"), equal=TIGHT)


def _parts(text: cst.BaseExpression) -> list[cst.BaseExpression] | None:
    """The texts and the values of an f-string; None if a value is formatted in some way."""
    assert isinstance(text, cst.FormattedString)
    quote = text.end
    if text.start.lower() != f"f{quote}" or len(quote) != 1:
        return None
    parts: list[cst.BaseExpression] = []
    for part in text.parts:
        if isinstance(part, cst.FormattedStringText):
            if "{{" in part.value or "}}" in part.value:
                return None
            parts.append(cst.SimpleString(f"{quote}{part.value}{quote}"))
        elif isinstance(part, cst.FormattedStringExpression):
            if part.conversion or part.format_spec or part.equal:
                return None
            parts.append(part.expression)
    return parts
