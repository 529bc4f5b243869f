"""Proves fixes on the models they were found in: breaks before and after, equal or not.

    python benchmarks/models.py                        # six libraries
    python benchmarks/models.py kornia vit_pytorch     # some of them
    python benchmarks/models.py kornia --model canny   # one model of a library
    python benchmarks/models.py --set graphmend        # the models of another tool's results
    python benchmarks/models.py --set study            # those of a study of transformers 5.4.0
    python benchmarks/models.py --folder /tmp/models   # keeps the sources, before and after

For each library or set: its wheels are downloaded, and small models (`zoo/`) run eagerly and
compiled, in a process of their own. jitlint's fixes, safe and unsafe, are then applied to a
copy of the files that the models import, and the models run again from equal weights on equal
inputs. A model that differs is bisected to the fix that is to blame, which counts as refuted
and is taken back. Breaks are counted in Dynamo's own log. A set is a list of models that
somebody else chose: `data/SET.json` has their wheels, and the figures that were published, if
there are any, which stand beside ours, counted in the same way. Needs what
`benchmarks/requirements.txt` lists. Exit status 1 if a fix was refuted, or a model differs.
"""

import argparse
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from libraries import DATA, TRUTH, Heads, Truth, read_truth, unpack
from measure import Measured
from proof import Offer, Proof, Row, Run, Verdict, compared, culprits, table, verdicts

from jitlint import fixing, stages
from jitlint.cli import installed
from jitlint.config import Settings
from jitlint.finding import Diagnostic, Safety
from jitlint.fixing import Key, Plan
from jitlint.verify.outcome import differences

HERE = Path(__file__).parent
LIBRARIES = read_truth(TRUTH[0])["versions"]
SETS = {name: read_truth(DATA / f"{name}.json") for name in ("graphmend", "study")}
"""Models that somebody else chose, whose own results are known."""
NOT_CHOSEN = "it is not under test"


def main() -> None:
    arguments = parse_arguments()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or Path(temporary)).resolve()
        with ThreadPoolExecutor(arguments.jobs) as pool:
            one = partial(in_process, folder=folder, names=arguments.model)
            done = list(pool.map(one, [arguments.set] if arguments.set else arguments.libraries))
    rows = [row for some, _ in done for row in some]
    proofs = [proof for _, some in done for proof in some]
    lines = [*table(rows), *verdicts(proofs)]
    if arguments.set and SETS[arguments.set]["published"]:
        lines.append(f"{arguments.set}: {compared(rows, SETS[arguments.set]['published'])}")
    print("\n".join(lines))
    refuted = any(proof.verdict is Verdict.REFUTED for proof in proofs)
    sys.exit(refuted or any(row.fixes and row.detail for row in rows))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("libraries", nargs="*", default=list(LIBRARIES), metavar="LIBRARY")
    parser.add_argument("--set", choices=SETS, help="these models instead")
    parser.add_argument("--model", action="append", default=[], help="only this one")
    parser.add_argument("--folder", type=Path, help="where to unpack the wheels, and keep them")
    parser.add_argument("--jobs", type=int, default=2, help="libraries at the same time")
    return parser.parse_args()


def in_process(library: str, folder: Path, names: Sequence[str]) -> tuple[list[Row], list[Proof]]:
    """`proved`, in a process: the analysis keeps one core busy, and much memory."""
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / f"{library}.pickle"
    command = [sys.executable, "-c", "import models; models.work()", library, str(output)]
    subprocess.run([*command, *names], env=environment(), check=True)
    result: tuple[list[Row], list[Proof]] = pickle.loads(output.read_bytes())
    return result


def work() -> None:
    library, output, *names = sys.argv[1:]
    Path(output).write_bytes(pickle.dumps(proved(library, Path(output).parent, names)))


def environment() -> dict[str, str]:
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


