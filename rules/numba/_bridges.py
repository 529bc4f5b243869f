"""The bridge from a tensor to what Numba takes: it has to fit this very tensor."""

from dataclasses import dataclass

import libcst as cst

from jitlint.analysis.handlers import may_be_caught
from jitlint.analysis.observations import Call
from jitlint.analysis.values import Kernel, Optional, Tensor, Tuple, Value, element_of
from jitlint.finding import Fix, Safety, Withheld
from jitlint.rule import Context

from ._arguments import HALF, Argument, Trouble, trouble
from ._kernels import UFUNCS, body_of, may_write, parameters_of
from ._scopes import gradients_are_off, is_passed_in, tape_records

HIDDEN = "the argument is not written in the call itself"
PASSED_IN = "the kernel is passed in, and other functions may be that take the tensor itself"
MAY_BE_NONE = "the argument may be None, which needs a branch before the call"
NEEDS_GRADIENT = (
    "the tensor requires a gradient, which ends in a kernel: detach it, or call under "
    "torch.no_grad(), if none is needed; else make an operator with a formula of it"
)
CAUGHT = " (if nothing relies on the error that may be caught here now)"
ON_TAPE = "a GradientTape records here, and its gradient would silently end in the kernel"
WRITES = "the kernel may write into the argument, and the write into a copy would be lost"
NO_ARRAY = "NumPy has no array of this dtype"
SPARSE = "a sparse tensor has no array: make it dense first (`.to_dense()`)"
NO_FORM = {
    Trouble.LAYER: "a kernel takes arrays and numbers: pass what it needs of the module",
    Trouble.CONSTANT: "a kernel takes arrays and numbers: pass what it needs of this constant",
}
NO_DICT = "Numba takes no dict of Python: pass its arrays one by one"
MIXED = "the container holds other things besides tensors: convert it where it is built"
SCALARS = "the container's tensors are cast one by one where it is built"
TF_HALF = "TensorFlow's half precision has no type in Numba: cast to tf.float32 first"
HALF_NUMPY = "the array is of half precision: convert it to float32 where it is made"
UNCONVERTIBLE = frozenset({"complex32", "float8_e4m3fn", "float8_e5m2", "quint8", "qint8"})


