"""What two calls may differ in, and how a call fails: of no framework."""

import enum
from dataclasses import dataclass


class Aspect(enum.Enum):
    """In the order in which differences are told."""

    EXCEPTION = "exception"
    OUTPUT = "output"
    ALIAS = "aliasing"
    GRADIENT = "gradient"
    MUTATION = "mutation"
    PRINTED = "printed text"
    RANDOM = "random number stream"


class OutOfMemoryError(Exception):
    """The memory limit stopped the code under test: nothing was learnt about it."""


@dataclass(frozen=True, slots=True)
class Failure:
    type: str
    message: str

    def __str__(self) -> str:
        text = " ".join(self.message.split())
        return f"{self.type}: {text[:200]}"


@dataclass(frozen=True, slots=True)
class Difference:
    aspect: Aspect
    detail: str
