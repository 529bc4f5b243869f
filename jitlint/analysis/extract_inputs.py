"""Methods that break a graph where the tensor is an input of it, and not one made there.

`input` in an entry of the section of methods: the graph break. In-place methods that give a
tensor another shape or history are such: the caller would see it.
"""

from collections.abc import Mapping
from typing import Any

from jitlint.analysis.extract_breaks import working_samples
from jitlint.analysis.extract_regions import compile_region, in_processes
from jitlint.analysis.extract_subjects import Subject, methods

AT_ONCE = 40


def with_inputs(table: Mapping[str, Any]) -> dict[str, Any]:
    """The section of methods with `input` in its entries."""
    found = dict(table)
    in_place = [each for each in methods() if _name(each).endswith("_") and _name(each) in table]
    for subject, identifier in in_processes(_break_at_input, in_place, AT_ONCE):
        entry = found[_name(subject)]
        if identifier is not None and not entry.get("breaks"):
            found[_name(subject)] = {**entry, "input": identifier}
    return found


def _name(subject: Subject) -> str:
    return subject.name.rpartition(".")[2]


def _break_at_input(subject: Subject) -> str | None:
    """The break of the first call that works, if its tensor needs no gradient."""
    import torch

    name = _name(subject)
    for sample in working_samples(subject):
        tensor, *args = sample.copy().args
        if not isinstance(tensor, torch.Tensor):
            continue

        def on_input(x: Any, args: Any = args, kwargs: Any = sample.kwargs) -> Any:
            getattr(x, name)(*args, **kwargs)
            return x + 1

        def on_new(x: Any, on_input: Any = on_input) -> Any:
            return on_input(x.clone())

        if compile_region(on_new, tensor.detach()).identifier is not None:
            return None
        return compile_region(on_input, tensor.detach().clone()).identifier
    return None
