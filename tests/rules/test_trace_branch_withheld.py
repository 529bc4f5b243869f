"""Branches that are reported and left alone, each with the reason that the user is told."""

import textwrap

import pytest

from jitlint import engine
from jitlint.config import Settings
from jitlint.finding import Safety
from jitlint.rule import load_rules

HEADER = "import torch\nfrom torch import nn\n\n\n"

WITHHELD = {
    "a tensor that a function keeps before it is bound anew": (
        """
        kept = []

        @torch.compile
        def f(x):
            def keep():
                kept.append(y)

            y = x * 2
            keep()
            if x.sum() > 0:
                y = y - 1
            return y
        """,
        "could tell it from a copy",
    ),
    "a temporary that is used twice, and whose gradient may be infinite": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            if x.sum() > 0:
                root = x.sqrt()
                y = root + root.abs()
            return y + 1
        """,
        "an arm uses its `root` twice",
    ),
    "a temporary that gets another value": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            if x.sum() > 0:
                part = x - 1
                y = torch.maximum(part, -part)
                part = y + 1
                y = torch.minimum(part, -part)
            return y + 1
        """,
        "an arm gives its `part` two values",
    ),
    "a tensor that is kept before it is bound anew": (
        """
        kept = []

        @torch.compile
        def f(x):
            y = x * 2
            kept.append(y)
            if x.sum() > 0:
                y = y - 1
            return y
        """,
        "what becomes of the result could tell it from a copy",
    ),
    "dtype differs": (
        """
        @torch.compile
        def f(x):
            return x > 0 if x.sum() > 0 else torch.zeros_like(x)
        """,
        "different dtypes",
    ),
    "shape differs": (
        """
        @torch.compile
        def f(x):
            if x.sum() > 0:
                return x.sum()
            return x * 1
        """,
        "different shapes",
    ),
    "an early return before a search in another tensor": (
        """
        @torch.compile
        def f(x, y):
            if not x.sum():
                return torch.tensor(0.0)
            z = y[x.argsort()]
            return z.sum()
        """,
        "indexes by data",
    ),
    "an early return before a change": (
        """
        @torch.compile
        def f(x):
            y = x.abs()
            if not x.sum():
                return y.sum()
            z = y.add_(1)
            return z.sum()
        """,
        "changes a tensor in place",
    ),
    "an early return in a block that more follows": (
        """
        @torch.compile
        def f(x, flag: bool):
            if flag:
                if not x.sum():
                    return x.sum()
            x = x * 2
            return x.sum()
        """,
        "skips more than plain assignments",
    ),
    "an early return in a context": (
        """
        @torch.compile
        def f(x):
            with torch.no_grad():
                if not x.sum():
                    return x.sum()
                y = x.mean()
            return y
        """,
        "skips more than plain assignments",
    ),
    "random numbers in the arms": (
        """
        @torch.compile
        def f(x):
            if x.sum() > 0:
                return x + torch.rand_like(x)
            return x - torch.rand_like(x)
        """,
        "draws random numbers (`torch.rand_like`)",
    ),
    "a layer that is skipped at random": (
        """
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)
                self.drop = nn.Dropout(0.1)

            def forward(self, x, mask=None):
                return x + self.drop(self.linear(x))

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([Layer() for _ in range(3)])
                self.rate = 0.1

            def forward(self, x, mask=None):
                for layer in self.layers:
                    skip = False
                    if self.training and self.rate > 0:
                        skip = torch.rand([]) < self.rate
                    if not skip:
                        x = layer(x, mask=mask)
                return x

        net = torch.compile(Net())
        """,
        "compile the layers (`layer.compile()`), not what chooses them",
    ),
    "dropout in an arm": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.drop = nn.Dropout(0.5)

            def forward(self, x):
                if x.sum() > 0:
                    return self.drop(x)
                return x * 2

        net = torch.compile(Net())
        """,
        "a Dropout may hold state, draw random numbers",
    ),
    "index out of range in the arm not taken": (
        """
        @torch.compile
        def f(x, i: torch.Tensor):
            if i.sum() < 3:
                return x[i] * 2
            return x[i] * 3
        """,
        "indexes by data",
    ),
    "division of whole numbers": (
        """
        @torch.compile
        def f(x, n: torch.Tensor):
            if n.sum() != 0:
                return x // n
            return x * n
        """,
        "divides whole numbers",
    ),
    "an arm that does not require grad": (
        """
        @torch.compile
        def f(x):
            if x.sum() > 0:
                return x * 2
            return torch.zeros_like(x)
        """,
        "would begin to require a gradient",
    ),
    "a detached arm": (
        """
        @torch.compile
        def f(x):
            if x.sum() > 0:
                return x * 2
            return x.detach() * 3
        """,
        "would begin to require a gradient",
    ),
    "an arm that returns the input": (
        """
        @torch.compile
        def f(x):
            if x.sum() > 0:
                return x * 2
            return x
        """,
        "returns `x` itself, which the caller may hold",
    ),
    "a view of the input": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            if x.sum() > 0:
                z = x[:2]
            else:
                z = y[:2]
            return z
        """,
        "`x[:2]` itself",
    ),
    "gradients of None become zeros": (
        """
        @torch.compile
        def f(x, y: torch.Tensor):
            if x.sum() > 0:
                return x * 2
            return y * 3
        """,
        "only one arm uses `x`: its gradient would become zeros",
    ),
    "two layers": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(4, 4)
                self.b = nn.Linear(4, 4)

            def forward(self, x):
                return self.a(x) if x.sum() > 0 else self.b(x)

        net = torch.compile(Net())
        """,
        "only one arm uses `self.a`",
    ),
    "more than one element": (
        """
        @torch.compile
        def f(x):
            if x > 0:
                return x * 2
            return x * 3
        """,
        "not known to have one element",
    ),
    "an item that is appended": (
        """
        seen = []

        @torch.compile
        def f(x):
            if x.sum() > 0:
                seen.append(x)
            return x * 3
        """,
        "has an effect besides its result",
    ),
    "an attribute that is written": (
        """
        class Net(nn.Module):
            def forward(self, x):
                if x.sum() > 0:
                    self.last = x * 2
                return x * 3

        net = torch.compile(Net())
        """,
        "writes into an object",
    ),
    "None in one arm": (
        """
        @torch.compile
        def f(x):
            if x.sum() > 0:
                return None
            return x * 3
        """,
        "returns None",
    ),
    "strings": (
        """
        @torch.compile
        def f(x):
            mode = "up" if x.sum() > 0 else "down"
            return x * 2, mode
        """,
        "string",
    ),
    "numbers that a float32 does not hold": (
        """
        @torch.compile
        def f(x):
            scale = 0.1 if x.sum() > 0 else 0.5
            return x * scale
        """,
        "does not hold exactly",
    ),
    "numbers that are used as such": (
        """
        @torch.compile
        def f(x):
            dim = 0 if x.sum() > 0 else 1
            return x.sum(dim)
        """,
        "more than tensor arithmetic",
    ),
    "a second test that fails where it is skipped": (
        """
        @torch.compile
        def f(x):
            if x.sum() > 0 and x.max() < 2:
                return x * 2
            return x * 3
        """,
        "`x.max()` fails for some inputs",
    ),
    "a function of unknown effects": (
        """
        def helper(x):
            print("called")
            return x + 1

        @torch.compile
        def f(x):
            return helper(x) if x.sum() > 0 else x * 2
        """,
        'in `helper`, which an arm calls, `print("called")` may have an effect',
    ),
    "a product, whose gradient looks at the data": (
        """
        @torch.compile
        def f(x):
            return x.prod() if x.sum() > 0 else x.sum()
        """,
        "gradient of `prod`",
    ),
    "mixed with a Python value, and an else": (
        """
        @torch.compile
        def f(x, flag: bool = True):
            if flag and x.sum() > 0:
                y = x * 2
            else:
                y = x * 3
            return y + 1
        """,
        "mixes tensors with Python values",
    ),
    "kept aliases": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            z = y if y.sum() > 0 else -y
            z.add_(1)
            return y + z
        """,
        "could tell it from a copy",
    ),
    "a comment inside the expression": (
        """
        @torch.compile
        def f(x):
            return (
                x + 1  # up
                if x.sum() > 0
                else x - 1
            )
        """,
        "the comment `# up` would be lost",
    ),
}

