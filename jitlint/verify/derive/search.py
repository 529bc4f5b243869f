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
    Draw,
    Hints,
    Shape,
    Tensors,
    shapes,
)
from jitlint.verify.derive.signatures import Parameter
from jitlint.verify.derive.written import Row

MAX_TRIALS = 160
COMBINATIONS = 12
SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Trial:
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


Chosen = tuple[Choice, ...]


def trials(
    parameters: Sequence[Parameter], hints: Hints, tensors: Tensors, has_weights: bool = False
) -> "Iterator[tuple[Trial, Chosen]]":
    """Combinations of candidates: all tensors of one shape, then each of its own."""
    chooser = Chooser(hints, tensors)
    wanted = shapes(hints, has_weights)
    for shape in wanted:
        lists = [chooser.choices(each, shape) for each in parameters]
        if not all(lists):
            return
        for chosen in islice(_by_rank(lists), COMBINATIONS):
            yield _trial(parameters, chosen, Draw()), chosen
        if not any(choice.shape for choices in lists for choice in choices):
            return
    yield from _of_several_shapes(parameters, chooser, wanted)


def _of_several_shapes(
    parameters: Sequence[Parameter], chooser: Chooser, wanted: Sequence[Shape]
) -> Iterator[tuple[Trial, Chosen]]:
    columns = [
        [choices[0] for shape in wanted if (choices := chooser.choices(each, shape))]
        for each in parameters
    ]
    for chosen in _by_rank(columns):
        yield _trial(parameters, chosen, Draw()), chosen


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
    hints: Hints,
    tensors: Tensors,
    seeds: int,
    fits: Callable[[Trial], bool],
    has_weights: bool = False,
) -> list[Row]:
    """Rows for each seed, of several sizes where the code takes them; empty if nothing fits."""
    deadline = time.monotonic() + SECONDS
    for trial, chosen in islice(trials(parameters, hints, tensors, has_weights), MAX_TRIALS):
        if fits(trial):
            found = _Found(parameters, hints, tensors, chosen, fits)
            return [found.row(seed) for seed in range(seeds)]
        if time.monotonic() > deadline:
            break
    return []


@dataclass(slots=True)
class _Found:
    parameters: Sequence[Parameter]
    hints: Hints
    tensors: Tensors
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
        choices = Chooser(self.hints, self.tensors).choices(parameter, choice.shape or shape)
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
