"""`torch.compile`: graphs, breaks and recompilations as Dynamo itself records them."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
import torch._dynamo
import torch._inductor.config
from torch import _logging as torch_logging

from jitlint.region import RegionKind
from jitlint.verify.aspects import Aspect, Failure
from jitlint.verify.compiler import Log, Mode
from jitlint.verify.loading import Version, forget_aliases
from jitlint.verify.recorder import Entry
from jitlint.verify.records import Break, Options
from jitlint.verify.runs import TorchCompiler
from jitlint.verify.state import Target

# Every input has to reach the compiled code: past the limit, Dynamo silently runs eagerly.
RECOMPILE_LIMIT = 1000
BACKEND_FAILED = "GB0219"
EXACT_BACKENDS = ("eager", "aot_eager", "aot_eager_decomp_partition")
FUSED_SLACK = 10.0
_LOOP = "GB7000"
_CODE = re.compile(r"/gb/(gb\d+)\.html")
_TITLE = re.compile(r"^(?:Graph Break Reason: )?(.+)\n +Explanation:", re.MULTILINE)
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_HEADER = re.compile(r"Graph break in user code at (.+):(\d+)")
_SKIPPED = ("Skipping the function", "results in a skip")


@dataclass(slots=True)
class DynamoSession:
    """Counts what the backend is given, and reads the breaks out of the structured log."""

    version: Version
    entry: Entry
    mode: Mode
    backend: Callable[..., Any] = field(init=False)
    graphs: int = 0
    recompiles: int = 0
    skipped: bool = False
    breaks: dict[tuple[int, str], Break] = field(default_factory=dict)

    def __post_init__(self) -> None:
        compile_graph = torch._dynamo.lookup_backend(self.mode.backend)

        def backend(graph: torch.fx.GraphModule, example: list[Any]) -> Any:
            if not is_recompilation():
                self.graphs += 1
            return compile_graph(graph, example)

        # One callable for the whole session: another one would be a recompilation.
        self.backend = backend

    def build(self, target: Target) -> Callable[..., Any]:
        dynamic = self.entry.options.get("dynamic")
        compiled: Callable[..., Any] = torch.compile(
            target.call, backend=self.backend, fullgraph=self.mode.whole, dynamic=dynamic
        )
        return compiled

    def log(self) -> Log:
        return Log(self.graphs, tuple(self.breaks.values()), self.recompiles, self.skipped)

    def read(self, name: str, payload: Callable[[], Any]) -> None:
        if name == "recompile_reasons":
            self.recompiles += 1
        elif name == "dynamo_graph_break_reason":
            text = str(payload())
            self.skipped |= any(word in text for word in _SKIPPED)
            found = parse_break(text, self.version.path)
            self.breaks.setdefault((found.line, found.code), found)


class TorchCompile(TorchCompiler):
    kind = RegionKind.COMPILE
    compared = frozenset(Aspect)
    backend_failed = BACKEND_FAILED
    asked_for = frozenset({"GB0098"})

    def modes(self, options: Options) -> tuple[Mode, ...]:
        return tuple(
            _mode(backend, whole) for backend in options.backends for whole in (False, True)
        )

    @contextmanager
    def session(self, version: Version, entry: Entry, mode: Mode) -> Iterator[DynamoSession]:
        forget_aliases(version.module.__name__)
        session = DynamoSession(version, entry, mode)
        with reading_the_log(session.read), _limits(), _eager_randomness():
            yield session
        forget_aliases(version.module.__name__)

    def refuses(self, failure: Failure) -> bool:
        return failure.type.startswith(("torch._dynamo.exc.", "torch._inductor.exc."))


def _mode(backend: str, whole: bool) -> Mode:
    """Inductor has a random stream of its own, and fuses what eager rounds in between."""
    label = f"{backend}, fullgraph" if whole else backend
    own = backend not in EXACT_BACKENDS
    return Mode(
        label,
        backend,
        whole,
        counts=not whole,
        slack=FUSED_SLACK if own else 1.0,
        ignored=frozenset({Aspect.RANDOM}) if own else frozenset(),
    )


def parse_break(text: str, path: str) -> Break:
    """`text` is the reason that Dynamo logs: titles, codes, the user's frames, a traceback."""
    code = next((found.upper() for found in _CODE.findall(text) if found.upper() != _LOOP), "")
    title = _TITLE.search(text)
    return Break(code, _line(text, path), title.group(1).strip() if title else _first_line(text))


def user_frames(text: str) -> list[tuple[str, int]]:
    """The user's frames at a break, the innermost last: file and line."""
    _, _, frames = text.partition("User code traceback:")
    if not frames:
        _, _, frames = text.partition("following user code:")
    frames = frames.partition("\nTraceback (most recent call last)")[0]
    header = _HEADER.search(text)
    outer = [header.groups()] if header is not None else []
    return [(file, int(line)) for file, line in (*outer, *_FRAME.findall(frames))]


def _line(text: str, path: str) -> int:
    return next((line for file, line in reversed(user_frames(text)) if file == path), 0)


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def is_recompilation() -> bool:
    compile_id = torch._guards.CompileContext.current_compile_id()
    return bool(getattr(compile_id, "frame_compile_id", 0))


@contextmanager
def reading_the_log(read: Callable[[str, Callable[[], Any]], None]) -> Iterator[None]:
    """Gives `read` the name of each artifact of Dynamo's log, and what makes its text."""
    original: Callable[..., Any] = vars(torch_logging)["trace_structured"]

    def trace_structured(name: str, metadata_fn: Any = dict, **rest: Any) -> Any:
        if name == "artifact":
            payload = rest.get("payload_fn", lambda: "")
            read(metadata_fn().get("name", ""), payload)
        return original(name, metadata_fn=metadata_fn, **rest)

    with mock.patch.object(torch_logging, "trace_structured", trace_structured):
        yield


@contextmanager
def _limits() -> Iterator[None]:
    config = torch._dynamo.config
    name = "recompile_limit" if hasattr(config, "recompile_limit") else "cache_size_limit"
    changes = {name: RECOMPILE_LIMIT, f"accumulated_{name}": 8 * RECOMPILE_LIMIT}
    with config.patch(changes):
        yield


def _eager_randomness() -> Any:
    """PyTorch's own switch for comparisons with eager code: backends otherwise have random
    streams of their own, and drop a draw of which nothing is used."""
    return torch._inductor.config.patch(fallback_random=True)
