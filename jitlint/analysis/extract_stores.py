"""Which graph break setting or reading an attribute of a tensor causes.

Section `stores` of a table: attribute -> {"breaks": id} where `tensor.attribute = value`
breaks on an argument of the region as on a tensor made in it, else {"input": id} or
{"intermediate": id}, or both; "captured" where it does not with `fullgraph=True`.

Section `attribute_breaks`: the same of reading `tensor.attribute`.

Every attribute of a tensor is tried, on tensors with and without a gradient, and stores with
`VALUES` that work in Python. "some": it breaks with some of them only.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from jitlint.analysis.extract_regions import Outcome, compile_region, in_processes

VALUES: tuple[Callable[[Any], Any], ...] = (
    lambda tensor: tensor.detach().clone(),
    lambda tensor: True,
    lambda tensor: None,
    lambda tensor: tensor.detach().clone().real,
    lambda tensor: ["N"],
    lambda tensor: {},
    lambda tensor: lambda *args: None,
)
"""What is stored, made from the tensor."""
VALUES_EACH = 2
"""How many of those that work in Python are stored in each tensor."""


def stores() -> dict[str, dict[str, Any]]:
    return _section(_measure_store)


def attribute_breaks() -> dict[str, dict[str, Any]]:
    return _section(_measure_read)


def _section(measure: Callable[[str], dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = {name: entry for name, entry in in_processes(measure, _attributes(), 10) if entry}
    return {name: found[name] for name in sorted(found)}


def _attributes() -> list[str]:
    """Everything of a tensor that is not a method, and an attribute that it does not have."""
    import torch

    tensor = torch.ones(2)
    names = []
    for name in dir(tensor):
        raw = inspect.getattr_static(torch.Tensor, name, None)
        special = name.startswith("__")
        if not special and (inspect.isdatadescriptor(raw) or not callable(raw)):
            names.append(name)
    return [*names, "an_attribute"]


def _tensors() -> Iterator[Callable[[], Any]]:
    """Tensors on which an attribute may be had."""
    import torch

    yield lambda: torch.tensor([0.5, 1.0])
    yield lambda: torch.tensor([0.5, 1.0]).requires_grad_()
    yield lambda: torch.tensor([0.5, 1.0], dtype=torch.complex64)
    yield lambda: torch.tensor([[0.5, 1.0], [0.25, 2.0]])


def _measure_store(name: str) -> dict[str, Any]:
    def store(tensor: Any, value: Any) -> None:
        setattr(tensor, name, value)

    cases = []
    for make in _tensors():
        working = [(make, value) for value in VALUES if _runs(store, make, value)]
        cases += working[:VALUES_EACH]
    return _entry(store, cases)


def _measure_read(name: str) -> dict[str, Any]:
    def read(tensor: Any, value: Any) -> None:
        getattr(tensor, name)

    cases = [(make, VALUES[1]) for make in _tensors() if _runs(read, make, VALUES[1])]
    return _entry(read, cases)


def _runs(
    act: Callable[[Any, Any], None], make: Callable[[], Any], value: Callable[[Any], Any]
) -> bool:
    tensor = make()
    try:
        act(tensor, value(make()))
    except Exception:
        return False
    return True


def _entry(act: Callable[[Any, Any], None], cases: list[tuple[Any, Any]]) -> dict[str, Any]:
    found: dict[str, str] = {}
    everywhere = True
    captured = True
    for place in ("input", "intermediate"):
        outcomes = [(case, _compile(act, case, place, False)) for case in cases]
        broken = [(case, outcome.identifier) for case, outcome in outcomes if outcome.identifier]
        if broken:
            found[place] = broken[0][1]
            everywhere &= len(broken) == len(cases)
            captured &= all(_compile(act, case, place, True).clean for case, _ in broken)
    if not found:
        return {}
    if found.get("input") == found.get("intermediate"):
        found = {"breaks": found["input"]}
    flags = {"some": not everywhere, "captured": captured}
    return {
        **found,
        **{flag: True for flag, is_set in flags.items() if is_set},
        "source": "measured",
    }


def _compile(
    act: Callable[[Any, Any], None], case: tuple[Any, Any], place: str, fullgraph: bool
) -> Outcome:
    make, value = case
    tensor = make()
    made = place == "intermediate"

    def region(tensor: Any, value: Any) -> Any:
        chosen = tensor.clone() if made else tensor
        act(chosen, value)
        return tensor + 1

    return compile_region(region, tensor, value(make()), fullgraph=fullgraph)
