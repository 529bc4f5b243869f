"""A fix is safe only if nobody can tell: by names, by identity, by effects, by callers."""

import textwrap

import pytest

from jitlint import engine
from jitlint.config import Settings
from jitlint.finding import Safety
from jitlint.rule import load_rules

HEADER = "import torch\nfrom torch import nn\n\n\n"


def found_in(tmp_path, source):
    path = tmp_path / "case.py"
    path.write_text(HEADER + textwrap.dedent(source).lstrip("\n"))
    result = engine.check([path], Settings(cache=False, select=("trace-branch",)), load_rules())
    assert not result.problems
    return result.diagnostics[0]


WITHHELD = {
    "a value that is not used may fail": (
        """
        @torch.compile
        def f(x):
            if x.sum() > 0:
                unused = x[50]
                y = x * 2
            else:
                y = x + 1
            return y
        """,
        "`x[50]` may fail, though nothing uses it",
    ),
    "a value that is not used has an effect": (
        """
        @torch.compile
        def f(x):
            if x.sum() > 0:
                unused = x.add_(1)
                return x * 2
            return x + 1
        """,
        "changes a tensor in place (`x.add_`)",
    ),
    "a value that is overwritten has an effect": (
        """
        @torch.compile
        def f(x):
            if x.sum() > 0:
                y = x.mul_(2)
                y = x + 1
            else:
                y = x * 3
            return y
        """,
        "changes a tensor in place (`x.mul_`)",
    ),
    "print returns None": (
        """
        @torch.compile
        def f(x):
            if x.sum() > 0:
                unused = print("positive")
                return x * 2
            return x + 1
        """,
        "an arm calls `print`, which has an effect",
    ),
    "a global variable": (
        """
        @torch.compile
        def f(x):
            global last
            if x.sum() > 0:
                y = x * 2
                last = x + 1
            else:
                y = x * 3
                last = x + 2
            return y
        """,
        "`last` is assigned, which other functions may read",
    ),
    "a global behind an early return": (
        """
        @torch.compile
        def f(x):
            global last
            if x.sum() > 0:
                return x * 2
            last = x * 5
            return x + 1
        """,
        "`last` is assigned",
    ),
    "an early return skips what finally reads": (
        """
        @torch.compile
        def f(x, log):
            a = x * 3
            try:
                if x.sum() > 0:
                    return x * 2
                a = x + 1
                return a
            finally:
                log(a)
        """,
        "`a` gets another value behind the early return",
    ),
    "a nonlocal that another function assigns": (
        """
        @torch.compile
        def f(x):
            def bump():
                nonlocal y
                y = x * 1
            y = x.sum()
            bump()
            return y * 2 if y > 0 else y + 1
        """,
        "`y` may be assigned by other functions",
    ),
    "names in the hands of locals": (
        """
        @torch.compile
        def f(x):
            if x.sum() > 0:
                y = x * 2
                z = x + 3
            else:
                y = x + 1
                z = x + 4
            return y, len(locals())
        """,
        "may look at its variables by name (`locals`)",
    ),
    "a comprehension has its own names": (
        """
        @torch.compile
        def f(x):
            xs = [x * 1, x + 4]
            t = x.sum()
            return [t * 2 if t > 0 else t + 1 for t in xs], t
        """,
        "`t > 0` is not known to have one element",
    ),
    "a lambda has its own names": (
        """
        @torch.compile
        def f(x):
            t = x.sum()
            double = lambda t: t * 2 if t > 0 else t + 1
            return double(x) + t
        """,
        "`t > 0` is not known to have one element",
    ),
    "another shape in place": (
        """
        @torch.compile
        def f(x):
            y = x * 1
            y.unsqueeze_(0)
            return y * 2 if x.sum() > 0 else x * 2
        """,
        "`y.unsqueeze_(0)` changes what a tensor is in place",
    ),
    "a gradient that comes in place": (
        """
        @torch.compile
        def f(x, w):
            y = torch.zeros_like(x)
            y.add_(w)
            return y * 2 if x.sum() > 0 else torch.zeros_like(x)
        """,
        "one arm does not depend on `y`",
    ),
    "identity": (
        """
        @torch.compile
        def f(x):
            z = x * 3
            y = z if x.sum() > 0 else x * 2
            return y * 2, y is z
        """,
        "could tell it from a copy",
    ),
    "one object under two names": (
        """
        @torch.compile
        def f(x):
            if x.sum() > 0:
                y = x * 2
                z = y
            else:
                y = x + 1
                z = y
            return y, z
        """,
        "`z` and `y` may be one tensor after the branch",
    ),
    "torch is a parameter": (
        """
        import torch as th

        @th.compile
        def f(x, torch):
            if x.sum() > 0:
                return x * 2
            return x + 1
        """,
        "the fix needs `torch`, which is a variable of the function",
    ),
    "torch is imported later": (
        """
        @torch.compile
        def f(x):
            if x.sum() > 0:
                y = x * 2
            else:
                y = x + 3
            import torch
            return torch.sin(y)
        """,
        "the fix needs `torch`, which is a variable of the function",
    ),
    "a caller with a number": (
        """
        def double(v):
            if v > 0:
                return v * 2
            return v + 1

        @torch.compile
        def f(x):
            return double(x.sum()) + double(2.0)
        """,
        "`double(2.0)` passes a number for `v`",
    ),
    "an attribute that is assigned in between": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("state", torch.ones(3))

            def forward(self, x):
                old = self.state * 2
                self.state = self.state[:1]
                if x.sum() > 0:
                    return old
                return self.state * 2

        net = torch.compile(Net())
        """,
        "`self.state` is assigned here",
    ),
    "a view that a unary plus does not copy": (
        """
        @torch.compile
        def f(x):
            return +x if x.sum() > 0 else x * 1
        """,
        "return `(+x).clone()` if nobody relies on that",
    ),
    "a property": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(1))

            @property
            def noisy(self):
                print("read")
                return self.weight

            def forward(self, x):
                if x.sum() > 0:
                    return x * self.noisy
                return x + self.noisy

        net = torch.compile(Net())
        """,
        "`self.noisy` is a property, which may have effects",
    ),
}

