"""Annotations: reading them as types, and writing them in the style of the file."""

import re
from dataclasses import dataclass, field

import libcst as cst

from jitlint.analysis.scope import imported_as
from jitlint.project.modules import Module

from ._types import Type, optional

_GENERIC = {"list": "List", "dict": "Dict", "tuple": "Tuple"}
_KNOWN = {
    **{name: Type(name) for name in ("int", "float", "bool", "str", "complex", "Tensor")},
    "dtype": Type("torch.dtype"),
    "device": Type("torch.device"),
}
_BUILTIN_GENERIC = re.compile(rb"(:|->|\[|,)\s*(list|dict|tuple)\[")
_UNION = re.compile(rb"\|\s*None|None\s*\|")


def read_annotation(node: cst.BaseExpression) -> Type | None:
    """The type that an annotation names; None where TorchScript's types have no such."""
    match node:
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            return _KNOWN.get(name)
        case cst.BinaryOperation(operator=cst.BitOr(), left=left, right=right):
            sides = [side for side in (left, right) if not _is_none(side)]
            inner = read_annotation(sides[0]) if len(sides) == 1 else None
            return None if inner is None else optional(inner)
        case cst.Subscript(value=cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name))):
            return _generic(_GENERIC.get(name, name), node)
    return None


def _generic(name: str, node: cst.Subscript) -> Type | None:
    args = [
        read_annotation(element.slice.value)
        for element in node.slice
        if isinstance(element.slice, cst.Index)
    ]
    known = tuple(each for each in args if each is not None)
    if name not in ("List", "Dict", "Tuple", "Optional") or len(known) < len(args):
        return None
    return Type(name, known)


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


@dataclass(slots=True)
class Writer:
    """Spells types for one module; `imports` are what the spellings need beside it."""

    module: Module
    imports: dict[str, None] = field(default_factory=dict)

    def text(self, kind: Type) -> str:
        match kind:
            case Type("Tensor"):
                return self._of_torch("Tensor")
            case Type("Optional", (inner,)):
                return self._optional(inner)
            case Type(name, args) if args:
                return f"{self._container(name)}[{', '.join(map(self.text, args))}]"
            case Type(name) if name.startswith("torch."):
                return self._of_torch(name.removeprefix("torch."))
        return kind.name

    def annotation(self, kind: Type) -> cst.Annotation:
        return cst.Annotation(cst.parse_expression(self.text(kind)))

    def optional_of(self, written: cst.BaseExpression) -> cst.BaseExpression:
        """`Optional[…]` around an annotation that the file has."""
        code = self.module.tree.code_for_node(written)
        return cst.parse_expression(self._optional_text(code))

    def of_torch(self, name: str) -> cst.BaseExpression:
        return cst.parse_expression(self._of_torch(name))

    def _bound_to(self, dotted: str) -> str | None:
        return next(imported_as(dotted, self.module), None)

    def _of_torch(self, name: str) -> str:
        known = self._bound_to(f"torch.{name}")
        if known is not None:
            return known
        root = self._bound_to("torch")
        if root is None:
            self.imports["torch"] = None
        return f"{root or 'torch'}.{name}"

    def _optional(self, inner: Type) -> str:
        return self._optional_text(self.text(inner))

    def _optional_text(self, inner: str) -> str:
        if not self._has_typing("Optional") and _UNION.search(self.module.source):
            return f"{inner} | None"
        return f"{self.typing('Optional')}[{inner}]"

    def _container(self, name: str) -> str:
        if not self._has_typing(name) and _BUILTIN_GENERIC.search(self.module.source):
            return name.lower()
        return self.typing(name)

    def _has_typing(self, name: str) -> bool:
        return any(self._bound_to(each) for each in (f"typing.{name}", "typing"))

    def typing(self, name: str) -> str:
        """A name of `typing`, such as `Optional`."""
        known = self._bound_to(f"typing.{name}")
        root = self._bound_to("typing")
        if known is not None or "typing" in self.module.facts.stars:
            return known or name
        if root is not None:
            return f"{root}.{name}"
        self.imports[f"typing:{name}"] = None
        return name
