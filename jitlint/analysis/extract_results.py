"""Which functions of the standard library compute with a tensor as an operator does.

`computes` in an entry of a table: given tensors without values, the call returns tensors. It
reads none, whatever a compiler makes of it (`pow`, `copy.copy`).
"""

from typing import Any

from jitlint.analysis.extract_arguments import evaluate, tensor_calls, working
from jitlint.analysis.extract_regions import in_processes
from jitlint.analysis.extract_samples import map_tensors
from jitlint.analysis.extract_standard import Subject, prepare_imports, subjects

TRIES = 8


def with_results(standard: dict[str, Any]) -> dict[str, Any]:
    """The section with `computes` in its entries."""
    prepare_imports()
    given = {name for name, entry in standard.items() if "with_tensor" in entry}
    chosen = [subject for subject in subjects() if subject.name in given]
    computing = {subject.name for subject, passes in in_processes(_computes, chosen, 5) if passes}
    return {
        name: {**entry, "computes": True} if name in computing else entry
        for name, entry in standard.items()
    }


def _computes(subject: Subject) -> bool:
    texts = working(tensor_calls(subject.name, subject.resolve()), subject.call, TRIES)
    return bool(texts) and all(_computes_without_values(subject, text) for text in texts)


def _computes_without_values(subject: Subject, text: str) -> bool:
    import torch
    from torch._subclasses import FakeTensorMode

    function = subject.resolve()
    args, kwargs = evaluate(text)
    with FakeTensorMode() as mode:
        given = [map_tensors(argument, mode.from_tensor) for argument in args]
        try:
            result = function(*given, **kwargs)
        except Exception:
            return False
        leaves = result if isinstance(result, tuple) else (result,)
        return all(isinstance(leaf, torch.Tensor) for leaf in leaves)
