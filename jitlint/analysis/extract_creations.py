"""The dtypes of tensors that are made of numbers, and of no other tensor.

`created` in an entry of a table: the dtype that it has without the argument `dtype`, or
"numbers", where it is that of the numbers which it is given.
"""

from collections.abc import Mapping
from typing import Any

from jitlint.analysis.extract_regions import in_processes
from jitlint.analysis.extract_subjects import Subject, functions

FORMS = ("{0}", "[{0}, {1}]", "{0}, {1}", "(3,), {0}", "{0}, (3,)", "{0}, {1}, {0}", "0, {0}, (3,)")
"""Arguments of functions that make tensors; "{0}" is a number."""
INTEGERS, FLOATS = (3, 4), (3.5, 4.5)
AT_ONCE = 40


def with_creations(table: Mapping[str, Any]) -> dict[str, Any]:
    """The section of functions with `created` in its entries."""
    found = dict(table)
    makers = [subject for subject in functions() if subject.name in table]
    for subject, dtype in in_processes(_created, makers, AT_ONCE):
        if dtype is not None:
            found[subject.name] = {**found[subject.name], "created": dtype}
    return found


def _created(subject: Subject) -> str | None:
    of_integers, of_floats = _dtypes(subject, INTEGERS), _dtypes(subject, FLOATS)
    if len(of_integers) != 1 or len(of_floats) > 1:
        return None
    if of_integers == of_floats or not of_floats:
        return of_integers.pop()
    return "numbers" if (of_integers, of_floats) == ({"int64"}, {"float32"}) else None


def _dtypes(subject: Subject, numbers: tuple[Any, ...]) -> set[str]:
    """Of the tensors that calls with these numbers make."""
    import torch

    found = set()
    for form in FORMS:
        try:
            result = subject.call(*eval(f"({form.format(*numbers)},)"))
        except Exception:
            continue
        if isinstance(result, torch.Tensor):
            found.add(str(result.dtype).removeprefix("torch."))
    return found
