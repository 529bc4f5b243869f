"""What the table of TensorFlow says, as far as rules rely on it."""

import pytest

from jitlint.analysis import tables
from jitlint.analysis.tables import Operator, Table


@pytest.fixture(scope="module")
def table() -> Table:
    return tables.load("tensorflow", "2.21")


def row(table: Table, name: str) -> Operator:
    found = table.function(name) or table.module(name)
    assert found is not None, name
    return found


def test_it_is_about_tensorflow_and_keras(table):
    assert set(table.roots) == {"tensorflow", "keras"}
    assert table.exact


def test_aliases_have_one_name(table):
    assert table.canonical("tensorflow.keras.layers.Dense") == "keras.layers.Dense"
    assert table.canonical("tensorflow.reduce_sum") == "tensorflow.math.reduce_sum"


@pytest.mark.parametrize("name", ["tensorflow.boolean_mask", "tensorflow.unique"])
def test_a_size_that_depends_on_data(table, name):
    assert row(table, name).dynamic_shape


def test_where_depends_on_data_with_one_argument_only(table):
    where = row(table, "tensorflow.where")
    assert not where.dynamic_shape
    assert where.one_argument is not None
    assert where.one_argument.dynamic_shape


@pytest.mark.parametrize("name", ["tensorflow.cast", "tensorflow.nn.relu", "tensorflow.square"])
def test_an_unknown_shape_stays_unknown(table, name):
    assert row(table, name).keeps_loss
    assert row(table, name).elementwise


@pytest.mark.parametrize("name", ["keras.layers.Dense", "keras.layers.Conv2D", "keras.layers.LSTM"])
def test_layers_need_their_last_dimension(table, name):
    assert row(table, name).needs_rank
    assert row(table, name).needs_last


def test_layers_that_are_not_built_need_nothing(table):
    assert not row(table, "keras.layers.ReLU").needs_rank


def test_only_ensure_shape_takes_none_for_a_size(table):
    assert row(table, "tensorflow.ensure_shape").partial_shape
    for name in ("tensorflow.reshape", "tensorflow.zeros", "tensorflow.random.normal"):
        assert not row(table, name).partial_shape, name
        assert row(table, name).shape_argument is not None, name
