"""The worker process: `python -m jitlint.verify.worker`, driven over its standard streams.

It serves one request after another. A framework is imported once, and only where a request
needs it; every module under test is loaded afresh.
"""

import io
import json
import os
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import IO, Any

from jitlint.finding import Verdict
from jitlint.verify import protocol
from jitlint.verify.frameworks import MissingError, Stage, framework_of, load
from jitlint.verify.judge import Judge
from jitlint.verify.records import Options, Report, Request
from jitlint.verify.sandbox import Sandbox, limit_memory


class Channel:
    """The two ends of the pipe to the parent, out of reach of the code under test."""

    def __init__(self) -> None:
        self._requests: IO[bytes] = os.fdopen(os.dup(0), "rb")
        self._answers: IO[bytes] = os.fdopen(os.dup(1), "wb")
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        sys.stdin = io.TextIOWrapper(io.BytesIO())

    def receive(self) -> dict[str, Any] | None:
        line = self._requests.readline()
        return json.loads(line) if line else None

    def send(self, message: dict[str, Any]) -> None:
        self._answers.write(json.dumps(message).encode() + b"\n")
        self._answers.flush()


def main() -> None:
    channel = Channel()
    _end_with_parent()
    first = channel.receive()
    if first is None:
        return
    options = protocol.options_from_message(first["options"])
    sandbox = Sandbox(Path.cwd())
    judges = Judges(options, sandbox, lambda text: channel.send({"stage": text}))
    for name in first["frameworks"]:
        judges.prepare(name)
    sandbox.install()
    limit_memory(options.memory_limit, judges.use_gpu)
    channel.send({"ready": True})
    while (message := channel.receive()) is not None:
        request = protocol.request_from_message(message["request"])
        channel.send({"report": protocol.report_to_message(_serve(judges, request))})


class Judges:
    """One for each framework, made when it is first needed; a missing one is a reason."""

    def __init__(self, options: Options, sandbox: Sandbox, stage: Stage) -> None:
        self._options, self._sandbox, self._stage = options, sandbox, stage
        self._made: dict[str, Judge | str] = {}

    def prepare(self, name: str) -> Judge | str:
        """The judge, or why there is none."""
        if name not in self._made:
            self._stage(f"importing {name}")
            try:
                framework = load(name, self._options, self._stage)
                self._made[name] = Judge(framework, self._sandbox, self._stage)
            except MissingError as error:
                self._made[name] = str(error)
        return self._made[name]

    @property
    def use_gpu(self) -> bool:
        made = (judge for judge in self._made.values() if isinstance(judge, Judge))
        return any(judge.framework.uses_gpu for judge in made)

    def judge(self, request: Request) -> Report:
        judge = self.prepare(framework_of(request.old))
        if isinstance(judge, str):
            return Report(request.path, Verdict.UNVERIFIED, judge)
        return judge.judge(request)


def _serve(judges: Judges, request: Request) -> Report:
    """A mistake of the verifier's own is a reason, too: never a traceback, never a pass."""
    try:
        return judges.judge(request)
    except MemoryError:
        return Report(request.path, Verdict.UNVERIFIED, "the memory limit was reached")
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        reason = f"the verifier failed: {type(error).__name__}: {error} ({place})"
        return Report(request.path, Verdict.UNVERIFIED, reason)


def _end_with_parent() -> None:
    """Without its parent, nobody would stop a module that never ends."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main()
