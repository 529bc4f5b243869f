"""Checks that raise, and the assertions in the graph that they become."""

import textwrap

import pytest

CHECKED = {
    "the condition is turned round, and no comparison is": (
        """
        @torch.compile
        def f(x):
            if (x < 0).any():
                raise RuntimeError("negative")
            return x.sqrt()
        """,
        'torch._assert_async(~(x < 0).any(), "negative")',
    ),
    "a comparison of one element is not flipped either": (
        """
        @torch.compile
        def f(x):
            if x.sum() > 1:
                raise RuntimeError("large")
            return x + 1
        """,
        'torch._assert_async(~(x.sum() > 1), "large")',
    ),
    "not": (
        """
        @torch.compile
        def f(x):
            if not (x > 0).all():
                raise RuntimeError("not positive")
            return x.sqrt()
        """,
        'torch._assert_async((x > 0).all(), "not positive")',
    ),
    "any number that is not zero": (
        """
        @torch.compile
        def f(x):
            if x.sum():
                raise RuntimeError("not balanced")
            return x + 1
        """,
        'torch._assert_async(~(x.sum() != 0), "not balanced")',
    ),
    "comments stay": (
        """
        @torch.compile
        def f(x):
            # first of all
            if torch.isnan(x).any():
                raise RuntimeError("gaps")  # loud
            return x + 1
        """,
        """# first of all
        torch._assert_async(~torch.isnan(x).any(), "gaps")  # loud""",
    ),
    "a flag in front stays in Python": (
        """
        @torch.compile
        def f(x, strict):
            if strict and torch.isnan(x).any(): raise RuntimeError("gaps")
            return x + 1
        """,
        """if strict:
            torch._assert_async(~torch.isnan(x).any(), "gaps")""",
    ),
}


@pytest.mark.parametrize(("source", "expected"), CHECKED.values(), ids=CHECKED)
def test_a_check_becomes_an_assertion(rewrite, source, expected):
    new = textwrap.dedent(rewrite(source))
    assert _flat(expected) in _flat(new)
    assert "raise" not in new


def _flat(code: str) -> str:
    return "\n".join(line.strip() for line in code.splitlines())


def test_the_module_s_own_name_of_torch_is_used(tmp_path, rewrite):
    new = rewrite("""
        import torch as th

        @th.compile
        def f(x):
            if th.isnan(x).any():
                raise RuntimeError("gaps")
            return x
        """)
    assert "._assert_async(~th.isnan(x).any()" in new


WITHHELD = {
    "another exception": (
        """
        @torch.compile
        def f(x):
            if (x < 0).any():
                raise ValueError("negative")
            return x
        """,
        "raises RuntimeError where the code raises ValueError",
    ),
    "a computed message": (
        """
        @torch.compile
        def f(x):
            if (x < 0).any():
                raise RuntimeError(f"negative: {x.min()}")
            return x
        """,
        "cannot compute the message",
    ),
    "no message": (
        """
        @torch.compile
        def f(x):
            if (x < 0).any():
                raise RuntimeError
            return x
        """,
        "no message, and backends drop",
    ),
    "a cause": (
        """
        @torch.compile
        def f(x, error):
            if (x < 0).any():
                raise RuntimeError("negative") from error
            return x
        """,
        "has a cause",
    ),
    "inside of try": (
        """
        @torch.compile
        def f(x):
            try:
                if (x < 0).any():
                    raise RuntimeError("negative")
            except RuntimeError:
                x = -x
            return x
        """,
        "stands in a `try`",
    ),
    "with an else": (
        """
        @torch.compile
        def f(x):
            if (x < 0).any():
                raise RuntimeError("negative")
            else:
                x = x.sqrt()
            return x
        """,
        "has an `else`",
    ),
    "an assert with a computed message": (
        """
        @torch.compile
        def f(x):
            assert x.sum() > 0, f"bad {x.sum()}"
            return x
        """,
        "with a constant message the `assert` is traced",
    ),
    "an assert under torch.jit.trace": (
        """
        def f(x):
            assert x.sum() > 0, "bad"
            return x

        traced = torch.jit.trace(f, (torch.ones(2),))
        """,
        "torch.jit.trace drops the assertion",
    ),
}


AS_OPERATORS = (
    *("another exception", "a computed message", "no message"),
    "an assert with a computed message",
)
"""Checks that no assertion in the graph can replace: they become operators with an effect."""


@pytest.mark.parametrize("name", [name for name in WITHHELD if name not in AS_OPERATORS])
def test_a_check_is_left_alone_with_a_reason(reason, name):
    source, part = WITHHELD[name]
    assert part in reason(source)


@pytest.mark.parametrize("name", AS_OPERATORS)
def test_a_check_that_no_assertion_replaces_becomes_an_operator(rewrite, name):
    new = rewrite(WITHHELD[name][0])
    assert '@torch.library.custom_op("module::' in new
    assert ".register_effect(torch.library.EffectType.ORDERED)" in new


def test_an_assertion_is_never_called_safe(plan):
    (file,) = plan(CHECKED["not"][0]).files
    assert file.has_unsafe
    assert "CUDA" in (file.applied[0].fix_title or "")
