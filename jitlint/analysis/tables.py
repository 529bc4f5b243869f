"""What framework functions return, read from the tables that lie beside this file.

The tables are extracted from the frameworks (`jitlint.analysis.extract_torch`); reading
them needs no framework.
"""

import enum
import functools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from packaging.version import Version

SCHEMA = 1
FOLDER = Path(__file__).with_name("tables")


class Returns(enum.Enum):
    """What a call gives, as far as a tracer is concerned."""

    TENSOR = "tensor"
    TENSORS = "tensors"
    SCALAR = "scalar"
    """A Python value read out of a tensor's data."""
    SIZE = "size"
    """Python integers that come from a tensor's shape."""
    STATIC = "static"
    """Another Python value, fixed while a graph is traced."""
    NONE = "none"


Structure: TypeAlias = "Returns | tuple[Structure, ...]"
"""A kind, or the structures of the items of a tuple."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One function, method or module.

    `with_dim` is what it returns when the call names a dimension, `with_flags` when a
    parameter is true; `items` is the number of tensors where that is fixed, and `structure`
    the kind of each where they are not all tensors (`torch.nn.LSTM`). `dtype` is
    "same" (as the first tensor, except `from_bool`), "float" (floating for integers too),
    or a dtype's name; see `result_dtype`. `created` is the dtype of what is made of numbers
    alone, or "numbers": it is theirs.
    `reduces`: without a dimension the result has rank 0; `broadcasts`: but with a second
    tensor it does not reduce (`torch.max`). `one_argument` is what it does instead when it
    is given nothing but its first argument (`torch.where`). `elementwise`: the shape is the
    broadcast of the inputs, each element depends on its like, and strides are kept.
    `dynamic_shape`: the shape depends on data in every call; `may_be_dynamic`: in some.
    `loses_shape`: the static shape of the result is not known in a graph; `keeps_loss`: nor
    is it behind an input of unknown rank; `needs_rank`: which it refuses, or (`needs_last`)
    one whose last dimension is None. `shape_argument` is the position of a parameter that
    spells the result's shape; `partial_shape`: None is accepted in it. `takes_none` are the
    parameters that may be None, and their positions.
    `reads` and `breaks` are the graph break that a call causes under `torch.compile`: by reading
    data into Python, or otherwise; `with_tensor`: only when it is given a tensor,
    `with_tensor_inside`: or a list of tensors, `with_tensor_held`: or an object that has some,
    `with_module`: or a module; `held`: when a context manager that was made outside of the region
    is entered, or a method is called of another object that was; `input` and `intermediate`: when
    the attribute is one of an argument of the region, or of a tensor made there; `some`: not each
    time. `captured`: it does not with `fullgraph=True`, which makes a symbol of a number that is
    read and of a size that depends on data. `folds`: of numbers it makes a number, and no array.
    `varies`: two calls with equal arguments give different values (clocks, random numbers);
    `symbolic`: the break where Python computes with such a number, which the compiler does not
    know. `effect` is what it does to the world outside of the program: "output", "random" (a
    generator moves on) or "system". `exported`: torch.export takes it, and `refused`: it does
    not, though there is no break, or it is `captured`. `computes`: it gives tensors for tensors,
    and reads none. `grad`: its result requires a gradient though no argument does. `instance` is
    the class of the object that it returns. Of a place that asks for a number, `given`: a tensor
    that the region is given breaks there too; `captured`: a number that was read and became a
    symbol does not. `unless` are the places that have to be filled to avoid the break, and
    `position` is that of the argument which a row is about.
    """

    name: str
    returns: Returns | None = None
    items: int | None = None
    structure: "Structure | None" = None
    with_dim: Returns | None = None
    with_flags: Mapping[str, Returns] = field(default_factory=dict)
    is_bool: bool = False
    dtype: str | None = None
    created: str | None = None
    reduces: bool = False
    broadcasts: bool = False
    elementwise: bool = False
    random: bool = False
    mutates: bool = False
    view: bool = False
    dynamic_shape: bool = False
    may_be_dynamic: bool = False
    from_bool: str | None = None
    loses_shape: bool = False
    keeps_loss: bool = False
    needs_rank: bool = False
    needs_last: bool = False
    partial_shape: bool = False
    takes_none: Mapping[str, int] = field(default_factory=dict)
    shape_argument: int | None = None
    reads: str | None = None
    breaks: str | None = None
    with_tensor: str | None = None
    with_tensor_inside: str | None = None
    with_tensor_held: str | None = None
    with_tensor_captured: bool = False
    with_tensor_inside_captured: bool = False
    with_tensor_held_captured: bool = False
    with_module: str | None = None
    with_module_captured: bool = False
    held: str | None = None
    input: str | None = None
    intermediate: str | None = None
    some: bool = False
    captured: bool = False
    folds: bool = False
    varies: bool = False
    symbolic: str | None = None
    effect: str | None = None
    exported: bool = False
    refused: bool = False
    computes: bool = False
    grad: bool = False
    instance: str | None = None
    given: bool = False
    unless: tuple[str, ...] = ()
    position: int = 0
    one_argument: "Operator | None" = None
    source: str = ""

    @property
    def break_ids(self) -> frozenset[str]:
        """The ids of all graph breaks that the row tells of."""
        given = (self.with_tensor, self.with_tensor_inside, self.with_tensor_held)
        found = (self.breaks, *given, self.with_module, self.held)
        named = (*found, self.reads, self.input, self.intermediate, self.symbolic)
        return frozenset(each for each in named if each is not None and each.startswith("GB"))

    @property
    def is_notable(self) -> bool:
        """Whether a compiler may stop at it, or freeze what it returns."""
        in_some_way = self.with_tensor or self.with_tensor_inside or self.input or self.intermediate
        return bool(self.breaks or self.reads or in_some_way or self.varies or self.refused)

    def result_dtype(self, first: str | None) -> str | None:
        """The dtype of the result for a first tensor of dtype `first`; None: not known."""
        if self.is_bool:
            return "bool"
        if self.dtype == "same":
            return self.from_bool or first if first == "bool" else first
        if self.dtype == "float":
            return first if first is not None and first.startswith("float") else None
        return self.dtype


