import json
import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

import jitlint
from jitlint import cli, stages
from jitlint.analysis import tables
from jitlint.verify import Report


@pytest.fixture
def run(here, toys, monkeypatch):
    """`run("check", …)` with the toy rules in the place of the installed ones."""
    monkeypatch.setattr(cli, "installed", lambda: toys)
    monkeypatch.setattr(cli, "known", lambda: stages.known_rules(toys))

    def invoke(*arguments, **options):
        return CliRunner().invoke(cli.cli, [str(each) for each in arguments], **options)

    return invoke


def test_check_prints_findings_and_exits_with_1(run, write):
    write("a.py", "foo\n")
    done = run("check")
    assert done.exit_code == 1
    assert done.stdout.startswith("a.py:1:1: warning no-foo `foo` is used [T1]\n")
    assert done.stderr == ""


def test_check_without_findings_exits_with_0(run, write):
    write("a.py", "x\n")
    done = run("check", "a.py")
    assert (done.exit_code, done.stdout) == (0, "No findings in 1 file (0 analysed).\n")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ([], 1),
        (["--fail-on", "error"], 0),
        (["--fail-on", "note"], 1),
        (["--exit-zero"], 0),
        (["--select", "numbers"], 0),
        (["--select", "numbers,toys"], 1),
        (["--select", "numbers", "--select", "no-foo"], 1),
        (["--ignore", "no-foo"], 0),
        (["--ignore", "toys", "--extend-select", "no-foo"], 1),
    ],
)
def test_the_exit_status_follows_selection_and_severity(run, write, arguments, status):
    write("a.py", "foo\nprint()\n")
    assert run("check", *arguments).exit_code == status


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "--select", "no-fo"], "unknown rule or family `no-fo`; did you mean `no-foo`?"),
        (["check", "--ignore", "toy"], "unknown rule or family `toy`; did you mean `toys`?"),
        (["fix", "--rule", "no-pint"], "no rule is called `no-pint`; did you mean `no-print`?"),
        (["rule", "risky-pie"], "no rule is called `risky-pie`; did you mean `risky-pi`?"),
        (["rule"], "give the name of a rule, or `--gb` and the id of a graph break"),
        (["rule", "no-foo", "--gb", "GB0170"], "give the name of a rule, or `--gb`"),
        (
            ["rule", "--gb", "GB0170", "--gb", "GB171"],
            "no graph break `GB171`; did you mean `GB0171`?",
        ),
        (["check", "--format", "xml"], "'xml' is not one of 'text', 'concise', 'json'"),
        (["check", "--entry-points", "a-b"], "`a-b` is not `package.module`"),
        (["verify", "--device", "gpu"], "`gpu` is not `auto`, `cpu`, `cuda` or `cuda:N`"),
        (["verify", "--timeout", "0"], "0.0 is not in the range x>0"),
        (["check", "-", "a.py"], "`-` cannot be combined with other paths"),
        (["check", "--stdin-filename", "a.py"], "`--stdin-filename` is the name of what `-`"),
        (["check", "-q", "-v"], "`--quiet` and `--verbose` exclude each other"),
        (["check", "--config", "nope.toml"], "nope.toml' does not exist"),
        (["check", "--selct", "x"], "--select"),
        (["nope"], "No such command 'nope'"),
    ],
)
def test_a_bad_option_exits_with_2_and_helps(run, arguments, message):
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())


def test_a_bad_configuration_exits_with_2(run, write):
    path = write("jitlint.toml", "\nslect = []\n")
    done = run("check")
    assert done.exit_code == 2
    assert done.stderr == f"Error: {path}:2: `slect`: unknown key; did you mean `select`?\n"


def test_a_notebook_that_is_named_exits_with_2_and_the_rest_is_checked(run, write):
    write("a.py", "foo\n")
    write("b.ipynb", '{"cells": []}')
    done = run("check", "a.py", "b.ipynb")
    assert done.exit_code == 2
    assert "a.py:1:1" in done.stdout
    assert "b.ipynb: a notebook, which jitlint does not read" in done.stderr
    assert run("check").exit_code == 1  # one that lies in a folder is no Python file


def test_a_missing_path_exits_with_2_and_the_rest_is_checked(run, write):
    write("a.py", "foo\n")
    done = run("check", "nope", "a.py", "--format", "concise")
    assert done.exit_code == 2
    assert done.stdout == "a.py:1:1: warning no-foo `foo` is used [T1] (safe fix)\n"
    assert done.stderr == "jitlint: nope: no such file or folder\n"


def test_an_empty_folder_is_said(run):
    done = run("check")
    assert done.exit_code == 0
    assert done.stderr == "jitlint: no Python files found\n"


