"""The first combination of candidates that the old code takes, and its variations."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any

from jitlint.verify.derive.candidates import (
    LEADS,
    Choice,
    Chooser,
    Constant,
    Draw,
    Hints,
    Shape,
    Tensors,
    Untyped,
    shapes,
)
from jitlint.verify.derive.signatures import Parameter, parameters_of
from jitlint.verify.derive.written import Row

MAX_TRIALS = 400
COMBINATIONS = 12
SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Trial:
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


Chosen = tuple[Choice, ...]


def plain_trials(function: Callable[..., Any], tensors: Tensors) -> Iterator[Trial]:
    """Arguments for a constructor, or for a function that makes what is to be called."""
    parameters = parameters_of(function, function)
    yield Trial((), {})
    if parameters:
        chooser = Chooser(Hints.of(function, {}, ()), tensors, Untyped.NO_TENSOR)
        yield from (trial for trial, _ in trials(parameters, chooser))
        chooser = Chooser(chooser.hints, tensors)
        yield from (trial for trial, chosen in trials(parameters, chooser, has_weights=True))


def trials(
    parameters: Sequence[Parameter], chooser: Chooser, has_weights: bool = False
) -> Iterator[tuple[Trial, Chosen]]:
    """Combinations of candidates, each with every shape: all tensors of one, then of their own."""
    wanted = shapes(chooser.hints, has_weights)
    columns = [[chooser.choices(each, shape) for each in parameters] for shape in wanted]
    if not all(map(all, columns)):
        return
    ranked = [list(islice(_by_rank(lists), COMBINATIONS)) for lists in columns]
    for chosen_of_shapes in zip(*ranked, strict=True):
        for chosen in chosen_of_shapes:
            yield from _made(parameters, chosen)
            if all(isinstance(choice.make, Constant) for choice in chosen):
                break  # no tensor among them: all shapes are alike
    yield from _of_several_shapes(parameters, columns)


def _of_several_shapes(
    parameters: Sequence[Parameter], columns: Sequence[Sequence[Sequence[Choice]]]
) -> Iterator[tuple[Trial, Chosen]]:
    firsts = [[lists[index][0] for lists in columns] for index in range(len(parameters))]
    for chosen in _by_rank(firsts):
        yield from _made(parameters, chosen)


def _made(parameters: Sequence[Parameter], chosen: Chosen) -> Iterator[tuple[Trial, Chosen]]:
    """Nothing where a class of the module does not take the values of its fields."""
    try:
        trial = _trial(parameters, chosen, Draw())
    except Exception:
        return
    yield trial, chosen


def _by_rank(lists: Sequence[Sequence[Choice]]) -> Iterator[Chosen]:
    """The product of the lists, the first choices of each first."""
    if not lists:
        yield ()
        return
    most = min(sum(len(each) - 1 for each in lists), 12)
    for total in range(most + 1):
        for places in product(*(range(min(len(each), total + 1)) for each in lists)):
            if sum(places) == total:
                yield tuple(each[place] for each, place in zip(lists, places, strict=True))


def search(
    parameters: Sequence[Parameter],
    chooser: Chooser,
    seeds: int,
    fits: Callable[[Trial], bool],
    has_weights: bool = False,
) -> list[Row]:
    """Rows for each seed, of several sizes where the code takes them; empty if nothing fits."""
    deadline = time.monotonic() + SECONDS
    for trial, chosen in islice(trials(parameters, chooser, has_weights), MAX_TRIALS):
        if fits(trial):
            found = _Found(parameters, chooser, chosen, fits)
            return [found.row(seed) for seed in range(seeds)]
        if time.monotonic() > deadline:
            break
    return []


@dataclass(slots=True)
class _Found:
    parameters: Sequence[Parameter]
    chooser: Chooser
    chosen: Chosen
    fits: Callable[[Trial], bool]

    def row(self, seed: int) -> Row:
        """With other sizes and other values than the seed before, where both are taken."""
        base = Draw(seed)
        trial = _trial(self.parameters, self.chosen, base)
        for chosen, draw in self._variations(seed):
            other = _trial(self.parameters, chosen, draw)
            if self.fits(other):
                trial = other
                break
        return Row(f"derived input {seed}", trial.args, trial.kwargs, seed)

    def _variations(self, seed: int) -> Iterator[tuple[Chosen, Draw]]:
        if seed == 0:
            return
        other = Draw(seed, LEADS[seed % len(LEADS)])
        turned = self._turned(seed)
        yield turned, other
        yield self.chosen, other
        yield turned, Draw(seed)

    def _turned(self, seed: int) -> Chosen:
        """Values of the same kinds, each parameter at its own pace."""
        turns = range(seed, seed + len(self.chosen))
        pairs = zip(self.parameters, self.chosen, turns, strict=True)
        return tuple(self._next(parameter, choice, turn) for parameter, choice, turn in pairs)

    def _next(self, parameter: Parameter, choice: Choice, turn: int) -> Choice:
        shape = next((each.shape for each in self.chosen if each.shape), Shape((None,)))
        choices = self.chooser.choices(parameter, choice.shape or shape)
        same = [each for each in choices if each.kind == choice.kind]
        return same[turn % len(same)]


def _trial(parameters: Sequence[Parameter], chosen: Chosen, draw: Draw) -> Trial:
    """Positional as long as nothing is left out."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    by_keyword = False
    for index, (parameter, choice) in enumerate(zip(parameters, chosen, strict=True)):
        by_keyword = by_keyword or parameter.by_keyword
        if choice.omitted:
            by_keyword = True
            continue
        value = choice.make(Draw(draw.seed + 101 * index, draw.lead))
        if by_keyword:
            kwargs[parameter.name] = value
        else:
            args.append(value)
    return Trial(tuple(args), kwargs)
