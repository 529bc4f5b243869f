"""What the tables say about graph breaks outside torch's operators, against literal answers."""

import json
import re
import subprocess
import sys
from importlib import metadata
from typing import Any

import pytest
from packaging.version import Version

from jitlint.analysis import tables

IDENTIFIER = re.compile(r"GB\d{4}|unknown")
OF_TENSORS = {"with_tensor", "with_tensor_inside", "with_tensor_held"}
OF_CALLS = {"breaks", "held", *OF_TENSORS, "with_module"}
BREAKS = frozenset({*OF_CALLS, "symbolic", "input", "intermediate"})
FIELDS = {
    "standard": {*OF_CALLS, "symbolic", "varies", "instance", "effect"},
    "contexts": {"breaks", "held"},
    "stores": {"breaks", "input", "intermediate"},
    "attribute_breaks": {"breaks", "input", "intermediate"},
    "constructs": {"breaks"},
    "messages": {"breaks", "with_tensor_held"},
    "arrays": {"breaks"},
}
FLAGS = frozenset(
    {
        *("captured", "with_tensor_captured", "with_tensor_inside_captured"),
        *("with_tensor_held_captured", "with_module_captured"),
        *("some", "unless", "position", "exported", "refused", "given", "computes", "source"),
    }
)
EXTRACTED = pytest.mark.parametrize("release", ["2.13"])


def _stored(release: str) -> dict[str, Any]:
    text = (tables.FOLDER / f"torch-{release}.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


@EXTRACTED
@pytest.mark.parametrize("section", FIELDS)
def test_each_entry_says_something_and_nothing_unknown(release: str, section: str) -> None:
    entries = _stored(release)[section]
    assert entries
    for name, entry in entries.items():
        said = entry.keys() - FLAGS
        assert said, name
        assert said <= FIELDS[section], name
        assert entry["source"] == "measured", name


@EXTRACTED
@pytest.mark.parametrize("section", FIELDS)
def test_each_break_is_one_of_the_registry(release: str, section: str) -> None:
    table = _stored(release)
    for name, entry in table[section].items():
        for identifier in (entry[field] for field in BREAKS & entry.keys()):
            assert IDENTIFIER.fullmatch(identifier), name
            assert identifier == "unknown" or identifier in table["graph_breaks"], name


@EXTRACTED
def test_what_is_captured_breaks_without(release: str) -> None:
    table = _stored(release)
    for section in (*FIELDS, "functions", "methods", "numpy"):
        for name, entry in table[section].items():
            assert not entry.get("captured") or (BREAKS | {"reads"}) & entry.keys(), name
            assert not entry.get("with_tensor_captured") or "with_tensor" in entry, name


@EXTRACTED
def test_each_class_of_an_object_has_methods_that_break_or_none_does(release: str) -> None:
    standard = _stored(release)["standard"]
    for method in ("logging.Logger.info", "logging.Logger.warning", "random.Random.shuffle"):
        assert "breaks" in standard[method], method


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("time.time", {"breaks": "GB0007", "varies": True}),
        ("builtins.print", {"breaks": "GB0059"}),
        ("warnings.warn", {"breaks": "GB0007"}),
        ("random.random", {"breaks": "GB0007", "varies": True}),
        ("random.randint", {"varies": True}),
        ("heapq.heappush", {"breaks": "GB0007"}),
        ("logging.getLogger", {"instance": "logging.Logger"}),
        ("random.Random", {"instance": "random.Random"}),
        ("re.compile", {"instance": "re.Pattern"}),
        ("builtins.int", {"with_tensor": "GB0124", "with_tensor_captured": True}),
        ("builtins.sorted", {"with_tensor_inside": "GB0207"}),
        ("copy.deepcopy", {"with_tensor": "GB4198", "with_module": "GB4198"}),
        ("copy.copy", {"with_module": "GB0008"}),
        ("operator.itemgetter.__call__", {"held": "GB0156"}),
        ("itertools.groupby", {"with_tensor_inside": "GB0152", "unless": ["1", "key"]}),
        ("subprocess.run", {"breaks": "GB0007"}),
        ("torch.utils.data.default_collate", {"breaks": "GB0007"}),
        ("torch.nn.utils.rnn.pack_padded_sequence", {"breaks": "GB0007"}),
        ("torch.Tensor.data_ptr", {"varies": True, "symbolic": "GB0088"}),
        ("datetime.datetime.now", {"breaks": "GB0156", "varies": True}),
    ],
)
def test_a_call_of_the_standard_library(name: str, expected: dict[str, Any]) -> None:
    assert expected.items() <= _stored("2.13")["standard"][name].items()


