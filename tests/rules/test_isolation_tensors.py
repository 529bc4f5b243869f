"""Functions that make tensors of tensors of integers: which of them become operators."""

import pytest

HEAD = """
from torch import Tensor


def helper(x):
    return x

"""

USED = """

@torch.compile
def f(x, ids: torch.LongTensor):
    return x * made(ids, 3)
"""


@pytest.fixture
def rules() -> tuple[str, ...]:
    return ("trace-dynamic-shape",)


def module(function: str) -> str:
    return HEAD + function.strip("\n") + "\n" + USED


OPERATORS = {
    "sizes that are computed": (
        """
def made(ids: torch.LongTensor, extra: int) -> Tensor:
    places = ids.nonzero()
    rows, columns = ids.shape
    wide = columns + extra
    out: Tensor = torch.zeros(rows, wide, device=ids.device)
    for row, column in places:
        out[row, column] = 1
    return out.to(torch.float64)
""",
        (
            "def _made_operator(ids: Tensor, extra: int) -> Tensor:",
            "    rows, columns = ids.shape\n"
            "    wide = columns + extra\n"
            "    out: Tensor = torch.zeros(rows, wide, device=ids.device)\n"
            "    return out.to(torch.float64)\n",
            "    return _made_operator(ids, extra)\n",
        ),
    ),
    "a tensor like another": (
        """
def made(ids: torch.LongTensor, extra: int) -> Tensor:
    out = torch.zeros_like(ids)
    out[ids.nonzero()[0]] = extra
    return out
""",
        ("    out = torch.zeros_like(ids)\n    return out\n",),
    ),
    "two results of equal sizes": (
        """
def made(ids: torch.LongTensor, extra: int) -> tuple[Tensor, Tensor]:
    size = ids.size(0)
    a, b = torch.zeros(size), torch.ones(size)
    first = torch.zeros(size)
    second = torch.ones(size)
    first[ids.nonzero()] = extra
    return first, second
""",
        ("    size = ids.size(0)\n    first = torch.zeros(size)\n    second = torch.ones(size)\n",),
    ),
}


@pytest.mark.parametrize(("source", "parts"), OPERATORS.values(), ids=OPERATORS)
def test_what_the_results_are_is_told_without_their_values(source, parts, rewrite):
    new = rewrite(module(source))
    for part in parts:
        assert part in new


WITHHELD = {
    "a gradient may go through": """
def made(ids: Tensor, extra: int) -> Tensor:
    out = torch.zeros_like(ids)
    out[ids.nonzero()] = extra
    return out
""",
    "the shape depends on the values": """
def made(ids: torch.LongTensor, extra: int) -> Tensor:
    found = ids.nonzero()
    return torch.zeros(found.shape[0])
""",
    "the shape depends on a mask": """
def made(ids: torch.LongTensor, extra: int) -> Tensor:
    mask = torch.zeros(3).bool()
    mask[ids.nonzero()] = True
    out = torch.ones(3)[mask]
    return out
""",
    "the result may be the argument": """
def made(ids: torch.LongTensor, extra: int) -> Tensor:
    ids.nonzero()
    return ids
""",
    "the argument may be written into": """
def made(ids: torch.LongTensor, extra: int) -> Tensor:
    flat = ids.view(-1)
    flat[ids.nonzero()[0]] = 1
    return torch.zeros(3)
""",
    "the argument may be written into by another name": """
def made(ids: torch.LongTensor, extra: int) -> Tensor:
    same = ids.long()
    same[ids.nonzero()[0]] = 1
    return torch.zeros(3)
""",
    "the argument is handed on": """
def made(ids: torch.LongTensor, extra: int) -> Tensor:
    helper(ids)
    ids.nonzero()
    return torch.zeros(3)
""",
    "the results share their memory": """
def made(ids: torch.LongTensor, extra: int) -> tuple[Tensor, Tensor]:
    out = torch.zeros(3)
    out[ids.nonzero()[0]] = 1
    return out, out[1:]
""",
    "it returns early": """
def made(ids: torch.LongTensor, extra: int) -> Tensor:
    if extra > 3:
        return torch.ones(4)
    ids.nonzero()
    return torch.zeros(3)
""",
    "a size is bound in a loop": """
def made(ids: torch.LongTensor, extra: int) -> Tensor:
    size = 1
    for row in ids.nonzero():
        size = size + 1
    return torch.zeros(size)
""",
    "a size is counted": """
def made(ids: torch.LongTensor, extra: int) -> Tensor:
    size = 1
    ids.nonzero()
    size += 1
    return torch.zeros(size)
""",
    "the result gets another shape in place": """
def made(ids: torch.LongTensor, extra: int) -> Tensor:
    out = torch.zeros(3)
    out.resize_(ids.nonzero().shape[0])
    return out
""",
    "nothing says what it returns": """
def made(ids: torch.LongTensor, extra: int):
    ids.nonzero()
    return torch.zeros(3)
""",
    "the result is made by unknown code": """
def made(ids: torch.LongTensor, extra: int) -> Tensor:
    ids.nonzero()
    out = helper(extra)
    return out
""",
    "the result is drawn": """
def made(ids: torch.LongTensor, extra: int) -> Tensor:
    ids.nonzero()
    return torch.rand(3)
""",
}


@pytest.mark.parametrize("source", WITHHELD.values(), ids=WITHHELD)
def test_a_function_whose_results_are_not_plain_stays(source, rewrite):
    assert "made_operator" not in rewrite(module(source))
