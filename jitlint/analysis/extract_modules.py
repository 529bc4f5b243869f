"""What calling an instance of each class of `torch.nn` returns."""

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

from jitlint.analysis.extract_kinds import TENSOR, TENSORS, kind_of, kind_of_annotation
from jitlint.analysis.extract_regions import compile_region, in_processes
from jitlint.analysis.extract_stubs import signature_of

FLAGS = frozenset({"return_indices"})
"""Arguments of constructors that change what is returned."""
TRIES = 3


def modules() -> dict[str, dict[str, Any]]:
    import torch

    measured = _measured()
    found: dict[str, dict[str, Any]] = {}
    for name, cls in vars(torch.nn).items():
        if isinstance(cls, type) and issubclass(cls, torch.nn.Module):
            entry = measured.get(name) or _declared(cls)
            if entry:
                found[f"torch.nn.{name}"] = entry
    return found


def _declared(cls: Any) -> dict[str, Any]:
    kind, items = kind_of_annotation(signature_of(cls.forward)[0].returns)
    if kind not in (TENSOR, TENSORS):
        return {}
    return {"returns": kind, **({"items": items} if items else {}), "source": "annotation"}


def _measured() -> dict[str, dict[str, Any]]:
    """Seen on the module inputs of torch's own test suite."""
    from torch.testing._internal.common_modules import module_db

    found: dict[str, dict[str, Any]] = {}
    for info in module_db:
        seen = list(_results(info))
        default = [result for flags, result in seen if not flags]
        shapes = {repr(structure_of(result)): result for result in default}
        if len(shapes) != 1:
            continue
        entry = _entry(structure_of(default[0]))
        flagged = {
            flag: kind_of(result)
            for flags, result in seen
            for flag in flags
            if kind_of(result) != entry.get("returns")
        }
        if entry:
            flags_entry = {"with_flag": flagged} if flagged else {}
            found[info.module_cls.__name__] = {**entry, **flags_entry, "source": "measured"}
    return found


def _results(info: Any) -> Iterator[tuple[frozenset[str], Any]]:
    for flags, module, sample in _calls(info):
        with contextlib.suppress(Exception):
            yield flags, module(*sample.args, **sample.kwargs)


def _calls(info: Any) -> Iterator[tuple[frozenset[str], Any, Any]]:
    """Instances of a class, the flags that they were made with, and what they are called on."""
    import torch

    try:
        inputs = info.module_inputs_func(
            info, device="cpu", dtype=torch.float32, requires_grad=False, training=False
        )
    except Exception:
        return
    for sample in inputs:
        made = sample.constructor_input
        try:
            module = info.module_cls(*made.args, **made.kwargs)
        except Exception:
            continue
        flags = frozenset(flag for flag in FLAGS if made.kwargs.get(flag))
        yield flags, module, sample.forward_input


def module_breaks(known: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The section `modules` with the break that every call of an instance causes."""
    from torch.testing._internal.common_modules import module_db

    found = {name: dict(entry) for name, entry in known.items()}
    for info, identifier in in_processes(_break_of, list(module_db), 5):
        entry = found.get(f"torch.nn.{info.module_cls.__name__}")
        if entry is not None and identifier:
            entry["breaks"] = identifier
    return found


def with_gradients(known: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The section `modules` with the layers whose result requires a gradient of its own."""
    from torch.testing._internal.common_modules import module_db

    found = {name: dict(entry) for name, entry in known.items()}
    for info in module_db:
        entry = found.get(f"torch.nn.{info.module_cls.__name__}")
        results = [result for _, result in _results(info)]
        if entry is not None and results and all(map(_requires_gradient, results)):
            entry["grad"] = True
    return found


def _requires_gradient(result: Any) -> bool:
    if isinstance(result, tuple):
        return all(map(_requires_gradient, result))
    return bool(getattr(result, "requires_grad", False))


def _break_of(info: Any) -> str | None:
    import torch

    identifiers = []
    for _, module, sample in itertools.islice(_calls(info), TRIES):

        def region(x: Any, module: Any = module, sample: Any = sample) -> Any:
            return module(*sample.args, **sample.kwargs), x + 1

        identifiers.append(compile_region(region, torch.ones(2)).identifier)
    return identifiers[0] if identifiers and None not in identifiers else None


def structure_of(result: Any) -> Any:
    """The kind of a result; of a tuple, the list of the structures of its items."""
    if isinstance(result, tuple):
        return [structure_of(item) for item in result]
    return kind_of(result)


def _entry(structure: Any) -> dict[str, Any]:
    if not isinstance(structure, list):
        return {"returns": structure} if structure else {}
    entry: dict[str, Any] = {"returns": TENSORS, "items": len(structure)}
    if any(item != TENSOR for item in structure):
        entry["structure"] = structure
    return entry
