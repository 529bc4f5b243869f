"""One call, observed from outside: everything that a caller could tell it by."""

import io
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from unittest import mock

import torch

from jitlint.verify.aspects import Aspect, Difference, Failure, OutOfMemoryError
from jitlint.verify.inputs import Given
from jitlint.verify.state import Globals, Target
from jitlint.verify.torch_leaves import (
    TensorLeaf,
    snapshot,
    stride_difference,
    tensors_in,
)
from jitlint.verify.values import Flat, Leaf, difference, flat_difference, flatten, stable_text

COTANGENT_SEED = 20_011


@dataclass(frozen=True, slots=True)
class Outcome:
    """`state_after` is what the target keeps of itself: a fix may add to it. `settings` are
    those of torch after the call, and `details` what an exception carries with it."""

    failure: Failure | None = None
    output: Flat = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    gradients: Flat = field(default_factory=dict)
    inputs_after: Flat = field(default_factory=dict)
    state_after: Flat = field(default_factory=dict)
    printed: str = ""
    warned: str = ""
    random_state: tuple[object, ...] = ()
    settings: Flat = field(default_factory=dict)
    details: str = ""


class Streams:
    """Stand-ins for stdout and stderr that handlers may keep: they follow the capture."""

    def __init__(self) -> None:
        self.text = io.StringIO()

    def install(self) -> None:
        sys.stdout, sys.stderr = _Stream(self), _Stream(self)

    @contextmanager
    def captured(self) -> Iterator[io.StringIO]:
        outer, self.text = self.text, io.StringIO()
        try:
            yield self.text
        finally:
            self.text = outer


class _Stream(io.TextIOBase):
    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        return self._streams.text.write(text)


def observe(
    call: Callable[..., Any],
    target: Target,
    given: Given,
    streams: Streams,
    module_state: Globals,
    *,
    gradients: bool,
    eager: bool,
) -> Outcome:
    """Calls once, from a fixed random state, and records what there is to see."""
    args, kwargs = given.arguments()
    seed_everything(given.seed)
    output, failure, details = None, None, ""
    leaves = dict(tensors_in((args, kwargs), "input"))
    with ExitStack() as stack:
        settings = stack.enter_context(_settings())
        text = stack.enter_context(streams.captured())
        warned = stack.enter_context(_warnings(eager))
        torch.set_grad_enabled(not given.without_grad)
        try:
            output = _consumed(call(*args, **kwargs))
        except (Exception, SystemExit) as error:
            failure, details = _failure(error), _details(error)
        printed = text.getvalue()
    messages = "".join(warned)
    random_state = _random_state()
    returned = flatten(output, "output")
    aliases = _aliases(output, leaves, target) | _replaced((args, kwargs), leaves)
    inputs_after = {**flatten((args, kwargs), "input"), **_grad_attributes(leaves)}
    inputs_after |= {f"the tensor given as {name}": snapshot(leaf) for name, leaf in leaves.items()}
    state_after = {**target.state(), **module_state.state()}
    found: Flat = {}
    if gradients and failure is None:
        wanted = {**leaves, **target.parameters(), **module_state.parameters(target)}
        found = _gradients(output, wanted)
    return Outcome(
        failure,
        returned,
        aliases,
        found,
        inputs_after,
        state_after,
        stable_text(printed),
        stable_text(messages),
        random_state,
        settings,
        details,
    )


MAX_ITEMS = 1000


def _consumed(output: object) -> object:
    """What an iterator gives, together with its type."""
    if not isinstance(output, Iterator):
        return output
    return {f"items of a {type(output).__name__}": list(islice(output, MAX_ITEMS))}


def differences(
    old: Outcome, new: Outcome, *, compiled: bool = False, slack: float = 1.0
) -> list[Difference]:
    """What a caller of `new` sees that a caller of `old` did not."""
    return [
        Difference(aspect, detail)
        for aspect, detail in _all_differences(old, new, compiled, slack)
        if detail is not None
    ]


