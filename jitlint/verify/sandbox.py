"""What the code under test may not do to the machine, enforced inside the worker.

An audit hook sees the Python-level door to files, sockets and processes, and cannot be
removed again. It stops accidents (a module that downloads, trains, saves when imported),
not a determined attacker: an extension module can still call the system directly.
"""

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATHS_WRITTEN = {
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.mkdir": (0,),
    "os.rmdir": (0,),
    "os.link": (1,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "os.chown": (0,),
    "os.utime": (0,),
    "os.setxattr": (0,),
    "shutil.rmtree": (0,),
}
_NETWORK = frozenset(
    {
        "socket.connect",
        "socket.bind",
        "socket.sendto",
        "socket.sendmsg",
        "socket.getaddrinfo",
        "socket.gethostbyname",
        "socket.gethostbyaddr",
    }
)
_PROCESSES = frozenset(
    {
        "subprocess.Popen",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.spawn",
        "os.fork",
        "pty.spawn",
    }
)
# Compilers write their caches and call the C compiler; they are trusted with that.
_TRUSTED = ("torch._inductor", "triton")


class RefusedError(PermissionError):
    """An operation that the verifier does not allow."""


class Sandbox:
    """Installed once for the life of the process; `refused` tells what was attempted."""

    def __init__(self, folder: Path) -> None:
        self.refused: list[str] = []
        self._folder = os.path.realpath(folder)

    def install(self) -> None:
        tempfile.tempdir = self._folder
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            if _opens_for_writing(mode, flags):
                self._check_path(path)
        elif event in _PATHS_WRITTEN:
            for position in _PATHS_WRITTEN[event]:
                self._check_path(arguments[position])
        elif event in _NETWORK:
            self._refuse("network access")
        elif event in _PROCESSES and not _called_by_a_compiler():
            self._refuse("starting a process")

    def _check_path(self, path: object) -> None:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return  # a file descriptor: whoever opened it was asked then
        real = os.path.realpath(os.fsdecode(path))
        if real != os.devnull and os.path.commonpath([real, self._folder]) != self._folder:
            self._refuse(f"writing to {real}")

    def _refuse(self, what: str) -> None:
        self.refused.append(what)
        raise RefusedError(f"{what} is not allowed while jitlint verifies a module")


def _opens_for_writing(mode: object, flags: object) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITING)


def _called_by_a_compiler() -> bool:
    return any(name.startswith(_TRUSTED) for name in _calling_modules())


def _calling_modules() -> Iterator[str]:
    frame = sys._getframe(1)
    while frame is not None:
        yield frame.f_globals.get("__name__", "")
        if frame.f_back is None:
            return
        frame = frame.f_back


def limit_memory(limit: int, uses_gpu: bool) -> None:
    """Caps the private memory of this process.

    Not with CUDA: its driver reserves far more address space than it uses.
    """
    try:
        import resource
    except ImportError:
        return  # not on Windows
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not uses_gpu:
        kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
        _set_limit(resource.setrlimit, kind, limit)


def _set_limit(setter: Callable[[int, tuple[int, int]], None], kind: int, limit: int) -> None:
    # A lower hard limit may be in force already, or the system has no such limit.
    with contextlib.suppress(ValueError, OSError):
        setter(kind, (limit, limit))
