"""Graph breaks of torch.compile: which rule covers each, or why none can.

The page of them all: `python -m jitlint.report.graph_breaks > rules/GRAPH_BREAKS.md`
"""

import functools
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from jitlint.analysis import tables
from jitlint.analysis.tables import GraphBreak, Table
from jitlint.rule import Rule, load_rules

REASONS = tables.FOLDER / "uncovered_breaks.json"
LINK = "https://meta-pytorch.github.io/compile-graph-break-site/gb/{}.html"
USE_INSTEAD = "Use instead"
NO_RULE = "No rule covers it."
NOT_RAISED = "This release has it in the registry, and causes it nowhere."


@dataclass(frozen=True, slots=True)
class Coverage:
    """A graph break of one release, and the rules that look for it in source.

    `reason` says why there are none, of a break that the release causes.
    """

    entry: GraphBreak
    version: str
    rules: tuple[type[Rule], ...]
    reason: str


def coverage(entry: GraphBreak, table: Table, rules: Iterable[type[Rule]]) -> Coverage:
    covering = tuple(rule for rule in rules if entry.id in rule.covers)
    reason = "" if covering or not entry.raised else _reasons().get(entry.id, NO_RULE)
    return Coverage(entry, table.version, covering, reason)


@functools.cache
def _reasons() -> Mapping[str, str]:
    """Why no rule covers a graph break; the file groups the ids by the reason."""
    groups: dict[str, list[str]] = json.loads(REASONS.read_text(encoding="utf-8"))
    return {identifier: reason for reason, ids in groups.items() for identifier in ids}


def text(found: Coverage) -> str:
    """What torch says, what to do instead, and where to read on."""
    return "\n\n".join(filter(None, _parts(found))) + "\n"


def _parts(found: Coverage) -> Iterator[str]:
    entry = found.entry
    yield f"# {entry.id}: {entry.type}"
    yield entry.explanation
    yield "\n".join(f"- {hint}" for hint in entry.hints)
    yield "" if entry.raised else NOT_RAISED
    for rule in found.rules:
        yield f"## Covered by {rule.name}\n{rule.summary()}"
        if advice := rule.section(USE_INSTEAD):
            yield f"### {USE_INSTEAD}\n{advice}"
    if found.reason:
        yield f"## Covered by no rule\n{found.reason}"
    yield f"torch {found.version}; {LINK.format(entry.id.lower())}"


def as_object(found: Coverage) -> dict[str, Any]:
    rules = [
        {"name": rule.name, "summary": rule.summary(), "use_instead": rule.section(USE_INSTEAD)}
        for rule in found.rules
    ]
    reason = found.reason or None
    return {**asdict(found.entry), "torch": found.version, "rules": rules, "reason": reason}


def page(table: Table, rules: Iterable[type[Rule]]) -> str:
    """A table of the whole registry."""
    known = list(rules)
    found = [coverage(entry, table, known) for entry in table.graph_breaks()]
    covered = sum(bool(each.rules) for each in found)
    lines = [
        "# Graph breaks of torch.compile",
        "",
        f"The registry of torch {table.version} has {len(found)} graph breaks. Rules report "
        f"{covered} of them where",
        "the source shows them; of the others this page says why no rule does.",
        "`jitlint rule --gb ID` says what to do about one. The page is generated:",
        "`python -m jitlint.report.graph_breaks > rules/GRAPH_BREAKS.md`.",
        "",
        "| id | type | covered by, or why not |",
        "|---|---|---|",
        *map(_row, found),
    ]
    return "\n".join(lines) + "\n"


def _row(found: Coverage) -> str:
    entry = found.entry
    covered = ", ".join(f"`{rule.name}`" for rule in found.rules)
    outcome = covered or found.reason or NOT_RAISED
    link = LINK.format(entry.id.lower())
    return f"| [{entry.id}]({link}) | {_escaped(entry.type)} | {outcome} |"


def _escaped(text: str) -> str:
    """Markdown that shows `text` as it is, code in backticks aside."""
    return re.sub(r"(`[^`]*`)|([_*|<\[])", lambda found: found[1] or "\\" + found[2], text)


if __name__ == "__main__":
    sys.stdout.write(page(tables.load(), load_rules().values()))
