"""Values that a parameter may be given, by its annotation, its default and the code's literals."""

import collections.abc
import contextlib
import dataclasses
import dis
import enum
import itertools
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from jitlint.verify.derive.signatures import EMPTY, Parameter

LEADS = (4, 6, 3, 5)
"""Sizes of the first dimension, taken in turn."""
COMMON_SIZES = (8, 4, 3)
MAX_SIZES = 8
MAX_NUMBERS = 4
LARGEST = 4096
TENSOR = "tensor"
TYPED = "typed"


@dataclass(frozen=True, slots=True)
class Draw:
    """What a value is made with."""

    seed: int = 0
    lead: int = LEADS[0]


Make = Callable[[Draw], Any]
Dim = int | None
"""A size; None is the leading one."""


@dataclass(frozen=True, slots=True)
class Shape:
    dims: tuple[Dim, ...]
    dtype: str = "float"

    def sizes(self, draw: Draw) -> tuple[int, ...]:
        return tuple(draw.lead if dim is None else dim for dim in self.dims)


MakeTensor = Callable[[tuple[int, ...], str, int], Any]
"""A tensor or array of a shape, of `float`, `int` or `bool`, by a seed."""


class Tensors(Protocol):
    """The tensors of one framework."""

    def maker(self, annotation: Any) -> MakeTensor | None:
        """For a type of tensors or arrays, and for `EMPTY`; None for any other type."""

    def constants(self, annotation: Any) -> Sequence[Any]:
        """Values of a type of the framework's own, such as a dtype."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to give a parameter a value. `kind`: values of one kind take turns.

    `shape` is that of a tensor; `omitted` leaves the parameter to its default.
    """

    kind: str
    make: Make
    shape: Shape | None = None
    omitted: bool = False


@dataclass(frozen=True, slots=True)
class Hints:
    """`sizes` of dimensions that the code is likely to want, the strings that are written in it,
    and the `numbers` that it compares with."""

    sizes: tuple[int, ...]
    literals: tuple[str, ...]
    numbers: tuple[int | float, ...] = ()

    @classmethod
    def of(
        cls, function: Callable[..., Any], namespace: Mapping[str, Any], sizes: Sequence[int]
    ) -> "Hints":
        constants = list(_constants(getattr(function, "__code__", None)))
        numbers = [*sizes, *(value for value in namespace.values()), *constants]
        wanted = [n for n in numbers if type(n) is int and 1 < n <= LARGEST]
        found = tuple(dict.fromkeys(wanted))[: MAX_SIZES - len(COMMON_SIZES)]
        strings = [each for each in constants if isinstance(each, str) and len(each) < 40]
        compared = _compared(getattr(function, "__code__", None))
        written = [n for n in compared if type(n) in (int, float) and abs(n) <= LARGEST]
        return cls(
            tuple(dict.fromkeys((*found, *COMMON_SIZES))),
            tuple(dict.fromkeys(strings)),
            tuple(dict.fromkeys(written))[:MAX_NUMBERS],
        )

    def scalars(self, kind: type) -> Iterator[Any]:
        """Values of a type of `SCALARS`, every other one of them a number of the code's.

        A whole number is given for a float as well.
        """
        fitting = {int: (int,), float: (int, float)}.get(kind, ())
        written = itertools.cycle([n for n in self.numbers if type(n) in fitting])
        for value in SCALARS.get(kind, ()):
            yield from itertools.islice(written, 1)
            yield value


def _constants(code: types.CodeType | None) -> Iterator[Any]:
    if code is None:
        return
    documentation = code.co_consts[:1]
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _constants(value)
        elif isinstance(value, tuple | frozenset):
            yield from value
        elif not (isinstance(value, str) and value in documentation and " " in value):
            yield value


def _compared(code: types.CodeType | None) -> Iterator[Any]:
    """What stands on the right of comparisons: `0 < x` is read as nothing."""
    instructions = list(dis.get_instructions(code)) if code is not None else []
    for loaded, after in itertools.pairwise(instructions):
        if loaded.opname == "LOAD_CONST" and after.opname in ("COMPARE_OP", "CONTAINS_OP"):
            value = loaded.argval
            yield from value if isinstance(value, tuple | frozenset) else (value,)


