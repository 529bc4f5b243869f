"""The constructs that `jitlint.analysis.extract_constructs` compiles.

Each function is one: its name is the key in the table, its docstring says what it stands
for. `v` holds the values that it works on. All of them work in Python, where some give an
answer that only depends on the numbers in `v`.
"""

import contextlib
import math
import os
import random
from typing import Any

import numpy
import torch

GENERATOR = torch.Generator()


def index_by_mask(v: Any) -> Any:
    """x[mask]"""
    return v.x[v.mask]


def index_rows_by_mask(v: Any) -> Any:
    """x[mask, :], the mask being shorter than x"""
    return v.x[v.row_mask, :]


def index_by_scalar_mask(v: Any) -> Any:
    """x[flag], the mask having rank 0"""
    return v.x[v.flag]


def store_number_through_mask(v: Any) -> Any:
    """x[mask] = 0.0"""
    v.x[v.mask] = 0.0
    return v.x


def store_scalar_tensor_through_mask(v: Any) -> Any:
    """x[mask] = a tensor of rank 0"""
    v.x[v.mask] = v.scalar
    return v.x


def store_tensor_through_mask(v: Any) -> Any:
    """x[mask] = a tensor with an item for each place"""
    v.x[v.mask] = torch.ones(9)[: v.count]
    return v.x


def store_masked_through_mask(v: Any) -> Any:
    """x[mask] = y[mask]"""
    v.x[v.mask] = (v.x + 1)[v.mask]
    return v.x


def store_through_scalar_mask(v: Any) -> Any:
    """x[flag] = 0.0, the mask having rank 0"""
    v.x[v.flag] = 0.0
    return v.x


def update_through_mask(v: Any) -> Any:
    """x[mask] += 1.0"""
    v.x[v.mask] += 1.0
    return v.x


def index_by_indices(v: Any) -> Any:
    """x[indices], a vector of integers"""
    return v.x[v.indices]


def index_by_scalar(v: Any) -> Any:
    """x[i], an integer tensor of rank 0"""
    return v.x[v.index]


def store_at_scalar(v: Any) -> Any:
    """x[i] = 0.0, an integer tensor of rank 0"""
    v.x[v.index] = 0.0
    return v.x


def store_tensor_at_scalar(v: Any) -> Any:
    """x[i] = tensor, an integer tensor of rank 0"""
    v.x[v.index] = v.vector
    return v.x


def index_by_argmax(v: Any) -> Any:
    """x[y.argmax()]"""
    return v.x[v.vector.argmax()]


def index_tuple_by_scalar(v: Any) -> Any:
    """x[i, 0]"""
    return v.x[v.index, 0]


def slice_to_tensor(v: Any) -> Any:
    """x[:n]"""
    return v.x[: v.integer]


def slice_from_tensor(v: Any) -> Any:
    """x[n:]"""
    return v.x[v.integer :]


def slice_by_tensor_step(v: Any) -> Any:
    """x[::n]"""
    return v.x[:: v.integer]


def store_to_slice_by_tensor(v: Any) -> Any:
    """x[:n] = 0.0"""
    v.x[: v.integer] = 0.0
    return v.x


def index_list_by_tensor(v: Any) -> Any:
    """numbers[i], a Python list"""
    return v.numbers[v.index]


def slice_list_by_tensor(v: Any) -> Any:
    """numbers[:i], a Python list"""
    return v.numbers[: v.index]


def index_dict_by_tensor(v: Any) -> Any:
    """words.get(tensor), a dict"""
    return v.words.get(v.scalar)


def index_dict_by_item(v: Any) -> Any:
    """words.get(tensor.item()), a dict"""
    return v.words.get(v.scalar.item())


def iterate_tensor(v: Any) -> Any:
    """for row in x"""
    total = 0
    for row in v.x:
        total = total + row
    return total


def enumerate_tensor(v: Any) -> Any:
    """for i, row in enumerate(x)"""
    total = 0
    for i, row in enumerate(v.x):
        total = total + row * i
    return total


def unpack_tensor(v: Any) -> Any:
    """a, b, c = x"""
    a, b, c = v.x
    return a + b + c


def list_of_tensor(v: Any) -> Any:
    """list(x)"""
    rows = list(v.x)
    return rows[0]


def zip_tensors(v: Any) -> Any:
    """zip(x, y)"""
    sums = [a + b for a, b in zip(v.x, v.x, strict=True)]
    return sums[0]


def format_tensor(v: Any) -> Any:
    """f"{x}", of which the text is used"""
    return len(f"{v.x}")


def format_scalar_tensor(v: Any) -> Any:
    """f"{x}", of rank 0, of which the text is used"""
    return len(f"{v.scalar}")


