"""Custom operators that a fix adds: what they declare must be what they do."""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import torch
from torch._library.custom_ops import CustomOpDef

CHECKS = ("test_schema", "test_faketensor")
"""Of `torch.library.opcheck`. An operator without a formula of its gradient is no fault: the
registration of one is checked by gradients, where the old code has them."""
REPEATED = "test_aot_dispatch_dynamic"
"""The check that compares two calls: of an operator with an effect, such as one that draws
random numbers, each call may give something else."""


@dataclass(slots=True)
class OperatorCalls:
    """The first arguments that each operator was called with."""

    found: dict[CustomOpDef, tuple[tuple[Any, ...], dict[str, Any]]] = field(default_factory=dict)

    @contextmanager
    def recorded(self) -> Iterator[None]:
        original: Callable[..., Any] = CustomOpDef.__call__

        def call(operator: CustomOpDef, *args: Any, **kwargs: Any) -> Any:
            if operator not in self.found:
                self.found[operator] = copy.deepcopy(_detached((args, kwargs)))
            return original(operator, *args, **kwargs)

        with mock.patch.object(CustomOpDef, "__call__", call):
            yield

    def faults(self, namespace: Mapping[str, Any]) -> Iterator[str]:
        """What `opcheck` says of the operators that this module defines."""
        own = {id(value) for value in namespace.values() if isinstance(value, CustomOpDef)}
        for operator, (args, kwargs) in self.found.items():
            if id(operator) in own:
                yield from _faults(operator, args, kwargs)


def _faults(operator: CustomOpDef, args: Any, kwargs: Any) -> Iterator[str]:
    checks = CHECKS if _has_effect(operator) else (*CHECKS, REPEATED)
    found = torch.library.opcheck(operator, args, kwargs, test_utils=checks, raise_exception=False)
    for check, outcome in found.items():
        if outcome != "SUCCESS":
            text = " ".join(str(outcome).split())
            yield f"the operator {operator._qualname} fails {check}: {text[:300]}"


def _has_effect(operator: CustomOpDef) -> bool:
    registered = torch._library.simple_registry.singleton.find(operator._qualname)
    return getattr(registered.effect, "effect", None) is not None


def _detached(value: Any) -> Any:
    """Only leaves can be copied."""
    return torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda tensor: tensor.detach().clone(), value
    )
