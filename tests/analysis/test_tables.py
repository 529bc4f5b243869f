"""What the tables say of torch, checked against literal answers and against torch itself."""

import json
import subprocess
import sys
from importlib import metadata

import pytest
from packaging.version import Version

from jitlint.analysis import extract_registry, tables
from jitlint.analysis.tables import GraphBreak, Returns, Table, load


@pytest.fixture
def torch_2_13() -> Table:
    return load("torch", "2.13.0")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("torch.zeros", Returns.TENSOR),
        ("torch.nn.functional.relu", Returns.TENSOR),
        ("torch.linalg.svd", Returns.TENSORS),
        ("torch.split", Returns.TENSORS),
        ("torch.einsum", Returns.TENSOR),
        ("torch.functional.einsum", Returns.TENSOR),
        ("torch.Tensor.sum", Returns.TENSOR),
        ("torch.equal", Returns.SCALAR),
        ("torch.numel", Returns.SIZE),
        ("torch.is_floating_point", Returns.STATIC),
        ("torch.is_grad_enabled", Returns.STATIC),
        ("torch.autograd.grad", Returns.TENSORS),
        ("torch._assert_async", Returns.NONE),
        ("torch.is_tensor", Returns.STATIC),
        ("torch.is_autocast_enabled", Returns.STATIC),
        ("torch.cond", Returns.TENSOR),
        ("numpy.allclose", Returns.SCALAR),
        ("numpy.mean", Returns.TENSOR),
    ],
)
def test_a_function_returns(torch_2_13: Table, name: str, kind: Returns) -> None:
    operator = torch_2_13.function(name)
    assert operator is not None
    assert operator.returns is kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sum", Returns.TENSOR),
        ("item", Returns.SCALAR),
        ("tolist", Returns.SCALAR),
        ("__bool__", Returns.SCALAR),
        ("size", Returns.SIZE),
        ("stride", Returns.SIZE),
        ("numel", Returns.SIZE),
        ("dim", Returns.STATIC),
        ("is_contiguous", Returns.STATIC),
        ("element_size", Returns.STATIC),
        ("backward", Returns.NONE),
        ("unbind", Returns.TENSORS),
        ("__eq__", Returns.TENSOR),
    ],
)
def test_a_method_returns(torch_2_13: Table, name: str, kind: Returns) -> None:
    operator = torch_2_13.method(name)
    assert operator is not None
    assert operator.returns is kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("shape", Returns.SIZE),
        ("ndim", Returns.STATIC),
        ("dtype", Returns.STATIC),
        ("requires_grad", Returns.STATIC),
        ("T", Returns.TENSOR),
        ("grad", Returns.TENSOR),
        ("data", Returns.TENSOR),
        ("no_such_attribute", None),
    ],
)
def test_an_attribute_is(torch_2_13: Table, name: str, kind: Returns | None) -> None:
    assert torch_2_13.attribute(name) is kind


@pytest.mark.parametrize(
    ("name", "identifier"),
    [("equal", "GB0033"), ("is_nonzero", "GB0033"), ("allclose", "GB0033"), ("item", "GB0124")],
)
def test_reading_data_breaks_the_graph_with(torch_2_13: Table, name: str, identifier: str) -> None:
    operator = torch_2_13.method(name)
    assert operator is not None
    assert operator.reads == identifier


@pytest.mark.parametrize("name", ["size", "numel", "dim", "is_contiguous", "is_floating_point"])
def test_metadata_does_not_break(torch_2_13: Table, name: str) -> None:
    operator = torch_2_13.method(name)
    assert operator is not None
    assert (operator.reads, operator.breaks) == (None, None)


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("torch.nonzero", "GB0036"),
        ("torch.cuda.device_count", "GB0208"),
        ("torch.cov", "GB0033"),
        ("torch.nn.functional.dropout", None),
        ("torch.randn", None),
        ("torch.sum", None),
        ("torch.is_grad_enabled", None),
        ("numpy.zeros", None),
        ("numpy.random.normal", None),
        ("numpy.sum", None),
    ],
)
def test_a_call_breaks_the_graph_with(torch_2_13: Table, name: str, identifier: str | None) -> None:
    operator = torch_2_13.function(name)
    assert operator is not None
    assert operator.breaks == identifier


def test_a_reduction_has_rank_0_without_a_dimension(torch_2_13: Table) -> None:
    names = ["sum", "mean", "any", "argmax", "max", "norm", "softmax"]
    found = [name for name in names if _method(torch_2_13, name).reduces]
    assert found == ["sum", "mean", "any", "argmax", "max", "norm"]


