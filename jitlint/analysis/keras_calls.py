"""Layers and models of Keras: what is traced when they are called, compiled and fitted."""

from collections.abc import Iterable
from dataclasses import replace

import libcst as cst

from jitlint.analysis import shapes
from jitlint.analysis.calls import Arguments, handles, rebind, unknown_callee
from jitlint.analysis.frame import Frame
from jitlint.analysis.makers import KERAS_COMPILE, makers
from jitlint.analysis.operators import leaves_of
from jitlint.analysis.values import (
    NONE,
    STATIC,
    ExternalInstance,
    Function,
    Instance,
    Static,
    Value,
    is_callable,
    is_true,
)
from jitlint.project.modules import ClassInfo, FunctionInfo


def called(
    frame: Frame,
    instance: Instance,
    method: FunctionInfo,
    arguments: Arguments,
    node: cst.BaseExpression,
) -> Value:
    """In a graph the layer's method is a part of it; in Python it may be part of a model."""
    machine = frame.machine
    if frame.region is None or not frame.in_graph:
        machine.symbolic_calls.setdefault((frame.module, frame.function), []).append(instance)
        if any(map(shapes.is_symbolic, arguments.all())):
            machine.request_symbolic(frame, instance, method, arguments, node)
        return unknown_callee(arguments)
    region = replace(frame.region, kind=machine.kind_inside(instance.cls, frame.region.kind))
    inside = replace(frame, region=region)
    return machine.call(inside, Function(method), arguments.after(instance))


KERAS_OPTIONS = (5, "run_eagerly"), (7, "jit_compile")
"""Parameters of `keras.Model.compile` that say what runs the model (keras 3.15)."""


KERAS_FUNCTIONS = (1, "loss"), (3, "metrics"), (4, "weighted_metrics")
"""Parameters that take functions, which are traced with the model."""


def _classes_of(frame: Frame, model: Value) -> Iterable[ClassInfo]:
    """The class of a Keras model, and those of the layers that it holds. A Sequential and a
    functional model call theirs on symbols all the same (measured)."""
    if isinstance(model, Instance) and frame.machine.is_keras(model.cls):
        yield model.cls
        for held in frame.machine.attributes(model.cls).values():
            if held != model:
                yield from _classes_of(frame, held)


def compiled(frame: Frame, model: Value, arguments: Arguments, node: cst.BaseExpression) -> Value:
    given = {name: arguments.get(position, name) for position, name in KERAS_OPTIONS}
    options = {name: value for name, value in given.items() if value is not None}
    if is_true(options.get("run_eagerly")):
        frame.machine.eager_models.update(_classes_of(frame, model))
    is_fused = is_true(options.get("jit_compile"))
    if isinstance(model, ExternalInstance) and model.is_fused is not is_fused:
        rebind(frame, node, replace(model, is_fused=is_fused))
    elif isinstance(model, Instance):
        fused = frame.machine.fused_models
        (fused.add if is_fused else fused.discard)(model.cls)
    functions = [arguments.get(position, name) or NONE for position, name in KERAS_FUNCTIONS]
    for target in (model, *filter(is_callable, leaves_of(functions))):
        maker = makers()[KERAS_COMPILE]
        frame.machine.make_region(frame, maker, Arguments([target], options), node)
    return NONE


@handles("keras.layers.Lambda")
def _lambda(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    function = arguments.get(0, "function")
    if function is not None and is_callable(function):
        frame.machine.make_region(frame, makers()[KERAS_COMPILE], Arguments([function]), node)
    return ExternalInstance(name)


STATE_QUERIES = {"tensorflow.executing_eagerly": False, "tensorflow.inside_function": True}
"""What these functions return in a graph."""


@handles(*STATE_QUERIES)
def _state_query(frame: Frame, name: str, arguments: Arguments, node: cst.BaseExpression) -> Value:
    return Static(STATE_QUERIES[name]) if frame.in_graph else STATIC