def shapes(hints: Hints, has_weights: bool) -> list[Shape]:
    """The shapes to try, the likely ones first: of a layer's input, or of a function's."""
    flat = [Shape((None,))]
    rows = [Shape((None, size)) for size in hints.sizes]
    sequences = [Shape((None, 5, size)) for size in hints.sizes]
    channels = dict.fromkeys((*hints.sizes[:4], 3, 1))
    images = [Shape((None, size, 8, 8)) for size in channels]
    fixed = [Shape((size,)) for size in hints.sizes]
    numbers = [Shape((None,), "int"), Shape((None, 5), "int"), Shape((None,), "bool")]
    first = [*rows, *sequences, *flat] if has_weights else [*flat, *rows, *sequences]
    return [*first, *images, *fixed, *numbers]


# -- choices -------------------------------------------------------------------------------

SCALARS: Mapping[type, tuple[Any, ...]] = {
    bool: (True, False),
    int: (2, 1, 3, 0, -1),
    float: (0.5, 2.0, 0.0, -1.5),
    complex: (0.5 + 1j, 2 + 0j),
    type(None): (None,),
}
STRINGS = ("abc", "")


class Untyped(enum.Enum):
    """What a parameter without a type may be."""

    ANYTHING = enum.auto()
    TENSOR = enum.auto()
    NO_TENSOR = enum.auto()


