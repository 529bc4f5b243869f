"""Several small edits in one place, made from the inside out."""

from collections.abc import Callable, Iterator

import libcst as cst

from jitlint.analysis.tree import ancestors_of

Edit = Callable[[cst.BaseExpression], cst.BaseExpression]
"""The new expression for one whose parts are rewritten already."""


class Edits:
    """Expressions that become others; one may stand inside another."""

    def __init__(self, module: cst.Module) -> None:
        self._module = module
        self._edits: dict[cst.CSTNode, Edit] = {}

    def __contains__(self, node: cst.CSTNode) -> bool:
        return node in self._edits

    def add(self, node: cst.BaseExpression, edit: Edit) -> None:
        self._edits[node] = edit

    def wrap(self, node: cst.BaseExpression, edit: Edit) -> None:
        """Another edit of the result of the first one."""
        first = self._edits.get(node)
        self._edits[node] = edit if first is None else lambda new: edit(first(new))

    def replacements(self) -> dict[cst.CSTNode, cst.CSTNode]:
        """The outermost expressions and what stands there instead."""
        return {node: self.rewritten(node) for node in self._outermost()}

    def _outermost(self) -> Iterator[cst.CSTNode]:
        for node in self._edits:
            if not any(each in self._edits for each in ancestors_of(node, self._module)):
                yield node

    def rewritten(self, node: cst.CSTNode) -> cst.CSTNode:
        new = node.visit(_Rewriter(self._edits))
        assert isinstance(new, cst.CSTNode)
        return new


class _Rewriter(cst.CSTTransformer):
    def __init__(self, edits: dict[cst.CSTNode, Edit]) -> None:
        super().__init__()
        self._edits = edits

    def on_leave(  # type: ignore[override]
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode:
        edit = self._edits.get(original_node)
        if edit is None:
            return updated_node
        assert isinstance(updated_node, cst.BaseExpression)
        return edit(updated_node)


def method(
    receiver: cst.BaseExpression, name: str, *arguments: cst.BaseExpression
) -> cst.BaseExpression:
    """`receiver.name(arguments)`"""
    return cst.Call(cst.Attribute(receiver, cst.Name(name)), [cst.Arg(each) for each in arguments])
