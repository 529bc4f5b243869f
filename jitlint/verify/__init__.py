"""Proof of a fix: the old and the new code are compiled, run and compared.

This side imports no framework; the work is done in worker processes.

What it cannot know: a proof is about the inputs that it ran. Those are what `make_inputs`
and `edge_inputs` return, else what the module writes of arguments elsewhere, else values that
the old code takes (the verdict says so; then also integers, half precision, truth values,
leaves and one tensor of another rank, where it takes those), and what is derived from them
(extreme values, masks of one value, an empty batch, one row, strided memory, double precision,
gradients on and off, training switched). Other ranks
and sizes, other dtypes, other devices, and combinations of branches that no input took stay
out of reach, as do gradients of gradients (which compiled code has not, nor `torch.cond`),
the sign of a zero, differences within the tolerance of the dtype, attributes set on tensors,
which of two streams was written to, functions that nothing compiled calls, and the
environment outside of the process.
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
