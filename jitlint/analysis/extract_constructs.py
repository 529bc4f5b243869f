"""Which graph break a construct of the language, or one way to call a function, causes.

Section `constructs` of a table: key -> {"breaks": id, "captured": true where it does not
break with `fullgraph=True`, "given": true where it breaks on inputs of the region too,
"exported" or "refused": whether torch.export takes it without `strict`, said where that is not
the same as with `fullgraph=True`}. A key is the name of a function of
`extract_construct_bodies`, whose body is the construct. Only those that break are listed.
Every tensor is computed in the region, since an input of rank 0 can be read without a break,
at the price of a guard on its value.
"""

import inspect
from collections.abc import Callable
from typing import Any

from jitlint.analysis.extract_exports import exports
from jitlint.analysis.extract_regions import compile_region, in_processes

AT_ONCE = 20


def constructs() -> dict[str, dict[str, Any]]:
    from jitlint.analysis import extract_construct_bodies

    bodies = inspect.getmembers(extract_construct_bodies, inspect.isfunction)
    found = {name: e for (name, _), e in in_processes(_measure, bodies, AT_ONCE) if e}
    return {name: found[name] for name in sorted(found)}


def _measure(body: tuple[str, Callable[[Any], Any]]) -> dict[str, Any]:
    _, construct = body

    def region(x: Any) -> Any:
        construct(_tensors(x))
        return x + 1

    def region_of_result(x: Any) -> Any:
        return construct(_tensors(x))

    region(_input())
    outcome = compile_region(region_of_result, _input())
    if outcome.identifier is None:
        return {}
    entry: dict[str, Any] = {"breaks": outcome.identifier}
    if compile_region(region, _input(), fullgraph=True).clean:
        entry["captured"] = True
    if compile_region(construct, _tensors(_input())).identifier is not None:
        entry["given"] = True
    is_exported = exports(lambda x: construct(_tensors(x)), (_input(),))
    if is_exported is not entry.get("captured", False):
        entry["exported" if is_exported else "refused"] = True
    return {**entry, "source": "measured"}


def _input() -> Any:
    import torch

    return torch.tensor([[1.0, 2.0, 0.5], [0.25, 3.0, 1.5], [2.0, 0.125, 1.0]])


def _tensors(x: Any) -> Any:
    """What the constructs work on, all computed from `x`."""
    return Values(
        x=x * 2,
        vector=x[0] * 2,
        mask=x > 1,
        count=4,
        row_mask=x[0] > 1,
        scalar=x.sum(),
        flag=x.sum() > 0,
        index=x[0].argmax(),
        indices=x.argmax(dim=0),
        integer=x[0].argmax() + 1,
        numbers=[1.0, 2.0, 3.0],
        words={"a": 1},
    )


class Values:
    """What the constructs work on, by name."""

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, value)
