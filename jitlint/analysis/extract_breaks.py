"""Which graph break a call causes under torch.compile, found by compiling it.

Each function is compiled alone, in default mode, with a backend that does nothing. A
worker process does it, and another one goes on behind a function that kills it:
`python -m jitlint.analysis.extract_breaks NAME...`
"""

import itertools
import json
import logging
import operator
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from jitlint.analysis.extract_numpy import numpy_subjects
from jitlint.analysis.extract_samples import Sample
from jitlint.analysis.extract_subjects import Subject, functions, methods

TRIES = 5
DYNAMIC_SHAPE = "GB0036"
"""The break at an operator whose output shape depends on data."""
LINK = re.compile(r"gb(\d{4})\.html")
UNKNOWN = "unknown"
"""The break of a release that gives breaks no identifiers."""
BUILTINS: dict[str, Callable[..., Any]] = {
    "__bool__": bool,
    "__int__": int,
    "__float__": float,
    "__complex__": complex,
    "__len__": len,
    "__index__": operator.index,
    "__format__": format,
    "__repr__": repr,
    "__str__": str,
    "__hash__": hash,
    "__iter__": list,
    "__contains__": operator.contains,
    "__reversed__": reversed,
}
"""How a program calls a special method that has no operator."""


def measure_breaks(names: Iterable[str]) -> dict[str, str]:
    """The identifier of the graph break of each function that always causes one."""
    found: dict[str, str] = {}
    waiting = list(names)
    while waiting:
        done = 0
        for name, identifier in _measure_in_worker(waiting):
            done += 1
            if identifier:
                found[name] = identifier
        if done < len(waiting):
            print(f"compiling {waiting[done]} ended the process", file=sys.stderr)
        waiting = waiting[done + 1 :]
    return found


def _measure_in_worker(names: list[str]) -> Iterator[tuple[str, str | None]]:
    command = [sys.executable, "-m", "jitlint.analysis.extract_breaks", *names]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=subprocess.DEVNULL, text=True) as worker:
        assert worker.stdout is not None
        for line in worker.stdout:
            name, identifier = json.loads(line)
            yield name, identifier


def work() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    import torch

    torch.set_num_threads(1)
    subjects = {subject.name: subject for subject in (*functions(), *methods(), *numpy_subjects())}
    for name in sys.argv[1:]:
        print(json.dumps([name, _break_of(subjects[name])]), flush=True)


def _break_of(subject: Subject) -> str | None:
    """The first break, where every call tried causes one."""
    first = None
    for sample in itertools.islice(_working(subject), TRIES):
        identifier = compile_call(subject, sample)
        if identifier is None:
            return None
        first = first or identifier
    return first


def _working(subject: Subject) -> Iterator[Sample]:
    """Calls that work, as different as they come."""
    samples = [sample for sample in subject.samples() if sample.compiles]
    plain = [sample for sample in samples if not sample.with_dim] or samples
    if not plain and not any(p.required for o in subject.overloads for p in o.parameters):
        plain = [Sample(subject.call, (), {}, False, "measured")]
    last = len(plain) - 1
    spread = [plain[last * step // (TRIES - 1)] for step in range(TRIES)] if plain else []
    for sample in [*dict.fromkeys(spread), *plain]:
        if _runs(sample):
            yield sample


def _runs(sample: Sample) -> bool:
    try:
        sample.copy().run()
    except Exception:
        return False
    return True


def compile_call(subject: Subject, sample: Sample) -> str | None:
    """The identifier of the first graph break of this call."""
    import torch
    from torch._dynamo.utils import counters

    call = _caller(subject, sample)

    def region(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return call(*args, **kwargs)

    def region_of_tensor(first: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return call(first.clone(), *args, **kwargs)

    torch._dynamo.reset()
    counters.clear()
    fresh = sample.copy()
    first = next(iter(fresh.args), None)
    try:
        if isinstance(first, torch.Tensor):
            compiled = torch.compile(region_of_tensor, backend=_run_eagerly)
            compiled(first, fresh.args[1:], fresh.kwargs)
        else:
            torch.compile(region, backend=_run_eagerly)(fresh.args, fresh.kwargs)
    except Exception as error:
        return _identifier(str(error))
    reasons = list(counters["graph_break"])
    return (_identifier(reasons[0]) or UNKNOWN) if reasons else None


def _caller(subject: Subject, sample: Sample) -> Callable[..., Any]:
    name = subject.name.rpartition(".")[2]
    if not subject.method:
        return sample.call
    special = BUILTINS.get(name)
    if special is None and name.startswith("__"):
        special = getattr(operator, name, None)
    if special is not None:
        return special
    return lambda receiver, *args, **kwargs: getattr(receiver, name)(*args, **kwargs)


def _run_eagerly(graph: Any, example_inputs: list[Any]) -> Any:
    return graph.forward


def _identifier(text: str) -> str | None:
    match = LINK.search(text)
    if match:
        return f"GB{match[1]}"
    return _registry().get(text.partition("\n")[0].strip())


def _registry() -> dict[str, str]:
    """Identifiers by the first line of the message, where the release ships them."""
    import torch

    path = Path(torch.__file__).parent / "_dynamo" / "graph_break_registry.json"
    if not path.exists():
        return {}
    entries = json.loads(path.read_text(encoding="utf-8"))
    return {entry["Gb_type"]: name for name, found in entries.items() for entry in found}


if __name__ == "__main__":
    work()