@dataclass(slots=True)
class Bridges:
    """Rewrites the arguments of one call; raises Withheld where one has no right form."""

    call: Call
    kernel: Kernel
    ctx: Context
    is_safe: bool = True

    def fix(self, refused: list[Argument]) -> Fix:
        if is_passed_in(self.call, self.ctx):
            raise Withheld(PASSED_IN)
        replacements: dict[cst.CSTNode, cst.CSTNode] = {}
        for argument in refused:
            if argument.node is None:
                raise Withheld(HIDDEN)
            node = argument.node.value
            replacements[node] = self.bridged(node, argument.value, argument.parameter)
        # without signatures a ufunc takes tensors as soon as it has a loop for their dtype
        is_caught = may_be_caught(self.call.node, self.call)
        is_safe = self.is_safe and self.kernel.maker not in UFUNCS and not is_caught
        safety = Safety.SAFE if is_safe else Safety.UNSAFE
        shown = ", ".join(f"`{self._code(new)}`" for new in replacements.values())
        return Fix(safety, f"Pass {shown}{CAUGHT if is_caught else ''}", replacements)

    def bridged(self, node: cst.BaseExpression, value: Value, parameter: str) -> cst.BaseExpression:
        if isinstance(value, Optional):
            raise Withheld(MAY_BE_NONE)
        kind = trouble(value)
        if kind is Trouble.SIZE:
            return cst.Call(cst.Name("tuple"), [cst.Arg(node)])
        if kind is Trouble.CONTAINER:
            return self._container(node, value, parameter)
        if kind is None or kind in NO_FORM:
            raise Withheld(NO_FORM.get(kind, MIXED) if kind else MIXED)
        assert isinstance(value, Tensor)
        if kind is Trouble.HALF:
            return self._half(node, parameter)
        if kind is Trouble.TENSORFLOW:
            return self._tensorflow(node, value, parameter)
        return self._torch(node, value, parameter)

    def _torch(self, node: cst.BaseExpression, tensor: Tensor, parameter: str) -> cst.Call:
        is_off = gradients_are_off(self.call, self.ctx)
        if tensor.grad is True and not is_off:
            raise Withheld(NEEDS_GRADIENT)
        if tensor.dtype in UNCONVERTIBLE:
            raise Withheld(NO_ARRAY)
        if tensor.sparse:
            raise Withheld(SPARSE)
        if tensor.rank == 0 and not self._is_indexed(parameter):
            # unlike `.numpy()`, `.item()` does not raise where a gradient is lost
            self.is_safe = self.is_safe and (is_off or tensor.grad is False)
            return method(node, "item")
        writes = may_write(self.kernel, parameter)
        steps = ["float"] if tensor.dtype in HALF else []
        if tensor.device != "cpu" and not (writes and tensor.device is None):
            steps.append("cpu")
        if writes and (tensor.device == "cuda" or tensor.dtype in HALF):
            raise Withheld(WRITES)
        return method(node, *steps, "numpy")

    def _is_indexed(self, parameter: str) -> bool:
        """Whether the kernel wants an array; in doubt, of no elements or many, it does."""
        if parameter not in parameters_of(self.kernel):
            return True
        return _uses_as_array(self.kernel, parameter)

    def _tensorflow(self, node: cst.BaseExpression, tensor: Tensor, parameter: str) -> cst.Call:
        if tape_records(self.call, self.ctx):
            raise Withheld(ON_TAPE)
        if tensor.dtype in HALF or tensor.dtype == "half":
            raise Withheld(TF_HALF)
        if may_write(self.kernel, parameter):
            raise Withheld(WRITES)
        return method(node, "numpy")

    def _half(self, node: cst.BaseExpression, parameter: str) -> cst.Call:
        """`x.numpy()` of a half-precision tensor: widened while it is a tensor still."""
        if may_write(self.kernel, parameter):
            raise Withheld(WRITES)
        match node:
            case cst.Call(func=cst.Attribute(value=tensor, attr=cst.Name(value="numpy"))):
                return method(tensor, "float", "numpy")
        raise Withheld(HALF_NUMPY)

    def _container(
        self, node: cst.BaseExpression, value: Value, parameter: str
    ) -> cst.BaseExpression:
        if isinstance(node, cst.Tuple | cst.List) and isinstance(value, Tuple):
            return self._literal(node, value, parameter)
        if isinstance(value, Tuple) and not all(trouble(item) for item in value.items):
            raise Withheld(MIXED)
        element = element_of(value)
        if not isinstance(element, Tensor):
            raise Withheld(NO_DICT)
        name = cst.Name("each")
        clause = cst.CompFor(target=name, iter=node)
        return cst.ListComp(self.bridged(name, element, parameter), clause)

    def _literal(
        self, node: cst.Tuple | cst.List, value: Tuple, parameter: str
    ) -> cst.BaseExpression:
        """Element by element; Numba's lists are of one type, its tuples of any."""
        is_mixed = isinstance(node, cst.List) and not all(map(trouble, value.items))
        if is_mixed or any(isinstance(each, cst.StarredElement) for each in node.elements):
            raise Withheld(MIXED)
        elements = [
            each.with_changes(value=self.bridged(each.value, item, parameter))
            if trouble(item) is not None
            else each
            for each, item in zip(node.elements, value.items, strict=True)
        ]
        return node.with_changes(elements=elements)

    def _code(self, node: cst.CSTNode) -> str:
        return " ".join(self.ctx.module.code_for_node(node).split())


def method(node: cst.BaseExpression, *names: str) -> cst.Call:
    """`node.a().b()`, in parentheses where Python needs them."""
    is_atom = isinstance(node, cst.Name | cst.Attribute | cst.Call | cst.Subscript) or node.lpar
    if not is_atom:
        node = node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    for name in names:
        node = cst.Call(cst.Attribute(node, cst.Name(name)))
    assert isinstance(node, cst.Call)
    return node


def _uses_as_array(kernel: Kernel, parameter: str) -> bool:
    info = body_of(kernel)
    return info is None or _is_array_in(info.node.body, parameter)


def _is_array_in(node: cst.CSTNode, name: str) -> bool:
    match node:
        case (
            cst.Subscript(value=cst.Name(value=value)) | cst.Attribute(value=cst.Name(value=value))
        ):
            if value == name:
                return True
    return any(_is_array_in(child, name) for child in node.children)
