"""Small models of real libraries, randomly initialised: what their break sites run in."""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Arguments = tuple[Any, ...] | dict[str, Any]


@dataclass(frozen=True, slots=True)
class Model:
    """`build` makes a Module or gives a function; `inputs` draws arguments for it.

    `train` runs it in train mode too. `edges` draws arguments that take the other side of
    its tests; they are compared, and their breaks are not counted. `gradients` is false where
    the outputs have none that mean anything.
    """

    build: Callable[[], Callable[..., Any]]
    inputs: Callable[[], Arguments]
    train: bool = False
    edges: tuple[Callable[[], Arguments], ...] = ()
    gradients: bool = True


def models_of(library: str) -> Mapping[str, Model]:
    """The table of one library. Importing it imports the library."""
    table: Mapping[str, Model] = importlib.import_module(f"zoo.{library}_models").MODELS
    return table
