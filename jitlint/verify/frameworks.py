"""Which framework a file needs, decided by what it imports, and how each is reached."""

import ast
import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from jitlint.verify.records import Options

if TYPE_CHECKING:
    from jitlint.verify.bench import Framework

TORCH, TENSORFLOW, ARRAYS = "torch", "tensorflow", "numpy"
ROOTS = {"torch": TORCH, "tensorflow": TENSORFLOW, "keras": TENSORFLOW}
Stage = Callable[[str], None]


class MissingError(Exception):
    """The framework cannot be used; the message is for the user."""


def framework_of(source: bytes) -> str:
    """TensorFlow's where it is imported and torch is not; of a file that names neither,
    torch's if there is one, as what it imports may."""
    try:
        found = {ROOTS[root] for root in _imported(ast.parse(source)) if root in ROOTS}
    except (SyntaxError, ValueError):
        found = set()
    if found == {TENSORFLOW}:
        return TENSORFLOW
    return TORCH if found or _is_installed(TORCH) else ARRAYS


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def load(name: str, options: Options, stage: Stage) -> "Framework":
    """Imports the framework. Raises MissingError."""
    try:
        return LOADERS[name](options, stage)
    except ImportError as error:
        if error.name == name:
            hint = f"{name} is not installed: pip install 'jitlint[{name}]'"
            raise MissingError(hint) from error
        raise MissingError(f"{name} cannot be imported: {error}") from error
    except RuntimeError as error:
        raise MissingError(str(error)) from error


def _torch(options: Options, stage: Stage) -> "Framework":
    from jitlint.verify.torch_bench import TorchFramework

    return TorchFramework(options, stage)


def _tensorflow(options: Options, stage: Stage) -> "Framework":
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from jitlint.verify.array_bench import ArrayFramework
    from jitlint.verify.tensorflow_library import TensorflowLibrary

    return ArrayFramework(TensorflowLibrary(), options, stage)


def _arrays(options: Options, stage: Stage) -> "Framework":
    from jitlint.verify.array_bench import ArrayFramework
    from jitlint.verify.numpy_library import NumpyLibrary

    return ArrayFramework(NumpyLibrary(), options, stage)


LOADERS: dict[str, Callable[[Options, Stage], "Framework"]] = {
    TORCH: _torch,
    TENSORFLOW: _tensorflow,
    ARRAYS: _arrays,
}
