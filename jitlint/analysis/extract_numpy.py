"""Which functions of NumPy torch.compile traces, and what they return there.

torch implements some in `torch._numpy`; kinds are those of that implementation. Of the
others nothing is said but what compiling them does.
"""

import functools
import os
from collections.abc import Callable, Iterator
from typing import Any

from jitlint.analysis.extract_kinds import SCALAR, SIZE, STATIC, TENSOR, TENSORS
from jitlint.analysis.extract_regions import compile_region
from jitlint.analysis.extract_samples import Sample
from jitlint.analysis.extract_subjects import Subject, import_or_none

CALLS = (
    "matrix",
    "matrix, other",
    "square",
    "square, vector",
    "vector",
    "vector, vector",
    "vector, vector, vector",
    "",
    "3",
    "(2, 3)",
    "2, 3",
    "2.0, 3.0",
    "(2, 3), 1.0",
    "matrix, 1.0",
    "matrix, 1",
    "matrix, (3, 2)",
    "matrix, (2, 2, 3)",
    "matrix, 0, 1",
    "matrix, 0.5",
    "integers",
    "integers, integers",
    "vector, integers",
    "vector, vector, integers",
    "vector, integers, vector",
    "matrix > 1, matrix, other",
    "matrix, integers.reshape(1, 3) * 0, 1",
    "integers, [vector, vector, vector]",
    "cube, 3",
    "square, 2",
    "'ij,jk->ik', square, square",
    "0, 5, (3,)",
)
"""Arguments to try: the first that work tell the kind; all that work are compiled."""
NUMBERS = ("3", "3, 2", "2.5")
"""Arguments of which a function that works on each element makes a number."""
SCALES = (1, 0, 2)
"""What the data is multiplied by, to see whether a number depends on it."""


def numpy_subjects() -> list[Subject]:
    """The public functions and classes of NumPy that an array or a number can be given to."""
    import numpy

    found = []
    for namespace in ("", ".fft", ".linalg", ".random"):
        theirs = import_or_none(f"numpy{namespace}")
        for name in dir(theirs) if theirs else ():
            function = getattr(theirs, name, None)
            is_scalar = isinstance(function, type) and issubclass(
                function, numpy.generic | BaseException
            )
            if not name.startswith("_") and callable(function) and not is_scalar:
                subject = Subject(f"numpy{namespace}.{name}", function, False, [])
                subject.written = functools.partial(numpy_samples, function)
                found.append(subject)
    return found


def numpy_entry(name: str) -> dict[str, Any]:
    """What torch's implementation of a function returns, for the first call that works."""
    library = import_or_none("torch._numpy")
    namespace, _, short = name.removeprefix("numpy").rpartition(".")
    function: Any = getattr(import_or_none(f"torch._numpy{namespace}"), short, None)
    for text in CALLS if function is not None else ():
        results = [_call(function, text, library, scale) for scale in SCALES]
        if results[0] is None:
            continue
        entry = _described(results)
        if namespace == ".random" and entry["returns"] in (SCALAR, STATIC):
            entry["returns"] = None  # a number without a size, an array with one
        return {**entry, "source": "measured"}
    return {"returns": None, "source": "measured"}


def folds(name: str) -> bool:
    """Whether the compiler makes a number of what the function makes of some numbers."""
    import numpy
    import torch

    namespace, _, short = name.removeprefix("numpy").rpartition(".")
    function = getattr(import_or_none(f"numpy{namespace}"), short)
    given = [
        _arguments(text, numpy, 1)
        for text in NUMBERS
        if isinstance(_call(function, text, numpy, 1), numpy.generic)
    ]
    return any(
        compile_region(_conversion(function, numbers), torch.ones(2)).clean for numbers in given
    )


def arrays() -> dict[str, dict[str, Any]]:
    """The section `arrays`: attributes and methods of arrays that break a graph in each call
    that was tried."""
    import numpy
    import torch

    found = {}
    for name in dir(numpy.ndarray):
        if name.startswith("_"):
            continue
        regions = list(_regions_of_array(name))
        outcomes = [compile_region(region, torch.ones(2, 3)).identifier for region in regions]
        if outcomes and None not in outcomes:
            found[name] = {"breaks": outcomes[0], "source": "measured"}
    return found


OF_ARRAY: tuple[tuple[Any, ...], ...] = (
    *((), (0,), (1,), (0, 1), ((3, 2),), ("float32",), ([0, 1],), (0.0, 5.0)),
)
"""Arguments to try on methods of arrays."""
TO_FILES = frozenset({"dump", "tofile"})


