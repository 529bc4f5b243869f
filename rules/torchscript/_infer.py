"""From evidence to a type: what makes a parameter no Tensor, and what it is instead."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import libcst as cst

from jitlint.analysis.observations import CompiledFunction

from ._given import default_type, given_types, is_always_passed
from ._types import (
    INT,
    NONE,
    STR,
    TENSOR,
    UNKNOWN,
    Type,
    dict_of,
    join_all,
    list_of,
    narrowed,
    optional,
    without_none,
)
from ._uses import Use

MIXED = "it is given values of types that have no common annotation"
CONFLICT = "its uses ask for different types"
NOTHING = "nothing in the file says of which type it is"
PASSED = "a call passes a Tensor"
ELEMENTS = "the type of its elements is not known"


@dataclass(frozen=True, slots=True)
class Evidence:
    """`default` is None where there is none (NONE is the type of a default `None`).

    `always_passed`: every call passes something, so that the default is never used.
    """

    default: Type | None
    given: tuple[Type, ...]
    uses: tuple[Use, ...]
    always_passed: bool

    @classmethod
    def of(cls, parameter: cst.Param, seen: CompiledFunction, uses: Sequence[Use]) -> "Evidence":
        name = parameter.name.value
        given = tuple(given_types(seen, name))
        default = default_type(parameter, seen)
        return cls(default, given, tuple(uses), is_always_passed(seen, name))

    @property
    def excluding(self) -> Use | None:
        """The first use that no tensor has, one that TorchScript refuses before one that it
        converts; None if another use asks for a tensor."""
        if any(use.asks_for_tensor for use in self.uses):
            return None
        found = [use for use in self.uses if use.excludes_tensors]
        return min(found, key=lambda use: use.takes_tensors, default=None)

    @property
    def may_be_tensor(self) -> bool:
        """Whether its uses alone say that it is no Tensor, and a Tensor compiles all the same."""
        known = {kind for kind in (self.default, *self.given) if kind not in (None, NONE, TENSOR)}
        return not known and self.excluding is not None and self.excluding.takes_tensors

    @property
    def none_test(self) -> Use | None:
        return next((use for use in self.uses if use.is_none_test), None)

    @property
    def other(self) -> Type | None:
        """The first type it is given that is no Tensor."""
        return next((each for each in self.given if each != TENSOR), None)

    @property
    def is_nullable(self) -> bool:
        kinds = (self.default, *self.given)
        return self.none_test is not None or any(
            kind is not None and (kind == NONE or kind.name == "Optional") for kind in kinds
        )


@dataclass(frozen=True, slots=True)
class Inferred:
    """`kind` is None where nothing fits; `reason` then says why. `sure`: no step was a guess.

    `condition` is what must hold, of the callers, for the annotation to be right.
    """

    kind: Type | None
    sure: bool = False
    reason: str = ""
    condition: str = ""


def infer(evidence: Evidence) -> Inferred:
    default = UNKNOWN if evidence.default in (None, NONE) else evidence.default
    assert default is not None
    if evidence.excluding is not None and TENSOR in evidence.given:
        return Inferred(None, reason=PASSED)
    given = _telling(evidence, default)
    base = join_all([without_none(kind) for kind in (default, *given)])
    if base is None:
        return Inferred(None, reason=MIXED)
    sure = all(without_none(kind) in (base, UNKNOWN) for kind in (default, *given))
    for use in sorted(evidence.uses, key=lambda use: len(use.accepted)):
        if not use.accepted or (base == UNKNOWN and not _decides(use)):
            continue
        fitting = [kind for each in use.accepted if (kind := narrowed(base, each)) is not None]
        if not fitting:
            return Inferred(None, reason=CONFLICT)
        sure = sure and not use.by_name and _is_forced(base, fitting[0], use)
        base = fitting[0]
    made = _completed(base, sure, evidence.is_nullable)
    if not evidence.may_be_tensor:
        return made
    # One that requires a gradient, or a fraction for an int, raises before and is cut after.
    return replace(made, sure=False, condition="no caller passes a Tensor")


def _telling(evidence: Evidence, default: Type) -> list[Type]:
    """The types it is given that say something. A call that leaves a pair out passes a
    sequence, as values of lists and tuples are one."""
    mute = [NONE, UNKNOWN]
    if default.name == "Tuple":
        mute.append(list_of(join_all(default.args) or UNKNOWN))
    return [kind for kind in evidence.given if kind not in mute]


def _is_forced(base: Type, chosen: Type, use: Use) -> bool:
    """Whether a use leaves no choice, and widens no number."""
    if base == UNKNOWN:
        return len(use.accepted) == 1
    return chosen == base or chosen.name == "List"


def _decides(use: Use) -> bool:
    """A use that leaves a choice between kinds of values says too little on its own."""
    if len(use.accepted) == 1:
        return True
    return bool(use.accepted) and use.accepted[0] == INT and TENSOR not in use.accepted


def _completed(base: Type, sure: bool, nullable: bool) -> Inferred:
    if base == UNKNOWN:
        return Inferred(None, reason=NOTHING)
    if base.name == "Dict" and base.args[1] == UNKNOWN and base.args[0] in (STR, UNKNOWN):
        base, sure = dict_of(STR, TENSOR), False
    if not base.is_complete:
        return Inferred(None, reason=ELEMENTS)
    return Inferred(optional(base) if nullable else base, sure)
