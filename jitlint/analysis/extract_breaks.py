"""Which graph break a call causes under torch.compile, found by compiling it.

Each function is compiled alone, with a backend that does nothing, in a process of its own:
in default mode, and where that breaks, with `fullgraph=True`, which captures reads of a
scalar and shapes that depend on data.
"""

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jitlint.analysis.extract_numpy import numpy_samples, numpy_subjects
from jitlint.analysis.extract_regions import Outcome, compile_region, in_processes
from jitlint.analysis.extract_samples import Sample
from jitlint.analysis.extract_subjects import Subject, functions, methods

TRIES = 5
AT_ONCE = 10
"""How many functions share a process."""
BREAKS = frozenset({"breaks", "reads", "with_tensor", "with_tensor_inside"})
"""Fields of an entry that hold the id of a break."""
DYNAMIC_SHAPE = "GB0036"
"""The break at an operator whose output shape depends on data."""
OF_DATA = frozenset({"GB0033", DYNAMIC_SHAPE})
"""The breaks that the data of a tensor causes."""
BUILTINS: dict[str, Callable[..., Any]] = {
    "__bool__": bool,
    "__int__": int,
    "__float__": float,
    "__complex__": complex,
    "__len__": len,
    "__index__": operator.index,
    "__format__": format,
    "__repr__": repr,
    "__str__": str,
    "__hash__": hash,
    "__iter__": list,
    "__contains__": operator.contains,
    "__reversed__": reversed,
}
"""How a program calls a special method that has no operator."""


def measure_breaks(names: Iterable[str]) -> dict[str, tuple[str, bool]]:
    """The break of each function that always causes one, and whether fullgraph captures it."""
    subjects = {subject.name: subject for subject in (*functions(), *methods(), *numpy_subjects())}
    wanted = [subjects[name] for name in names]
    return {
        subject.name: found for subject, found in in_processes(_break_of, wanted, AT_ONCE) if found
    }


def measure_breaks_of_arrays(names: Iterable[str]) -> dict[str, tuple[str, bool]]:
    """The break of each function of NumPy that every call causes which is given an array.

    Only where their data is what breaks: an array is no argument for `numpy.ones`.
    """
    wanted = [subject for subject in numpy_subjects() if subject.name in set(names)]
    for subject in wanted:
        subject.written = functools.partial(numpy_samples, subject.call, of_arrays=True)
    seen = in_processes(_break_of, wanted, AT_ONCE)
    return {subject.name: found for subject, found in seen if found and found[0] in OF_DATA}


def _break_of(subject: Subject) -> tuple[str, bool] | None:
    """The first break, where every call tried causes one; captured, if most of them are."""
    samples = list(itertools.islice(working_samples(subject), TRIES))
    first = None
    for sample in samples:
        identifier = compile_call(subject, sample).identifier
        if identifier is None:
            return None
        first = first or identifier
    if first is None:
        return None
    clean = [compile_call(subject, sample, fullgraph=True).clean for sample in samples]
    return first, 2 * sum(clean) > len(clean)


def working_samples(subject: Subject) -> Iterator[Sample]:
    """Calls that work, as different as they come."""
    samples = [sample for sample in subject.samples() if sample.compiles]
    plain = [sample for sample in samples if not sample.with_dim] or samples
    if not plain and not any(p.required for o in subject.overloads for p in o.parameters):
        plain = [Sample(subject.call, (), {}, False, "measured")]
    last = len(plain) - 1
    spread = [plain[last * step // (TRIES - 1)] for step in range(TRIES)] if plain else []
    for sample in [*dict.fromkeys(spread), *plain]:
        if sample.runs():
            yield sample


def compile_call(subject: Subject, sample: Sample, *, fullgraph: bool = False) -> Outcome:
    """What compiling this call does; with `fullgraph` its result is dropped.

    A result that only breaks when it leaves the graph does not count against the call.
    """
    import torch

    call = caller(subject, sample)

    def region(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = call(*args, **kwargs)
        return None if fullgraph else result

    def region_of_tensor(first: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        result = call(first.clone(), *args, **kwargs)
        return first + 1 if fullgraph else result

    fresh = sample.copy()
    first = next(iter(fresh.args), None)
    if isinstance(first, torch.Tensor):
        arguments = first, fresh.args[1:], fresh.kwargs
        return compile_region(region_of_tensor, *arguments, fullgraph=fullgraph)
    return compile_region(region, fresh.args, fresh.kwargs, fullgraph=fullgraph)


def caller(subject: Subject, sample: Sample) -> Callable[..., Any]:
    name = subject.name.rpartition(".")[2]
    if not subject.method:
        return sample.call
    special = BUILTINS.get(name)
    if special is None and name.startswith("__"):
        special = getattr(operator, name, None)
    if special is not None:
        return special
    return lambda receiver, *args, **kwargs: getattr(receiver, name)(*args, **kwargs)
