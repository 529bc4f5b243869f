"""Two values are the same exactly where a caller could not tell them apart."""

import collections
import dataclasses
import enum
import pickle

import pytest

torch = pytest.importorskip("torch")

import jitlint.verify.torch_leaves  # noqa: E402, F401
from jitlint.verify.values import flat_difference, flatten, stable_text  # noqa: E402

Point = collections.namedtuple("Point", "x y")
nan = float("nan")


@dataclasses.dataclass
class Result:
    loss: object
    name: str = "r"


class Layout(str, enum.Enum):
    FIRST = "first"
    LAST = "last"


class Name(str):
    pass


def difference(old: object, new: object, slack: float = 1.0) -> str | None:
    return flat_difference(flatten(old, "output"), flatten(new, "output"), slack)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (torch.tensor([nan, 1.0]), torch.tensor([nan, 1.0])),
        (torch.tensor([1.0]), torch.tensor([1.0 + 1e-7])),
        ({"a": [1, (2.0, None)]}, {"a": [1, (2.0, None)]}),
        (nan, nan),
        (Result(torch.ones(2)), Result(torch.ones(2))),
        ({3, 1}, {1, 3}),
        (torch.ones(2, 3).t(), torch.ones(3, 2)),
    ],
    ids=["nan", "rounding", "nested", "python_nan", "dataclass", "set", "stride"],
)
def test_same(old, new):
    assert difference(old, new) is None


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (torch.ones(2), torch.ones(2).double(), "dtype torch.float32 became torch.float64"),
        (torch.ones(2), torch.ones(1, 2), "shape (2,) became (1, 2)"),
        (torch.ones(2), torch.ones(2, requires_grad=True), "requires_grad False became True"),
        (torch.ones(1), torch.nn.Parameter(torch.ones(1)), "type Tensor became Parameter"),
        (torch.tensor([nan]), torch.tensor([0.0]), "[nan] became torch.float32 [0.0]"),
        (torch.tensor([1.0]), torch.tensor([1.001]), "became"),
        (torch.tensor(1), 1, "torch.int64 1 became 1"),
        (1, 1.0, "1 became 1.0"),
        (True, 1, "True became 1"),
        (0.0, None, "0.0 became None"),
        ([1, 2], (1, 2), "list[2] became tuple[2]"),
        ([1, 2], [1, 2, 3], "list[2] became list[3]"),
        ({"a": 1}, {"b": 1}, "dict[1] of ['a'] became dict[1] of ['b']"),
        (Point(1, 2), Point(1, 3), "output.y: 2 became 3"),
        (Result(1.0), Result(1.0, "other"), "output.name: 'r' became 'other'"),
    ],
)
def test_different(old, new, told):
    assert told in difference(old, new)


def test_slack_widens_the_tolerance():
    old, new = torch.tensor([100.0]), torch.tensor([100.001])
    assert difference(old, new) is not None
    assert difference(old, new, slack=10.0) is None


def test_flattened_tensors_keep_their_values():
    tensor = torch.zeros(1)
    before = flatten(tensor, "output")
    tensor.add_(1)
    assert flat_difference(before, flatten(tensor, "output")) is not None


def test_a_cycle_ends():
    items: list[object] = [1]
    items.append(items)
    assert difference(items, items) is None


def test_text_is_compared_without_addresses_and_operation_names():
    text = "<Net object at 0x7f01> tensor(1., grad_fn=<MulBackward0>)"
    assert stable_text(text) == "<Net object at 0x…> tensor(1., grad_fn=<…>)"


@pytest.mark.parametrize(("old", "new"), [(Layout.FIRST, Layout.LAST), (Name("a"), Name("b"))])
def test_what_is_compared_elsewhere_does_not_need_the_users_module(old, new):
    assert difference(old, old) is None
    assert difference(old, new) is not None
    assert __name__.encode() not in pickle.dumps(flatten(old, "output"))
