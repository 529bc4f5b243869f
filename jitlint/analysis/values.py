"""The lattice of the interpreter: what is known of a value without running the program.

Measured on the break sites of real libraries, these distinctions suffice: no evidence,
a static Python value, a tensor (bool or not, of rank 0, 1 or unknown), an optional, the
containers, objects of project classes, and what can be called.
"""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeGuard

import libcst as cst

if TYPE_CHECKING:
    from jitlint.project.modules import ClassInfo, FunctionInfo, Module

MAX_DEPTH = 5
"""Containers nested deeper than this are not followed."""
MAX_WEIGHT = 2_000
"""Nor is what is inside of a value that holds more others, counted down to the last:
`pair = (pair, pair)` doubles them with every step."""
MAX_ITEMS = 1_000
"""A tuple that grows beyond this is a sequence of unknown length."""


MANY = 3
"""So many different values are a variation; two are settled by a second compilation."""


class Missing(enum.Enum):
    """The constant of a static value whose constant is not known."""

    MISSING = 0


MISSING = Missing.MISSING


class Source(enum.Enum):
    """Where a Python number comes from. Tracers differ in which of them they freeze."""

    PYTHON = 0
    METADATA = 1
    """Of a tensor's dtype or device. Only torch.jit.trace and its like freeze those, and only
    their regions tell them from other Python values."""
    SHAPE = 2
    DATA = 3


class Origin(enum.Enum):
    """How a region comes by a tensor. One of rank 0 that it is given can be used as a
    number in places where one that it computes cannot: the compiler guards on the value."""

    SUPPOSED = "supposed"
    """A parameter that nothing but convention says to be a tensor."""
    GIVEN = "given"
    """An input, a parameter or a buffer."""
    COMPUTED = "computed"
    CONSTANT = "constant"
    """A literal of one number in a region, or what is computed of such: the compiler knows it
    (in default mode it stops where that is read, all the same)."""


class Framework(enum.Enum):
    TORCH = "torch"
    NUMPY = "numpy"
    TENSORFLOW = "tensorflow"


@dataclass(frozen=True, slots=True)
class Read:
    """A Python value computed from a tensor's data: by which operator, and the id of the
    graph break that the read causes ("" where it causes none; `unbroken`: and the compiler goes
    on with a number that it does not know). `loss`: a size was read of a
    shape that this call has lost; `node` is the call that reads. `given`: the tensor is an
    input of the region, whose number the compiler may guard on instead of making a symbol."""

    operator: str
    code: str = ""
    loss: "Loss | None" = None
    node: "cst.CSTNode | None" = field(default=None, compare=False)
    given: bool = False
    unbroken: bool = False


class Size(enum.Enum):
    """A dimension whose number is not known here."""

    FIXED = "fixed"
    """The tracer knows it."""
    OPEN = "open"
    """The tracer does not: None in the static shape of a graph."""
    DATA = "data"
    """None, as the size depends on the data."""
    VARIES = "varies"
    """It takes several values in one run."""


@dataclass(frozen=True, slots=True)
class Loss:
    """A call behind which a graph knows nothing of the shape. `is_declared`: it is a
    signature that says so."""

    node: cst.Call
    operator: str = field(compare=False)
    module: "Module" = field(compare=False)
    function: "FunctionInfo | None" = field(compare=False)
    is_declared: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Shape:
    """The static shape of a tensor, as far as it is known.

    `more`: dimensions follow whose number is not known. `lost`: nothing is known, behind
    this call. `nested`: the value may be a structure of such tensors instead (inputs of a
    Keras layer). `ragged`: the call that makes batches, of which the last one is smaller.
    """

    dims: tuple[int | Size, ...] = ()
    more: bool = False
    lost: Loss | None = None
    nested: bool = False
    ragged: Loss | None = None

    @property
    def is_open(self) -> bool:
        return any(dim in (Size.OPEN, Size.DATA) for dim in self.dims)


@dataclass(frozen=True, slots=True)
class Value:
    """Base of all abstract values; they are immutable and hashable."""


@dataclass(frozen=True, slots=True)
class Unknown(Value):
    """No evidence."""


@dataclass(frozen=True, slots=True)
class Batch(Unknown):
    """What a loader yields, or a part of it: nothing but its origin is known."""

    loader: Loss


