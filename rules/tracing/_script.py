"""Branches under torch.jit.trace, moved into a scripted helper."""

from collections.abc import Callable

from jitlint.analysis.observations import TruthTest
from jitlint.finding import Fix
from jitlint.rule import Context

FIXERS: tuple[Callable[[TruthTest, Context], Fix], ...] = ()