def _regions_of_array(name: str) -> Iterator[Callable[[Any], Any]]:
    import numpy

    array = numpy.ones((2, 3), dtype=numpy.float32)
    if not callable(getattr(array, name)):
        yield lambda x: (getattr((x + 1).numpy(), name), x + 1)[1]
    elif name in TO_FILES:
        yield _region_of_method(name, (os.devnull,))
    else:
        works = functools.partial(_works, lambda *given: getattr(array.copy(), name)(*given))
        yield from (_region_of_method(name, given) for given in filter(works, OF_ARRAY))


def _region_of_method(name: str, arguments: tuple[Any, ...]) -> Callable[[Any], Any]:
    def region(x: Any) -> Any:
        getattr((x + 1).numpy(), name)(*arguments)
        return x + 1

    return region


def sizes_of_random() -> dict[str, dict[str, Any]]:
    """The rows of the functions of `numpy.random` that break unless a size is given."""
    import numpy
    import torch

    found = {}
    for name in dir(import_or_none("torch._numpy.random")):
        function: Any = getattr(numpy.random, name, None)
        text = (getattr(function, "__doc__", "") or "").strip().partition(")")[0]
        parameters = [part.partition("=")[0].strip() for part in text.partition("(")[2].split(",")]
        if function is None or name.startswith("_"):
            continue
        if "size" not in parameters and parameters[-2:-1] != ["..."]:
            continue
        given = next((g for g in RANDOM if _works(function, g)), None)
        if given is None:
            continue
        scalar = compile_region(_conversion(function, given), torch.ones(2))
        unless = ["size", str(parameters.index("size"))] if "size" in parameters else ["0"]
        size = {"size": 2} if "size" in parameters else {}
        given = given if size else (2,)
        sized = compile_region(lambda x, f=function, g=given, s=size: f(*g, **s), torch.ones(2))
        if scalar.identifier is not None and sized.clean:
            found[f"numpy.random.{name}"] = {"": {"reads": scalar.identifier, "unless": unless}}
    return found


RANDOM: tuple[tuple[Any, ...], ...] = ((), (3,), (1, 3))
"""Arguments to try; the first that a function takes are used."""


def _works(function: Any, arguments: tuple[Any, ...]) -> bool:
    try:
        function(*arguments)
    except Exception:
        return False
    return True


def _conversion(function: Callable[..., Any], numbers: tuple[Any, ...]) -> Callable[[Any], Any]:
    return lambda x: float(function(*numbers)) * x


def numpy_samples(function: Callable[..., Any], *, of_arrays: bool = False) -> list[Sample]:
    """The calls of NumPy itself, to be compiled; `of_arrays`: those that are given arrays."""
    import numpy

    return [
        Sample(function, arguments, {}, False, "measured")
        for text in CALLS
        for arguments in [_arguments(text, numpy, 1)]
        if not of_arrays or any(isinstance(each, numpy.ndarray) for each in arguments)
        if _call(function, text, numpy, 1) is not None
    ]


def _call(function: Callable[..., Any], text: str, library: Any, scale: int) -> Any:
    try:
        return function(*_arguments(text, library, scale))
    except Exception:
        return None


def _arguments(text: str, library: Any, scale: int) -> tuple[Any, ...]:
    ramp = library.arange(1.0, 28.0) * scale + 0.5
    names = {
        "collect": lambda *args: args,
        "other": library.arange(1.0, 7.0).reshape(2, 3) + 0.5,
        "matrix": ramp[:6].reshape(2, 3),
        "square": ramp[:9].reshape(3, 3) + library.eye(3) * 9,
        "cube": ramp.reshape(3, 3, 3),
        "vector": ramp[:3],
        "integers": library.asarray([0, 1, 1]) * scale,
    }
    arguments: tuple[Any, ...] = eval(f"collect({text})", names)
    return arguments


def _described(results: list[Any]) -> dict[str, Any]:
    array = import_or_none("torch._numpy").ndarray
    first = results[0]
    if isinstance(first, array):
        entry: dict[str, Any] = {"returns": TENSOR}
        if str(first.tensor.dtype) == "torch.bool":
            entry["bool"] = True
        if first.ndim == 0:
            entry["reduces"] = True
        return entry
    if isinstance(first, list | tuple) and first and all(isinstance(i, array) for i in first):
        return {"returns": TENSORS}
    if isinstance(first, bool | int | float | complex):
        changed = any(str(other) != str(first) for other in results[1:])
        return {"returns": SCALAR if changed else STATIC}
    return {"returns": SIZE if isinstance(first, tuple) else None}
