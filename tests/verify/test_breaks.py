"""Graph breaks are read from Dynamo's words, and held against a fix where it made them."""

import pytest

pytest.importorskip("torch")

from jitlint.verify.compiler import Log
from jitlint.verify.findings import break_faults, changed_lines
from jitlint.verify.records import Break
from jitlint.verify.torch_compile import parse_break

IN_A_LOOP = """\
Graph break in user code at /src/model.py:14
Graph Break Reason: Failed to handle graph break gracefully. Skipping the function and \
falling back to eager. Graph break encountered:

Data-dependent branching
  Explanation: Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`).

 For more details, please visit: https://example.org/gb/gb0170.html

*** While handling this graph break, another graph break occurred: ***

graph break in loop
  Explanation: torch.compile detected a graph break in a for/while loop.

 For more details, please visit: https://example.org/gb/gb7000.html

User code traceback:
  File "/verify/runs.py", line 20, in _row
    observe(call)
  File "/src/model.py", line 14, in f
    if x.sum()>0:
  File "/src/helper.py", line 3, in g
    return bool(x)

Traceback (most recent call last):
  File "/src/model.py", line 99, in somewhere_else
"""
IF, PRINT = Break("GB0170", 3, "branch"), Break("GB0059", 9, "print")


def test_break_is_read_with_code_line_and_title():
    found = parse_break(IN_A_LOOP, "/src/model.py")
    assert found == Break("GB0170", 14, "Data-dependent branching")


def test_break_in_another_file_has_no_line():
    assert parse_break(IN_A_LOOP, "/src/other.py").line == 0


def test_changed_lines_are_those_of_the_new_text():
    assert changed_lines(["a", "b", "c"], ["a", "x", "y", "c"]) == {2, 3}


@pytest.mark.parametrize(
    ("before", "after", "faults"),
    [
        (Log(breaks=(IF,)), Log(), 0),
        (Log(breaks=(IF, PRINT)), Log(breaks=(PRINT,)), 0),
        (Log(breaks=(IF,)), Log(breaks=(PRINT,)), 0),
        (Log(breaks=(IF,)), Log(breaks=(IF, PRINT)), 1),
        (Log(breaks=(IF,), skipped=True), Log(breaks=(IF, PRINT)), 0),
        (Log(breaks=(IF,), skipped=True), Log(breaks=(Break("GB0124", 5, "item"),)), 1),
        (Log(breaks=(IF,)), Log(breaks=(Break("GB0219", 0, "backend"),)), 1),
    ],
    ids=[
        "cured",
        "one_of_two_cured",
        "hidden_one_comes_to_light",
        "added",
        "hidden_ones_behind_a_skipped_frame",
        "on_a_rewritten_line",
        "backend_fails",
    ],
)
def test_faults(before, after, faults):
    assert len(list(break_faults(before, after, frozenset({5}), "GB0219"))) == faults
