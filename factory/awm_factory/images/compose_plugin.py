"""Docker Compose v2, which fleets are started with: found, or as root on Debian and Ubuntu installed.

Debian 12 has Compose 1 only, which reads none of our files. There the program is taken out of Debian 13's package, by apt from
this machine's own mirror and with its signatures, and laid where the docker command looks for plugins.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from awm_factory.config import Config
from awm_factory.errors import EngineError
from awm_factory.images import daemon, os_debian
from awm_factory.images.engine import Say, say_on_stderr

PACKAGES: Final = ("docker-compose-plugin", "docker-compose-v2", "docker-compose")
"""Docker's own, Ubuntu's, and Debian's since 13; the first that is version 2 or newer here."""
PLUGINS: Final = Path("/usr/local/lib/docker/cli-plugins")
_SUITE: Final = "trixie"
_DEBIAN: Final = "http://deb.debian.org/debian"
_CANDIDATE: Final = re.compile(r"^  Candidate: (?:\d+:)?v?(\d+)", re.MULTILINE)


def version() -> str | None:
    """Of the Compose plugin that the docker command finds; None where it finds none."""
    docker = daemon.program("docker")
    if docker is None:
        return None
    done = subprocess.run([docker, "compose", "version", "--short"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    found = re.match(r"v?(\d+\.\S+)", done.stdout.strip())
    return found[1] if done.returncode == 0 and found else None


def ensure_compose(config: Config, say: Say = say_on_stderr) -> str:
    """Version of Docker Compose. Raises EngineError that says what to install where it is missing and can't be installed."""
    if found := version():
        return found
    if not daemon.possible():
        raise EngineError(f"`docker compose` does not work here. {advice()}")
    with daemon.lock():
        if version() is None:
            _install(config, say)
    if found := version():
        return found
    raise EngineError(f"Docker Compose was installed, and `docker compose version` still fails. {advice()}")


def advice() -> str:
    if daemon.program("docker") is None:
        return "The docker command is missing as well: install Docker's CLI with its Compose plugin (https://docs.docker.com/compose/install/)."
    return (
        "Install the plugin: docker-compose-plugin from Docker's repository, docker-compose-v2 on Ubuntu, docker-compose on "
        "Debian 13; it is part of Docker Desktop (https://docs.docker.com/compose/install/)."
    )


def _install(config: Config, say: Say) -> None:
    for package in PACKAGES:
        policy = subprocess.run(["apt-cache", "policy", package], capture_output=True, text=True)
        found = _CANDIDATE.search(policy.stdout)
        if found and int(found[1]) >= 2:
            daemon.apt_install([package], "fleets need Docker Compose 2", say)
            return
    _unpack(config, say)


def _unpack(config: Config, say: Say) -> None:
    mirror = config.debian_mirror or os_debian.mirrors()[0] or _DEBIAN
    say(f"fleets need Docker Compose 2: taking it out of Debian {_SUITE}'s docker-compose")
    with tempfile.TemporaryDirectory(prefix="awm-compose-") as name:
        folder = Path(name)
        (folder / "sources.list").write_text(f"deb {mirror} {_SUITE} main\n")
        apt = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3"]
        for option, value in {
            "Dir::Etc::sourcelist": folder / "sources.list",
            "Dir::Etc::sourceparts": "-",
            "Dir::State::lists": folder / "lists",
            "Dir::Cache": folder / "cache",
        }.items():
            apt += ["-o", f"{option}={value}"]
        for kept in ("lists/partial", "cache/archives/partial"):
            (folder / kept).mkdir(parents=True)
        _run([*apt, "update"], folder)
        _run([*apt, "download", f"docker-compose/{_SUITE}"], folder)
        package = next(iter(folder.glob("docker-compose_*.deb")))
        _run(["dpkg-deb", "-x", str(package), str(folder / "unpacked")], folder)
        program = folder / "unpacked/usr/libexec/docker/cli-plugins/docker-compose"
        PLUGINS.mkdir(parents=True, exist_ok=True)
        partial = PLUGINS / ".docker-compose.partial"
        shutil.copyfile(program, partial)
        partial.chmod(0o755)
        partial.replace(PLUGINS / "docker-compose")


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-10:])
        raise EngineError(f"`{' '.join([command[0], *command[-2:]])}` failed:\n{tail}\n{advice()}")
