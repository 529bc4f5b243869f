"""The code of an operator that has an effect."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.helpers import parse_template_module

from jitlint.analysis.observations import Observation
from jitlint.analysis.scope import Spelling, names_read
from jitlint.analysis.values import External, Value
from jitlint.project.index import BindingKind, Branch
from jitlint.project.modules import Module

from ..branch_fixes.emit import TIGHT

SCALARS = frozenset({"builtins.int", "builtins.float", "builtins.bool", "builtins.str"})
PLAIN = SCALARS | {"torch.Tensor", "torch.dtype", "torch.device", "torch.types.Number"}
LISTS = frozenset(
    {
        *("builtins.list", "typing.List", "typing.Sequence", "collections.abc.Sequence"),
    }
)
LITERALS = frozenset({"typing.Literal", "typing_extensions.Literal"})
NO_SPACE = cst.SimpleWhitespace("")
NONE = cst.Name("None")
BLANK = (cst.EmptyLine(indent=False),) * 2
NOT_TAKEN = "no caller maps over it (torch.vmap) or scripts it (torch.jit.script)"
"""What an operator of Python's does not take part in."""


@dataclass(frozen=True, slots=True)
class Operator:
    """`name` is the function's; `parameters` have annotations that a schema can be read of.

    `fake` says what the result is without computing it; as a rule there is none.
    """

    module: Module
    name: str
    parameters: cst.Parameters
    body: cst.BaseSuite
    returns: cst.BaseExpression = NONE
    fake: Sequence[cst.BaseStatement] = (cst.SimpleStatementLine([cst.Return(NONE)]),)
    before_parameters: cst.BaseParenthesizableWhitespace = NO_SPACE

    @property
    def qualified(self) -> str:
        """`package::module_function`, which no other function of the package has."""
        space, *path = self.module.name.split(".")
        plain = self.name.strip("_")
        own = self.name if not plain or plain in self._taken else plain
        return f"{_identifier(space)}::{_identifier('_'.join([*path, own]))}"

    @property
    def _taken(self) -> set[str]:
        return set(self.module.facts.bindings) - {self.name}

    @property
    def _fake(self) -> str:
        """`_`, as torch's own documents have it, if that is nothing else here."""
        binding = self.module.facts.bindings.get("_")
        is_free = binding is None or binding.kind is BindingKind.FUNCTION
        return "_" if is_free else f"_fake_{self.name.strip('_')}"

    @property
    def decorator(self) -> cst.Decorator:
        library = Spelling(self.module).of("library")
        arguments = [
            cst.Arg(cst.SimpleString(f'"{self.qualified}"')),
            cst.Arg(
                cst.Tuple([]),
                keyword=cst.Name("mutates_args"),
                equal=TIGHT,
            ),
        ]
        return cst.Decorator(cst.Call(cst.Attribute(library, cst.Name("custom_op")), arguments))

    def registrations(self) -> list[cst.BaseStatement]:
        """What is registered for the operator: what it gives, and that it has an effect."""
        code = parse_template_module(
            "@{name}.register_fake\n"
            "def {fake}({parameters}) -> {returns}:\n"
            "    pass\n\n\n"
            "{name}.register_effect({library}.EffectType.ORDERED)\n",
            name=cst.Name(self.name),
            fake=cst.Name(self._fake),
            returns=self.returns,
            parameters=_without_annotations(self.parameters),
            library=Spelling(self.module).of("library"),
        )
        fake, effect = code.body
        fake = fake.with_changes(body=cst.IndentedBlock(self.fake))
        return [each.with_changes(leading_lines=BLANK) for each in (fake, effect)]

    def definition(self) -> cst.FunctionDef:
        return cst.FunctionDef(
            cst.Name(self.name),
            self.parameters,
            self.body,
            [self.decorator],
            cst.Annotation(self.returns),
            whitespace_before_params=self.before_parameters,
            leading_lines=BLANK,
        )


def _identifier(text: str) -> str:
    return re.sub(r"\W", "_", text) or "operators"


def _without_annotations(parameters: cst.Parameters) -> cst.Parameters:
    def bare(group: Sequence[cst.Param]) -> list[cst.Param]:
        return [
            cst.Param(each.name, default=each.default, equal=_equal(each.default)) for each in group
        ]

    return cst.Parameters(
        params=bare(parameters.params),
        kwonly_params=bare(parameters.kwonly_params),
        star_arg=parameters.star_arg if parameters.kwonly_params else cst.MaybeSentinel.DEFAULT,
    )


def _equal(default: cst.BaseExpression | None) -> cst.AssignEqual | cst.MaybeSentinel:
    if default is None:
        return cst.MaybeSentinel.DEFAULT
    return TIGHT


def is_schema_type(annotation: cst.BaseExpression, seen: Observation) -> bool:
    """Whether torch 2.13 reads a schema of this annotation (`torch.library.infer_schema`),
    which it does when the file is loaded."""
    bindings = (seen.module.facts.bindings.get(each) for each in names_read(annotation))
    if any(each is not None and each.branch >= Branch.TYPING for each in bindings):
        return False
    match annotation:
        case cst.SimpleString():
            parsed = cst.parse_expression(str(annotation.evaluated_value))
            return is_schema_type(parsed, seen)
        case cst.BinaryOperation(operator=cst.BitOr(), left=left, right=right):
            return _is_one_or_none([left, right], seen)
        case cst.Subscript(value=generic, slice=slices):
            inner = [e.slice.value for e in slices if isinstance(e.slice, cst.Index)]
            name = _name(seen.value_of(generic))
            if name == "typing.Optional":
                return all(is_schema_type(each, seen) for each in inner)
            if name == "typing.Union":
                return _is_one_or_none(inner, seen)
            return name in LISTS and all(_name(seen.value_of(each)) in PLAIN for each in inner)
    return _name(seen.value_of(annotation)) in PLAIN


class _InSchema(cst.CSTTransformer):
    def __init__(self, seen: Observation) -> None:
        super().__init__()
        self._seen = seen

    def leave_Subscript(
        self, original_node: cst.Subscript, updated_node: cst.Subscript
    ) -> cst.BaseExpression:
        choices = [e.slice.value for e in original_node.slice if isinstance(e.slice, cst.Index)]
        is_literal = _name(self._seen.value_of(original_node.value)) in LITERALS
        if is_literal and all(isinstance(each, cst.SimpleString) for each in choices):
            return cst.Name("str")
        return updated_node

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        if _name(self._seen.value_of(original_node)) != "builtins.float":
            return updated_node
        return cst.Attribute(Spelling(self._seen.module).of("types"), cst.Name("Number"))


def in_schema(annotation: cst.BaseExpression, seen: Observation) -> cst.BaseExpression:
    """The annotation of the operator's parameter, which has to keep what a message tells.

    `str` for `Literal["mean", "sum"]`, of which no schema can tell more, and
    `torch.types.Number` for `float`, which would make 2.0 of the 2 that is passed (measured).
    """
    if isinstance(annotation, cst.SimpleString):
        annotation = cst.parse_expression(str(annotation.evaluated_value))
    new = annotation.visit(_InSchema(seen))
    assert isinstance(new, cst.BaseExpression)
    return new


def _is_one_or_none(nodes: Sequence[cst.BaseExpression], seen: Observation) -> bool:
    others = [e for e in nodes if not (isinstance(e, cst.Name) and e.value == "None")]
    return len(others) == 1 and len(nodes) == 2 and is_schema_type(others[0], seen)


def _name(value: Value) -> str:
    return value.name if isinstance(value, External) else ""
