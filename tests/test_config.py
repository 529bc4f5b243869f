from pathlib import Path

import pytest

from jitlint import config
from jitlint.config import ConfigError
from jitlint.finding import Severity
from jitlint.selection import Names
from jitlint.toml_lines import locate

NAMES = Names({"trace-branch": "tracing", "trace-host-read": "tracing", "amp-dtype": "precision"})


def load(start, **options):
    return config.load(start, NAMES, **options)


def failure(path, **options):
    with pytest.raises(ConfigError) as caught:
        load(path, **options)
    return str(caught.value)


def test_the_defaults_hold_without_a_file(here):
    settings = load(here)
    assert settings.root == here
    assert settings.selected(NAMES) == {"trace-branch", "trace-host-read", "amp-dtype"}
    assert settings.fail_on is Severity.WARNING
    assert settings.verify is False
    assert settings.backend == ("eager", "aot_eager")
    assert settings.origins == {}


def test_every_option_is_read_from_pyproject(here, write):
    path = write(
        "pyproject.toml",
        """
[project]
name = "x"

[tool.jitlint]
select = ["tracing"]
extend-select = ["amp-dtype"]
ignore = ["trace-host-read"]
entry-points = ["mylib.models", "mylib.ops:*", "mylib.ops:nms"]
exclude = ["old/"]
extend-exclude = ["gen/"]
force-exclude = true
respect-gitignore = false
format = "json"
output-file = "out.json"
fail-on = "error"
exit-zero = true
statistics = true
quiet = true
verbose = true
jobs = 3
cache = false
unsafe = true
verify = true
device = "cuda:1"
backend = ["inductor"]
timeout = 5

[tool.jitlint.target-versions]
torch = "2.6"

[tool.jitlint.severity]
trace-branch = "error"

[tool.jitlint.per-file-ignores]
"tests/*" = ["all"]
""",
    )
    settings = load(here)
    assert settings.selected(NAMES) == {"trace-branch", "amp-dtype"}
    assert settings.entry_points == ("mylib.models", "mylib.ops:*", "mylib.ops:nms")
    assert settings.excludes == ("old/", "gen/")
    assert settings.force_exclude is True
    assert settings.respect_gitignore is False
    assert settings.format == "json"
    assert settings.output_file == here / "out.json"
    assert settings.fail_on is Severity.ERROR
    assert (settings.exit_zero, settings.statistics) == (True, True)
    assert (settings.quiet, settings.verbose) == (True, True)
    assert (settings.jobs, settings.cache) == (3, False)
    assert (settings.unsafe, settings.verify) == (True, True)
    assert (settings.device, settings.backend, settings.timeout) == ("cuda:1", ("inductor",), 5.0)
    assert settings.target_versions == {"torch": "2.6"}
    assert settings.severity == {"trace-branch": Severity.ERROR}
    assert settings.per_file_ignores == {"tests/*": ("all",)}
    assert settings.origins["jobs"] == str(path)
    assert set(settings.describe()) == set(config._READERS)


def test_the_nearest_file_wins_and_gives_the_root(here, write):
    write("pyproject.toml", "[tool.jitlint]\njobs = 1\n")
    write("pkg/pyproject.toml", "[tool.other]\n")
    write("pkg/sub/jitlint.toml", "jobs = 2\n")
    source = write("pkg/sub/deep/a.py")
    assert load(source).jobs == 2
    assert load(source).root == here / "pkg/sub"
    assert load(here / "pkg").jobs == 1
    assert load(here / "pkg").root == here


def test_jitlint_toml_wins_over_pyproject_beside_it(here, write):
    write("pyproject.toml", "[tool.jitlint]\njobs = 1\n")
    write("jitlint.toml", "jobs = 2\n")
    assert load(here).jobs == 2


def test_the_root_without_a_file_is_that_of_the_repository(here, write):
    (here / "repo/.git").mkdir(parents=True)
    assert load(write("repo/a/b.py")).root == here / "repo"


def test_a_given_file_is_used_whatever_lies_near(here, write):
    write("jitlint.toml", "jobs = 2\n")
    other = write("elsewhere/strict.toml", "jobs = 7\n")
    settings = load(here, config=other)
    assert settings.jobs == 7
    assert settings.root == here


def test_the_command_line_wins(here, write):
    write("jitlint.toml", 'jobs = 2\nfail-on = "note"\nignore = ["trace-branch"]\n')
    settings = load(here, overrides={"jobs": 4, "fail_on": None, "ignore": ("amp-dtype",)})
    assert settings.jobs == 4
    assert settings.fail_on is Severity.NOTE
    assert settings.selected(NAMES) == {"trace-host-read"}
    assert settings.origins["jobs"] == "command line"


