"""The argument types of torch's operators, against literal answers and against torch itself."""

import importlib.util
import json
import subprocess
import sys

import pytest

from jitlint.analysis import tables

PATH = tables.FOLDER / "torchscript-2.13.json"
TABLE = json.loads(PATH.read_bytes())


@pytest.mark.parametrize(
    ("name", "overload"),
    [
        ("cat", "Tensor[] tensors, int dim="),
        ("view", "Tensor self, int[] size"),
        ("sum", "Tensor self, int[1]? dim, bool keepdim=, *, ScalarType? dtype="),
        ("masked_fill", "Tensor self, Tensor mask, Scalar value"),
        ("clamp", "Tensor self, Tensor? min=, Tensor? max="),
    ],
)
def test_an_operator_takes(name, overload):
    assert overload in TABLE["operators"][name]


def test_nothing_writes_into_an_argument_called_out():
    overloads = [each for found in TABLE["operators"].values() for each in found]
    assert not any(each.endswith(" out") for each in overloads)


def test_public_names_lead_to_operators():
    assert TABLE["functions"]["torch.fft.fft"] == "fft_fft"
    assert TABLE["functions"]["torch.linalg.norm"] == "linalg_norm"


def test_functions_that_are_scripted_have_their_annotations():
    dropout = "Tensor input, float p=, bool training=, bool inplace="
    assert TABLE["python"]["torch.nn.functional.dropout"] == dropout
    assert "torch.nn.functional.interpolate" not in TABLE["python"]  # it has overloads


@pytest.mark.compiles
def test_the_table_is_what_the_script_extracts():
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch")
    command = [sys.executable, "-W", "ignore", "-m", "jitlint.analysis.extract_script"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    if found["version"].rpartition(".")[0] != "2.13":
        pytest.skip("the table is of another release")
    assert found == TABLE
