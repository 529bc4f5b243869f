"""Proof of a fix: the old and the new code are compiled, run and compared.

This side imports no framework; the work is done in worker processes.
"""

from collections.abc import Callable, Sequence

from jitlint.verify import pool
from jitlint.verify.records import Break, EntryResult, Options, Report, Request

__all__ = ["Break", "EntryResult", "Options", "Report", "Request", "verify"]


def verify(
    requests: Sequence[Request],
    options: Options,
    progress: Callable[[str], None] | None = None,
) -> list[Report]:
    """One report for each request, in order. `progress` is told of each as it is done."""
    return pool.run(requests, options, progress) if requests else []
