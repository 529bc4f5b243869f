"""Compiles a region with a backend that does nothing, and says how it broke.

Other extractions measure with it; torch is imported inside the functions.
"""

import gc
import io
import json
import logging
import multiprocessing
import os
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, TypeVar

LINK = re.compile(r"gb(\d{4})\.html")
UNKNOWN = "unknown"
"""The break of a release that gives breaks no identifiers."""
SECONDS = 180
"""How long one measurement may take, on a machine that does other things too."""

Item = TypeVar("Item")
_FORK = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What compiling did: `identifier` of the first break, or an error that is none."""

    identifier: str | None = None
    failed: bool = False

    @property
    def clean(self) -> bool:
        return self.identifier is None and not self.failed


def compile_region(region: Callable[..., Any], *arguments: Any, fullgraph: bool = False) -> Outcome:
    import torch
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    try:
        torch.compile(region, backend=_run_eagerly, fullgraph=fullgraph)(*arguments)
    except Exception as error:
        identifier = identifier_of(str(error))
        return Outcome(identifier, identifier is None)
    reasons = list(counters["graph_break"]) or _reasons_to_give_up(counters)
    return Outcome((identifier_of(reasons[0]) or UNKNOWN) if reasons else None)


def _reasons_to_give_up(counters: Any) -> list[str]:
    """Why a frame was left to Python as a whole, which is not counted as a graph break."""
    frames = counters["frames"]
    return list(counters["unimplemented"]) if frames["ok"] < frames["total"] else []


def _run_eagerly(graph: Any, example_inputs: list[Any]) -> Any:
    return graph.forward


def identifier_of(text: str) -> str | None:
    match = LINK.search(text)
    if match:
        return f"GB{match[1]}"
    return _registry().get(text.partition("\n")[0].strip())


def _registry() -> dict[str, str]:
    """Identifiers by the first line of the message, where the release ships them."""
    return {entry["Gb_type"]: name for name, found in read_registry().items() for entry in found}


def read_registry() -> dict[str, list[dict[str, Any]]]:
    """The graph-break registry of the installed torch: entries by id, the newest first."""
    import torch

    path = Path(torch.__file__).parent / "_dynamo" / "graph_break_registry.json"
    if not path.exists():
        return {}
    registry: dict[str, list[dict[str, Any]]] = json.loads(path.read_text(encoding="utf-8"))
    return registry


def prepare() -> None:
    """Make this process ready to compile, and to be forked."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    os.environ["PYTHONBREAKPOINT"] = "0"
    import torch
    from torch._dynamo import guards

    torch.set_num_threads(1)
    # torch times its guards behind a flush of the processor's cache: half the time of a region.
    vars(guards)["profile_guard_manager"] = lambda *arguments: 0.0
    compile_region(lambda x: x + 1, torch.ones(2))
    gc.collect()
    gc.freeze()


def in_processes(
    work: Callable[[Item], Any], items: Iterable[Item], at_once: int = 1
) -> Iterator[tuple[Item, Any]]:
    """`work(item)` of each, done in child processes, each in an empty folder of its own.

    Whatever a measurement leaves behind goes with its process, which does `at_once` of them.
    The result is None where it does not come in time or the process ends. Results come in
    no particular order.
    """
    prepare()
    waiting = list(items)
    running: list[_Child] = []
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            running.append(_Child(work, waiting[:at_once]))
            del waiting[:at_once]
        wait([child.receiver for child in running], timeout=1)
        for child in list(running):
            yield from child.results()
            if child.is_done:
                running.remove(child)
                waiting += child.left


class _Child:
    """A process that measures some items."""

    def __init__(self, work: Callable[[Any], Any], items: list[Any]) -> None:
        self.left = items
        self.is_done = False
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.receiver, sender = _FORK.Pipe(duplex=False)
        arguments = work, list(items), self._folder.name, sender
        self._process = _FORK.Process(target=_in_child, args=arguments, daemon=True)
        self._heard = time.monotonic()
        self._process.start()
        sender.close()

    def results(self) -> Iterator[tuple[Any, Any]]:
        """The results that have come, and None for the item at which the process stopped."""
        try:
            while self.left and self.receiver.poll():
                result = self.receiver.recv()
                self._heard = time.monotonic()
                yield self.left.pop(0), result
        except EOFError:
            self._heard = 0.0
        if self.left and time.monotonic() > self._heard + SECONDS:
            yield self.left.pop(0), None
            self._finish()
        if not self.left:
            self._finish()

    def _finish(self) -> None:
        self.is_done = True
        self._process.kill()
        self._process.join()
        self.receiver.close()
        self._folder.cleanup()


def _in_child(
    work: Callable[[Item], Any], items: list[Item], folder: str, sender: Connection
) -> None:
    os.chdir(folder)
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    shown = os.fdopen(os.dup(2), "w")
    output = os.open("output", os.O_RDWR | os.O_CREAT)  # not the null device: it is everybody's
    for stream in (0, 1, 2):
        os.dup2(output, stream)
    sys.stdin = io.StringIO("1\n" * 1000)
    logging.disable(logging.NOTSET)
    for item in items:
        try:
            result = work(item)
        except Exception:
            traceback.print_exc(file=shown)
            result = None
        sender.send(result)
