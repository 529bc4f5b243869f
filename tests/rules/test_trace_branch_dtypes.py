"""A fix is safe only if it keeps dtypes and exceptions for every dtype, shape and number."""

import textwrap

import pytest
from jitlint_rules.tracing.branch_fixes.profile import are_floating

from jitlint import engine
from jitlint.config import Settings
from jitlint.finding import Safety
from jitlint.rule import load_rules

TEMPLATE = """\
import torch
import torch.nn.functional as F


@torch.compile
def f({parameters}):
    {before}
    if {test}:
        return {first}
    return {second}
"""

SOURCES = {
    "bool minus number": ("x * 2", "x - 1", "`x` is not bool"),
    "minus bool": ("-x", "x.clone()", "`x` is not bool"),
    "mean of whole numbers": ("x.mean()", "x.sum() / 2", "`x` is floating"),
    "whole numbers to a negative power": ("x**-1", "x * 2", "`x` is floating"),
    "floor of complex numbers": ("x.floor()", "x.clone()", "`x` is not bool and `x` is real"),
    "division without gradient": ("x // 2.0", "x * 2.0", "no gradient needs `x`"),
}
UNDER_COMPLEX = "(x == 0).any()"


def found_in(tmp_path, first, second, test, parameters="x", before="pass"):
    path = tmp_path / "case.py"
    values = {"first": first, "second": second, "test": test}
    path.write_text(TEMPLATE.format(parameters=parameters, before=before, **values))
    result = engine.check([path], Settings(cache=False, select=("trace-branch",)), load_rules())
    assert not result.problems
    return result.diagnostics[0]


@pytest.mark.parametrize(("first", "second", "condition"), SOURCES.values(), ids=SOURCES)
def test_an_operator_that_refuses_a_dtype_makes_a_condition(tmp_path, first, second, condition):
    found = found_in(tmp_path, first, second, UNDER_COMPLEX)
    assert found.fix_safety is Safety.UNSAFE
    assert condition in found.fix_title


@pytest.mark.parametrize(
    ("first", "second"),
    [("x * 2", "x + 1"), ("x.relu()", "x.clamp(max=3)"), ("x > 1", "x < 3"), ("x - 1", "-x")],
)
def test_a_test_that_only_floats_pass_proves_them(tmp_path, first, second):
    assert found_in(tmp_path, first, second, "x.mean() > 0").fix_safety is Safety.SAFE


@pytest.mark.parametrize(("first", "second"), [("x > 1", "x == 3"), ("x * 2", "x.clone() + 1")])
def test_an_ordering_proves_real_numbers(tmp_path, first, second):
    assert found_in(tmp_path, first, second, "x.sum() > 0").fix_safety is Safety.SAFE


TWO = {
    "a rank of 0 gives way": ("(x * y).sum()", "x.sum() * y.sum()", "both arms have one dtype"),
    "a number comes before or after": (
        "(x + 1.5) * y",
        "x * y + 1.5",
        "`x` and `y` are floating",
    ),
    "shapes that do not fit": ("(x + y).sum()", "x.sum() + y.sum()", "the shapes in `(x + y)` fit"),
}


@pytest.mark.parametrize(("first", "second", "condition"), TWO.values(), ids=TWO)
def test_two_tensors_may_not_go_together(tmp_path, first, second, condition):
    found = found_in(tmp_path, first, second, "x.sum() > 0", "x, y")
    assert found.fix_safety is Safety.UNSAFE
    assert condition in found.fix_title


def test_the_order_of_operands_does_not_matter(tmp_path):
    found = found_in(tmp_path, "x + y + 1", "y + x * 2", "x.sum() > 0", "x, y")
    assert "dtype" not in found.fix_title


@pytest.mark.parametrize("parameters", ["x, n", "x, n: float", "x, n=1", "x, n=1.5"])
def test_the_type_of_a_number_is_the_callers(tmp_path, parameters):
    found = found_in(tmp_path, "x + n * 1", "x / 2", "x.sum() > 0", parameters)
    assert found.fix_safety is not Safety.SAFE


