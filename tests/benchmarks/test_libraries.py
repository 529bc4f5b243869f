import pytest
from libraries import TRUTH, Heads, compare, read_truth, unpack

SOURCE = """\
def f(x):
    if (
        x.sum() > 0
    ):
        return x
    return g(
        x,
    )
"""
TRUTH_OF_F = {
    "sites": [
        {"file": "f.py", "line": 3, "reason": "branching", "category": "branch"},
        {"file": "f.py", "line": 5, "reason": "other", "category": "item"},
    ],
    "clean": {"f.py": [2, 7]},
    "unreported": {"f.py:5": "too deep"},
}


@pytest.fixture
def heads(tmp_path):
    (tmp_path / "f.py").write_text(SOURCE)
    return Heads(tmp_path)


def found(line, severity="warning", fix=None):
    return {"path": "./f.py", "line": line, "severity": severity, "fix": fix}


def test_a_finding_anywhere_in_the_statement_is_a_hit(heads):
    compared = compare([found(2, fix={"safety": "safe"})], TRUTH_OF_F, heads)
    assert compared.sites == {"branch": (1, 1), "item": (0, 1)}
    assert (compared.hits, compared.fixable) == (1, 1)
    assert compared.missed == {"f.py:5": "too deep"}


def test_a_finding_at_a_clean_statement_is_a_false_alarm(heads):
    compared = compare([found(6)], TRUTH_OF_F, heads)
    assert compared.false == (("f.py", 6),)
    assert compared.clean == 1  # the other clean line belongs to a site's statement


def test_notes_count_neither_way(heads):
    compared = compare([found(2, "note"), found(6, "note")], TRUTH_OF_F, heads)
    assert (compared.hits, compared.false) == (0, ())


def test_a_wheel_that_is_there_is_not_downloaded_again(tmp_path):
    (tmp_path / "chronos_forecasting-2.3.2.dist-info").mkdir()
    unpack("chronos-forecasting==2.3.2", tmp_path)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("path", TRUTH, ids=lambda path: path.stem)
def test_a_truth_file_says_what_to_unpack_and_what_is_compiled(path):
    truth = read_truth(path)
    assert truth["sites"]
    files = {site["file"].partition("/")[0] for site in truth["sites"]} | {
        file.partition("/")[0] for file in truth.get("clean", {})
    }
    assert files <= truth["versions"].keys()
    sites = {f"{site['file']}:{site['line']}" for site in truth["sites"]}
    assert truth["unreported"].keys() <= sites
    assert {point.partition(":")[0] for point in truth["entry-points"]} == truth["versions"].keys()
