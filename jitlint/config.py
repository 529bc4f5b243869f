"""Settings: the defaults, a configuration file and the command line, in this order."""

import dataclasses
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from packaging.version import InvalidVersion, Version

from jitlint.finding import Severity
from jitlint.report import FORMATS
from jitlint.selection import ALL, Names, UnknownNameError, did_you_mean
from jitlint.toml_lines import KeyPath, locate

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT_EXCLUDE = (
    ".#*",  # lock files of editors
    ".bzr/",
    ".direnv/",
    ".eggs/",
    ".git/",
    ".hg/",
    ".ipynb_checkpoints/",
    ".jitlint_cache/",
    ".mypy_cache/",
    ".nox/",
    ".pytest_cache/",
    ".ruff_cache/",
    ".svn/",
    ".tox/",
    ".venv/",
    "__pycache__/",
    "__pypackages__/",
    "_build/",
    "build/",
    "dist/",
    "node_modules/",
    "site-packages/",
    "venv/",
)
FRAMEWORKS = ("torch", "tensorflow", "numba", "python")
DEVICE = re.compile(r"auto|cpu|cuda(:\d+)?")
ENTRY_POINT = re.compile(r"[A-Za-z_]\w*(\.\w+)*(:(\*|[A-Za-z_]\w*(\.\w+)*))?")


@dataclass(frozen=True, slots=True)
class Settings:
    """Every option. A key of the configuration is the name of the field in kebab-case.

    `root` is what patterns are relative to: the folder of the configuration file.
    `origins` says for each field that is not the default where it was set.
    """

    root: Path = field(default_factory=Path.cwd)
    select: tuple[str, ...] = (ALL,)
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    severity: Mapping[str, Severity] = field(default_factory=dict)
    entry_points: tuple[str, ...] = ()
    target_versions: Mapping[str, str] = field(default_factory=dict)

    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    extend_exclude: tuple[str, ...] = ()
    force_exclude: bool = False
    respect_gitignore: bool = True

    format: str = "text"
    output_file: Path | None = None
    fail_on: Severity = Severity.WARNING
    exit_zero: bool = False
    statistics: bool = False
    quiet: bool = False
    verbose: bool = False

    jobs: int = 0
    cache: bool = True

    unsafe: bool = False
    verify: bool = False
    device: str = "auto"
    backend: tuple[str, ...] = ("eager", "aot_eager")
    timeout: float = 120.0

    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def targets(self) -> dict[str, Version]:
        return {framework: Version(text) for framework, text in self.target_versions.items()}

    @property
    def excludes(self) -> tuple[str, ...]:
        return self.exclude + self.extend_exclude

    def selected(self, names: Names) -> frozenset[str]:
        """The rules of this run."""
        return names.select(self.select + self.extend_select, self.ignore)

    def describe(self) -> dict[str, object]:
        """The values by key, as a configuration file would hold them."""
        return {
            _key(each.name): _plain(getattr(self, each.name))
            for each in dataclasses.fields(self)
            if each.name not in {"root", "origins"}
        }


class ConfigError(Exception):
    """A configuration that cannot be used; names the file, the line and the key."""

    def __init__(self, path: Path, line: int | None, key: str, message: str) -> None:
        place = path.as_posix() if line is None else f"{path.as_posix()}:{line}"
        super().__init__(f"{place}: `{key}`: {message}" if key else f"{place}: {message}")
        self.path = path
        self.line = line
        self.key = key
        self.message = message


@dataclass(frozen=True, slots=True)
class _Document:
    path: Path
    text: str
    table: Mapping[str, Any]
    prefix: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _At:
    """A place in a document, to blame."""

    document: _Document
    keys: KeyPath

    def __truediv__(self, key: str | int) -> "_At":
        return _At(self.document, (*self.keys, key))

    def fail(self, message: str) -> NoReturn:
        lines = locate(self.document.text)
        path: KeyPath = (*self.document.prefix, *self.keys)
        while path and path not in lines:
            path = path[:-1]
        key = ".".join(_quoted(str(key)) for key in self.keys if isinstance(key, str))
        raise ConfigError(self.document.path, lines.get(path), key, message)


def _quoted(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key) else f'"{key}"'


Reader = Callable[[Any, _At, Names], Any]