@dataclass(frozen=True, slots=True)
class Static(Value):
    """A Python value that a tracer treats as a constant or as a symbol.

    `const` is its value where known (None, bool, int, float, str). `read` says how it was
    read out of a tensor when `source` is `DATA`. `varies`: it takes several values in one
    run (a loop counter).
    """

    const: Any = MISSING
    source: Source = Source.PYTHON
    read: Read | None = None
    varies: bool = False

    def __eq__(self, other: object) -> bool:
        """1, 1.0 and True are different constants."""
        return (
            isinstance(other, Static)
            and type(self.const) is type(other.const)
            and self.const == other.const
            and (self.source, self.read) == (other.source, other.read)
            and self.varies is other.varies
        )

    def __hash__(self) -> int:
        return hash((type(self.const), self.const, self.source, self.read))


@dataclass(frozen=True, slots=True)
class Tensor(Value):
    """A tensor, or a NumPy array inside a region (Dynamo traces those too).

    `is_bool` and `rank` (0, 1, or None for unknown or more) are None when not known;
    `dtype` is a torch name such as "float32" when known. `maybe`: on another path it is
    something else. `assumed`: convention says so (an unknown function that is given a tensor
    returns one), which is no evidence of the framework. `grad`: whether autograd follows it;
    `device`: "cpu" or "cuda", when known. `shape` is what is known of the static shape.
    `origin`: how the region came by it. `sparse`: it was made so at once before.
    """

    is_bool: bool | None = None
    rank: int | None = None
    maybe: bool = False
    framework: Framework = Framework.TORCH
    dtype: str | None = None
    assumed: bool = False
    grad: bool | None = None
    device: str | None = None
    shape: Shape | None = None
    origin: Origin = Origin.COMPUTED
    sparse: bool = False

    @property
    def derived(self) -> Origin:
        """The origin of what is computed of this tensor alone."""
        return self.origin if self.origin is Origin.CONSTANT else Origin.COMPUTED


@dataclass(frozen=True, slots=True)
class StaticShape(Value):
    """`x.shape` of a tensor whose static shape is known in part."""

    shape: Shape


@dataclass(frozen=True, slots=True)
class Dataset(Value):
    """A `tf.data.Dataset`, or a dataset of torch or its loader, with the join of the elements.

    `rows`: how many there are, where that is known; `is_endless`: they never end.
    """

    element: Value
    rows: int | None = None
    is_endless: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Exported(Value):
    """What `torch.export.export` made of `target`, at `node`; compared by identity."""

    target: Value
    node: cst.Call
    module: "Module"
    function: "FunctionInfo | None"


@dataclass(frozen=True, slots=True)
class Compound(Value):
    """A value with others inside; `weight` counts them."""

    weight: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names: tuple[str, ...] = self.__match_args__
        weight = sum(_weight(getattr(self, name)) for name in names)
        if weight > MAX_WEIGHT:
            for name in names:
                object.__setattr__(self, name, _without_parts(getattr(self, name)))
            weight = sum(_weight(getattr(self, name)) for name in names)
        object.__setattr__(self, "weight", 1 + weight)


def _weight(part: object) -> int:
    if isinstance(part, Compound):
        return part.weight
    if isinstance(part, tuple):
        return sum(map(_weight, part))
    return 1 if isinstance(part, Value) else 0


def _without_parts(part: object) -> object:
    if isinstance(part, tuple):
        return tuple(map(_without_parts, part))
    return UNKNOWN if isinstance(part, Compound) else part


@dataclass(frozen=True, slots=True)
class Optional(Compound):
    """`value`, or None."""

    value: Value


@dataclass(frozen=True, slots=True)
class Tuple(Compound):
    """`gathered`: the positional arguments of a call, of which each means something else."""

    items: tuple[Value, ...]
    gathered: bool = False


@dataclass(frozen=True, slots=True)
class Sequence(Compound):
    """A list, set, iterator or tuple of unknown length, with the join of its elements.

    `cls` is the dotted name of its class where that matters, such as "torch.Size".
    """

    element: Value
    cls: str = ""


@dataclass(frozen=True, slots=True)
class Dict(Compound):
    """A dict: values of constant keys, and the join of all the others. `closed`: there are
    no others (`**kwargs` of a call that is known). `gathered`: the keyword arguments of a
    call, of which each means something else."""

    items: tuple[tuple[Any, Value], ...] = ()
    default: Value = field(default_factory=Unknown)
    closed: bool = False
    gathered: bool = False

    def get(self, key: Any) -> Value:
        items: dict[Any, Value] = dict(self.items)
        return items.get(key, self.default)


@dataclass(frozen=True, slots=True)
class Instance(Value):
    """An object of a project class; its attributes are in the class table."""

    cls: "ClassInfo"