def proved(library: str, folder: Path, names: Sequence[str]) -> tuple[list[Row], list[Proof]]:
    source = folder / library / "before"
    truth = SETS.get(library) or one_library(library)
    for name, version in truth["versions"].items():
        unpack(f"{name}=={version}", source)
    bench = Bench(library, source, folder / library / "after", truth["entry-points"])
    say(library, "measuring the models")
    old = bench.measured(source, names)
    say(library, "looking for fixes")
    offered = bench.offered(old)
    say(library, f"{len(offered)} fixes, {sum(bool(each.runs) for each in offered)} of them run")
    return bench.judged(old, offered)


def one_library(name: str) -> Truth:
    return {"versions": {name: LIBRARIES[name]}, "entry-points": [name, f"{name}:*"]}


def say(library: str, text: str) -> None:
    print(f"{library}: {text}", file=sys.stderr, flush=True)


class DidNotRunError(Exception):
    """The models could not even be built: the library's code does not load."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Some of the fixes, applied: the new content by file, and where each fix stands.

    Equal code in one file has one key, which stands in several places.
    """

    new: Mapping[Path, bytes]
    places: Sequence[tuple[Key, Offer]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fix in one place, and the runs that pass through its lines."""

    key: Key
    offer: Offer
    runs: tuple[Run, ...]


@dataclass(slots=True)
class Bench:
    """The library or set as it lies in `source`, and a copy of it in `copy` to apply fixes to."""

    library: str
    source: Path
    copy: Path
    entry_points: Sequence[str]
    files: list[Path] = field(default_factory=list)
    """The files that the models import: fixes of others could not be proved."""
    known: dict[frozenset[Key], Fixed] = field(default_factory=dict)

    def measured(self, folder: Path, names: Collection[str]) -> dict[Run, Measured]:
        """These models, or all of them, with the library as it lies in `folder`."""
        with tempfile.TemporaryDirectory() as temporary:
            output = Path(temporary) / "seen.pickle"
            only = [f"--model={name}" for name in sorted(names)]
            # As a module, so that what it pickles is found here.
            worker = [sys.executable, "-W", "ignore", "-c", "import measure; measure.main()"]
            done = subprocess.run(
                [*worker, self.library, str(folder), "--output", str(output), *only],
                env=environment(),
                capture_output=True,
                text=True,
            )
            if done.returncode != 0:
                raise DidNotRunError(done.stderr)
            found: dict[Run, Measured] = pickle.loads(output.read_bytes())
        return found

    def offered(self, old: Mapping[Run, Measured]) -> list[Candidate]:
        """Each fix that is offered in the files that the models run."""
        names = {name for seen in old.values() for name in seen.lines}
        # what a package gives out, its `__init__` says
        names |= {f"{each}/__init__.py" for name in names for each in Path(name).parents}
        self.files = sorted(path for name in names if (path := self.source / name).is_file())
        sound = {run: seen.lines for run, seen in old.items() if not seen.failure}
        return [
            Candidate(key, offer, tuple(run for run in sound if offer.runs_in(sound[run])))
            for key, offer in self.fixed(()).places
        ]

    def fixed(self, refused: Collection[Key]) -> Fixed:
        """All the fixes but these."""
        chosen = frozenset(refused)
        if chosen not in self.known:
            plan = self._plan(dict.fromkeys(chosen, NOT_CHOSEN))
            self.known[chosen] = Fixed(
                {each.source.path: each.new for each in plan.files}, self._places(plan)
            )
        return self.known[chosen]

    def _plan(self, refused: Mapping[Key, str]) -> Plan:
        settings = Settings(
            root=self.source,
            entry_points=tuple(self.entry_points),
            respect_gitignore=False,
            cache=False,
            unsafe=True,
            jobs=1,
        )
        _, sources, _ = stages.gather(self.files, settings, None, stages.silent)
        return fixing.plan(sources, settings, installed(), without=refused)

    def _places(self, plan: Plan) -> list[tuple[Key, Offer]]:
        heads = Heads(self.source)
        return [
            (key, self._offer(diagnostic, heads))
            for fixed in plan.files
            for key, diagnostic in zip(plan.keys[fixed.source.name], fixed.applied, strict=True)
        ]

    def _offer(self, found: Diagnostic, heads: Heads) -> Offer:
        file = Path(found.path).resolve().relative_to(self.source).as_posix()
        _, line = heads.of(file, found.span.line)
        return Offer(
            file,
            line,
            found.span.end_line,
            found.rule,
            found.fix_title or "",
            found.fix_safety is Safety.SAFE,
        )

    def judged(
        self, old: Mapping[Run, Measured], offered: Sequence[Candidate]
    ) -> tuple[list[Row], list[Proof]]:
        """Applies all fixes, takes back what is to blame, and says what is left."""
        blamed: dict[Key, str] = {}
        new = self.after((), {run for each in offered for run in each.runs})
        while found := self._blamed(old, new, offered, blamed):
            blamed |= found
            files = {each.offer.file for each in offered if each.key in found}
            new |= self.after(blamed, {run for run in new if files & old[run].lines.keys()})
        proofs = [
            Proof(
                each.offer,
                verdict(each.runs, each.key in blamed),
                each.runs,
                blamed.get(each.key, ""),
            )
            for each in offered
        ]
        rows = [
            Row(
                self.library,
                run,
                seen.breaks.total(),
                new.get(run, seen).breaks.total(),
                sum(run in each.runs for each in offered if each.key not in blamed),
                unlike(seen, new.get(run, seen)) or last_line(seen.failure),
                graphs=(seen.graphs, new.get(run, seen).graphs),
            )
            for run, seen in old.items()
        ]
        return rows, proofs

    def _blamed(
        self,
        old: Mapping[Run, Measured],
        new: Mapping[Run, Measured],
        offered: Sequence[Candidate],
        refused: Collection[Key],
    ) -> dict[Key, str]:
        """The fixes that make a run differ, each with the run and the difference.

        Suspects are all those in files that the run passes through: what a fix adds to a
        module is run where the module is loaded.
        """
        blamed: dict[Key, str] = {}
        every = list(dict.fromkeys(each.key for each in offered))
        for run in new:
            detail = unlike(old[run], new[run])
            if detail is None:
                continue
            say(self.library, f"{' '.join(run)} differs: {detail}")
            near = {each.key for each in offered if each.offer.file in old[run].lines}
            gone = {*refused, *blamed}
            suspects = [key for key in every if key in near and key not in gone]

            def differs(chosen: Sequence[Key], run: Run = run) -> bool:
                others = [key for key in every if key not in chosen]
                return unlike(old[run], self.after(others, [run])[run]) is not None

            guilty = culprits(suspects, differs)
            blamed |= dict.fromkeys(guilty, f"{' '.join(run)}: {detail}")
        return blamed

    def after(self, refused: Collection[Key], runs: Collection[Run]) -> dict[Run, Measured]:
        """These runs, with all the fixes but those that are refused."""
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.source, self.copy, ignore=shutil.ignore_patterns("__pycache__"))
        for path, content in self.fixed(refused).new.items():
            (self.copy / path.relative_to(self.source)).write_bytes(content)
        try:
            seen = self.measured(self.copy, {name for name, _ in runs}) if runs else {}
        except DidNotRunError as error:
            return {run: Measured(failure=str(error)) for run in runs}
        return {run: seen[run] for run in runs}


def verdict(runs: Sequence[Run], is_blamed: bool) -> Verdict:
    if is_blamed:
        return Verdict.REFUTED
    return Verdict.VERIFIED if runs else Verdict.NOT_RUN


def last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]


def unlike(old: Measured, new: Measured) -> str | None:
    """The first difference: of the eager runs, or of the compiled one from the old eager one
    where the old compiled one did not differ in the same way."""
    if new.failure != old.failure:
        return last_line(new.failure) or "it no longer fails"
    for before, after in zip(old.eager, new.eager, strict=True):
        for found in differences(before, after):
            return f"{found.aspect.value}: {found.detail}"
    for eager, before, after in zip(old.eager, old.compiled, new.compiled, strict=True):
        own = {found.aspect for found in differences(eager, before, compiled=True)}
        for found in differences(eager, after, compiled=True):
            if found.aspect not in own:
                return f"compiled, {found.aspect.value}: {found.detail}"
    return None


if __name__ == "__main__":
    main()