def test_the_configuration_is_used_and_the_command_line_wins(run, write):
    write("jitlint.toml", 'format = "concise"\nfail-on = "error"\n')
    write("a.py", "foo\n")
    assert run("check").exit_code == 0
    assert run("check", "--fail-on", "warning").exit_code == 1
    assert run("check").stdout.count("\n") == 1
    assert run("check", "--format", "text").stdout.count("\n") > 1


def test_json_and_an_output_file(run, write, here):
    write("a.py", "foo\n")
    done = run("check", "--format", "json", "-o", "out.json", "--exit-zero")
    assert (done.exit_code, done.stdout) == (0, "")
    content = json.loads((here / "out.json").read_text())
    assert content["summary"] == {
        "files": 1,
        "analysed": 1,
        "errors": 0,
        "warnings": 1,
        "notes": 0,
        "fixable": 1,
    }


def test_an_output_file_that_cannot_be_written_exits_with_2(run, write):
    write("a.py", "x\n")
    done = run("check", "-o", "nope/out.txt")
    assert done.exit_code == 2
    assert "cannot write nope/out.txt: No such file or directory" in done.stderr


def test_statistics(run, write):
    write("a.py", "foo\nfoo\nprint()\n")
    done = run("check", "--format", "concise", "--statistics")
    assert done.stdout.endswith("     2  no-foo (2 fixable)\n     1  no-print\n")


def test_show_files(run, write):
    write("b/x.py")
    write("a.py")
    write("build/y.py")
    done = run("check", "--show-files")
    assert (done.exit_code, done.stdout) == (0, "a.py\nb/x.py\n")


def test_show_settings_names_origins(run, write, here):
    path = write("jitlint.toml", "jobs = 2\n[severity]\nno-foo = 'error'\n")
    done = run("check", "--show-settings", "--exit-zero")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0] == f"# root: {here}"
    assert f"jobs = 2  # {path}" in lines
    assert f'severity = {{ "no-foo" = "error" }}  # {path}' in lines
    assert "exit-zero = true  # command line" in lines
    assert 'format = "text"  # default' in lines


def test_stdin(run):
    done = run("check", "-", input="foo\n")
    assert done.exit_code == 1
    assert done.stdout.startswith(
        "<stdin>:1:1: warning no-foo `foo` is used [T1]\n   |\n 1 | foo\n"
    )
    done = run("check", "-", "--stdin-filename", "src/m.py", input="foo\n")
    assert done.stdout.startswith("src/m.py:1:1: ")


def test_verbose_goes_to_the_standard_error(run, write):
    write("a.py", "x\n")
    done = run("check", "-v")
    assert "jitlint: looking for files" in done.stderr
    assert "jitlint:" not in done.stdout


def test_fix_writes_and_says_what_is_left(run, write):
    path = write("a.py", "foo\nprint()\n")
    done = run("fix")
    assert done.exit_code == 0
    assert path.read_text() == "bar\nprint()\n"
    assert done.stdout == (
        "a.py: fixed no-foo: 1\n"
        "  1:1: no-foo Use `bar`\n"
        "a.py:2:1: note no-print prints\n"
        "  not fixed: nobody knows what it is for\n"
        "Fixed 1 finding in 1 file; 1 finding left.\n"
    )


def test_fix_exits_with_1_while_findings_remain(run, write):
    write("a.py", "x = 3.14\n")
    assert run("fix").exit_code == 1
    assert run("fix", "--unsafe").exit_code == 0
    assert run("fix").exit_code == 0


def test_fix_of_one_rule(run, write):
    path = write("a.py", "foo = 3.14\n")
    assert run("fix", "--unsafe", "--rule", "risky-pi").exit_code == 0
    assert path.read_text() == "import math\n\nfoo = math.pi\n"


def test_a_diff_changes_nothing_and_exits_with_1(run, write):
    path = write("a.py", "x\nfoo\n")
    done = run("fix", "--diff")
    assert done.exit_code == 1
    assert path.read_text() == "x\nfoo\n"
    assert done.stdout == "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x\n-foo\n+bar\n"


def test_a_diff_of_nothing_exits_with_0_and_says_what_is_withheld(run, write):
    write("a.py", "x = 3.14\n")
    done = run("fix", "--diff")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("a.py:1: risky-pi not fixed: it is unsafe")


def test_fix_of_stdin_prints_the_new_content(run):
    done = run("fix", "-", input=b"foo\r\n")
    assert done.stdout_bytes == b"bar\r\n"
    assert "Fixed 1 finding in 1 file" in done.stderr


