"""Arms that call functions of the project, choose by a flag, or report what they do."""

import pytest

CALLED = {
    "a function that computes": (
        """
        def grown(x, factor=2):
            \"\"\"Larger.\"\"\"
            half = x / factor
            return x + half * (x > 0).to(x.dtype)

        @torch.compile
        def f(x):
            if x.sum() > 0:
                x = grown(x)
            return x + 1
        """,
        "lambda: grown(x)",
    ),
    "a function that may return its argument": (
        """
        def first(x):
            return x

        @torch.compile
        def f(x):
            if x.sum() > 0:
                x = first(x)
            return x + 1
        """,
        "lambda: first(x).clone()",
    ),
    "a choice by a flag": (
        """
        @torch.compile
        def f(x, kind: str = "sigmoid"):
            if (x > 1).any():
                x = x.sigmoid() if kind == "sigmoid" else torch.softmax(x, dim=1)
            return x + 1
        """,
        'lambda: x.sigmoid() if kind == "sigmoid" else torch.softmax(x, dim=1)',
    ),
}


@pytest.mark.parametrize(("source", "part"), CALLED.values(), ids=CALLED)
def test_an_arm_calls_what_only_computes(source, part, rewrite):
    new = rewrite(source)
    assert "torch.cond(" in new
    assert part in new


IMPURE = {
    "it prints": ("print('x')\n    return x", "may have an effect"),
    "it draws": ("return x + torch.rand_like(x)", "draws random numbers"),
    "it draws deeper": ("return torch.dropout(x, 0.5, True)", "draws random numbers"),
    "it counts": ("Count.n += 1\n    return x", "may have an effect"),
    "it remembers": ("Count.n = x\n    return x", "which others may hold"),
    "it writes into its argument": ("x[0] = 1\n    return x", "which others may hold"),
    "it writes in place": ("return x.mul_(2)", "writes into a tensor"),
    "it writes out": ("return torch.add(x, 1, out=x)", "writes into a tensor"),
    "it reads": ("return x * x.sum().item()", "reads a tensor into Python"),
    "it asks": ("if x.max() > 3:\n        return x.sum()\n    return -x", "ask a tensor"),
    "it compares truth": ("return x.sum() if x.max() > 3 else -x", "more than compute"),
    "it selects": ("return x[x > 0]", "may have any size"),
    "it loops": ("for each in x:\n        x = x + each\n    return x", "straight code"),
    "it uses a mode": ("with torch.no_grad():\n        return x * 2", "straight code"),
    "it calls the unknown": ("return unknown(x)", "nothing is known"),
}


@pytest.mark.parametrize(("body", "part"), IMPURE.values(), ids=IMPURE)
def test_an_arm_does_not_call_what_does_more(body, part, left):
    source = f"""
class Count:
    n = 0


def helper(x):
    {body}


@torch.compile
def f(x):
    if x.sum() > 0:
        x = helper(x)
    return x + 1
"""
    reasons = [each.no_fix_reason or "" for each in left(source)]
    assert any("in `helper`, which an arm calls" in each and part in each for each in reasons)


REPORTS = {
    "what the report reads is computed by the arm": (
        """
        import warnings

        @torch.compile
        def f(x):
            if x.sum() > 0:
                x = x * 2
                warnings.warn(f"{x}")
            return x + 1
        """
    ),
    "the report stands in a try": (
        """
        import warnings

        @torch.compile
        def f(x):
            try:
                if x.sum() > 0:
                    warnings.warn("large")
                    x = x * 2
            except UserWarning:
                x = x * 3
            return x + 1
        """
    ),
    "the report changes a list": (
        """
        @torch.compile
        def f(x, seen):
            if x.sum() > 0:
                seen.append(x)
                x = x * 2
            return x + 1
        """
    ),
}


@pytest.mark.parametrize("source", REPORTS.values(), ids=REPORTS)
def test_a_report_stays_where_it_cannot_be_taken_out(source, rewrite):
    assert "custom_op" not in rewrite(source)
