"""What goes wrong around the comparison becomes a reason, and costs no other request."""

import socket
import subprocess
import sys

import pytest

from jitlint.finding import Verdict
from jitlint.verify import Options, Request, pool, verify

pytestmark = pytest.mark.compiles

GOOD = """
import torch

def make_inputs(seed):
    return (torch.randn(4, generator=torch.Generator().manual_seed(seed)),)

@torch.compile
def step(x):
    return x * 2
"""
BRANCH = GOOD.replace("return x * 2", "return x * 2 if <T>x.sum() > {limit} else x + 1")
WHERE = GOOD.replace("return x * 2", "return torch.where(x.sum() > {limit}, x * 2, x + 1)")

CASES = {
    "crash": ("import os\nos._exit(3)\n", ""),
    "import_error": ("import torch\nimport no_such_module_at_all\n", ""),
    "syntax_error": ("def f(:\n", ""),
    "no_entry": ("import torch\n", "import torch\n\n"),
    "no_inputs": (
        GOOD.replace("make_inputs", "other").replace("x * 2", "x.rows * 2"),
        GOOD.replace("make_inputs", "other").replace("x * 2", "2 * x.rows"),
    ),
    "bad_inputs": (
        GOOD.replace("return (torch", "return (torsh"),
        GOOD.replace("return (torch", "return (torsh") + "\n",
    ),
    "same": (GOOD, GOOD),
    "always_raises": (
        GOOD.replace("return x * 2", "raise KeyError('k')"),
        GOOD.replace("return x * 2", "raise KeyError('k')  #"),
    ),
    "never_false": (
        BRANCH.format(limit=-100) + "EDGE_CASES = False\n",
        WHERE.format(limit=-100) + "EDGE_CASES = False\n",
    ),
    "never_true": (
        BRANCH.format(limit=100) + "EDGE_CASES = False\n",
        WHERE.format(limit=100) + "EDGE_CASES = False\n",
    ),
    "never_reached": (
        GOOD + "def other(x):\n    if <T>x:\n        return 1\n",
        GOOD + "def other(x):\n    return 1\n",
    ),
    "entry_removed": (GOOD, GOOD.replace("@torch.compile\n", "")),
    "network": (
        "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:9')\n" + GOOD,
        GOOD,
    ),
    "socket_in_the_entry": (
        "import socket\n"
        + GOOD.replace("return x", "socket.create_connection(('127.0.0.1', 9))\n    return x"),
        GOOD,
    ),
    "swallowed_write": (
        GOOD.replace(
            "    return x * 2",
            "    try:\n        open('/jitlint-must-not-exist', 'w')\n"
            "    except OSError:\n        pass\n    return x * 2",
        ),
        GOOD.replace(
            "    return x * 2",
            "    try:\n        open('/jitlint-must-not-exist', 'w')\n"
            "    except OSError:\n        pass\n    return 2 * x",
        ),
    ),
    "process": ("import subprocess\nsubprocess.run(['true'])\n" + GOOD, GOOD),
    "temporary_write": (
        "import tempfile\ntempfile.NamedTemporaryFile().write(b'x')\nopen('here', 'w')\n" + GOOD,
        "import tempfile\ntempfile.NamedTemporaryFile().write(b'x')\nopen('here', 'w')\n"
        + GOOD.replace("x * 2", "2 * x"),
    ),
    "not_deterministic": (
        "import time\n" + GOOD.replace("x * 2", "x * time.perf_counter_ns()"),
        "import time\n" + GOOD.replace("x * 2", "time.perf_counter_ns() * x"),
    ),
    "good": (GOOD, GOOD.replace("x * 2", "2 * x")),
}

REASONS = {
    "crash": "the worker process ended with status 3 while loading the module",
    "import_error": "No module named 'no_such_module_at_all' (line 2)",
    "syntax_error": "SyntaxError",
    "no_entry": "hands nothing to a compiler",
    "no_inputs": "define make_inputs(seed)",
    "bad_inputs": "making inputs failed: NameError: name 'torsh' is not defined",
    "same": "there is no fix to prove",
    "always_raises": "step raises on every input: KeyError: 'k'",
    "never_false": "the test on line 8 was never false on any input",
    "never_true": "the test on line 8 was never true on any input",
    "never_reached": "the test on line 10 was never reached",
    "entry_removed": "the fix changes what is handed to a compiler",
    "network": "network access is not allowed",
    "socket_in_the_entry": "the code attempted network access, which is not allowed here",
    "swallowed_write": "the code attempted writing to /jitlint-must-not-exist",
    "process": "starting a process is not allowed",
    "not_deterministic": "the old code is not deterministic",
}


