"""Probes find the test that a place names, and leave the program as it was."""

import ast

import pytest

from jitlint.verify.probes import PROBE, Coverage, instrument


def run(source: str, *places: tuple[int, int]) -> tuple[Coverage, dict[str, object]]:
    tree = ast.parse(source)
    coverage = instrument(tree, source, places)
    namespace: dict[str, object] = {PROBE: coverage.probe}
    exec(compile(tree, "<test>", "exec"), namespace)
    return coverage, namespace


def test_both_sides_seen():
    coverage, _ = run("for x in (1, 0):\n    if x > 0:\n        pass\n", (2, 8))
    assert coverage.gap() is None


@pytest.mark.parametrize(
    ("value", "gap"),
    [
        ("1", "the test on line 2 was never false on any input"),
        ("0", "the test on line 2 was never true on any input"),
    ],
)
def test_one_side_seen(value, gap):
    coverage, _ = run(f"x = {value}\nassert x >= 0 if x > 0 else True\n", (2, 18))
    assert coverage.gap() == gap


def test_test_that_never_ran():
    coverage, _ = run("def f(x):\n    return 1 if x else 2\n", (2, 17))
    assert coverage.gap() == "the test on line 2 was never reached"


def test_place_without_an_expression():
    coverage, _ = run("x = 1\n", (1, 3))
    assert coverage.gap() == "no expression starts at line 1, column 3"


def test_first_operand_is_meant_where_the_second_is_named():
    source = "for a, b in ((1, 1), (1, 0)):\n    if a and b:\n        pass\n"
    whole, _ = run(source, (2, 8))
    operands, _ = run(source, (2, 8), (2, 14))
    assert whole.gap() is None
    assert operands.gap() == "the test on line 2 was never false on any input"


def test_columns_count_characters():
    coverage, _ = run('for x in (0, 1):\n    y = "żółw" if x else 2\n', (2, 19))
    assert coverage.gap() is None


def test_operand_comes_back_unchanged():
    _, namespace = run("a = []\nb = a or 'empty'\nc = 3 and a\n", (2, 5), (3, 5))
    assert namespace["b"] == "empty"
    assert namespace["c"] is namespace["a"]


def test_operand_without_a_truth_value_raises_where_it_did():
    source = (
        "class Ambiguous:\n    def __bool__(self):\n        raise ValueError('ambiguous')\n"
        "seen = []\ntry:\n    if Ambiguous():\n        pass\n"
        "except ValueError as error:\n    seen.append(str(error))\n"
    )
    coverage, namespace = run(source, (6, 8))
    assert namespace["seen"] == ["ambiguous"]
    assert coverage.gap() == "the test on line 6 was never reached"
