"""What torch's operators accept for each argument, from the table of their schemas."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from jitlint.analysis.tables import Table

from ._types import (
    BOOL,
    COMPLEX,
    CONVERTED,
    DEVICE,
    DTYPE,
    FLOAT,
    INT,
    STR,
    TENSOR,
    Type,
    list_of,
)

NUMBER = (TENSOR, INT, FLOAT)
"""A Scalar: a tensor of one element is converted to it."""
_ACCEPTED: dict[str, tuple[Type, ...]] = {
    "Tensor": (TENSOR,),
    "int": (INT,),
    "float": (FLOAT,),
    "bool": (BOOL,),
    "str": (STR,),
    "complex": (COMPLEX,),
    "Scalar": NUMBER,
    "ScalarType": (DTYPE,),
    "Device": (DEVICE,),
    "Tensor[]": (list_of(TENSOR),),
    "int[]": (list_of(INT),),
    "float[]": (list_of(FLOAT),),
    "bool[]": (list_of(BOOL),),
    "str[]": (list_of(STR),),
    **{f"int[{count}]": (INT, list_of(INT)) for count in range(1, 7)},
}


@dataclass(frozen=True, slots=True)
class Accepted:
    """The types that an argument may have, the likeliest first; empty where that is not known.

    `converts`: a Tensor is refused only at run time, if it is not of one element.
    """

    kinds: tuple[Type, ...] = ()
    converts: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    kind: str
    has_default: bool
    is_keyword: bool

    @property
    def accepted(self) -> Accepted:
        kinds = _ACCEPTED.get(self.kind.removesuffix("?"), ())
        return Accepted(kinds, len(kinds) == 1 and kinds[0] in CONVERTED)


@dataclass(frozen=True, slots=True)
class Place:
    """An argument of a call: its position among `count` positional ones, or its keyword."""

    position: int
    keyword: str | None
    count: int
    keywords: frozenset[str]


def accepted_by_function(dotted: str, place: Place, table: Table) -> Accepted:
    python, functions = table.section("python"), table.section("functions")
    if dotted in python:
        return _accepted([_parsed(python[dotted])], place)
    operator = functions.get(dotted, dotted.rpartition(".")[2])
    is_public = dotted.startswith("torch.") and (
        dotted in functions or dotted.count(".") == 1 or "functional" in dotted
    )
    return _accepted(_overloads(operator, table), place) if is_public else Accepted()


def accepted_by_method(name: str, place: Place, table: Table) -> Accepted:
    """The same for a method of a tensor; its receiver is no argument."""
    methods = [each[1:] for each in _overloads(name, table) if each and each[0].kind == "Tensor"]
    return _accepted(methods, place)


def _accepted(overloads: Sequence[Sequence[Parameter]], place: Place) -> Accepted:
    found: dict[Type, None] = {}
    converts = False
    for overload in overloads:
        match = _match(overload, place)
        if match is None:
            continue
        if not match.kinds:
            return Accepted()
        found.update(dict.fromkeys(match.kinds))
        converts = converts or match.converts
    return Accepted(tuple(found), converts)


def _match(overload: Sequence[Parameter], place: Place) -> Accepted | None:
    """None for an overload that does not take this call."""
    positional = [each for each in overload if not each.is_keyword]
    names = {each.name for each in overload}
    if not place.keywords <= names:
        return None
    by_position = positional[: place.count]
    given = place.keywords | {each.name for each in by_position}
    missing = any(each.name not in given and not each.has_default for each in overload)
    if place.count > len(positional) or missing:
        return _spread(positional, place)
    if place.keyword is not None:
        return next(each.accepted for each in overload if each.name == place.keyword)
    if place.count == 1 and _is_spread(positional):
        return Accepted((*positional[0].accepted.kinds, INT), converts=True)
    return positional[place.position].accepted


def _is_spread(positional: Sequence[Parameter]) -> bool:
    return len(positional) == 1 and positional[0].kind == "int[]"


def _spread(positional: Sequence[Parameter], place: Place) -> Accepted | None:
    """`x.view(a, b)`: the numbers of a list that is the only argument."""
    if _is_spread(positional) and place.count > 1 and place.keyword is None:
        return Accepted((INT,), converts=True)
    return None


def _overloads(name: str, table: Table) -> list[tuple[Parameter, ...]]:
    return [_parsed(text) for text in table.section("operators").get(name, ())]


@cache
def _parsed(text: str) -> tuple[Parameter, ...]:
    return tuple(_parameters(text))


def _parameters(text: str) -> Iterator[Parameter]:
    is_keyword = False
    for part in filter(None, text.split(", ")):
        if part == "*":
            is_keyword = True
            continue
        kind, _, name = part.partition(" ")
        bare = name.removesuffix("=")
        kind = "ScalarType" if bare == "dtype" and kind.startswith("int") else kind
        yield Parameter(bare, kind, name != bare, is_keyword)
