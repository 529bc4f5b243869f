"""The worker process: `python -m jitlint.verify.worker`, driven over its standard streams.

It serves one request after another. The framework is imported once; every module under
test is loaded afresh.
"""

import io
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any

from jitlint.finding import Verdict
from jitlint.verify import protocol
from jitlint.verify.frameworks import TORCH, framework_of
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
    try:
        import torch
    except ImportError as error:
        channel.send({"fatal": _missing(error)})
        return
    from jitlint.verify.judge import Judge

    try:
        device = torch_device(options.device)
    except Exception as error:  # torch raises AssertionError where it has no CUDA
        channel.send({"fatal": f"the device {options.device!r} cannot be used: {error}"})
        return
    torch.set_num_threads(1)
    sandbox = Sandbox(Path.cwd())
    sandbox.install()
    limit_memory(options.memory_limit, device.startswith("cuda"))
    channel.send({"ready": True})

    def stage(text: str) -> None:
        channel.send({"stage": text})

    judges: dict[str, Any] = {TORCH: Judge(options, device, sandbox, stage)}
    while (message := channel.receive()) is not None:
        request = protocol.request_from_message(message["request"])
        judge = partial(_judge_of, judges, request, options, sandbox, stage)
        channel.send({"report": protocol.report_to_message(_serve(judge, request))})


def _judge_of(
    judges: dict[str, Any],
    request: Request,
    options: Options,
    sandbox: Sandbox,
    stage: Callable[[str], None],
) -> Any:
    """The judge of the file's framework; TensorFlow is imported when it is first needed."""
    framework = framework_of(request.old)
    if framework not in judges:
        stage("importing tensorflow")
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        try:
            from jitlint.verify.tensorflow_judge import TensorflowJudge
        except ImportError as error:
            return Missing(f"tensorflow cannot be imported: {error}")
        judges[framework] = TensorflowJudge(options, sandbox, stage)
    return judges[framework]


class Missing:
    """Stands for the judge of a framework that is not installed."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def judge(self, request: Request) -> Report:
        return Report(request.path, Verdict.UNVERIFIED, self._reason)


def _serve(judge: Callable[[], Any], request: Request) -> Report:
    """A mistake of the verifier's own is a reason, too: never a traceback, never a pass."""
    try:
        report: Report = judge().judge(request)
    except MemoryError:
        return Report(request.path, Verdict.UNVERIFIED, "the memory limit was reached")
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        reason = f"the verifier failed: {type(error).__name__}: {error} ({place})"
        return Report(request.path, Verdict.UNVERIFIED, reason)
    return report


def _end_with_parent() -> None:
    """Without its parent, nobody would stop a module that never ends."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def torch_device(wanted: str) -> str:
    import torch

    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    torch.empty(1, device=wanted)
    return wanted


def _missing(error: ImportError) -> str:
    if error.name == "torch":
        return "torch is not installed: pip install 'jitlint[torch]'"
    return f"torch cannot be imported: {error}"


if __name__ == "__main__":
    main()