@dataclass(frozen=True, slots=True)
class GraphBreak:
    """One entry of the framework's registry of graph breaks.

    Texts are templates: `{fn}` stands for what the message names. `raised`: some line of
    this release causes it.
    """

    id: str
    type: str
    explanation: str = ""
    hints: tuple[str, ...] = ()
    raised: bool = True


@dataclass(frozen=True, eq=False)
class Table:
    """The knowledge of one release of a framework.

    `exact` is false when another release was asked for and this is the nearest there is.
    `borrowed` are the sections that the newest table lends it.
    """

    framework: str
    version: str
    exact: bool
    _data: Mapping[str, Any]
    borrowed: tuple[str, ...] = ()

    def section(self, name: str) -> Mapping[str, Any]:
        """A section as it is written, of a table that is not about results of functions."""
        section: Mapping[str, Any] = self._data[name]
        return section

    @property
    def roots(self) -> tuple[str, ...]:
        """The packages that the table is about."""
        return tuple(self._data.get("roots", (self.framework, "numpy")))

    def canonical(self, dotted: str) -> str:
        """The name under which the table knows a function that has several."""
        return str(self._data["aliases"].get(dotted, dotted))

    def function(self, dotted: str) -> Operator | None:
        """The function of a full dotted name, aliases included."""
        for prefix in ("torch.Tensor.", "torch._C.TensorBase."):
            if dotted.startswith(prefix):
                return self.method(dotted.removeprefix(prefix))
        return self._operator("functions", dotted) or self._operator("numpy", dotted)

    def method(self, name: str) -> Operator | None:
        """The method of a tensor."""
        return self._operator("methods", name)

    def attribute(self, name: str) -> Returns | None:
        """What an attribute of a tensor is: TENSOR, SIZE or STATIC."""
        kind = self._data["attributes"].get(name)
        return None if kind is None else Returns(kind)

    def module(self, dotted: str) -> Operator | None:
        """What calling an instance of a class of `torch.nn` returns."""
        return self._operator("modules", dotted)

    def graph_break(self, identifier: str) -> GraphBreak | None:
        entry = self._data.get("graph_breaks", {}).get(identifier)
        return None if entry is None else _graph_break(identifier, entry)

    def graph_breaks(self) -> list[GraphBreak]:
        """The registry, sorted by identifier; empty if the release has none."""
        entries = self._data.get("graph_breaks", {})
        return [_graph_break(identifier, entries[identifier]) for identifier in sorted(entries)]

    def standard(self, dotted: str) -> Operator | None:
        """A function of the standard library, or the method of an object of a class."""
        found = self._operator("standard", dotted)
        if found is not None:
            return found
        owner, _, method = dotted.rpartition(".")
        inherited = (self._operator("standard", f"{base}.{method}") for base in self.bases(owner))
        return next(filter(None, inherited), None) or self._added_method(owner, method)

    def skipped(self, dotted: str) -> Operator | None:
        """What a call does of a package that torch never traces."""
        root = dotted.partition(".")[0]
        if root not in self._data.get("skipped", {}).get("third_party", ()) or root in self.roots:
            return None
        return self._operator("hiding", "skipped package")

    def _added_method(self, cls: str, method: str) -> Operator | None:
        """What a method does that a library added to a class."""
        return None if method.startswith("_") else self._operator("standard", f"{cls}.*")

    def enters_itself(self, dotted: str) -> bool:
        """Whether `with manager as name` binds the manager, an object of this class."""
        return dotted in self._data.get("self_entered", ())

    def bases(self, dotted: str) -> tuple[str, ...]:
        """The classes above a class of the standard library or of torch, as far as they matter."""
        return tuple(self._data.get("bases", {}).get(dotted, ()))

    def context(self, dotted: str) -> Operator | None:
        """What entering a context manager does: by the function that makes it, or its class."""
        return self._operator("contexts", self._makers.get(dotted, dotted))

    @functools.cached_property
    def _makers(self) -> dict[str, str]:
        """The functions that make the context managers of a class of another name."""
        standard = self._data.get("standard", {})
        names = self._data.get("contexts", {})
        return {
            entry["instance"]: name
            for name, entry in standard.items()
            if name in names and entry.get("instance", name) != name
        }

    def store(self, attribute: str) -> Operator | None:
        """What storing an attribute of a tensor does."""
        return self._operator("stores", attribute)

    def read(self, attribute: str) -> Operator | None:
        """What reading an attribute of a tensor does, where it is more than that."""
        return self._operator("attribute_breaks", attribute)

    def obeys_device(self, dotted: str) -> bool:
        """Whether a function makes a tensor on the device of `with torch.device(…):`"""
        return dotted in self._data.get("device_constructors", ())

    def requires_grad(self, way: str) -> Operator | None:
        """What it does to set the flag of a tensor by an "argument", or by the "method"."""
        return self._operator("requires_grad", way)

    def hidden_by(self, dotted: str) -> Operator | None:
        """What calling a function does that was handed to this function or decorator."""
        return self._operator("hiding", dotted)

    def array(self, name: str) -> Operator | None:
        """What an attribute or a method of an array of NumPy does, if it breaks a graph."""
        return self._operator("arrays", name)

    def message(self, check: str) -> Operator | None:
        """What a function does that is handed to a check as its message."""
        return self._operator("messages", check)

    def hooked(self, method: str) -> Operator | None:
        """What calling a module does on which a hook was registered by this method."""
        return self._operator("hooks", method)

    def construct(self, name: str) -> Operator | None:
        """What a construct of Python does to a tensor, such as "index_by_mask"."""
        return self._operator("constructs", name)

    def constants(self, *kinds: str) -> frozenset[str]:
        """The dotted names of dtypes ("dtype"), layouts and memory formats."""
        listed = self._data.get("constants", {})
        return frozenset(name for kind in kinds or listed for name in listed.get(kind, ()))

    def lists(self, section: str, name: str) -> bool:
        """Whether a section that is a list of names has this one."""
        return name in self._lists(section)

    @functools.cached_property
    def _lists(self) -> "Callable[[str], frozenset[str]]":
        return functools.cache(lambda section: frozenset(self._data.get(section, ())))

    def instance(self, maker: str) -> str | None:
        """The class of the object that a function makes, where its methods matter."""
        found = self._data.get("instances", {}).get(maker)
        return None if found is None else str(found)

    def training_position(self, function: str) -> int | None:
        """The position of a parameter `training` that is true by default."""
        found = self._data.get("training_by_default", {}).get(function)
        return None if found is None else int(found)

    def depends_on_mode(self, maker: str, given: "Callable[[int, str], Any]") -> bool:
        """Whether a module computes something else in training mode; `given` tells the
        constant of a parameter by position and name, None where there is none."""
        if self.is_switched_off(maker, given):
            return False
        return self.lists("mode_dependent", maker) or any(self._switches(maker, given))

    def is_switched_off(self, maker: str, given: "Callable[[int, str], Any]") -> bool:
        """Whether the mode makes no difference for what is given, as in `Dropout(p=0)`."""
        return any(value is not None and not value for value in self._switches(maker, given))

    def _switches(self, maker: str, given: "Callable[[int, str], Any]") -> list[Any]:
        positions = self._data.get("mode_switches", {}).get(maker, {})
        return [given(position, name) for name, position in positions.items()]

    def outcome(self, section: str, name: str, tracer: str) -> str | None:
        """What becomes of something in a trace: "frozen", "raises", None if it is recorded."""
        found = self._data.get(section, {}).get(name, {}).get(tracer)
        return None if found is None else str(found)

    def numbers(self, operator: str) -> Mapping[str, Operator]:
        """The places where an operator asks for a number that is not to be a tensor's: a
        position (a method's receiver is 0) or a keyword; "" is the call itself."""
        if operator not in self._numbers:
            rows = self._data.get("numbers", {}).get(operator, {})
            self._numbers[operator] = MappingProxyType(
                {slot: _operator(f"{operator}({slot})", row) for slot, row in rows.items()}
            )
        return self._numbers[operator]

    def rows(self, *sections: str) -> Iterator[Operator]:
        """All rows of some sections."""
        for section in sections:
            for name in self._data.get(section, {}):
                row = self._operator(section, name)
                if row is not None:
                    yield row

    def is_tensor_only(self, name: str) -> bool:
        """Whether a value with this method can only be a tensor."""
        return name in self._tensor_only

    @functools.cached_property
    def _tensor_only(self) -> frozenset[str]:
        return frozenset(self._data["tensor_only_methods"])

    @functools.cached_property
    def _numbers(self) -> dict[str, Mapping[str, Operator]]:
        return {}

    @functools.cached_property
    def _operators(self) -> dict[tuple[str, str], Operator]:
        return {}

    def _operator(self, section: str, name: str) -> Operator | None:
        entries = self._data.get(section, {})
        entry = entries.get(name)
        if entry is None:
            name = self._data["aliases"].get(name, name)
            entry = entries.get(name)
        if entry is None:
            return None
        key = section, name
        if key not in self._operators:
            self._operators[key] = _operator(name, entry)
        return self._operators[key]


