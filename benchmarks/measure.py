"""Runs the small models of one library, eagerly and compiled, and writes what it saw.

A worker of `models.py`: one process for each library and state of its source, so that
nothing of another state is in memory.
"""

import argparse
import os
import pickle
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch._dynamo
from proof import Run
from zoo import Model, models_of

from jitlint.verify.inputs import Arguments, Given
from jitlint.verify.outcome import Outcome, Streams, observe, seed_everything
from jitlint.verify.state import Globals, Target
from jitlint.verify.torch_compile import (
    is_recompilation,
    parse_break,
    reading_the_log,
    user_frames,
)

SEEDS = 3
RECOMPILE_LIMIT = 64


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """Where a graph broke: the innermost frame in the library's own code."""

    file: str
    line: int
    reason: str


@dataclass(slots=True)
class Measured:
    """One model in one mode.

    `breaks` counts places by the chain of calls that leads there: the same break at a later
    input, or after a recompilation, is no new one. `lines` ran, by file; of those that only
    run compiled, the ones that break.
    """

    eager: list[Outcome] = field(default_factory=list)
    compiled: list[Outcome] = field(default_factory=list)
    breaks: Counter[Site] = field(default_factory=Counter)
    graphs: int = 0
    lines: dict[str, set[int]] = field(default_factory=dict)
    seconds: float = 0.0
    failure: str = ""


def main() -> None:
    arguments = parse_arguments()
    torch.set_num_threads(1)
    sys.path.insert(0, str(arguments.folder))
    kept = stand_in_for_torchvision()
    table = models_of(arguments.library)
    found: dict[Run, Measured] = {}
    for name in arguments.model or table:
        for mode in ("eval", "train") if table[name].train else ("eval",):
            seen = measured(table[name], mode == "train", arguments.folder)
            found[name, mode] = seen
            report(name, mode, seen)
    if arguments.output is not None:
        arguments.output.write_bytes(pickle.dumps(found))
    del kept


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("library")
    parser.add_argument("folder", type=Path, help="where the library's package lies")
    parser.add_argument("--output", type=Path, help="what was seen, as a pickle")
    parser.add_argument("--model", action="append", help="only this one")
    return parser.parse_args()


def report(name: str, mode: str, seen: Measured) -> None:
    print(
        f"{name} {mode}: {seen.breaks.total()} breaks, {seen.graphs} graphs, "
        f"{seen.seconds:.1f} s {seen.failure}"
    )
    for site, number in sorted(seen.breaks.items()):
        print(f"    {site.file}:{site.line} x{number} {site.reason[:90]}", flush=True)


def stand_in_for_torchvision() -> object:
    """Lets the Python part of a torchvision load whose C++ part was built for another torch:
    some of the libraries import it, and none of the models runs its operators."""
    try:
        import torchvision  # noqa: F401
    except ImportError:
        return None
    except RuntimeError:
        operators = torch.library.Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            operators.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        return operators
    return None


def measured(model: Model, train: bool, root: Path) -> Measured:
    seen = Measured()
    started = time.perf_counter()
    torch._dynamo.reset()
    try:
        measure(model, train, root, seen)
    except Exception:
        seen.failure = traceback.format_exc(limit=-4)
    seen.seconds = time.perf_counter() - started
    return seen


def measure(model: Model, train: bool, root: Path, seen: Measured) -> None:
    target = built(model, train)
    drawn = [given(target, model.inputs, seed) for seed in range(SEEDS)]
    edges = [given(target, draw, seed, "edge") for seed, draw in enumerate(model.edges)]
    with recording_lines(seen.lines, root):
        seen.eager = called(target.fresh(), None, (*drawn, *edges), model)
    broken = [each.failure for each in seen.eager[:SEEDS] if each.failure is not None]
    if broken:
        seen.failure = f"eager: {broken[0]}"
    fresh = target.fresh()
    with counting(seen, root) as backend:
        compiled = torch.compile(fresh.call, backend=backend)
        seen.compiled = called(fresh, compiled, drawn, model)
    with limits() if edges else nullcontext():
        seen.compiled += called(fresh, compiled, edges, model)


def built(model: Model, train: bool) -> Target:
    seed_everything(0)
    call = model.build()
    if isinstance(call, torch.nn.Module):
        call.train(train)
    return Target(call)


def given(target: Target, draw: Callable[[], Any], seed: int, label: str = "seed") -> Given:
    """Where there are no parameters to ask gradients of, the inputs are asked."""
    seed_everything(seed + 1)
    made = draw()
    arguments: Arguments = ((), made) if isinstance(made, dict) else (made, {})
    if not target.parameters():
        torch.utils._pytree.tree_map_only(torch.Tensor, require_gradient, arguments)
    return Given(f"{label} {seed}", arguments, seed=seed)


def require_gradient(tensor: torch.Tensor) -> None:
    if tensor.is_floating_point():
        tensor.requires_grad_()


STREAMS = Streams()
NO_GLOBALS = Globals({})


def called(
    target: Target, compiled: Callable[..., Any] | None, inputs: Sequence[Given], model: Model
) -> list[Outcome]:
    """One call after the other: what the target keeps of itself goes on to the next."""
    return [
        observe(
            target.call if compiled is None else compiled,
            target,
            each,
            STREAMS,
            NO_GLOBALS,
            gradients=model.gradients,
            eager=compiled is None,
        )
        for each in inputs
    ]


@contextmanager
def counting(seen: Measured, root: Path) -> Iterator[Callable[..., Any]]:
    def backend(graph: torch.fx.GraphModule, example: list[Any]) -> Any:
        if not is_recompilation():
            seen.graphs += 1
        return graph.forward

    chains = set()

    def read(name: str, payload: Callable[[], Any]) -> None:
        if name == "dynamo_graph_break_reason":
            text = str(payload())
            chain = tuple(user_frames(text))
            if chain not in chains:
                chains.add(chain)
                where = site(text, root)
                seen.breaks[where] += 1
                # Some lines run only while they are compiled.
                seen.lines.setdefault(where.file, set()).add(where.line)

    with reading_the_log(read), limits():
        yield backend


def limits() -> Any:
    """Past its limit, Dynamo runs eagerly and says nothing of later breaks."""
    config = torch._dynamo.config
    return config.patch(
        recompile_limit=RECOMPILE_LIMIT, accumulated_recompile_limit=8 * RECOMPILE_LIMIT
    )


def site(text: str, root: Path) -> Site:
    frames = user_frames(text)
    inside = [(file, line) for file, line in frames if Path(file).is_relative_to(root)]
    file, line = (inside or frames or [("", 0)])[-1]
    name = Path(file).relative_to(root).as_posix() if inside else Path(file).name
    return Site(name, line, parse_break(text, file).reason)


@contextmanager
def recording_lines(lines: dict[str, set[int]], root: Path) -> Iterator[None]:
    """The lines below `root` that run."""
    prefix = f"{root}{os.sep}"

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(prefix):
            return None
        seen = lines.setdefault(file.removeprefix(prefix).replace(os.sep, "/"), set())

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            seen.add(frame.f_lineno)
            return step

        return step

    sys.settrace(enter)
    try:
        yield
    finally:
        sys.settrace(None)


if __name__ == "__main__":
    main()
