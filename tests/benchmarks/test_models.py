from collections import Counter

import models
import pytest
from measure import Measured, Site
from models import Bench, DidNotRunError
from proof import Verdict

from jitlint.verify.outcome import Outcome

SOURCE = """\
import torch
from torch import Tensor


def first(x: Tensor) -> Tensor:
    if x.sum() > 1:
        return x * 2
    return x + 1


def second(x: Tensor) -> Tensor:
    if x.sum() > 2:
        return x * 2
    return x + 1


def idle(x: Tensor) -> Tensor:
    if x.sum() > 3:
        return x * 2
    return x + 1
"""
BOTH, FIRST = ("both", "eval"), ("first", "eval")
LINES = {BOTH: {5, 6, 8, 11, 12, 14}, FIRST: {5, 6, 8}}
BOUNDS = {BOTH: (1, 2), FIRST: (1,)}
WRONG = "torch.where(x.sum() > 2"
"""A fix after which one of the models gives another result."""


def outcome(value, **rest):
    return Outcome(output={"output": value}, random_state=(None,) * 4, **rest)


class Toy(Bench):
    """Models that are not run: what they give and where they break is read off the code."""

    def measured(self, folder, names):
        code = (folder / "toy" / "code.py").read_text()
        wrong = {run: outcome(WRONG in code and run == BOTH) for run in LINES}
        return {
            run: Measured(
                eager=[wrong[run]],
                compiled=[wrong[run]],
                breaks=Counter(
                    Site("toy/code.py", bound, "branching")
                    for bound in BOUNDS[run]
                    if f"if x.sum() > {bound}" in code
                ),
                lines={"toy/code.py": LINES[run]},
            )
            for run in LINES
            if not names or run[0] in names
        }


@pytest.fixture
def toy(tmp_path):
    package = tmp_path / "before" / "toy"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "code.py").write_text(SOURCE)
    return Toy("toy", tmp_path / "before", tmp_path / "after", ["toy", "toy:*"])


@pytest.fixture
def judged(toy):
    old = toy.measured(toy.source, ())
    return toy.judged(old, toy.offered(old))


def verdict_of(judged, function):
    line = SOURCE.splitlines().index(f"def {function}(x: Tensor) -> Tensor:") + 2
    (proof,) = [proof for proof in judged[1] if proof.offer.line == line]
    return proof


def test_a_fix_after_which_the_models_are_equal_is_verified(judged):
    proof = verdict_of(judged, "first")
    assert proof.verdict is Verdict.VERIFIED
    assert proof.runs == (BOTH, FIRST)


def test_a_fix_that_changes_a_result_is_found_among_others_and_refuted(judged):
    proof = verdict_of(judged, "second")
    assert proof.verdict is Verdict.REFUTED
    assert proof.detail == "both eval: output: output: False became True"


def test_a_fix_that_no_model_runs_is_not_verified(judged):
    assert verdict_of(judged, "idle").verdict is Verdict.NOT_RUN


def test_a_refuted_fix_is_taken_back(judged, toy):
    code = (toy.copy / "toy" / "code.py").read_text()
    assert "torch.where(x.sum() > 1" in code
    assert "if x.sum() > 2" in code
    assert "torch.where(x.sum() > 3" in code


def test_equal_code_in_two_places_is_proved_in_both(toy):
    code = toy.source / "toy" / "code.py"
    code.write_text(SOURCE.replace("> 3", "> 1"))
    old = toy.measured(toy.source, ())
    _, proofs = toy.judged(old, toy.offered(old))
    found = {proof.offer.line: proof.verdict for proof in proofs}
    assert found == {6: Verdict.VERIFIED, 12: Verdict.REFUTED, 18: Verdict.NOT_RUN}


def test_the_sources_are_left_alone(judged, toy):
    assert (toy.source / "toy" / "code.py").read_text() == SOURCE


def test_breaks_are_counted_with_what_is_left_of_the_fixes(judged):
    rows = {row.run: row for row in judged[0]}
    assert (rows[BOTH].before, rows[BOTH].after, rows[BOTH].fixes) == (2, 1, 1)
    assert (rows[FIRST].before, rows[FIRST].after, rows[FIRST].detail) == (1, 0, "")


def test_code_that_does_not_load_is_a_difference(toy, monkeypatch):
    def measured(folder, names):
        raise DidNotRunError("Traceback:\nNameError: torch")

    old = toy.measured(toy.source, ())
    offered = toy.offered(old)
    monkeypatch.setattr(Toy, "measured", lambda self, *rest: measured(*rest))
    new = toy.after([], [FIRST])
    assert models.unlike(old[FIRST], new[FIRST]) == "NameError: torch"
    assert offered


def test_a_difference_that_the_old_code_had_under_the_compiler_is_not_the_fix_s():
    eager = outcome(1.0)
    old = Measured(eager=[eager], compiled=[outcome(2.0)])
    assert models.unlike(old, old) is None
    changed = Measured(eager=[eager], compiled=[outcome(2.0, printed="x")])
    assert models.unlike(old, changed) == "compiled, printed text: '' became 'x'"
