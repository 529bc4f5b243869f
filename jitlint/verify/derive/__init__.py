"""Inputs for code that says of none itself: what the module writes, else what its types allow.

In this order: variables that hold examples (`ARGS`), the arguments of calls that the module
writes out, and values made by annotation, default and literals, of which those are kept that
the old code takes. This package knows no framework: what makes a tensor is handed in.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jitlint.verify.derive.candidates import Chooser, Hints, Tensors, Untyped
from jitlint.verify.derive.search import Trial, plain_trials, search
from jitlint.verify.derive.signatures import Parameter, parameters_of
from jitlint.verify.derive.written import Row, written_rows

__all__ = [
    "Derived",
    "Parameter",
    "Question",
    "Row",
    "Trial",
    "Untyped",
    "derive",
    "parameters_of",
    "plain_trials",
]

BY_TYPE = "inputs derived from the types that the code takes"


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be called; `fits` tells whether its old version takes some arguments.

    `names` are those of the code, as calls in the module may write it.
    """

    function: Callable[..., Any]
    parameters: Sequence[Parameter]
    names: Sequence[str]
    namespace: Mapping[str, Any]
    source: str
    tensors: Tensors
    sizes: Sequence[int]
    has_weights: bool
    seeds: int
    fits: Callable[[Trial], bool]
    untyped: Untyped = Untyped.ANYTHING


@dataclass(frozen=True, slots=True)
class Derived:
    """`written` rows stand in the module; the others were made. `origin` is for the user."""

    origin: str
    rows: tuple[Row, ...]
    written: bool


def derive(question: Question) -> Derived | None:
    """None where nothing is found that the old code takes."""
    parameters, fits = question.parameters, question.fits
    written = written_rows(question.source, question.namespace, question.names, parameters)
    rows = [row for row in written if fits(Trial(row.args, row.kwargs))]
    if written and not rows and question.untyped is Untyped.TENSOR:
        return None  # a call that the compiled code alone takes: other inputs do not stand for it
    if rows:
        labels = ", ".join(dict.fromkeys(row.label for row in rows))
        return Derived(f"inputs taken from {labels}", tuple(rows), written=True)
    hints = Hints.of(question.function, question.namespace, question.sizes)
    chooser = Chooser(hints, question.tensors, question.untyped)
    made = search(parameters, chooser, question.seeds, fits, question.has_weights)
    return Derived(BY_TYPE, tuple(made), written=False) if made else None
