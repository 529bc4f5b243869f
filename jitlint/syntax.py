"""Which files are no Python, found once for each content.

Every file is parsed, also those that no rule looks at; that would be most of the cost of a
check, if what parses were not remembered.
"""

import contextlib
import hashlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from jitlint import source as sources
from jitlint import writing
from jitlint.source import Source, UnparsableError

SIZE = 16
MAX_KNOWN = 100_000


class SyntaxChecker:
    """Remembers contents that parse, in memory and, given a folder, on the disk."""

    def __init__(self, folder: Path | None = None) -> None:
        self._path = None
        if folder is not None:
            self._path = folder / "parses-{}.{}".format(*sys.version_info)
        self._known = set(self._load())
        self._new = False

    def errors(self, files: Iterable[Source]) -> dict[Path, UnparsableError]:
        found: dict[Path, UnparsableError] = {}
        for file in files:
            digest = hashlib.blake2b(file.data, digest_size=SIZE).digest()
            if digest in self._known:
                continue
            try:
                sources.parse_ast(sources.decode(file.data).text)
            except UnparsableError as error:
                found[file.path] = error
            else:
                self._known.add(digest)
                self._new = True
        return found

    def save(self) -> None:
        """Writes what is new, if the folder is there."""
        if self._path is not None and self._new and len(self._known) <= MAX_KNOWN:
            with contextlib.suppress(OSError):
                writing.write(self._path, b"".join(sorted(self._known)))

    def _load(self) -> Iterator[bytes]:
        data = b""
        if self._path is not None:
            with contextlib.suppress(OSError):
                data = self._path.read_bytes()
        if len(data) % SIZE or len(data) > SIZE * MAX_KNOWN:
            return
        for start in range(0, len(data), SIZE):
            yield data[start : start + SIZE]
