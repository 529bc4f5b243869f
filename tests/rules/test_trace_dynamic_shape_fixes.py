"""Selections whose size depends on data: where the whole tensor will do, and where not."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from jitlint import engine
from jitlint.config import Settings
from jitlint.finding import Safety
from jitlint.fixing import Plan
from jitlint.rule import load_rules

RULE = "trace-dynamic-shape"


@pytest.fixture
def rules() -> tuple[str, ...]:
    return (RULE,)


def function(body: str) -> str:
    return (
        "@torch.compile\ndef f(x, y, m):\n"
        + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
        + "\n"
    )


REWRITTEN = {
    "a sum": (
        "return x[x > 0].sum()",
        "return torch.where(x > 0, x, 0).sum()",
    ),
    "a function of torch": (
        "return torch.mean(x[x > 0])",
        "return torch.where(x > 0, x, 0).sum() / (x > 0).sum()",
    ),
    "a mean in arithmetic": (
        "return 1 - x[x > 0].mean()",
        "return 1 - (torch.where(x > 0, x, 0).sum() / (x > 0).sum())",
    ),
    "whether any": (
        "return (x[x > 0] > 1).any()",
        "return ((x > 1) & (x > 0)).any()",
    ),
    "whether all": (
        "return (x[x > 0] < 9).all()",
        "return ((x < 9) | ~(x > 0)).all()",
    ),
    "operands with infinite derivatives are guarded": (
        "return x[x > 0].log().sum()",
        "return torch.where(x > 0, torch.where(x > 0, x, 1).log(), 0).sum()",
    ),
    "with a number at which the derivative is finite": (
        "return (1 / (1 - x[x > 0])).sum()",
        "return torch.where(x > 0, 1 / (1 - torch.where(x > 0, x, 0)), 0).sum()",
    ),
    "a variable": (
        """
        keep = x > 0
        chosen = x[keep]
        return (chosen * 2).sum()
        """,
        """
        keep = x > 0
        chosen = x
        return torch.where(keep, chosen * 2, 0).sum()
        """,
    ),
    "a store": (
        """
        z = torch.zeros_like(x)
        keep = x > 0
        z[keep] = x[keep] * 2  # doubled
        return z
        """,
        """
        z = torch.zeros_like(x)
        keep = x > 0
        z = torch.where(keep, x * 2, z)  # doubled
        return z
        """,
    ),
    "a store into a tensor of somebody else": (
        """
        keep = x > 0
        x[keep] = x[keep] * 2
        return x + 1
        """,
        """
        keep = x > 0
        x.copy_(torch.where(keep, x * 2, x))
        return x + 1
        """,
    ),
    "an augmented store": (
        """
        z = x + 1
        z[z > 0] *= 2
        return z
        """,
        """
        z = x + 1
        z = torch.where(z > 0, z * 2, z)
        return z
        """,
    ),
    "the largest of each row": (
        "return x[x > 0].view(x.shape[0], -1).max(dim=-1).values",
        'return torch.where(x > 0, x, float("-inf")).max(dim=-1).values',
    ),
    "the sum of each row": (
        "return torch.sum(x[x > 0].reshape(x.size(0), -1), 1)",
        "return torch.sum(torch.where(x > 0, x, 0), 1)",
    ),
    "counts": (
        "return torch.bincount(x, minlength=9)",
        """
        return torch.zeros(9, dtype=torch.long, device=x.device).scatter_add_(
            0,
            x.long(),
            torch.ones_like(x, dtype=torch.long),
        )
        """,
    ),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_the_whole_tensor_is_computed_with(case: str, rewrite: Callable[[str], str]):
    before, after = REWRITTEN[case]
    assert rewrite(function(before)) == function(after)


WITHHELD = {
    "returned": ("return x[x > 0]", "is handed out"),
    "returned through a variable": (
        """
        z = x[x > 0]
        return z * 2
        """,
        "is handed out",
    ),
    "the largest of nothing": ("return x[x > 0].max()", "of nothing raises"),
    "where the largest of each row is": (
        "return x[x > 0].view(x.shape[0], -1).max(dim=1)[1]",
        "of nothing raises",
    ),
    "the largest of all rows": (
        "return x[x > 0].view(x.shape[0], -1).amax(dim=0)",
        "of nothing raises",
    ),
    "rows of another tensor": (
        "return x[x > 0].view(y.shape[0], -1).amax(dim=1)",
        "of nothing raises",
    ),
    "a mask without a name, needed again": (
        """
        chosen = x[x > 0]
        return (chosen * 2).sum()
        """,
        "give the mask `x > 0` a name",
    ),
    "a mask with another value": (
        """
        keep = x > 0
        chosen = x[keep]
        keep = x > 1
        z = x * 1
        z[keep] = chosen
        return z
        """,
        "`keep` has another value",
    ),
    "another mask": (
        """
        z = torch.zeros_like(x)
        z[x > 0] = x[x > 1]
        return z
        """,
        "written through another mask",
    ),
    "an operation across elements": ("return x[x > 0].cumsum(0).sum()", "needs the selection"),
    "a tensor of the selected size": (
        "return (x[x > 0] * y).sum()",
        "is neither a number nor selected by the mask",
    ),
    "the number of elements": ("return y * x[x > 0].numel()", "is a Python number"),
    "no length for counts": ("return torch.bincount(x)", "the length of the counts"),
    "distinct values": ("return torch.unique(x).sum()", "its own size"),
    "a function without a finite derivative": (
        "return torch.acos(x[x > 0]).sum()",
        "may have no finite derivative",
    ),
}


@pytest.mark.parametrize("case", WITHHELD)
def test_a_selection_that_is_needed_is_left_alone(case: str, left: Callable[[str], list]):
    body, expected = WITHHELD[case]
    found = [each for each in left(function(body)) if each.rule == RULE]
    assert found
    assert all(each.fix_safety is None for each in found)
    assert any(expected in (each.no_fix_reason or "") for each in found)


SAFETY = {
    "(x[x > 0] > 1).any()": Safety.SAFE,
    "(x > 1)[x > 0].sum()": Safety.SAFE,
    "x[x > 0].sum()": Safety.UNSAFE,
    "(x > 1)[y > 0].sum()": Safety.UNSAFE,
}


@pytest.mark.parametrize("expression", SAFETY)
def test_a_fix_is_safe_only_where_nothing_is_supposed(expression: str, tmp_path: Path):
    path = tmp_path / "module.py"
    path.write_text("import torch\n\n" + function(f"return {expression}"))
    found = engine.check([path], Settings(cache=False, select=(RULE,)), load_rules()).diagnostics
    assert {each.fix_safety for each in found} == {SAFETY[expression]}


@pytest.mark.parametrize("result", ["x[k].mean()", "nn.functional.mse_loss(x[k], y[k])"])
def test_a_mean_becomes_a_sum_that_may_overflow(result: str, plan: Callable[[str], Plan]):
    (file,) = plan(function(f"k = x > 0\nreturn {result}")).files
    assert all("the sum does not overflow" in (each.fix_title or "") for each in file.applied)
    assert file.applied
