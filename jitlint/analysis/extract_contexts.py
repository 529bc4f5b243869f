"""Which graph break entering a context manager causes.

Section `contexts` of a table: full dotted name -> {"breaks"} of `with name(...):` in a
region, and {"held"} of `with manager:` where the manager was made outside; "captured" where
neither breaks with `fullgraph=True`. Only what breaks is listed. Context managers are
discovered: classes with `__enter__`, functions that `contextlib` made of generators, and
functions of which an annotation, the name, or the section `standard` says that they may
return one. All are called and seen.
"""

import contextlib
import importlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jitlint.analysis.extract_arguments import (
    SECONDS_TO_COMPILE,
    evaluate,
    plain_calls,
    working,
)
from jitlint.analysis.extract_regions import Outcome, compile_region, in_processes
from jitlint.analysis.extract_standard import (
    LIBRARY,
    RECEIVERS,
    TORCH,
    Subject,
    left_alone,
    prepare_imports,
    public,
    words,
)
from jitlint.time_limit import time_limit

MORE = words(
    """
    numpy torch.nn.attention torch.nn.attention.bias torch.backends.cuda torch.backends.cudnn
    torch.backends.mkl torch.backends.mkldnn torch.backends.mps torch.backends.openmp
    torch.backends.opt_einsum torch.backends.quantized torch.backends.nnpack
    torch.autograd.grad_mode torch.autograd.anomaly_mode torch.cpu torch.cpu.amp torch.xpu
    torch.mtia torch.mps torch.accelerator torch.sparse torch.utils torch.utils.deterministic
    torch.cuda.nvtx torch.cuda.profiler torch.profiler.itt torch.fx.traceback torch.fx.experimental
    torch.nn.init torch.onnx torch.utils.data torch._dynamo.config torch._inductor.config
    torch.compiler.config torch.masked torch.func torch.overrides torch.testing torch.export
    torch.distributed torch.utils._python_dispatch torch._dynamo torch.nested torch.futures
    torch.xpu.random torch.distributions.utils torch.utils.hooks torch.utils.weak torch.special
    torch.linalg
    """
)
"""Modules searched beside those of the standard section."""
WRITTEN: dict[str, tuple[str, ...]] = {
    "torch.autocast": ("'cpu'",),
    "torch.amp.autocast": ("'cpu'",),
    "torch.amp.autocast_mode.autocast": ("'cpu'",),
    "torch.nn.attention.sdpa_kernel": ("torch.nn.attention.SDPBackend.MATH",),
    "torch.autograd.graph.saved_tensors_hooks": ("function_of_one, function_of_one",),
    "torch.autograd.profiler.record_function": ("'string'",),
    "torch.profiler.record_function": ("'string'",),
    "torch.device": ("'cpu'",),
    "torch.random.fork_rng": ("", "[]"),
    "torch.set_grad_enabled": ("False",),
    "torch.inference_mode": ("",),
    "contextlib.closing": ("stream",),
    "contextlib.redirect_stdout": ("stream",),
    "contextlib.redirect_stderr": ("stream",),
    "contextlib.nullcontext": ("",),
    "contextlib.suppress": ("ValueError",),
    "numpy.errstate": ("all='ignore'",),
    "numpy.printoptions": ("precision=2",),
    "decimal.localcontext": ("",),
    "tempfile.TemporaryDirectory": ("",),
    "tempfile.NamedTemporaryFile": ("",),
    "warnings.catch_warnings": ("",),
}
"""Arguments of context managers that accept anything, or nothing made up."""
ENOUGH = 6


@dataclass(frozen=True, slots=True)
class Manager:
    """A way to get a context manager: `subject` is called with `text`."""

    subject: Subject
    text: str

    def make(self) -> Any:
        return self.subject.call(self.text)

    def enter(self, _text: str) -> None:
        with self.make():
            pass