@dataclass(frozen=True, slots=True)
class ExternalInstance(Compound):
    """An object of a class of another library, such as `torch.nn.Linear`.

    `children` are the modules of a Sequential or ModuleList. `hook` is the method by which
    a hook was registered on it, if one was, and `watchers` are what runs around its calls.
    `is_fused`: a model that Keras has XLA compile. `by_mode`: in training mode it computes
    something else than in evaluation mode. `made_here`: it was made in the region.
    """

    name: str
    children: tuple[Value, ...] = ()
    hook: str = ""
    watchers: tuple[Value, ...] = ()
    is_fused: bool = False
    by_mode: bool = False
    made_here: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """The variables of an enclosing call; compared by identity."""

    variables: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Function(Value):
    """`bare`: as its decorators get it."""

    info: "FunctionInfo"
    closure: Closure | None = None
    bare: bool = False


@dataclass(frozen=True, slots=True)
class BoundMethod(Compound):
    """`function` with `receiver` as its first argument."""

    receiver: Value
    function: Function


@dataclass(frozen=True, slots=True)
class Class(Value):
    info: "ClassInfo"


@dataclass(frozen=True, slots=True)
class ModuleValue(Value):
    module: "Module"


@dataclass(frozen=True, slots=True)
class External(Value):
    """A name of a library, such as `torch.nn.functional.relu`."""

    name: str


@dataclass(frozen=True, slots=True)
class ExternalMethod(Compound):
    """A method looked up on a value whose class is not of the project."""

    receiver: Value
    name: str


@dataclass(frozen=True, slots=True)
class Partial(Compound):
    """`functools.partial(function, *args, **kwargs)`."""

    function: Value
    args: tuple[Value, ...] = ()
    kwargs: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Pinned(Compound):
    """What `torch.compile(target, dynamic=False)` returns: a program for each size."""

    target: Value


@dataclass(frozen=True, slots=True)
class Kernel(Compound):
    """What `numba.njit` and its like make of a function. `maker` is the dotted name;
    `signatures`: types were given, so that it is compiled when it is defined."""

    function: Value
    maker: str
    options: tuple[tuple[str, Value], ...] = ()
    signatures: bool = False


@dataclass(frozen=True, slots=True)
class CutOff(Compound):
    """A function or module that was handed to `by`, such as `torch.compiler.disable`, so
    that tracers do not look into it."""

    function: Value
    by: str


@dataclass(frozen=True, slots=True)
class Choice(Compound):
    """One of several things that can be called, such as the layers that a loop visits."""

    options: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Super(Compound):
    """`super()` inside a method of `cls`."""

    receiver: Value
    cls: "ClassInfo"


UNKNOWN = Unknown()
STATIC = Static()
NONE = Static(None)
TRUE = Static(True)
FALSE = Static(False)
TENSOR = Tensor()
BOOL_TENSOR = Tensor(is_bool=True, dtype="bool")
SHAPE = Static(source=Source.SHAPE)
TORCH_SIZE = Sequence(SHAPE, "torch.Size")
ASSUMED_TENSOR = Tensor(assumed=True)

CHOOSABLE = (
    *(Function, BoundMethod, Instance, ExternalInstance, Class, External, Partial, Kernel),
    *(CutOff, Choice),
)
MAX_OPTIONS = 8


def is_tensor(value: Value) -> TypeGuard[Tensor]:
    return isinstance(value, Tensor)


def is_symbol(value: Value) -> TypeGuard[Static]:
    """Whether the compiler goes on with a number that it does not know."""
    return isinstance(value, Static) and value.read is not None and value.read.unbroken


def is_callable(value: Value) -> bool:
    """Whether it is known to be a function, a class or a module."""
    return isinstance(value, CHOOSABLE)


def given(value: Value, origin: Origin = Origin.GIVEN) -> Value:
    """The same value, which a region is given; a tensor inside of an optional too."""
    match value:
        case Tensor(origin=Origin.COMPUTED):
            return replace(value, origin=origin)
        case Optional(Tensor() as tensor):
            return Optional(given(tensor, origin))
    return value


def never_needs_gradient(value: Value) -> bool:
    """Whether no gradient can go to a tensor, whoever calls: its dtype has none.

    That a caller's tensor needs none (`Tensor.grad`) says nothing of other callers.
    """
    if not isinstance(value, Tensor):
        return True
    dtype = value.dtype or ("bool" if value.is_bool else "float")
    return not dtype.startswith(("float", "bfloat", "complex"))


