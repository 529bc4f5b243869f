"""Types as TorchScript knows them: few, concrete, and without subtypes of one's own."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce


@dataclass(frozen=True, slots=True)
class Type:
    """`name` is "int", "Tensor", "List", "Optional", … or a class; `args` its parameters.

    `UNKNOWN` stands for an argument that nothing is known of.
    """

    name: str
    args: "tuple[Type, ...]" = ()

    @property
    def is_complete(self) -> bool:
        is_open = self == UNKNOWN or (self.name in CONTAINERS and not self.args)
        return not is_open and all(each.is_complete for each in self.args)


CONTAINERS = frozenset({"List", "Dict", "Tuple", "Optional"})
UNKNOWN = Type("?")
TENSOR = Type("Tensor")
INT = Type("int")
FLOAT = Type("float")
BOOL = Type("bool")
STR = Type("str")
COMPLEX = Type("complex")
NONE = Type("None")
DTYPE = Type("torch.dtype")
DEVICE = Type("torch.device")
NUMBERS = (BOOL, INT, FLOAT, COMPLEX)
"""Each is accepted where a later one is asked for, except bool for anything else."""
CONVERTED = frozenset({INT, FLOAT, COMPLEX, DTYPE})
"""A Tensor of one element is converted where one of these is asked for."""


def list_of(element: Type) -> Type:
    return Type("List", (element,))


def dict_of(key: Type, value: Type) -> Type:
    return Type("Dict", (key, value))


def tuple_of(items: Iterable[Type]) -> Type:
    return Type("Tuple", tuple(items))


def optional(inner: Type) -> Type:
    return inner if inner.name in ("Optional", "None") else Type("Optional", (inner,))


def without_none(kind: Type) -> Type:
    return kind.args[0] if kind.name == "Optional" else kind


def join(a: Type, b: Type) -> Type | None:
    """The type of a parameter that is given both; None when there is no such type."""
    if a == b or b == UNKNOWN:
        return a
    if a == UNKNOWN:
        return b
    if NONE in (a, b) or "Optional" in (a.name, b.name):
        inner = join_all(without_none(each) for each in (a, b) if each != NONE)
        return None if inner is None else optional(inner)
    if a in (INT, FLOAT) and b in (INT, FLOAT):
        return FLOAT
    if a.name == b.name and len(a.args) == len(b.args) and a.args:
        return _rebuilt(a.name, [join(x, y) for x, y in zip(a.args, b.args, strict=True)])
    if {a.name, b.name} <= {"List", "Tuple"}:
        element = join_all((*a.args, *b.args))
        return None if element is None else list_of(element)
    return None


def join_all(kinds: Iterable[Type]) -> Type | None:
    found = list(kinds)
    if not found:
        return UNKNOWN
    first: Type | None = found[0]
    return reduce(lambda a, b: None if a is None else join(a, b), found[1:], first)


def _rebuilt(name: str, args: list[Type | None]) -> Type | None:
    known = tuple(each for each in args if each is not None)
    return Type(name, known) if len(known) == len(args) else None


def narrowed(given: Type, accepted: Type) -> Type | None:
    """What a parameter has to be that is given `given` and used as `accepted`.

    None when TorchScript does not convert the one into the other.
    """
    if given == accepted or accepted == UNKNOWN:
        return given
    if given == UNKNOWN:
        return accepted
    if given.name == "Optional":
        inner = narrowed(given.args[0], without_none(accepted))
        return None if inner is None else optional(inner)
    if given == INT and accepted == FLOAT:
        return FLOAT
    if given.name == "Tuple" and accepted.name == "List":
        element = join_all(given.args)
        inner = None if element is None else narrowed(element, accepted.args[0])
        return None if inner is None else list_of(inner)
    if given.name == accepted.name and len(given.args) == len(accepted.args):
        pairs = zip(given.args, accepted.args, strict=True)
        return _rebuilt(given.name, [narrowed(a, b) for a, b in pairs])
    return None
