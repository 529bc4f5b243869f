"""Files that are replaced as a whole: a reader sees the old content or the new."""

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


class ChangedError(Exception):
    """The file no longer holds what the new content was made from."""


def replace_content(path: Path, old: bytes, new: bytes) -> None:
    """Puts `new` in the place of `old`; raises ChangedError and OSError.

    A link stays a link: the file that it leads to is replaced. Mode and owner are kept.
    """
    target = path.resolve()
    status = target.stat()
    if not os.access(target, os.W_OK):
        raise PermissionError(None, "the file is not writable", str(target))
    with _sibling(target) as (handle, temporary):
        _fill(handle, new)
        os.fchmod(handle, stat.S_IMODE(status.st_mode))
        with contextlib.suppress(OSError):
            os.fchown(handle, status.st_uid, status.st_gid)
        os.fsync(handle)
        if target.read_bytes() != old:
            raise ChangedError
        _commit(temporary, target)


def write(path: Path, data: bytes) -> None:
    """Writes a file that may be there or not."""
    target = path.resolve()
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask()
    with _sibling(target) as (handle, temporary):
        _fill(handle, data)
        os.fchmod(handle, mode)
        _commit(temporary, target)


@contextlib.contextmanager
def _sibling(target: Path) -> Iterator[tuple[int, Path]]:
    """An open temporary file in the same folder, gone at the end if it was not used."""
    handle, name = tempfile.mkstemp(".tmp", f".{target.name}.", target.parent)
    try:
        yield handle, Path(name)
    finally:
        os.close(handle)
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()


def _fill(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _commit(temporary: Path, target: Path) -> None:
    temporary.replace(target)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