def test_verify_judges_all_fixes_and_writes_nothing(run, write, monkeypatch):
    from jitlint import verify
    from jitlint.finding import Verdict

    requests = []

    def judge(batch, options, progress=None):
        requests.extend(batch)
        return [Report(each.path, Verdict.REFUTED, "differs") for each in batch]

    monkeypatch.setattr(verify, "verify", judge)
    path = write("a.py", "foo = 3.14\n")
    write("b.py", "x\n")
    done = run("verify", "--format", "json")
    assert done.exit_code == 1
    assert path.read_text() == "foo = 3.14\n"
    assert [request.new for request in requests] == [b"import math\n\nbar = math.pi\n"]
    content = json.loads(done.stdout)
    assert content["summary"] == {"verified": 0, "refuted": 1, "unverified": 0}
    assert content["reports"][0]["path"] == "a.py"


def test_rules_are_listed(run):
    done = run("rules")
    assert done.exit_code == 0
    assert done.stdout == (
        "family   name           severity  fixable  summary\n"
        "engine   syntax-error   error     no       A file that cannot be read as Python.\n"
        "engine   unused-ignore  warning   no       A comment that silences nothing.\n"
        "numbers  risky-pi       error     yes      A number that looks like pi.\n"
        "toys     no-foo         warning   yes      The name `foo` is used.\n"
        "toys     no-print       note      no       A print.\n"
    )
    listed = json.loads(run("rules", "--format", "json").stdout)
    assert listed[3] == {
        "name": "no-foo",
        "family": "toys",
        "severity": "warning",
        "fixable": True,
        "summary": "The name `foo` is used.",
    }


def test_a_rule_is_explained(run):
    assert run("rule", "no-foo").stdout == (
        "# no-foo\n\nThe name `foo` is used.\n\n## Use instead\n`bar`.\n"
    )
    assert json.loads(run("rule", "no-foo", "--format", "json").stdout)["page"].startswith("The ")


def test_a_covered_graph_break_is_explained_with_its_rule(run):
    assert run("rule", "--gb", "gb0170").stdout == (
        "# GB0170: Data-dependent branching\n\n"
        "Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). "
        "Dynamo does not support tracing dynamic control flow.\n\n"
        "## Covered by no-foo\nThe name `foo` is used.\n\n"
        "### Use instead\n`bar`.\n\n"
        "torch 2.13.0; "
        "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html\n"
    )


def test_an_uncovered_graph_break_is_explained_with_the_reason(run):
    text = run("rule", "--gb", "GB0219").stdout
    assert "\n## Covered by no rule\nThe backend fails, not the tracing.\n" in text
    assert "\n- Report an issue to the backend compiler repo.\n" in text
    gone = run("rule", "--gb", "GB0009").stdout
    assert "has it in the registry, and causes it nowhere" in gone


def test_graph_breaks_are_explained_to_machines(run):
    done = run("rule", "--gb", "GB0170,GB0219", "--gb", "GB0009", "--format", "json")
    covered, backend, gone = json.loads(done.stdout)
    assert covered["rules"] == [
        {"name": "no-foo", "summary": "The name `foo` is used.", "use_instead": "`bar`."}
    ]
    assert (covered["id"], covered["raised"], covered["reason"]) == ("GB0170", True, None)
    assert (backend["rules"], backend["reason"]) == ([], "The backend fails, not the tracing.")
    assert (gone["id"], gone["raised"]) == ("GB0009", False)


def test_a_target_version_without_a_table_is_said_beside_the_report(run, write):
    write("jitlint.toml", "target-versions = { torch = '2.99' }\n")
    write("a.py", "foo\n")
    newest = tables.load().version
    said = f"jitlint: target-versions: there is no table for torch 2.99; that of {newest} is used\n"
    checked = run("check", "a.py")
    assert checked.stderr == said
    assert "2.99" not in checked.stdout
    as_json = run("check", "a.py", "--format", "json")
    assert as_json.stderr == said
    assert json.loads(as_json.stdout)["summary"]["warnings"] == 1
    assert run("check", "a.py", "--quiet").stderr == ""
    explained = run("rule", "--gb", "GB0170")
    assert explained.stderr == said
    assert f"torch {newest};" in explained.stdout
    diff = run("fix", "a.py", "--diff")
    assert diff.stderr == said
    assert diff.stdout.startswith("--- a/a.py\n")
    assert run("fix", "a.py").stderr == said


def test_graph_breaks_are_completed(run):
    words = {"COMP_WORDS": "jitlint rule --gb GB017", "COMP_CWORD": "3"}
    done = run(env={"_JITLINT_COMPLETE": "bash_complete", **words}, prog_name="jitlint")
    assert "plain,GB0170" in done.stdout.split()


def test_every_command_has_help_with_an_example(run):
    assert run("-h").exit_code == 0
    for name, command in cli.cli.commands.items():
        text = run(name, "-h").stdout
        assert "Example:\n    jitlint " + name in text
        assert command.short_help


def test_the_version(run):
    assert run("--version").stdout == f"jitlint, version {jitlint.__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(run, shell):
    done = run("completion", shell)
    assert done.exit_code == 0
    assert f"_JITLINT_COMPLETE={shell}_complete" in done.stdout