def test_select_on_the_command_line_starts_over(here, write):
    write("jitlint.toml", 'extend-select = ["precision"]\nignore = ["trace-branch"]\n')
    settings = load(here, overrides={"select": ("trace-branch",)})
    assert settings.selected(NAMES) == {"trace-branch"}


def test_extend_select_on_the_command_line_takes_back_an_ignore(here, write):
    write("jitlint.toml", 'ignore = ["trace-branch"]\n')
    settings = load(here, overrides={"extend_select": ("trace-branch",)})
    assert "trace-branch" in settings.selected(NAMES)


def test_extend_takes_over_what_is_not_set(here, write):
    write(
        "base/jitlint.toml",
        'jobs = 2\ntimeout = 9\nextend-select = ["amp-dtype"]\nselect = ["trace-host-read"]\n'
        '[severity]\ntrace-branch = "note"\namp-dtype = "note"\n',
    )
    write(
        "jitlint.toml",
        'extend = "base/jitlint.toml"\njobs = 5\nextend-select = ["trace-branch"]\n'
        'severity = {amp-dtype = "error"}\n',
    )
    settings = load(here)
    assert (settings.jobs, settings.timeout) == (5, 9.0)
    assert settings.extend_select == ("amp-dtype", "trace-branch")
    assert settings.select == ("trace-host-read",)
    assert settings.severity == {"trace-branch": Severity.NOTE, "amp-dtype": Severity.ERROR}


def test_extend_of_a_pyproject_reads_its_table(here, write):
    write("up/pyproject.toml", "[tool.jitlint]\njobs = 8\n")
    write("jitlint.toml", 'extend = "up/pyproject.toml"\n')
    assert load(here).jobs == 8


def test_files_that_extend_each_other_are_an_error(here, write):
    write("a.toml", 'jobs = 1\nextend = "b.toml"\n')
    write("b.toml", 'extend = "a.toml"\n')
    message = failure(here, config=here / "a.toml")
    assert message == (
        f"{here}/b.toml:1: `extend`: the files extend each other: a.toml → b.toml → a.toml"
    )


def test_a_missing_extended_file_is_an_error(here, write):
    path = write("jitlint.toml", 'extend = "nope.toml"\n')
    assert failure(here) == f"{path}:1: `extend`: no such file: {here}/nope.toml"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("\nselct = []\n", 2, "`selct`: unknown key; did you mean `select`?"),
        ("fail_on = 'note'\n", 1, "`fail_on`: unknown key; did you mean `fail-on`?"),
        ("\n\n[zzzzzzzz]\na = 1\n", 3, "`zzzzzzzz`: unknown key"),
        ("jobs = true\n", 1, "`jobs`: expected an integer, got a boolean"),
        ("jobs = -1\n", 1, "`jobs`: expected 0 (one for each core) or more, got -1"),
        ("verify = 'yes'\n", 1, "`verify`: expected true or false, got a string"),
        ("timeout = nan\n", 1, "`timeout`: expected more than 0 seconds, got nan"),
        ("exclude = 'x'\n", 1, "`exclude`: expected a list of strings, got a string"),
        (
            "exclude = [\n  'x',  # ]\n  3,\n]\n",
            3,
            "`exclude`: expected a string, got an integer",
        ),
        (
            'select = [\n  "tracing",\n  "trace-brnch",\n]\n',
            3,
            "`select`: unknown rule or family `trace-brnch`; did you mean `trace-branch`?",
        ),
        (
            "# severity = 1\n[severity]\ntrace-branch = 'error'\namp-dtyp = 'note'\n",
            4,
            "`severity.amp-dtyp`: unknown rule; did you mean `amp-dtype`?",
        ),
        (
            "[severity]\ntrace-branch = 'eror'\n",
            2,
            "`severity.trace-branch`: `eror` is not one of `note`, `warning`, `error`; "
            "did you mean `error`?",
        ),
        (
            '[per-file-ignores]\n"a.b/*" = ["tracing"]\n"tests/*" = ["tracin"]\n',
            3,
            '`per-file-ignores."tests/*"`: unknown rule or family `tracin`; '
            "did you mean `tracing`?",
        ),
        (
            "target-versions = {torch = 2.6}\n",
            1,
            '`target-versions.torch`: expected a string, got a number; write "2.6"',
        ),
        (
            "[target-versions]\ntorhc = '2.6'\n",
            2,
            "`target-versions.torhc`: unknown framework; did you mean `torch`?",
        ),
        (
            "[target-versions]\ntorch = 'new'\n",
            2,
            "`target-versions.torch`: `new` is not a version such as `2.6`",
        ),
        (
            "entry-points = ['a.b', 'a-b']\n",
            1,
            "`entry-points`: `a-b` is not `package.module`, `package.module:*` or "
            "`package.module:name`",
        ),
        (
            "format = 'jsn'\n",
            1,
            "`format`: `jsn` is not one of `text`, `concise`, `json`; did you mean `json`?",
        ),
        ("device = 'gpu'\n", 1, "`device`: `gpu` is not `auto`, `cpu`, `cuda` or `cuda:N`"),
        (
            "quiet = true\n[[severity]]\nx = 1\n",
            2,
            "`severity`: expected a table of rule = severity, got a list",
        ),
        ("[tool]\njitlint = 3\n", 2, "`tool.jitlint`: expected a table, got an integer"),
    ],
)
def test_a_mistake_names_file_line_and_key(here, write, text, line, message):
    path = write("jitlint.toml", text)
    assert failure(here) == f"{path}:{line}: {message}"


