"""Symbolic dtypes: those of results, in terms of tensors and numbers whose own are not known."""

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

NO_NUMBER, WHOLE, FLOATING = 0, 1, 2
REAL, WIDE = "real ", "wide "
"""Leaves: `real x` is what `abs` makes of the dtype of `x`, and `wide x` what `sum` does
(int64 of all whole numbers). `dtype:…` is a known dtype."""


@dataclass(frozen=True, slots=True)
class DType:
    """The promotion of the dtypes of `leaves` with numbers.

    `numbers` are Python numbers whose types are not known. `parts` are the operands with
    their shapes where several dtypes were mixed, since a tensor of rank 0 gives way.
    """

    leaves: frozenset[str]
    number: int = NO_NUMBER
    numbers: frozenset[str] = frozenset()
    parts: "frozenset[Operand]" = frozenset()

    def with_number(self, number: int, names: Iterable[str] = ()) -> "DType":
        number = max(self.number, number)
        numbers = frozenset() if number == FLOATING else self.numbers | frozenset(names)
        return replace(self, number=number, numbers=numbers)

    @property
    def key(self) -> str:
        parts = sorted(f"({dtype.key} at {sorted(shape)})" for dtype, shape in self.parts)
        return f"{parts or sorted(self.leaves)} {self.number} {sorted(self.numbers)}"

    def over(self, prefix: str) -> "DType":
        """The dtype of an operator that makes something else of some dtypes."""
        known = {leaf for leaf in self.leaves if _is_as_it_is(leaf, prefix)}
        leaves = known | {f"{prefix}{leaf}" for leaf in self.leaves - known}
        parts = frozenset((dtype.over(prefix), shape) for dtype, shape in self.parts)
        return replace(self, leaves=frozenset(leaves), parts=parts)


Operand = tuple[DType, frozenset[str]]
"""A dtype with the tensors that decide on the shape (none: rank 0)."""


def _is_as_it_is(leaf: str, prefix: str) -> bool:
    return is_floating(leaf) or (prefix == REAL and leaf.startswith("dtype:"))


def known(dtype: str) -> DType:
    return DType(frozenset({f"dtype:{dtype}"}))


BOOL = known("bool")


def promoted(operands: Sequence[Operand]) -> DType:
    """What arithmetic makes of several dtypes."""
    first = operands[0][0]
    number = max(dtype.number for dtype, _ in operands)
    names = {name for dtype, _ in operands for name in dtype.numbers}
    if all((dtype.leaves, dtype.parts) == (first.leaves, first.parts) for dtype, _ in operands):
        return DType(first.leaves, parts=first.parts).with_number(number, names)
    for whole, _ in operands:
        if all(dtype == whole or (dtype, shape) in whole.parts for dtype, shape in operands):
            return whole
    leaves = frozenset().union(*(dtype.leaves for dtype, _ in operands))
    return DType(leaves, parts=frozenset(operands))


# -- what is known of a dtype ----------------------------------------------------------------


class Kind(enum.Enum):
    """Dtypes that some operators refuse. The value says that a tensor is not of the kind."""

    BOOL = "is not bool"
    COMPLEX = "is real"
    WHOLE = "is floating"
    FLOATING = "holds whole numbers"


@dataclass(frozen=True, slots=True)
class Proven:
    """Leaves that are known to be real, and those that are real and floating."""

    real: frozenset[str] = frozenset()
    floating: frozenset[str] = frozenset()


NOTHING = Proven()


def can_be(kind: Kind, dtype: DType, proven: Proven = NOTHING) -> bool:
    """Whether a dtype may be of a kind, for all that is known."""
    leaves = dtype.leaves
    match kind:
        case Kind.BOOL:
            maybe = (leaf == "dtype:bool" or _is_open(leaf, proven) for leaf in leaves)
            wide = any(leaf.startswith(WIDE) for leaf in leaves)
            return dtype.number == NO_NUMBER and not wide and all(maybe)
        case Kind.WHOLE:
            floats = any(is_floating(leaf, proven) or is_complex(leaf) for leaf in leaves)
            return dtype.number < FLOATING and not floats
        case Kind.COMPLEX:
            return any(is_complex(leaf) or _may_be_complex(leaf, proven) for leaf in leaves)
        case Kind.FLOATING:
            return dtype.number == FLOATING or not all(map(_is_whole, leaves))


def is_floating(leaf: str, proven: Proven = NOTHING) -> bool:
    return leaf.startswith(("dtype:float", "dtype:bfloat", "dtype:layer")) or (
        bare_leaf(leaf) in proven.floating
    )


def is_complex(leaf: str) -> bool:
    return leaf.startswith("dtype:complex")


def _is_open(leaf: str, proven: Proven) -> bool:
    return not leaf.startswith("dtype:") and bare_leaf(leaf) not in proven.floating


def _may_be_complex(leaf: str, proven: Proven) -> bool:
    if REAL in leaf:
        return False
    return _is_open(leaf, proven) and bare_leaf(leaf) not in proven.real


def _is_whole(leaf: str) -> bool:
    return leaf.startswith(("dtype:int", "dtype:uint", "dtype:bool"))


def bare_leaf(leaf: str) -> str:
    while leaf.startswith((REAL, WIDE)):
        leaf = leaf.removeprefix(REAL).removeprefix(WIDE)
    return leaf


def resolved(dtype: DType, floating: frozenset[str]) -> DType:
    """Real and floating leaves stay what they are, with any number and under `abs` or `sum`."""
    if dtype.parts:
        operands = [(resolved(part, floating), shape) for part, shape in dtype.parts]
        found = promoted(sorted(operands, key=lambda each: (each[0].key, sorted(each[1]))))
        found = found.with_number(dtype.number, dtype.numbers)
    else:
        leaves = (bare_leaf(e) if bare_leaf(e) in floating else e for e in dtype.leaves)
        found = replace(dtype, leaves=frozenset(leaves))
    if any(is_floating(leaf) or leaf in floating for leaf in found.leaves):
        return replace(found, number=NO_NUMBER, numbers=frozenset())
    if found.number == WHOLE and all(map(_is_integer, found.leaves)):
        return replace(found, number=NO_NUMBER)
    return found


def _is_integer(leaf: str) -> bool:
    return leaf.startswith(("dtype:int", "dtype:uint"))
