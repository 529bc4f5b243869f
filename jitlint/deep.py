"""Room for deep recursion.

Trees of real files are hundreds of nodes deep, generated ones thousands. Both parsers
recurse in C or Rust, where a full stack kills the process instead of raising an exception,
so everything that reads programs runs in a thread with a large stack.
"""

import sys
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

RECURSION_LIMIT = 60_000
STACK_SIZES = (512 << 20, 128 << 20, 32 << 20)

_inside = threading.local()


def run(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`function(*args, **kwargs)` with a large stack; exceptions pass through."""
    if getattr(_inside, "deep", False):
        return function(*args, **kwargs)
    result: list[T] = []
    failure: list[BaseException] = []

    def body() -> None:
        _inside.deep = True
        try:
            result.append(function(*args, **kwargs))
        except BaseException as error:
            failure.append(error)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
    try:
        _start(body).join()
    finally:
        sys.setrecursionlimit(limit)
    if failure:
        raise failure[0]
    return result[0]


def _start(body: Callable[[], None]) -> threading.Thread:
    """A daemon, so that Ctrl-C in the main thread ends the process."""
    before = threading.stack_size()
    for size in STACK_SIZES:
        try:
            threading.stack_size(size)
            thread = threading.Thread(target=body, name="jitlint", daemon=True)
            thread.start()
        except (RuntimeError, ValueError):
            continue
        finally:
            threading.stack_size(before)
        return thread
    raise MemoryError("no room for a thread with a stack of 32 MiB")