def is_none(value: Value) -> bool:
    return value == NONE


def is_constant(value: Value) -> TypeGuard[Static]:
    return isinstance(value, Static) and value.const is not MISSING


def truth_of(value: Value) -> bool | None:
    """The truth of a constant; None where the value is not known."""
    return is_true(value) if is_constant(value) else None


def is_true(value: Value | None) -> bool:
    """Whether an argument is given as the constant True."""
    return isinstance(value, Static) and value.const is True


def join_all(values: Iterable[Value]) -> Value:
    result: Value | None = None
    for value in values:
        result = value if result is None else join(result, value)
    return UNKNOWN if result is None else result


def join(a: Value, b: Value, depth: int = 0) -> Value:
    """The least value that covers both."""
    if a == b:
        return a
    if depth > MAX_DEPTH:
        return UNKNOWN
    for left, right in ((a, b), (b, a)):
        if is_none(left):
            return right if isinstance(right, Optional) else _optional(right)
        if isinstance(left, Optional):
            inner = right.value if isinstance(right, Optional) else right
            return _optional(join(left.value, inner, depth + 1))
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return Tensor(
            is_bool=a.is_bool if a.is_bool == b.is_bool else None,
            rank=a.rank if a.rank == b.rank else None,
            maybe=a.maybe or b.maybe,
            framework=a.framework,
            dtype=a.dtype if a.dtype == b.dtype else None,
            assumed=(a.assumed and b.assumed) or a.framework is not b.framework,
            grad=a.grad if a.grad is b.grad else None,
            device=a.device if a.device == b.device else None,
            shape=join_shapes(a.shape, b.shape),
            origin=a.origin if a.origin is b.origin else Origin.COMPUTED,
            sparse=a.sparse or b.sparse,
        )
    for left, right in ((a, b), (b, a)):
        if isinstance(left, Tensor) and isinstance(right, Static | Unknown):
            return replace(left, maybe=True)
    if isinstance(a, CHOOSABLE) and isinstance(b, CHOOSABLE):
        return _choice(a, b)
    if isinstance(a, Static) and isinstance(b, Static):
        source = max(a.source, b.source, key=lambda s: s.value)
        read = a.read if a.source is source else b.read
        const = a.const if _same_constant(a, b) else MISSING
        return Static(const, source, read, a.varies or b.varies)
    if isinstance(a, ExternalMethod) and isinstance(b, ExternalMethod) and a.name == b.name:
        return ExternalMethod(join(a.receiver, b.receiver, depth + 1), a.name)
    return _join_containers(a, b, depth)


def _choice(a: Value, b: Value) -> Value:
    sides = [side.options if isinstance(side, Choice) else (side,) for side in (a, b)]
    options = tuple(dict.fromkeys(sides[0] + sides[1]))
    return Choice(options) if len(options) <= MAX_OPTIONS else UNKNOWN


def join_shapes(a: Shape | None, b: Shape | None) -> Shape | None:
    """The shape of a tensor that has either; None where one of them is not known."""
    if a == b:
        return a
    if a is None or b is None or len(a.dims) != len(b.dims) or a.more is not b.more:
        return None
    if a.lost is not b.lost:
        return None
    dims = tuple(_join_sizes(x, y) for x, y in zip(a.dims, b.dims, strict=True))
    return Shape(dims, a.more, a.lost, a.nested and b.nested, a.ragged or b.ragged)


def _join_sizes(a: int | Size, b: int | Size) -> int | Size:
    if a == b:
        return a
    for size in (Size.VARIES, Size.DATA, Size.OPEN):
        if size in (a, b):
            return size
    return Size.FIXED


def _same_constant(a: Static, b: Static) -> bool:
    return type(a.const) is type(b.const) and bool(a.const == b.const)


def _optional(value: Value) -> Value:
    if isinstance(value, Unknown) or is_none(value):
        return value
    return Optional(value)


def _join_containers(a: Value, b: Value, depth: int) -> Value:
    if isinstance(a, Tuple) and isinstance(b, Tuple) and len(a.items) == len(b.items):
        pairs = zip(a.items, b.items, strict=True)
        joined = tuple(_join_element(x, y, depth + 1) for x, y in pairs)
        return Tuple(joined, a.gathered or b.gathered)
    if isinstance(a, Tuple | Sequence) and isinstance(b, Tuple | Sequence):
        elements = [element_of(side) for side in (a, b) if side != Tuple(())]
        return Sequence(_join_element(elements[0], elements[-1], depth + 1))
    if isinstance(a, Dict) and isinstance(b, Dict):
        left, right = dict(a.items), dict(b.items)
        items = tuple(
            (key, _join_element(a.get(key), b.get(key), depth + 1)) for key in {**left, **right}
        )
        default = _join_element(a.default, b.default, depth + 1)
        return Dict(items, default, gathered=a.gathered or b.gathered)
    return UNKNOWN


