"""What TorchScript compiles to the same meaning, as far as it is measured; no more."""

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst
from libcst.helpers import get_full_name_for_node

from jitlint.analysis.observations import TruthTest
from jitlint.analysis.tables import Returns
from jitlint.analysis.values import (
    External,
    ExternalInstance,
    ExternalMethod,
    Instance,
    Source,
    Static,
    Tensor,
)

from .flow import code_of
from .withheld import Withheld

BUILTINS = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "range"})
CONSTANTS = frozenset({"True", "False", "None"})
METADATA = frozenset({"shape", "dtype", "device", "ndim", "T", "is_cuda", "requires_grad"})
NUMPY_KEYWORDS = frozenset({"axis", "keepdims"})
"""Arguments that the Python functions of torch take, and the operators do not."""
ANSWERS = ("equal", "allclose", "is_nonzero")
"""Operators that give a bool in Python and in TorchScript."""

STATEMENTS = (
    *(cst.SimpleStatementLine, cst.SimpleStatementSuite, cst.IndentedBlock),
    *(cst.If, cst.Else, cst.While, cst.For),
    *(
        cst.Assign,
        cst.AssignTarget,
        cst.AnnAssign,
        cst.Annotation,
        cst.AugAssign,
        cst.Expr,
    ),
    *(cst.Return, cst.Pass, cst.Break, cst.Continue),
)
EXPRESSIONS = (
    *(cst.Name, cst.Attribute, cst.Integer, cst.Float, cst.SimpleString),
    *(cst.BinaryOperation, cst.UnaryOperation, cst.BooleanOperation),
    *(cst.Comparison, cst.ComparisonTarget, cst.IfExp, cst.Call, cst.Arg),
    *(cst.Subscript, cst.SubscriptElement, cst.Index, cst.Slice),
    *(cst.Tuple, cst.List, cst.Element),
)