def test_max_has_three_meanings(torch_2_13: Table) -> None:
    maximum = torch_2_13.function("torch.max")
    assert maximum is not None
    assert (maximum.returns, maximum.reduces, maximum.broadcasts) == (Returns.TENSOR, True, True)
    assert (maximum.with_dim, maximum.items) == (Returns.TENSORS, 2)


def test_where_with_one_argument_is_nonzero(torch_2_13: Table) -> None:
    where = torch_2_13.function("torch.where")
    assert where is not None
    assert (where.returns, where.dynamic_shape) == (Returns.TENSOR, False)
    assert where.one_argument is not None
    assert where.one_argument.returns is Returns.TENSORS
    assert where.one_argument.dynamic_shape


def test_a_true_flag_changes_what_is_returned(torch_2_13: Table) -> None:
    unique = torch_2_13.function("torch.unique")
    assert unique is not None
    assert unique.returns is Returns.TENSOR
    assert unique.with_flags == {
        "return_counts": Returns.TENSORS,
        "return_inverse": Returns.TENSORS,
    }


def test_a_predicate_is_bool_and_elementwise(torch_2_13: Table) -> None:
    isnan = torch_2_13.function("torch.isnan")
    assert isnan is not None
    assert (isnan.is_bool, isnan.elementwise) == (True, True)


@pytest.mark.parametrize(
    ("name", "first", "result"),
    [
        ("add", "float32", "float32"),
        ("sum", "float32", "float32"),
        ("sum", "bool", "int64"),
        ("eq", "float32", "bool"),
        ("argmax", "float32", "int64"),
        ("sin", "float64", "float64"),
        ("sin", "int64", None),
    ],
)
def test_the_dtype_of_a_result(
    torch_2_13: Table, name: str, first: str, result: str | None
) -> None:
    assert _method(torch_2_13, name).result_dtype(first) == result


@pytest.mark.parametrize(
    ("fact", "having", "lacking"),
    [
        ("elementwise", "add mul relu exp clamp gelu", "sum softmax cumsum sort triu matmul"),
        ("random", "rand randn dropout bernoulli multinomial", "zeros relu sum"),
        ("dynamic_shape", "nonzero unique masked_select bincount", "sum where topk zeros"),
        ("may_be_dynamic", "repeat_interleave tensor_split", "nonzero where topk"),
        ("view", "reshape squeeze transpose narrow", "add clone sum"),
    ],
)
def test_facts_of_functions(torch_2_13: Table, fact: str, having: str, lacking: str) -> None:
    for names, expected in ((having, True), (lacking, False)):
        for name in names.split():
            operator = torch_2_13.function(f"torch.{name}") or torch_2_13.function(
                f"torch.nn.functional.{name}"
            )
            assert operator is not None, name
            assert getattr(operator, fact) is expected, name


def test_a_numpy_predicate_is_bool(torch_2_13: Table) -> None:
    isnan = torch_2_13.function("numpy.isnan")
    assert isnan is not None
    assert isnan.is_bool


def test_a_method_with_an_underscore_mutates(torch_2_13: Table) -> None:
    assert _method(torch_2_13, "add_").mutates
    assert not _method(torch_2_13, "add").mutates


def test_a_module_is_found_under_both_of_its_names(torch_2_13: Table) -> None:
    lstm = torch_2_13.module("torch.nn.LSTM")
    assert lstm is not None
    assert (lstm.returns, lstm.items) == (Returns.TENSORS, 2)
    assert torch_2_13.module("torch.nn.modules.rnn.LSTM") == lstm


def test_an_lstm_returns_a_tensor_and_a_pair(torch_2_13: Table) -> None:
    lstm = torch_2_13.module("torch.nn.LSTM")
    assert lstm is not None
    assert lstm.structure == (Returns.TENSOR, (Returns.TENSOR, Returns.TENSOR))


def test_pooling_returns_indices_when_it_is_told_to(torch_2_13: Table) -> None:
    pool = torch_2_13.module("torch.nn.MaxPool2d")
    assert pool is not None
    assert pool.returns is Returns.TENSOR
    assert pool.with_flags == {"return_indices": Returns.TENSORS}


def test_only_a_tensor_has(torch_2_13: Table) -> None:
    assert torch_2_13.is_tensor_only("softmax")
    assert torch_2_13.is_tensor_only("unsqueeze")
    assert torch_2_13.is_tensor_only("sum")  # arrays have it, and are traced like tensors
    for shared in ("index", "split", "train", "to", "copy", "format"):
        assert not torch_2_13.is_tensor_only(shared), shared


def test_an_unknown_name_has_no_entry(torch_2_13: Table) -> None:
    assert torch_2_13.function("torch.no_such_function") is None
    assert torch_2_13.method("no_such_method") is None
    assert torch_2_13.module("torch.nn.NoSuchModule") is None