NUMBERS = {
    "division": ("x * (1 / n)", "(1 / n)"),
    "size": ("x * x.size(1)", "x.size(1)"),
    "shape": ("x * x.shape[1]", "x.shape[1]"),
    "length": ("x * len(x)", "len(x)"),
    "attribute that needs dimensions": ("x.mT.sum()", "x.mT"),
}


@pytest.mark.parametrize(("arm", "code"), NUMBERS.values(), ids=NUMBERS)
def test_what_may_fail_is_not_computed_where_it_was_not(tmp_path, arm, code):
    other = "x.sum()" if "sum" in arm else "x * 2.0"
    found = found_in(tmp_path, arm, other, "x.sum() > 0", "x, n: int")
    assert found.no_fix_reason is not None
    assert f"`{code}` fails for some inputs" in found.no_fix_reason


def test_constants_are_no_hazard(tmp_path):
    assert found_in(tmp_path, "x + 2**10", "x * 3", "x.sum() > 0").fix_safety is Safety.SAFE


def test_a_number_that_is_not_always_bound(tmp_path):
    found = found_in(tmp_path, "x + n", "x + 3", "x.sum() > 0", "x, flag", "if flag: n = 2")
    assert found.fix_safety is not Safety.SAFE


@pytest.mark.parametrize(
    "test", ["0 < x.sum() < x.max()", "x.sum() > 0 and x.max() > 0", "x.sum() > 0 or x.max() > 0"]
)
def test_a_later_part_of_a_test_that_may_fail(tmp_path, test):
    found = found_in(tmp_path, "x * 2", "x + 1", test)
    assert "`x.max()` fails for some inputs" in (found.no_fix_reason or "")


def test_a_sum_is_wider_than_a_maximum(tmp_path):
    found = found_in(tmp_path, "x.sum()", "x.max() + 1", "x.max() > 0")
    assert "`x` is floating" in found.fix_title


def test_a_gradient_of_infinity_at_zero(tmp_path):
    found = found_in(tmp_path, "x**-1", "x * 2", "x.mean() > 0")
    assert "torch.cond" in found.fix_title


def test_cond_has_no_second_gradient(tmp_path):
    found = found_in(tmp_path, "x.log()", "x.exp()", "x.mean() > 0")
    assert found.fix_safety is Safety.UNSAFE
    assert "no arm fails and no gradient is differentiated again" in found.fix_title


@pytest.mark.parametrize("arm", ["F.relu(x, True)", "F.relu(x, inplace=True)"])
def test_an_arm_that_writes_into_its_argument(tmp_path, arm):
    found = found_in(tmp_path, arm, "x * 2", "x.mean() > 0")
    assert "writes into a tensor" in found.no_fix_reason


def test_an_arm_that_writes_into_out(tmp_path):
    found = found_in(tmp_path, "torch.add(x, 1, out=y)", "x * y", "x.mean() > 0", "x, y")
    assert "writes into a tensor (`out=y`)" in found.no_fix_reason


def test_another_dtype_of_the_same_memory(tmp_path):
    cast = "y = x.view(torch.int32)"
    found = found_in(tmp_path, "y.sum()", "x.sum()", "x.mean() > 0", before=cast)
    assert found.fix_safety is None


def test_whole_numbers_require_no_gradient(tmp_path):
    found = found_in(tmp_path, "x.int().float().sum()", "x.sum()", "x.mean() > 0")
    assert found.fix_safety is None


def test_the_template_is_python():
    values = {"first": "1", "second": "2", "test": "x", "parameters": "x", "before": "pass"}
    compile(textwrap.dedent(TEMPLATE.format(**values)), "case.py", "exec")


def test_a_variable_that_is_bound_several_times_is_named_once():
    assert are_floating(frozenset({"h@1", "h@2"})) == "`h` is floating"
    assert are_floating(frozenset({"h@1", "h@2", "w@1"})) == "`h` and `w` are floating"
