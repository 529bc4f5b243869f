"""Checks real model libraries, and compares the findings with known break sites.

    python benchmarks/libraries.py                             # both truth files in data/
    python benchmarks/libraries.py benchmarks/data/FILE.json   # one of them, or another
    python benchmarks/libraries.py --verbose                   # each false alarm as well

The wheels are downloaded and unpacked in a temporary folder, or in `--folder` to keep them,
and nothing of them is imported. A truth file names the `versions` of packages, the
`entry-points` that their users compile, the `sites` where a graph breaks, why some of them
are `unreported`, and, where they are known, the `clean` lines: those that ran in models
without any break. Sites and lines are compared by statement; notes do not count. Exit status
1 when the check itself fails.
"""

import argparse
import ast
import json
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
TRUTH = (DATA / "libraries-torch-2.13.json", DATA / "transformers-torch-2.10.json")
Place = tuple[str, int]
Truth = dict[str, Any]
Found = dict[str, Any]


def main() -> None:
    arguments = parse_arguments()
    for path in arguments.truth:
        with tempfile.TemporaryDirectory() as temporary:
            folder = (arguments.folder or Path(temporary)) / path.stem
            report_on(path, folder, arguments.verbose)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("truth", nargs="*", type=Path, default=TRUTH, help="known break sites")
    parser.add_argument("--folder", type=Path, help="where to unpack the wheels, and keep them")
    parser.add_argument("--verbose", action="store_true", help="list each false alarm")
    return parser.parse_args()


def read_truth(path: Path) -> Truth:
    truth: Truth = json.loads(path.read_text())
    return truth


def report_on(path: Path, folder: Path, verbose: bool) -> None:
    truth = read_truth(path)
    for name, version in truth["versions"].items():
        unpack(f"{name}=={version}", folder)
    started = time.perf_counter()
    found = check(folder, truth["entry-points"])
    print(f"{path.name}: {len(found)} findings in {time.perf_counter() - started:.0f} s")
    count = Counter((each["rule"], each["severity"]) for each in found)
    for (rule, severity), number in sorted(count.items()):
        print(f"  {rule} {severity}: {number}")
    compared = compare(found, truth, Heads(folder))
    print("\n".join(compared.lines(verbose)))


def unpack(requirement: str, folder: Path) -> None:
    """Downloads one wheel with pip, unless it is there."""
    name = requirement.partition("==")[0].replace("-", "_")
    if not any(folder.glob(f"{name}-*.dist-info")):
        with tempfile.TemporaryDirectory() as wheels:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            subprocess.run([*command, "--dest", wheels, requirement], check=True)
            (wheel,) = Path(wheels).glob("*.whl")
            zipfile.ZipFile(wheel).extractall(folder)


def check(folder: Path, points: Iterable[str]) -> list[Found]:
    """The findings of `jitlint check`; exits when the run itself fails."""
    configuration = folder / "jitlint.toml"
    configuration.write_text(f"entry-points = {json.dumps(list(points))}\n")
    command = [sys.executable, "-m", "jitlint", "check", ".", "--format", "json", "--no-cache"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"jitlint check exits {done.returncode}:\n{done.stderr}")
    found: list[Found] = json.loads(done.stdout)["findings"]
    return found


@dataclass(frozen=True, slots=True)
class Compared:
    """Findings against the truth, by statement. `fixable` are hits with a fix on offer, and
    `missed` the sites without a finding, each with the reason."""

    sites: dict[str, tuple[int, int]]
    hits: int
    fixable: int
    missed: dict[str, str]
    false: tuple[Place, ...]
    clean: int

    def lines(self, verbose: bool) -> list[str]:
        total = self.hits + len(self.missed)
        lines = [f"  {hits}/{number} {kind}" for kind, (hits, number) in self.sites.items()]
        lines.append(f"sites {self.hits}/{total} ({self.hits / total:.0%})")
        lines.append(f"fix offered at {self.fixable}/{self.hits} of them")
        if self.clean:
            lines.append(f"false alarms {len(self.false)} in {self.clean} clean statements")
        lines += [f"missed {site}: {reason}" for site, reason in self.missed.items()]
        if verbose:
            lines += [f"false alarm {file}:{line}" for file, line in self.false]
        return lines


def compare(found: Iterable[Found], truth: Truth, heads: "Heads") -> Compared:
    loud = [each for each in found if each["severity"] != "note"]
    places = {heads.of(each["path"], each["line"]) for each in loud}
    fixable = {heads.of(each["path"], each["line"]) for each in loud if each["fix"] is not None}
    sites = {
        kind: [heads.of(s["file"], s["line"]) for s in group]
        for kind, group in by_kind(truth["sites"]).items()
    }
    known = {place for group in sites.values() for place in group}
    lines = truth.get("clean", {})
    clean = {heads.of(file, line) for file, numbers in lines.items() for line in numbers} - known
    every = [place for group in sites.values() for place in group]
    missed = [
        f"{site['file']}:{site['line']}"
        for site in truth["sites"]
        if heads.of(site["file"], site["line"]) not in places
    ]
    return Compared(
        sites={
            kind: (sum(p in places for p in group), len(group)) for kind, group in sites.items()
        },
        hits=sum(place in places for place in every),
        fixable=sum(place in fixable for place in every),
        missed={
            site: truth.get("unreported", {}).get(site, "no reason is known") for site in missed
        },
        false=tuple(sorted(clean & places)),
        clean=len(clean),
    )


def by_kind(sites: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """By category where the truth tells it, else by the first words of the reason."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for site in sites:
        kind = site.get("category") or site["reason"].partition("\n")[0][:70]
        groups.setdefault(kind, []).append(site)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))


class Heads:
    """The first line of the statement that a line belongs to; of a compound statement only
    the header counts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines: dict[str, dict[int, int]] = {}

    def of(self, file: str, line: int) -> Place:
        file = file.removeprefix("./")
        if file not in self._lines:
            self._lines[file] = self._read(file)
        return file, self._lines[file].get(line, line)

    def _read(self, file: str) -> dict[int, int]:
        lines: dict[int, int] = {}
        for node in ast.walk(ast.parse((self._folder / file).read_bytes())):
            if isinstance(node, ast.stmt):
                body = getattr(node, "body", None)
                end = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno
                for line in range(node.lineno, max(end or 0, node.lineno) + 1):
                    lines[line] = max(lines.get(line, 0), node.lineno)
        return lines


if __name__ == "__main__":
    main()
