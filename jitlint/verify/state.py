"""What a compiled target keeps between calls, and how a run gets a fresh one."""

import collections
import copy
import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from jitlint.verify.values import Flat, flatten

_SCALARS = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True, slots=True)
class Target:
    """A function, a bound method or a Module instance."""

    call: Callable[..., Any]

    @property
    def owner(self) -> torch.nn.Module | None:
        holder = self.call.__self__ if inspect.ismethod(self.call) else self.call
        return holder if isinstance(holder, torch.nn.Module) else None

    def fresh(self) -> "Target":
        """A copy that no earlier call has touched. A plain function is its own copy."""
        if inspect.ismethod(self.call) and not isinstance(self.call.__self__, type):
            owner = _copy(self.call.__self__)
            return Target(types.MethodType(self.call.__func__, owner))
        return Target(_copy(self.call) if isinstance(self.call, torch.nn.Module) else self.call)

    def parameters(self) -> dict[str, torch.Tensor]:
        return {} if self.owner is None else dict(self.owner.named_parameters())

    def tensors(self) -> dict[str, torch.Tensor]:
        return (
            {} if self.owner is None else {**self.parameters(), **dict(self.owner.named_buffers())}
        )

    def state(self) -> Flat:
        found: Flat = {}
        for name, tensor in self.tensors().items():
            found.update(flatten(tensor, name))
            found.update(flatten(tensor.grad if tensor.is_leaf else None, f"{name}.grad"))
        holder = self.call.__self__ if inspect.ismethod(self.call) else self.call
        modules = self.owner.named_modules() if self.owner is not None else [("", holder)]
        for prefix, module in modules:
            for name, value in _visible_attributes(module).items():
                found.update(flatten(value, f"{prefix}.{name}".lstrip(".")))
        return found


def copy_weights(source: Target, destination: Target) -> None:
    """The two versions start from the same weights where they have the same ones."""
    old, new = source.owner, destination.owner
    if old is None or new is None:
        return
    weights = old.state_dict()
    other = new.state_dict()
    same = weights.keys() == other.keys() and all(
        _shape(weights[key]) == _shape(other[key]) for key in weights
    )
    if same:
        new.load_state_dict(weights)


class Globals:
    """The plain values and the Modules among a module's globals: put back before a run,
    read after it."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self._namespace = namespace
        self._saved = {
            name: copy.deepcopy(value)
            for name, value in namespace.items()
            if not name.startswith("__") and _is_plain(value) and not isinstance(value, tuple)
        }
        self._modules = {
            name: value
            for name, value in namespace.items()
            if isinstance(value, torch.nn.Module) and not isinstance(value, torch.jit.ScriptModule)
        }
        self._states: dict[str, list[dict[str, Any]]] = {}
        self._holders = dict(_holders(namespace))
        self._held = {name: _held_by(holder) for name, holder in self._holders.items()}

    def keep_common(self, other: "Globals") -> None:
        """Leave out what is another kind of object in the other version: a function that
        TorchScript refuses before the fix is a ScriptFunction after it."""
        tracked: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
            (self._saved, other._saved),
            (self._modules, other._modules),
            (self._holders, other._holders),
        )
        for mine, theirs in tracked:
            for name in [n for n in mine if n not in theirs and n in other._namespace]:
                del mine[name]
        self._held = {name: self._held[name] for name in self._holders}

    def copy_weights(self, other: "Globals") -> None:
        for name, module in self._modules.items():
            if name in other._modules:
                copy_weights(Target(other._modules[name]), Target(module))

    def to(self, device: str) -> None:
        for name, module in self._modules.items():
            module.to(device)
            self._states[name] = [_module_state(part) for part in module.modules()]

    def restore(self) -> None:
        for name, value in self._saved.items():
            self._namespace[name] = _refill(self._namespace.get(name), value)
        for name, held in self._held.items():
            _restore_held(self._holders[name], held)
        for name, saved in self._states.items():
            for part, state in zip(self._modules[name].modules(), saved, strict=False):
                _restore_module(part, state)

    def parameters(self, target: Target) -> dict[str, torch.Tensor]:
        """Those of the global Modules, which a function may use without being given them."""
        return {
            f"{name}.{key}": parameter
            for name, module in self._modules.items()
            if type(module) is not type(target.owner)
            for key, parameter in module.named_parameters()
        }

    def state(self) -> Flat:
        found: Flat = {}
        for name in self._saved:
            found.update(flatten(self._namespace.get(name), f"global {name}"))
        for name, holder in self._holders.items():
            found.update(flatten(_seen_of(_held_by(holder)), f"global {name}"))
        for name, module in self._modules.items():
            found.update(
                {f"global {name}.{key}": leaf for key, leaf in Target(module).state().items()}
            )
        return found


Held = dict[str, Any]


def _holders(namespace: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Objects, classes and functions of the module itself, which may keep a state."""
    own = namespace.get("__name__")
    for name, value in list(namespace.items()):
        if name.startswith("__") or isinstance(value, torch.nn.Module):
            continue
        if isinstance(value, types.FunctionType | type):
            if value.__module__ == own:
                yield name, value
        elif type(value).__module__ == own and hasattr(value, "__dict__"):
            yield name, value


