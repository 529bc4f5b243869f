"""Rewrites for the graphs of TensorFlow: operators instead of Python and NumPy.

In a graph the old code raises, so that there is nothing to lose there; where Python runs it,
a tensor comes out instead of a number. None of them is safe.
"""

import libcst as cst

from jitlint.analysis.observations import Construct, Frozen, TruthTest
from jitlint.analysis.values import External, is_tensor
from jitlint.finding import Fix, Safety
from jitlint.region import RegionKind
from jitlint.rule import Context

Result = tuple[Fix | None, str | None]

READ = (
    "compute it with operators of TensorFlow, or in `tf.numpy_function`, which has no gradient "
    "and no static shape"
)
EXTREMES = {"builtins.max": "maximum", "builtins.min": "minimum"}
REDUCTIONS = {"builtins.any": "reduce_any", "builtins.all": "reduce_all"}


def fix_of_read(frozen: Frozen) -> Result:
    """`np.mean(x)` → `tf.experimental.numpy.mean(x)`, where that gives the same."""
    root, call = frozen.module.local_name("tensorflow"), frozen.node
    package, _, name = frozen.name.rpartition(".")
    table = frozen.moments[0].frame.machine.table_of("tensorflow.numpy")
    if root is None or package != "numpy" or not isinstance(call, cst.Call):
        return None, READ
    if not table.lists("numpy_twins", name):
        return None, READ
    function = cst.parse_expression(f"{root}.experimental.numpy.{name}")
    twin = call.with_changes(func=function)
    constant = cst.Call(cst.parse_expression(f"{root}.stop_gradient"), [cst.Arg(twin)])
    title = f"Use TensorFlow's `{name}` (a tensor; as with NumPy no gradient goes through it)"
    return Fix(Safety.UNSAFE, title, {call: constant}), None


def fix_of_test(test: TruthTest, kind: RegionKind, ctx: Context, reason: str) -> Result:
    """A builtin, a check or a conditional expression as an operator."""
    root = test.module.local_name("tensorflow")
    if root is None:
        return None, reason
    match test.owner:
        case cst.Assert() as check if check.test is test.node and kind is not RegionKind.XLA:
            return _as_operator_check(test, check, root), None
        case cst.IfExp() as choice if choice.test is test.node:
            values = [test.value_of(each) for each in (choice.body, choice.orelse)]
            if all(map(is_tensor, values)):
                arguments = [choice.test, choice.body, choice.orelse]
                title = "Select by `tf.where` (which computes both, and broadcasts)"
                return _replaced(test, choice, root, "where", arguments, title), None
        case cst.Call() as call if test.construct is Construct.BUILTIN:
            return _builtin(test, call, root, reason)
    return None, reason


def _builtin(test: TruthTest, call: cst.Call, root: str, reason: str) -> Result:
    function = test.value_of(call.func)
    name = function.name if isinstance(function, External) else ""
    plain = all(arg.keyword is None and not arg.star for arg in call.args)
    arguments = [arg.value for arg in call.args]
    if plain and len(arguments) == 2 and name in EXTREMES:
        title = f"Use `tf.{EXTREMES[name]}` (NaN and the gradient of equal values may differ)"
        return _replaced(test, call, root, EXTREMES[name], arguments, title), None
    is_tensor_alone = len(arguments) == 1 and is_tensor(test.value_of(arguments[0]))
    if plain and is_tensor_alone and name in REDUCTIONS:
        title = f"Use `tf.{REDUCTIONS[name]}`"
        return _replaced(test, call, root, REDUCTIONS[name], arguments, title), None
    return None, reason


def _as_operator_check(test: TruthTest, check: cst.Assert, root: str) -> Fix:
    """`assert t, "text"` → `tf.debugging.Assert(t, ["text"])`."""
    shown = check.msg if isinstance(check.msg, cst.SimpleString) else check.test
    call = cst.Call(
        cst.parse_expression(f"{root}.debugging.Assert"),
        [cst.Arg(check.test), cst.Arg(cst.List([cst.Element(shown)]))],
    )
    title = "Check by an operator (which raises InvalidArgumentError)"
    return Fix(Safety.UNSAFE, title, {check: cst.Expr(call)})


def _replaced(
    test: TruthTest,
    node: cst.BaseExpression,
    root: str,
    name: str,
    arguments: "list[cst.BaseExpression]",
    title: str,
) -> Fix:
    plain = [each.with_changes(lpar=(), rpar=()) for each in arguments]
    function = cst.Attribute(cst.Name(root), cst.Name(name))
    return Fix(Safety.UNSAFE, title, {node: cst.Call(function, [cst.Arg(e) for e in plain])})