def format_tensor_with_spec(v: Any) -> Any:
    """f"{x:.2f}", of rank 0, of which the text is used"""
    return len(f"{v.scalar:.2f}")


def format_tensor_unread(v: Any) -> Any:
    """f"{x}", which is returned as it is"""
    return f"{v.x}"


def percent_format_tensor(v: Any) -> Any:
    """'%s' % x"""
    return "%s" % v.scalar  # noqa: UP031


def format_item(v: Any) -> Any:
    """f"{x.item()}" """
    return f"{v.scalar.item()}"


def percent_format_item(v: Any) -> Any:
    """'%.2f' % x.item()"""
    return "%.2f" % v.scalar.item()  # noqa: UP031


def divmod_of_item(v: Any) -> Any:
    """divmod(n.item(), 2)"""
    return divmod(v.integer.item(), 2)


def format_shape(v: Any) -> Any:
    """f"{x.shape}" """
    return f"{v.x.shape}"


def string_of_tensor(v: Any) -> Any:
    """str(x)"""
    return str(v.x)


def repr_of_tensor(v: Any) -> Any:
    """repr(x)"""
    return repr(v.x)


def range_of_tensor(v: Any) -> Any:
    """range(n)"""
    return [i for i in range(v.integer)]  # noqa: C416


def range_of_item(v: Any) -> Any:
    """range(n.item())"""
    return [i for i in range(v.integer.item())]  # noqa: C416


def list_of_integers(v: Any) -> Any:
    """x.tolist(), of integers"""
    return v.indices.tolist()


def repeat_list_by_item(v: Any) -> Any:
    """numbers * n.item(), a Python list"""
    return v.numbers * v.integer.item()


def string_of_item(v: Any) -> Any:
    """str(n.item())"""
    return str(v.integer.item())


def iterate_masked(v: Any) -> Any:
    """for row in x[mask]"""
    total = 0
    for row in v.x[v.mask]:
        total = total + row
    return total


def size_from_tensor(v: Any) -> Any:
    """torch.zeros(n)"""
    return torch.zeros(v.integer)


def size_from_item(v: Any) -> Any:
    """torch.zeros(n.item())"""
    return torch.zeros(v.integer.item())


def arange_of_tensor(v: Any) -> Any:
    """torch.arange(n)"""
    return torch.arange(v.integer)


def full_of_tensor(v: Any) -> Any:
    """torch.full((2,), tensor)"""
    return torch.full((2,), v.scalar)


def full_of_item(v: Any) -> Any:
    """torch.full((2,), tensor.item())"""
    return torch.full((2,), v.scalar.item())


def linspace_of_tensor(v: Any) -> Any:
    """torch.linspace(tensor, 5.0, 3)"""
    return torch.linspace(v.scalar, 5.0, 3)


def view_by_tensor(v: Any) -> Any:
    """x.view(n, -1), n a tensor"""
    return v.x.view(v.indices[0] * 0 + 3, -1)


def reshape_by_item(v: Any) -> Any:
    """x.reshape(n.item(), -1)"""
    return v.x.reshape((v.indices[0] * 0 + 3).item(), -1)


def expand_by_tensor(v: Any) -> Any:
    """x.expand(n, 3, 3)"""
    return v.x.expand(v.integer, 3, 3)


def narrow_by_tensor(v: Any) -> Any:
    """x.narrow(0, start, 1), start a tensor"""
    return v.x.narrow(0, v.index, 1)


def narrow_by_item(v: Any) -> Any:
    """x.narrow(0, start.item(), 1)"""
    return v.x.narrow(0, v.index.item(), 1)


def split_by_list_of_tensor(v: Any) -> Any:
    """x.split(sizes.tolist())"""
    return v.x.split((v.indices * 0 + 1).tolist())


def pad_by_tensor(v: Any) -> Any:
    """torch.nn.functional.pad(x, (0, n))"""
    return torch.nn.functional.pad(v.x, (0, v.integer))


def roll_by_tensor(v: Any) -> Any:
    """torch.roll(x, n), n a tensor"""
    return torch.roll(v.x, v.integer)


def topk_by_tensor(v: Any) -> Any:
    """x.topk(n)"""
    return v.vector.topk(v.integer)


def repeat_interleave_by_tensor(v: Any) -> Any:
    """torch.repeat_interleave(x, repeats)"""
    return torch.repeat_interleave(v.vector, v.indices + 1)


def repeat_interleave_with_output_size(v: Any) -> Any:
    """torch.repeat_interleave(x, repeats, output_size=n)"""
    repeats = v.indices * 0 + 2
    return torch.repeat_interleave(v.vector, repeats, output_size=6)


def repeat_interleave_by_number(v: Any) -> Any:
    """torch.repeat_interleave(x, 2)"""
    return torch.repeat_interleave(v.vector, 2)


