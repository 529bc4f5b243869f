"""A rule pack of somebody else, installed as a wheel would be: modules and metadata."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RULE = '''
import libcst as cst

from jitlint.finding import Fix, Safety, Severity
from jitlint.rule import Rule


class NoSleep(Rule):
    """Sleeps."""

    name = "no-sleep"
    family = "acme"
    severity = Severity.ERROR
    triggers = (b"sleep",)
    fixable = True

    def visit_Expr(self, node, ctx):
        if ctx.module.code_for_node(node) == "time.sleep(1)":
            yield ctx.finding(node, "sleeps", fix=Fix(Safety.SAFE, "Do not", {node: cst.Pass()}))
'''


@pytest.fixture
def site(tmp_path):
    """A folder such as site-packages with the pack in it."""

    def install(name, entry="acme_rules", rule=RULE):
        folder = tmp_path / "site"
        package = folder / entry
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "sleep.py").write_text(rule)
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[jitlint.rules]\n{name} = {entry}\n")
        return folder

    return install


def jitlint(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = [str(site), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, "-m", "jitlint", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )


def test_its_rule_is_listed_explained_reported_and_fixes(here, write, site):
    folder = site("acme")
    path = write("a.py", "import time\ntime.sleep(1)\n")
    listed = json.loads(jitlint(folder, "rules", "--format", "json").stdout)
    assert {
        "name": "no-sleep",
        "family": "acme",
        "severity": "error",
        "fixable": True,
        "summary": "Sleeps.",
    } in listed
    assert jitlint(folder, "rule", "no-sleep").stdout == "# no-sleep\n\nSleeps.\n"
    done = jitlint(folder, "check", "a.py", "--select", "acme", "--format", "concise")
    assert done.stdout == "a.py:2:1: error no-sleep sleeps (safe fix)\n"
    assert done.returncode == 1
    assert jitlint(folder, "fix", "a.py").returncode == 0
    assert path.read_text() == "import time\npass\n"


def test_a_pack_that_does_not_load_is_named(here, site):
    folder = site("acme", rule="import nothing_of_that_name\n")
    done = jitlint(folder, "check")
    assert done.returncode == 2
    assert done.stderr == (
        "Error: the rule pack `acme = acme_rules` does not load: ModuleNotFoundError: "
        "No module named 'nothing_of_that_name'\n"
    )


def test_two_packs_with_the_same_rule_are_an_error(here, site):
    site("acme", entry="acme_rules")
    folder = site("zeta", entry="zeta_rules")
    done = jitlint(folder, "rules")
    assert done.returncode == 2
    assert "rule `no-sleep` is defined twice: acme_rules.sleep and zeta_rules.sleep" in done.stderr
