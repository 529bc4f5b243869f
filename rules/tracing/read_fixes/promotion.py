"""When a tensor of rank 0 acts on another tensor as the number did that was read from it.

A Python number never changes the dtype of a tensor of its own category (bool, whole,
floating); nor does a tensor of rank 0, if the other has a dimension. A number of a higher
category makes the default dtype, a tensor of rank 0 its own.
"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from ..branch_fixes.dtypes import (
    BOOL,
    FLOATING,
    WIDE,
    DType,
    Kind,
    Proven,
    bare_leaf,
    can_be,
    is_floating,
    resolved,
)
from ..branch_fixes.profile import Profile, are_floating, plain
from ..branch_fixes.withheld import Withheld


class Category(enum.Enum):
    """The kinds of numbers between which promotion makes a difference. `OPEN`: whole or
    floating, as a Python number is that takes part."""

    UNKNOWN = "unknown"
    OPEN = "open"
    BOOL = "bool"
    WHOLE = "whole"
    FLOATING = "floating"


@dataclass(frozen=True, slots=True)
class Kept:
    """A tensor: how it is written, and what is known of it (no `dtype`: nothing).

    `rank`: 0, 1 (at least one dimension) or None.
    """

    code: str
    dtype: DType | None = None
    rank: int | None = None
    profile: Profile | None = None

    def category(self, proven: Proven) -> Category:
        dtype = self.dtype
        if dtype is None:
            return Category.UNKNOWN
        if dtype.number == FLOATING or all(is_floating(leaf, proven) for leaf in dtype.leaves):
            return Category.FLOATING
        if dtype == BOOL:
            return Category.BOOL
        if all(map(_is_wide_whole, dtype.leaves)) or not can_be(Kind.FLOATING, dtype):
            return Category.WHOLE
        return Category.UNKNOWN

    @property
    def is_int64(self) -> bool:
        leaves = self.dtype.leaves if self.dtype is not None else frozenset()
        return bool(leaves) and all(_is_wide_whole(e) or e == "dtype:int64" for e in leaves)


def _is_wide_whole(leaf: str) -> bool:
    """The sum of a mask, or of whole numbers."""
    return leaf.startswith(WIDE) and bare_leaf(leaf).startswith(("dtype:int", "dtype:bool"))


@dataclass(frozen=True, slots=True)
class Meeting:
    """`conditions` under which the dtypes come out the same; `cast`: the tensor that was a
    number has to have the default dtype."""

    conditions: tuple[str, ...] = ()
    cast: bool = False


def meet(number: Kept, category: Category, partner: Kept, proven: Proven, wide: bool) -> Meeting:
    """What becomes of the dtype where `number` acts on `partner`. Raises Withheld.

    `wide`: the tensor is made float64 on the way, as Python computes.
    """
    alike = None if wide else _same_dtype(number, partner, proven)
    if alike is not None:
        return Meeting(alike)
    match category, partner.category(proven):
        case (Category.BOOL, _) | (Category.WHOLE, Category.FLOATING):
            return Meeting()
        case Category.WHOLE, Category.BOOL:
            raise Withheld(f"`{partner.code}` is bool, and would take the width of the number")
        case (Category.WHOLE, _) | (Category.FLOATING | Category.OPEN, Category.FLOATING):
            return Meeting(tuple(_has_dimension(partner)))
        case Category.FLOATING, Category.WHOLE | Category.BOOL:
            return Meeting(cast=True)
        case ((Category.FLOATING | Category.OPEN), _):
            return Meeting((*_is_floating(partner), *_has_dimension(partner)))
    if wide:
        return Meeting((*_is_floating(partner), *_has_dimension(partner)))
    return Meeting((f"`{number.code}` has the dtype of `{partner.code}`",))


def _is_floating(partner: Kept) -> Iterator[str]:
    leaves = partner.dtype.leaves if partner.dtype is not None else frozenset()
    yield f"`{_only(leaves) or partner.code}` is floating"


def _has_dimension(partner: Kept) -> Iterator[str]:
    if partner.rank != 1:
        shape = partner.profile.shape if partner.profile is not None else frozenset()
        yield f"`{_only(shape) or partner.code}` has at least one dimension"


def _only(leaves: frozenset[str]) -> str | None:
    """The one variable that decides, if it is one."""
    name = plain(next(iter(leaves))) if len(leaves) == 1 else ""
    return name if name.isidentifier() else None


def _same_dtype(a: Kept, b: Kept, proven: Proven) -> tuple[str, ...] | None:
    """On what it rests that both have one dtype; None if nothing speaks for it."""
    if a.dtype is None or b.dtype is None:
        return None
    if resolved(a.dtype, proven.floating) == resolved(b.dtype, proven.floating):
        return ()
    leaves = frozenset(map(bare_leaf, a.dtype.leaves | b.dtype.leaves))
    if any(leaf.startswith("dtype:") for leaf in leaves):
        return None
    if resolved(a.dtype, leaves) != resolved(b.dtype, leaves):
        return None
    return (are_floating(leaves),)
