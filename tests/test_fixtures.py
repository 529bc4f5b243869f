"""Every fixture goes through the linter, the fixer and the verifier.

`fixtures/<rule>/<case>.py` carries `# expect: rule | rule` on each line that is reported;
`<case>.fixed.py` is the exact result of the fix, where there is one; `<case>.clean.py` is
silent.
"""

import importlib.util
import re
from collections import Counter
from pathlib import Path

import pytest

from jitlint import engine, fixing, stages, verify
from jitlint import source as sources
from jitlint.config import Settings
from jitlint.finding import Severity, Verdict
from jitlint.rule import load_rules

FIXTURES = Path(__file__).parent.parent / "fixtures"
EXPECTED = re.compile(r"# expect: (?P<rules>[\w-]+(?: \| [\w-]+)*)")

ALL = sorted(FIXTURES.glob("*/*.py"))
CLEAN = [path for path in ALL if path.name.endswith(".clean.py")]
FAULTY = [path for path in ALL if "." not in path.stem]
FIXED = [path for path in FAULTY if path.with_suffix(".fixed.py").exists()]


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def loud(path: Path, rule: str | None = None) -> Counter[tuple[int, str]]:
    """The lines and rules of the errors and warnings of one file."""
    settings = Settings(cache=False) if rule is None else Settings(cache=False, select=(rule,))
    found = engine.check([path], settings, load_rules())
    assert not found.problems
    return Counter(
        (each.span.line, each.rule)
        for each in found.diagnostics
        if each.severity is not Severity.NOTE
    )


def marked(path: Path) -> Counter[tuple[int, str]]:
    return Counter(
        (number, rule)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (match := EXPECTED.search(line))
        for rule in match["rules"].split(" | ")
    )


def planned(path: Path) -> fixing.FileFix | None:
    """The new file with all fixes of its rule, the unsafe ones included."""
    settings = Settings(cache=False, select=(path.parent.name,), unsafe=True, verify=False)
    plan = fixing.plan([sources.read(path)], settings, load_rules())
    assert not plan.problems
    return plan.files[0] if plan.files else None


def test_there_are_fixtures():
    assert FAULTY
    assert FIXED
    assert CLEAN


@pytest.mark.parametrize("path", FAULTY, ids=named)
def test_findings_stand_where_they_are_marked(path):
    assert loud(path) == marked(path)


def test_a_rule_covers_the_graph_breaks_that_its_findings_carry():
    rules = load_rules()
    found = engine.check([FIXTURES], Settings(cache=False), rules).diagnostics
    carried = {(each.rule, code) for each in found for code in each.codes}
    assert carried
    assert {(rule, code) for rule, code in carried if code not in rules[rule].covers} == set()


@pytest.mark.parametrize("path", FAULTY, ids=named)
def test_the_fix_gives_the_fixed_file(path):
    fixed = planned(path)
    expected = path.with_suffix(".fixed.py")
    if fixed is None:
        assert not expected.exists()
    else:
        assert fixed.new.decode() == expected.read_text()


@pytest.mark.parametrize("path", CLEAN, ids=named)
def test_lookalikes_are_silent(path):
    assert not loud(path)


@pytest.mark.compiles
def test_the_verifier_proves_every_fixed_file():
    if importlib.util.find_spec("torch") is None:
        pytest.skip("the verifier's worker needs torch")
    changes = {path: fixed for path in FIXED if (fixed := planned(path)) is not None}
    requests = [
        verify.Request(path, each.source.data, each.new, each.tests)
        for path, each in changes.items()
    ]
    options = verify.Options(device="cpu", timeout=600)  # proofs, on however slow a machine
    reports = verify.verify(requests, options, stages.silent)
    unproved = {
        named(report.path): report.reason
        for report in reports
        if report.verdict is not Verdict.VERIFIED
    }
    assert unproved == {}
