"""The sandbox that counts: containers of the base image, without network, with limits, one a lane.

Same Python, libraries and confinement as where the environment will be served, so what is certified is what ships.
"""

import queue
import socket
import threading
from collections import deque
from typing import Any

import docker
from docker.errors import APIError, DockerException, NotFound
from docker.utils.socket import frames_iter

from awm_factory.errors import SandboxError
from awm_factory.sandbox.pool import Lane, LanePool

MEMORY = "2g"
PIDS = 256
STDOUT = 1


class ContainerLane(Lane):
    def __init__(self, client: docker.DockerClient, image_id: str, owner: str) -> None:
        self.lines: queue.Queue[bytes | None] = queue.Queue()
        self._stderr: deque[bytes] = deque(maxlen=20)
        try:
            self._container = client.containers.create(
                image_id,
                ["python", "-m", "awm_runtime.checks"],
                stdin_open=True,
                network_mode="none",
                read_only=True,
                tmpfs={"/tmp": "size=512m,mode=1777"},
                user="65532:65532",
                cap_drop=["ALL"],
                security_opt=["no-new-privileges"],
                mem_limit=MEMORY,
                memswap_limit=MEMORY,
                pids_limit=PIDS,
                auto_remove=True,
                init=False,
                healthcheck={"test": ["NONE"]},  # the image's own asks a server, and none runs here
                labels={"awm.owner": owner, "awm.role": "sandbox"},
            )
        except DockerException as error:
            raise SandboxError(
                f"the engine could not make a sandbox container: {error}; run `awm-factory base`, then try again"
            ) from error
        try:
            stream: Any = client.api.attach_socket(
                self._container.id or "", params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            )
            self._stream = stream
            self._socket: socket.socket = getattr(stream, "_sock", stream)
            # The HTTP client's read time-out stays on the hijacked connection; an idle lane is no fault.
            self._socket.settimeout(None)
            self._container.start()
        except BaseException as error:
            self.close()
            if isinstance(error, DockerException):
                raise SandboxError(f"the engine could not start a sandbox container: {error}; see `docker info`") from error
            raise
        threading.Thread(target=self._read, daemon=True).start()

    def write(self, line: bytes) -> None:
        self._socket.sendall(line)

    def _read(self) -> None:
        pending = bytearray()
        try:
            for stream, data in frames_iter(self._stream, tty=False):
                if stream != STDOUT:
                    self._stderr.append(data)
                    continue
                pending += data
                if b"\n" in data:
                    *lines, rest = pending.split(b"\n")
                    for line in lines:
                        self.lines.put(bytes(line))
                    pending = bytearray(rest)
        except (OSError, ValueError) as error:
            self._stderr.append(f"connection to the engine lost: {error}".encode())
        self.lines.put(None)

    def last_words(self) -> str:
        return b"".join(self._stderr).decode(errors="replace").strip()

    def close(self) -> None:
        try:
            self._container.remove(force=True)
        except NotFound:
            pass
        except APIError as error:
            if error.status_code != 409:  # 409: its removal is already under way
                raise
        stream = getattr(self, "_stream", None)
        if stream is not None:
            stream.close()


class ContainerSandbox(LanePool):
    def __init__(self, client: docker.DockerClient, image_id: str, base: str, lanes: int = 1, owner: str = "") -> None:
        """`base` is the base image's tag, which a certificate names; `owner` labels the containers for `reap`."""
        super().__init__(base, lambda: ContainerLane(client, image_id, owner), lanes)
