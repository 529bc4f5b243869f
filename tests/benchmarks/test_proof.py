import pytest
from proof import Offer, Proof, Row, Verdict, compared, culprits, table, total, verdicts


def offer(line=3, end_line=3):
    return Offer("lib/a.py", line, end_line, "trace-branch", "Use `torch.where`", True)


def differs_with(*guilty):
    asked = []

    def differs(suspects):
        asked.append(list(suspects))
        return any(each in guilty for each in suspects)

    return differs, asked


@pytest.mark.parametrize("guilty", [(), (0,), (15,), (3, 4), (0, 7, 15)])
def test_those_to_blame_are_found_one_by_one(guilty):
    differs, _ = differs_with(*guilty)
    assert sorted(culprits(range(16), differs)) == sorted(guilty)


def test_one_to_blame_is_found_by_halving():
    differs, asked = differs_with(11)
    culprits(range(64), differs)
    assert len(asked) <= 9


def test_a_pair_that_differs_only_together_loses_one():
    found = culprits(range(8), lambda suspects: {2, 5} <= set(suspects))
    assert found == (5,)


def test_after_the_limit_all_the_rest_are_to_blame():
    differs, _ = differs_with(*range(20))
    assert sorted(culprits(range(20), differs, limit=2)) == list(range(20))


def test_a_fix_runs_where_one_of_its_lines_runs():
    assert offer(3, 5).runs_in({"lib/a.py": {1, 5}})
    assert not offer(3, 5).runs_in({"lib/a.py": {1, 6}})
    assert not offer(3, 5).runs_in({"lib/b.py": {3}})


ROWS = (
    Row("net", ("net", "eval"), before=4, after=1, fixes=2),
    Row("lib", ("net", "train"), before=3, after=0, fixes=3),
    Row("lib", ("plain", "eval"), before=0, after=0, fixes=0),
    Row("lib", ("odd", "eval"), before=1, after=1, fixes=0, detail="output: 1.0 became 2.0"),
)


def test_the_table_has_a_line_for_each_run_and_the_total():
    assert table(ROWS) == [
        "| library | model | mode | breaks before | after | fixes | equal |",
        "|---|---|---|---:|---:|---:|---|",
        "| net | net | eval | 4 | 1 | 2 | yes |",
        "| lib | net | train | 3 | 0 | 3 | yes |",
        "| lib | plain | eval | 0 | 0 | 0 | unchanged |",
        "| lib | odd | eval | 1 | 1 | 0 | output: 1.0 became 2.0 |",
        "",
        "net: 1 runs: 4 breaks before, 1 after (75 % removed); "
        "0 of 1 runs with breaks have none left; 0 not equal",
        "lib: 3 runs: 4 breaks before, 1 after (75 % removed); "
        "1 of 2 runs with breaks have none left; 1 not equal",
        "all: 4 runs: 8 breaks before, 2 after (75 % removed); "
        "1 of 3 runs with breaks have none left; 1 not equal",
    ]


def test_published_figures_stand_beside_those_of_the_same_models():
    rows = [
        Row("set", ("net", "eval"), before=4, after=1, fixes=2, graphs=(6, 2)),
        Row("set", ("whole", "eval"), before=0, after=0, fixes=0, graphs=(0, 0)),
        Row("set", ("another", "eval"), before=4, after=4, fixes=0, graphs=(5, 5)),
    ]
    assert compared(rows, {"net": [5, 0], "whole": [0, 0], "not run": [3, 3]}) == (
        "2 models of the published table: "
        "5 further graphs before, 1 after (80 % removed); "
        "published: 5 further graphs before, 0 after (100 % removed)"
    )


def test_no_breaks_are_no_share():
    assert "(none removed)" in total(ROWS[2:3])


def test_a_fix_that_no_model_runs_is_not_verified():
    proofs = (
        Proof(offer(), Verdict.VERIFIED, (("net", "eval"),)),
        Proof(offer(9), Verdict.REFUTED, (("net", "eval"),), "net eval: output: 1 became 2"),
        Proof(offer(20), Verdict.NOT_RUN),
    )
    assert verdicts(proofs) == [
        "3 fixes offered in the files that the models import, 2 of them in lines that a model "
        "runs: 1 verified (50 %), 1 refuted",
        "  safe: 1 of 2 verified",
        "  unsafe: 0 of 0 verified",
        "  refuted lib/a.py:9 trace-branch (Use `torch.where`)",
        "    net eval: output: 1 became 2",
    ]
