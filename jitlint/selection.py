"""Which rules a run, and a file, is checked with."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pathspec import GitIgnoreSpec

from jitlint.rule import Rule

ALL = "all"


class UnknownNameError(Exception):
    """A selector that names no rule and no family."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    guess = nearest(name, known)
    return f"; did you mean `{guess}`?" if guess else ""


@dataclass(frozen=True)
class Names:
    """What a selector can name."""

    rules: Mapping[str, str]
    """Rule → its family."""

    @classmethod
    def of(cls, rules: Mapping[str, type[Rule]]) -> "Names":
        return cls({name: rule.family for name, rule in rules.items()})

    @cached_property
    def families(self) -> frozenset[str]:
        return frozenset(self.rules.values())

    def check(self, selector: str) -> str:
        """`selector` itself; raises UnknownNameError."""
        if selector == ALL or selector in self.rules or selector in self.families:
            return selector
        guess = did_you_mean(selector, sorted([*self.rules, *self.families, ALL]))
        raise UnknownNameError(f"unknown rule or family `{selector}`{guess}")

    def matching(self, selectors: Iterable[str]) -> frozenset[str]:
        chosen = set(selectors)
        return frozenset(
            name for name, family in self.rules.items() if chosen & {name, family, ALL}
        )

    def select(self, select: Sequence[str], ignore: Sequence[str]) -> frozenset[str]:
        """The rules that are selected and not ignored.

        The more specific selector wins: a rule over its family over `all`.
        """
        return frozenset(
            name
            for name, family in self.rules.items()
            if _rank(name, family, select) > _rank(name, family, ignore)
        )


def _rank(name: str, family: str, selectors: Sequence[str]) -> int:
    by_rank = (ALL, family, name)
    return max((rank for rank, each in enumerate(by_rank, 1) if each in selectors), default=0)


class PerFile:
    """`per-file-ignores`: gitignore-style patterns, relative to `root`."""

    def __init__(self, ignores: Mapping[str, Sequence[str]], root: Path, names: Names) -> None:
        self._root = root
        self._ignores = [
            (GitIgnoreSpec.from_lines([pattern]), names.matching(selectors))
            for pattern, selectors in ignores.items()
        ]

    def ignored(self, path: Path) -> frozenset[str]:
        """The rules that are off for the file at `path`."""
        if not self._ignores:
            return frozenset()
        try:
            relative = path.absolute().relative_to(self._root).as_posix()
        except ValueError:
            relative = path.name
        matching = [rules for spec, rules in self._ignores if spec.match_file(relative)]
        return frozenset().union(*matching)
