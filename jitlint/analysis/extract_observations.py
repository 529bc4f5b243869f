"""What a call of a torch function does, seen from outside, and what many such calls say."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from jitlint.analysis.extract_kinds import NUMBER, SCALAR, SIZE, STATIC, TENSOR, TENSORS, kind_of
from jitlint.analysis.extract_samples import Sample, tensors_of


@dataclass(frozen=True, slots=True)
class Observation:
    """One call that did not raise."""

    kind: str | None
    items: int | None
    named_tuple: bool
    with_dim: bool
    source: str
    flags: tuple[str, ...]
    arguments: int
    tensors: int
    plain: bool
    input_dtype: str | None
    input_shape: tuple[int, ...] | None
    dtype: str | None
    rank: int | None
    random: bool
    mutates: bool
    aliases: bool
    data_decides_shape: bool
    pointwise: bool | None


def observe(sample: Sample) -> Observation | None:
    """Run `sample`; None when it raises."""
    import torch

    if any(tensor.is_nested for tensor in sample.tensors()):
        return None
    fresh = sample.copy()
    inputs = fresh.tensors()
    first = inputs[0] if inputs else None
    versions = first._version if first is not None else 0
    torch.manual_seed(0)
    before = torch.get_rng_state()
    try:
        result = fresh.run()
    except Exception:
        return None
    kind = kind_of(result)
    random = not torch.equal(before, torch.get_rng_state())
    mutates = first is not None and first._version != versions
    outputs = [tensor for tensor in tensors_of(result) if not tensor.is_nested]
    output = outputs[0] if outputs else None
    shaped = output is not None and kind == TENSOR and not mutates and not random
    return Observation(
        kind=kind,
        items=len(result) if kind == TENSORS else None,
        named_tuple=hasattr(result, "n_fields"),
        with_dim=sample.with_dim,
        source=sample.source,
        flags=tuple(sorted(k for k, v in sample.kwargs.items() if v is True)),
        arguments=len(sample.args) + len(sample.kwargs),
        tensors=len(inputs),
        plain=sample.plain,
        input_dtype=_name(first),
        input_shape=tuple(first.shape) if first is not None else None,
        dtype=_name(output),
        rank=output.ndim if output is not None else None,
        random=random,
        mutates=mutates,
        aliases=_aliases(output, inputs[:1]),
        data_decides_shape=kind in (TENSOR, TENSORS) and _data_decides_shape(sample, outputs),
        pointwise=_try_pointwise(sample, output) if shaped else None,
    )


def _name(tensor: Any) -> str | None:
    return None if tensor is None else str(tensor.dtype).removeprefix("torch.")


def _aliases(output: Any, inputs: list[Any]) -> bool:
    if output is None or not output.numel():
        return False
    try:
        place = output.untyped_storage().data_ptr()
        return any(tensor.untyped_storage().data_ptr() == place for tensor in inputs)
    except (NotImplementedError, RuntimeError):
        return False


def _data_decides_shape(sample: Sample, outputs: list[Any]) -> bool:
    """Whether other data in arguments of the same shapes gives a result of another shape."""
    expected = [tuple(tensor.shape) for tensor in outputs]
    for fill in (0, 1):
        result = _rerun(sample, lambda tensors, fill=fill: [t.fill_(fill) for t in tensors])
        shapes = [tuple(tensor.shape) for tensor in tensors_of(result) if not tensor.is_nested]
        if shapes and shapes != expected:
            return True
    return False


def _rerun(sample: Sample, change: Any) -> Any:
    import torch

    other = sample.copy()
    try:
        change(other.tensors())
        torch.manual_seed(0)
        return other.run()
    except Exception:
        return None


def _try_pointwise(sample: Sample, output: Any) -> bool | None:
    try:
        return _pointwise(sample, output)
    except RuntimeError:
        return None


def _pointwise(sample: Sample, output: Any) -> bool | None:
    """Whether each element of the result depends on the like-placed elements alone.

    The shape must be the broadcast of the inputs; changing the first element of the first
    argument may change no element but those at its place; flipping the data must flip the
    result. None: this call cannot tell.
    """
    import torch

    inputs = sample.tensors()
    try:
        shape = torch.broadcast_tensors(*inputs)[0].shape if inputs else ()  # type: ignore[no-untyped-call]
    except RuntimeError:
        return False
    if tuple(output.shape) != tuple(shape):
        return False
    first = inputs[0] if inputs else None
    if first is None or first.numel() < 2 or first.ndim < 1 or first.dtype == torch.bool:
        return None
    place = torch.zeros(first.shape, dtype=torch.bool)
    place.view(-1)[0] = True

    def disturb(tensors: list[Any]) -> None:
        tensors[0][place] += 1

    other = _rerun(sample, disturb)
    if not isinstance(other, torch.Tensor) or other.shape != output.shape:
        return None
    changed = ~torch.isclose(other, output, equal_nan=True, rtol=0, atol=0)
    if bool((changed & ~place.expand(shape)).any()):
        return False
    flipped = sample.changed(lambda tensor: tensor.flip(tuple(range(tensor.ndim))))
    mirrored = _rerun(flipped, lambda tensors: None)
    if not isinstance(mirrored, torch.Tensor):
        return None
    back = mirrored.flip(tuple(range(mirrored.ndim)))
    return bool(torch.isclose(back, output, equal_nan=True, rtol=1e-5, atol=1e-6).all())


def keeps_strides(sample: Sample) -> bool | None:
    """Whether a transposed argument gives a transposed result; None: cannot tell."""
    import torch

    if len(sample.tensors()) != 1 or sample.tensors()[0].ndim != 2:
        return None
    turned = sample.changed(lambda tensor: tensor.t().contiguous().t())
    result = _rerun(turned, lambda tensors: None)
    if not isinstance(result, torch.Tensor):
        return None
    return bool(result.stride() == turned.tensors()[0].stride())


def classify_number(samples: Iterable[Sample]) -> str | None:
    """Whether a number comes from a tensor's data, from its shape, or from neither.

    Tried with other data in the same shapes, then with other shapes of the same rank. What
    changes without any reason, such as an address, is static.
    None: no call works.
    """
    seen = depends_on_shape = False
    for sample in samples:
        if sample.with_dim:
            continue
        result = _rerun(sample, lambda tensors: None)
        if result is None:
            continue
        if _differs(_rerun(sample, lambda tensors: None), result):
            return STATIC
        if any(_differs(other, result) for other in _with_other_data(sample)):
            return SCALAR
        longer = _rerun(_stretched(sample), lambda tensors: None)
        depends_on_shape |= _differs(longer, result)
        seen = True
    if not seen:
        return None
    return SIZE if depends_on_shape else STATIC


def _stretched(sample: Sample) -> Sample:
    """The same call on tensors with a longer last dimension."""
    import torch

    return sample.changed(lambda tensor: torch.cat([tensor, tensor], -1) if tensor.ndim else tensor)


def _differs(value: Any, other: Any) -> bool:
    return value is not None and str(value) != str(other)


def _with_other_data(sample: Sample) -> Iterator[Any]:
    for fill in (0, 1):
        yield _rerun(sample, lambda tensors, fill=fill: [t.fill_(fill) for t in tensors])
    yield _rerun(sample, lambda tensors: [t.mul_(2) for t in tensors[:1]])


def summarize(samples: Iterable[Sample]) -> dict[str, Any]:
    """The fields of a table entry that the observations of `samples` agree on."""
    kept = [(sample, seen) for sample in samples if (seen := observe(sample)) is not None]
    observations = [seen for _, seen in kept]
    plain = [seen for seen in observations if not seen.with_dim and not seen.flags]
    default = plain or [seen for seen in observations if not seen.flags] or observations
    alone = [seen for seen in default if seen.arguments == seen.tensors == 1]
    together = [seen for seen in default if seen.arguments > 1]
    special = bool(together) and _kinds(alone) != _kinds(together) and len(_kinds(default)) > 1
    if special:
        default = together
        observations = [seen for seen in observations if seen.arguments > 1]
        kept = [pair for pair in kept if pair[1].arguments > 1]
    if len(_kinds(default)) > 1:
        fewest = min(seen.arguments for seen in default)
        default = [seen for seen in default if seen.arguments == fewest]
        default = [seen for seen in default if seen.tensors == seen.arguments] or default
    kinds = _kinds(default)
    if len(kinds) != 1 or kinds == {None}:
        return {}
    (kind,) = kinds
    entry: dict[str, Any] = {"returns": kind, "source": _source(default)}
    entry.update(_alternatives(observations, kind, bool(plain)))
    entry.update(_arity(default))
    if kind in (TENSOR, TENSORS):
        entry.update(_effects(observations))
    if kind == TENSOR:
        entry.update(_dtypes(observations))
        entry.update(_ranks(plain))
        if _is_elementwise(kept):
            entry["elementwise"] = True
    if special and len(_kinds(alone)) == 1:
        entry["one_argument"] = {"returns": alone[0].kind, **dict(_effects(alone))}
    return entry


def _kinds(observations: list[Observation]) -> set[str | None]:
    """The kinds seen. A number and a list of numbers count as one."""
    kinds = {seen.kind for seen in observations}
    return {NUMBER} if len(kinds) > 1 and kinds <= {NUMBER, SIZE} else kinds


def _source(observations: list[Observation]) -> str:
    return "op_db" if any(seen.source == "op_db" for seen in observations) else "measured"


def _alternatives(
    observations: list[Observation], kind: str | None, has_plain: bool
) -> Iterator[tuple[str, Any]]:
    named = [seen for seen in observations if seen.with_dim and not seen.flags]
    kinds = {seen.kind for seen in named}
    if has_plain and len(kinds) == 1 and kinds != {kind}:
        yield "with_dim", kinds.pop()
        arities = {seen.items for seen in named if seen.named_tuple}
        if len(arities) == 1:
            yield "items", arities.pop()
    flags = {
        flag: seen.kind
        for seen in observations
        if len(seen.flags) == 1 and seen.kind != kind and seen.kind is not None
        for flag in seen.flags
        if flag not in ("keepdim", "keepdims") and not seen.with_dim
    }
    if flags:
        yield "with_flag", dict(sorted(flags.items()))


def _arity(observations: list[Observation]) -> Iterator[tuple[str, Any]]:
    arities = {seen.items for seen in observations if seen.named_tuple}
    if len(arities) == 1:
        yield "items", arities.pop()


def _effects(observations: list[Observation]) -> Iterator[tuple[str, Any]]:
    if any(seen.random for seen in observations):
        yield "random", True
    if all(seen.mutates for seen in observations):
        yield "mutates", True
    elif any(seen.aliases for seen in observations if not seen.mutates):
        yield "view", True
    if any(seen.data_decides_shape for seen in observations):
        yield "dynamic_shape", True


def _dtypes(observations: list[Observation]) -> Iterator[tuple[str, Any]]:
    """`dtype`, seen on at least two numeric dtypes; `from_bool`, where bool is an exception."""
    results: dict[str, set[str]] = {}
    for seen in observations:
        if seen.plain and seen.input_dtype and seen.dtype:
            results.setdefault(seen.input_dtype, set()).add(seen.dtype)
    from_bool = results.pop("bool", set())
    pairs = {(before, after) for before, found in results.items() for after in found}
    if len(results) < 2:
        return
    outputs = {after for _, after in pairs}
    if outputs == {"bool"}:
        yield "bool", True
    elif all(before == after for before, after in pairs):
        yield "dtype", "same"
        if len(from_bool) == 1 and "bool" not in from_bool:
            yield "from_bool", from_bool.pop()
    elif len(outputs) == 1:
        yield "dtype", outputs.pop()
    elif all(after == _as_floating(before) for before, after in pairs):
        yield "dtype", "float"


def _as_floating(dtype: str) -> str:
    return dtype if dtype.startswith(("float", "complex")) else "float32"


def _ranks(observations: list[Observation]) -> Iterator[tuple[str, Any]]:
    """`broadcasts`: it reduces one tensor, and combines two without reducing them."""
    single = [seen for seen in observations if seen.tensors == 1]
    considered = single or observations
    if not any(seen.input_shape for seen in considered):
        return
    if all(seen.rank == 0 for seen in considered):
        yield "reduces", True
        if single and any(seen.rank for seen in observations):
            yield "broadcasts", True


def _is_elementwise(kept: list[tuple[Sample, Observation]]) -> bool:
    verdicts = {seen.pointwise for _, seen in kept}
    if False in verdicts or True not in verdicts:
        return False
    strides = {keeps_strides(sample) for sample, seen in kept if seen.pointwise}
    return False not in strides