LAYERS = {
    "nn.Linear(3, 3); self.layer.register_forward_hook(print)": "register_forward_hook",
    "nn.SiLU(inplace=True)": "inplace=True",
    "nn.SiLU(True)": "SiLU(True",
    "nn.Embedding(10, 3, max_norm=0.1)": "max_norm",
    "nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))": "",
}


@pytest.mark.parametrize(("source", "reason"), WITHHELD.values(), ids=WITHHELD)
def test_what_somebody_could_notice_is_withheld(tmp_path, source, reason):
    found = found_in(tmp_path, source)
    assert found.fix_safety is None, found.fix_title
    assert reason in found.no_fix_reason


@pytest.mark.parametrize(("layer", "word"), LAYERS.items(), ids=LAYERS)
def test_a_layer_that_does_more_than_its_operator(tmp_path, layer, word):
    source = f"""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = {layer}

            def forward(self, x):
                if x.sum() > 0:
                    return self.layer(x) * 2
                return self.layer(x) + 1

        net = torch.compile(Net())
        """
    found = found_in(tmp_path, source)
    assert found.fix_safety is None
    assert word in found.no_fix_reason


SHOWN = ["y.stride()", "y.is_contiguous()", "y.view(-1) * 1"]


@pytest.mark.parametrize("shown", SHOWN)
def test_strides_that_are_looked_at_are_a_condition(tmp_path, shown):
    source = f"""
        @torch.compile
        def f(x):
            y = x if x.mean() > 0 else x * 2
            return y * 2, {shown}
        """
    assert "`x` is contiguous" in found_in(tmp_path, source).fix_title


def test_lists_are_selected_item_by_item(rewrite):
    source = """
        @torch.compile
        def f(x):
            return [x * 2] if x.sum() > 0 else [x * 3]
        """
    assert "return [torch.where(x.sum() > 0, x * 2, x * 3)]" in rewrite(source)


def test_a_test_that_may_fail_is_not_deleted_in_silence(tmp_path):
    source = """
        @torch.compile
        def f(x):
            if x.sum() > 0:
                pass
            return x + 1
        """
    found = found_in(tmp_path, source)
    assert found.fix_safety is Safety.UNSAFE
    assert "`x.sum()` is real" in found.fix_title


def test_a_member_of_an_enumeration_equals_no_tensor(tmp_path):
    source = """
        import enum

        class Six(enum.Enum):
            MEMBER = 6

        @torch.compile
        def f(x):
            match x.sum():
                case Six.MEMBER:
                    return x * 2
                case _:
                    return x + 1
        """
    found = found_in(tmp_path, source)
    assert found.fix_safety is Safety.UNSAFE
    assert "`Six.MEMBER` is a number" in found.fix_title


def test_a_number_that_does_not_reach_the_branch_is_none_of_its_business(tmp_path):
    found = found_in(
        tmp_path,
        """
        def curve(x, bins):
            bins = x + 1
            y = x * 2
            if y.sum() > 0:
                y = y - 1
            return y + 1, bins

        @torch.compile
        def f(x):
            return curve(x, None)[0]
        """,
    )
    assert found.fix_safety is not None
