"""Statements: how each of them changes the variables of a frame.

`execute` returns whether control can reach what follows.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import libcst as cst

from jitlint.analysis import freezing, once, shapes
from jitlint.analysis.annotations import annotated_value
from jitlint.analysis.batches import loaders_of, may_end_early, whole
from jitlint.analysis.expressions import (
    branch,
    evaluate,
    evaluate_index,
    evaluate_target_path,
    iterated,
    observe_scalar_indices,
)
from jitlint.analysis.frame import Frame, Loop, Variables, join_variables
from jitlint.analysis.makers import NO_GRADIENTS
from jitlint.analysis.observations import Construct, Use
from jitlint.analysis.operators import binary
from jitlint.analysis.process import is_setting
from jitlint.analysis.scope import names_read, names_written
from jitlint.analysis.values import (
    MAX_ITEMS,
    NONE,
    STATIC,
    UNKNOWN,
    Class,
    Dict,
    External,
    ExternalInstance,
    Function,
    Instance,
    Sequence,
    StaticShape,
    Tensor,
    Tuple,
    Unknown,
    Value,
    element_of,
    is_constant,
    is_tensor,
    join,
)
from jitlint.project.index import absolute
from jitlint.project.modules import define_class, statements_of

PASSES = 2
"""Two passes over a loop body were as good as a fixed point on the measured break sites."""
MAX_NESTED = 4
"""Loops nested deeper make one pass each: those around them pass by them often enough."""


def execute_block(frame: Frame, block: cst.CSTNode) -> bool:
    return all(execute(frame, statement) for statement in statements_of(block))


def execute(frame: Frame, statement: cst.CSTNode) -> bool:
    handler = STATEMENTS.get(type(statement))
    return handler(frame, statement) if handler is not None else True


# -- bindings ------------------------------------------------------------------------------


def bind(frame: Frame, target: cst.CSTNode, value: Value) -> None:
    """Assign to a name, an attribute, a subscript, or a tuple of those."""
    match target:
        case cst.Name(value=name):
            if frame.region is None and (frame.function is None or name in frame.globals):
                frame.machine.changes.note(frame.module, name, target, frame)
            frame.assign(name, UNKNOWN if name in frame.globals else value)
        case cst.Attribute():
            _bind_attribute(frame, target, value)
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            _bind_elements(frame, elements, value)
        case cst.StarredElement() | cst.Element():
            bind(frame, target.value, value)
        case cst.Subscript():
            _bind_item(frame, target, value)


def _bind_elements(frame: Frame, targets: "Iterable[cst.BaseElement]", value: Value) -> None:
    elements = list(targets)
    if isinstance(value, StaticShape):
        if value.shape.lost is not None and elements:
            frame.observe_need(value.shape.lost, elements[0].value)
        value = shapes.unpacked(value.shape, len(elements))
    starred = [i for i, e in enumerate(elements) if isinstance(e, cst.StarredElement)]
    if isinstance(value, Tuple) and not starred and len(value.items) == len(elements):
        for element, item in zip(elements, value.items, strict=True):
            bind(frame, element.value, item)
        return
    if isinstance(value, Tuple) and starred and len(value.items) >= len(elements) - 1:
        _bind_starred(frame, elements, starred[0], value.items)
        return
    item = element_of(value)
    for element in elements:
        is_rest = isinstance(element, cst.StarredElement)
        bind(frame, element.value, Sequence(item) if is_rest else item)


def _bind_starred(
    frame: Frame, elements: "list[cst.BaseElement]", star: int, items: tuple[Value, ...]
) -> None:
    after = len(elements) - star - 1
    middle = items[star : len(items) - after]
    values = [*items[:star], Tuple(middle), *items[len(items) - after :]]
    for element, item in zip(elements, values, strict=True):
        bind(frame, element.value, item)


def _bind_attribute(frame: Frame, target: cst.Attribute, value: Value) -> None:
    receiver = evaluate(frame, target.value)
    if is_tensor(receiver):
        row = frame.machine.torch.store(target.attr.value)
        frame.observe_operation(target, row, Use.STORE, (receiver, value))
    if isinstance(receiver, Tensor) and target.attr.value == "requires_grad":
        frame.set_grad(target.value, receiver, value)
    if isinstance(receiver, Function):
        row = frame.machine.torch.construct("store_on_function")
        frame.observe_operation(target, row, Use.STORE, (value,))
    if isinstance(receiver, Instance):
        frame.machine.store_attribute(receiver.cls, target.attr.value, value)
        if frame.region is None:
            frame.machine.changes.note(receiver.cls, target.attr.value, target, frame)
    path = evaluate_target_path(target)
    if path is not None:
        frame.assign(path, value)


def _bind_item(frame: Frame, target: cst.Subscript, value: Value) -> None:
    container = evaluate(frame, target.value)
    index = evaluate_index(frame, target)
    if container == External(once.ENVIRONMENT):
        row = frame.machine.torch.construct("store_to_environment")
        frame.observe_operation(target, row, Use.STORE, (value,))
    if is_tensor(container):
        observe_scalar_indices(frame, target, index, "store_at_scalar", "store_through_scalar_mask")
    if frame.records:
        once.by_item(frame, target, container, value)
    elif frame.region is None and isinstance(container, Dict):
        once.note_item_store(frame, target)
    path = evaluate_target_path(target.value)
    if path is None:
        return
    match container:
        case Dict():
            key = _constant_key(frame, target)
            if key is not None and len(container.items) < MAX_ITEMS:
                items = {**dict(container.items), key: value}
                frame.assign(path, replace(container, items=tuple(items.items())))
            else:
                known = container.default
                default = known if container.gathered else join(known, value)
                frame.assign(path, replace(container, default=default, closed=False))
        case Tuple(gathered=True):
            return
        case Sequence() | Tuple():
            frame.assign(path, Sequence(join(element_of(container), value)))


def _constant_key(frame: Frame, target: cst.Subscript) -> object:
    if len(target.slice) == 1 and isinstance(target.slice[0].slice, cst.Index):
        key = evaluate(frame, target.slice[0].slice.value)
        if is_constant(key):
            return key.const
    return None


def _assign(frame: Frame, node: cst.Assign) -> bool:
    value = evaluate(frame, node.value)
    for target in node.targets:
        if frame.records and isinstance(target.target, cst.Name | cst.Attribute):
            with frame.quiet():
                old = evaluate(frame, target.target)
            once.by_store(frame, target.target, old, node.value)
        bind(frame, target.target, value)
    return True


def _annotated_assign(frame: Frame, node: cst.AnnAssign) -> bool:
    declared = annotated_value(frame, node.annotation.annotation)
    if node.value is not None:
        value = evaluate(frame, node.value)
        bind(frame, node.target, declared if isinstance(value, Unknown) else value)
    return True


def _augmented_assign(frame: Frame, node: cst.AugAssign) -> bool:
    left = evaluate(frame, node.target)
    right = evaluate(frame, node.value)
    if frame.records:
        once.by_store(frame, node.target, left, None)
    if shapes.is_open(left) or shapes.is_open(right):
        shapes.used(frame, node.value, left, right)
    if isinstance(left, Tuple | Sequence) and isinstance(right, Tuple | Sequence):
        bind(frame, node.target, Sequence(join(element_of(left), element_of(right))))
        return True
    if not isinstance(node.target, cst.Subscript):
        bind(frame, node.target, binary(type(node.operator).__name__, left, right))
    return True


def _delete(frame: Frame, node: cst.Del) -> bool:
    if isinstance(node.target, cst.Name):
        frame.variables.pop(node.target.value, None)
    return True


def _expression(frame: Frame, node: cst.Expr) -> bool:
    if not isinstance(node.value, cst.SimpleString):
        evaluate(frame, node.value)
    return True


def _global(frame: Frame, node: cst.Global | cst.Nonlocal) -> bool:
    for item in node.names:
        frame.globals.add(item.name.value)
        frame.variables[item.name.value] = UNKNOWN
    return True


def _function(frame: Frame, node: cst.FunctionDef) -> bool:
    info = frame.machine.nested_function(frame, node)
    closure = frame.machine.closure_of(frame)
    function: Value = Function(info, closure)
    for decorator in reversed(info.decorators):
        function = frame.machine.decorate(frame, evaluate(frame, decorator), function, decorator)
    frame.assign(node.name.value, function)
    return True


def _class(frame: Frame, node: cst.ClassDef) -> bool:
    row = frame.machine.torch.construct("class_in_region")
    frame.observe_operation(node, row, Use.DEFINITION)
    known = frame.module.classes.get(node.name.value)
    info = known if known is not None and known.node is node else None
    if info is None:
        info = define_class(frame.module, node, "")
    value: Value = Class(info)
    for decorator in reversed(node.decorators):
        decorated = evaluate(frame, decorator.decorator)
        value = frame.machine.decorate(frame, decorated, value, decorator.decorator)
    frame.assign(node.name.value, value)
    return True


def _import(frame: Frame, node: cst.Import) -> bool:
    for alias in node.names:
        dotted = _dotted(alias.name)
        if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
            frame.assign(alias.asname.name.value, frame.machine.named(dotted))
        else:
            root = dotted.partition(".")[0]
            frame.assign(root, frame.machine.named(root))
    return True


def _import_from(frame: Frame, node: cst.ImportFrom) -> bool:
    if isinstance(node.names, cst.ImportStar):
        return True
    module = _dotted(node.module) if node.module is not None else None
    base = absolute(module, len(node.relative), frame.module.package)
    for alias in node.names:
        name = _dotted(alias.name)
        local = alias.asname.name.value if alias.asname is not None else name  # type: ignore[union-attr]
        frame.assign(local, frame.machine.named(f"{base}.{name}"))
    return True


def _dotted(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Attribute):
        return f"{_dotted(node.value)}.{node.attr.value}"
    return node.value if isinstance(node, cst.Name) else ""


# -- control flow --------------------------------------------------------------------------


def _if(frame: Frame, node: cst.If) -> bool:
    decided, when_true, when_false = branch(frame, node.test, Construct.IF, node)
    ragged = _judged_batches(frame, node, when_true)
    when_true |= {path: whole(value) for path, value in ragged.items()}
    when_false |= {path: whole(value) for path, value in ragged.items()}
    ends: list[Variables | None] = [None, None]
    asked, settled = frame.settled, []
    with frame.under(setting=decided is None and is_setting(frame, node.test)):
        if decided is not False:
            frame.variables = when_true
            ends[0] = frame.variables if execute_block(frame, node.body) else None
            settled += [] if ends[0] is None else [frame.settled]
        if decided is not True:
            frame.variables, frame.settled = when_false, asked
            falls = True
            if isinstance(node.orelse, cst.If):
                falls = _if(frame, node.orelse)
            elif node.orelse is not None:
                falls = execute_block(frame, node.orelse.body)
            ends[1] = frame.variables if falls else None
            settled += [frame.settled] if falls else []
    frame.settled = frozenset.intersection(*settled) if settled else asked
    after = join_variables(*ends)
    if after is not None and None not in ends:
        after |= ragged  # either way goes on
    return _continue_with(frame, after)


def _judged_batches(frame: Frame, node: cst.If, variables: Variables) -> Variables:
    """The batches that may be smaller last ones, but not behind a test of what changes with
    the rounds of a loop: that may well be there to let others pass only."""
    if frame.region is not None or not frame.loops:
        return {}
    if frame.loops[-1].bound.isdisjoint(names_read(node.test)):
        return {}
    kept = {path: value for path, value in variables.items() if any(loaders_of(value))}
    written = names_written(node) if kept else frozenset()
    return {path: value for path, value in kept.items() if path.partition(".")[0] not in written}


def _continue_with(frame: Frame, variables: Variables | None) -> bool:
    if variables is None:
        return False
    frame.variables = variables
    return True


def _for(frame: Frame, node: cst.For) -> bool:
    collection = evaluate(frame, node.iter)
    if frame.tracer:
        freezing.by_loop(frame, collection, node.iter)
    element = iterated(frame, node.iter, collection)
    if frame.region is None and may_end_early(node.body):
        element = whole(element)
    start: Variables | None = frame.variables
    breaks: Variables | None = None
    outside = once.outside_of_loop(frame, collection)
    for _ in range(_passes(frame)):
        loop = Loop(outside=outside, bound=names_written(node))
        frame.loops.append(loop)
        frame.variables = dict(start or {})
        bind(frame, node.target, element)
        end = frame.variables if execute_block(frame, node.body) else None
        frame.loops.pop()
        start = _join_many([start, end, *loop.continues])
        breaks = _join_many([breaks, *loop.breaks])
    return _after_loop(frame, node, start, breaks)


def _while(frame: Frame, node: cst.While) -> bool:
    start: Variables | None = frame.variables
    breaks: Variables | None = None
    leave: Variables | None = None
    for _ in range(_passes(frame)):
        if start is None:
            break
        frame.variables = dict(start)
        decided, when_true, when_false = branch(frame, node.test, Construct.WHILE, node)
        leave = None if decided is True else when_false
        if decided is False:
            break
        loop = Loop(bound=names_written(node))
        frame.loops.append(loop)
        frame.variables = when_true
        falls = execute_block(frame, node.body)
        frame.loops.pop()
        start = _join_many([start, frame.variables if falls else None, *loop.continues])
        breaks = _join_many([breaks, *loop.breaks])
        leave = None if decided is True else _join_many([leave, start])
    return _after_loop(frame, node, leave, breaks)


def _passes(frame: Frame) -> int:
    return PASSES if len(frame.loops) < MAX_NESTED else 1


def _after_loop(
    frame: Frame, node: cst.For | cst.While, end: Variables | None, breaks: Variables | None
) -> bool:
    if end is not None and node.orelse is not None:
        frame.variables = end
        end = frame.variables if execute_block(frame, node.orelse.body) else None
    return _continue_with(frame, join_variables(end, breaks))


def _join_many(environments: list[Variables | None]) -> Variables | None:
    joined: Variables | None = None
    for environment in environments:
        joined = join_variables(joined, environment)
    return joined


def _break(frame: Frame, node: cst.Break) -> bool:
    if frame.loops:
        frame.loops[-1].breaks.append(frame.variables)
    return False


def _continue(frame: Frame, node: cst.Continue) -> bool:
    if frame.loops:
        frame.loops[-1].continues.append(frame.variables)
    return False


def _return(frame: Frame, node: cst.Return) -> bool:
    value = NONE if node.value is None else evaluate(frame, node.value)
    if frame.tracer and node.value is not None:
        freezing.as_result(frame, value, node.value)
    frame.returned.append(value)
    return False


def _raise(frame: Frame, node: cst.Raise) -> bool:
    if node.exc is not None:
        with frame.quiet():
            evaluate(frame, node.exc)
    return False


def _assert(frame: Frame, node: cst.Assert) -> bool:
    decided, when_true, _ = branch(frame, node.test, Construct.ASSERT, node)
    if decided is False:
        return False
    frame.variables = when_true
    return True


def _try(frame: Frame, node: cst.Try) -> bool:
    before = dict(frame.variables)
    falls = execute_block(frame, node.body)
    if falls and node.orelse is not None:
        falls = execute_block(frame, node.orelse.body)
    end = frame.variables if falls else None
    caught = join_variables(before, frame.variables) or before
    for handler in node.handlers:
        frame.variables = dict(caught)
        if handler.name is not None:
            bind(frame, handler.name.name, STATIC)
        with frame.guarded(STATIC, exempt=False):  # whether it runs is not known
            falls = execute_block(frame, handler.body)
        if falls:
            end = join_variables(end, frame.variables)
    if node.finalbody is not None:
        frame.variables = dict(end if end is not None else caught)
        if not execute_block(frame, node.finalbody.body):
            return False
        return end is not None
    return _continue_with(frame, end)


def _with(frame: Frame, node: cst.With) -> bool:
    contexts = []
    for item in node.items:
        context = evaluate(frame, item.item)
        _observe_context(frame, item.item, context)
        entered = frame.machine.entered(frame, context, item.item)
        if item.asname is not None:
            bind(frame, item.asname.name, entered)
        contexts.append(context)
    off = sum(_switches_gradients_off(frame, item.item) for item in node.items)
    frame.machine.no_gradients += off
    falls = execute_block(frame, node.body)
    frame.machine.no_gradients -= off
    for context in reversed(contexts):
        frame.machine.left(frame, context)
    return falls


def _switches_gradients_off(frame: Frame, node: cst.BaseExpression) -> bool:
    made_by = evaluate(frame, node.func) if isinstance(node, cst.Call) else UNKNOWN
    return isinstance(made_by, External) and made_by.name in NO_GRADIENTS


def _observe_context(frame: Frame, node: cst.BaseExpression, context: Value) -> None:
    """Tell the log of a context manager that is entered."""
    entered = evaluate(frame, node.func) if isinstance(node, cst.Call) else context
    if isinstance(entered, External | ExternalInstance):
        row = frame.machine.torch.context(entered.name)
        is_made_here = isinstance(node, cst.Name) and node.value in frame.variables
        if row is not None and not (isinstance(node, cst.Call) or is_made_here):
            row = replace(row, breaks=row.held)
        frame.observe_operation(node, row, Use.CONTEXT)
        if frame.tracer:
            freezing.in_mode(frame, entered.name, node)


def _match(frame: Frame, node: cst.Match) -> bool:
    subject = evaluate(frame, node.subject)
    before = frame.variables
    end: Variables | None = before
    for case in node.cases:
        frame.variables = dict(before)
        if is_tensor(subject) and _compares(case.pattern):
            frame.observe(node.subject, subject, Construct.MATCH, node)
        for name in _captured(case.pattern):
            frame.assign(name, subject if isinstance(case.pattern, cst.MatchAs) else UNKNOWN)
        when_true = frame.variables
        if case.guard is not None:
            _, when_true, _ = branch(frame, case.guard, Construct.MATCH, node)
        frame.variables = when_true
        if execute_block(frame, case.body):
            end = join_variables(end, frame.variables)
    return _continue_with(frame, end)


def _compares(pattern: cst.CSTNode) -> bool:
    """Whether a pattern asks its subject for equality."""
    if isinstance(pattern, cst.MatchValue):
        return True
    return isinstance(pattern, cst.MatchOr) and any(_compares(e.pattern) for e in pattern.patterns)


def _captured(pattern: cst.CSTNode) -> list[str]:
    names: list[str] = []
    if isinstance(pattern, cst.MatchAs | cst.MatchStar) and pattern.name is not None:
        names.append(pattern.name.value)
    for child in pattern.children:
        names.extend(_captured(child))
    return names


def _nothing(frame: Frame, node: cst.CSTNode) -> bool:
    return True


STATEMENTS: dict[type[cst.CSTNode], Callable[[Frame, Any], bool]] = {
    cst.AnnAssign: _annotated_assign,
    cst.Assert: _assert,
    cst.Assign: _assign,
    cst.AugAssign: _augmented_assign,
    cst.Break: _break,
    cst.ClassDef: _class,
    cst.Continue: _continue,
    cst.Del: _delete,
    cst.Expr: _expression,
    cst.For: _for,
    cst.FunctionDef: _function,
    cst.Global: _global,
    cst.If: _if,
    cst.Import: _import,
    cst.ImportFrom: _import_from,
    cst.Match: _match,
    cst.Nonlocal: _global,
    cst.Pass: _nothing,
    cst.Raise: _raise,
    cst.Return: _return,
    cst.Try: _try,
    cst.TryStar: _try,
    cst.While: _while,
    cst.With: _with,
}
