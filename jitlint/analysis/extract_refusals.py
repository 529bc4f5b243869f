"""Calls that torch.export refuses whatever they are given, though torch.compile may take them.

`refused` in entries of a table: no call that works could be exported with `strict=False`, the
default since 2.7, which runs the program in Python on tensors without values. What no tensor
goes into is Python's own business, and not tried.
"""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from jitlint.analysis.extract_arguments import evaluate, tensor_calls, working
from jitlint.analysis.extract_breaks import caller
from jitlint.analysis.extract_exports import SECTIONS, exports
from jitlint.analysis.extract_numpy import numpy_subjects
from jitlint.analysis.extract_regions import in_processes
from jitlint.analysis.extract_samples import Sample, map_tensors, tensors_of
from jitlint.analysis.extract_standard import prepare_imports, subjects
from jitlint.analysis.extract_subjects import Subject, functions, methods

TRIES = 4
AT_ONCE = 20


def with_refusals(table: dict[str, Any]) -> dict[str, Any]:
    """The sections with `refused` in their entries."""
    known = {each.name: each for each in (*functions(), *methods(), *numpy_subjects())}
    updated: dict[str, Any] = {}
    for section, prefix in SECTIONS.items():
        chosen = [known[prefix + name] for name in table[section] if prefix + name in known]
        found = in_processes(_is_refused, chosen, AT_ONCE)
        refused = {subject.name.removeprefix(prefix) for subject, is_so in found if is_so}
        updated[section] = _marked(table[section], refused)
    prepare_imports()
    given = {name for name, entry in table["standard"].items() if "with_tensor" in entry}
    calls = [subject for subject in subjects() if subject.name in given]
    refused = {subject.name for subject, is_so in in_processes(_is_refused_call, calls, 5) if is_so}
    return updated | {"standard": _marked(table["standard"], refused)}


def _marked(section: dict[str, Any], refused: set[str]) -> dict[str, Any]:
    return {
        name: {**entry, "refused": True} if name in refused else entry
        for name, entry in section.items()
    }


def _is_refused(subject: Subject) -> bool:
    tried = list(itertools.islice(_samples(subject), TRIES))
    return bool(tried) and not any(_exports(subject, sample) for sample in tried)


def _samples(subject: Subject) -> Iterator[Sample]:
    """Calls that work and are given a tensor, as different as they come."""
    for sample in subject.samples():
        given = _of_tensors(sample) if subject.name.startswith("numpy.") else sample
        if sample.compiles and given.tensors() and given.runs():
            yield given


def _of_tensors(sample: Sample) -> Sample:
    """The same call of NumPy, with tensors for arrays."""
    import numpy
    import torch

    args = (torch.from_numpy(a) if isinstance(a, numpy.ndarray) else a for a in sample.args)
    return replace(sample, args=tuple(args))


def _exports(subject: Subject, sample: Sample) -> bool:
    call = caller(subject, sample)
    given = sample.copy()

    def run(*tensors: Any) -> None:
        left = iter(tensors)
        args, kwargs = map_tensors([list(given.args), given.kwargs], lambda _: next(left))
        call(*args, **kwargs)

    return exports(run, tuple(tensors_of((given.args, given.kwargs))))


def _is_refused_call(subject: Any) -> bool:
    function = subject.resolve()
    texts = working(tensor_calls(subject.name, function), subject.call, TRIES)
    calls = [evaluate(text) for text in texts]
    return bool(calls) and not any(
        exports(lambda *args, k=kwargs: function(*args, **k), args) for args, kwargs in calls
    )
