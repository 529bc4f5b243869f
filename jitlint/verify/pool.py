"""Worker processes, seen from the linter: started, fed, timed, replaced when they die."""

import contextlib
import json
import os
import queue
import shutil
import signal
import site
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from jitlint.finding import Verdict
from jitlint.verify import protocol
from jitlint.verify.frameworks import framework_of
from jitlint.verify.records import Options, Report, Request

# Importing frameworks takes seconds on a cold disk; it is not charged to a request.
START_TIMEOUT = 180.0
# A worker that has served this many modules is replaced: compilers keep what they made.
REQUESTS_PER_WORKER = 60

Progress = Callable[[str], None]


class WorkerError(Exception):
    """The worker is gone, or has to go; the message is for the user."""


class Worker:
    """One process with its temporary folder; a context manager that leaves nothing behind."""

    def __init__(self, options: Options, frameworks: Sequence[str]) -> None:
        self.served = 0
        self._folder = tempfile.mkdtemp(prefix="jitlint-verify-")
        self._stderr = Path(self._folder, ".stderr").open("w+b")  # noqa: SIM115 closed by close()
        self._stage = "starting"
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "jitlint.verify.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=self._folder,
            env=_environment(self._folder),
            start_new_session=True,
        )
        threading.Thread(target=self._read, daemon=True).start()
        try:
            settings = protocol.options_to_message(options)
            self._send({"options": settings, "frameworks": list(frameworks)})
            self._receive("ready", START_TIMEOUT)
        except WorkerError:
            self.close()
            raise

    def serve(self, request: Request, timeout: float) -> Report:
        self.served += 1
        self._stage = "loading the module"
        self._send({"request": protocol.request_to_message(request)})
        return protocol.report_from_message(self._receive("report", timeout)["report"])

    def kill(self) -> None:
        _kill(self._process)

    def close(self) -> None:
        self.kill()
        self._stderr.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _send(self, message: dict[str, Any]) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        try:
            pipe.write(json.dumps(message).encode() + b"\n")
            pipe.flush()
        except OSError as error:
            raise WorkerError(self._death()) from error

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            for line in pipe:
                self._messages.put(json.loads(line))
        self._messages.put(None)

    def _receive(self, kind: str, timeout: float) -> dict[str, Any]:
        deadline = time.monotonic() + timeout
        while True:
            try:
                message = self._messages.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise WorkerError(f"timed out after {timeout:g} s while {self._stage}") from None
            if message is None:
                raise WorkerError(self._death())
            if kind in message:
                return message
            self._stage = message["stage"]

    def _death(self) -> str:
        status = self._process.wait()
        if status < 0:
            how = f"was killed by {signal.Signals(-status).name}"
        else:
            how = f"ended with status {status}"
        return f"the worker process {how} while {self._stage}{self._last_words()}"

    def _last_words(self) -> str:
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return f": {lines[-1].strip()[:300]}" if lines else ""


def run(requests: Sequence[Request], options: Options, progress: Progress | None) -> list[Report]:
    """The reports, in the order of the requests."""
    pool = _Pool(requests, options, progress)
    count = max(1, min(options.workers, len(requests)))
    with ThreadPoolExecutor(count) as threads:
        try:
            list(threads.map(pool.work, range(count)))
        except BaseException:
            pool.stop()  # Ctrl-C: the workers are sessions of their own and would go on
            raise
    return [pool.reports[index] for index in range(len(requests))]


class _Pool:
    """Threads that take requests from one list, each with a worker of its own."""

    def __init__(
        self, requests: Sequence[Request], options: Options, progress: Progress | None
    ) -> None:
        self.reports: dict[int, Report] = {}
        self._frameworks = sorted({framework_of(request.old) for request in requests})
        self._waiting = deque(enumerate(requests))
        self._options = options
        self._progress = progress
        self._workers: set[Worker] = set()

    def work(self, _: int) -> None:
        """One worker serves many; what kills it costs the request in hand and no other."""
        worker: Worker | None = None
        try:
            while (job := self._take()) is not None:
                index, request = job
                try:
                    worker = worker or self._start()
                    report = worker.serve(request, self._options.timeout)
                    finished = worker.served >= REQUESTS_PER_WORKER
                except WorkerError as error:
                    report = Report(request.path, Verdict.UNVERIFIED, str(error))
                    finished = True
                if finished:
                    self._end(worker)
                    worker = None
                self._done(index, report)
        finally:
            self._end(worker)

    def stop(self) -> None:
        self._waiting.clear()
        for worker in list(self._workers):
            worker.kill()

    def _take(self) -> tuple[int, Request] | None:
        try:
            return self._waiting.popleft()
        except IndexError:
            return None

    def _start(self) -> Worker:
        worker = Worker(self._options, self._frameworks)
        self._workers.add(worker)
        return worker

    def _end(self, worker: Worker | None) -> None:
        if worker is not None:
            self._workers.discard(worker)
            worker.close()

    def _done(self, index: int, report: Report) -> None:
        self.reports[index] = report
        if self._progress is not None:
            self._progress(f"{report.path}: {report.verdict.value} ({report.reason})")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The worker leads its own process group, so that its children go with it."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):  # it died with a message unread
            process.stdin.close()
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _environment(folder: str) -> dict[str, str]:
    """Caches and settings of the compilers lie in `folder`, and nothing phones home."""
    source = str(Path(__file__).resolve().parents[2])
    quiet = ("TORCH_LOGS", "TORCH_TRACE", "TORCH_COMPILE_DEBUG", "PYTHONINSPECT")
    inherited = {key: value for key, value in os.environ.items() if key not in quiet}
    folders = ("HOME", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
    caches = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "NUMBA_CACHE_DIR", "MPLCONFIGDIR")
    return {
        **inherited,
        **dict.fromkeys((*folders, *caches), folder),
        "PYTHONPATH": os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH")))),
        # HOME moves, but packages installed for the user stay importable.
        "PYTHONUSERBASE": site.getuserbase(),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONIOENCODING": "utf-8",
        "OMP_NUM_THREADS": "1",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "WANDB_MODE": "disabled",
        "DO_NOT_TRACK": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
