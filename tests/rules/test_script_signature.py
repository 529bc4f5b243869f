"""Which parameters TorchScript misreads, and the annotation that each is given."""

import re
import runpy
import textwrap

import pytest

from jitlint import engine, fixing
from jitlint.config import Settings
from jitlint.rule import load_rules
from jitlint.source import read

HEADER = (
    "import math, torch\nfrom torch import Tensor\nfrom typing import Dict, List, Optional, Tuple\n"
)
SETTINGS = {"cache": False, "select": ("script-signature",)}


@pytest.fixture
def reported(tmp_path):
    """The findings of a module, as the engine gives them."""

    def check(source: str, header: str = HEADER):
        path = tmp_path / "module.py"
        path.write_text(header + textwrap.dedent(source))
        found = engine.check([path], Settings(**SETTINGS), load_rules())
        assert not found.problems
        return found.diagnostics

    return check


@pytest.fixture
def compiles(tmp_path):
    """Whether TorchScript takes the functions of a module."""
    torch = pytest.importorskip("torch")

    def run(source: str) -> bool:
        path = tmp_path / "compiled.py"
        path.write_text(HEADER + source)
        try:
            runpy.run_path(str(path))
        except (RuntimeError, torch.jit.frontend.NotSupportedError):
            return False
        return True

    return run


@pytest.fixture
def fixed(tmp_path):
    """The module after all fixes, without the header."""

    def fix(source: str, header: str = HEADER) -> str:
        path = tmp_path / "module.py"
        path.write_text(header + textwrap.dedent(source))
        settings = Settings(**SETTINGS, unsafe=True, verify=False)
        plan = fixing.plan([read(path)], settings, load_rules())
        assert not plan.problems
        return plan.files[0].new.decode() if plan.files else path.read_text()

    return fix


def scripted(signature: str, body: str, after: str = "") -> str:
    return f"@torch.jit.script\ndef f({signature}):\n    return {body}\n{after}"


ANNOTATED = {
    "range": ("x, n", "[x for _ in range(n)]", "n: int"),
    "slice": ("x, n", "x[:n]", "n: int"),
    "one of several sizes": ("x, n", "x.view(n, -1)", "n: int"),
    "keyword of an operator": ("x, k", "x.sum(0, keepdim=k)", "k: bool"),
    "list of tensors": ("xs", "torch.cat(xs)", "xs: List[Tensor]"),
    "list by its name": ("x, sizes", "x.repeat(sizes)", "sizes: List[int]"),
    "annotated function of torch": (
        "x, p",
        "torch.nn.functional.dropout(x, p)",
        "p: float",
    ),
    "compared with a string": ("x, mode", 'x if mode == "sum" else -x', "mode: str"),
    "one of some strings": ("x, mode", 'x if mode in ("sum", "mean") else -x', "mode: str"),
    "string keys": ("d", 'd["a"] + 1', "d: Dict[str, Tensor]"),
    "device by its name": ("x, device", "x.to(device)", "device: torch.device"),
    "default": ("x, eps=1e-6", "x + eps", "eps: float = 1e-6"),
    "negative default": ("x, dim=-1", "x.sum(dim)", "dim: int = -1"),
    "int default of a float": (
        "x, p=0",
        "torch.nn.functional.dropout(x, p)",
        "p: float = 0",
    ),
    "pair as default": ("x, t=(1, 2)", "x + t[0]", "t: Tuple[int, int] = (1, 2)"),
    "list as default": ("x, s=[1, 2]", "x.repeat(s)", "s: List[int] = (1, 2)"),
    "None as default": (
        "x, m=None",
        "x if m is None else m.sum()",
        "m: Optional[Tensor] = None",
    ),
    "infinite default": (
        "x, p=float('inf')",
        "torch.norm(x, p)",
        "p: float = float('inf')",
    ),
    "function of math as default": ("x, p=math.sqrt(2)", "x * p", "p: float = math.sqrt(2)"),
    "constant of math as default": ("x, p=-math.inf", "x * p", "p: float = -math.inf"),
    "negated call as default": ("x, p=-float('inf')", "x * p", "p: float = -float('inf')"),
    "typed None": (
        "x, m: Tensor = None",
        "x if m is None else m",
        "m: Optional[Tensor] = None",
    ),
    "keyword only": ("x, *, n", "x.view(n, -1)", "n: int"),
    "constructor": ("x: torch.tensor", "x", "x: Tensor"),
    "constructor inside": ("x: List[torch.tensor]", "x[0]", "x: List[Tensor]"),
}
BY_CALL = {
    "float": ("x, s", "x * s", "f(torch.ones(2), 2.5)", "s: float"),
    "int and float": ("x, s", "x * s", "f(torch.ones(2), 2)\nf(torch.ones(2), 2.5)", "s: float"),
    "keyword": ("x, s", "x * s", "f(torch.ones(2), s=2)", "s: int"),
    "None and a float": (
        "x, s",
        "x",
        "f(torch.ones(2), None)\nf(torch.ones(2), 2.5)",
        "s: Optional[float]",
    ),
    "list": ("x, i", "x[i]", "f(torch.ones(2), [0, 1])", "i: List[int]"),
    "dtype": ("x, d", "x.to(d)", "f(torch.ones(2), torch.float64)", "d: torch.dtype"),
    "examples": ("x, s", "x * s", "ARGS = [(torch.ones(2), 0.5)]", "s: float"),
}
SILENT = {
    "operators of tensors": ("x, y", "torch.where(x > 0, y, x * y)"),
    "truth": ("x, flag", "x if flag else -x"),
    "arithmetic": ("x, s", "x * s"),
    "index": ("x, i", "x[i]"),
    "iteration": ("xs", "[x + 1 for x in xs]"),
    "tensor default": ("x, y=torch.ones(2)", "x + y"),
    "None that is tested": ("x, m", "x if m is None else x @ m"),
    "None that is refused": ("x, m", "x[0]\n    assert m is not None"),
    "shadowed": ("x, n", "x.view(int(n), -1)"),
    "modern": ("x, n: list[int] | None = None", "x"),
    "quoted": ("x, n: 'int'", "x.view(n, -1)"),
}