def _all_differences(
    old: Outcome, new: Outcome, compiled: bool, slack: float
) -> Iterator[tuple[Aspect, str | None]]:
    if old.failure is not None or new.failure is not None:
        yield Aspect.EXCEPTION, _failure_difference(old.failure, new.failure)
        if compiled or old.failure is None or new.failure is None:
            return  # what a graph does before it raises is the compiler's affair
    yield Aspect.OUTPUT, flat_difference(old.output, new.output, slack)
    if not compiled:
        yield Aspect.EXCEPTION, _text_difference(old.details, new.details)
        yield Aspect.OUTPUT, stride_difference(old.output, new.output)
    yield Aspect.ALIAS, flat_difference(dict(old.aliases), dict(new.aliases))
    yield Aspect.GRADIENT, flat_difference(old.gradients, new.gradients, slack)
    yield Aspect.MUTATION, flat_difference(old.inputs_after, new.inputs_after, slack)
    yield Aspect.MUTATION, _state_difference(old.state_after, new.state_after, slack)
    yield Aspect.MUTATION, flat_difference(old.settings, new.settings)
    yield Aspect.PRINTED, _text_difference(old.printed, new.printed)
    compare = _lost if compiled else _text_difference
    yield Aspect.PRINTED, compare(old.warned, new.warned)
    yield Aspect.RANDOM, _random_difference(old, new, compiled)


def _state_difference(old: Flat, new: Flat, slack: float) -> str | None:
    """A fix may add a buffer, or turn a counter into one; its value must be the same."""
    for path in old:
        if path not in new:
            return f"{path} is not there"
        before, after = old[path], new[path]
        if type(before) is not type(after):
            before, after = _number(before), _number(after)
        found = difference(before, after, slack)
        if found is not None:
            return f"{path}: {found}"
    return None


def _number(leaf: Leaf) -> Leaf:
    if isinstance(leaf, TensorLeaf) and leaf.values.ndim == 0:
        return leaf.values.item()
    return leaf


def _failure_difference(old: Failure | None, new: Failure | None) -> str | None:
    if old == new:
        return None
    return f"{old or 'no exception'} became {new or 'no exception'}"


def _text_difference(old: str, new: str) -> str | None:
    return None if old == new else f"{old[:120]!r} became {new[:120]!r}"


def _lost(old: str, new: str) -> str | None:
    """What a compiler drops; it may add warnings of its own."""
    lost = Counter(old.splitlines()) - Counter(new.splitlines())
    return f"the warning {min(lost)[:120]!r} is lost" if lost else None


def _random_difference(old: Outcome, new: Outcome, compiled: bool) -> str | None:
    names = ("torch", "CUDA", "random", "numpy")
    for name, before, after in zip(names, old.random_state, new.random_state, strict=True):
        if before != after and not (compiled and name in ("random", "numpy", "CUDA")):
            return f"the state of {name}'s generator differs afterwards"
    return None


def seed_everything(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)


def _random_state() -> tuple[object, ...]:
    numpy = sys.modules.get("numpy")
    return (
        torch.get_rng_state().numpy().tobytes(),
        torch.cuda.get_rng_state().numpy().tobytes() if torch.cuda.is_available() else None,
        random.getstate(),
        repr(numpy.random.get_state(legacy=True)[1:3]) if numpy is not None else None,
    )


@contextmanager
def _warnings(recorded: bool) -> Iterator[list[str]]:
    """The warnings that the code under test issues itself.

    Those of the frameworks come and go with the operation that is used. A compiler would
    trace into the recorder, so that it is left out there, and all warnings are kept.
    """
    found: list[str] = []
    original = warnings.warn

    def warn(message: Any, category: Any = None, *args: Any, **options: Any) -> None:
        package = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0]
        if package not in ("torch", "numpy"):
            kind = type(message) if isinstance(message, Warning) else category or UserWarning
            found.append(f"{kind.__name__}: {message}\n")
        original(message, category, *args, **options)

    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        if not recorded:
            yield found
            found += (f"{each.category.__name__}: {each.message}\n" for each in issued)
            return
        with mock.patch.object(warnings, "warn", warn):
            yield found


