"""Which code runs under a compiler, and by which chain of calls from where.

Each case is a small project; `# break` marks the lines that must be reported, and no other
line may be.
"""

import re
import textwrap
from pathlib import Path

import pytest

from jitlint import engine
from jitlint.analysis.observations import CompiledFunction
from jitlint.config import Settings
from jitlint.finding import Diagnostic, Severity
from jitlint.project import link
from jitlint.region import RegionKind
from jitlint.rule import Context, Rule, load_rules


def check(folder: Path, files: dict[str, str], **settings: object) -> list[Diagnostic]:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    options = Settings(root=folder, cache=False, **settings)  # type: ignore[arg-type]
    result = engine.check([folder], options, load_rules())
    assert not result.problems
    return list(result.diagnostics)


def places(found: list[Diagnostic]) -> set[tuple[str, int]]:
    return {(Path(each.path).name, each.span.line) for each in found}


def marked(files: dict[str, str]) -> set[tuple[str, int]]:
    return {
        (Path(name).name, number)
        for name, text in files.items()
        for number, line in enumerate(textwrap.dedent(text).splitlines(), 1)
        if re.search(r"# break", line)
    }


BRANCH = """
    def gate(x):
        if x.sum() > 0:  # break
            return x * 2
        return x
"""

REACHED = {
    "a module that a compiled function is given": """
        import torch
        class Gate(torch.nn.Module):
            def forward(self, x):
                if x.sum() > 0:  # break
                    return x * 2
                return x
        @torch.compile
        def step(module, x):
            return module(x) + 1
        """,
    "a list that starts empty": """
        import torch
        @torch.compile
        def gate(x):
            sums = []
            for part in (x, x * 2):
                sums.append(part.sum())
            if sums[0] > sums[1]:  # break
                return x * 2
            return x
    """,
    "decorator": """
        import torch
        @torch.compile
        def gate(x):
            if x.sum() > 0:  # break
                return x * 2
            return x
    """,
    "decorator with options": """
        import torch as t
        @t.compile(fullgraph=True, dynamic=False)
        def gate(x):
            if x.sum() > 0:  # break
                return x * 2
            return x
    """,
    "name of its own": """
        from torch import compile as speed_up
        def gate(x):
            if x.sum() > 0:  # break
                return x * 2
            return x
        fast = speed_up(gate)
    """,
    "partial as a decorator": """
        import functools
        import torch
        jit = functools.partial(torch.compile, fullgraph=True)
        @jit
        def gate(x):
            if x.sum() > 0:  # break
                return x * 2
            return x
    """,
    "rebound name": """
        import torch
        def gate(x):
            if x.sum() > 0:  # break
                return x * 2
            return x
        gate = torch.compile(gate)
    """,
    "bound method kept as an attribute": """
        import torch
        class Trainer:
            def __init__(self):
                self.step = torch.compile(self._step)
            def _step(self, x):
                if x.sum() > 0:  # break
                    return x * 2
                return x
    """,
    "module instance": """
        import torch
        class Gate(torch.nn.Module):
            def forward(self, x):
                if x.sum() > 0:  # break
                    return x * 2
                return x
        model = torch.compile(Gate().eval())
    """,
    "module compiled in place": """
        import torch
        class Gate(torch.nn.Module):
            def forward(self, x):
                if x.sum() > 0:  # break
                    return x * 2
                return x
        model = Gate()
        model.compile(fullgraph=True)
    """,
    "module that arrives as an argument": """
        import torch
        class Gate(torch.nn.Module):
            def forward(self, x):
                if x.sum() > 0:  # break
                    return x * 2
                return x
        def train(model):
            model = torch.compile(model)
            return model
        def main():
            train(Gate())
    """,
    "module that nobody knows": """
        import torch
        class Gate(torch.nn.Module):
            def forward(self, x):
                if x.sum() > 0:  # break
                    return x * 2
                return x
        def train(model):
            return torch.compile(model)
    """,
    "helper": """
        import torch
        def helper(x):
            if x.sum() > 0:  # break
                return x * 2
            return x
        @torch.compile
        def gate(x):
            return helper(x + 1)
    """,
    "inherited method": """
        import torch
        class Base(torch.nn.Module):
            def gate(self, x):
                if x.sum() > 0:  # break
                    return x * 2
                return x
        class Net(Base):
            def forward(self, x):
                return self.gate(x)
        model = torch.compile(Net())
    """,
    "super": """
        import torch
        class Base(torch.nn.Module):
            def forward(self, x):
                if x.sum() > 0:  # break
                    return x * 2
                return x
        class Net(Base):
            def forward(self, x):
                return super().forward(x + 1)
        model = torch.compile(Net())
    """,
    "submodules in a list and in a Sequential": """
        import torch
        from torch import nn
        class First(nn.Module):
            def forward(self, x):
                if x.sum() > 0:  # break
                    return x * 2
                return x
        class Second(nn.Module):
            def forward(self, x):
                return x / 2 if x.mean() > 1 else x  # break
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([First() for _ in range(3)])
                self.head = nn.Sequential(nn.Linear(2, 2), Second())
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return self.head(x)
        model = torch.compile(Net())
    """,
    "one of several": """
        import torch
        from torch import nn
        class First(nn.Module):
            def forward(self, x):
                return x if x.any() else -x  # break
        class Second(nn.Module):
            def forward(self, x):
                return x if x.any() else -x  # break
        class Net(nn.Module):
            def __init__(self, kind):
                super().__init__()
                self.layers = nn.ModuleList([First(), nn.ReLU(), Second()])
                self.head = First() if kind else Second()
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return self.head(x)
        def third(x):
            return x if x.any() else -x  # break
        def fourth(x):
            return x if x.any() else -x  # break
        model = torch.compile(Net(1))
        fast = [torch.compile(function) for function in (third, fourth)]
    """,
    "nested function and lambda": """
        import torch
        @torch.compile
        def gate(x):
            def inner(v):
                if v.sum() > 0:  # break
                    return v
                return x
            return inner(x) + (lambda v: v if v.any() else x)(x)  # break
    """,
    "second parameter that is used as a tensor": """
        import torch
        @torch.compile
        def step(x, y):
            if y > 3:  # break
                x = x * y.exp()
            if (y > 0).any():  # break
                x = x + 1
            return x
    """,
    "property": """
        import torch
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("scale", torch.ones(()))
            @property
            def factor(self):
                return 2 if self.scale > 0 else 1  # break
            def forward(self, x):
                return x * self.factor
        model = torch.compile(Net())
    """,
    "export": """
        import torch
        class Gate(torch.nn.Module):
            def forward(self, x):
                assert x.sum() > 0  # break
                return x
        program = torch.export.export(Gate(), (torch.ones(2),))
    """,
    "trace freezes shapes too": """
        import torch
        def pad(x):
            if x.shape[0] % 2:  # break
                x = x[1:]
            return x
        traced = torch.jit.trace(pad, (torch.ones(3),))
    """,
}