def one_hot_without_classes(v: Any) -> Any:
    """torch.nn.functional.one_hot(indices)"""
    return torch.nn.functional.one_hot(v.indices)


def one_hot_with_classes(v: Any) -> Any:
    """torch.nn.functional.one_hot(indices, 3)"""
    return torch.nn.functional.one_hot(v.indices, 3)


def bincount_with_minlength(v: Any) -> Any:
    """torch.bincount(indices, minlength=5)"""
    return torch.bincount(v.indices, minlength=5)


def where_with_one_argument(v: Any) -> Any:
    """torch.where(mask)"""
    return torch.where(v.mask)


def nonzero_of_known_size(v: Any) -> Any:
    """torch.nonzero_static(x, size=4)"""
    return torch.nonzero_static(v.mask, size=4)


def tensor_of_items(v: Any) -> Any:
    """torch.tensor([x.item(), 1.0])"""
    return torch.tensor([v.scalar.item(), 1.0])


def tensor_of_tensors(v: Any) -> Any:
    """torch.tensor([tensor, tensor]), of rank 0"""
    return torch.tensor([v.scalar, v.scalar])


def tensor_of_tensor(v: Any) -> Any:
    """torch.tensor(tensor)"""
    return torch.tensor(v.x)


def tensor_of_list(v: Any) -> Any:
    """torch.tensor([1.0, 2.0])"""
    return torch.tensor(v.numbers)


def read_literal_tensor(v: Any) -> Any:
    """torch.tensor(2.0).item()"""
    return torch.tensor(2.0).item()


def branch_on_tensor(v: Any) -> Any:
    """if tensor"""
    return 1 if v.flag else 2


def branch_on_item(v: Any) -> Any:
    """if tensor.item() > 0"""
    return 1 if v.scalar.item() > 0 else 2


def loop_on_tensor(v: Any) -> Any:
    """while tensor"""
    y = v.scalar
    while y > 1:
        y = y / 2
    return y


def assert_tensor(v: Any) -> Any:
    """assert tensor"""
    assert v.flag
    return v.x


def assert_tensor_with_message(v: Any) -> Any:
    """assert tensor, "message" """
    assert v.flag, "message"
    return v.x


def assert_tensor_with_formatted_message(v: Any) -> Any:
    """assert tensor, f"{tensor}" """
    assert v.flag, f"not {v.flag}"
    return v.x


def not_of_tensor(v: Any) -> Any:
    """not tensor"""
    return not v.flag


def and_of_tensors(v: Any) -> Any:
    """tensor and tensor"""
    return v.flag and v.scalar


def chained_comparison(v: Any) -> Any:
    """0 < tensor < 9"""
    return 0 < v.scalar < 9


def tensor_in_list(v: Any) -> Any:
    """tensor in [tensor, tensor]"""
    return v.scalar in [v.scalar + 1, v.scalar]


def number_in_tensor(v: Any) -> Any:
    """1.0 in tensor"""
    return 1.0 in v.vector


def compare_lists_of_tensors(v: Any) -> Any:
    """[tensor] == [tensor]"""
    return [v.scalar] == [v.scalar + 1]


def tensor_is_none(v: Any) -> Any:
    """tensor is None"""
    return v.x is None


def sort_tensors(v: Any) -> Any:
    """sorted([tensor, tensor])"""
    return sorted([v.scalar, v.scalar + 1])


def sort_by_tensor_key(v: Any) -> Any:
    """sorted(numbers, key=lambda n: tensor)"""
    return sorted(v.numbers, key=lambda number: v.scalar * number)


def max_of_tensors(v: Any) -> Any:
    """max(tensor, tensor)"""
    return max(v.scalar, v.scalar + 1)


def max_of_list_of_tensors(v: Any) -> Any:
    """max([tensor, tensor])"""
    return max([v.scalar, v.scalar + 1])


def max_of_tensor_and_number(v: Any) -> Any:
    """max(tensor, 1.0)"""
    return max(v.scalar, 1.0)


def max_of_vector(v: Any) -> Any:
    """max(vector)"""
    return max(v.vector)


def any_of_tensor(v: Any) -> Any:
    """any(vector), the builtin"""
    return any(v.row_mask)


def sum_of_tensor(v: Any) -> Any:
    """sum(vector), the builtin"""
    return sum(v.vector)


def abs_of_tensor(v: Any) -> Any:
    """abs(tensor)"""
    return abs(v.x)


def power_of_tensor(v: Any) -> Any:
    """pow(tensor, 2)"""
    return pow(v.x, 2)


def set_of_tensors(v: Any) -> Any:
    """{tensor, tensor}"""
    return len({v.scalar, v.x})


def tensor_as_key(v: Any) -> Any:
    """{tensor: 1}"""
    return {v.scalar: 1}[v.scalar]


