"""The length of new lines."""

import libcst as cst
import pytest

from jitlint.layout import laid_out

OLD = "def old():\n    return 1\n"
LONG = "first_argument_of_the_call, second_argument_of_the_call, third_argument_of_the_call"

BROKEN = {
    "a call": (
        f"    value = function(first(0), {LONG}, last)\n",
        """    value = function(
        first(0),
        first_argument_of_the_call,
        second_argument_of_the_call,
        third_argument_of_the_call,
        last,
    )
""",
    ),
    "calls in each other": (
        f"    outer(1, inner_function_one({LONG}), 2)\n",
        """    outer(
        1,
        inner_function_one(
            first_argument_of_the_call,
            second_argument_of_the_call,
            third_argument_of_the_call,
        ),
        2,
    )
""",
    ),
    "parameters": (
        f"    def inner({LONG}, last=1) -> None:\n        pass\n",
        """    def inner(
        first_argument_of_the_call,
        second_argument_of_the_call,
        third_argument_of_the_call,
        last=1,
    ) -> None:
        pass
""",
    ),
    "a decorator": (
        f'    @package.decorator("a name", {LONG})\n    def inner():\n        pass\n',
        """    @package.decorator(
        "a name",
        first_argument_of_the_call,
        second_argument_of_the_call,
        third_argument_of_the_call,
    )
    def inner():
        pass
""",
    ),
}


@pytest.mark.parametrize(("line", "expected"), BROKEN.values(), ids=BROKEN)
def test_a_long_line_is_broken(line, expected):
    before, after = (cst.parse_module(each) for each in (OLD, f"def new():\n{line}"))
    assert laid_out(before, after).code == f"def new():\n{expected}"


KEPT = {
    "it is no longer than others of the file": (f"x = function({LONG}, last)", "#" + "-" * 118),
    "it was there before": (f"x = f({LONG}, {LONG})",) * 2,
    "a comment may be about it": (f"x = function({LONG}, last)  # type: ignore", ""),
    "a call in a text": (f'x = f"{{function({LONG}, last)}}"', ""),
    "there is no call": (f"x = ({LONG}, {LONG})", ""),
    "short calls do not help": (f"x = ({LONG}, function(1, 2))", ""),
    "a generator is the only argument": (f"x = function(e for e in ({LONG}, 1))", ""),
}


@pytest.mark.parametrize(("line", "other"), KEPT.values(), ids=KEPT)
def test_a_line_stays(line, other):
    before, after = cst.parse_module(other), cst.parse_module(f"{line}\n")
    assert laid_out(before, after).code == f"{line}\n"