SETTINGS: Mapping[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "gradients are recorded": (torch.is_grad_enabled, torch.set_grad_enabled),
    "default dtype": (torch.get_default_dtype, torch.set_default_dtype),
    "deterministic algorithms": (
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
    "precision of products": (
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
}
"""Settings of the process, as they are read and written."""


@contextmanager
def _settings() -> Iterator[Flat]:
    """What the call left of the settings; they are put back."""
    before = {name: read() for name, (read, _) in SETTINGS.items()}
    found: Flat = {}
    try:
        yield found
    finally:
        after = {name: read() for name, (read, _) in SETTINGS.items()}
        for name, (_, write) in SETTINGS.items():
            if after[name] != before[name]:
                write(before[name])
        found.update({f"setting: {name}": str(value) for name, value in after.items()})


def _details(error: BaseException) -> str:
    """What handlers may look at: the cause, notes, and attributes of the exception's class."""
    cause = error.__cause__
    chain = "" if cause is None else f" from {_failure(cause)}"
    plain = {name: value for name, value in vars(error).items() if not name.startswith("_")}
    return stable_text(f"{plain}{getattr(error, '__notes__', [])}{chain}")


def _failure(error: BaseException) -> Failure:
    message = stable_text(str(error))
    if isinstance(error, MemoryError) or "can't allocate memory" in message:
        raise OutOfMemoryError from error
    kind = type(error)
    prefix = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    return Failure(f"{prefix}{kind.__qualname__}", message)


def _gradients(output: object, wanted: Mapping[str, torch.Tensor]) -> Flat:
    """The gradient of a fixed random combination of all outputs. `None` is not zero."""
    sources = {name: tensor for name, tensor in wanted.items() if tensor.requires_grad}
    results = [
        tensor
        for _, tensor in tensors_in(output, "output")
        if tensor.requires_grad and (tensor.is_floating_point() or tensor.is_complex())
    ]
    if not sources or not results:
        return {f"gradient of {name}": None for name in sources}
    generator = torch.Generator().manual_seed(COTANGENT_SEED)
    weights = [
        torch.randn(tensor.shape, generator=generator, dtype=_weight_dtype(tensor)).to(
            device=tensor.device, dtype=tensor.dtype
        )
        for tensor in results
    ]
    try:
        found = torch.autograd.grad(results, list(sources.values()), weights, allow_unused=True)
    except Exception as error:
        failure = _failure(error)
        return {"gradient": str(failure)}
    return {
        f"gradient of {name}": None if grad is None else flatten(grad, "")[""]
        for name, grad in zip(sources, found, strict=True)
    }


def _weight_dtype(tensor: torch.Tensor) -> torch.dtype:
    return torch.complex64 if tensor.is_complex() else torch.float32


def _grad_attributes(leaves: Mapping[str, torch.Tensor]) -> Flat:
    found: Flat = {}
    for name, tensor in leaves.items():
        if tensor.is_leaf:
            found.update(flatten(tensor.grad, f"{name}.grad"))
    return found


def _aliases(output: object, leaves: Mapping[str, torch.Tensor], target: Target) -> dict[str, str]:
    """Which outputs are, or look into, a tensor that the caller already holds."""
    known = {**leaves, **target.tensors()}
    found: dict[str, str] = {}
    for path, tensor in tensors_in(output, "output"):
        found[path] = _alias(tensor, known)
        known[path] = tensor
    return found


def _replaced(arguments: object, leaves: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """Which tensors stand in the caller's containers after the call."""
    names = {id(tensor): name for name, tensor in leaves.items()}
    return {
        path: f"is {names.get(id(tensor), 'another tensor')}"
        for path, tensor in tensors_in(arguments, "input")
    }


def _alias(tensor: torch.Tensor, known: Mapping[str, torch.Tensor]) -> str:
    for name, other in known.items():
        if tensor is other:
            return f"is {name}"
    storage = _storage(tensor)
    for name, other in known.items():
        if storage is not None and storage == _storage(other):
            return f"shares the memory of {name}"
    return "new memory"


def _storage(tensor: torch.Tensor) -> int | None:
    try:
        return tensor.untyped_storage().data_ptr() or None
    except (RuntimeError, NotImplementedError):
        return None  # sparse and other tensors without one storage
