"""What a function does to tensors in place."""

from functools import lru_cache

import libcst as cst
from libcst.helpers import get_full_name_for_node

RESHAPING = frozenset(
    {
        "as_strided_", "detach_", "rename_", "requires_grad_", "resize_", "resize_as_", "set_",
        "squeeze_", "swapaxes_", "swapdims_", "t_", "transpose_", "unsqueeze_",
    }
)  # fmt: skip
"""Methods that change shape, strides or the place in the graph of gradients."""
RESHAPING_ATTRIBUTES = frozenset({"data", "requires_grad", "grad_fn"})


@lru_cache(maxsize=64)
def reshaping_in(node: cst.CSTNode) -> cst.CSTNode | None:
    """The first call or assignment that changes more of a tensor than its values."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))) if name in RESHAPING:
            return node
        case cst.AssignTarget(target=cst.Attribute(attr=cst.Name(value=name))):
            if name in RESHAPING_ATTRIBUTES:
                return node.target
    return next((found for child in node.children if (found := reshaping_in(child))), None)


@lru_cache(maxsize=64)
def writes_in_place(node: cst.CSTNode) -> bool:
    """Whether anything changes the values of a tensor, so that it may come to need gradients."""
    match node:
        case cst.AugAssign() | cst.AssignTarget(target=cst.Subscript()):
            return True
        case cst.Arg(keyword=cst.Name(value="out")):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))):
            if name.endswith("_") and not name.endswith("__"):
                return True
    return any(map(writes_in_place, node.children))


@lru_cache(maxsize=64)
def attributes_written(node: cst.CSTNode) -> frozenset[str]:
    """The attributes that get other objects, as they are written: `self.state`."""
    found = frozenset[str]().union(*map(attributes_written, node.children))
    if isinstance(node, cst.AssignTarget | cst.AnnAssign):
        target = node.target
        parts = target.elements if isinstance(target, cst.Tuple) else ()
        nodes = [target, *(each.value for each in parts)]
        names = (get_full_name_for_node(e) for e in nodes if isinstance(e, cst.Attribute))
        found |= {name for name in names if name}
    return found