def _operator(name: str, entry: dict[str, Any]) -> Operator:
    fields = dict(entry)
    flags = fields.pop("with_flag", {})
    alone = fields.pop("one_argument", None)
    return Operator(
        name=name,
        returns=_kind(fields.pop("returns", None)),
        with_dim=_kind(fields.pop("with_dim", None)),
        with_flags=MappingProxyType({flag: Returns(kind) for flag, kind in flags.items()}),
        one_argument=None if alone is None else _operator(name, alone),
        structure=_structure(fields.pop("structure", None)),
        is_bool=fields.pop("bool", False),
        unless=tuple(fields.pop("unless", ())),
        **fields,
    )


def _graph_break(identifier: str, entry: dict[str, Any]) -> GraphBreak:
    return GraphBreak(identifier, **{**entry, "hints": tuple(entry["hints"])})


def _structure(found: Any) -> "Structure | None":
    if isinstance(found, list):
        return tuple(item for part in found if (item := _structure(part)) is not None)
    return _kind(found)


def _kind(text: str | None) -> Returns | None:
    return None if text is None else Returns(text)


@functools.lru_cache(maxsize=8)
def load(framework: str = "torch", version: str | None = None) -> Table:
    """The table of a release, else of the nearest one; the newest when none is named.

    A section that was not measured for that release is taken from the newest one (`borrowed`).

    Raises ValueError when there is no table of `framework`, or `version` is not a version.
    """
    tables = {release: path for path in _files(framework) if (release := _release(path))}
    if not tables:
        raise ValueError(f"there is no table for {framework}")
    wanted = max(tables) if version is None else _minor(version)
    chosen = min(tables, key=lambda release: (_distance(release, wanted), -_order(release)))
    data = _read(tables[chosen])
    newest = data if chosen == max(tables) else _read(tables[max(tables)])
    missing = sorted(newest.keys() - data.keys())
    whole = data | {section: newest[section] for section in missing}
    return Table(framework, data["version"], chosen == wanted, whole, tuple(missing))


