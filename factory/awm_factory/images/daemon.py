"""Bringing up a Docker engine where none answers: only as root on Linux, and installing one only on Debian and Ubuntu."""

import fcntl
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from awm_factory.errors import EngineError

T = TypeVar("T")

START_TIMEOUT: Final = 90
"""Seconds until a started engine must answer; a cold one with an empty store takes about 2."""

_PID_FILES: Final = {"dockerd": Path("/var/run/docker.pid"), "containerd": Path("/var/run/docker/containerd/containerd.pid")}
_LOG: Final = Path("/var/log/awm-factory-dockerd.log")
_LOCK: Final = Path("/run/awm-factory-engine.lock")
_SYSTEMD: Final = Path("/run/systemd/system")
"""There exactly where systemd is the init system (sd_booted(3))."""
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where system programs are; a shell that became root by `su` may miss the sbin folders."""


def possible() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0 and (program("dockerd") is not None or debian_like())


def debian_like() -> bool:
    """Debian, Ubuntu, or one of their derivatives."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return False
    return bool({"debian", "ubuntu"} & {release["ID"], *release.get("ID_LIKE", "").split()}) and program("apt-get") is not None


def program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(name, path=_PATH)


def apt_install(packages: list[str], why: str, say: Callable[[str], None]) -> None:
    """Install Debian packages; callers made sure that we are root on Debian or Ubuntu."""
    say(f"{why}: installing {' '.join(packages)}")
    env = ["env", f"PATH={_PATH}", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"]
    for command in (["update", "-q"], ["install", "-qy", "--no-install-recommends", *packages]):
        done = subprocess.run(
            [*env, "apt-get", "-o", "Acquire::Retries=3", *command], stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if done.returncode:
            tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
            raise EngineError(f"`apt-get {' '.join(command)}` failed:\n{tail}\nRepair that and run the command again.")


@contextmanager
def lock() -> Iterator[None]:
    """One starter at a time: a second `make` waits here and then finds the engine answering."""
    with _LOCK.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def start(probe: Callable[[], T | None], say: Callable[[str], None]) -> T:
    """Install docker.io where dockerd is missing, start it and wait until `probe` finds it.

    The engine outlives us: it runs in a session of its own. Raises EngineError with the last lines of its log.
    """
    if program("dockerd") is None:
        apt_install(["docker.io"], "no Docker engine on this machine", say)
    if _SYSTEMD.is_dir():
        say("no Docker engine answers: starting the docker service")
        done = subprocess.run(["systemctl", "start", "docker"], capture_output=True, text=True)
        if done.returncode:
            raise EngineError(f"`systemctl start docker` failed: {done.stderr.strip()}; see `journalctl -u docker`")
        return _wait(probe, lambda: None, "see `journalctl -u docker`")
    say(f"no Docker engine answers: starting dockerd, its log is {_LOG}")
    _forget_the_dead()
    with _LOG.open("w") as log:
        process = subprocess.Popen(
            ["env", f"PATH={_PATH}", "dockerd"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            cwd="/",
        )
    return _wait(probe, process.poll, f"the last lines of {_LOG}:", _LOG)


def _forget_the_dead() -> None:
    """Remove pid files of a killed engine: the next one refuses to start, or waits, while any process has that number."""
    for program_name, file in _PID_FILES.items():
        try:
            status = Path(f"/proc/{int(file.read_text())}/stat").read_text()
        except (OSError, ValueError):
            continue
        name, _, rest = status.partition("(")[2].rpartition(")")
        if name != program_name or rest.split()[0] in {"Z", "X"}:
            file.unlink(missing_ok=True)


def _wait(probe: Callable[[], T | None], ended: Callable[[], int | None], hint: str, log: Path | None = None) -> T:
    def look() -> T | int | None:
        code = ended()
        return code if code is not None else probe()

    nothing = retry_if_result(lambda found: found is None)
    try:
        found = Retrying(stop=stop_after_delay(START_TIMEOUT), wait=wait_fixed(0.1), retry=nothing)(look)
    except RetryError:
        found = None
    if found is None or isinstance(found, int):
        how = f"did not answer within {START_TIMEOUT} s" if found is None else f"ended with exit code {found}"
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:]) if log else ""
        raise EngineError(f"the Docker engine was started and {how}; {hint}\n{tail}".rstrip())
    return found


def advice(tried: list[str]) -> str:
    """What to do on this machine, given what each address answered."""
    if any("Permission denied" in line for line in tried):
        return "Your user may not use it: run `sudo usermod -aG docker $USER`, log in again, and repeat the command."
    if sys.platform == "darwin":
        return "Start Docker Desktop (or Colima: `colima start`); to install it: `brew install --cask docker`."
    if sys.platform == "linux" and program("dockerd"):
        return "Start it: `sudo systemctl start docker`, or `make engine` as root."
    if sys.platform == "linux" and debian_like():
        return "Install Docker Desktop, or docker.io with `sudo apt-get install docker.io`; as root, `make engine` does that."
    return "Install Docker Engine or Docker Desktop (https://docs.docker.com/get-started/get-docker/) and start it."