UNSAFE = {
    "variables that are made of each other": (
        """
        @torch.compile
        def f(x):
            y = nn.functional.dropout(x, 0.1)
            y = nn.functional.dropout(y, 0.1)
            if x.sum() > 0:
                y = y - 1
            y = nn.functional.dropout(y, 0.1)
            y = nn.functional.dropout(y, 0.1)
            return y + 1
        """,
        "`y` is floating",
    ),
    "the range of a dtype that may be one of whole numbers": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            if x.sum() > 0:
                y = y.clamp(max=torch.finfo(y.dtype).max)
            return y + 1
        """,
        "is floating",
    ),
    "dtype differs for whole numbers": (
        """
        @torch.compile
        def f(x):
            if x.sum() > 0:
                return x * 2
            return x / 2
        """,
        "right if `x` is floating",
    ),
    "an early return before what may fail": (
        """
        @torch.compile
        def f(x):
            y = x.detach()
            if not y.sum():
                return y.sum()
            z = y.reshape(2, -1)
            return z.sum()
        """,
        "nothing fails behind the early return",
    ),
    "a number that is promoted": (
        """
        @torch.compile
        def f(x):
            scale = 2.0 if x.sum() > 0 else 0.5
            return x * scale
        """,
        "at least one dimension",
    ),
}

SAFE = {
    "a guard that proves the dtype": (
        """
        @torch.compile
        def f(x):
            y = x * 2
            if y.dtype in (torch.float16, torch.bfloat16) and torch.isinf(y).any():
                top = torch.finfo(y.dtype).max
                y = torch.clamp(y, min=-top, max=top)
            return (y,)
        """,
        "torch.where",
    ),
    "a tensor that a call was given before it was bound anew": (
        """
        @torch.compile
        def f(x, helper):
            helper(x)
            y = x * 2
            helper(x)
            if x.sum() > 0:
                y = y - 1
            outputs = (y,)
            outputs += (x,)
            return outputs
        """,
        "torch.where",
    ),
    "floating by the test": (
        """
        @torch.compile
        def f(x):
            if x.mean() > 0:
                return x * 2
            return x / 2
        """,
        "torch.where",
    ),
}


def only_finding(tmp_path, source):
    path = tmp_path / "case.py"
    path.write_text(HEADER + textwrap.dedent(source).lstrip("\n"))
    settings = Settings(cache=False, select=("trace-branch",))
    result = engine.check([path], settings, load_rules())
    assert not result.problems
    return result.diagnostics[0]


@pytest.mark.parametrize(("source", "reason"), WITHHELD.values(), ids=WITHHELD)
def test_the_fix_is_withheld_with_a_reason(tmp_path, source, reason):
    found = only_finding(tmp_path, source)
    assert found.fix_safety is None, found.fix_title
    assert reason in found.no_fix_reason


@pytest.mark.parametrize(("source", "condition"), UNSAFE.values(), ids=UNSAFE)
def test_the_fix_is_unsafe_under_a_condition(tmp_path, source, condition):
    found = only_finding(tmp_path, source)
    assert found.fix_safety is Safety.UNSAFE
    assert condition in found.fix_title


@pytest.mark.parametrize(("source", "operator"), SAFE.values(), ids=SAFE)
def test_the_fix_is_safe(tmp_path, source, operator):
    found = only_finding(tmp_path, source)
    assert found.fix_safety is Safety.SAFE
    assert operator in found.fix_title