def _held_by(holder: Any) -> Held:
    """A copy of the plain values that a holder keeps; default arguments are among them."""
    plain = {
        name: value
        for name, value in vars(holder).items()
        if not name.startswith("__") and _is_plain(value)
    }
    defaults = getattr(holder, "__defaults__", None) or ()
    return copy.deepcopy(plain) | {
        f"default {index}": copy.deepcopy(value)
        for index, value in enumerate(defaults)
        if _is_plain(value)
    }


def _seen_of(held: Held) -> Held:
    """A default may become immutable: TorchScript takes no list there."""
    return {
        name: tuple(value) if name.startswith("default ") and isinstance(value, list) else value
        for name, value in held.items()
    }


def _restore_held(holder: Any, held: Held) -> None:
    for name, value in vars(holder).copy().items():
        if not name.startswith("__") and _is_plain(value) and name not in held:
            delattr(holder, name)
    for index, value in enumerate(getattr(holder, "__defaults__", None) or ()):
        if f"default {index}" in held:
            _refill(value, held[f"default {index}"])
    for name, value in held.items():
        if not name.startswith("default "):
            setattr(holder, name, _refill(vars(holder).get(name), value))


def _module_state(module: torch.nn.Module) -> dict[str, Any]:
    tensors = (module._parameters, module._buffers)
    found: dict[str, Any] = {
        name: tensor.detach().clone()
        for held in tensors
        for name, tensor in held.items()
        if tensor is not None
    }
    return found | copy.deepcopy(dict(_plain_attributes(module)))


def _restore_module(module: torch.nn.Module, saved: Mapping[str, Any]) -> None:
    for name, value in saved.items():
        present = getattr(module, name, None)
        if isinstance(present, torch.Tensor) and isinstance(value, torch.Tensor):
            present.data.copy_(value)
            present.grad = None
        elif not isinstance(present, torch.Tensor):
            setattr(module, name, copy.deepcopy(value))


def _refill(present: object, saved: object) -> object:
    """Lists, dicts, sets and tensors are refilled in place: others may hold them."""
    fresh = copy.deepcopy(saved)
    if type(present) is not type(saved):
        return fresh
    if isinstance(present, list) and isinstance(fresh, list):
        present[:] = fresh
    elif isinstance(present, collections.deque) and isinstance(fresh, collections.deque):
        present.clear()
        present.extend(fresh)
    elif isinstance(present, (dict, set)) and isinstance(fresh, (dict, set)):
        present.clear()
        present.update(fresh)
    elif isinstance(present, torch.Tensor) and isinstance(fresh, torch.Tensor):
        if present.shape != fresh.shape:
            return fresh
        present.data.copy_(fresh.data)
        present.grad = None
    else:
        return fresh
    return present


def _is_plain(value: object) -> bool:
    if isinstance(value, _SCALARS):
        return True
    if type(value) in (list, tuple, set, collections.deque):
        return all(_is_plain(item) for item in value)  # type: ignore[attr-defined]
    if type(value) is dict:
        return all(_is_plain(key) and _is_plain(item) for key, item in value.items())
    return isinstance(value, torch.Tensor) and value.is_leaf


def _visible_attributes(holder: object) -> Mapping[str, object]:
    """The plain ones, and tensors that came out of a computation: they can be read only."""
    attributes = getattr(holder, "__dict__", {})
    computed = {
        name: value for name, value in attributes.items() if isinstance(value, torch.Tensor)
    }
    return {**_plain_attributes(holder), **computed}


def _plain_attributes(holder: object) -> Mapping[str, object]:
    attributes = getattr(holder, "__dict__", {})
    hidden = isinstance(holder, torch.nn.Module)
    return {
        name: value
        for name, value in attributes.items()
        if _is_plain(value) and not (hidden and name.startswith("_"))
    }


def _copy(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except Exception:
        return value  # holds something that cannot be copied; it is shared between runs


def _shape(value: object) -> object:
    return value.shape if isinstance(value, torch.Tensor) else type(value)
