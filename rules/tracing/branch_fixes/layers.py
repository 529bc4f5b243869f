"""Layers of the project that an arm calls, such as those that LayerDrop skips at random."""

import libcst as cst

from jitlint.analysis.observations import TruthTest
from jitlint.analysis.tree import found_in
from jitlint.analysis.values import Choice, Instance, Value

from .flow import code_of
from .withheld import Withheld


def check_layers(test: TruthTest, branch: cst.If) -> None:
    """Raises Withheld where an arm calls a layer: no selection in a graph means the same.

    Measured with torch 2.13: the backward pass of `torch.cond` computes its arm again, with
    other random numbers, so that the gradients of a layer with dropout are wrong; a layer that
    is skipped gets zeros where its gradients are None. `torch.where` always draws.
    """
    machine = test.moments[0].frame.machine
    for call in found_in(branch.body, cst.Call):
        for value in _options(test.value_of(call.func)):
            if isinstance(value, Instance) and machine.is_module(value.cls):
                code = code_of(call.func)
                raise Withheld(
                    f"an arm calls the layer `{code}`, and `torch.cond` draws its random numbers "
                    "again in the backward pass and gives zeros where a layer that is skipped has "
                    f"no gradient: compile the layers (`{code}.compile()`), not what chooses them"
                )


def _options(value: Value) -> tuple[Value, ...]:
    return tuple(value.options) if isinstance(value, Choice) else (value,)
