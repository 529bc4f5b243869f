"""Files that use PyTorch: what they compile, export, trace and script, and their kernels."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from jitlint.verify.bench import LoadError, NewLoadError
from jitlint.verify.entry_run import EntryRun, Surroundings, entry_runs, prepare
from jitlint.verify.findings import changed_lines
from jitlint.verify.loading import Version, load, workplace
from jitlint.verify.outcome import Streams
from jitlint.verify.probes import Coverage
from jitlint.verify.reach import Place, Reach, changed_functions
from jitlint.verify.recorder import Entry
from jitlint.verify.records import Options, Request
from jitlint.verify.supplement import Supplement, host_entries

Jobs = list[list[Entry]]
"""Entries of each version."""


class TorchFramework:
    """Raises where the device cannot be used."""

    def __init__(self, options: Options, stage: Callable[[str], None]) -> None:
        try:
            self._device = _device(options.device)
        except Exception as error:  # torch raises AssertionError where it has no CUDA
            message = f"the device {options.device!r} cannot be used: {error}"
            raise RuntimeError(message) from error
        torch.set_num_threads(1)
        self._options = options
        self._stage = stage
        self._streams = Streams()
        self._streams.install()

    @property
    def uses_gpu(self) -> bool:
        return self._device.startswith("cuda")

    @contextmanager
    def opened(self, request: Request) -> Iterator["TorchBench"]:
        with workplace(request.path) as name:
            old, _ = load(request.path, name, request.old, self._streams)
            probed, coverage = load(request.path, name, request.old, self._streams, request.tests)
            try:
                new, _ = load(request.path, name, request.new, self._streams)
            except LoadError as error:
                raise NewLoadError(str(error)) from error
            around = Surroundings(
                self._options,
                self._device,
                self._streams,
                self._stage,
                changed_lines(old.lines, new.lines),
                Reach(old.path),
            )
            yield TorchBench(around, (old, new, probed), coverage)


def _device(wanted: str) -> str:
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    torch.empty(1, device=wanted)
    return wanted


@dataclass(slots=True)
class TorchBench:
    """The old, the new and the probed version."""

    around: Surroundings
    versions: Sequence[Version]
    coverage: Coverage
    changed: list[Place] = field(init=False)

    def __post_init__(self) -> None:
        old, new, _ = self.versions
        self.changed = changed_functions(old.lines, new.lines)

    def first(self) -> Jobs:
        for version in self.versions:
            version.entries.extend(host_entries(version))
        prepare(self.around, *self.versions)
        return [version.entries for version in self.versions]

    def searches(self) -> Sequence[Callable[[Sequence[Place]], Jobs]]:
        found = Supplement(self.versions, self.around.streams, self.around.device)
        return found.exported, found.compiled, found.hosts

    def run(self, jobs: Jobs) -> list[EntryRun]:
        runs = entry_runs(self.around, self.versions, jobs)
        for run in runs:
            run.run()
        return runs

    def missed(self) -> list[Place]:
        return self.around.reach.missed(self.changed, self.versions[0].namespace)

    def gap(self) -> str | None:
        return self.coverage.gap()
