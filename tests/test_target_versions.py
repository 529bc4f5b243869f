"""`target-versions` picks the tables of every rule; a release without one gets the nearest."""

import json
import shutil
import textwrap

import pytest

from jitlint import engine
from jitlint.analysis import tables
from jitlint.config import Settings
from jitlint.rule import load_rules


@pytest.fixture
def add_table(tmp_path, monkeypatch):
    """`add_table(framework, release, change)`: the newest table, changed, for another release."""
    folder = tmp_path / "tables"
    shutil.copytree(tables.FOLDER, folder)
    monkeypatch.setattr(tables, "FOLDER", folder)
    tables.load.cache_clear()

    def add(framework, release, change):
        newest = folder / f"{framework}-{tables.available(framework)[-1]}.json"
        data = json.loads(newest.read_text("utf-8"))
        change(data)
        data["version"] = f"{release}.0"
        (folder / f"{framework}-{release}.json").write_text(json.dumps(data), "utf-8")

    yield add
    tables.load.cache_clear()


BRANCH = """
    import torch

    @torch.compile
    def gate(x):
        if torch.any(x > 0):
            return x * 2
        return x
"""
SIGNATURE = """
    import torch

    @torch.jit.script
    def total(x, dims):
        return torch.cumsum(x, dims)
"""
LOST_SHAPE = """
    import tensorflow as tf

    dense = tf.keras.layers.Dense(4)

    @tf.function
    def embed(data):
        return dense(tf.image.decode_image(data))
"""


def any_is_static(data):
    data["functions"]["torch.any"] = {"returns": "static", "source": "measured"}


def cumsum_is_gone(data):
    del data["operators"]["cumsum"]


def decode_image_keeps_the_shape(data):
    del data["functions"]["tensorflow.image.decode_image"]["loses_shape"]


@pytest.mark.parametrize(
    ("framework", "source", "rule", "changes"),
    [
        ("torch", BRANCH, "trace-branch", {"torch": any_is_static}),
        (
            "torch",
            SIGNATURE,
            "script-signature",
            {"torch": lambda data: None, "torchscript": cumsum_is_gone},
        ),
        ("tensorflow", LOST_SHAPE, "shape-pin", {"tensorflow": decode_image_keeps_the_shape}),
    ],
)
def test_findings_follow_the_target_version(tmp_path, add_table, framework, source, rule, changes):
    newest = tables.available(framework)[-1]
    for each, change in changes.items():
        add_table(each, "9.9", change)
    path = tmp_path / "model.py"
    path.write_text(textwrap.dedent(source))

    def found(targets):
        settings = Settings(cache=False, select=(rule,), target_versions=targets)
        return [each.rule for each in engine.check([path], settings, load_rules()).diagnostics]

    assert found({framework: newest}) == [rule]
    assert found({framework: "9.9.1"}) == []
    assert found({framework: "9.8"}) == []  # the nearest
    assert found({}) == []  # the newest


def test_torchscript_has_a_table_for_each_release_of_torch():
    assert set(tables.available("torch")) <= set(tables.available("torchscript"))