def test_rules_are_completed(run):
    words = {"COMP_WORDS": "jitlint check --select toys,no", "COMP_CWORD": "3"}
    done = run(env={"_JITLINT_COMPLETE": "bash_complete", **words}, prog_name="jitlint")
    assert done.stdout.split() == ["plain,toys,no-foo", "plain,toys,no-print"]


def test_a_crash_in_one_file_exits_with_2_and_the_rest_is_checked(run, write, monkeypatch):
    write("a.py", "boom\n")
    write("b.py", "foo\n")

    class Crashing(jitlint.rule.Rule):
        """Crashes."""

        name, family, severity = "crashing", "toys", jitlint.finding.Severity.NOTE
        triggers = (b"boom",)

        def visit_Name(self, node, ctx):
            raise KeyError("boom")

    rules = {**cli.installed(), "crashing": Crashing}
    monkeypatch.setattr(cli, "installed", lambda: rules)
    done = run("check", "--format", "concise")
    assert done.exit_code == 2
    assert done.stdout.startswith("b.py:1:1: warning no-foo")
    assert done.stderr == (
        "jitlint: a.py: internal error: KeyError: 'boom'; this is a mistake of jitlint, "
        "please report it\n"
        "jitlint: run again with --verbose for the details to report\n"
    )
    assert "Traceback" in run("check", "--no-cache", "-v").stderr


def jitlint_process(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "jitlint", *arguments],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_the_real_process_is_silent_on_a_pipe(here, write):
    write("a.py", "x = (\n")
    done = jitlint_process("check", "--no-cache")
    assert done.returncode == 1
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert done.stdout.startswith("a.py:1:5: error syntax-error '(' was never closed")


def test_ctrl_c_ends_with_130_and_without_a_traceback(here, write):
    script = """
import os, signal, threading
from jitlint import cli, stages
from jitlint.analysis import tables
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
def slow(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait(60)
stages.analyse = slow
cli.main()
"""
    write("a.py", "x\n")
    done = subprocess.run(
        [sys.executable, "-c", script, "check", "--no-cache"],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 130
    assert "Traceback" not in done.stderr


def test_a_closed_pipe_is_no_traceback(here, write):
    write("a.py", "x = (\n" * 2)
    for index in range(300):
        write(f"m{index}.py", "x = (\n")
    command = f"{sys.executable} -m jitlint check --no-cache | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_names_that_are_not_utf8_are_printed(here):
    name = os.fsencode(here) + b"/\xff.py"
    with open(name, "w") as file:  # noqa: PTH123
        file.write("x = (\n")
    done = jitlint_process("check", "--no-cache")
    assert done.returncode == 1
    assert re.match(r"\\xdcff\.py:1:5: error", done.stdout)
    done = jitlint_process("check", "--no-cache", "--format", "json")
    assert json.loads(done.stdout)["findings"][0]["path"] == "\udcff.py"


HOSTILE = {
    "bom.py": b"\xef\xbb\xbfimport torch\n",
    "brackets.py": b"import torch\nx = " + b"(" * 500 + b")" * 500,
    "crlf.py": b"import torch\r\n\r\n",
    "empty.py": b"",
    "latin.py": b"# \xe9\nimport torch\n",
    "large.py": b"x = 1  # torch\n" * 140_000,
    "minus.py": b"import torch\nx = " + b"-" * 500 + b"1\n",
    "null.py": b"import torch\n\0\n",
    "syntax.py": b"import torch\ndef f(:\n",
    "tabs.py": b"import torch\nif torch:\n\tx = 1\n",
    "x.py/inner.py": b"import torch\n)\n",
}


def test_a_folder_of_hostile_files_is_checked_to_its_end(here, write):
    for name, data in HOSTILE.items():
        write(name, data)
    (here / "dangling.py").symlink_to("gone.py")
    os.mkfifo(here / "pipe.py")
    for arguments in (["check", "--format", "concise", "--no-cache"], ["fix", "--quiet"]):
        done = jitlint_process(*arguments)
        assert done.returncode == 2
        places = re.findall(r"^(\S+: error) syntax-error", done.stdout, re.MULTILINE)
        assert places == [
            "brackets.py:2:205: error",
            "latin.py:1:3: error",
            "null.py:2:1: error",
            "syntax.py:2:7: error",
            "x.py/inner.py:2:1: error",
        ]
        assert done.stderr.splitlines() == [
            "jitlint: pipe.py: not a regular file; it was not read",
            "jitlint: dangling.py: a link to `gone.py`, which cannot be reached; "
            "mend or remove the link",
        ]
    assert {name: (here / name).read_bytes() for name in HOSTILE} == HOSTILE
