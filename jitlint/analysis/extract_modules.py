"""What calling an instance of each class of `torch.nn` returns."""

from collections.abc import Iterator
from typing import Any

from jitlint.analysis.extract_kinds import TENSOR, TENSORS, kind_of, kind_of_annotation
from jitlint.analysis.extract_stubs import signature_of

FLAGS = frozenset({"return_indices"})
"""Arguments of constructors that change what is returned."""


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
            result = module(*sample.forward_input.args, **sample.forward_input.kwargs)
        except Exception:
            continue
        yield frozenset(flag for flag in FLAGS if made.kwargs.get(flag)), result


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