def load(
    start: Path,
    names: Names,
    *,
    config: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings for a run on `start`; raises ConfigError.

    `overrides` are fields given on the command line (None: not given).
    """
    path = config if config is not None else find(start)
    values: dict[str, Any] = {}
    if path is not None:
        values = _load_file(path, names, ())
    root = Path.cwd() if config is not None else _root(start, path)
    return _merge(root, values, _given(overrides or {}))


def find(start: Path) -> Path | None:
    """The nearest `jitlint.toml`, or `pyproject.toml` with a table for jitlint."""
    folder = _folder_of(start)
    for parent in (folder, *folder.parents):
        if (parent / "jitlint.toml").is_file():
            return parent / "jitlint.toml"
        pyproject = parent / "pyproject.toml"
        if pyproject.is_file() and _has_table(_parse(pyproject)[1]):
            return pyproject
    return None


def _folder_of(start: Path) -> Path:
    """Without `..`, which would stand in the way of what lies above, and of every pattern."""
    path = Path(os.path.normpath(start.absolute()))
    return path if path.is_dir() else path.parent


def _root(start: Path, config: Path | None) -> Path:
    if config is not None:
        return config.parent
    folder = _folder_of(start)
    for parent in (folder, *folder.parents):
        if (parent / ".git").exists():
            return parent
    here = Path.cwd()
    return here if folder.is_relative_to(here) else folder


def _given(overrides: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in overrides.items() if value is not None}


def _merge(root: Path, values: Mapping[str, Any], given: Mapping[str, Any]) -> Settings:
    """`--select` starts over; `--ignore` and `--extend-…` add to what the file says."""
    origins = {name: value[1] for name, value in values.items()}
    fields = {name: value[0] for name, value in values.items()}
    if "select" in given:
        for name in ("select", "extend_select", "ignore"):
            fields.pop(name, None)
            origins.pop(name, None)
    for name, value in given.items():
        before = fields.get(name, ())
        fields[name] = (*before, *value) if name in _ADDING_OPTIONS else value
        added = name in _ADDING_OPTIONS and before
        origins[name] = f"{origins[name]}, command line" if added else "command line"
    extended = given.get("extend_select", ())
    if extended and "ignore" not in given:
        fields["ignore"] = tuple(each for each in fields.get("ignore", ()) if each not in extended)
    return Settings(root=root, origins=origins, **fields)


_ADDING_OPTIONS = frozenset({"ignore", "extend_select", "extend_exclude", "entry_points"})
_ACCUMULATING = frozenset({"extend_select", "extend_exclude"})


def _load_file(path: Path, names: Names, loading: tuple[Path, ...]) -> dict[str, Any]:
    """Field → (value, the file that set it), with the files that this one extends."""
    document = _document(path)
    here = _At(document, ())
    chain = (*loading, path.resolve())
    values: dict[str, Any] = {}
    if "extend" in document.table:
        base = _base(document.table["extend"], path, here / "extend", chain)
        values = _load_file(base, names, chain)
    for key, raw in document.table.items():
        if key == "extend":
            continue
        read = _READERS.get(key)
        if read is None:
            (here / key).fail(_unknown_key(key))
        value = read(raw, here / key, names)
        name = key.replace("-", "_")
        if name in values:
            value = _over(name, values[name][0], value)
        values[name] = (value, str(path))
    return values


def _over(name: str, base: Any, value: Any) -> Any:
    """A value over that of an extended file: tables are merged, lists replaced."""
    if name in _ACCUMULATING:
        return (*base, *value)
    return {**base, **value} if isinstance(value, dict) else value


def _base(raw: Any, path: Path, at: _At, chain: tuple[Path, ...]) -> Path:
    base = path.parent / Path(_string(raw, at)).expanduser()
    if base.resolve() in chain:
        names = " → ".join(each.name for each in (*chain, base))
        at.fail(f"the files extend each other: {names}")
    if not base.is_file():
        at.fail(f"no such file: {base.as_posix()}")
    return base


def _unknown_key(key: str) -> str:
    if key.replace("_", "-") in _READERS:
        return f"unknown key; did you mean `{key.replace('_', '-')}`?"
    return f"unknown key{did_you_mean(key, [*_READERS, 'extend'])}"


def _document(path: Path) -> _Document:
    text, content = _parse(path)
    if not _has_table(content):
        return _Document(path, text, {} if path.name == "pyproject.toml" else content, ())
    keys = ("tool", "jitlint")
    table = _table(content["tool"]["jitlint"], _At(_Document(path, text, content, ()), keys))
    return _Document(path, text, table, keys)


def _table(value: Any, at: _At) -> Mapping[str, Any]:
    return dict(_expect(dict, "a table", value, at))


def _has_table(content: Mapping[str, Any]) -> bool:
    tool = content.get("tool")
    return isinstance(tool, dict) and "jitlint" in tool


def _parse(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
        return text, tomllib.loads(text)
    except OSError as error:
        raise ConfigError(path, None, "", f"cannot read it: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(path, None, "", "not UTF-8, as TOML has to be") from error
    except tomllib.TOMLDecodeError as error:
        place = re.search(r" \(at line (\d+), column \d+\)", str(error))
        line = int(place.group(1)) if place else None
        message = str(error).replace(place.group(), "") if place else str(error)
        raise ConfigError(path, line, "", f"not valid TOML: {message}") from error


def _kind(value: Any) -> str:
    kinds = {bool: "a boolean", int: "an integer", float: "a number", str: "a string"}
    kinds |= {list: "a list", dict: "a table"}
    return kinds.get(type(value), type(value).__name__)


def _expect(kind: type | tuple[type, ...], words: str, value: Any, at: _At) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        at.fail(f"expected {words}, got {_kind(value)}")
    return value


def _string(value: Any, at: _At) -> str:
    return str(_expect(str, "a string", value, at))


def _boolean(value: Any, at: _At, names: Names) -> bool:
    return bool(_expect(bool, "true or false", value, at))


def _strings(value: Any, at: _At, names: Names) -> tuple[str, ...]:
    items = _expect(list, "a list of strings", value, at)
    return tuple(_string(item, at / index) for index, item in enumerate(items))


def _selector(value: Any, at: _At, names: Names) -> str:
    try:
        return names.check(_string(value, at))
    except UnknownNameError as error:
        at.fail(str(error))


def _selectors(value: Any, at: _At, names: Names) -> tuple[str, ...]:
    items = _expect(list, "a list of rules and families", value, at)
    return tuple(_selector(item, at / index, names) for index, item in enumerate(items))


def _per_file_ignores(value: Any, at: _At, names: Names) -> dict[str, tuple[str, ...]]:
    table = _expect(dict, "a table of pattern = [rules]", value, at)
    return {key: _selectors(item, at / key, names) for key, item in table.items()}


def _one_of(choices: Sequence[str], value: Any, at: _At) -> str:
    text = _string(value, at)
    if text not in choices:
        words = ", ".join(f"`{choice}`" for choice in choices)
        at.fail(f"`{text}` is not one of {words}{did_you_mean(text, choices)}")
    return text


def _severity(value: Any, at: _At, names: Names) -> Severity:
    return Severity(_one_of([severity.value for severity in Severity], value, at))


def _severities(value: Any, at: _At, names: Names) -> dict[str, Severity]:
    table = _expect(dict, "a table of rule = severity", value, at)
    for key in table:
        if key not in names.rules:
            (at / key).fail(f"unknown rule{did_you_mean(key, names.rules)}")
    return {key: _severity(item, at / key, names) for key, item in table.items()}


def _entry_points(value: Any, at: _At, names: Names) -> tuple[str, ...]:
    entries = _strings(value, at, names)
    for index, entry in enumerate(entries):
        if not ENTRY_POINT.fullmatch(entry):
            (at / index).fail(
                f"`{entry}` is not `package.module`, `package.module:*` or `package.module:name`"
            )
    return entries


def _target_versions(value: Any, at: _At, names: Names) -> dict[str, str]:
    table = _expect(dict, "a table of framework = version", value, at)
    for key, item in table.items():
        if key not in FRAMEWORKS:
            guess = did_you_mean(key, FRAMEWORKS) or f"; known are {', '.join(FRAMEWORKS)}"
            (at / key).fail(f"unknown framework{guess}")
        if isinstance(item, int | float) and not isinstance(item, bool):
            (at / key).fail(f'expected a string, got {_kind(item)}; write "{item}"')
        try:
            Version(_string(item, at / key))
        except InvalidVersion:
            (at / key).fail(f"`{item}` is not a version such as `2.6`")
    return dict(table)


def _format(value: Any, at: _At, names: Names) -> str:
    return _one_of(FORMATS, value, at)


def _output_file(value: Any, at: _At, names: Names) -> Path | None:
    """None for an empty string, as `--show-settings` writes it."""
    text = _string(value, at)
    return at.document.path.parent / Path(text).expanduser() if text else None


def _jobs(value: Any, at: _At, names: Names) -> int:
    jobs = int(_expect(int, "an integer", value, at))
    if jobs < 0:
        at.fail(f"expected 0 (one for each core) or more, got {jobs}")
    return jobs


def _device(value: Any, at: _At, names: Names) -> str:
    text = _string(value, at)
    if not DEVICE.fullmatch(text):
        at.fail(f"`{text}` is not `auto`, `cpu`, `cuda` or `cuda:N`")
    return text


def _backends(value: Any, at: _At, names: Names) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return _strings(value, at, names)


def _timeout(value: Any, at: _At, names: Names) -> float:
    seconds = float(_expect((int, float), "a number of seconds", value, at))
    if not 0 < seconds < float("inf"):
        at.fail(f"expected more than 0 seconds, got {value}")
    return seconds


_READERS: Mapping[str, Reader] = {
    "select": _selectors,
    "extend-select": _selectors,
    "ignore": _selectors,
    "per-file-ignores": _per_file_ignores,
    "severity": _severities,
    "entry-points": _entry_points,
    "target-versions": _target_versions,
    "exclude": _strings,
    "extend-exclude": _strings,
    "force-exclude": _boolean,
    "respect-gitignore": _boolean,
    "format": _format,
    "output-file": _output_file,
    "fail-on": _severity,
    "exit-zero": _boolean,
    "statistics": _boolean,
    "quiet": _boolean,
    "verbose": _boolean,
    "jobs": _jobs,
    "cache": _boolean,
    "unsafe": _boolean,
    "verify": _boolean,
    "device": _device,
    "backend": _backends,
    "timeout": _timeout,
}


def _key(name: str) -> str:
    return name.replace("_", "-")


def _plain(value: object) -> object:
    if isinstance(value, Severity):
        return value.value
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return str(value) if isinstance(value, Path) else value
