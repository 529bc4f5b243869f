"""A block that is interrupted when it takes too long."""

import contextlib
import signal
from collections.abc import Iterator


class TookTooLongError(BaseException):
    """Not an `Exception`: the code that is run shall not catch it."""


@contextlib.contextmanager
def time_limit(seconds: float, error: type[BaseException] = TookTooLongError) -> Iterator[None]:
    """Interrupts Python code of the main thread, where the system can do that."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def interrupt(number: int, frame: object) -> None:
        raise error

    previous = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
