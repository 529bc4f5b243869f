"""Calls with which a torch function can be tried, and what is seen when it is called.

torch is imported inside the functions: importing this module does not import it.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from jitlint.analysis.extract_stubs import DIM_NAMES, Overload, Parameter

SAMPLES_PER_DTYPE = 16
SHAPES = ((), (3,), (2, 3), (2, 3, 4))
DTYPES = ("float32", "float64", "int64", "bool")
OUTPUT_NAMES = frozenset({"out", "dtype", "inplace"})


@dataclass(frozen=True, eq=False)
class Sample:
    """One call: `call(*args, **kwargs)`.

    `with_dim`: a dimension is named. `wrapped`: `call` takes the arguments in an order of its
    own. `compiles`: it may be compiled as it is.
    """

    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    with_dim: bool
    source: str
    wrapped: bool = False
    compiles: bool = True

    def run(self) -> Any:
        return self.call(*self.args, **self.kwargs)

    def runs(self) -> bool:
        """Whether the call works."""
        try:
            self.copy().run()
        except Exception:
            return False
        return True

    def copy(self) -> "Sample":
        """The same call on fresh tensors."""
        return self.changed(lambda t: t.detach().clone().requires_grad_(t.requires_grad))

    def changed(self, change: Callable[[Any], Any]) -> "Sample":
        """The same call with every tensor replaced."""
        args = tuple(map_tensors(argument, change) for argument in self.args)
        return replace(self, args=args, kwargs=map_tensors(self.kwargs, change))

    def tensors(self) -> list[Any]:
        return list(tensors_of((self.args, self.kwargs)))

    @property
    def plain(self) -> bool:
        """Whether nothing but its data decides the dtype and place of the result."""
        if self.wrapped:
            return False
        return not OUTPUT_NAMES & self.kwargs.keys() and not any(_is_dtype(a) for a in self.args)


def tensors_of(value: Any) -> Iterator[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from tensors_of(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_of(item)


def map_tensors(value: Any, change: Callable[[Any], Any]) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: map_tensors(item, change) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map_tensors(item, change) for item in value)
    return value


def operator_samples(
    operator: Any, call: Callable[..., Any], overloads: list[Overload], *, wrapped: bool
) -> Iterator[Sample]:
    """The sample inputs of an `OpInfo` of torch's own test suite.

    `wrapped`: `call` is a wrapper of the tests, which may take arguments in another order.
    """
    import torch

    supported = operator.supported_dtypes("cpu")
    for name in DTYPES:
        dtype = getattr(torch, name)
        if dtype not in supported:
            continue
        try:
            found = list(itertools.islice(operator.sample_inputs("cpu", dtype), SAMPLES_PER_DTYPE))
        except Exception:
            continue
        for sample in found:
            args = (sample.input, *sample.args)
            with_dim = names_dim(args, sample.kwargs, overloads)
            yield Sample(call, args, sample.kwargs, with_dim, "op_db", wrapped, not wrapped)


def names_dim(args: tuple[Any, ...], kwargs: dict[str, Any], overloads: list[Overload]) -> bool:
    """Whether a call of a function (with its first argument) names a dimension."""
    if any(kwargs.get(name) is not None for name in DIM_NAMES):
        return True
    for overload in overloads:
        for index, parameter in enumerate(overload.parameters[: len(args)]):
            if parameter.name in DIM_NAMES and _is_dim(args[index]):
                return True
    return False


def _is_dim(value: Any) -> bool:
    return type(value) is int or (
        isinstance(value, list | tuple) and all(type(item) is int for item in value)
    )


def _is_dtype(value: Any) -> bool:
    import torch

    return isinstance(value, torch.dtype)


def signature_samples(
    call: Callable[..., Any], overloads: list[Overload], *, method: bool
) -> Iterator[Sample]:
    """Calls whose arguments are made up from the annotations of the parameters."""
    for overload in overloads:
        parameters = overload.parameters
        if not method and not (parameters and _takes_tensor(parameters[0])):
            continue
        for dtype, shape in itertools.product(DTYPES, SHAPES):
            yield from _calls(call, parameters, dtype, shape, method)
    if method and any(not any(p.required for p in o.parameters) for o in overloads):
        leaf = make_tensor("float32", (), 0).requires_grad_()
        yield Sample(call, (leaf,), {}, False, "measured")


def _calls(
    call: Callable[..., Any],
    parameters: tuple[Parameter, ...],
    dtype: str,
    shape: tuple[int, ...],
    method: bool,
) -> Iterator[Sample]:
    args = [make_tensor(dtype, shape, 0)] if method else []
    required = [p for p in parameters if p.required and not p.keyword_only]
    keywords = [p for p in parameters if p.required and p.keyword_only]
    for index, parameter in enumerate(required):
        value = _argument(parameter, dtype, shape, index + method)
        if value is None:
            return
        args.append(value)
    kwargs: dict[str, Any] = {}
    for parameter in keywords:
        kwargs[parameter.name] = _argument(parameter, dtype, shape, len(args))
        if kwargs[parameter.name] is None:
            return
    named = any(parameter.name in DIM_NAMES for parameter in required)
    yield Sample(call, tuple(args), kwargs, named, "measured")
    optional = [p for p in parameters if not p.required and p.name in DIM_NAMES]
    if optional and shape:
        with_dim = {**kwargs, optional[0].name: 0}
        yield Sample(call, tuple(args), with_dim, True, "measured")


def _takes_tensor(parameter: Parameter) -> bool:
    return parameter.required and (
        parameter.annotation in ("Tensor", "Tensor | Number | _complex", "Tensor | Number")
        or (not parameter.annotation and parameter.name in ("input", "self", "tensor"))
    )


def _argument(parameter: Parameter, dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    annotation = parameter.annotation
    if _takes_tensor(parameter):
        return make_tensor(dtype, shape, seed)
    if parameter.name in DIM_NAMES:
        if "_size" in annotation:
            return (0,)
        return 0 if "int" in annotation else None
    if annotation.startswith(("Number", "_float", "float")):
        return 2
    if annotation.startswith(("_int", "int")):
        return 1
    if annotation.startswith(("tuple[Tensor, ...]", "list[Tensor]", "Sequence[Tensor]")):
        return [make_tensor(dtype, shape, seed), make_tensor(dtype, shape, seed + 1)]
    return None


def make_tensor(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    import torch

    generator = torch.Generator().manual_seed(seed)
    if not dtype.startswith("float"):
        integers = torch.randint(1, 5, shape, generator=generator)
        return integers if dtype == "int64" else integers > 2
    return torch.rand(shape, generator=generator, dtype=getattr(torch, dtype)) + 0.1