NOT_REACHED = {
    "a size that a subclass of a layer is given": """
        import torch
        class Positions(torch.nn.Embedding):
            def forward(self, shape: torch.Size, past: int = 0):
                rows, length = shape[:2]
                return super().forward(torch.arange(past, past + length))
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.positions = Positions(8, 4)
            def forward(self, x: torch.Tensor):
                return self.positions(x.shape, 0)
        model = torch.compile(Model())
        """,
    "an option with a default that is a number": """
        import torch
        @torch.compile
        def normed(x, eps=None):
            eps = eps or 1e-5
            return x / (x.norm() + eps)
    """,
    "never compiled": "import torch\n" + textwrap.dedent(BRANCH).replace("  # break", ""),
    "only scripted": """
        import torch
        @torch.jit.script
        def gate(x):
            if x.sum() > 0:
                return x * 2
            return x
    """,
    "disabled helper": """
        import torch
        @torch.compiler.disable
        def helper(x):
            if x.sum() > 0:
                return x * 2
            return x
        @torch.compile
        def gate(x):
            return helper(x)
    """,
    "compile that is switched off": """
        import torch
        @torch.compile(disable=True)
        def gate(x):
            if x.sum() > 0:
                return x * 2
            return x
    """,
    "behind is_compiling": """
        import torch
        @torch.compile
        def gate(x):
            if not torch.compiler.is_compiling():
                if x.sum() > 0:
                    raise ValueError("positive")
            return x
    """,
    "dead by a default": """
        import torch
        @torch.compile
        def gate(x, check=False):
            if check:
                assert not x.any()
            return x
    """,
    "numbers that steer a compiled function": """
        import torch
        @torch.compile
        def step(x, epoch, scale, mode):
            if epoch > 3 and not scale == 1:
                x = x * scale
            return x + 1 if mode != 0 else x
    """,
    "another compile": """
        import re
        import torch
        def compile(function):
            return function
        @compile
        def gate(x):
            if x.sum() > 0:
                return x * 2
            return x
    """,
    "metadata": """
        import torch
        @torch.compile
        def gate(x, mask=None):
            if x.shape[0] > 2 and x.dtype == torch.float32 and x.dim() == 2 and len(x) > 1:
                x = x + 1
            if mask is not None and mask.device == x.device and isinstance(mask, torch.Tensor):
                x = x * mask
            if x.is_cuda or x.requires_grad or torch.is_grad_enabled() or x.numel() == 0:
                x = x - 1
            return x
    """,
    "scripted helper under trace": """
        import torch
        @torch.jit.script_if_tracing
        def helper(x):
            if x.sum() > 0:
                return x * 2
            return x
        def gate(x):
            return helper(x)
        traced = torch.jit.trace(gate, (torch.ones(2),))
    """,
}


