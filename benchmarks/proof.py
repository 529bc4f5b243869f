"""What a run of the models before and after proves about fixes. No compiler in here."""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

Run = tuple[str, str]
"""The name of a model, and `eval` or `train`."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Offer:
    """A fix that jitlint offers: where it stands, and the lines that it rewrites."""

    file: str
    line: int
    end_line: int
    rule: str
    title: str
    safe: bool

    def runs_in(self, lines: Mapping[str, set[int]]) -> bool:
        return any(self.line <= line <= self.end_line for line in lines.get(self.file, ()))


class Verdict(enum.Enum):
    VERIFIED = "verified"
    REFUTED = "refuted"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Proof:
    """`runs` are those whose lines the fix rewrites."""

    offer: Offer
    verdict: Verdict
    runs: tuple[Run, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One model in one mode. `fixes` is how many rewrote lines that it runs."""

    library: str
    run: Run
    before: int
    after: int
    fixes: int
    detail: str = ""
    graphs: tuple[int, int] = (0, 0)


def culprits(
    suspects: Sequence[T], differs: Callable[[Sequence[T]], bool], limit: int = 8
) -> tuple[T, ...]:
    """The suspects without which nothing differs any more, found one by one by halving.

    `differs(some)` applies just these. Empty if nothing differs with all of them.
    """
    left = list(suspects)
    found: list[T] = []
    while left and differs(left):
        if len(found) == limit:
            return (*found, *left)
        guilty = left[shortest_prefix(left, differs) - 1]
        found.append(guilty)
        left.remove(guilty)
    return tuple(found)


def shortest_prefix(suspects: Sequence[T], differs: Callable[[Sequence[T]], bool]) -> int:
    """The length of the shortest prefix that differs; all of `suspects` do."""
    low, high = 1, len(suspects)
    while low < high:
        middle = (low + high) // 2
        if differs(suspects[:middle]):
            high = middle
        else:
            low = middle + 1
    return high


def table(rows: Sequence[Row]) -> list[str]:
    """The table of the models, and what it comes to."""
    lines = ["| library | model | mode | breaks before | after | fixes | equal |"]
    lines.append("|---|---|---|---:|---:|---:|---|")
    for row in rows:
        name, mode = row.run
        equal = row.detail or ("yes" if row.fixes else "unchanged")
        lines.append(
            f"| {row.library} | {name} | {mode} | {row.before} | {row.after} "
            f"| {row.fixes} | {equal} |"
        )
    by_library: dict[str, list[Row]] = {}
    for row in rows:
        by_library.setdefault(row.library, []).append(row)
    parts = [f"{name}: {total(some)}" for name, some in by_library.items()]
    return [*lines, "", *parts, f"all: {total(rows)}"]


def total(rows: Sequence[Row]) -> str:
    before, after = sum(row.before for row in rows), sum(row.after for row in rows)
    unequal = sum(bool(row.detail) for row in rows)
    free = sum(row.before > 0 and row.after == 0 for row in rows)
    broken = sum(row.before > 0 for row in rows)
    return (
        f"{len(rows)} runs: {fall(before, after, 'breaks')}; {free} of {broken} runs with "
        f"breaks have none left; {unequal} not equal"
    )


def compared(rows: Sequence[Row], published: Mapping[str, Sequence[int]]) -> str:
    """These models beside the published figures, which count a break for each further graph."""
    known = [row for row in rows if row.run[0] in published]
    sums = [sum(max(0, row.graphs[side] - 1) for row in known) for side in (0, 1)]
    theirs = [sum(published[row.run[0]][side] for row in known) for side in (0, 1)]
    return (
        f"{len(known)} models of the published table: {fall(*sums, 'further graphs')}; "
        f"published: {fall(*theirs, 'further graphs')}"
    )


def fall(before: int, after: int, what: str) -> str:
    return f"{before} {what} before, {after} after ({share(before - after, before)} removed)"


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none"


def verdicts(proofs: Sequence[Proof]) -> list[str]:
    """Each refuted fix, and how many were verified."""
    ran = [proof for proof in proofs if proof.verdict is not Verdict.NOT_RUN]
    refuted = [proof for proof in ran if proof.verdict is Verdict.REFUTED]
    verified = len(ran) - len(refuted)
    lines = [
        f"{len(proofs)} fixes offered in the files that the models import, {len(ran)} of them "
        f"in lines that a model runs: {verified} verified ({share(verified, len(ran))}), "
        f"{len(refuted)} refuted"
    ]
    for safe, name in ((True, "safe"), (False, "unsafe")):
        some = [proof for proof in ran if proof.offer.safe is safe]
        good = sum(proof.verdict is Verdict.VERIFIED for proof in some)
        lines.append(f"  {name}: {good} of {len(some)} verified")
    for proof in refuted:
        offer = proof.offer
        lines.append(f"  refuted {offer.file}:{offer.line} {offer.rule} ({offer.title})")
        lines.append(f"    {proof.detail}")
    return lines
