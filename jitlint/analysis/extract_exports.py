"""What torch.export takes of the calls that break a graph under torch.compile.

`exported` in entries of a table: `torch.export.export`, which runs the program in Python and
follows its tensors (`strict=False`, the default since 2.7), goes through a call of it. What
no tensor goes into is Python's own business, and not tried.
"""

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from jitlint.analysis.extract_arguments import inside_calls, tensor_calls, working
from jitlint.analysis.extract_breaks import BREAKS, caller, working_samples
from jitlint.analysis.extract_numpy import numpy_subjects
from jitlint.analysis.extract_regions import in_processes
from jitlint.analysis.extract_standard import prepare_imports, subjects
from jitlint.analysis.extract_subjects import functions, methods
from jitlint.time_limit import time_limit

SECTIONS = {"functions": "", "methods": "Tensor.", "numpy": ""}
"""Sections of operators, and what stands before their names in an extraction."""
TRIES = 3
SECONDS = 10


def with_exports(table: dict[str, Any]) -> dict[str, Any]:
    """The sections with `exported` in their entries."""
    known = {each.name: each for each in (*functions(), *methods(), *numpy_subjects())}
    updated: dict[str, Any] = {}
    for section, prefix in SECTIONS.items():
        names = [name for name, entry in table[section].items() if BREAKS & entry.keys()]
        chosen = [known[prefix + name] for name in names if prefix + name in known]
        taken = {
            subject.name for subject, passes in in_processes(_operator_passes, chosen, 5) if passes
        }
        updated[section] = _marked(table[section], {name.removeprefix(prefix) for name in taken})
    updated["standard"] = _marked(table["standard"], _standard(table["standard"]))
    return updated


def _marked(section: dict[str, Any], taken: set[str]) -> dict[str, Any]:
    return {
        name: {**entry, "exported": True} if name in taken else entry
        for name, entry in section.items()
    }


def _standard(standard: dict[str, Any]) -> set[str]:
    prepare_imports()
    plain = {name for name, entry in standard.items() if "breaks" in entry}
    with_tensors = {name for name in standard.keys() - plain if BREAKS & standard[name].keys()}
    chosen = [subject for subject in subjects() if subject.name in with_tensors]
    return plain | {each.name for each, passes in in_processes(_call_passes, chosen, 5) if passes}


def _operator_passes(subject: Any) -> bool:
    samples = list(itertools.islice(working_samples(subject), TRIES))
    outcomes = []
    for sample in samples:
        fresh = sample.copy()
        call = caller(subject, sample)
        outcomes.append(exports(lambda *args, c=call, k=fresh.kwargs: c(*args, **k), fresh.args))
    return bool(outcomes) and all(outcomes)


def _call_passes(subject: Any) -> bool:
    from jitlint.analysis.extract_arguments import evaluate

    function = subject.resolve()
    texts: Iterator[str] = itertools.chain(
        tensor_calls(subject.name, function), inside_calls(subject.name, function)
    )
    found = working(texts, subject.call, TRIES)
    calls = [evaluate(text) for text in found]
    return bool(calls) and all(
        exports(lambda *args, k=kwargs: function(*args, **k), args) for args, kwargs in calls
    )


def exports(call: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether a program that makes the call on copies of tensors is exported."""
    import torch

    class Program(torch.nn.Module):
        def forward(self, x: Any, *args: Any) -> Any:
            copies = [each.clone() if isinstance(each, torch.Tensor) else each for each in args]
            call(*copies)
            return x + 1

    with contextlib.suppress(Exception), time_limit(SECONDS, TimeoutError):
        torch.export.export(Program(), (torch.ones(2), *args))
        return True
    return False
