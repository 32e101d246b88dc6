"""Containers started as a cautious trainer would: no rights, no writable root, limits, and nothing published beyond loopback.

testcontainers starts and removes them. It would pull an image it is given by a name this engine lacks, so it gets IDs only;
its own reaper is a container from a hub, so it is off and our labels take its place.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

import docker
from docker.errors import DockerException, NotFound
from docker.models.containers import Container
from requests.exceptions import RequestException
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from awm_factory.errors import EngineError
from awm_factory.images.docker_client import OWNER, Owner
from awm_runtime.contract import AGENT_PORT, CONTROL_PORT

LOOPBACK: Final = "127.0.0.1"
USER: Final = "48211:48211"
"""Nobody's in particular: an image must not count on the user it was written for."""
MEMORY: Final = "1g"
PIDS: Final = 256
LOG_LINES: Final = 20

testcontainers_config.ryuk_disabled = True


@dataclass(frozen=True)
class Box:
    """A container that runs."""

    container: Container
    started: float
    """`time.monotonic()` just before the engine was asked to start it."""

    def port(self, port: int) -> int:
        """The host's port on loopback. Raises EngineError where it is not published, as after the container's end."""
        self.container.reload()
        bindings = self.container.ports.get(f"{port}/tcp") or []
        if not bindings:
            raise EngineError(f"port {port} of {self.container.name} is not published; the container is {self.container.status}")
        return int(bindings[0]["HostPort"])

    def running(self) -> bool:
        try:
            self.container.reload()
        except NotFound:
            return False
        return self.container.status == "running"

    def last_words(self) -> str:
        try:
            text = b"".join(self.container.logs(stream=True, follow=False, tail=LOG_LINES)).decode(errors="replace").rstrip()
        except (DockerException, RequestException) as error:
            return f"its log can't be read: {error}"
        return text or "it printed nothing"

    def run(self, command: list[str]) -> tuple[int, str]:
        """Exit code and output of another command inside it."""
        result = self.container.exec_run(command, stream=False)
        output = result.output if isinstance(result.output, bytes) else b""
        return (-1 if result.exit_code is None else result.exit_code), output.decode(errors="replace")

    def signal(self, name: str, limit: float) -> tuple[int | None, float]:
        """Send a signal and wait for the end: exit code (None past the limit) and seconds it took."""
        begin = time.monotonic()
        self.container.kill(signal=name)
        try:
            code = int(self.container.wait(timeout=limit)["StatusCode"])
        except RequestException:
            return None, time.monotonic() - begin
        return code, time.monotonic() - begin


@contextlib.contextmanager
def boxed(
    image_id: str,
    owner: Owner,
    *,
    command: list[str] | None = None,
    environment: dict[str, str] | None = None,
    network: Network | None = None,
    alias: str | None = None,
) -> Iterator[Box]:
    """A hardened container: on the default network with both ports published on loopback, or on `network` with none."""
    spec = DockerContainer(image_id, env=environment or {})
    # A user's prefix for images from a hub is not for ours.
    spec.image = image_id
    options: dict[str, Any] = {
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "user": USER,
        "mem_limit": MEMORY,
        "memswap_limit": MEMORY,
        "pids_limit": PIDS,
        "tmpfs": {"/tmp": "size=256m,mode=1777"},
        "labels": {OWNER: owner.label, "awm.role": "smoke"},
    }
    spec.tmpfs = options.pop("tmpfs")
    if command is not None:
        spec.with_command(command)
    if network is not None:
        spec.with_network(network).with_network_aliases(*([alias] if alias else []))
    else:
        options["network"] = "bridge"
        # testcontainers types ports as numbers only, and passes on what the Docker SDK takes: an address with a free port.
        spec.ports = cast("Any", {f"{port}/tcp": (LOOPBACK, None) for port in (CONTROL_PORT, AGENT_PORT)})
    spec.with_kwargs(**options)
    with contextlib.ExitStack() as stack:
        stack.callback(_remove, spec)
        begin = time.monotonic()
        try:
            spec.start()
        except (DockerException, RequestException) as error:
            raise EngineError(f"the engine could not start a container of {image_id}: {error}") from error
        owner.go_on()
        yield Box(spec.get_wrapped_container(), begin)


@contextlib.contextmanager
def internal_network(owner: Owner) -> Iterator[Network]:
    """A network without a way out."""
    network = Network(docker_network_kw={"internal": True, "labels": {OWNER: owner.label, "awm.role": "smoke"}})
    with contextlib.ExitStack() as stack:
        stack.callback(_remove_network, network)
        try:
            network.create()
        except (DockerException, RequestException) as error:
            raise EngineError(f"the engine could not make a network: {error}; `docker network prune` frees addresses") from error
        owner.go_on()
        yield network


def _remove(spec: DockerContainer) -> None:
    with contextlib.suppress(NotFound), _unless_already_going():
        spec.stop()


def _remove_network(network: Network) -> None:
    with contextlib.suppress(NotFound, AssertionError), _unless_already_going():
        network.remove()


@contextlib.contextmanager
def _unless_already_going() -> Iterator[None]:
    try:
        yield
    except docker.errors.APIError as error:
        if error.status_code != 409:
            raise
