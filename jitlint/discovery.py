"""Which files a run reads."""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pathspec import GitIgnoreSpec

from jitlint.config import Settings

SUFFIXES = (".py",)
NOTEBOOK = ".ipynb"
UNREAD = (
    "a notebook, which jitlint does not read; check the script that "
    "`jupyter nbconvert --to script` makes of it"
)


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that keeps a file, or the run, from being checked.

    `trace` is the traceback of a mistake of jitlint itself.
    """

    path: str
    message: str
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class Discovery:
    """Files in a stable order, each once. `named` are those that were given one by one."""

    files: tuple[Path, ...]
    problems: tuple[Problem, ...]
    named: frozenset[Path] = frozenset()


def discover(paths: Sequence[Path], settings: Settings) -> Discovery:
    return _Search(settings).run(paths)


def shown(path: Path) -> str:
    """How reports name a file: relative to the working folder where it lies in it."""
    try:
        return path.absolute().relative_to(Path.cwd()).as_posix()
    except ValueError:
        return path.as_posix()


@dataclass(slots=True)
class _Rules:
    """Patterns that hold below one folder."""

    base: Path
    spec: GitIgnoreSpec

    def verdict(self, path: Path, is_folder: bool) -> bool | None:
        """True: ignored, False: taken back by a `!`, None: not mentioned."""
        if not path.is_relative_to(self.base):
            return None
        relative = path.relative_to(self.base).as_posix()
        return self.spec.check_file(relative + "/" if is_folder else relative).include


@dataclass(slots=True)
class _Search:
    settings: Settings
    found: dict[Path, Path] = field(default_factory=dict)
    """Real path → the path it was found under."""
    problems: list[Problem] = field(default_factory=list)
    named: set[Path] = field(default_factory=set)
    _folders: set[tuple[int, int]] = field(default_factory=set)
    _links: list[tuple[Path, list[_Rules]]] = field(default_factory=list)

    def run(self, paths: Sequence[Path]) -> Discovery:
        for path in paths:
            self._start(path)
        # Links last: a file that is reached both ways is reported under its own name.
        while self._links:
            path, rules = self._links.pop(0)
            self._entry(path, rules)
        files = tuple(sorted(self.found.values()))
        return Discovery(files, tuple(self.problems), frozenset(self.named & set(files)))

    def _start(self, path: Path) -> None:
        absolute = Path(os.path.normpath(path.absolute()))
        mode = self._mode(absolute)
        if mode is None:
            return
        excludes = self._excludes(absolute, stat.S_ISDIR(mode))
        if excludes is None:
            return
        if stat.S_ISDIR(mode):
            self._walk(absolute, [excludes, *self._outer_ignores(absolute)])
        elif absolute.suffix == NOTEBOOK:
            self.problems.append(Problem(shown(absolute), UNREAD))
        else:
            self._take(absolute, mode)
            self.named.add(absolute)

    def _excludes(self, start: Path, is_folder: bool) -> _Rules | None:
        """The patterns of `exclude` below `start`; None if it is to be left out itself.

        What the user names is checked even where a pattern covers it, and then the
        patterns hold from there on; `force-exclude` is for tools that name every file.
        """
        root = self.settings.root
        rules = _Rules(root, GitIgnoreSpec.from_lines(self.settings.excludes))
        if start == root or not _covered(start, is_folder, [rules]):
            return rules
        if self.settings.force_exclude:
            return None
        return _Rules(start, rules.spec)

    def _outer_ignores(self, start: Path) -> list[_Rules]:
        """The .gitignore files above `start`, up to the root of its repository."""
        if not self.settings.respect_gitignore:
            return []
        above: list[Path] = []
        for folder in start.parents:
            if not above and (start / ".git").exists():
                break
            above.append(folder)
            if (folder / ".git").exists():
                break
        else:
            return []
        rules = [found for folder in reversed(above) for found in _ignores(folder)]
        return [] if _covered(start, True, rules) else rules

    def _walk(self, folder: Path, rules: list[_Rules]) -> None:
        try:
            status = folder.stat()
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            self._fail(folder, error)
            return
        if (status.st_dev, status.st_ino) in self._folders:
            return
        self._folders.add((status.st_dev, status.st_ino))
        if self.settings.respect_gitignore:
            rules = [*rules, *_ignores(folder)]
        for entry in entries:
            path = folder / entry.name
            if entry.is_symlink():
                self._links.append((path, rules))
            else:
                self._entry(path, rules)

    def _entry(self, path: Path, rules: list[_Rules]) -> None:
        is_folder = path.is_dir()
        if not is_folder and path.suffix not in SUFFIXES:
            return
        if _ignored(path, is_folder, rules):
            return
        if is_folder:
            self._walk(path, rules)
            return
        mode = self._mode(path)
        if mode is not None:
            self._take(path, mode)

    def _take(self, path: Path, mode: int) -> None:
        if not stat.S_ISREG(mode):
            self.problems.append(Problem(shown(path), "not a regular file; it was not read"))
            return
        self.found.setdefault(path.resolve(), path)

    def _mode(self, path: Path) -> int | None:
        try:
            return path.stat().st_mode
        except OSError as error:
            self._fail(path, error)
            return None

    def _fail(self, path: Path, error: OSError) -> None:
        self.problems.append(problem(path, error))


def problem(path: Path, error: OSError) -> Problem:
    """What to tell the user about a file that could not be read."""
    if path.is_symlink() and not path.exists():
        target = path.readlink().as_posix()
        message = f"a link to `{target}`, which cannot be reached; mend or remove the link"
    elif isinstance(error, FileNotFoundError):
        message = "no such file or folder"
    elif isinstance(error, PermissionError):
        message = "permission denied; make it readable or exclude it"
    else:
        message = f"cannot be read: {error.strerror or error}"
    return Problem(shown(path), message)


def _ignored(path: Path, is_folder: bool, rules: Sequence[_Rules]) -> bool:
    """The patterns nearest to the file decide; `exclude` comes first and cannot be undone."""
    if rules and rules[0].verdict(path, is_folder):
        return True
    for each in reversed(rules[1:]):
        verdict = each.verdict(path, is_folder)
        if verdict is not None:
            return verdict
    return False


def _covered(path: Path, is_folder: bool, rules: Sequence[_Rules]) -> bool:
    """Whether `path` or a folder above it is ignored."""
    if _ignored(path, is_folder, [_NOTHING, *rules]):
        return True
    return any(_ignored(parent, True, [_NOTHING, *rules]) for parent in path.parents)


_NOTHING = _Rules(Path("/"), GitIgnoreSpec.from_lines([]))


def _ignores(folder: Path) -> Iterator[_Rules]:
    for name in (".git/info/exclude", ".gitignore"):
        try:
            lines = (folder / name).read_text("utf-8", "replace").splitlines()
        except OSError:
            continue
        yield _Rules(folder, _lenient(lines))


def _lenient(lines: list[str]) -> GitIgnoreSpec:
    """As git does, leaves out a line that is no pattern."""
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        good = []
        for line in lines:
            try:
                GitIgnoreSpec.from_lines([line])
            except ValueError:
                continue
            good.append(line)
        return GitIgnoreSpec.from_lines(good)
