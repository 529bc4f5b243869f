"""Every construct that asks a tensor for its truth, with the graph break it was measured to
cause (torch 2.13), and those that look alike and compile."""

import textwrap

import pytest

from jitlint import engine
from jitlint.config import Settings
from jitlint.rule import load_rules

HEADER = "import torch\n\n\n@torch.compile\ndef f(x, y):\n"

BREAKS = [
    ('assert x.sum() > 0, f"{x.shape}"', "GB0170"),
    ("assert not x.any()", "GB0170"),
    ("assert x.any() and y.any()", "GB0170"),
    ("assert 0 < x.sum() < 10", "GB0170"),
    ("a = not x.any()", "GB0033"),
    ("a = x.any() and y.any()", "GB0170"),
    ("a = 0 < x.sum() < 10", "GB0170"),
    ("if x.sum() in (1, 2): pass", "GB0170"),
    ("if x.sum() not in (1, 2): pass", "GB0033"),
    ("a = 1 in x", "GB0124"),
    ("if any(x): pass", "GB0170"),
    ("if all(v > 0 for v in [x.sum(), y.sum()]): pass", "GB0170"),
    ("a = sorted([x.sum(), y.sum()])", "GB0207"),
    ("a = min([x, y], key=lambda v: v.sum())", "GB0193"),
    ("a = list(filter(None, [x.sum(), y.sum()]))", "GB0170"),
    ("a = [v for v in [x.sum(), y.sum()] if v > 0]", "GB0170"),
    ("if [x, y] == [y, x]: pass", "GB6622"),
    ("if torch.equal(x, y): pass", "GB0033"),
    ("if torch.allclose(x, y): pass", "GB0033"),
    ("if torch.is_nonzero(x.sum()): pass", "GB0033"),
    ("if x.shape[0] > x.sum(): pass", "GB0170"),
    ("if (a := x.max()) > 0: pass", "GB0170"),
    ("a = 1 if x.any() else 2", "GB0170"),
    ("while x.sum() > 1: x = x / 2", "GB0170"),
    ("if x.any().any(): pass", "GB0170"),
    ("match x.sum():\n    case 0: pass", "GB0170"),
    ("for i in range(3):\n    if x[i]: x = x + 1", "GB0170"),
]

PASSES = [
    "assert x.sum() > 0",
    'assert x.sum() > 0, "positive"',
    'assert x.dtype == torch.float32 and x.any(), "some"',
    "a = x.sum() in (1, 2)",
    "a = max(x.sum(), y.sum())",
    "a = sum([x, y])",
    "if x is None or x == None: pass",
    "if x.numel() == 0 or x.dim() == 1 or x.is_contiguous(): pass",
    "if x in {x}: pass",
    "if isinstance(x, torch.Tensor) and torch.is_tensor(y): pass",
    "a = torch.where(x > 0, x, y)",
    "a = torch.cond(x.sum() > 0, lambda: x + 1, lambda: x - 1, ())",
    "match x:\n    case torch.Tensor(): pass",
]


def findings(body: str, tmp_path) -> list[tuple[int, tuple[str, ...]]]:
    path = tmp_path / "mod.py"
    path.write_text(HEADER + textwrap.indent(f"{body}\nreturn x\n", "    "))
    result = engine.check([path], Settings(root=tmp_path, cache=False), load_rules())
    assert not result.problems
    return [(each.span.line, each.codes) for each in result.diagnostics]


@pytest.mark.parametrize(("body", "code"), BREAKS, ids=[body for body, _ in BREAKS])
def test_a_break_is_reported_with_its_id(body, code, tmp_path):
    line = 6 + (1 if body.startswith("for") else 0)
    assert findings(body, tmp_path)[:1] == [(line, (code,))]


@pytest.mark.parametrize("body", PASSES)
def test_what_compiles_is_silent(body, tmp_path):
    assert findings(body, tmp_path) == []
