"""What is decided once for a whole process: variables of modules that come from constants and
from the environment."""

import sys

import libcst as cst

from jitlint.analysis.frame import Frame
from jitlint.analysis.scope import names_read
from jitlint.analysis.values import External, Optional, Static, Unknown, Value
from jitlint.project.index import BindingKind
from jitlint.project.modules import Module

PLAIN = (Static, Unknown, Optional)
"""Values that do not change in place."""


def is_setting(frame: Frame, test: cst.BaseExpression) -> bool:
    """Whether a test asks for nothing but settings: its outcome is one for the process."""
    local = frame.variables.keys() | (frame.closure.variables.keys() if frame.closure else ())
    names = names_read(test)
    return bool(names) and names.isdisjoint(local) and _all_settings(frame, frame.module, names)


def _all_settings(frame: Frame, module: Module, names: frozenset[str]) -> bool:
    return all(_is_setting(frame, module, name) for name in names)


def _is_setting(frame: Frame, module: Module, name: str) -> bool:
    known = frame.machine.settings
    key = module, name
    if key not in known:
        known[key] = False  # while it is looked up
        known[key] = _is_decided_once(frame, module, name)
    return known[key]


def _is_decided_once(frame: Frame, module: Module, name: str) -> bool:
    binding = frame.machine.project.binding(module, name)
    value = frame.machine.global_value(module, name)
    if binding is None:
        return isinstance(value, Static) or _is_standard(value, f"builtins.{name}")
    if binding.kind is BindingKind.ASSIGNMENT:
        assigned = module.assignments.get(name, [])
        return isinstance(value, PLAIN) and _all_settings(frame, module, names_read(*assigned))
    if binding.kind is not BindingKind.IMPORT:
        return False
    found = frame.machine.project.resolve(binding.target)
    if found is None:
        return _is_standard(value, binding.target)
    source, attribute = found
    return isinstance(source, Module) and bool(attribute) and _is_setting(frame, source, attribute)


def _is_standard(value: Value, dotted: str) -> bool:
    """Whether a name leads into the standard library."""
    is_outside = isinstance(value, External)
    return is_outside and dotted.partition(".")[0] in sys.stdlib_module_names
