"""Runs many small modules through the verifier in one batch: torch is imported once."""

import importlib.util
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from jitlint.verify import Options, Report, Request, verify

Sources = Mapping[str, tuple[str, str]]


def as_request(folder: Path, name: str, old: str, new: str) -> Request:
    """The module `name`; each `<T>` in `old` marks the start of a rewritten truth test."""
    old = textwrap.dedent(old).lstrip("\n")
    tests = []
    while "<T>" in old:
        before, _, _ = old.partition("<T>")
        tests.append((before.count("\n") + 1, len(before) - before.rfind("\n")))
        old = old.replace("<T>", "", 1)
    new = textwrap.dedent(new).lstrip("\n")
    path = folder / f"{name}.py"
    path.write_text(old)
    return Request(path, old.encode(), new.encode(), tuple(tests))


@pytest.fixture(scope="session")
def prove(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., dict[str, Report]]:
    """`prove(sources)`: the report of each `name: (old, new)`, from one batch."""

    if importlib.util.find_spec("torch") is None:
        pytest.skip("the verifier's worker needs torch")

    def run(sources: Sources, **options: object) -> dict[str, Report]:
        folder = tmp_path_factory.mktemp("modules")
        requests = [as_request(folder, name, old, new) for name, (old, new) in sources.items()]
        settings: dict[str, object] = {"device": "cpu", "seeds": 4, **options}
        reports = verify(requests, Options(**settings))  # type: ignore[arg-type]
        return dict(zip(sources, reports, strict=True))

    return run