@pytest.mark.parametrize("name", REACHED)
def test_code_in_a_region_is_reported(name, tmp_path):
    files = {"mod.py": REACHED[name]}
    assert places(check(tmp_path, files)) == marked(files)


@pytest.mark.parametrize("name", NOT_REACHED)
def test_code_outside_of_regions_is_not(name, tmp_path):
    found = check(tmp_path, {"mod.py": NOT_REACHED[name]})
    assert [each for each in found if not is_word_of_a_cut_off(each)] == []


def is_word_of_a_cut_off(found: Diagnostic) -> bool:
    """The note that a call of what is hidden from the compiler ends the graph."""
    return found.severity is Severity.NOTE and found.rule == "trace-unsupported-call"


def test_regions_spread_through_packages_and_keep_their_chain(tmp_path):
    files = {
        "lib/__init__.py": "from .layers import *\n",
        "lib/layers.py": """
            import torch.nn as nn
            from . import ops
            class Layer(nn.Module):
                def forward(self, x):
                    return ops.gate(x)
        """,
        "lib/ops.py": BRANCH,
        "train.py": """
            import torch
            import lib
            model = torch.compile(lib.Layer())
        """,
    }
    (found,) = check(tmp_path, files)
    assert places([found]) == {("ops.py", 3)}
    assert found.region is not None
    assert found.region.entry == "train.py:4"
    assert found.region.chain == ("lib.layers.Layer.forward", "lib.ops.gate")


def test_a_wrapper_of_another_file_compiles_what_it_is_given(tmp_path):
    files = {
        "tools.py": """
            import torch
            def fast(function):
                return torch.compile(function, dynamic=False)
        """,
        "model.py": """
            from tools import fast
            @fast
            def gate(x):
                if x.sum() > 0:  # break
                    return x * 2
                return x
        """,
    }
    assert places(check(tmp_path, files)) == marked(files)


