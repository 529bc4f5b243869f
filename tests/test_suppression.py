import pytest

from jitlint import suppression
from jitlint.finding import Diagnostic, Severity, Span

KNOWN = ["trace-branch", "amp-dtype", "syntax-error", "unused-ignore"]


def at(line, end_line=None, rule="trace-branch", column=1):
    span = Span(line, column, end_line or line, column + 5)
    return Diagnostic("a.py", span, rule, "tracing", Severity.WARNING, "m")


def apply(source, *diagnostics, active=KNOWN):
    data = source if isinstance(source, bytes) else source.encode()
    return suppression.apply(data, "a.py", diagnostics, active, KNOWN)


def left(source, *diagnostics, **options):
    return [(each.rule, each.span.line) for each in apply(source, *diagnostics, **options)]


@pytest.mark.parametrize(
    "source",
    [
        "x  # jitlint: ignore[trace-branch] measured: never true\n",
        "x  # jitlint: ignore[trace-branch,trace-branch]\n",
        "x  #jitlint:ignore[ trace-branch ]\n",
        "x  # jitlint: ignore\n",
        "x  # type: ignore # jitlint: ignore[trace-branch]\n",
        "x  # noqa\n",
        "x  # NOQA\n",
        "x\n# jitlint: skip-file\n",
    ],
)
def test_a_comment_on_the_line_silences(source):
    assert left(source, at(1)) == []


@pytest.mark.parametrize(
    "source",
    [
        "x\n",
        "x  # noqa: E501\n",
        "x  # noqa:E501\n",
        "x  # noqax\n",
        "x = '# jitlint: ignore'\n",
        "x = '''\n# jitlint: skip-file\n'''\n",
        "x  # jitlint: ignored\n",
    ],
)
def test_other_comments_and_strings_do_not_silence(source):
    assert left(source, at(1)) == [("trace-branch", 1)]


def test_a_comment_alone_on_the_line_above_silences():
    assert left("# jitlint: ignore[trace-branch] why\nx\n", at(2)) == []
    assert left("    # jitlint: ignore\n    # another remark\nx\n", at(3)) == []
    assert left("# jitlint: ignore\n\nx\n", at(3)) == [("trace-branch", 3), ("unused-ignore", 1)]
    assert left("y  # jitlint: ignore\nx\n", at(2)) == [("trace-branch", 2), ("unused-ignore", 1)]
    assert left("# noqa\nx\n", at(2)) == [("trace-branch", 2)]


def test_a_comment_on_the_first_or_last_line_of_the_statement_silences():
    source = "y = f(\n    a,\n    x > 0,{}\n    b,\n){}\n"
    assert left(source.format("", "  # jitlint: ignore"), at(3)) == []
    assert left(source.format("  # jitlint: ignore", ""), at(3)) == []
    first = "y = f(  # jitlint: ignore\n    x > 0,\n)\n"
    assert left(first, at(2)) == []


def test_a_comment_in_the_body_does_not_silence_the_header():
    source = "if x:\n    y  # jitlint: ignore\n"
    assert left(source, at(1, end_line=2)) == [("trace-branch", 1), ("unused-ignore", 2)]


def test_only_the_named_rules_are_silenced():
    source = "x  # jitlint: ignore[amp-dtype]\n"
    assert left(source, at(1), at(1, rule="amp-dtype")) == [("trace-branch", 1)]


def test_a_comment_that_silences_nothing_is_reported_where_it_stands():
    (found,) = apply("x = 1  # jitlint: ignore[trace-branch]  because\n")
    assert found.rule == "unused-ignore"
    assert found.severity is Severity.WARNING
    assert found.span == Span(1, 8, 1, 39)
    assert found.message == "needless comment: `trace-branch` reports nothing here"
    (found,) = apply("x  # jitlint: ignore\n")
    assert found.message == "this comment silences nothing"


def test_an_unknown_rule_in_a_comment_is_reported_with_the_nearest():
    (found,) = apply("x  # jitlint: ignore[trace-brnch, amp-dtype]\n", at(1, rule="amp-dtype"))
    assert found.message == (
        "needless comment: `trace-brnch` is not a rule; did you mean `trace-branch`?"
    )


def test_a_partly_used_list_names_the_idle_rule():
    (found,) = apply("x  # jitlint: ignore[trace-branch, amp-dtype]\n", at(1))
    assert found.message == "needless comment: `amp-dtype` reports nothing here"


def test_comments_for_rules_of_other_runs_are_left_alone():
    source = "x  # jitlint: ignore[trace-branch]\ny  # jitlint: ignore\n"
    assert left(source, active=["amp-dtype", "unused-ignore"]) == []


def test_idle_comments_are_not_reported_when_the_rule_is_off():
    active = [rule for rule in KNOWN if rule != "unused-ignore"]
    assert left("x  # jitlint: ignore[trace-branch]\n", active=active) == []


def test_noqa_is_never_reported():
    assert left("x  # noqa\n") == []


def test_unused_ignore_can_be_ignored_itself():
    assert left("x  # jitlint: ignore[trace-branch, unused-ignore]\n") == []


def test_a_file_that_does_not_parse_still_obeys_and_reports_no_idle_comment():
    syntax = at(2, rule="syntax-error")
    assert left("x  # jitlint: ignore[trace-branch]\ny = (\n", syntax) == [("syntax-error", 2)]
    assert left("# jitlint: skip-file\ny = (\n", syntax) == []
    assert left("y = (  # jitlint: ignore[syntax-error]\n", at(1, rule="syntax-error")) == []


def test_an_undecodable_file_keeps_its_findings():
    assert left(b"\xff # jitlint: ignore\n", at(1, rule="syntax-error")) == [("syntax-error", 1)]


def test_line_ends_of_any_kind_are_counted_as_python_counts_them():
    assert left("a\ra\r\nx  # jitlint: ignore\n", at(3)) == []
    assert left("a\x0c\nx  # jitlint: ignore\n", at(2)) == []
