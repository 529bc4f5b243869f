"""Numbers that are read out of tensors: which of them may stay tensors, and how."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from jitlint import engine
from jitlint.config import Settings
from jitlint.finding import Safety
from jitlint.fixing import Plan
from jitlint.rule import load_rules

RULE = "trace-host-read"


@pytest.fixture
def rules() -> tuple[str, ...]:
    return (RULE,)


REWRITTEN = {
    "the number takes no gradient with it": ("x * x.max().item()", "x * x.max().detach()"),
    "what has no gradient needs no detaching": (
        "x * (x > 0).sum().item()",
        "x * (x > 0).sum()",
    ),
    "a conversion is a read": ("x - float(x.mean())", "x - x.mean().detach()"),
    "Python computes in float64": (
        "x * (x.mean().item() + 0.1)",
        "x * (x.mean().detach().double() + 0.1)",
    ),
    "the number of an int tensor makes the default dtype": (
        "x.argmax(-1) * x.mean().item()",
        "x.argmax(-1) * x.mean().detach().to(torch.get_default_dtype())",
    ),
    "an integer is truncated": (
        "x * int(x.mean())",
        "x * x.mean().detach().long()",
    ),
    "a tensor of one element has no shape left": (
        "x * k.item()",
        "x * k.detach().reshape(())",
    ),
    "a sum of tensors is put in parentheses": (
        "x * float(x.max() + x.min())",
        "x * (x.max() + x.min()).detach()",
    ),
    "max keeps a NaN": (
        "x / max(x.max().item(), 1e-6)",
        "x / x.max().detach().double().clamp(min=1e-6)",
    ),
    "operators that take a number or a tensor": (
        "torch.where(x > 0, x, x.min().item()).clamp(max=x.mean().item())",
        "torch.where(x > 0, x, x.min().detach()).clamp(max=x.mean().detach())",
    ),
    "an index": (
        "x[x.argmax().item()] * 2",
        "x[x.argmax().reshape(1)].squeeze(0) * 2",
    ),
    "a column": (
        "x[:, x[0].argmax().item()] * 2",
        "x[:, x[0].argmax().reshape(1)].squeeze(1) * 2",
    ),
    "numbers that are made a tensor again": (
        "torch.tensor([x.min().item(), x.max().item()], dtype=x.dtype, device=x.device)",
        "torch.stack([x.min().detach(), x.max().detach()]).to(device=x.device, dtype=x.dtype)",
    ),
    "one number that is made a tensor again": (
        "torch.tensor((x > 0).sum().item(), device=x.device)",
        "(x > 0).sum().clone().to(device=x.device, dtype=torch.int64)",
    ),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_the_tensor_takes_the_part_of_the_number(case: str, rewrite: Callable[[str], str]):
    before, after = REWRITTEN[case]
    frame = "@torch.compile\ndef f(x, k):\n    return {}\n"
    assert rewrite(frame.format(before)) == frame.format(after)


BODIES = {
    "a variable": (
        """
        s = x.sum().item()
        return x * s
        """,
        """
        s = x.sum().detach()
        return x * s
        """,
    ),
    "a tensor that is written into is copied first": (
        """
        s = k.item()
        k.add_(1)
        return x * s
        """,
        """
        s = k.detach().clone().reshape(())
        k.add_(1)
        return x * s
        """,
    ),
    "numbers that meet are all kept": (
        """
        a = x.max().item()
        b = x.min().item()
        return x / (a - b + 1.0)
        """,
        """
        a = x.max().detach().double()
        b = x.min().detach().double()
        return x / (a - b + 1.0)
        """,
    ),
    "an element is written": (
        """
        y = x * 2
        y[0] = x.mean().item()  # the first
        return y
        """,
        """
        y = x * 2
        y[0] = x.mean().detach()  # the first
        return y
        """,
    ),
    "a branch chooses between tensors": (
        """
        if x.max().item() > 0.3:
            return x + 1.0
        return x - 1.0
        """,
        "return torch.where(x.max().double() > 0.3, x + 1.0, x - 1.0)",
    ),
    "an assertion stays one": (
        """
        assert x.argmax().item() < 7
        return x
        """,
        """
        assert x.argmax() < 7
        return x
        """,
    ),
}


def function(body: str) -> str:
    return (
        "@torch.compile\ndef f(x, k):\n"
        + textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
        + "\n"
    )


@pytest.mark.parametrize("case", BODIES)
def test_the_number_is_followed(case: str, rewrite: Callable[[str], str]):
    before, after = BODIES[case]
    assert rewrite(function(before)) == function(after)


WITHHELD = {
    "returned": ("return x.sum().item()", "the number is returned"),
    "returned in arithmetic": ("return x.sum().item() * 2", "the number is returned"),
    "collected": ('return x, {"loss": x.mean().item()}', "kept in a list, tuple or dict"),
    "shown": ('return x, f"{x.mean().item():.2f}"', "the number is made text"),
    "compared in Python": (
        """
        while x.mean().item() > 100:
            x = x / 2
        return x
        """,
        "Python decides by the number",
    ),
    "a size": ("return x.new_zeros(x.argmax().item())", "is given the number"),
    "a bound": ("return x[: x.argmax().item()] * 2", "a size, a bound or an index"),
    "a number of rounds": (
        """
        for _ in range(int(x.argmax())):
            x = x + 1
        return x
        """,
        "a size, a bound or an index",
    ),
    "given to unknown code": (
        """
        import extern
        return x * extern.scale(x.mean().item())
        """,
        "`extern.scale` is given the number",
    ),
    "added up": (
        """
        total = 0.0
        total += x.mean().item()
        return x * total
        """,
        "added to a Python number",
    ),
    "another value on another path": (
        """
        s = 1.0
        if k is not None:
            s = x.mean().item()
        return x * s
        """,
        "`s` may have another value",
    ),
    "another value in the test of a loop": (
        """
        grows = True
        while grows:
            before = x
            x = (x * 2).clamp(max=5)
            grows = bool((x > before).any())
        return x
        """,
        "`grows` may have another value",
    ),
    "stored": (
        """
        k.scale = x.mean().item()
        return x
        """,
        "the number is stored",
    ),
    "a whole quotient": ("return x * (x.argmax().item() // 2)", "is not known to do the same"),
    "both bounds": (
        "return x.clamp(0.0, x.mean().item())",
        "is given the number",
    ),
    "an item that is a view": (
        "return x[x.argmax().item()]",
        "is a view of the tensor",
    ),
}


@pytest.mark.parametrize("case", WITHHELD)
def test_a_number_that_must_be_one_is_left_alone(case: str, left: Callable[[str], list]):
    body, expected = WITHHELD[case]
    found = [each for each in left(function(body)) if each.rule == RULE]
    assert [expected in (each.no_fix_reason or "") for each in found] == [True]


SAFETY = {
    "x * x.max().item()": Safety.SAFE,
    "x - float(x.mean())": Safety.SAFE,
    "x * (x > 0).any().item()": Safety.SAFE,
    "x * x.sum().item()": Safety.UNSAFE,
    "x * k.item()": Safety.UNSAFE,
    "x.max().item() / x": Safety.UNSAFE,
    "x / (x.mean().item() / x.max().item())": Safety.UNSAFE,
}


@pytest.mark.parametrize("expression", SAFETY)
def test_a_fix_is_safe_only_where_nothing_is_supposed(expression: str, tmp_path: Path):
    path = tmp_path / "module.py"
    path.write_text("import torch\n\n" + function(f"return {expression}"))
    settings = Settings(cache=False, select=(RULE,))
    found = engine.check([path], settings, load_rules()).diagnostics
    assert {each.fix_safety for each in found} == {SAFETY[expression]}


def test_a_caller_with_a_number_keeps_the_fix_away(plan: Callable[[str], Plan]):
    source = function("return x * k.item()") + "\n\ndef g(k):\n    return f(2.0, k)\n"
    assert not plan(source).files
