"""Which files are no Python, found once for each content.

Every file is parsed, also those that no rule looks at; that would be most of the cost of a
check, if what parses were not remembered.
"""

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from jitlint import deep, writing
from jitlint import source as sources
from jitlint.source import Source, UnparsableError

SIZE = 16
MAX_KNOWN = 100_000
WORTH_A_PROCESS = 4 << 20
"""Bytes of source for which a further process pays off: it takes half a second to start."""
CHUNK = 32

Blame = tuple[str, int, int]


class SyntaxChecker:
    """Remembers contents that parse, in memory and, given a folder, on the disk."""

    def __init__(self, folder: Path | None = None, jobs: int = 1) -> None:
        """`jobs` processes read large projects; 0 is one for each core."""
        self._path = None
        if folder is not None:
            self._path = folder / "parses-{}.{}".format(*sys.version_info)
        self._jobs = jobs or os.cpu_count() or 1
        self._known = set(self._load())
        self._new = False

    def errors(self, files: Iterable[Source]) -> dict[Path, UnparsableError]:
        digests = {file: hashlib.blake2b(file.data, digest_size=SIZE).digest() for file in files}
        unknown = [file for file, digest in digests.items() if digest not in self._known]
        found: dict[Path, UnparsableError] = {}
        for file, blame in zip(unknown, self._parse(unknown), strict=True):
            if blame is None:
                self._known.add(digests[file])
                self._new = True
            else:
                found[file.path] = UnparsableError(*blame)
        return found

    def _parse(self, files: Sequence[Source]) -> list[Blame | None]:
        contents = [file.data for file in files]
        processes = min(self._jobs, 1 + sum(map(len, contents)) // WORTH_A_PROCESS)
        if processes > 1:
            with contextlib.suppress(BrokenProcessPool, OSError):
                pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
                with pool:
                    return list(pool.map(_blame_deep, contents, chunksize=CHUNK))
        return [_blame(data) for data in contents]

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


def _blame_deep(data: bytes) -> Blame | None:
    return deep.run(_blame, data)


def _blame(data: bytes) -> Blame | None:
    """Why this is no Python, with line and column; exceptions do not cross processes whole."""
    try:
        sources.parse_ast(sources.decode(data).text)
    except UnparsableError as error:
        return error.message, error.line, error.column
    return None
