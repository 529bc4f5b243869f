"""Operators that the fixes give a tensor of rank 0 where the code gives a number."""

from collections.abc import Callable
from typing import Any

import pytest
from jitlint_rules.tracing.read_fixes.flow import EXACT, TAKES_EITHER

SPECIAL = (1.0, 0.1, -0.0, float("nan"), float("inf"))

WITHOUT_GRADIENT = frozenset({"FloorDivide"})

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": lambda x, s: x + s,
    "Subtract": lambda x, s: x - s,
    "Multiply": lambda x, s: x * s,
    "Divide": lambda x, s: x / s,
    "FloorDivide": lambda x, s: x // s,
    "Modulo": lambda x, s: x % s,
}


def call(name: str, position: int) -> Callable[[Any, Any], Any]:
    """The operator as a method, in place on a copy where it writes."""

    def run(x: Any, number: Any) -> Any:
        x = x * 1
        arguments = {
            "masked_fill": [x > 0, number],
            "masked_fill_": [x > 0, number],
            "where": [x > 0, number] if position == 2 else [x > 0, x],
        }
        if name == "where" and position == 1:
            import torch

            return torch.where(x > 0, number, x)
        return getattr(x, name)(*arguments.get(name, [number]))

    return run


CALLS = {
    **{f"{kind.__name__}": OPERATORS[kind.__name__] for kind in EXACT},
    **{
        f"{name} {position}": call(name, position)
        for name, positions in TAKES_EITHER.items()
        for position in positions
    },
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("name", CALLS)
def test_a_tensor_of_rank_0_acts_bit_by_bit_as_its_number(name: str, dtype: str):
    torch = pytest.importorskip("torch")
    values = torch.tensor(
        [1.5, -2.25, 0.0, float("nan"), float("inf")], dtype=getattr(torch, dtype)
    )
    for special in SPECIAL:
        number = torch.tensor(special)
        found = []
        for argument in (number.item(), number, number.double()):
            x = values.clone().requires_grad_(name not in WITHOUT_GRADIENT)
            result = CALLS[name](x, argument)
            gradient = None
            if result.requires_grad:
                (gradient,) = torch.autograd.grad(result.sum(), x, allow_unused=True)
            found.append((result, gradient))
        expected, *others = found
        for result, gradient in others:
            assert result.dtype == expected[0].dtype
            torch.testing.assert_close(result, expected[0], rtol=0, atol=0, equal_nan=True)
            assert (gradient is None) == (expected[1] is None)
            if gradient is not None:
                torch.testing.assert_close(gradient, expected[1], rtol=0, atol=0, equal_nan=True)
