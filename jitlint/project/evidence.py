"""Evidence that a parameter is not a tensor, from how the function's body uses it."""

from collections.abc import Callable

import libcst as cst

from jitlint.project.modules import FunctionInfo

NOT_TENSOR_METHODS = {"items", "keys", "values", "get", "update", "append", "startswith", "lower"}
SHAPE_METHODS = {"view", "reshape", "permute", "expand", "repeat", "unflatten"}


def contradicted(info: FunctionInfo, name: str) -> bool:
    """Whether something in the body says that the parameter `name` is no tensor.

    A slice bound or a list index is no such evidence: tensors are used there, and break.
    Nor is a test such as `if n > 3`, if the parameter is the first, or is used elsewhere
    as only an object is (`n.sum()`, `n[0]`).
    """
    body = info.node.body
    if _visit(body, name, _says_no):
        return True
    if _is_option(info, name) and _visit(body, name, _defaults):
        return True
    names = [
        parameter.name.value for parameter in info.parameters if parameter.name.value != "self"
    ]
    if name in names[:1] or not _visit(body, name, _tests_number):
        return False
    return not _visit(body, name, _uses_object)


def is_called(info: FunctionInfo, name: str) -> bool:
    """Whether the body calls the parameter `name`."""
    return _visit(info.node.body, name, _calls)


def _calls(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Call) and _is(node.func, name)


def is_member_of_numbers(info: FunctionInfo, name: str) -> bool:
    """Whether the body asks for the parameter `name` in a list of what is no text."""
    return _visit(info.node.body, name, _asks_in_numbers)


def _asks_in_numbers(node: cst.CSTNode, name: str) -> bool:
    match node:
        case cst.Comparison(left=cst.Name(value=value), comparisons=[target]) if value == name:
            container = target.comparator
            return (
                isinstance(target.operator, cst.In | cst.NotIn)
                and isinstance(container, cst.List | cst.Tuple | cst.Set)
                and all(isinstance(e.value, cst.Name | cst.Integer) for e in container.elements)
            )
    return False


def _is_option(info: FunctionInfo, name: str) -> bool:
    """Whether the parameter may be left out, and is None then."""
    defaults = [p.default for p in info.node.params.params if p.name.value == name]
    defaults += [p.default for p in info.node.params.kwonly_params if p.name.value == name]
    return any(_is(default, "None") for default in defaults)


def _defaults(node: cst.CSTNode, name: str) -> bool:
    """`name or another`, which a tensor with more than one element refuses."""
    match node:
        case cst.BooleanOperation(operator=cst.Or(), left=left):
            return _is(left, name)
    return False


def _visit(node: cst.CSTNode, name: str, says: Callable[[cst.CSTNode, str], bool]) -> bool:
    if isinstance(node, cst.Raise):  # messages show tensors too
        return False
    if isinstance(node, cst.Assert):
        return says(node, name) or _visit(node.test, name, says)
    return says(node, name) or any(_visit(child, name, says) for child in node.children)


def _is(node: cst.CSTNode | None, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _says_no(node: cst.CSTNode, name: str) -> bool:
    match node:
        case cst.If() | cst.While() | cst.IfExp():
            return _is_bare_test(node.test, name)
        case cst.BooleanOperation(operator=cst.Or()):  # the default of an option
            return _is(node.left, name) and _is_literal(node.right)
        case cst.FormattedStringExpression():
            return _is(node.expression, name)
        case cst.Comparison():
            return _compares_static(node, name)
        case cst.Call():
            return _is_static_argument(node, name)
        case cst.Subscript(value=cst.Name(value=value)) if value == name:
            return _has_string_key(node)
        case cst.BinaryOperation(operator=cst.Modulo()):
            return _is(node.left, name) and isinstance(node.right, cst.Integer)
    return False


def _is_bare_test(test: cst.BaseExpression, name: str) -> bool:
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _is_bare_test(test.expression, name)
    if isinstance(test, cst.BooleanOperation):
        return _is_bare_test(test.left, name) or _is_bare_test(test.right, name)
    return _is(test, name)


def _tests_number(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.If | cst.While | cst.IfExp | cst.Assert) and _compares_bare(
        node.test, name
    )


def _compares_bare(test: cst.BaseExpression, name: str) -> bool:
    match test:
        case cst.UnaryOperation(operator=cst.Not()):
            return _compares_bare(test.expression, name)
        case cst.BooleanOperation():
            return _compares_bare(test.left, name) or _compares_bare(test.right, name)
        case cst.Comparison():
            operands = [test.left, *(target.comparator for target in test.comparisons)]
            return any(_is(operand, name) for operand in operands)
    return False


def _uses_object(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Attribute | cst.Subscript) and _is(node.value, name)


def _is_literal(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.UnaryOperation):
        return _is_literal(node.expression)
    if isinstance(node, cst.Name):
        return node.value in ("None", "True", "False")
    return isinstance(node, cst.BaseNumber | cst.BaseString | cst.List | cst.Tuple | cst.Dict)


def _compares_static(node: cst.Comparison, name: str) -> bool:
    for target in node.comparisons:
        if isinstance(target.operator, cst.In | cst.NotIn) and _is(node.left, name):
            return True
        if _is(node.left, name) and isinstance(target.comparator, cst.SimpleString):
            return True
    return False


def _is_static_argument(node: cst.Call, name: str) -> bool:
    if isinstance(node.func, cst.Attribute):
        if _is(node.func.value, name) and node.func.attr.value in NOT_TENSOR_METHODS:
            return True
        if node.func.attr.value in SHAPE_METHODS:
            sizes = node.args[1:] if _is_function_of_sizes(node) else node.args
            return any(_is(argument.value, name) for argument in sizes)
    return _is(node.func, "range") and any(_is(a.value, name) for a in node.args)


def _is_function_of_sizes(node: cst.Call) -> bool:
    """`tf.reshape(x, [a, b])` is no method of a tensor: its first argument is the tensor."""
    return len(node.args) > 1 and isinstance(node.args[1].value, cst.List | cst.Tuple)


def _has_string_key(node: cst.Subscript) -> bool:
    index = node.slice[0].slice
    return isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString)
