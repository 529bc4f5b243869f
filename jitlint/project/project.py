"""The files of a project by path and by dotted name, read on demand."""

import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from jitlint.project.index import Binding, BindingKind
from jitlint.project.modules import ClassInfo, FunctionInfo, Module

Definition = Module | FunctionInfo | ClassInfo

LIBRARIES = frozenset(
    {
        *("torch", "numpy", "numba", "tensorflow"),
        *("abc", "builtins", "collections", "copy", "dataclasses", "enum", "functools"),
        *("itertools", "math", "typing", "typing_extensions", "warnings"),
    }
)
"""What these names mean is known. A `torch.py` beside some script of the project shadows the
library for that script at most, not for all others."""


class Project:
    """Modules that the run was given, and those that they import from the same folders."""

    def __init__(self, files: Mapping[Path, bytes]) -> None:
        self.files = tuple(files)
        self._modules: dict[Path, Module | None] = {
            path: Module(path, module_name(path), data) for path, data in files.items()
        }
        self._names: dict[str, Module | None] = {}
        self._resolved: dict[str, tuple[Definition, str] | None] = {}

    @property
    def modules(self) -> list[Module]:
        """The modules that the run was given, in order."""
        return [module for path in self.files if (module := self._modules[path]) is not None]

    @property
    def followed(self) -> frozenset[Path]:
        """The files beyond those that were read, or looked for, to resolve imports."""
        return frozenset(self._modules) - frozenset(self.files)

    @cached_property
    def roots(self) -> tuple[Path, ...]:
        """Folders that absolute imports start from: above each package, beside each file."""
        folders = {path.parent for path in self.files}
        return tuple(sorted({_root_of(folder) for folder in folders}))

    def module_at(self, path: Path) -> Module | None:
        if path not in self._modules:
            self._modules[path] = _read(path)
        return self._modules[path]

    def module(self, name: str) -> Module | None:
        """The module called `name` (dotted), or None if the project has none."""
        if name not in self._names:
            self._names[name] = self._find(name)
        return self._names[name]

    def _find(self, name: str) -> Module | None:
        first = name.partition(".")[0]
        if not first or first in LIBRARIES:  # `from . import x` where there is no package
            return None
        relative = Path(*name.split("."))
        for root in self.roots:
            for candidate in (root / relative / "__init__.py", root / relative.with_suffix(".py")):
                if candidate.is_file():
                    module = self.module_at(candidate)
                    return None if module is not None and _means_library(module) else module
        return None

    def resolve(self, dotted: str) -> tuple[Definition, str] | None:
        """The definition that a dotted name leads to, and the attributes left over.

        `pkg.mod.Class.method` gives (Class, "method"); a name that is assigned in a module
        gives (module, name). None when the name is not of this project.
        """
        if dotted not in self._resolved:
            self._resolved[dotted] = None  # while it is looked up: imports may be circular
            self._resolved[dotted] = self._resolve(dotted)
        return self._resolved[dotted]

    def _resolve(self, dotted: str) -> tuple[Definition, str] | None:
        parts = dotted.split(".")
        for end in range(len(parts), 0, -1):
            module = self.module(".".join(parts[:end]))
            if module is None:
                continue
            if end == len(parts):
                return module, ""
            found = self._lookup(module, parts[end], frozenset())
            if found is None:
                return module, ".".join(parts[end:])
            definition, rest = found
            return self._descend(definition, [*filter(None, rest.split(".")), *parts[end + 1 :]])
        return None

    def _descend(self, definition: Definition, rest: list[str]) -> tuple[Definition, str] | None:
        """Attributes of a module that an import led to may be definitions themselves."""
        if rest and isinstance(definition, Module):
            binding = self.binding(definition, rest[0])
            if binding is None or binding.kind is not BindingKind.ASSIGNMENT:
                found = self.resolve(".".join([definition.name, *rest]))
                return found or (definition, ".".join(rest))
        return definition, ".".join(rest)

    def _lookup(
        self, module: Module, name: str, seen: frozenset[Module]
    ) -> tuple[Definition, str] | None:
        """A top-level name of a module; None when the module does not bind it."""
        binding = self.binding(module, name)
        if binding is None:
            return self._starred(module, name, seen | {module})
        if binding.kind is BindingKind.IMPORT:
            return self.resolve(binding.target)
        if binding.kind is BindingKind.FUNCTION and name in module.functions:
            return module.functions[name], ""
        if binding.kind is BindingKind.CLASS and name in module.classes:
            return module.classes[name], ""
        return module, name

    def _starred(
        self, module: Module, name: str, seen: frozenset[Module]
    ) -> tuple[Definition, str] | None:
        if name.startswith("_"):
            return None
        for star in module.facts.stars:
            other = self.module(star)
            if other is not None and other not in seen:
                found = self._lookup(other, name, seen)
                if found is not None:
                    return found
        return None

    def binding(self, module: Module, name: str) -> Binding | None:
        return module.facts.bindings.get(name)


def _means_library(module: Module) -> bool:
    """Whether a file with the name of a library, such as `uuid.py`, imports that library."""
    if module.name not in sys.stdlib_module_names:
        return False
    targets = (binding.target for binding in module.facts.bindings.values())
    return any(target.partition(".")[0] == module.name for target in targets)


def _root_of(folder: Path) -> Path:
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    return folder


def module_name(path: Path) -> str:
    """The dotted name under which a file is imported."""
    root = _root_of(path.parent)
    parts = list(path.relative_to(root).with_suffix("").parts)
    if parts[-1] == "__init__" and len(parts) > 1:
        parts.pop()
    return ".".join(parts)


def _read(path: Path) -> Module | None:
    try:
        return Module(path, module_name(path), path.read_bytes())
    except OSError:
        return None