def contexts(standard: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The section; `standard` is that section of the table, as far as it is known."""
    prepare_imports()
    for name in MORE:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    makers = {name for name, entry in standard.items() if _can_be_entered(entry.get("instance"))}
    chosen = [subject for subject in subjects() if subject.name in makers or is_manager(subject)]
    found = {subject.name: entry for subject, entry in in_processes(measure, chosen, 5) if entry}
    return {name: {**found[name], "source": "measured"} for name in sorted(found)}


def _can_be_entered(name: str | None) -> bool:
    if name is None:
        return False
    with contextlib.suppress(Exception):
        (cls,), _ = evaluate(name)
        return hasattr(cls, "__enter__")
    return False


def is_manager(subject: Subject) -> bool:
    value = subject.resolve()
    if isinstance(value, type):
        return hasattr(value, "__enter__")
    code = getattr(value, "__code__", None)
    returns = str(getattr(value, "__annotations__", {}).get("return", ""))
    made = code is not None and code.co_filename == contextlib.__file__
    named = subject.attribute[0].isupper() or "context" in subject.attribute
    return made or named or "Context" in returns


def subjects() -> Iterator[Subject]:
    """Every public function and class that may return a context manager."""
    for module_name in dict.fromkeys((*LIBRARY, *TORCH, *MORE)):
        with contextlib.suppress(ImportError):
            for name, _ in [*public(module_name), *_flags(module_name)]:
                dotted = f"{module_name}.{name}"
                if not left_alone(dotted):
                    yield Subject(dotted, module_name, name)
    for dotted, owner in RECEIVERS.items():
        (value,), _ = evaluate(owner)
        for name in dir(type(value)):
            if not name.startswith("_") and callable(getattr(value, name, None)):
                yield Subject(f"{dotted}.{name}", owner, name)


def _flags(module_name: str) -> Iterator[tuple[str, Any]]:
    """Functions such as `torch.backends.cudnn.flags`, of modules that are objects."""
    module = importlib.import_module(module_name)
    for name in ("flags", "set_flags", "patch"):
        value = getattr(module, name, None)
        if callable(value):
            yield name, value


def measure(subject: Subject) -> dict[str, Any]:
    try:
        function = subject.resolve()
    except Exception:
        return {}
    written = WRITTEN.get(subject.name, ())
    made = plain_calls(subject.name, function, of_torch=subject.of_torch)
    accepted = working(itertools.chain(written, made), subject.call, ENOUGH)
    managers = [Manager(subject, text) for text in accepted if _returns_manager(subject, text)]
    usable = [manager for manager in managers if working(iter([manager.text]), manager.enter)]
    usable = usable[: len(written) or 2]
    entry: dict[str, Any] = {}
    captured = []
    for field, region in (("breaks", _made_inside), ("held", _made_outside)):
        outcomes = [_compile(region, manager) for manager in usable]
        if outcomes and all(outcome.identifier for outcome in outcomes):
            entry[field] = outcomes[0].identifier
            captured += [_compile(region, manager, fullgraph=True).clean for manager in usable]
    if captured and all(captured):
        entry["captured"] = True
    return entry


def _returns_manager(subject: Subject, text: str) -> bool:
    with contextlib.suppress(Exception):
        return hasattr(type(subject.call(text)), "__enter__")
    return False


def _compile(
    region: Callable[[Manager, bool], Outcome], manager: Manager, *, fullgraph: bool = False
) -> Outcome:
    try:
        with time_limit(SECONDS_TO_COMPILE, TimeoutError):
            return region(manager, fullgraph)
    except TimeoutError:
        return Outcome(failed=True)


def _made_inside(manager: Manager, fullgraph: bool) -> Outcome:
    import torch

    (owner,), _ = evaluate(manager.subject.owner)
    attribute = manager.subject.attribute
    args, kwargs = evaluate(manager.text)

    def region(x: Any) -> Any:
        with getattr(owner, attribute)(*args, **kwargs):
            y = x + 1
        return y * 2

    return compile_region(region, torch.ones(2), fullgraph=fullgraph)


def _made_outside(manager: Manager, fullgraph: bool) -> Outcome:
    import torch

    held = manager.make()

    def region(x: Any) -> Any:
        with held:
            y = x + 1
        return y * 2

    return compile_region(region, torch.ones(2), fullgraph=fullgraph)
