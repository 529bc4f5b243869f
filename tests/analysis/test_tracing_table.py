"""The table of what tracers freeze: some of what was measured, and that it can be measured."""

import pytest

from jitlint.analysis import extract_traced, tables
from jitlint.analysis.frame import JIT_TRACE, MAKE_FX, SYMBOLIC_TRACE

TABLE = tables.load("tracing")

OUTCOMES = {
    ("sizes", "builtins.len"): ("frozen", "raises", "frozen"),
    ("sizes", "math.sqrt"): ("frozen", None, "frozen"),
    ("sizes", "math.floor"): ("frozen", None, None),
    ("sizes", "math.prod"): (None, None, None),
    ("data", "torch.Tensor.item"): ("frozen", None, None),
    ("metadata", "dtype"): ("frozen", None, "frozen"),
    ("casts", "type_as"): (None, None, "frozen"),
    ("copies", "data"): ("frozen", None, None),
    ("copies", "torch.Tensor.detach"): (None, None, None),
    ("modes", "torch.no_grad"): ("frozen", "frozen", "frozen"),
    ("modes", "torch.autocast"): (None, "frozen", None),
    ("loops", "tensor"): ("raises", "raises", "frozen"),
}


@pytest.mark.parametrize(("row", "expected"), OUTCOMES.items(), ids=map("-".join, OUTCOMES))
def test_what_each_tracer_makes_of_it(row, expected):
    section, name = row
    tracers = (JIT_TRACE, SYMBOLIC_TRACE, MAKE_FX)
    assert tuple(TABLE.outcome(section, name, tracer) for tracer in tracers) == expected


def test_what_varies_and_what_writes():
    assert TABLE.lists("varies", "time.time")
    assert TABLE.lists("varies", "numpy.random.Generator.normal")
    assert not TABLE.lists("varies", "numpy.random.seed")
    assert TABLE.lists("writes", "logging.Logger.info")
    assert not TABLE.lists("writes", "math.sqrt")
    assert TABLE.instance("numpy.random.default_rng") == "numpy.random.Generator"


def test_which_modules_depend_on_their_mode():
    assert TABLE.lists("mode_dependent", "torch.nn.Dropout")
    assert TABLE.lists("mode_dependent", "torch.nn.BatchNorm2d")
    assert not TABLE.lists("mode_dependent", "torch.nn.LayerNorm")
    assert not TABLE.lists("mode_dependent", "torch.nn.InstanceNorm2d")
    for name, parameter, value, depends in (
        ("torch.nn.Dropout", "p", 0, False),
        ("torch.nn.Dropout", "p", 0.1, True),
        ("torch.nn.BatchNorm2d", "track_running_stats", False, False),
        ("torch.nn.InstanceNorm2d", "track_running_stats", True, True),
        ("torch.nn.MultiheadAttention", "dropout", 0.1, True),
    ):
        given = {parameter: value}
        assert TABLE.depends_on_mode(name, lambda _, key, g=given: g.get(key)) is depends
    assert TABLE.training_position("torch.nn.functional.dropout") == 2
    assert TABLE.training_position("torch.nn.functional.batch_norm") is None


@pytest.mark.compiles
def test_a_probe_measures_what_the_table_says():
    torch = pytest.importorskip("torch")
    probes = {(section, name): rest for section, name, *rest in extract_traced._probes()}
    tracers = extract_traced._tracers()
    for section, name in (("sizes", "builtins.len"), ("copies", "data"), ("casts", "type_as")):
        function, example, other = probes[section, name]
        found = extract_traced._outcome(tracers[JIT_TRACE], function, example, other)
        assert found == (TABLE.outcome(section, name, JIT_TRACE) or "recorded")
    assert torch.__version__
