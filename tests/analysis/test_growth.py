"""The interpreter's work grows with the program, not with what the program would compute."""

import textwrap
from collections.abc import Iterable

import libcst as cst
import pytest

from jitlint import engine
from jitlint.analysis.machine import Machine
from jitlint.analysis.operators import binary
from jitlint.analysis.values import (
    MAX_ITEMS,
    MAX_WEIGHT,
    MISSING,
    STATIC,
    TENSOR,
    UNKNOWN,
    Dict,
    Optional,
    Sequence,
    Static,
    Tuple,
    Value,
)
from jitlint.config import Settings
from jitlint.rule import load_rules


@pytest.mark.parametrize(
    "grow",
    [
        lambda value: Tuple((value, value)),
        lambda value: Dict((("a", value), ("b", value))),
        lambda value: Sequence(Tuple((Optional(value), value))),
        lambda value: Dict((), Tuple((value, value))),
    ],
    ids=["tuple", "dict", "sequence", "default of a dict"],
)
def test_a_value_that_doubles_with_each_step_stays_small(grow) -> None:
    value: Value = Tuple((TENSOR, STATIC))
    for _ in range(200):
        value = grow(value)
        assert value.weight <= MAX_WEIGHT
    assert hash(value) == hash(value)


def test_a_long_table_of_plain_values_is_kept() -> None:
    value = Dict(tuple((number, STATIC) for number in range(2 * MAX_WEIGHT)))
    assert value.get(MAX_WEIGHT) == STATIC


def test_a_heavy_value_loses_what_is_nested_only() -> None:
    value = Tuple((Tuple((STATIC,) * MAX_WEIGHT), TENSOR))
    assert value.items == (UNKNOWN, TENSOR)


def test_a_tuple_that_is_added_to_itself_becomes_a_sequence() -> None:
    value: Value = Tuple((TENSOR, TENSOR))
    for _ in range(200):
        value = binary("Add", value, value)
    assert value == Sequence(TENSOR)


def test_a_short_sum_of_tuples_keeps_its_length() -> None:
    items = (STATIC,) * (MAX_ITEMS // 2)
    assert binary("Add", Tuple(items), Tuple(items)) == Tuple(items * 2)


@pytest.mark.parametrize(
    ("name", "left", "right"),
    [("Multiply", "ab", 999_999), ("Multiply", 999_999, "ab"), ("Modulo", "%999999d", 1)],
)
def test_a_text_as_long_as_a_number_says_is_not_made(
    name: str, left: object, right: object
) -> None:
    result = binary(name, Static(left), Static(right))
    assert isinstance(result, Static)
    assert result.const is MISSING


@pytest.fixture
def asked(monkeypatch) -> list[str]:
    """The global names that are looked up, once for each time that it happens."""
    names: list[str] = []
    look_up = Machine.global_value

    def global_value(self, module, name):
        names.append(name)
        return look_up(self, module, name)

    monkeypatch.setattr(Machine, "global_value", global_value)
    return names


def check(folder, body: str) -> list[int]:
    """The lines that are reported in a compiled function."""
    header = "import torch\n\nleaf = object()\n\n@torch.compile\ndef entry(x):\n"
    (folder / "model.py").write_text(header + textwrap.indent(body, "    ") + "    return x\n")
    result = engine.check([folder], Settings(root=folder, cache=False), load_rules())
    assert not result.problems
    return [each.span.line for each in result.diagnostics]


@pytest.mark.parametrize("operator", ["and", "or"])
@pytest.mark.parametrize(
    "statement", ["if {}:\n    x = x + 1\n", "y = {}\n", "while not ({}):\n    x = x + 1\n"]
)
def test_an_operand_of_a_long_condition_is_not_evaluated_for_each_subset(
    asked, tmp_path, operator: str, statement: str
) -> None:
    condition = f" {operator} ".join(["leaf", *(f"x[{number}] > 0" for number in range(14))])
    assert check(tmp_path, statement.format(condition))
    assert asked.count("leaf") < 1000  # fixes ask again


@pytest.mark.parametrize("loop", ["for i{} in range(3):", "while x.sum() > {}:"])
def test_the_body_of_nested_loops_is_passed_a_few_times(asked, tmp_path, loop: str) -> None:
    depth = 12
    lines = [" " * number + loop.format(number) for number in range(depth)]
    check(tmp_path, "\n".join([*lines, " " * depth + "x = leaf(x)"]) + "\n")
    assert 2 <= asked.count("leaf") <= 80


def test_what_one_loop_of_many_carries_to_the_next_turn_is_seen(tmp_path) -> None:
    """A deeply nested loop passes once, but the loops around it come by again."""
    body = """
    flag = False
    for a in range(2):
        for b in range(2):
            for c in range(2):
                for d in range(2):
                    for e in range(2):
                        for f in range(2):
                            if flag:
                                x = x + 1
                            flag = x.sum() > 0
    """
    assert check(tmp_path, textwrap.dedent(body).lstrip()) == [14]


MANY = {
    "functions of a file": "@torch.compile\ndef f{0}(x):\n    if x.sum() > {0}:\n"
    "        return x * 2\n    return x - 1\n",
    "branches of a function": "    if x.sum() > {0}:\n        x = x + {0}\n",
}


@pytest.mark.parametrize("part", MANY.values(), ids=MANY)
def test_twice_as_many_findings_are_twice_the_work(part: str, tmp_path, monkeypatch) -> None:
    visited = 0
    children = cst.CSTNode.children.fget

    def counted(node: cst.CSTNode) -> Iterable[cst.CSTNode]:
        nonlocal visited
        visited += 1
        return children(node)

    monkeypatch.setattr(cst.CSTNode, "children", property(counted))

    def work(count: int) -> int:
        nonlocal visited
        visited = 0
        header = "import torch\n\n@torch.compile\ndef entry(x):\n    x = x + 1\n"
        parts = "".join(map(part.format, range(count)))
        (tmp_path / "model.py").write_text(f"{header}{parts}")
        result = engine.check([tmp_path], Settings(root=tmp_path, cache=False), load_rules())
        assert len(result.diagnostics) == count
        return visited

    assert work(80) < 3 * work(40)


def test_calls_outside_of_regions_leave_room_for_those_inside(tmp_path) -> None:
    calls = "\n\n".join(f"def uses_{n}():\n    return scaled({n}, None)" for n in range(100))
    scaled = "def scaled(n, x):\n    if x.sum() > n:\n        x = x + 1\n    return x"
    compiled = "@torch.compile\ndef compiled(x):\n    return scaled(2.5, x * 2)"
    code = "\n\n".join(["import torch", scaled, calls, compiled])
    (tmp_path / "model.py").write_text(code + "\n")
    result = engine.check([tmp_path], Settings(root=tmp_path, cache=False), load_rules())
    assert [each.span.line for each in result.diagnostics] == [4]


def test_a_long_chain_of_tests_is_not_rewritten(tmp_path) -> None:
    tests = [f"elif x.sum() > {n}:\n    y = x + {n}" for n in range(20)]
    chain = "\n".join(tests).removeprefix("el") + "\nelse:\n    y = x * 2"
    body = textwrap.indent(f"{chain}\nreturn y", "    ")
    (tmp_path / "model.py").write_text(f"import torch\n\n@torch.compile\ndef f(x):\n{body}\n")
    result = engine.check([tmp_path], Settings(root=tmp_path, cache=False), load_rules())
    reasons = {each.no_fix_reason for each in result.diagnostics[:4]}
    assert reasons == {"more than 16 tests follow each other: look the arm up"}
    assert result.diagnostics[-1].fix_title is not None
