"""From one request to its verdict, whatever the framework.

`refuted` needs an input on which the two versions differ, `verified` needs every mode of
every entry to agree and both sides of every rewritten test to have run; whatever lies
between is `unverified`, with the first thing that was missing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from jitlint.finding import Verdict
from jitlint.verify.aspects import OutOfMemoryError
from jitlint.verify.bench import (
    Bench,
    Checked,
    Framework,
    LoadError,
    NewLoadError,
    OtherEntriesError,
)
from jitlint.verify.records import Report, Request
from jitlint.verify.sandbox import Sandbox

NO_ENTRY = "the module hands nothing to a compiler when it is imported"
NO_FIX = "there is no fix to prove: old and new code are the same"
OTHER_ENTRIES = "the fix changes what is handed to a compiler"


@dataclass(frozen=True, slots=True)
class Judge:
    """Serves one request after another."""

    framework: Framework
    sandbox: Sandbox
    stage: Callable[[str], None]

    def judge(self, request: Request) -> Report:
        self.sandbox.refused.clear()
        unverified = partial(Report, request.path, Verdict.UNVERIFIED)
        try:
            with self.framework.opened(request) as bench:
                return self._judge(request, bench)
        except LoadError as error:
            return unverified(f"the module cannot be loaded: {error}")
        except NewLoadError as error:
            reason = f"the new module cannot be loaded: {error}"
            return Report(request.path, Verdict.REFUTED, reason, (), str(error))
        except OtherEntriesError:
            return unverified(OTHER_ENTRIES)
        except OutOfMemoryError:
            return unverified("the memory limit was reached")

    def _judge(self, request: Request, bench: Bench) -> Report:
        checked = list(bench.run(bench.first()))
        for search in bench.searches():
            missed = bench.missed()
            if not missed or any(_counterexamples(checked)):
                break
            self.stage("looking for entries")
            attempted = list(self.sandbox.refused)
            jobs = search(missed)
            self.sandbox.refused[:] = attempted  # what makes an entry is not the entry
            checked += bench.run(jobs)
        if not checked:
            return Report(request.path, Verdict.UNVERIFIED, NO_ENTRY)
        return self._report(request, bench, checked)

    def _report(self, request: Request, bench: Bench, checked: Sequence[Checked]) -> Report:
        entries = tuple(each.result() for each in checked)
        unverified = partial(Report, request.path, Verdict.UNVERIFIED, entries=entries)
        if self.sandbox.refused:
            what = self.sandbox.refused[0]
            return unverified(f"the code attempted {what}, which is not allowed here")
        counterexample = next(_counterexamples(checked), None)
        if counterexample is not None:
            reason = f"old and new code differ: {counterexample}"
            return Report(request.path, Verdict.REFUTED, reason, entries, counterexample)
        doubts = [doubt for each in checked for doubt in each.findings.doubts]
        doubts += filter(None, [bench.gap()])
        doubts += [f"the fix in `{place.name}` was never run" for place in bench.missed()]
        doubts += [NO_FIX] if request.old == request.new else []
        if doubts:
            return unverified(doubts[0])
        notes = dict.fromkeys(note for each in checked for note in each.findings.notes)
        reason = "; ".join([*_counts(checked), *notes])
        return Report(request.path, Verdict.VERIFIED, reason, entries)


def _counterexamples(checked: Sequence[Checked]) -> Iterator[str]:
    return filter(None, (each.findings.counterexample for each in checked))


def _counts(checked: Sequence[Checked]) -> Iterator[str]:
    modes = {label for each in checked for label in each.labels}
    inputs = sum(each.findings.inputs for each in checked)
    parts = [_plural(len(checked), "entry", "entries"), _plural(inputs, "input", "inputs")]
    parts += [_plural(len(modes), "mode", "modes")] if modes else []
    yield ", ".join(parts)
    counted = [each.counted for each in checked]
    for name in dict.fromkeys(name for name, _, _ in counted if name):
        before = sum(count for each, count, _ in counted if each == name)
        after = sum(count for each, _, count in counted if each == name)
        yield f"{name} {before} → {after}"


def _plural(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
