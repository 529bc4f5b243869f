"""Values taken apart into leaves, and leaves compared.

A value is flattened into `(path, leaf)` pairs; containers leave a pair of their own that
names their type, so that a tuple that became a list is a difference too.
"""

import collections
import dataclasses
import enum
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# The tolerance of a Python float: what `.item()` of a float32 keeps.
FLOAT_TOLERANCE = 1.3e-6
SHOWN_LENGTH = 160
_SCALARS = (int, float, complex, str, bytes)
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_GRAD_FN = re.compile(r"grad_fn=<\w+>")


class Snapshot(ABC):
    """A tensor as it was at one moment."""

    __slots__ = ()

    @abstractmethod
    def difference(self, actual: Any, slack: float) -> str | None: ...

    @abstractmethod
    def shown(self) -> str: ...


SNAPSHOTS: list[Callable[[object], Snapshot | None]] = []
"""What takes a tensor's snapshot, one for each framework that is in use; None of others."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of a container."""

    name: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """The type of an object that cannot be looked into."""

    name: str


Leaf = object
Flat = dict[str, Leaf]


def flatten(value: object, path: str) -> Flat:
    return dict(_flatten(value, path, set()))


def opaque_in(flat: Flat) -> str | None:
    """The type of the first object of which only the type is known."""
    return next((leaf.name for leaf in flat.values() if isinstance(leaf, Opaque)), None)


def difference(expected: Leaf, actual: Leaf, slack: float = 1.0) -> str | None:
    """`None`, or in a few words what the two differ in. `slack` widens the tolerance."""
    if type(expected) is not type(actual):
        return f"{show(expected)} became {show(actual)}"
    if isinstance(expected, Snapshot):
        return expected.difference(actual, slack)
    if isinstance(expected, (float, complex)) and isinstance(actual, (float, complex)):
        same = _close(expected, actual)
    elif hasattr(expected, "dtype"):  # NumPy arrays and scalars
        same = _same_arrays(expected, actual)
    else:
        same = expected == actual
    return None if same else f"{show(expected)} became {show(actual)}"


def flat_difference(expected: Flat, actual: Flat, slack: float = 1.0) -> str | None:
    """The first difference between two flattened values."""
    for path, leaf in expected.items():
        if path not in actual:
            return f"{path} is missing"
        found = difference(leaf, actual[path], slack)
        if found is not None:
            return f"{path}: {found}"
    extra = next((path for path in actual if path not in expected), None)
    return f"{extra} is new" if extra is not None else None


def show(leaf: Leaf) -> str:
    if isinstance(leaf, Snapshot):
        text = leaf.shown()
    elif isinstance(leaf, (Kind, Opaque)):
        text = leaf.name
    else:
        text = repr(leaf)
    return text if len(text) <= SHOWN_LENGTH else text[: SHOWN_LENGTH - 1] + "…"


def stable_text(text: str) -> str:
    """Without what differs from run to run, or with the operation that made a value."""
    return _GRAD_FN.sub("grad_fn=<…>", _ADDRESS.sub("0x…", text))


def walk(value: object, path: str, above: set[int]) -> Iterator[tuple[str, object]]:
    """Leaves and containers; a container comes as its `Kind`, before its members."""
    members = _members(value)
    if members is None:
        yield path, value
        return
    if id(value) in above:
        yield path, Kind("a cycle")
        return
    order = f" of {', '.join(members)}" if isinstance(value, dict) else ""
    yield path, Kind(stable_text(f"{type(value).__name__}[{len(members)}]{order}"))
    for name, member in members.items():
        yield from walk(member, f"{path}{name}", above | {id(value)})


def _members(value: object) -> Mapping[str, object] | None:
    """What a container holds, by the suffix that a path gets; `None` for a leaf."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {f".{name}": getattr(value, name) for name in value._fields}
    if isinstance(value, (list, tuple, collections.deque)):
        return {f"[{index}]": item for index, item in enumerate(value)}
    if isinstance(value, Mapping):
        return {f"[{key!r}]": item for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f".{field.name}": getattr(value, field.name) for field in dataclasses.fields(value)}
    if _is_plain_object(value):
        return {f".{name}": item for name, item in vars(value).items()}
    return None


def _is_plain_object(value: object) -> bool:
    """An instance of a class of the user's: its attributes are its value."""
    kind = type(value)
    return (
        hasattr(value, "__dict__")
        and kind.__module__.partition(".")[0] not in ("torch", "numpy", "builtins", "functools")
        and not isinstance(value, (type, enum.Enum, BaseException))
        and not isinstance(value, _SCALARS)
        and not callable(value)
        and _snapshot(value) is None
    )


def _flatten(value: object, path: str, above: set[int]) -> Iterator[tuple[str, Leaf]]:
    for where, item in walk(value, path, above):
        yield where, _leaf(item)


def _leaf(item: object) -> Leaf:
    snapshot = _snapshot(item)
    if snapshot is not None:
        return snapshot
    if type(item) in (bool, int, float, complex, str, bytes, type(None), Kind, Opaque):
        return item
    if isinstance(item, (enum.Enum, type)):
        return f"{type(item).__name__} {item}"
    if isinstance(item, (set, frozenset, range, slice)) or _name(item) in TOLD_BY_REPR:
        return stable_text(
            repr(sorted(item, key=repr) if isinstance(item, (set, frozenset)) else item)
        )
    if type(item).__module__ == "numpy":
        return item.copy() if hasattr(item, "copy") else item
    if isinstance(item, _SCALARS):
        # Of a class of the user's: what is compared elsewhere must not need his module.
        return stable_text(f"{type(item).__name__} {item!r}")
    return Opaque(_name(item))


TOLD_BY_REPR = frozenset({"torch.dtype", "torch.device", "torch.layout"})


def _name(item: object) -> str:
    return f"{type(item).__module__}.{type(item).__qualname__}"


def _snapshot(value: object) -> Snapshot | None:
    return next(filter(None, (take(value) for take in SNAPSHOTS)), None)


def _close(expected: complex, actual: complex) -> bool:
    if isinstance(expected, complex) or isinstance(actual, complex):
        return _close(expected.real, actual.real) and _close(expected.imag, actual.imag)
    if math.isnan(expected) or math.isnan(actual):
        return math.isnan(expected) and math.isnan(actual)
    return math.isclose(expected, actual, rel_tol=FLOAT_TOLERANCE, abs_tol=1e-12)


def _same_arrays(expected: Any, actual: Any) -> bool:
    import numpy

    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        return False
    if expected.dtype.kind in "fc":
        return bool(numpy.allclose(expected, actual, rtol=FLOAT_TOLERANCE, equal_nan=True))
    return bool(numpy.array_equal(expected, actual))
