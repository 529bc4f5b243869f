"""A rule pack of three toy rules, so that the engine is tested apart from the real ones."""

from collections.abc import Callable, Iterator
from pathlib import Path

import libcst as cst
import pytest

from jitlint.finding import Finding, Fix, Safety, Severity
from jitlint.rule import Context, Rule


class NoFoo(Rule):
    """The name `foo` is used.

    ## Use instead
    `bar`.
    """

    name = "no-foo"
    family = "toys"
    severity = Severity.WARNING
    triggers = (b"foo",)
    covers = frozenset({"GB0170"})
    fixable = True

    def visit_Name(self, node: cst.Name, ctx: Context) -> Iterator[Finding]:
        if node.value == "foo":
            fix = Fix(Safety.SAFE, "Use `bar`", {node: cst.Name("bar")})
            yield ctx.finding(node, "`foo` is used", codes=("T1",), fix=fix)


class NoPrint(Rule):
    """A print."""

    name = "no-print"
    family = "toys"
    severity = Severity.NOTE
    triggers = (b"print",)

    def visit_Call(self, node: cst.Call, ctx: Context) -> Iterator[Finding]:
        if isinstance(node.func, cst.Name) and node.func.value == "print":
            yield ctx.finding(node, "prints", no_fix_reason="nobody knows what it is for")


class RiskyPi(Rule):
    """A number that looks like pi."""

    name = "risky-pi"
    family = "numbers"
    severity = Severity.ERROR
    triggers = (b"3.14",)
    fixable = True

    def visit_Float(self, node: cst.Float, ctx: Context) -> Iterator[Finding]:
        if node.value == "3.14":
            new = cst.Attribute(cst.Name("math"), cst.Name("pi"))
            fix = Fix(Safety.UNSAFE, "Use `math.pi`", {node: new}, imports=("math",))
            yield ctx.finding(node, "not quite pi", fix=fix)


TOYS: dict[str, type[Rule]] = {rule.name: rule for rule in (RiskyPi, NoFoo, NoPrint)}


@pytest.fixture
def toys() -> dict[str, type[Rule]]:
    return dict(TOYS)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """`write("a/b.py", text)` in the temporary folder."""

    def write_file(name: str, content: str | bytes = "") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder as the working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
