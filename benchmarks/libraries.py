"""Checks real model libraries: downloads their wheels, runs `jitlint check`, reports figures.

    python benchmarks/libraries.py                       # timm and transformers
    python benchmarks/libraries.py kornia==0.9.0         # any other wheel
    python benchmarks/libraries.py --truth sites.json    # compares with known break sites

The wheels are unpacked side by side in a temporary folder, or in `--folder` to keep them,
and nothing of them is imported. A truth file holds `{"sites": [{"file", "line", "reason"}]}`
and, where known, `"clean": {file: [lines]}`: lines that ran without any graph break. Sites
are compared by statement. Exit status 1 when the check itself fails.
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
from pathlib import Path
from typing import Any

PACKAGES = ("timm==1.0.31", "transformers==5.4.0")
Place = tuple[str, int]


def main() -> None:
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        names = [unpack(package, folder) for package in arguments.packages]
        points = arguments.entry_point or names
        started = time.perf_counter()
        report = check(folder, points)
        seconds = time.perf_counter() - started
        print_summary(report, points, seconds)
        if arguments.truth is not None:
            print_comparison(report, json.loads(arguments.truth.read_text()), folder)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("packages", nargs="*", default=PACKAGES, metavar="NAME==VERSION")
    parser.add_argument("--folder", type=Path, help="where to unpack the wheels, and keep them")
    parser.add_argument("--truth", type=Path, help="known break sites, as JSON")
    parser.add_argument(
        "--entry-point",
        action="append",
        metavar="PATTERN",
        help="what users compile, as in `entry-points`; default: each package",
    )
    return parser.parse_args()


def unpack(requirement: str, folder: Path) -> str:
    """Downloads one wheel with pip unless its package is there; its top-level name."""
    name = requirement.partition("==")[0].replace("-", "_")
    if not (folder / name).is_dir():
        with tempfile.TemporaryDirectory() as wheels:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            subprocess.run([*command, "--dest", wheels, requirement], check=True)
            (wheel,) = Path(wheels).glob("*.whl")
            zipfile.ZipFile(wheel).extractall(folder)
    return name


def check(folder: Path, points: list[str]) -> dict[str, Any]:
    """The JSON report of `jitlint check`; exits when the run itself fails."""
    configuration = folder / "jitlint.toml"
    configuration.write_text(f"entry-points = {json.dumps(points)}\n")
    command = [sys.executable, "-m", "jitlint", "check", ".", "--format", "json", "--no-cache"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"jitlint check exits {done.returncode}:\n{done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def print_summary(report: dict[str, Any], points: list[str], seconds: float) -> None:
    summary = report["summary"]
    print(f"entry points {', '.join(points)}: {seconds:.0f} s")
    print(f"files {summary['files']}, analysed {summary['analysed']}")
    count = Counter((each["rule"], each["severity"]) for each in report["findings"])
    for (rule, severity), number in sorted(count.items()):
        print(f"  {rule} {severity}: {number}")
    print(f"fixable {summary['fixable']}")


def print_comparison(report: dict[str, Any], truth: dict[str, Any], folder: Path) -> None:
    heads = Heads(folder)
    found = {
        heads.of(each["path"], each["line"])
        for each in report["findings"]
        if each["severity"] != "note"
    }
    for reason, sites in by_reason(truth["sites"]).items():
        places = [heads.of(site["file"], site["line"]) for site in sites]
        hits = sum(place in found for place in places)
        print(f"  {hits}/{len(places)} {reason}")
    known = {heads.of(site["file"], site["line"]) for site in truth["sites"]}
    lines = truth.get("clean", {})
    clean = {heads.of(file, line) for file, numbers in lines.items() for line in numbers} - known
    if clean:
        print(f"false alarms {len(clean & found)} in {len(clean)} clean statements")


def by_reason(sites: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for site in sites:
        groups.setdefault(site["reason"].partition("\n")[0][:70], []).append(site)
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
