"""Private Docker engines, each in a network namespace of its own, for tests of a real swarm. The user's engine is not touched.

Namespaces are entered with `nsenter --net=…`; `ip netns exec` would hide the control groups from the engine.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import docker
from docker.errors import DockerException
from requests.exceptions import RequestException

from awm_factory.images import daemon

PREFIX: Final = "awmsw"
SUBNET: Final = "10.213.77"
ENVS: Final = ("bee_yard_east", "bee_yard_west")


def impossible() -> str | None:
    """Why this machine can't run private engines; None where it can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a swarm of private engines takes root on Linux"
    if missing := [name for name in ("dockerd", "docker", "ip", "nsenter", "iptables") if daemon.program(name) is None]:
        return f"a swarm of private engines takes {', '.join(missing)}"
    probe = subprocess.run(
        ["ip", "link", "add", f"{PREFIX}probe", "type", "vxlan", "id", "7", "dstport", "0"], capture_output=True
    )
    if probe.returncode:
        return "this kernel has no vxlan, which a swarm's networks are made of"
    subprocess.run(["ip", "link", "del", f"{PREFIX}probe"], check=True)
    return None


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@dataclass
class Node:
    """One private engine."""

    name: str
    address: str
    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def host(self) -> str:
        return f"unix://{self.folder}/docker.sock"

    @property
    def inside(self) -> list[str]:
        """Before a command that is to run in the node's network."""
        return ["nsenter", f"--net=/run/netns/{self.name}"]

    def client(self) -> docker.DockerClient:
        return docker.DockerClient(base_url=self.host, timeout=60)

    def run(self, *command: str, **options: object) -> str:
        """On the node, with its engine as the one that answers. Raises CalledProcessError."""
        env = {**os.environ, "DOCKER_HOST": self.host}
        done = subprocess.run([*self.inside, *command], env=env, capture_output=True, text=True, **options)  # type: ignore[call-overload]
        if done.returncode:
            sys.stderr.write(done.stdout + done.stderr)
            done.check_returncode()
        return str(done.stdout)

    def python(self, *arguments: str) -> str:
        return self.run(sys.executable, *arguments)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A Python program on the node, whose output is read while it runs."""
        env = {**os.environ, "DOCKER_HOST": self.host}
        return subprocess.Popen([*self.inside, sys.executable, *arguments], env=env, stdout=subprocess.PIPE, text=True)

    def kill(self) -> None:
        """The machine is gone: its engine, its containers, its link."""
        subprocess.run(["ip", "-n", SWITCH, "link", "set", f"{self.name}v", "down"], check=False)
        give_up = time.monotonic() + 20
        while (pids := self._pids()) and time.monotonic() < give_up:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.poll()

    def _pids(self) -> list[int]:
        """Processes of the node's network: the engine's, and of all that hangs on it."""
        listed = subprocess.run(["ip", "netns", "pids", self.name], capture_output=True, text=True).stdout.split()
        found = {int(pid) for pid in listed}
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if str(self.folder).encode() in path.read_bytes():
                    found.add(int(path.parent.name))
        children = True
        while children:
            children = {int(pid) for pid in _children(found)} - found
            found |= children
        return sorted(found - {os.getpid()})


def _children(parents: set[int]) -> list[str]:
    found: list[str] = []
    for pid in parents:
        for path in Path(f"/proc/{pid}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += path.read_text().split()
    return found


SWITCH: Final = f"{PREFIX}switch"


@contextlib.contextmanager
def network() -> Iterator[str]:
    """A bridge that nodes hang on, and its address.

    It has a namespace of its own too: in the machine's, the user's engine decides by its packet filter what is forwarded.
    """
    address = f"{SUBNET}.1"
    subprocess.run(["ip", "netns", "del", SWITCH], capture_output=True)
    ip("netns", "add", SWITCH)
    try:
        ip("-n", SWITCH, "link", "add", "br0", "type", "bridge")
        ip("-n", SWITCH, "addr", "add", f"{address}/24", "dev", "br0")
        ip("-n", SWITCH, "link", "set", "br0", "up")
        ip("-n", SWITCH, "link", "set", "lo", "up")
        yield address
    finally:
        ip("netns", "del", SWITCH)


@contextlib.contextmanager
def registry(folder: Path, address: str) -> Iterator[str]:
    """A real registry on the bridge; its `<address>:5000`."""
    program = daemon.program("docker-registry")
    assert program is not None
    config = folder / "registry.yml"
    config.write_text(
        f"version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {folder / 'registry'}\n"
        f"http:\n  addr: {address}:5000\nlog:\n  level: warn\n"
    )
    with (folder / "registry.log").open("wb") as log:
        server = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{SWITCH}", program, "serve", str(config)], stdout=log, stderr=log
        )
    try:
        yield f"{address}:5000"
    finally:
        server.terminate()
        server.wait(timeout=10)
        shutil.rmtree(folder / "registry", ignore_errors=True)


@contextlib.contextmanager
def node(number: int, folder: Path, trusted: str) -> Iterator[Node]:
    """A private engine that trusts a registry without TLS, at `<subnet>.<number>`; ended and removed with all it holds."""
    name, address = f"{PREFIX}{number}", f"{SUBNET}.{number}"
    home = folder / name
    home.mkdir()
    (home / "daemon.json").write_text("{}")
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    ip("netns", "add", name)
    started: Node | None = None
    try:
        ip("-n", SWITCH, "link", "add", f"{name}v", "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("-n", SWITCH, "link", "set", f"{name}v", "master", "br0", "up")
        for command in (
            ["link", "set", "lo", "up"],
            ["addr", "add", f"{address}/24", "dev", "eth0"],
            ["link", "set", "eth0", "up"],
        ):
            ip("-n", name, *command)
        ip("-n", name, "route", "add", "default", "via", f"{SUBNET}.1")
        command = [
            *("nsenter", f"--net=/run/netns/{name}", daemon.program("dockerd") or "dockerd"),
            f"--host=unix://{home}/docker.sock",
            f"--data-root={home}/data",
            f"--exec-root={home}/exec",
            f"--pidfile={home}/docker.pid",
            f"--bip=172.{30 + number}.0.1/24",
            f"--insecure-registry={trusted}",
            f"--config-file={home}/daemon.json",
        ]
        with (home / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        started = Node(name, address, home, process)
        _answers(started)
        yield started
    finally:
        if started is not None:
            # Nothing of it is kept, so nothing is gained by letting it go in order.
            started.kill()
        _unmount(home)
        subprocess.run(["ip", "netns", "del", name], capture_output=True)
        shutil.rmtree(home, ignore_errors=True)


def _answers(started: Node) -> None:
    deadline = time.monotonic() + 300
    while True:
        try:
            started.client().ping()
        except (DockerException, RequestException) as error:
            if started.process.poll() is not None or time.monotonic() > deadline:
                log = (started.folder / "log").read_text(errors="replace")
                raise AssertionError(f"{started.name} did not start: {error}\n{log[-3000:]}") from error
            time.sleep(0.1)
        else:
            return


def _unmount(folder: Path) -> None:
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in sorted((one for one in points if one.startswith(str(folder))), reverse=True):
        subprocess.run(["umount", "--lazy", point], capture_output=True)


@dataclass
class Swarm:
    manager: Node
    worker: Node
    registry: str
    workspace: Path

    def fleet(self, *arguments: str) -> str:
        """`awm-factory fleet …` on the manager."""
        return self.manager.python("-m", "awm_factory", "--workspace", str(self.workspace), "fleet", *arguments)