def identity_of_tensor(v: Any) -> Any:
    """id(tensor)"""
    return id(v.x)


def hash_of_tensor(v: Any) -> Any:
    """hash(tensor)"""
    return hash(v.x)


def type_of_tensor(v: Any) -> Any:
    """type(tensor)"""
    return type(v.x) is torch.Tensor


def length_of_tensor(v: Any) -> Any:
    """len(tensor)"""
    return len(v.x)


def number_from_tensor(v: Any) -> Any:
    """float(tensor)"""
    return float(v.scalar)


def math_of_item(v: Any) -> Any:
    """math.sqrt(tensor.item())"""
    return math.sqrt(v.scalar.item())


def compare_shapes(v: Any) -> Any:
    """x.shape == y.shape"""
    return v.x.shape == v.vector.shape


def shape_of_masked(v: Any) -> Any:
    """x[mask].shape[0]"""
    return v.x[v.mask].shape[0]


def sum_of_masked(v: Any) -> Any:
    """x[mask].sum()"""
    return v.x[v.mask].sum()


def numpy_of_tensor(v: Any) -> Any:
    """x.numpy() and a function of NumPy"""
    return numpy.sin(v.x.detach().numpy())


def print_tensor(v: Any) -> Any:
    """print(tensor)"""
    print(v.x)


def print_text(v: Any) -> Any:
    """print("text")"""
    print("text")


def catch_error(v: Any) -> Any:
    """try: ... except ValueError: ..."""
    try:
        y = v.x + 1
    except ValueError:
        y = v.x
    return y


def raise_in_branch_on_tensor(v: Any) -> Any:
    """if tensor: raise ValueError"""
    if not v.flag:
        raise ValueError("message")
    return v.x


def raise_and_catch(v: Any) -> Any:
    """try: raise ValueError; except ValueError"""
    try:
        raise ValueError("message")
    except ValueError:
        return v.x


def yield_tensors(v: Any) -> Any:
    """a generator that is used up in the region"""

    def rows() -> Any:
        yield from (v.x, v.vector)

    found = list(rows())
    return found[0]


def return_generator(v: Any) -> Any:
    """a generator that leaves the region"""
    return (row for row in [v.x, v.vector])


def backward(v: Any) -> Any:
    """(x * x).sum().backward()"""
    (v.x * v.x).sum().requires_grad_().backward()


def gradient(v: Any) -> Any:
    """torch.autograd.grad(loss, x)"""
    x = v.x.detach().requires_grad_()
    return torch.autograd.grad((x * x).sum(), x)


def attention_backend(v: Any) -> Any:
    """with sdpa_kernel(SDPBackend.MATH)"""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q = v.x.view(1, 1, 3, 3)
    with sdpa_kernel(SDPBackend.MATH):
        return torch.nn.functional.scaled_dot_product_attention(q, q, q)


def exit_stack(v: Any) -> Any:
    """stack.enter_context(manager)"""
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        return v.x + 1


def class_in_region(v: Any) -> Any:
    """a class statement"""

    class Made:
        value = 1

    return v.x + Made.value


def match_tensor(v: Any) -> Any:
    """match tensor: case 1"""
    match v.scalar:
        case 1:
            return v.x
        case _:
            return v.x + 1


def conditional_expression_on_size(v: Any) -> Any:
    """x if x.shape[0] > 2 else y"""
    return v.x if v.x.shape[0] > 2 else v.vector


def delete_attribute(v: Any) -> Any:
    """del v.x, of an object made in the region"""
    del v.x
    return v.vector


def import_in_region(v: Any) -> Any:
    """import math, in the region"""
    import math

    return v.x + math.pi


def dropout_of_layer(v: Any) -> Any:
    """torch.rand([]) < 0.5, as the condition of a branch"""
    return v.x if torch.rand([]) < 0.5 else v.vector


def random_number(v: Any) -> Any:
    """random.random() < 0.5, as the condition of a branch"""
    return v.x if random.random() < 0.5 else v.vector


def draw_from_generator(v: Any) -> Any:
    """torch.rand(3, generator=g), the generator being made outside"""
    return torch.rand(3, generator=GENERATOR) + v.vector


def store_on_function(v: Any) -> Any:
    """f.calls = 1, an attribute of a function"""
    draw_from_generator.calls = 1  # type: ignore[attr-defined]
    return v.x


def store_to_environment(v: Any) -> Any:
    """os.environ["NAME"] = "value" """
    os.environ["JITLINT_MEASURED"] = "1"
    return v.x


def numpy_random_number(v: Any) -> Any:
    """numpy.random.rand() < 0.5, as the condition of a branch"""
    return v.x if numpy.random.rand() < 0.5 else v.vector
