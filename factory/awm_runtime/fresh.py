"""Processes that are fresh Pythons, not forks of ours: what is in our memory is not in theirs.

Both ends are here: `Fresh.start` on ours, `begin` on theirs. It imports nothing that takes time, so that a container's first act
can be to start the process that imports the environment.
"""

import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from awm_runtime import frames
from awm_runtime.frames import Frame


@dataclass(frozen=True)
class Fresh:
    """A process that runs a module of ours, and the link to it. Ended with its block."""

    process: "subprocess.Popen[bytes]"
    link: socket.socket

    @classmethod
    def start(cls, module: str) -> Self:
        ours, theirs = socket.socketpair()
        environment = {
            "PATH": os.defpath,
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "TZ": "UTC",
            "PYTHONWARNINGS": "ignore",
        }
        if "PYTHONPATH" in os.environ:
            environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
        command = [sys.executable, "-m", module, str(theirs.fileno())]
        process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr
        )
        theirs.close()
        return cls(process, ours)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.kill()
        self.link.close()
        self.process.wait()


def begin() -> tuple[socket.socket, Frame] | None:
    """The first act of such a process: its link and its first message; None where whoever started it is gone already."""
    from awm_runtime import confine

    confine.die_with_parent()
    link = socket.socket(fileno=int(sys.argv[1]))
    message = frames.receive(link)
    os.environ.clear()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return None if message is None else (link, message[0])