def test_a_graph_break_is_described_in_sentences(torch_2_13: Table) -> None:
    assert torch_2_13.graph_break("GB0170") == GraphBreak(
        "GB0170",
        "Data-dependent branching",
        "Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). "
        "Dynamo does not support tracing dynamic control flow.",
    )
    found = torch_2_13.graph_break("GB2861")
    assert found is not None
    assert found.hints[0].endswith("safe if its slots are pure and deterministic.")
    assert torch_2_13.graph_break("GB9999") is None


def test_a_graph_break_that_the_release_no_longer_causes_is_known(torch_2_13: Table) -> None:
    gone = {each.id for each in torch_2_13.graph_breaks() if not each.raised}
    assert "GB0038" in gone
    assert not gone & {"GB0033", "GB0170", "GB0207"}


def test_graph_breaks_are_sorted(torch_2_13: Table) -> None:
    identifiers = [each.id for each in torch_2_13.graph_breaks()]
    assert identifiers == sorted(set(identifiers))
    assert len(identifiers) == 517


@pytest.mark.compiles
def test_the_installed_torch_still_has_the_same_registry() -> None:
    release = Version(metadata.version("torch"))
    minor = f"{release.major}.{release.minor}"
    if minor not in tables.available("torch"):
        pytest.skip(f"there is no table for torch {minor}")
    stored = json.loads((tables.FOLDER / f"torch-{minor}.json").read_text(encoding="utf-8"))
    assert extract_registry.registry() == stored["graph_breaks"]


def test_the_exact_release_is_taken_whatever_its_patch() -> None:
    assert load("torch", "2.13.7").exact


def test_another_release_gets_the_nearest_table_and_says_so() -> None:
    table = load("torch", "2.99")
    assert table.version == load("torch", None).version
    assert not table.exact


def test_without_a_release_the_newest_table_is_taken() -> None:
    assert load("torch", None).version.startswith(tables.available("torch")[-1])


def test_a_framework_without_tables_is_an_error() -> None:
    with pytest.raises(ValueError, match="no table for caffe"):
        load("caffe", None)


@pytest.mark.parametrize("release", tables.available("torch"))
def test_every_entry_of_every_table_can_be_read(release: str) -> None:
    table = load("torch", release)
    data = json.loads((tables.FOLDER / f"torch-{release}.json").read_text(encoding="utf-8"))
    for section, find in (
        ("functions", table.function),
        ("numpy", table.function),
        ("methods", table.method),
        ("modules", table.module),
    ):
        for name in data[section]:
            operator = find(name)
            assert operator is not None, name
            assert operator.source in ("stub", "op_db", "measured", "schema", "annotation"), name
    for name in data["attributes"]:
        assert table.attribute(name) in (Returns.TENSOR, Returns.SIZE, Returns.STATIC)


OF_OTHERS = frozenset({"exported", "refused", "created"})
"""Fields that extractions of their own add: what torch.export takes, what numbers make."""


@pytest.mark.compiles
def test_the_installed_torch_still_gives_the_same_entries() -> None:
    release = Version(metadata.version("torch"))
    minor = f"{release.major}.{release.minor}"
    if minor not in tables.available("torch"):
        pytest.skip(f"there is no table for torch {minor}")
    names = ["torch.sum", "torch.equal", "torch.where", "Tensor.max", "Tensor.item", "Tensor.add_"]
    extraction = subprocess.run(
        [sys.executable, "-m", "jitlint.analysis.extract_torch", "--only", *names],
        capture_output=True,
        text=True,
        check=True,
    )
    extracted = json.loads(extraction.stdout)
    stored = json.loads((tables.FOLDER / f"torch-{minor}.json").read_text(encoding="utf-8"))
    for section in ("functions", "methods"):
        assert extracted[section]
        for name, entry in extracted[section].items():
            known = {k: v for k, v in stored[section][name].items() if k not in OF_OTHERS}
            assert entry == known, name


def _method(table: Table, name: str) -> tables.Operator:
    operator = table.method(name)
    assert operator is not None
    return operator


def test_a_target_without_a_table_is_named_with_its_substitute():
    newest = tables.available("torch")[-1]
    assert tables.substitutes({"torch": newest, "python": "3.11"}) == []
    nearest, parts = tables.substitutes({"torch": "2.6"})
    assert nearest.startswith("there is no table for torch 2.6; that of 2.10")
    assert parts.startswith("the table for torch 2.10.0 lacks what was measured for 2.13.0 only: ")


def test_a_release_borrows_what_was_not_measured_for_it():
    older, newest = tables.load("torch", "2.10"), tables.load("torch")
    assert older.exact
    assert "standard" in older.borrowed
    assert older.standard("builtins.print") == newest.standard("builtins.print")
    assert len(older.graph_breaks()) < len(newest.graph_breaks())
    assert newest.borrowed == ()
