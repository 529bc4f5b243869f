"""Where an operator of torch asks for a Python number, and what a tensor given there does.

Section `numbers` of a table: operator -> place -> row. A place is a position (the receiver
of a method is 0) or a keyword; "" is the call itself. The type stubs say which parameters
are numbers or sizes; what happens is found by compiling a call with a tensor there.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from jitlint.analysis.extract_breaks import DYNAMIC_SHAPE, caller
from jitlint.analysis.extract_numpy import sizes_of_random
from jitlint.analysis.extract_regions import Outcome, compile_region, in_processes
from jitlint.analysis.extract_samples import Sample
from jitlint.analysis.extract_stubs import Overload, Parameter
from jitlint.analysis.extract_subjects import Subject, functions, methods

INTEGRAL = ("int", "Int", "Number", "_size")
FLOATING = ("float", "Number")
SEVERAL = ("_size", "Sequence", "list", "List", "tuple")
"""What the annotation of a parameter contains that wants whole numbers, any, or several."""
INTEGERS: tuple[Any, ...] = (2, 1, 0, 3, 4)
SIZES: tuple[Any, ...] = ((2, 3), (2,), (1, 2), (1,), (0, 1), (0,), (3,), (1, 1), (2, 2))
FLOATS: tuple[Any, ...] = (0.5, 2.0)
AT_ONCE = 4
MAX_VARIADIC = 4
"""So many sizes of `torch.zeros(*size)` are measured."""
MAX_SAMPLES = 24
"""Calls of a function into which the number is put."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A place for a number: a position (the receiver of a method is 0), or a keyword."""

    key: str
    integral: bool
    floating: bool
    several: bool
    variadic: bool
    mixed: bool
    """Some overload wants a tensor there."""

    @property
    def keys(self) -> Iterator[str]:
        """The places that this one stands for."""
        if self.key.isdigit():
            count = MAX_VARIADIC if self.variadic else 1
            yield from (str(int(self.key) + step) for step in range(count))
        else:
            yield self.key

    def candidates(self) -> Iterator[Any]:
        if self.several:
            yield from SIZES
        if self.integral:
            yield from INTEGERS
        if self.floating:
            yield from FLOATS


def numbers() -> dict[str, dict[str, dict[str, Any]]]:
    """The rows of each slot at which a compiler stops, by operator."""
    subjects = [*functions(), *methods()]
    asking = [subject for subject in subjects if any(True for _ in slots_of(subject))]
    found = {subject.name: rows for subject, rows in in_processes(measure, asking, AT_ONCE) if rows}
    return found | sizes_of_random()


def slots_of(subject: Subject) -> Iterator[Slot]:
    """The places where some overload wants a number, and none has to have a tensor."""
    found: dict[str, list[Parameter]] = {}
    for overload in subject.overloads or _declared(subject):
        for index, parameter in enumerate(overload.parameters):
            if not parameter.keyword_only:
                found.setdefault(str(index + subject.method), []).append(parameter)
            if not parameter.name.startswith("*"):
                found.setdefault(parameter.name, []).append(parameter)
    for key, parameters in found.items():
        texts = [p.annotation for p in parameters if "Tensor" not in p.annotation]
        integral, floating, several = (
            any(word in text for text in texts for word in words)
            for words in (INTEGRAL, FLOATING, SEVERAL)
        )
        if integral or floating:
            variadic = any(p.name.startswith("*") for p in parameters)
            mixed = len(texts) < len(parameters)
            yield Slot(key, integral, floating, several, variadic, mixed)


def _declared(subject: Subject) -> Iterator[Overload]:
    """The signatures in the schemas of an operator, where no stub has one."""
    import torch

    packet: Any = getattr(torch.ops.aten, subject.name.rpartition(".")[2], None)
    for name in packet.overloads() if hasattr(packet, "overloads") else ():
        arguments = getattr(packet, name)._schema.arguments
        parameters = (
            Parameter(a.name, str(a.type), not a.has_default_value(), a.kwarg_only)
            for a in arguments[subject.method :]
            if not a.is_out
        )
        yield Overload(tuple(parameters), "")


def measure(subject: Subject) -> dict[str, dict[str, Any]]:
    names = {slot.key for slot in slots_of(subject)}
    samples = [sample for sample in subject.samples() if sample.compiles]
    samples += [_without(sample, names) for sample in samples if names & sample.kwargs.keys()]
    spread = {_form(sample): sample for sample in reversed(samples)}
    chosen = list(itertools.islice(spread.values(), MAX_SAMPLES))
    rows = [(slot, _row(subject, slot, chosen)) for slot in slots_of(subject)]
    found = {key: row for slot, row in rows if row is not None for key in slot.keys}
    without = _row_without(subject, chosen)
    return found if without is None else {"": without, **found}


def _without(sample: Sample, names: set[str]) -> Sample:
    return replace(sample, kwargs={k: v for k, v in sample.kwargs.items() if k not in names})


def _form(sample: Sample) -> object:
    return (*map(_kind, sample.args), *((name, _kind(v)) for name, v in sample.kwargs.items()))


def _kind(value: Any) -> object:
    shape = getattr(value, "ndim", None)
    return type(value).__name__, shape, len(value) if isinstance(value, list | tuple) else None