@dataclass(frozen=True, slots=True)
class Chooser:
    """What the parameters of one callable can be given, with tensors of one shape."""

    hints: Hints
    tensors: Tensors
    untyped: Untyped = Untyped.ANYTHING

    def choices(self, parameter: Parameter, shape: Shape) -> list[Choice]:
        default = parameter.default
        found = [
            choice
            for annotation in parameter.annotations
            for choice in self._by_annotation(annotation, shape)
        ]
        if not found and default is not EMPTY and default is not None:
            found = list(self._like(default))
        if not found and not parameter.annotations:
            found = list(self._unknown(shape))
        if default is EMPTY:
            return found
        kind = found[0].kind if found else TYPED
        return [Choice(kind, Constant(default), omitted=True), *found]

    def _by_annotation(self, annotation: Any, shape: Shape) -> Iterator[Choice]:
        make = self.tensors.maker(annotation)
        if make is not None:
            yield Choice(TENSOR, _drawn(make, shape), shape)
            return
        for other in self._makes(annotation, shape):
            yield Choice(TYPED, other)

    def _makes(self, annotation: Any, shape: Shape) -> Iterator[Make]:
        """Ways to make a value of an annotated type; none where the type is not known."""
        make = self.tensors.maker(annotation)
        if make is not None:
            yield _drawn(make, shape)
        elif annotation is str:
            yield from map(Constant, (*self.hints.literals, *STRINGS))
        elif annotation in SCALARS:
            yield from map(Constant, self.hints.scalars(annotation))
        elif typing.get_origin(annotation) is not None:
            yield from self._generic(annotation, shape)
        elif dataclasses.is_dataclass(annotation) or hasattr(annotation, "_fields"):
            yield from self._record(annotation, shape)
        else:
            yield from map(Constant, self.tensors.constants(annotation))

    def _generic(self, annotation: Any, shape: Shape) -> Iterator[Make]:
        origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
        if origin in (typing.Union, types.UnionType):
            some = [each for each in inner if each is not type(None)]
            yield from itertools.chain.from_iterable(self._makes(each, shape) for each in some)
            if len(some) < len(inner):
                yield Constant(None)
        elif origin is typing.Literal:
            yield from map(Constant, inner)
        elif origin in (list, collections.abc.Sequence, collections.abc.Iterable):
            yield from self._lists(inner[0], shape)
        elif origin is tuple:
            types_ = (inner[0],) * 2 if inner[-1] is Ellipsis else inner
            yield from _together(tuple, [list(self._makes(each, shape)) for each in types_])
        elif origin in (dict, collections.abc.Mapping):
            yield from self._dicts(inner[0], inner[1], shape)

    def _lists(self, element: Any, shape: Shape) -> Iterator[Make]:
        makes = list(self._makes(element, shape))
        if makes:
            for length in (2, 3, 1):
                chosen = [makes[index % len(makes)] for index in range(length)]
                yield from _together(list, [[each] for each in chosen])

    def _dicts(self, key: Any, value: Any, shape: Shape) -> Iterator[Make]:
        """With the keys that the code mentions, and with two of them."""
        makes = list(self._makes(value, shape))
        written = self.hints.literals if key is str else ()
        keys = list(dict.fromkeys((*written, *SCALARS.get(key, STRINGS))))[:4]
        if makes and keys:
            for names in (keys, keys[:1]):
                made = [makes[index % len(makes)] for index in range(len(names))]
                yield _mapping(tuple(names), tuple(made))

    def _record(self, annotation: Any, shape: Shape) -> Iterator[Make]:
        try:
            fields = typing.get_type_hints(annotation)
        except Exception:
            return
        yield from _together(
            lambda values: annotation(*values),
            [list(self._makes(each, shape)) for each in fields.values()],
        )

    def _like(self, default: Any) -> Iterator[Choice]:
        """Values of the type of a default."""
        kind = type(default)
        if kind is str:
            yield from (Choice("str", Constant(each)) for each in self.hints.literals)
        for value in self.hints.scalars(kind):
            yield Choice(kind.__name__, Constant(value))

    def _unknown(self, shape: Shape) -> Iterator[Choice]:
        """Of a parameter without a type: a tensor, else a number, a string or a list."""
        make = self.tensors.maker(EMPTY)
        assert make is not None
        if self.untyped is not Untyped.NO_TENSOR:
            yield Choice(TENSOR, _drawn(make, shape), shape)
            yield Choice("number", _drawn(make, Shape(())))
        if self.untyped is Untyped.TENSOR:
            return
        pair = [[_drawn(make, shape)]] * 2
        kinds: dict[str, list[Make]] = {
            "int": list(map(Constant, self.hints.scalars(int))),
            "list": list(_together(list, pair)),
            "float": list(map(Constant, self.hints.scalars(float))),
            "str": list(map(Constant, self.hints.literals)),
            "bool": list(map(Constant, SCALARS[bool])),
        }
        for turn in range(max(map(len, kinds.values()))):
            yield from (Choice(kind, ways[turn]) for kind, ways in kinds.items() if ways[turn:])


def _drawn(make: MakeTensor, shape: Shape) -> Make:
    return lambda draw: make(shape.sizes(draw), shape.dtype, draw.seed)


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value for every seed and shape."""

    value: Any

    def __call__(self, draw: Draw) -> Any:
        return self.value


def _together(build: Callable[[Any], Any], makes: Sequence[Sequence[Make]]) -> Iterator[Make]:
    """Containers whose members are made each in its first way, then in its second, …"""
    if not all(makes):
        return
    for turn in range(max(map(len, makes), default=1)):
        chosen = [each[turn % len(each)] for each in makes]
        yield _built(build, chosen)


def _built(build: Callable[[Any], Any], makes: Sequence[Make]) -> Make:
    known = [each.value for each in makes if isinstance(each, Constant)]
    if len(known) == len(makes):
        with contextlib.suppress(Exception):  # a class that takes no such values says so
            return Constant(build(known))
    return lambda draw: build(
        [each(dataclasses.replace(draw, seed=draw.seed + i)) for i, each in enumerate(makes)]
    )


def _mapping(names: tuple[Any, ...], makes: tuple[Make, ...]) -> Make:
    return lambda draw: {
        name: make(dataclasses.replace(draw, seed=draw.seed + index))
        for index, (name, make) in enumerate(zip(names, makes, strict=True))
    }
