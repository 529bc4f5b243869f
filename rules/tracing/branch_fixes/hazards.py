"""Operations that fail for some inputs, and what a test proves about that."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from .dtypes import NOTHING, DType, Kind, Proven, can_be
from .withheld import Withheld


@dataclass(frozen=True, slots=True)
class Hazard:
    """An operation that fails for some inputs: `key` for which, `code` how it is written.

    `condition` says in words when it does not; without one there is nothing to say but that
    it may. `kind`: it fails for dtypes of this kind, where `dtype` is of it.
    """

    key: str
    code: str = field(compare=False)
    condition: str = field(default="", compare=False)
    kind: Kind | None = field(default=None, compare=False)
    dtype: DType | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the test itself proves: of the dtypes, and operations that do not fail because
    they are computed before the arms."""

    proven: Proven = NOTHING
    evaluated: frozenset[Hazard] = frozenset()

    def left_of(self, hazards: Iterable[Hazard]) -> frozenset[Hazard]:
        """The hazards that are not excluded."""
        return frozenset(each for each in hazards if not self._excludes(each))

    def _excludes(self, hazard: Hazard) -> bool:
        if hazard in self.evaluated:
            return True
        if hazard.kind is None or hazard.dtype is None:
            return False
        return not can_be(hazard.kind, hazard.dtype, self.proven)


NO_EVIDENCE = Evidence()


def conditions_for(hazards: Iterable[Hazard], evidence: Evidence = NO_EVIDENCE) -> Iterator[str]:
    """When what is computed always from now on does not fail where it is skipped today.

    Raises Withheld where that cannot be said.
    """
    left = evidence.left_of(hazards)
    code = min((each.code for each in left if not each.condition), default=None)
    if code is not None:
        raise Withheld(
            f"`{code}` fails for some inputs, even where it is skipped today: compute it before"
        )
    yield from sorted({each.condition for each in left})


def refused_dtype(kind: Kind, dtype: DType, code: str) -> Iterator[Hazard]:
    """The hazard of an operator that refuses a kind of dtype, if `code` may have such a one."""
    if can_be(kind, dtype):
        yield Hazard(f"{kind.name} {dtype.key}", code, f"`{code}` {kind.value}", kind, dtype)


def broadcast(shape: frozenset[str], code: str) -> Iterator[Hazard]:
    """Shapes of several tensors may not fit each other."""
    if len(shape) > 1:
        yield Hazard(f"broadcast {sorted(shape)}", code, f"the shapes in `{code}` fit")
