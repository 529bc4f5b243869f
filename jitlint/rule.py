"""What a rule is, how rules are found, and what a rule is given."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar

import libcst as cst

from jitlint.finding import Finding, Fix, Severity
from jitlint.region import Region, RegionKind

if TYPE_CHECKING:
    from jitlint.config import Settings

ENTRY_POINT_GROUP = "jitlint.rules"


class Rule:
    """A check. Subclasses set the class variables and define `visit_<Type>` methods.

    `visit_<Type>(self, node, ctx)` yields findings. `<Type>` is the name of a LibCST node
    class, or of an observation of the interpreter (`jitlint.analysis.observations`). The
    docstring is the rule's page; its first line is the summary.

    `regions` are the region kinds in which the problem exists. A rule that does not look
    at regions leaves it empty and sets `triggers`: a file is read only if it contains one.
    `watches` are dotted names of library functions whose calls become observations;
    "CompiledFunction" among them asks for every function that a compiler takes over.
    `covers` are the ids of graph breaks that a finding may carry.
    """

    name: ClassVar[str]
    severity: ClassVar[Severity]
    family: ClassVar[str] = ""
    regions: ClassVar[frozenset[RegionKind]] = frozenset()
    triggers: ClassVar[tuple[bytes, ...]] = ()
    watches: ClassVar[frozenset[str]] = frozenset()
    covers: ClassVar[frozenset[str]] = frozenset()
    fixable: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.family:
            cls.family = cls.__module__.rpartition(".")[0].rpartition(".")[2]

    @classmethod
    def page(cls) -> str:
        return inspect.getdoc(cls) or ""

    @classmethod
    def summary(cls) -> str:
        return cls.page().partition("\n")[0]

    @classmethod
    def section(cls, title: str) -> str:
        """What stands under a heading of the page; empty if it has no such heading."""
        _, _, rest = cls.page().partition(f"## {title}\n")
        return rest.partition("\n## ")[0].strip("\n")


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """What a `visit_` method is given: one file, as one rule sees it."""

    rule: type[Rule]
    path: Path
    module: cst.Module
    settings: "Settings"

    def shortened(self, node: cst.CSTNode, limit: int = 60) -> str:
        """The code of a node on one line, for a message."""
        text = " ".join(self.module.code_for_node(node).split())
        return text if len(text) <= limit else text[: limit - 1] + "…"

    def finding(
        self,
        node: cst.CSTNode,
        message: str,
        *,
        severity: Severity | None = None,
        codes: tuple[str, ...] = (),
        fix: Fix | None = None,
        no_fix_reason: str | None = None,
        region: Region | None = None,
    ) -> Finding:
        return Finding(
            rule=self.rule.name,
            family=self.rule.family,
            severity=self.rule.severity if severity is None else severity,
            message=message,
            node=node,
            codes=codes,
            region=region,
            fix=fix,
            no_fix_reason=no_fix_reason,
        )


class RulePackError(Exception):
    """A rule pack that cannot be used."""


def load_rules() -> dict[str, type[Rule]]:
    """Every installed rule by name, sorted by family and name.

    Raises RulePackError when a pack does not load, or two define the same name.
    """
    rules: dict[str, type[Rule]] = {}
    for entry_point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda each: each.name):
        try:
            found = list(_rules_of(entry_point.load()))
        except Exception as error:
            name = f"{entry_point.name} = {entry_point.value}"
            message = f"the rule pack `{name}` does not load: {type(error).__name__}: {error}"
            raise RulePackError(message) from error
        for rule in found:
            if rules.setdefault(rule.name, rule) is not rule:
                message = f"rule `{rule.name}` is defined twice: {rules[rule.name].__module__}"
                raise RulePackError(f"{message} and {rule.__module__}")
    return dict(sorted(rules.items(), key=lambda item: (item[1].family, item[0])))


def _rules_of(package: ModuleType) -> Iterator[type[Rule]]:
    modules = [package]
    for found in pkgutil.walk_packages(getattr(package, "__path__", ()), package.__name__ + "."):
        modules.append(importlib.import_module(found.name))
    for module in modules:
        for member in vars(module).values():
            if (
                isinstance(member, type)
                and issubclass(member, Rule)
                and member.__module__ == module.__name__
                and "name" in vars(member)
            ):
                yield member
