"""Every graph break of the registry has a rule, or a reason why it has none."""

import json
from collections import Counter
from pathlib import Path

import pytest

from jitlint.analysis import tables
from jitlint.report import graph_breaks
from jitlint.rule import load_rules

PAGE = Path(__file__).parent.parent / "rules" / "GRAPH_BREAKS.md"
GROUPS = json.loads(graph_breaks.REASONS.read_text("utf-8"))
REGISTRY = {each.id for each in tables.load().graph_breaks()}
RULES = load_rules().values()


def test_the_page_is_up_to_date():
    assert PAGE.read_text("utf-8") == graph_breaks.page(tables.load(), RULES), (
        "python -m jitlint.report.graph_breaks > rules/GRAPH_BREAKS.md"
    )


@pytest.mark.parametrize("release", tables.available("torch"))
def test_every_graph_break_is_covered_or_has_a_reason(release):
    table = tables.load("torch", release)
    found = [graph_breaks.coverage(each, table, RULES) for each in table.graph_breaks()]
    assert found
    assert [each.entry.id for each in found if each.reason == graph_breaks.NO_RULE] == []


def test_a_covered_graph_break_has_no_reason_to_be_uncovered():
    covered = frozenset[str]().union(*(rule.covers for rule in RULES))
    stale = {reason: both for reason, ids in GROUPS.items() if (both := covered.intersection(ids))}
    assert stale == {}, f"delete these ids from {graph_breaks.REASONS.name}"


def test_a_reason_is_about_graph_breaks_of_the_registry_and_each_has_one():
    named = Counter(identifier for ids in GROUPS.values() for identifier in ids)
    assert [identifier for identifier, count in named.items() if count > 1] == []
    assert set(named) - REGISTRY == set()


def test_reasons_are_sentences_and_their_ids_sorted():
    for reason, ids in GROUPS.items():
        assert reason.endswith(".")
        assert ids == sorted(ids)


def test_rules_cover_graph_breaks_of_the_registry():
    covered = {(rule.name, identifier) for rule in RULES for identifier in rule.covers}
    assert [each for each in covered if each[1] not in REGISTRY] == []
