"""Numba: there is nothing to compile first, a kernel compiles itself when it is called.

Entries are eager functions of the module. Where Numba refuses a call because of what is
passed, the old code has no result to compare with, and the refusal is the bug that a fix
cures. The reference of such a call is the kernel on the very same numbers: every tensor as
the array of its shape and dtype (half precision as float32, a tensor without dimensions as a
number where the kernel takes no array of that kind, a torch.Size as a tuple). It counts only
where the kernel then agrees with the Python function it was made of (`py_func`), and where no
tensor requires a gradient that the kernel would end: such a call has to go on failing.
"""

import copy
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest import mock

from jitlint.region import RegionKind
from jitlint.verify.aspects import Aspect, Failure
from jitlint.verify.compiler import Compiler, Mode, Session
from jitlint.verify.records import Options

KERNEL_CLASSES = (
    ("numba.core.registry", "CPUDispatcher"),
    ("numba.np.ufunc.dufunc", "DUFunc"),
    ("numba.np.ufunc.gufunc", "GUFunc"),
)
PROVIDER = "make_inputs"
LAZY = "the ufunc has no loop yet, and Numba has no type for what is passed"
RELATIVE, ABSOLUTE = 1e-4, 1e-5


class LostGradientError(Exception):
    """The call is refused, and a gradient is required that a kernel would end."""


class NoReferenceError(Exception):
    """The call is refused, and the kernel does not agree with its own Python function."""


class NumbaKernels(Compiler[object, object, object, object]):
    kind = RegionKind.NUMBA
    compared = frozenset(Aspect)

    def modes(self, options: Options) -> tuple[Mode, ...]:
        return ()

    def session(
        self, version: object, entry: object, mode: Mode
    ) -> AbstractContextManager[Session[object]]:
        raise NotImplementedError

    def refuses(self, failure: Failure) -> bool:
        return failure.type in (_name(LostGradientError), _name(NoReferenceError))

    def has_no_reference(self, failure: Failure) -> bool:
        return failure.type == _name(NoReferenceError)

    @contextmanager
    def reference(self) -> Iterator[None]:
        """In force while the old code runs: refused calls get the result they should have."""
        with ExitStack() as stack:
            for module, name in KERNEL_CLASSES:
                kernel = getattr(sys.modules.get(module), name, None)
                if kernel is not None:
                    called = _with_reference(kernel.__call__)
                    stack.enter_context(mock.patch.object(kernel, "__call__", called, create=True))
            yield


def _name(kind: type[Exception]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def has_kernels(namespace: Mapping[str, Any]) -> bool:
    return any(_is_kernel(value) for value in namespace.values())


def _is_kernel(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "numba" and callable(value)


def own_functions(
    namespace: Mapping[str, Any], module: str
) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, value in namespace.items():
        is_provider = name.startswith(PROVIDER) or name == "edge_inputs"
        is_own = isinstance(value, types.FunctionType) and value.__module__ == module
        if is_own and value.__name__ == name and not is_provider:
            yield name, value


# -- the reference of a refused call ---------------------------------------------------------


def _with_reference(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        is_foreign = any(_is_foreign(value) for value in (*args, *kwargs.values()))
        try:
            if is_foreign and _is_lazy_ufunc(kernel):
                raise TypeError(LAZY)
            return original(kernel, *args, **kwargs)
        except Exception as refusal:
            if not is_foreign:
                raise
            return _bridged_call(original, kernel, args, kwargs, refusal)

    return call


def _is_lazy_ufunc(kernel: Any) -> bool:
    """Without signatures a ufunc refuses a tensor until it has a loop for its dtype."""
    return type(kernel).__name__ == "DUFunc" and not kernel._frozen


def _bridged_call(
    original: Callable[..., Any],
    kernel: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    refusal: Exception,
) -> Any:
    if any(_ends_gradient(value) for value in (*args, *kwargs.values())):
        raise LostGradientError(str(refusal)) from refusal
    last: Exception = refusal
    for as_numbers in (False, True):
        given = [_bridged(value, as_numbers) for value in args]
        named = {name: _bridged(value, as_numbers) for name, value in kwargs.items()}
        expected = _in_python(kernel, given, named)
        try:
            result = original(kernel, *given, **named)
        except Exception as error:
            last = error
            continue
        if expected is _NOTHING or not _agree(expected, result):
            raise NoReferenceError(str(refusal)) from refusal
        return result
    raise last


_NOTHING = object()


def _in_python(kernel: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What the Python function gives that the kernel was made of."""
    import numpy

    function = getattr(kernel, "py_func", None)
    if function is None:
        dispatcher = getattr(kernel, "_dispatcher", None)
        function = getattr(dispatcher, "py_func", None)
        if function is None or type(kernel).__name__ != "DUFunc":
            return _NOTHING
        function = numpy.vectorize(function)
    try:
        return function(*copy.deepcopy(args), **copy.deepcopy(kwargs))
    except Exception:
        return _NOTHING


def _agree(expected: Any, actual: Any) -> bool:
    """Numba's dtypes are its own; the numbers are not."""
    import numpy

    if isinstance(expected, (tuple, list)):
        return (
            isinstance(actual, (tuple, list))
            and len(expected) == len(actual)
            and all(map(_agree, expected, actual))
        )
    if expected is None or actual is None or isinstance(expected, str):
        return bool(expected == actual)
    try:
        left, right = numpy.asarray(expected), numpy.asarray(actual)
        return left.shape == right.shape and bool(
            numpy.allclose(left, right, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)
        )
    except (TypeError, ValueError):
        return False


def _is_foreign(value: Any) -> bool:
    if _is_torch(value) or _is_torch(value, "Size") or _is_tensorflow(value):
        return True
    if isinstance(value, (tuple, list)):
        return any(_is_foreign(item) for item in value)
    return str(getattr(value, "dtype", "")) == "float16"


def _is_torch(value: Any, name: str = "Tensor") -> bool:
    """Without importing torch: what is not loaded made no value."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, name))


def _is_tensorflow(value: Any) -> bool:
    return type(value).__module__.startswith("tensorflow.") and hasattr(value, "numpy")


def _ends_gradient(value: Any) -> bool:
    if _is_torch(value):
        return bool(value.requires_grad and sys.modules["torch"].is_grad_enabled())
    return isinstance(value, (tuple, list)) and any(map(_ends_gradient, value))


def _bridged(value: Any, as_numbers: bool) -> Any:
    if _is_torch(value):
        if as_numbers and value.ndim == 0:
            return value.item()
        is_half = str(value.dtype) in ("torch.float16", "torch.bfloat16")
        return (value.float() if is_half else value).cpu().numpy()
    if _is_torch(value, "Size"):
        return tuple(value)
    if isinstance(value, tuple):
        return tuple(_bridged(item, as_numbers) for item in value)
    if isinstance(value, list):
        return [_bridged(item, as_numbers) for item in value]
    if _is_tensorflow(value):
        return value.numpy()
    return value.astype("float32") if str(getattr(value, "dtype", "")) == "float16" else value