def _join_element(a: Value, b: Value, depth: int) -> Value:
    """Inside a container a tensor joined with something else is no evidence.

    Otherwise tuples such as `(hidden, (h, w))` turn sizes into tensors (measured: five of
    nine false alarms).
    """
    if isinstance(a, Tensor) != isinstance(b, Tensor) and not (
        isinstance(a, Optional) or isinstance(b, Optional) or is_none(a) or is_none(b)
    ):
        return UNKNOWN
    return join(a, b, depth)


def tuple_of(items: Iterable[Value]) -> Value:
    """A tuple of known length, unless that grows without end."""
    values = tuple(items)
    return Tuple(values) if len(values) <= MAX_ITEMS else Sequence(element_of(Tuple(values)))


def some_value_of(container: Dict) -> Value:
    """What stands at a key that is not known; UNKNOWN where each key means something else."""
    if container.gathered:
        return UNKNOWN
    values = tuple(value for _, value in container.items)
    return element_of(Tuple(values)) if values else container.default


def element_of(value: Value) -> Value:
    """What iterating over `value` yields; UNKNOWN when it says nothing."""
    match value:
        case Sequence(element):
            return element
        case Tuple(items):
            result: Value | None = None
            for item in items:
                result = item if result is None else _join_element(result, item, 1)
            if isinstance(result, Static) and result.const is MISSING:
                counts = [i for i in items if isinstance(i, Static) and type(i.const) is int]
                distinct = len({i.const for i in counts}) if len(counts) == len(items) else 0
                return replace(result, varies=result.varies or distinct >= MANY)
            if isinstance(result, Tensor):
                return replace(result, shape=_varying_shape(items, result.shape))
            return UNKNOWN if result is None else result
        case Tensor(shape=Shape(nested=True)):
            return value
        case Tensor():
            rank = 0 if value.rank == 1 else None
            shape = _element_shape(value.shape)
            return replace(value, rank=rank, shape=shape, origin=value.derived)
        case StaticShape(shape):
            return join_all(map(size_value, shape.dims)) if shape.dims else SHAPE
        case Dataset(element):
            return element
        case Batch():
            return value
        case Static():
            return Static(source=value.source)
        case ExternalInstance(children=children) if children:
            return join_all(children)
    return UNKNOWN


def _varying_shape(items: tuple[Value, ...], joined: Shape | None) -> Shape | None:
    """Of three tensors of three sizes, one after the other."""
    shapes = [item.shape for item in items if isinstance(item, Tensor) and item.shape is not None]
    if joined is None or len(shapes) < len(items):
        return joined
    columns = zip(*(shape.dims for shape in shapes), strict=True)
    dims = tuple(
        Size.VARIES if len(set(column)) >= MANY else dim
        for dim, column in zip(joined.dims, columns, strict=True)
    )
    return replace(joined, dims=dims)


def _element_shape(shape: Shape | None) -> Shape | None:
    if shape is None or shape.lost is not None or not shape.dims:
        return shape
    return replace(shape, dims=shape.dims[1:], ragged=None) if not shape.more else None


DATA_SHAPE = Shape((Size.DATA,), more=True)
DATA_SIZE = Static(source=Source.DATA, read=Read("size"))
"""A size that depends on data: a symbol in a graph of torch, of which nothing is known."""
DATA_SIZES = Sequence(DATA_SIZE, "torch.Size")
OPEN_SIZE = Static(source=Source.SHAPE, read=Read("shape"))
"""The number that a graph does not know when it is traced."""


def is_other_size(index: Value | None) -> bool:
    """Whether an index may name a size that does not depend on data, as only the first does."""
    return index is not None and not (isinstance(index, Static) and index.const == 0)


def size_value(size: int | Size) -> Value:
    """One item of `x.shape`: an open dimension may be None."""
    match size:
        case Size.OPEN | Size.DATA:
            return Optional(OPEN_SIZE)
        case Size():
            return Static(source=Source.SHAPE, varies=size is Size.VARIES)
    return Static(size, Source.SHAPE)