@pytest.mark.parametrize("name", ANNOTATED)
def test_a_use_or_a_default_says_the_type(name, fixed, reported):
    signature, body, expected = ANNOTATED[name]
    source = scripted(signature, body)
    assert len(reported(source)) == 1
    new = fixed(source)
    assert f"def f({signature})" not in new
    assert expected in new
    assert reported(new, "") == ()


@pytest.mark.parametrize("name", BY_CALL)
def test_a_call_says_the_type(name, fixed, reported):
    signature, body, call, expected = BY_CALL[name]
    source = scripted(signature, body, call)
    assert len(reported(source)) == 1
    assert expected in fixed(source)


@pytest.mark.parametrize("name", SILENT)
def test_what_may_be_a_tensor_is_silent(name, reported):
    assert reported(scripted(*SILENT[name])) == ()


@pytest.mark.parametrize(
    ("signature", "body", "after", "reason"),
    [
        ("x, m=None", "x if m is None else x * m", "", "nothing in the file"),
        ("x, s", "x * s", "f(torch.ones(2), 2.5)\nf(torch.ones(2), 'a')", "no common annotation"),
        ("x, s=[]", "x.repeat(s)", "", "no mutable default"),
        ("x, s=()", "x", "", "elements"),
        ("x, n", "x.view(n, -1) + x.sum(0, keepdim=n)", "", "different types"),
        ("out, x", "out.append(x)", "", "elements"),
        ("x, n", "x.repeat(n)", "", "nothing in the file"),
        ("x, n", "[x for _ in range(n)]", "f(torch.ones(2), torch.tensor(1))", "passes a Tensor"),
        ("x, n", "x[:n]", "f(torch.ones(2), torch.tensor(1))\nf(torch.ones(2), 1)", "passes a T"),
    ],
)
def test_what_is_not_known_is_not_annotated(signature, body, after, reason, reported):
    (only,) = reported(scripted(signature, body, after))
    assert only.fix_safety is None
    assert reason in only.no_fix_reason


@pytest.mark.parametrize(
    ("signature", "body", "after", "safety"),
    [
        ("x, eps=1e-6", "x + eps", "", "safe"),
        ("x, n", "x[:n]", "f(torch.ones(2), 1)", "safe"),
        ("x, n", "x[:n]", "", "unsafe"),
        ("x, n", "[x for _ in range(n)]", "", "safe"),
        ("x, p=0", "torch.nn.functional.dropout(x, p)", "", "unsafe"),
        ("x, s", "x * s", "f(torch.ones(2), 2)\nf(torch.ones(2), 2.5)", "unsafe"),
        ("x, dim", "x.sum(dim)", "", "unsafe"),
        ("x, s=[1, 2]", "x.repeat(s)", "", "unsafe"),
    ],
)
def test_only_what_leaves_no_choice_is_safe(signature, body, after, safety, reported):
    (only,) = reported(scripted(signature, body, after))
    assert only.fix_safety.value == safety