def test_a_pyproject_of_other_tools_configures_nothing(here, write):
    for text in ("tool = 3\n", "[tool]\nruff = 3\n", ""):
        assert load(here, config=write("pyproject.toml", text)).origins == {}


def test_no_output_file_is_an_empty_string(here, write):
    write("jitlint.toml", 'output-file = ""\n')
    assert load(here).output_file is None


def test_a_path_that_goes_up_finds_what_lies_above_it_only(here, write):
    write("jitlint.toml", "quiet = true\n")
    write("sub/jitlint.toml", "verbose = true\n")
    write("sub/model.py", "")
    for path in (Path("sub/.."), Path("sub/../sub/../other.py")):
        settings = load(path)
        assert (settings.root, settings.quiet, settings.verbose) == (here, True, False)


def test_a_mistake_in_pyproject_has_its_line_there(here, write):
    path = write(
        "pyproject.toml",
        '[tool.a]\njobs = "x"\ntext = """\n[tool.jitlint]\njobs = 0\n"""\n'
        '\n[tool.jitlint]\r\njobs = "x"\r\n',
    )
    assert failure(here) == f"{path}:9: `jobs`: expected an integer, got a string"


def test_a_mistake_in_an_extended_file_names_that_file(here, write):
    base = write("base.toml", "\njob = 1\n")
    write("jitlint.toml", 'extend = "base.toml"\n')
    assert failure(here) == f"{base}:2: `job`: unknown key; did you mean `jobs`?"


def test_broken_toml_names_the_line(here, write):
    path = write("jitlint.toml", "jobs = 1\njobs = = 2\n")
    assert failure(here).startswith(f"{path}:2: not valid TOML: ")


def test_a_configuration_that_is_not_utf8_is_an_error(here, write):
    path = write("jitlint.toml", b"# \xff\n")
    assert failure(here) == f"{path}: not UTF-8, as TOML has to be"


def test_the_locator_finds_keys_wherever_toml_allows_them():
    text = (
        'a.b = 1\n"x.y" = """\nq = 1\n"""\n'
        "list = [ # [\n  'a', '''\n]''', [\n 1], {k = 2},\n]\n"
        "[t.'u v']\nw = {p = {q = 1}, r = [1, 2]}\n[[arr]]\nz = 1\n[[arr]]\nz = '#'\n"
    )
    lines = locate(text)
    assert lines["a", "b"] == 1
    assert lines[("x.y",)] == 2
    assert "q" not in {path[0] for path in lines}
    assert [lines["list", index] for index in range(4)] == [6, 6, 7, 8]
    assert lines["list", 3, "k"] == 8
    assert lines["t", "u v", "w", "p", "q"] == 11
    assert lines["arr", 0, "z"] == 13
    assert lines["arr", 1, "z"] == 15


@pytest.mark.parametrize(
    ("select", "ignore", "expected"),
    [
        (["all"], ["tracing"], {"amp-dtype"}),
        (["tracing"], ["all"], {"trace-branch", "trace-host-read"}),
        (["trace-branch"], ["tracing"], {"trace-branch"}),
        (["tracing"], ["trace-branch"], {"trace-host-read"}),
        (["trace-branch"], ["trace-branch"], set()),
        ([], [], set()),
    ],
)
def test_the_more_specific_selector_wins(select, ignore, expected):
    assert NAMES.select(select, ignore) == expected


def test_per_file_ignores_are_patterns_below_the_root():
    from jitlint.selection import PerFile

    per_file = PerFile({"tests/*": ["tracing"], "**/gen_*.py": ["all"]}, Path("/r"), NAMES)
    assert per_file.ignored(Path("/r/tests/a.py")) == {"trace-branch", "trace-host-read"}
    assert per_file.ignored(Path("/r/src/gen_a.py")) == set(NAMES.rules)
    assert per_file.ignored(Path("/r/src/a.py")) == set()
