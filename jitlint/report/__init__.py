"""Reports: one module per format, each with `write(result, console, settings)`."""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from rich.console import Console

    from jitlint.config import Settings
    from jitlint.engine import CheckResult

    Writer = Callable[[CheckResult, Console, Settings], None]

_MODULES = {"text": "text", "concise": "concise", "json": "json_format"}
FORMATS = tuple(_MODULES)


def writer(name: str) -> "Writer":
    module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    return cast("Writer", module.write)
