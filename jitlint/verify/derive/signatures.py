"""What a callable takes: the annotations of two versions, which a fix may have added."""

import inspect
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

EMPTY = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Parameter:
    """`annotations` are those of both versions, `default` is `EMPTY` where there is none."""

    name: str
    annotations: tuple[Any, ...] = ()
    default: Any = EMPTY
    by_keyword: bool = False

    @property
    def is_required(self) -> bool:
        return self.default is EMPTY


def parameters_of(old: Callable[..., Any], new: Callable[..., Any]) -> list[Parameter] | None:
    """None where the signature cannot be read. Of `*args` one is given if nothing else is."""
    try:
        signature = inspect.signature(old)
    except (TypeError, ValueError):
        return None
    hints = [_hints(old), _hints(new)]
    found: list[Parameter] = []
    rest: list[Parameter] = []
    for name, each in signature.parameters.items():
        if each.kind is each.VAR_POSITIONAL:
            rest.append(Parameter(name))
        elif each.kind is not each.VAR_KEYWORD:
            given = [known[name] for known in hints if name in known]
            is_changed = len(given) == 2 and given[0] != given[1]
            annotations = tuple(given if is_changed else given[:1])
            by_keyword = each.kind is each.KEYWORD_ONLY
            found.append(Parameter(name, annotations, each.default, by_keyword))
    return found or rest


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations that can be evaluated."""
    target = getattr(function, "__func__", function)
    try:
        return typing.get_type_hints(target)
    except Exception:
        written = getattr(target, "__annotations__", {})
        return {name: each for name, each in written.items() if not isinstance(each, str)}
