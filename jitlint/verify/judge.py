"""From one request to its verdict.

`refuted` needs an input on which the two versions differ, `verified` needs every mode of
every entry to agree and both sides of every rewritten test to have run; whatever lies
between is `unverified`, with the first thing that was missing.
"""

from collections.abc import Callable, Sequence
from functools import partial

from jitlint.finding import Verdict
from jitlint.verify.entry_run import EntryRun, Surroundings, entry_runs, prepare
from jitlint.verify.findings import changed_lines
from jitlint.verify.loading import LoadError, load, workplace
from jitlint.verify.numba_kernels import host_entries
from jitlint.verify.outcome import OutOfMemoryError, Streams
from jitlint.verify.probes import Coverage
from jitlint.verify.reach import Place, Reach, changed_functions
from jitlint.verify.records import Options, Report, Request
from jitlint.verify.sandbox import Sandbox
from jitlint.verify.supplement import Supplement

NO_ENTRY = "the module hands nothing to a compiler when it is imported"
NO_FIX = "there is no fix to prove: old and new code are the same"
OTHER_ENTRIES = "the fix changes what is handed to a compiler"


class Judge:
    """Serves one request after another."""

    def __init__(
        self, options: Options, device: str, sandbox: Sandbox, stage: Callable[[str], None]
    ) -> None:
        self._options = options
        self._device = device
        self._sandbox = sandbox
        self._stage = stage
        self._streams = Streams()
        self._streams.install()

    def judge(self, request: Request) -> Report:
        self._sandbox.refused.clear()
        unverified = partial(Report, request.path, Verdict.UNVERIFIED)
        try:
            with workplace(request.path) as name:
                return self._judge(request, name)
        except LoadError as error:
            return unverified(f"the module cannot be loaded: {error}")
        except OutOfMemoryError:
            return unverified("the memory limit was reached")

    def _judge(self, request: Request, name: str) -> Report:
        path = request.path
        old, _ = load(path, name, request.old, self._streams)
        probed, coverage = load(path, name, request.old, self._streams, request.tests)
        try:
            new, _ = load(path, name, request.new, self._streams)
        except LoadError as error:
            reason = f"the new module cannot be loaded: {error}"
            return Report(path, Verdict.REFUTED, reason, (), str(error))
        versions = (old, new, probed)
        for version in versions:
            version.entries.extend(host_entries(version))
        reach = Reach(old.path)
        changed = changed_lines(old.lines, new.lines)
        around = Surroundings(
            self._options, self._device, self._streams, self._stage, changed, reach
        )
        prepare(around, *versions)
        runs = entry_runs(around, versions, [version.entries for version in versions])
        if runs is None:
            return Report(path, Verdict.UNVERIFIED, OTHER_ENTRIES)
        for run in runs:
            run.run()
        edited = changed_functions(old.lines, new.lines)
        supplement = Supplement(versions, self._streams, self._device)
        for more in (supplement.exported, supplement.compiled, supplement.hosts):
            missed = reach.missed(edited, old.namespace)
            if not missed or any(run.findings.counterexample for run in runs):
                break
            self._stage("looking for entries")
            attempted = list(self._sandbox.refused)
            entries = more(missed)
            self._sandbox.refused[:] = attempted  # what makes an entry is not the entry
            added = entry_runs(around, versions, entries)
            if added is None:
                return Report(path, Verdict.UNVERIFIED, OTHER_ENTRIES)
            for run in added:
                run.run()
            runs += added
        missed = reach.missed(edited, old.namespace)
        if not runs:
            return Report(path, Verdict.UNVERIFIED, NO_ENTRY)
        return self._report(request, runs, coverage, missed)

    def _report(
        self,
        request: Request,
        runs: Sequence[EntryRun],
        coverage: Coverage,
        missed: Sequence[Place],
    ) -> Report:
        entries = tuple(run.findings.result(run.entry) for run in runs)
        unverified = partial(Report, request.path, Verdict.UNVERIFIED, entries=entries)
        if self._sandbox.refused:
            what = self._sandbox.refused[0]
            return unverified(f"the code attempted {what}, which is not allowed here")
        found = [run.findings.counterexample for run in runs]
        counterexample = next((text for text in found if text is not None), None)
        if counterexample is not None:
            reason = f"old and new code differ: {counterexample}"
            return Report(request.path, Verdict.REFUTED, reason, entries, counterexample)
        doubts = [doubt for run in runs for doubt in run.findings.doubts]
        doubts += filter(None, [coverage.gap()])
        doubts += [f"the fix in `{place.name}` was never run" for place in missed]
        doubts += [NO_FIX] if request.old == request.new else []
        if doubts:
            return unverified(doubts[0])
        notes = [note for run in runs for note in run.findings.notes]
        return Report(request.path, Verdict.VERIFIED, "; ".join([_counts(runs), *notes]), entries)


def _counts(runs: Sequence[EntryRun]) -> str:
    modes = {mode.label for run in runs for mode in run.modes}
    before = sum(len(run.findings.before.breaks) for run in runs)
    after = sum(len(run.findings.after.breaks) for run in runs)
    inputs = sum(run.findings.inputs for run in runs)
    parts = [_plural(len(runs), "entry", "entries"), _plural(inputs, "input", "inputs")]
    parts += [_plural(len(modes), "mode", "modes")] if modes else []
    return f"{', '.join(parts)}; breaks {before} → {after}"


def _plural(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