@pytest.mark.parametrize("name", ["builtins.len", "builtins.next", "math.floor", "itertools.chain"])
def test_what_does_not_break_has_no_break(name: str) -> None:
    assert "breaks" not in _stored("2.13")["standard"].get(name, {})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("index_by_mask", {"breaks": "GB0036", "captured": True}),
        ("index_by_scalar_mask", {"breaks": "GB0033"}),
        ("branch_on_tensor", {"breaks": "GB0170"}),
        ("slice_to_tensor", {"breaks": "GB0124", "captured": True}),
        ("exit_stack", {"breaks": "GB0007"}),
        ("repeat_interleave_by_tensor", {"breaks": "GB0036", "captured": True}),
    ],
)
def test_a_construct_that_breaks(name: str, expected: dict[str, Any]) -> None:
    assert expected.items() <= _stored("2.13")["constructs"][name].items()


@pytest.mark.parametrize(
    "name",
    [
        "store_number_through_mask",
        "store_tensor_through_mask",
        "index_by_indices",
        "iterate_tensor",
        "repeat_interleave_with_output_size",
        "one_hot_with_classes",
        "compare_shapes",
        "tensor_is_none",
        "assert_tensor",
    ],
)
def test_a_construct_that_does_not_break(name: str) -> None:
    assert name not in _stored("2.13")["constructs"]


def test_what_makes_a_symbol_of_a_symbol() -> None:
    assert _stored("2.13")["symbols"] == ["builtins.abs", "builtins.max", "builtins.min"]


def test_context_managers_that_cannot_be_entered() -> None:
    contexts = _stored("2.13")["contexts"]
    assert contexts["torch.device"]["breaks"] == "GB0142"
    assert contexts["threading.Lock"]["breaks"] == "GB0007"
    assert "breaks" not in contexts.get("torch.no_grad", {})
    assert "breaks" not in contexts.get("torch.autocast", {})


def test_operators_that_fullgraph_captures() -> None:
    table = _stored("2.13")
    assert table["methods"]["item"]["captured"]
    assert table["functions"]["torch.nonzero"]["captured"]
    assert "captured" not in table["methods"]["tolist"]
    assert "captured" not in table["functions"]["torch.allclose"]


def test_modules_that_are_never_traced_are_those_of_torch() -> None:
    skipped = _stored("2.13")["skipped"]
    assert {"copy", "random", "re"} <= set(skipped["standard"])
    assert {"pandas", "tqdm"} <= set(skipped["third_party"])


MEASURE = """
import json, sys
from jitlint.analysis.extract_standard import standard
print(json.dumps(standard([], only=sys.argv[1:])))
"""


@pytest.mark.compiles
def test_the_installed_torch_still_breaks_where_the_table_says() -> None:
    release = Version(metadata.version("torch"))
    minor = f"{release.major}.{release.minor}"
    if minor not in tables.available("torch"):
        pytest.skip(f"there is no table for torch {minor}")
    names = ["time.time", "builtins.print", "builtins.int", "math.floor", "random.Random"]
    names += ["copy.copy", "itertools.groupby"]
    command = [sys.executable, "-c", MEASURE, *names]
    extraction = subprocess.run(command, capture_output=True, text=True, check=True)
    measured = json.loads(extraction.stdout)
    stored = _stored(minor)["standard"]
    assert measured.keys() == stored.keys() & set(names)
    for name, entry in measured.items():
        assert entry.items() <= stored[name].items(), name


@pytest.mark.parametrize(("name", "computes"), [("builtins.pow", True), ("math.sqrt", False)])
def test_what_computes_with_tensors_reads_none(name: str, computes: bool) -> None:
    row = tables.load().standard(name)
    assert row is not None
    assert row.computes is computes


def test_what_export_refuses_though_fullgraph_takes_it() -> None:
    table = tables.load()
    rows = {name: table.method(name) for name in ("__int__", "__bool__", "numpy", "item", "tolist")}
    refused = {name for name, row in rows.items() if row is not None and row.refused}
    assert refused == {"__int__", "__bool__", "numpy"}
    functions = {name: table.function(f"numpy.{name}") for name in ("sin", "sqrt", "mean")}
    refused = {name for name, row in functions.items() if row is not None and row.refused}
    assert refused == {"sin", "sqrt"}  # `np.mean(x)` calls `x.mean()`
    constructs = {name: table.construct(name) for name in ("number_in_tensor", "index_by_mask")}
    refused = {name for name, row in constructs.items() if row is not None and row.refused}
    assert refused == {"number_in_tensor"}


@pytest.mark.parametrize(("name", "dtype"), [("torch.full", "numbers"), ("torch.zeros", "float32")])
def test_the_dtype_of_what_is_made_of_numbers(name: str, dtype: str) -> None:
    row = tables.load().function(name)
    assert row is not None
    assert row.created == dtype