def _read(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(path.read_bytes())
    if data["schema"] != SCHEMA:
        raise ValueError(f"{path} has schema {data['schema']}, not {SCHEMA}")
    return data


def substitutes(targets: Mapping[str, str]) -> list[str]:
    """One sentence for each target version that has no table of its own, or not a whole one."""
    sentences = []
    for framework, version in targets.items():
        if not _files(framework):
            continue
        table = load(framework, version)
        if not table.exact:
            sentences.append(
                f"there is no table for {framework} {version}; that of {table.version} is used"
            )
        if table.borrowed:
            sentences.append(
                f"the table for {framework} {table.version} lacks what was measured for "
                f"{load(framework).version} only: {', '.join(table.borrowed)}"
            )
    return sentences


def available(framework: str = "torch") -> list[str]:
    """The releases that have a table, oldest first."""
    return [str(release) for release in sorted(map(_release, _files(framework)))]


def _files(framework: str) -> list[Path]:
    return sorted(FOLDER.glob(f"{framework}-*.json"))


def _release(path: Path) -> Version:
    return Version(path.stem.rpartition("-")[2])


def _minor(version: str) -> Version:
    parsed = Version(version)
    return Version(f"{parsed.major}.{parsed.minor}")


def _distance(release: Version, wanted: Version) -> int:
    return abs(_order(release) - _order(wanted))


def _order(release: Version) -> int:
    """Minor releases in a row; a change of the major number is far."""
    return release.major * 1000 + release.minor