def _row(subject: Subject, slot: Slot, samples: list[Sample]) -> dict[str, Any] | None:
    """What a tensor in this place does, by the first call that works with one."""
    import torch

    for sample, value in _with_number(subject, slot, samples):
        region, number = _region(subject, slot, sample, value)
        given = [torch.tensor(number), sample.args, sample.kwargs]
        try:
            region(*_fresh(given), lambda n: n * 1)
        except Exception:
            continue
        outcomes = {
            name: compile_region(region, *_fresh(given), change, fullgraph=fullgraph)
            for name, (change, fullgraph) in MODES.items()
        }
        plain = [number, sample.args, sample.kwargs]
        outcomes["plain"] = compile_region(region, *_fresh(plain), MODES["given"][0])
        if outcomes["computed"].identifier is None or not outcomes["plain"].clean:
            return None
        if slot.mixed and outcomes["computed"].identifier != DYNAMIC_SHAPE:
            return None
        row: dict[str, Any] = {"reads": outcomes["computed"].identifier}
        row |= {"given": True} if outcomes["given"].identifier else {}
        row |= {"captured": True} if outcomes["symbol"].clean else {}
        if row["reads"] == DYNAMIC_SHAPE:
            shape = getattr(region(*_fresh(given), MODES["given"][0]), "shape", ())
            number = torch.tensor(number)
            filled = _put(sample, slot, [number, *value[1:]] if _is_several(value) else number)
            assert filled is not None
            row |= _unless(subject, filled, shape, besides=slot)
        return row
    return None


def _row_without(subject: Subject, samples: list[Sample]) -> dict[str, Any] | None:
    """The row of the call itself, where it breaks unless some number is given."""
    fewest = min((len(s.args) for s in samples), default=0)
    for sample in samples:
        if len(sample.args) == fewest and not sample.kwargs and sample.runs():
            outcome = _compiled(subject, sample)
            if outcome.identifier is None:
                return None
            unless = _unless(subject, sample, getattr(sample.copy().run(), "shape", ()))
            is_captured = _compiled(subject, sample, fullgraph=True).clean
            captured = {"captured": True} if is_captured else {}
            row = {"reads": outcome.identifier, "dynamic_shape": True, **captured, **unless}
            return row if unless else None
    return None


def _unless(
    subject: Subject, sample: Sample, shape: Iterable[int], besides: Slot | None = None
) -> dict[str, Any]:
    """The places that, when they are filled too, make a call compile."""
    found = []
    for slot in slots_of(subject):
        if slot == besides:
            continue
        for value in (*shape, *slot.candidates()):
            filled = _put(sample, slot, value)
            if filled is not None and filled.runs():
                found += [slot.key] if _compiled(subject, filled).clean else []
                break
    return {"unless": found} if found else {}


def _put(sample: Sample, slot: Slot, value: Any) -> Sample | None:
    """The same call with a value in a place; None where another stands before it."""
    if not slot.key.isdigit():
        return replace(sample, kwargs={**sample.kwargs, slot.key: value})
    position = int(slot.key)
    if position > len(sample.args):
        return None
    return replace(sample, args=(*sample.args[:position], value, *sample.args[position + 1 :]))


def _compiled(subject: Subject, sample: Sample, *, fullgraph: bool = False) -> Outcome:
    call = caller(subject, sample)

    def region(args: Any, kwargs: Any) -> Any:
        return call(*[a * 1 if i == 0 else a for i, a in enumerate(args)], **kwargs)

    fresh = sample.copy()
    return compile_region(region, fresh.args, fresh.kwargs, fullgraph=fullgraph)


MODES: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "computed": (lambda number: number * 1, False),
    "given": (lambda number: number, False),
    "symbol": (lambda number: (number * 1).item(), True),
}
"""What is done to the number, and whether with `fullgraph=True`: a tensor that was computed,
one that the region was given, and a number that was read and became a symbol."""


def _with_number(
    subject: Subject, slot: Slot, samples: list[Sample]
) -> Iterator[tuple[Sample, Any]]:
    """Calls of which the number is missing, and what to put there."""
    for sample in samples:
        if slot.key.isdigit():
            position = int(slot.key)
            if len(sample.args) < position:
                continue
            if len(sample.args) > position:
                own = sample.args[position]
                if not _fits(own):
                    continue
                if isinstance(own, list | tuple) or type(own) is int or not slot.integral:
                    yield sample, own
            for value in slot.candidates():
                yield sample, value
        elif slot.key in sample.kwargs:
            if _fits(sample.kwargs[slot.key]):
                yield sample, sample.kwargs[slot.key]
        else:
            for value in slot.candidates():
                yield sample, value


def _is_several(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _fits(value: Any) -> bool:
    if _is_several(value):
        return bool(value) and all(type(item) in (int, float) for item in value)
    return type(value) in (int, float)


def _region(
    subject: Subject, slot: Slot, sample: Sample, value: Any
) -> tuple[Callable[..., Any], Any]:
    """The call, as a function of the number; of several sizes, of the first."""
    call = caller(subject, sample)
    name = slot.key
    is_list = _is_several(value)
    rest = list(value[1:]) if is_list else []
    number = value[0] if is_list else value

    if slot.key.isdigit():
        position = int(slot.key)

        def region(given: Any, args: Any, kwargs: Any, change: Any) -> Any:
            changed = change(given)
            put = [changed, *rest] if is_list else changed
            return call(*args[:position], put, *args[position + 1 :], **kwargs)
    else:

        def region(given: Any, args: Any, kwargs: Any, change: Any) -> Any:
            changed = change(given)
            put = [changed, *rest] if is_list else changed
            return call(*args, **{**kwargs, name: put})

    return region, number


def _fresh(given: list[Any]) -> list[Any]:
    number, args, kwargs = given
    copy = Sample(len, (number, *args), kwargs, False, "measured").copy()
    return [copy.args[0], copy.args[1:], copy.kwargs]