LIBRARY = {
    "lib/__init__.py": "",
    "lib/nets.py": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, x: torch.Tensor):
                return x if x.any() else -x
    """,
    "lib/ops.py": """
        import torch
        def nms(boxes: torch.Tensor):
            return boxes if boxes.any() else None
        def load(path):
            return path if path.any() else None
        def _private(boxes: torch.Tensor):
            return boxes if boxes.any() else None
        class Tool:
            def apply(self, boxes: torch.Tensor):
                return boxes if boxes.any() else None
    """,
}


@pytest.mark.parametrize(
    ("entry_points", "expected"),
    [
        ((), set()),
        (("lib",), {("nets.py", 6)}),
        (("lib.ops",), set()),
        (("lib.ops:*",), {("ops.py", 4)}),
        (("lib:*",), {("ops.py", 4)}),
        (("lib.ops:nms",), {("ops.py", 4)}),
        (("lib.ops:Tool.apply",), {("ops.py", 11)}),
        (("lib", "lib:*"), {("nets.py", 6), ("ops.py", 4)}),
        (("l*.n*",), {("nets.py", 6)}),
    ],
)
def test_entry_points_name_what_users_compile(entry_points, expected, tmp_path):
    found = check(tmp_path, LIBRARY, entry_points=entry_points)
    assert places(found) == expected


def test_a_private_function_with_a_public_name_is_an_entry(tmp_path):
    renamed = "from lib.ops import _private as public, _other\nfrom torch import _C as c"
    files = {**LIBRARY, "lib/__init__.py": renamed}
    assert places(check(tmp_path, files, entry_points=("lib:*",))) == {("ops.py", 4), ("ops.py", 8)}


def test_fullgraph_turns_a_warning_into_an_error(tmp_path):
    found = check(tmp_path, {"mod.py": REACHED["decorator with options"]})
    assert [each.severity.value for each in found] == ["error"]
    found = check(tmp_path, {"mod.py": REACHED["decorator"]})
    assert [each.severity.value for each in found] == ["warning"]


def test_an_operand_behind_an_undecided_mode_is_a_note(tmp_path):
    text = """
        import torch
        class Net(torch.nn.Module):
            def __init__(self, mode):
                super().__init__()
                self.mode = mode
            def forward(self, x):
                if self.mode == "strict" and x.isnan().any():
                    return -x
                if self.training and x.isnan().any():
                    return x
                return x
        model = torch.compile(Net("lax"))
    """
    found = check(tmp_path, {"mod.py": text})
    assert [(each.span.line, each.severity.value) for each in found] == [
        (8, "note"),
        (10, "warning"),
    ]


def test_a_mistake_in_one_file_does_not_hide_the_others(tmp_path, monkeypatch):
    read = link._read_host_code

    def failing(machine, module):
        if module.name == "bad":
            raise KeyError("planted")
        read(machine, module)

    monkeypatch.setattr(link, "_read_host_code", failing)
    for name in ("bad", "good"):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(REACHED["decorator"]))
    result = engine.check([tmp_path], Settings(root=tmp_path, cache=False), load_rules())
    assert places(list(result.diagnostics)) == {("good.py", 5)}
    (problem,) = result.problems
    assert "bad.py" in problem.path
    assert "KeyError: 'planted'" in problem.message


@pytest.mark.parametrize("name", ["torch", "functools", "builtins", "typing"])
def test_a_script_called_like_a_library_does_not_stand_for_it(name, tmp_path):
    files = {
        f"tools/{name}.py": "def compile(f): ...\n",
        "model.py": """
            import functools
            import typing
            import torch

            @functools.partial(torch.compile, fullgraph=False)
            def gate(x: typing.Optional[torch.Tensor], items: list):
                if isinstance(items, list) and x.sum() > 0:  # break
                    return x * 2
                return x
        """,
    }
    assert places(check(tmp_path, files)) == marked(files)


def test_a_script_that_imports_what_it_is_called_like_means_the_library(tmp_path):
    files = {
        "uuid.py": """
            import uuid
            import torch

            @torch.compile
            def gate(x):
                uuid.uuid4()  # break
                return x + 1
        """,
    }
    assert places(check(tmp_path, files)) == marked(files)


def test_compiled_code_in_a_file_that_is_too_deep_to_read_is_not_passed_over(tmp_path):
    deep = f"chain = x{'.a' * 2000}\n"
    compiled = "import torch\n@torch.compile\ndef gate(x):\n    return x\n"
    called = "import torch\nimport deep\nmodel = torch.compile(deep.gate)\n"
    gate = "def gate(x):\n    return x\n"
    files = {"own.py": compiled + deep, "model.py": called, "deep.py": gate + deep, "b.py": deep}
    found = check(tmp_path, files)
    assert [(Path(each.path).name, each.rule) for each in found] == [
        ("deep.py", "syntax-error"),
        ("own.py", "syntax-error"),
    ]


KERAS = """
    import keras
    import tensorflow as tf

    class Layer(keras.layers.Layer):
        def call(self, x):
            tf.print("layer")
            return x

    class Net(keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = Layer()
        def call(self, x):
            return self.layer(x)
        def train_step(self, data):
            return {}

    def net():
        return Net()

"""
COMPILED_BY_KERAS = {
    'net().compile("sgd", "mse", jit_compile=True)': {"keras", "xla"},
    'net().compile("sgd", "mse", None, None, None, False, 1, True)': {"keras", "xla"},
    'net().compile(**{"loss": "mse", "jit_compile": True})': {"keras", "xla"},
    'keras.models.Sequential([Layer()]).compile("sgd", jit_compile=True)': {"keras", "xla"},
    'net().compile("sgd", "mse", jit_compile="auto")': {"keras"},
    'net().compile("sgd", "mse", jit_compile=False)': {"keras"},
    'net().compile("sgd", "mse", run_eagerly=True, jit_compile=True)': {"keras"},
    "step = tf.function(net())": {"keras"},
    "step = tf.function(net(), jit_compile=True)": {"keras", "xla"},
}


@pytest.mark.parametrize("call", COMPILED_BY_KERAS)
def test_xla_compiles_a_keras_model_and_its_layers_where_it_is_asked_to(call, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(textwrap.dedent(KERAS) + call + "\n")
    assert kinds_of(path, "Layer.call") == COMPILED_BY_KERAS[call]


@pytest.mark.parametrize(
    ("options", "kinds"),
    [("", {"keras"}), ("jit_compile=True", {"keras", "xla"}), ("run_eagerly=True", set())],
)
def test_keras_takes_over_the_step_of_a_model(options, kinds, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(textwrap.dedent(KERAS) + f"net().compile({options})\n")
    assert kinds_of(path, "Net.train_step") == kinds


def kinds_of(path: Path, function: str) -> set[str]:
    """The compilers that take a function over."""
    found: set[str] = set()

    class Compilers(Rule):
        """Every function that a compiler takes over."""

        name, family, severity = "compilers", "tests", Severity.NOTE
        regions = frozenset(RegionKind)
        watches = frozenset({"CompiledFunction"})

        def visit_CompiledFunction(self, seen: CompiledFunction, ctx: Context) -> None:
            if seen.function.qualname == function:
                found.update(kind.value for kind in seen.regions)

    assert not engine.check([path], Settings(cache=False), {"compilers": Compilers}).problems
    return found