@pytest.fixture(scope="module")
def reports(prove):
    return prove(CASES)


@pytest.mark.parametrize("name", REASONS)
def test_reason(name, reports):
    report = reports[name]
    assert report.verdict is Verdict.UNVERIFIED, report.reason
    assert REASONS[name] in report.reason


@pytest.mark.parametrize("name", ["temporary_write", "good"])
def test_harmless_module_is_verified_after_the_others_failed(name, reports):
    assert reports[name].verdict is Verdict.VERIFIED, reports[name].reason


def test_counts_are_reported_where_there_is_no_fix(reports):
    (entry,) = reports["same"].entries
    assert (entry.graphs_before, entry.graphs_after, entry.breaks_after) == (1, 1, ())


def test_endless_module_is_stopped_and_the_next_one_served(prove):
    sources = {"endless": ("while True:\n    pass\n", ""), "no_entry": CASES["no_entry"]}
    found = prove(sources, timeout=5)
    assert found["endless"].verdict is Verdict.UNVERIFIED
    assert found["endless"].reason == "timed out after 5 s while loading the module"
    assert REASONS["no_entry"] in found["no_entry"].reason


def test_edge_case_that_the_old_code_never_ends_on_is_left_out(prove):
    old = GOOD.replace(
        "return x * 2", "while <T>x.norm() > 1:\n        x = x / 2\n    return x + 0"
    )
    new = old.replace("<T>", "").replace("x / 2", "x * 0.5")
    found = prove({"halving": (old, new)}, backends=("eager",))
    assert found["halving"].verdict is Verdict.VERIFIED, found["halving"].reason
    assert (
        "left out, as the old code did not end in time: seed 0 with +inf" in found["halving"].reason
    )


def test_device_that_is_not_there(prove):
    found = prove({"good": CASES["good"]}, device="cuda:77")
    assert found["good"].verdict is Verdict.UNVERIFIED
    assert found["good"].reason.startswith("the device 'cuda:77' cannot be used")


def test_several_workers_keep_the_order(prove):
    sources = {"a": CASES["good"], "b": CASES["no_entry"], "c": CASES["import_error"]}
    found = prove(sources, workers=2)
    assert [report.path.stem for report in found.values()] == ["a", "b", "c"]
    assert [report.verdict for report in found.values()] == [
        Verdict.VERIFIED,
        Verdict.UNVERIFIED,
        Verdict.UNVERIFIED,
    ]


def test_memory_limit(prove):
    hungry = GOOD.replace("return x * 2", "return torch.zeros(10**11)[:4] + x")
    found = prove({"hungry": (hungry, hungry + "\n")}, memory_limit=4 * 1024**3)
    assert found["hungry"].verdict is Verdict.UNVERIFIED
    assert found["hungry"].reason == "the memory limit was reached"


def test_missing_torch_is_a_plain_reason(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('gone', name='torch')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    requests = [Request(tmp_path / f"{name}.py", b"", b"") for name in "ab"]
    reports = verify(requests, Options())
    assert [report.reason for report in reports] == [
        "torch is not installed: pip install 'jitlint[torch]'"
    ] * 2


def test_module_of_a_package_imports_its_neighbours(tmp_path):
    package = tmp_path / "pack" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "pack" / "__init__.py").write_text("")
    (package / "__init__.py").write_text("")
    (package / "scale.py").write_text("FACTOR = 2\n")
    old = GOOD.replace("import torch\n", "import torch\nfrom .scale import FACTOR\n", 1)
    old = old.replace("x * 2", "x * FACTOR if x.sum() > 0 else x + 1")
    new = old.replace(
        "x * FACTOR if x.sum() > 0 else x + 1", "torch.where(x.sum() > 0, x * FACTOR, x + 1)"
    )
    path = package / "model.py"
    path.write_text(old)
    (report,) = verify([Request(path, old.encode(), new.encode())], Options(device="cpu", seeds=4))
    assert report.verdict is Verdict.VERIFIED, report.reason


def test_linter_process_imports_no_framework():
    code = "import sys, jitlint.verify, jitlint.verify.table; print('torch' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "False\n"


def test_nothing_is_started_for_nothing(monkeypatch):
    monkeypatch.setattr(pool, "Worker", None)
    assert verify([], Options()) == []


def test_parent_can_still_use_the_network():
    socket.socket().close()
