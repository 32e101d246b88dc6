"""The sandbox without an engine: child processes of this Python, with limits.

It keeps generated code out of the host's own process and bounds its time and memory; the confinement of files and
network is what `awm_runtime` applies to itself, where the kernel can. Less than a container, so whoever opens it says so.
"""

import contextlib
import os
import queue
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque

from awm_factory.sandbox.pool import Lane, LanePool

MEMORY = 4 << 30
"""Address space a checks process may map, bytes: Python with SQLAlchemy and FastAPI maps under 1 GiB."""
FILE_SIZE = 512 << 20


class ProcessLane(Lane):
    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="awm-sandbox-")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "awm_runtime.checks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self._folder,
            env={"PATH": os.defpath, "TMPDIR": self._folder, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
            start_new_session=True,
            preexec_fn=_limit,
        )
        self.lines: queue.Queue[bytes | None] = queue.Queue()
        self._stderr: deque[bytes] = deque(maxlen=20)
        threading.Thread(target=self._read_out, daemon=True).start()
        threading.Thread(target=self._read_err, daemon=True).start()

    def write(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()

    def _read_out(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _read_err(self) -> None:
        assert self._process.stderr is not None
        self._stderr.extend(self._process.stderr)

    def last_words(self) -> str:
        return b"".join(self._stderr).decode(errors="replace").strip()

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


class ProcessSandbox(LanePool):
    def __init__(self, lanes: int = 1) -> None:
        super().__init__("process", ProcessLane, lanes)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_SIZE, FILE_SIZE))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
