"""Results of whole runs, so that the same run again costs next to nothing.

An entry holds for one version of jitlint, its rules and the settings, and for the content
of every file that the run read. It is JSON: a folder that comes with somebody else's
repository must not be able to run code here.
"""

import contextlib
import hashlib
import json
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import jitlint
from jitlint import writing
from jitlint.config import Settings
from jitlint.finding import Diagnostic, Safety, Severity, Span
from jitlint.region import Region, RegionKind
from jitlint.rule import Rule
from jitlint.source import Source

FOLDER = ".jitlint_cache"
MAX_ENTRIES = 20
ABSENT = "absent"
FORMAT = 1

# Reports are made from a result, so what only they depend on is not part of the key.
_FOR_REPORTS = frozenset(
    {"format", "output-file", "fail-on", "exit-zero", "statistics", "quiet", "verbose"}
)

Entry = tuple[tuple[Diagnostic, ...], int, frozenset[Path]]
"""Diagnostics, the number of analysed files, and the files read beside the given ones."""


class RunCache:
    def __init__(
        self, settings: Settings, rules: Mapping[str, type[Rule]], files: Sequence[Source]
    ) -> None:
        self.folder = settings.root / FOLDER
        self._path = self.folder / f"{_key(settings, rules, files)}.json"

    def load(self) -> Entry | None:
        """The result of the same run; None if there is none, or it cannot be read."""
        try:
            content = json.loads(self._path.read_bytes())
            if any(_digest_of(Path(path)) != digest for path, digest in content["read"].items()):
                return None
            diagnostics = tuple(_diagnostic(each) for each in content["diagnostics"])
            read = frozenset(map(Path, content["read"]))
            return diagnostics, int(content["analysed"]), read
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None

    def store(self, diagnostics: Iterable[Diagnostic], analysed: int, read: Iterable[Path]) -> None:
        """Keeps a result. A cache that cannot be written is no cache, and no error."""
        content = {
            "analysed": analysed,
            "read": {str(path): _digest_of(path) for path in sorted(read)},
            "diagnostics": [_plain(each) for each in diagnostics],
        }
        with contextlib.suppress(OSError):
            self._make_folder()
            writing.write(self._path, json.dumps(content).encode())
            self._prune()

    def _make_folder(self) -> None:
        if self.folder.is_dir():
            return
        self.folder.mkdir()
        (self.folder / ".gitignore").write_text("*\n", "utf-8")
        (self.folder / "CACHEDIR.TAG").write_text(
            "Signature: 8a477f597d28d172789f06886806bc55\n# This folder is a cache of jitlint.\n",
            "utf-8",
        )

    def _prune(self) -> None:
        entries = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
        for path in entries[:-MAX_ENTRIES]:
            path.unlink()


def _key(settings: Settings, rules: Mapping[str, type[Rule]], files: Sequence[Source]) -> str:
    described = {
        key: value for key, value in settings.describe().items() if key not in _FOR_REPORTS
    }
    digest = hashlib.blake2b(digest_size=16)
    for part in (
        FORMAT,
        jitlint.__version__,
        platform.python_version(),
        str(Path.cwd()),
        str(settings.root),
        json.dumps(described, sort_keys=True),
        _code_of([rule.__module__ for rule in rules.values()]),
    ):
        digest.update(f"{part}\0".encode("utf-8", "surrogateescape"))
    for file in files:
        digest.update(f"{file.name}\0{file.explicit}\0".encode("utf-8", "surrogateescape"))
        digest.update(_digest(file.data).encode())
    return digest.hexdigest()


def _code_of(modules: Iterable[str]) -> str:
    """Sizes and times of the files that jitlint and its rules consist of.

    Versions would not do: whoever writes a rule does not raise one for each try.
    """
    packages = sorted({"jitlint", *(name.partition(".")[0] for name in modules)})
    parts: list[str] = []
    for package in packages:
        for path in _files_of(sys.modules.get(package)):
            status = path.stat()
            parts.append(f"{path}:{status.st_size}:{status.st_mtime_ns}")
    return "\n".join(parts)


def _files_of(module: ModuleType | None) -> list[Path]:
    if module is None:
        return []
    folders = [Path(each) for each in getattr(module, "__path__", ())]
    if not folders:
        return [Path(module.__file__)] if module.__file__ else []
    return sorted(
        path for folder in folders for path in folder.rglob("*") if path.suffix in {".py", ".json"}
    )


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _digest_of(path: Path) -> str:
    try:
        return _digest(path.read_bytes())
    except OSError:
        return ABSENT


def _plain(diagnostic: Diagnostic) -> dict[str, Any]:
    span, region, safety = diagnostic.span, diagnostic.region, diagnostic.fix_safety
    return {
        "path": diagnostic.path,
        "span": [span.line, span.column, span.end_line, span.end_column],
        "rule": diagnostic.rule,
        "family": diagnostic.family,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "codes": diagnostic.codes,
        "region": region
        and [region.kind.value, region.entry, list(region.chain), region.fullgraph],
        "fix_safety": safety and safety.value,
        "fix_title": diagnostic.fix_title,
        "no_fix_reason": diagnostic.no_fix_reason,
    }


def _diagnostic(content: Mapping[str, Any]) -> Diagnostic:
    region = content["region"]
    if region is not None:
        kind, entry, chain, fullgraph = region
        region = Region(RegionKind(kind), entry, tuple(chain), fullgraph)
    safety = content["fix_safety"]
    return Diagnostic(
        path=content["path"],
        span=Span(*content["span"]),
        rule=content["rule"],
        family=content["family"],
        severity=Severity(content["severity"]),
        message=content["message"],
        codes=tuple(content["codes"]),
        region=region,
        fix_safety=None if safety is None else Safety(safety),
        fix_title=content["fix_title"],
        no_fix_reason=content["no_fix_reason"],
    )
