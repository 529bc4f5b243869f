"""Branches under torch.jit.trace, kept by scripts."""

import textwrap

import pytest

from jitlint.finding import Safety

WHOLE = {
    "tensors only": """
        def f(x):
            if x.sum() > 0:
                return x
            return x / 2

        traced = torch.jit.trace(f, (torch.ones(2),))
        """,
    "a helper of what is traced": """
        def f(x, limit: float):
            if x.sum() > limit:
                x = x * 2
            return x

        def g(x):
            return f(x + 1, 0.5)

        traced = torch.jit.trace(g, (torch.ones(2),))
        """,
    "the size of a tensor": """
        def f(x):
            if x.shape[0] > 2:
                return x[:2]
            return x

        traced = torch.jit.trace(f, (torch.ones(2),))
        """,
    "a loop": """
        def f(x):
            while x.sum() < 10:
                x = x * 2
            return x

        traced = torch.jit.trace(f, (torch.ones(2),))
        """,
}


@pytest.mark.parametrize("source", WHOLE.values(), ids=WHOLE)
def test_a_function_is_scripted_when_it_is_traced(rewrite, left, source):
    new = rewrite(source)
    expected = textwrap.dedent(source).lstrip("\n")
    assert new == expected.replace("def f", "@torch.jit.script_if_tracing\ndef f", 1)
    assert left(source) == []


def test_only_tensors_are_safe(plan):
    (tensors,) = plan(WHOLE["tensors only"]).files
    (loop,) = plan(WHOLE["a loop"]).files
    assert tensors.applied[0].fix_safety is Safety.SAFE
    assert loop.applied[0].fix_safety is Safety.UNSAFE


def test_a_branch_of_a_method_becomes_a_function(rewrite, left):
    source = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(2, 2)
                self.register_buffer("scale", torch.ones(2))
                self.limit = 0.5

            def forward(self, x):
                y = self.lin(x)

                # loud
                if y.sum() > self.limit:  # very
                    z = y * self.scale
                else:
                    z = y.relu()
                if z.shape[0] % 2:
                    return z[1:]
                return z

        traced = torch.jit.trace(Net(), (torch.ones(2, 2),))
        """
    expected = """
        @torch.jit.script_if_tracing
        def _forward_branch(limit: float, scale, y):
            # loud
            if y.sum() > limit:  # very
                z = y * scale
            else:
                z = y.relu()
            return z


        @torch.jit.script_if_tracing
        def _forward_branch_2(z):
            if z.shape[0] % 2:
                return z[1:]
            return z


        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(2, 2)
                self.register_buffer("scale", torch.ones(2))
                self.limit = 0.5

            def forward(self, x):
                y = self.lin(x)

                z = _forward_branch(self.limit, self.scale, y)
                return _forward_branch_2(z)

        traced = torch.jit.trace(Net(), (torch.ones(2, 2),))
        """
    assert rewrite(source).lstrip("\n") == textwrap.dedent(expected).lstrip("\n")
    assert left(source) == []


def test_a_scripted_function_is_not_looked_into_and_its_result_is_known(left):
    source = """
        @torch.jit.script_if_tracing
        def f(x):
            if x.sum() > 0:
                return x * 2
            return x / 2

        @torch.jit.script_if_tracing
        def g(x):
            if x.sum() > 0:
                return x * 2
            return x / 2

        def h(x):
            y = g(x)
            while y.sum() > 1:
                y = y - 1
                print(y)
            return y

        traced = torch.jit.trace(f, (torch.ones(2),))
        other = torch.jit.trace(h, (torch.ones(2),))
        """
    (found,) = left(source)
    assert "y.sum() > 1" in found.message


WITHHELD = {
    "a parameter that is no tensor": (
        """
        def f(x, n=2):
            while x.sum() > n:
                x = x - 1
            return x

        traced = torch.jit.trace(f, (torch.ones(2),))
        """,
        "the type of",
    ),
    "a global": (
        """
        LIMIT = 3

        def f(x):
            while x.sum() > LIMIT:
                x = x - 1
            return x

        traced = torch.jit.trace(f, (torch.ones(2),))
        """,
        "`LIMIT` is not a local variable",
    ),
    "an effect": (
        """
        def f(x):
            while x.sum() > 1:
                x = x - 1
                print(x)
            return x

        traced = torch.jit.trace(f, (torch.ones(2),))
        """,
        "`print` is not known to be an operator of TorchScript",
    ),
    "a submodule": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.lin = nn.Linear(2, 2)

            def forward(self, x):
                while x.sum() > 1:
                    x = self.lin(x)
                return x

        traced = torch.jit.trace(Net(), (torch.ones(2, 2),))
        """,
        "`self.lin` is a layer",
    ),
}


@pytest.mark.parametrize(("source", "part"), WITHHELD.values(), ids=WITHHELD)
def test_a_branch_is_left_alone_with_a_reason(reason, source, part):
    assert part in reason(source)


def test_a_default_of_none_is_no_tensor(plan):
    source = """
        def f(x: torch.Tensor, y: torch.Tensor = None):
            if x.sum() > 0:
                return x * 2
            return x - 1

        traced = torch.jit.trace(f, (torch.ones(2),))
        """
    (file,) = plan(source).files
    assert "Script `f`" not in (file.applied[0].fix_title or "")


def test_python_takes_a_float_for_an_int(plan):
    source = """
        def f(x, n: int):
            if x.sum() > n:
                return x * 2
            return x - 1

        def g(x):
            return f(x, 2.5)

        traced = torch.jit.trace(g, (torch.ones(2),))
        """
    (file,) = plan(source).files
    assert file.applied[0].fix_safety is Safety.UNSAFE
