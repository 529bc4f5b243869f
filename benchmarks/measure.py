"""Runs the small models of one library, eagerly and compiled, and writes what it saw.

A worker of `models.py`: one process for each library and state of its source, so that
nothing of another state is in memory.
"""

import argparse
import pickle
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch._dynamo

from jitlint.verify.inputs import Given
from jitlint.verify.outcome import Outcome, Streams, observe, seed_everything
from jitlint.verify.state import Globals, Target
from jitlint.verify.torch_compile import parse_break, reading_the_log, user_frames
from zoo import Model, models_of

SEEDS = 3
RECOMPILE_LIMIT = 64


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """Where a graph broke, in the innermost frame of the library's own code."""

    file: str
    line: int
    reason: str


@dataclass(slots=True)
class Measured:
    """One model in one mode. `sites` counts the breaks; a recompilation counts no break twice."""

    eager: list[Outcome] = field(default_factory=list)
    compiled: list[Outcome] = field(default_factory=list)
    sites: Counter[Site] = field(default_factory=Counter)
    graphs: int = 0
    seconds: float = 0.0
    failure: str = ""


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(1)
    sys.path[:0] = [str(arguments.folder)]
    stand_in_for_torchvision()
    table = models_of(arguments.library)
    names = arguments.model or list(table)
    found = {}
    for name in names:
        for train in (False, True) if table[name].train else (False,):
            mode = "train" if train else "eval"
            found[name, mode] = measured(table[name], train, arguments.folder)
            report(name, mode, found[name, mode])
    if arguments.output is not None:
        arguments.output.write_bytes(pickle.dumps(found))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("library")
    parser.add_argument("folder", type=Path, help="where the library's package lies")
    parser.add_argument("--output", type=Path, help="what was seen, as a pickle")
    parser.add_argument("--model", action="append", help="only this one")
    return parser.parse_args()


def report(name: str, mode: str, seen: Measured) -> None:
    print(f"{name} {mode}: {sum(seen.sites.values())} breaks, {seen.graphs} graphs, {seen.seconds:.1f} s {seen.failure}")
    for site, number in sorted(seen.sites.items()):
        print(f"    {site.file}:{site.line} x{number} {site.reason[:90]}", flush=True)


def stand_in_for_torchvision() -> None:
    """Lets the Python part of a torchvision load whose C++ part was built for another torch:
    the libraries import it, and none of the models runs its operators."""
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        stand_in_for_torchvision.kept = library  # type: ignore[attr-defined]


def measured(model: Model, train: bool, root: Path) -> Measured:
    seen = Measured()
    started = time.perf_counter()
    torch._dynamo.reset()
    try:
        target = built(model, train)
        givens = [given(model, seed) for seed in range(SEEDS)]
        seen.eager = [once(target, each, model.gradients, eager=True) for each in givens]
        broken = next((each.failure for each in seen.eager if each.failure is not None), None)
        if broken is not None:
            seen.failure = f"eager: {broken}"
        with counting(seen, root) as backend:
            fresh = target.fresh()
            compiled = torch.compile(fresh.call, backend=backend)
            for each in givens:
                seen.compiled.append(
                    observe(compiled, fresh, each, STREAMS, NO_GLOBALS, gradients=model.gradients, eager=False)
                )
    except Exception:
        seen.failure = traceback.format_exc(limit=-4)
    seen.seconds = time.perf_counter() - started
    return seen


STREAMS = Streams()
NO_GLOBALS = Globals({})


def built(model: Model, train: bool) -> Target:
    seed_everything(0)
    call = model.build()
    if isinstance(call, torch.nn.Module):
        call.train(train)
    return Target(call)


def given(model: Model, seed: int) -> Given:
    seed_everything(seed + 1)
    made = model.inputs()
    arguments = ((), made) if isinstance(made, dict) else (made, {})
    return Given(f"seed {seed}", arguments, seed=seed)


def once(target: Target, each: Given, gradients: bool, *, eager: bool) -> Outcome:
    fresh = target.fresh()
    return observe(fresh.call, fresh, each, STREAMS, NO_GLOBALS, gradients=gradients, eager=eager)


@contextmanager
def counting(seen: Measured, root: Path) -> Iterator[Callable[..., Any]]:
    def backend(graph: torch.fx.GraphModule, example: list[Any]) -> Any:
        seen.graphs += 1
        return graph.forward

    stacks = set()

    def read(name: str, payload: Callable[[], Any]) -> None:
        if name == "dynamo_graph_break_reason":
            text = str(payload())
            stack = tuple(user_frames(text))
            if stack not in stacks:
                stacks.add(stack)
                seen.sites[site(text, root)] += 1

    config = torch._dynamo.config
    limits = {"recompile_limit": RECOMPILE_LIMIT, "accumulated_recompile_limit": 8 * RECOMPILE_LIMIT}
    with reading_the_log(read), config.patch(limits):
        yield backend


def site(text: str, root: Path) -> Site:
    frames = user_frames(text)
    inside = [(file, line) for file, line in frames if Path(file).is_relative_to(root)]
    file, line = (inside or frames or [("", 0)])[-1]
    name = Path(file).relative_to(root).as_posix() if inside else file
    return Site(name, line, parse_break(text, file).reason)


if __name__ == "__main__":
    main()
