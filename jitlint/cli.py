"""The command line: click commands, and nothing else."""

import contextlib
import functools
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem, get_completion_class
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from jitlint import __version__, config, discovery, engine, report, stages, writing
from jitlint.analysis import tables
from jitlint.config import ConfigError, Settings
from jitlint.discovery import Problem
from jitlint.finding import Severity, Verdict
from jitlint.report import fixes, graph_breaks
from jitlint.report.lines import clean
from jitlint.rule import Rule, RulePackError, load_rules
from jitlint.selection import ALL, Names, UnknownNameError, did_you_mean
from jitlint.source import Source
from jitlint.stages import Progress

FINDINGS = 1
FAILED = 2
INTERRUPTED = 130

Command = TypeVar("Command", bound=Callable[..., Any])


@functools.cache
def installed() -> dict[str, type[Rule]]:
    try:
        return load_rules()
    except RulePackError as error:
        raise _failure(str(error)) from error


@functools.cache
def known() -> dict[str, type[Rule]]:
    return stages.known_rules(installed())


def _failure(message: str) -> click.ClickException:
    return _FailedRun(message)


class _FailedRun(click.ClickException):
    exit_code = FAILED


def _selectors(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Names of rules and families."""
    try:
        return tuple(map(Names.of(known()).check, _split(values))) or None
    except UnknownNameError as error:
        raise click.BadParameter(str(error)) from error


def _split(values: tuple[str, ...]) -> list[str]:
    """Parts that are separated by commas or spread over several options."""
    parts = [part.strip() for value in values for part in value.split(",")]
    return list(filter(None, parts))


def _complete_selectors(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    before, comma, last = incomplete.rpartition(",")
    names = Names.of(known())
    choices = sorted({*names.rules, *names.families, ALL})
    return [CompletionItem(before + comma + name) for name in choices if name.startswith(last)]


def _rule(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if value not in known():
        raise click.BadParameter(f"no rule is called `{value}`{did_you_mean(value, known())}")
    return value


def _rules(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...] | None:
    return tuple(_rule(ctx, param, value) for value in values) or None


def _rule_if_any(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    return None if value is None else _rule(ctx, param, value)


def _graph_breaks(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[str]:
    return [part.upper() for part in _split(values)]


def _complete_graph_breaks(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    found = [each for each in tables.load().graph_breaks() if each.id.startswith(incomplete)]
    return [CompletionItem(each.id, help=each.type) for each in found]


def _complete_rules(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    found = [(name, rule) for name, rule in known().items() if name.startswith(incomplete)]
    return [CompletionItem(name, help=rule.summary()) for name, rule in found]


def _severity(ctx: click.Context, param: click.Parameter, value: str | None) -> Severity | None:
    return None if value is None else Severity(value)


def _device(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not config.DEVICE.fullmatch(value):
        raise click.BadParameter(f"`{value}` is not `auto`, `cpu`, `cuda` or `cuda:N`")
    return value


def _entry_points(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...] | None:
    for value in values:
        if not config.ENTRY_POINT.fullmatch(value):
            raise click.BadParameter(
                f"`{value}` is not `package.module`, `package.module:*` or `package.module:name`"
            )
    return values or None


def _options(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def apply(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


def _given(
    ctx: click.Context, param: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...] | None:
    return value or None


def _flag(ctx: click.Context, param: click.Parameter, value: bool) -> bool | None:
    """A flag that was not given leaves the configuration as it is."""
    return True if value else None


_paths = click.argument(
    "paths", nargs=-1, type=click.Path(path_type=Path, allow_dash=True), metavar="[PATHS]..."
)
_selecting = _options(
    click.option(
        "--select",
        metavar="RULES",
        multiple=True,
        callback=_selectors,
        shell_complete=_complete_selectors,
        help="Rules and families to check (or `all`), instead of the configured ones.",
    ),
    click.option(
        "--extend-select",
        metavar="RULES",
        multiple=True,
        callback=_selectors,
        shell_complete=_complete_selectors,
        help="Rules and families to check beside the selected ones.",
    ),
    click.option(
        "--ignore",
        metavar="RULES",
        multiple=True,
        callback=_selectors,
        shell_complete=_complete_selectors,
        help="Rules and families to leave out. A rule wins over its family.",
    ),
)
_finding_files = _options(
    click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Use this configuration file.",
    ),
    click.option(
        "--exclude",
        multiple=True,
        metavar="PATTERN",
        callback=_given,
        help="Leave out files (as in .gitignore), instead of the configured patterns.",
    ),
    click.option(
        "--extend-exclude",
        multiple=True,
        metavar="PATTERN",
        callback=_given,
        help="Leave out these files too.",
    ),
    click.option(
        "--force-exclude",
        is_flag=True,
        callback=_flag,
        help="Leave out excluded files even where they are named one by one.",
    ),
    click.option(
        "--respect-gitignore/--no-respect-gitignore",
        default=None,
        help="Leave out what git ignores (the default).",
    ),
    click.option(
        "--entry-points",
        multiple=True,
        metavar="MODULE",
        callback=_entry_points,
        help="Modules whose nn.Module classes users compile: `mylib.models`, `mylib.ops:*`.",
    ),
    click.option(
        "-j",
        "--jobs",
        type=click.IntRange(min=0),
        help="Processes that read and verify; 0 (default) for all cores.",
    ),
    click.option(
        "--stdin-filename",
        type=click.Path(path_type=Path),
        help="The name of what `-` reads from the standard input.",
    ),
)
_talking = _options(
    click.option("-q", "--quiet", is_flag=True, callback=_flag, help="Findings only."),
    click.option("-v", "--verbose", is_flag=True, callback=_flag, help="Say what is done."),
)
_failing = _options(
    click.option(
        "--fail-on",
        type=click.Choice([each.value for each in reversed(Severity)]),
        callback=_severity,
        help="The least severity that fails the run (default: warning).",
    ),
    click.option(
        "--exit-zero", is_flag=True, callback=_flag, help="Exit with 0 whatever is found."
    ),
    click.option(
        "--statistics", is_flag=True, callback=_flag, help="Count the findings of each rule."
    ),
)
_verifying = _options(
    click.option(
        "--device",
        metavar="auto|cpu|cuda",
        callback=_device,
        help="Where to verify (default: auto).",
    ),
    click.option(
        "--backend",
        multiple=True,
        callback=_given,
        help="Compile with this backend (default: eager and aot_eager).",
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        help="Seconds for each file to verify (default: 120).",
    ),
)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.version_option(__version__, prog_name="jitlint")
def cli() -> None:
    """Find, explain and fix Python code that fights its JIT or graph compiler.

    \b
    Example:
      jitlint check src/
      jitlint fix --diff src/model.py
    """


@cli.command(short_help="Report code that fights its compiler.")
@_paths
@_selecting
@click.option("--format", type=click.Choice(report.FORMATS), help="How to report.")
@click.option(
    "-o",
    "--output-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the report to a file.",
)
@_failing
@click.option("--show-files", is_flag=True, help="List the files that would be read, and stop.")
@click.option("--show-settings", is_flag=True, help="List all settings and their origin, and stop.")
@_finding_files
@click.option("--cache/--no-cache", default=None, help="Reuse results of the same run (default).")
@_talking
@click.pass_context
def check(
    ctx: click.Context,
    /,
    paths: tuple[Path, ...],
    config_file: Path | None,
    stdin_filename: Path | None,
    show_files: bool,
    show_settings: bool,
    **options: Any,
) -> None:
    """Report code in PATHS (default: the current folder) that fights its compiler.

    Exit status: 0 nothing at or above the failing severity, 1 findings, 2 the run failed.

    \b
    Example:
      jitlint check src/ --select tracing --fail-on error
      git show HEAD:model.py | jitlint check - --stdin-filename model.py
    """
    settings, files, stdin = _start(paths, config_file, stdin_filename, options)
    if show_settings:
        _show_settings(settings)
        return
    if show_files:
        ctx.exit(_show_files(files, settings))
    with _progress(settings) as progress:
        result = engine.check(files, settings, installed(), stdin=stdin, progress=progress)
    write = report.writer(settings.format)
    if settings.output_file is None:
        write(result, _console(), settings)
    else:
        buffer = io.StringIO()
        write(result, Console(file=buffer, force_terminal=False), settings)
        _write_report(settings.output_file, buffer.getvalue())
    _tell(result.problems, settings)
    if not result.files and not result.problems:
        click.echo("jitlint: no Python files found", err=True)
    ctx.exit(_status(result, settings))


@cli.command(short_help="Apply the fixes that are proved or known to be safe.")
@_paths
@click.option(
    "--rule",
    "only",
    metavar="NAME",
    multiple=True,
    callback=_rules,
    shell_complete=_complete_rules,
    help="Fix findings of this rule only; may be repeated.",
)
@click.option("--diff", is_flag=True, help="Print the changes, make none; exit 1 if there are any.")
@click.option("--unsafe", is_flag=True, callback=_flag, help="Apply unsafe fixes, unproved.")
@click.option(
    "--verify/--no-verify",
    default=None,
    help="Compile and run old and new code; apply what agrees, unsafe fixes too.",
)
@_verifying
@_failing
@_finding_files
@_talking
@click.pass_context
def fix(
    ctx: click.Context,
    /,
    paths: tuple[Path, ...],
    config_file: Path | None,
    stdin_filename: Path | None,
    only: tuple[str, ...] | None,
    diff: bool,
    **options: Any,
) -> None:
    """Fix findings in PATHS (default: the current folder).

    Safe fixes are applied. With --verify each file is compiled and run before and after:
    a refuted fix is never written, and unsafe fixes are written if they are verified.
    Exit status: 1 if findings remain, or with --diff if something would change.

    \b
    Example:
      jitlint fix --diff src/model.py
      jitlint fix --verify --rule trace-branch src/model.py
    """
    options["select"] = only
    settings, files, stdin = _start(paths, config_file, stdin_filename, options)
    with _progress(settings) as progress:
        result = engine.fix(
            files, settings, installed(), write=not diff, stdin=stdin, progress=progress
        )
    _tell(result.check.problems, settings)
    output = sys.stdout.buffer
    if diff:
        for each in result.files:
            output.write(fixes.diff(each))
        output.flush()
        for diagnostic, reason in result.withheld.items():
            place = f"{diagnostic.path}:{diagnostic.span.line}"
            click.echo(f"{place}: {diagnostic.rule} not fixed: {reason}", err=True)
        ctx.exit(FAILED if result.check.problems else FINDINGS if result.files else 0)
    if stdin is not None:
        output.write(result.files[0].new if result.files else stdin.data)
        output.flush()
        fixes.write(result, Console(stderr=True, highlight=False), settings)
    else:
        fixes.write(result, _console(), settings)
    ctx.exit(_status(result.check, settings))


@cli.command(short_help="Prove fixes: compile and run the code before and after.")
@_paths
@_selecting
@_verifying
@click.option("--format", type=click.Choice(["text", "json"]), help="How to report.")
@_finding_files
@_talking
@click.pass_context
def verify(
    ctx: click.Context,
    /,
    paths: tuple[Path, ...],
    config_file: Path | None,
    stdin_filename: Path | None,
    **options: Any,
) -> None:
    """Compile and run the modules in PATHS before and after their fixes; write nothing.

    Inputs come from `make_inputs(seed)` in the module. The table says for each compiled
    function how many graphs, breaks and recompiles there were, and whether outputs,
    gradients, mutations and exceptions are equal. Exit status: 1 if a fix was not verified.

    \b
    Example:
      jitlint verify fixtures/trace-branch --backend inductor --timeout 300
    """
    from jitlint.verify import table

    settings, files, stdin = _start(paths, config_file, stdin_filename, options)
    with _progress(settings) as progress:
        result = engine.verify(files, settings, installed(), stdin=stdin, progress=progress)
    if settings.format == "json":
        click.echo(json.dumps(table.as_json(result.reports), indent=2))
    else:
        table.render(result.reports, _console())
        if not result.reports:
            click.echo("jitlint: nothing to verify", err=True)
    _tell(result.problems, settings)
    unproved = any(
        each.verdict is Verdict.REFUTED or (each.verdict is Verdict.UNVERIFIED and changed)
        for each, changed in zip(result.reports, result.changed, strict=True)
    )
    ctx.exit(FAILED if result.problems else FINDINGS if unproved else 0)


@cli.command("rule", short_help="Explain a rule, or a graph break.")
@click.argument("name", required=False, callback=_rule_if_any, shell_complete=_complete_rules)
@click.option(
    "--gb",
    "breaks",
    metavar="ID",
    multiple=True,
    callback=_graph_breaks,
    shell_complete=_complete_graph_breaks,
    help="Explain this graph break of torch.compile, or several: `GB0170,GB0033`.",
)
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text")
def show_rule(name: str | None, breaks: list[str], style: str) -> None:
    """Print the page of the rule NAME: what it finds, why, and when its fix is safe.

    With --gb print what torch says about a graph break, which rule covers it and what to
    do about it, or why no rule can.

    \b
    Example:
      jitlint rule trace-branch
      jitlint rule --gb GB0170
    """
    if (name is None) is not bool(breaks):
        raise click.UsageError("give the name of a rule, or `--gb` and the id of a graph break")
    if name is None:
        found = _covered(breaks)
        if style == "json":
            click.echo(json.dumps(list(map(graph_breaks.as_object, found)), indent=2))
        else:
            click.echo("\n".join(map(graph_breaks.text, found)), nl=False)
        return
    rule = known()[name]
    if style == "json":
        click.echo(json.dumps({**_described(rule), "page": rule.page()}, indent=2))
        return
    console = _console()
    page = f"# {name}\n\n{rule.page()}"
    if console.is_terminal:
        console.print(Markdown(page))
    else:
        click.echo(page)


def _covered(identifiers: Sequence[str]) -> list[graph_breaks.Coverage]:
    """The graph breaks of the target version of torch."""
    settings = _settings(Path(), None, {})
    table = tables.load("torch", settings.target_versions.get("torch"))
    entries = []
    for identifier in identifiers:
        entry = table.graph_break(identifier)
        if entry is None:
            guess = did_you_mean(identifier, [each.id for each in table.graph_breaks()])
            message = f"torch {table.version} has no graph break `{identifier}`{guess}"
            raise click.BadParameter(message, param_hint="--gb")
        entries.append(entry)
    return [graph_breaks.coverage(entry, table, known().values()) for entry in entries]


@cli.command(short_help="List all rules.")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text")
def rules(style: str) -> None:
    """List all rules with their family and severity, and whether they can fix.

    \b
    Example:
      jitlint rules --format json
    """
    described = [_described(rule) for rule in known().values()]
    if style == "json":
        click.echo(json.dumps(described, indent=2))
        return
    console = _console()
    columns = ("family", "name", "severity", "fixable", "summary")
    rows = [[_cell(each[column]) for column in columns] for each in described]
    if console.is_terminal:
        table = Table(*columns, header_style="bold")
        for row in rows:
            table.add_row(*row)
        console.print(table)
        return
    lines = [list(columns), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for row in lines:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo("  ".join(cells).rstrip())


@cli.command(short_help="Print a completion script.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that completes jitlint's commands, options and rules in SHELL.

    \b
    Example:
      jitlint completion bash > ~/.local/share/bash-completion/completions/jitlint
    """
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(cli, {}, "jitlint", "_JITLINT_COMPLETE")
    click.echo(script.source_template % script.source_vars())


def _start(
    paths: Sequence[Path],
    config_file: Path | None,
    stdin_filename: Path | None,
    options: Mapping[str, Any],
) -> tuple[Settings, list[Path], Source | None]:
    """The settings, the paths, and what stands in the place of `-`."""
    files = list(paths) or [Path()]
    stdin = None
    if Path("-") in files:
        if len(files) > 1:
            raise click.UsageError("`-` cannot be combined with other paths")
        files = []
        path = Path(os.path.normpath((stdin_filename or Path("stdin.py")).absolute()))
        name = "<stdin>" if stdin_filename is None else discovery.shown(path)
        stdin = Source(path, name, sys.stdin.buffer.read(), explicit=True)
    elif stdin_filename is not None:
        raise click.UsageError("`--stdin-filename` is the name of what `-` reads; give `-`")
    if options.get("quiet") and options.get("verbose"):
        raise click.UsageError("`--quiet` and `--verbose` exclude each other")
    start = files[0] if stdin is None else stdin.path
    return _settings(start, config_file, options), files, stdin


def _settings(start: Path, config_file: Path | None, options: Mapping[str, Any]) -> Settings:
    """The settings; says where a target version gets the table of another release."""
    try:
        settings = config.load(start, Names.of(known()), config=config_file, overrides=options)
    except ConfigError as error:
        raise _failure(str(error)) from error
    if not settings.quiet:
        for sentence in tables.substitutes(settings.target_versions):
            click.echo(f"jitlint: target-versions: {sentence}", err=True)
    return settings


def _console() -> Console:
    with contextlib.suppress(AttributeError, ValueError):
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    return Console(highlight=False)


@contextlib.contextmanager
def _progress(settings: Settings) -> Iterator[Progress]:
    """On a terminal a line that says what is being done; with --verbose, lines."""
    console = Console(stderr=True, highlight=False)
    if settings.verbose:
        yield lambda stage: click.echo(f"jitlint: {stage}", err=True)
    elif console.is_terminal and not settings.quiet:
        with console.status("starting") as status:
            yield status.update
    else:
        yield stages.silent


def _tell(problems: Sequence[Problem], settings: Settings) -> None:
    for problem in problems:
        click.echo(f"jitlint: {clean(problem.path)}: {clean(problem.message)}", err=True)
        if problem.trace is not None and settings.verbose:
            click.echo(problem.trace, err=True)
    if any(problem.trace is not None for problem in problems) and not settings.verbose:
        click.echo("jitlint: run again with --verbose for the details to report", err=True)


def _status(result: engine.CheckResult, settings: Settings) -> int:
    if result.problems:
        return FAILED
    return FINDINGS if result.failing(settings.fail_on) and not settings.exit_zero else 0


def _write_report(path: Path, text: str) -> None:
    try:
        writing.write(path, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise _failure(f"cannot write {path}: {error.strerror or error}") from error


def _show_files(paths: Sequence[Path], settings: Settings) -> int:
    found = discovery.discover(paths, settings)
    for path in found.files:
        click.echo(discovery.shown(path))
    _tell(found.problems, settings)
    return FAILED if found.problems else 0


def _show_settings(settings: Settings) -> None:
    click.echo(f"# root: {settings.root}")
    for key, value in settings.describe().items():
        origin = settings.origins.get(key.replace("-", "_"), "default")
        click.echo(f"{key} = {_toml(value)}  # {origin}")


def _toml(value: object) -> str:
    if isinstance(value, dict):
        items = ", ".join(f"{json.dumps(key)} = {_toml(item)}" for key, item in value.items())
        return f"{{ {items} }}" if items else "{}"
    return '""' if value is None else json.dumps(value)


def _described(rule: type[Rule]) -> dict[str, Any]:
    return {
        "name": rule.name,
        "family": rule.family,
        "severity": rule.severity.value,
        "fixable": rule.fixable,
        "summary": rule.summary(),
    }


def _cell(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def main() -> None:
    """Runs the command line; ends the process with its exit status."""
    try:
        status = cli.main(prog_name="jitlint", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except click.Abort:
        # A thread may be deep in a parser: it is not waited for.
        sys.stderr.flush()
        os._exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader is gone; nor may the interpreter complain when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = FAILED
    sys.exit(status if isinstance(status, int) else 0)