CONVERTED = {
    "bound of a slice": "x[n:]",
    "step of a slice": "x[::n]",
    "one of several sizes": "x.view(n, -1)",
    "sizes spread": "x.repeat(n, 1)",
    "dim": "x.unsqueeze(n)",
    "float": "torch.nn.functional.dropout(x, n)",
    "int or list": "x.split(n)[0]",
    "optional": "x.argmax(n)",
    "dtype": "torch.zeros(2, dtype=n)",
    "helper": "inner(x, n)",
}
REFUSED = {
    "range": "[x for _ in range(n)]",
    "list of one": "x.sum(n)",
    "shifts": "x.roll(n)",
    "bool": "x.sum(0, keepdim=n)",
    "string": 'x if n == "a" else -x',
    "list": "torch.cat(n)",
    "key": 'n["a"]',
    "helper": "inner(x, n)",
}
HELPER = "def inner(x, n: {}):\n    return x\n"


@pytest.mark.parametrize("name", CONVERTED)
def test_a_use_that_takes_a_tensor_too_is_no_fault_where_one_is_passed(name, reported, compiles):
    source = HELPER.format("int") + scripted("x, n", CONVERTED[name])
    assert compiles(source)
    (only,) = reported(source)
    assert "a call that passes one fails" in only.message
    assert "right if no caller passes a Tensor" in only.fix_title
    assert reported(f"{source}f(torch.ones(2, 2), torch.tensor(1))\n") == ()


@pytest.mark.parametrize("name", REFUSED)
def test_a_use_that_takes_no_tensor_is_said_so(name, reported, compiles):
    source = HELPER.format("bool") + scripted("x, n", REFUSED[name])
    assert not compiles(source)
    (only,) = reported(source)
    assert "takes no Tensor there" in only.message


def test_a_default_of_none_that_no_caller_uses_is_silent(reported):
    source = """
        class Encoder(torch.nn.Module):
            def forward(self, x, mask=None):
                return x if mask is None else x * mask
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.encoder = Encoder()
            def forward(self, x):
                return self.encoder(x{})
        torch.jit.script(Model())
    """
    assert reported(source.format(", torch.ones(3)")) == ()
    assert reported(source.format(", mask=elsewhere(x)")) == ()
    (only,) = reported(source.format(""))
    assert "its default is None" in only.message


def test_a_default_of_none_that_a_caller_outside_may_use_is_reported(reported):
    source = """
        class Model(torch.nn.Module):
            @torch.jit.export
            def scaled(self, x, by=None):
                return x if by is None else x * by
            def forward(self, x):
                return self.scaled(x, x)
        torch.jit.script(Model())
    """
    assert len(reported(source)) == 1


STYLES = {
    "typing": ("import torch\nimport typing\n", "typing.Optional[typing.List[int]]"),
    "aliased torch": ("import torch\nimport torch as t\n", "Optional[List[int]]"),
    "builtin": (
        "import torch\ndef other(x: list[int], y: int | None): ...\n",
        "list[int] | None",
    ),
    "none yet": ("import torch\n", "Optional[List[int]]"),
}


@pytest.mark.parametrize("name", STYLES)
def test_annotations_are_written_as_the_file_writes_them(name, fixed):
    header, expected = STYLES[name]
    new = fixed(scripted("x, dims=None", "x if dims is None else x.permute(dims)"), header)
    assert f"dims: {expected} = None" in new
    for used in re.findall(r"\b(List|Optional)\[", expected.replace("typing.", "")):
        assert "import typing" in new or re.search(rf"from typing import .*\b{used}\b", new)


def test_helpers_are_followed(reported):
    source = """
        def inner(x, n):
            return x.view(n, -1)
        @torch.jit.script
        def f(x, n):
            return inner(x, n) + inner(x, 2.0)
        def never(x, n=3):
            return x
    """
    assert [each.span.line for each in reported(source)] == [5, 8]


def test_type_comments_are_annotations(reported):
    source = """
        @torch.jit.script
        def f(x, n):
            # type: (Tensor, int) -> Tensor
            return x.view(n, -1)
    """
    assert reported(source) == ()