@dataclass(frozen=True, slots=True)
class Judge:
    """Looks at code of one function. `names` are those that it has as local variables, and
    `paths` those that it will be given as arguments."""

    test: TruthTest
    names: frozenset[str]
    paths: frozenset[str] = frozenset()

    def check(self, nodes: Iterable[cst.CSTNode]) -> None:
        """Raises Withheld at the first thing that is not known to script alike."""
        for node in nodes:
            self._check(node)

    def _check(self, node: cst.CSTNode) -> None:
        self._check_kind(node)
        match node:
            case cst.Attribute() if path_of(node) in self.paths:
                return None
            case cst.Attribute():
                self._attribute(node)
                return self._check(node.value)
            case cst.Call():
                self._call(node)
                if isinstance(node.func, cst.Attribute) and not self._is_library(node.func):
                    self._check(node.func.value)
                return self.check(node.args)
            case cst.Arg():
                return self._check(node.value)
            case cst.Name():
                return self._name(node)
            case cst.AnnAssign():
                return self.check([node.target, *([] if node.value is None else [node.value])])
        return self.check(each for each in node.children if _matters(each))

    def _check_kind(self, node: cst.CSTNode) -> None:
        if not isinstance(node, STATEMENTS + EXPRESSIONS):
            raise Withheld(f"TorchScript is not known to take `{code_of(node)}` alike")
        match node:
            case cst.Comparison() if len(node.comparisons) > 1:
                raise Withheld(f"`{code_of(node)}` compares in a chain: write two comparisons")
            case cst.Comparison() if self._asks_identity(node):
                raise Withheld(f"TorchScript is not known to take `{code_of(node)}` alike")
            case cst.For() | cst.While() if node.orelse is not None:
                raise Withheld("TorchScript knows no `else` of a loop")
            case cst.Return(value=None):
                raise Withheld("TorchScript needs a value behind every `return`")
            case cst.BinaryOperation(operator=cst.Power()) if not self._has_tensor(node):
                raise Withheld(f"`{code_of(node)}` of integers is a float in TorchScript")
            case cst.Assign() if not _assigns_names(node):
                raise Withheld(f"`{code_of(node)}` writes into an object")
            case cst.AugAssign() if not isinstance(node.target, cst.Name):
                raise Withheld(f"`{code_of(node)}` writes into an object")

    def _asks_identity(self, node: cst.Comparison) -> bool:
        """`is` and `in`, but for `in` a tensor."""
        target = node.comparisons[0]
        if isinstance(target.operator, cst.In | cst.NotIn):
            return not isinstance(self.test.value_of(target.comparator), Tensor)
        return isinstance(target.operator, cst.Is | cst.IsNot)

    def _has_tensor(self, node: cst.BinaryOperation) -> bool:
        return any(isinstance(self.test.value_of(e), Tensor) for e in (node.left, node.right))

    def _name(self, node: cst.Name) -> None:
        if node.value in self.names or node.value in CONSTANTS:
            return
        if not isinstance(self.test.value_of(node), External):
            raise Withheld(
                f"`{node.value}` is not a local variable, and TorchScript cannot see it: pass it "
                "as an argument"
            )

    def _attribute(self, node: cst.Attribute) -> None:
        if self._is_library(node) or node.attr.value in METADATA:
            return
        raise Withheld(f"TorchScript cannot see `{code_of(node)}`: pass it as an argument")

    def _is_library(self, node: cst.BaseExpression) -> bool:
        value = self.test.value_of(node)
        return isinstance(value, External) and value.name.startswith("torch")

    def _call(self, node: cst.Call) -> None:
        if isinstance(node.func, cst.Name) and node.func.value in BUILTINS:
            return
        for argument in node.args:
            if argument.star or (argument.keyword and argument.keyword.value in NUMPY_KEYWORDS):
                raise Withheld(f"TorchScript does not take `{code_of(argument)}` in a call")
        table = self.test.moments[0].frame.machine.torch
        operator = None
        match self.test.value_of(node.func):
            case External(name):
                operator = table.function(name)
            case ExternalMethod(Tensor(), name):
                operator = table.method(name)
            case ExternalInstance() | Instance():
                raise Withheld(
                    f"`{code_of(node.func)}` is a layer, which a function cannot hold: move the "
                    "branch into a module of its own and script that"
                )
        if operator is None:
            raise Withheld(f"`{code_of(node.func)}` is not known to be an operator of TorchScript")
        is_typed_alike = operator.returns in (
            Returns.TENSOR,
            Returns.TENSORS,
            Returns.SIZE,
        )
        if not is_typed_alike and not operator.name.endswith(ANSWERS):
            raise Withheld(f"`{code_of(node)}` is typed otherwise in TorchScript")


def _matters(node: cst.CSTNode) -> bool:
    """Neither whitespace nor punctuation."""
    return isinstance(
        node,
        cst.BaseExpression
        | cst.BaseStatement
        | cst.BaseSmallStatement
        | cst.BaseSuite
        | cst.BaseElement
        | cst.BaseSlice
        | cst.AssignTarget
        | cst.ComparisonTarget
        | cst.SubscriptElement
        | cst.Else,
    )


def _assigns_names(node: cst.Assign) -> bool:
    if len(node.targets) != 1:
        return False
    target = node.targets[0].target
    if isinstance(target, cst.Tuple):
        return all(isinstance(each.value, cst.Name) for each in target.elements)
    return isinstance(target, cst.Name)


def path_of(node: cst.BaseExpression) -> str:
    """`self.scale` as text; empty for anything but names and their attributes."""
    return get_full_name_for_node(node) or "" if isinstance(node, cst.Name | cst.Attribute) else ""


def annotation_of(node: cst.BaseExpression, test: TruthTest) -> str | None:
    """The type that a parameter needs for this value; None for tensors, which need none.

    Raises Withheld where the type is not known.
    """
    match test.value_of(node):
        case Tensor(maybe=False):
            return None
        case Static(source=Source.PYTHON, const=bool() | int() | float() as const):
            return type(const).__name__
    raise Withheld(f"the type of `{code_of(node)}` is not known, which TorchScript has to know")
