"""Why a number that was read must stay a number: what Python does with it."""

import libcst as cst

SIZE = (
    "the number is a size, a bound or an index in Python: `capture_scalar_outputs`, which "
    "`fullgraph=True` turns on, makes a symbol of it"
)
RETURNED = "the number is returned: return the tensor if the callers take one"
COLLECTED = (
    "the number is kept in a list, tuple or dict: keep the tensor, and read it behind the "
    "compiled code"
)
SHOWN = "the number is made text: hand the tensor out, and format it behind the compiled code"
DECIDES = (
    "Python decides by the number: compare the tensor itself, and choose with `torch.where` or "
    "`torch.cond`"
)
STORED = "the number is stored, and whoever reads it may need a number: store the tensor"
DISCARDED = "the number is not used: remove the statement"
PASSED = "`{code}` is given the number, and may need one"
ACCUMULATED = "the number is added to a Python number: start from a tensor"
OTHER = "`{code}` is not known to do the same with a tensor"

REASONS: dict[type[cst.CSTNode], str] = {
    **dict.fromkeys((cst.Return, cst.Yield, cst.Lambda), RETURNED),
    **dict.fromkeys(
        (cst.Element, cst.DictElement, cst.StarredElement, cst.ListComp, cst.DictComp), COLLECTED
    ),
    **dict.fromkeys((cst.FormattedStringExpression,), SHOWN),
    **dict.fromkeys(
        (
            *(cst.If, cst.While, cst.IfExp, cst.Assert, cst.BooleanOperation),
            *(cst.Comparison, cst.ComparisonTarget),
        ),
        DECIDES,
    ),
    **dict.fromkeys((cst.Index, cst.Slice), SIZE),
    **dict.fromkeys((cst.AugAssign,), ACCUMULATED),
    **dict.fromkeys((cst.AssignTarget, cst.Assign, cst.AnnAssign), STORED),
    **dict.fromkeys((cst.Expr,), DISCARDED),
    cst.UnaryOperation: DECIDES,
}
"""By the node in which the number stands."""


def reason(parent: cst.CSTNode, module: cst.Module) -> str:
    template = REASONS.get(type(parent), OTHER)
    return template.format(code=" ".join(module.code_for_node(parent).split()))
