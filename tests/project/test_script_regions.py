"""What `torch.jit.script` compiles, and what it leaves to Python.

Each module marks with `# refused` the parameters that TorchScript takes for Tensors.
"""

import textwrap

import pytest

from jitlint import engine
from jitlint.config import Settings
from jitlint.rule import load_rules

HEADER = "import torch\nfrom torch import nn\n"
COMPILED = {
    "a decorated function": """
        @torch.jit.script
        def f(x, n=3):  # refused
            return x * n
    """,
    "a function by call": """
        def f(x, n=3):  # refused
            return x * n
        scripted = torch.jit.script(f)
    """,
    "a helper": """
        def helper(x, n=3):  # refused
            return x * n
        @torch.jit.script
        def f(x):
            return helper(x)
    """,
    "the forward and the methods of a module": """
        class Net(nn.Module):
            def helper(self, x, n=3):  # refused
                return x * n
            def forward(self, x, flag=True):  # refused
                return self.helper(x)
        net = torch.jit.script(Net())
    """,
    "an exported method": """
        class Net(nn.Module):
            def forward(self, x):
                return x
            @torch.jit.export
            def other(self, x, n=3):  # refused
                return x * n
        def export():
            return torch.jit.script(Net().eval())
    """,
    "a submodule that is not called": """
        class Part(nn.Module):
            def forward(self, x, n=3):  # refused
                return x * n
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.parts = nn.ModuleList([Part()])
            def forward(self, x):
                return x
        net = torch.jit.script(Net())
    """,
    "all methods of a class": """
        @torch.jit.script
        class Pair:
            def __init__(self, a, n=3):  # refused
                self.a = a
            def scaled(self, k=2.0):  # refused
                return self.a * k
    """,
    "a script method": """
        class Net(torch.jit.ScriptModule):
            @torch.jit.script_method
            def forward(self, x, n=3):  # refused
                return x * n
    """,
    "the signature of what it ignores": """
        @torch.jit.ignore
        def show(x, n=3):  # refused
            print(x, n)
        @torch.jit.script
        def f(x):
            show(x)
            return x
    """,
    "a scripted helper of a scripted function": """
        @torch.jit.script
        def helper(x, n):  # refused
            return x * n
        @torch.jit.script
        def f(x):
            return helper(x, 2.0)
    """,
}
LEFT_ALONE = {
    "a function that is not compiled": """
        def f(x, n=3):
            return x * n
    """,
    "what an ignored function calls": """
        def helper(x, n=3):
            return x * n
        @torch.jit.ignore
        def show(x):
            print(helper(x))
        @torch.jit.script
        def f(x):
            show(x)
            return x
    """,
    "methods that nothing compiled calls": """
        class Net(nn.Module):
            def __init__(self, width=3, names=()):
                super().__init__()
            def describe(self, prefix="net"):
                return prefix
            def forward(self, x):
                return x
        net = torch.jit.script(Net())
    """,
    "behind is_scripting": """
        def helper(x, n=3):
            return x * n
        @torch.jit.script
        def f(x):
            if not torch.jit.is_scripting():
                return helper(x)
            return x
    """,
    "a traced or compiled function": """
        @torch.compile
        def f(x, n=3):
            return x * n
        def g(x, n=3):
            return x * n
        traced = torch.jit.trace(g, torch.ones(2))
    """,
}


def refused(tmp_path, source):
    path = tmp_path / "module.py"
    path.write_text(HEADER + textwrap.dedent(source))
    settings = Settings(cache=False, select=("script-signature",))
    found = engine.check([path], settings, load_rules())
    assert not found.problems
    return [each.span.line for each in found.diagnostics]


def marked(source):
    lines = (HEADER + textwrap.dedent(source)).splitlines()
    return [number for number, line in enumerate(lines, 1) if "# refused" in line]


@pytest.mark.parametrize("name", COMPILED)
def test_torch_jit_script_compiles(name, tmp_path):
    assert refused(tmp_path, COMPILED[name]) == marked(COMPILED[name])


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_torch_jit_script_leaves_alone(name, tmp_path):
    assert refused(tmp_path, LEFT_ALONE[name]) == []
