"""Calling an entry on a row of inputs, eagerly or compiled, and observing each call."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from jitlint.verify.compiler import Compiler, Log, Mode, RefusalError
from jitlint.verify.inputs import Given
from jitlint.verify.loading import Version
from jitlint.verify.outcome import Outcome, Streams, observe
from jitlint.verify.recorder import Entry
from jitlint.verify.state import Target

Build = Callable[[Target], Callable[..., object]]
TorchCompiler = Compiler[Version, Entry, Given, Target]


@dataclass(slots=True)
class Subject:
    """One entry of one version of the module."""

    version: Version
    entry: Entry
    streams: Streams
    stage: Callable[[str], None]
    gradients: bool
    reference: Callable[[], AbstractContextManager[None]] = nullcontext
    _compiled: dict[Mode, tuple[list[Outcome], Log] | RefusalError] = field(default_factory=dict)

    def eagerly(self, givens: Sequence[Given]) -> list[Outcome]:
        with self.version.recorder.installed(), self.reference():
            return self._row(givens, _as_it_is, None)

    def compiled(
        self, compiler: TorchCompiler, mode: Mode, givens: Sequence[Given]
    ) -> tuple[list[Outcome], Log]:
        """Compiled once for each mode; raises `RefusalError` each time."""
        if mode not in self._compiled:
            try:
                self._compiled[mode] = self._compile(compiler, mode, givens)
            except RefusalError as refusal:
                self._compiled[mode] = refusal
        result = self._compiled[mode]
        if isinstance(result, RefusalError):
            raise result
        return result

    def _compile(
        self, compiler: TorchCompiler, mode: Mode, givens: Sequence[Given]
    ) -> tuple[list[Outcome], Log]:
        """The log is that of the user's own inputs, called in a row as a program would.

        A backend that fails on an edge case only has failed all the same.
        """
        with compiler.session(self.version, self.entry, mode) as session:
            outcomes = self._row([one for one in givens if not one.fresh], session.build, mode)
            log = session.log()
            outcomes += self._row([one for one in givens if one.fresh], session.build, mode)
            late = tuple(
                item
                for item in session.log().breaks
                if item.code == compiler.backend_failed and item not in log.breaks
            )
        return outcomes, Log(log.graphs, log.breaks + late, log.recompiles, log.skipped)

    def _row(self, givens: Sequence[Given], build: Build, mode: Mode | None) -> list[Outcome]:
        """All on one target, which may change from call to call; a fresh one where asked."""
        self.version.activate()
        how = "eagerly" if mode is None else mode.label
        outcomes: list[Outcome] = []
        target, call = None, None
        for given in givens:
            self.stage(f"running {how} on {given.label} ({self.entry.name})")
            if call is None or target is None or given.fresh:
                self.version.globals.restore()
                target = self.entry.target.fresh()
                if given.flipped and target.owner is not None:
                    target.owner.train(not target.owner.training)
                call = build(target)
            outcomes.append(
                observe(
                    call,
                    target,
                    given,
                    self.streams,
                    self.version.globals,
                    gradients=self.gradients,
                    eager=mode is None,
                )
            )
        return outcomes


def _as_it_is(target: Target) -> Callable[..., object]:
    return target.call
