"""The Docker engine: one that answers is used as it is; where none does, `daemon` may bring one up.

The Docker SDK knows DOCKER_HOST and /var/run/docker.sock only. The docker command also follows contexts, and Docker
Desktop, Colima and rootless engines put their socket in the home folder, so those are tried too.
"""

import stat
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

import docker
from docker.context import Context, ContextAPI
from docker.errors import DockerException
from docker.tls import TLSConfig
from docker.utils import kwargs_from_env
from requests.exceptions import RequestException

from awm_factory import config as settings
from awm_factory.config import PLATFORMS, Config
from awm_factory.errors import EngineError
from awm_factory.images import daemon

Say = Callable[[str], None]

PROBE_TIMEOUT: Final = 5
"""Seconds an engine may take to answer `ping`; a local one takes milliseconds."""

TIMEOUT: Final = 120
"""Seconds a busy engine may stay silent within one call."""

DEFAULT_HOST: Final = "unix:///var/run/docker.sock"

_HOME_SOCKETS: Final = (
    ".docker/run/docker.sock",  # Docker Desktop on macOS
    ".docker/desktop/docker.sock",  # Docker Desktop on Linux
    ".colima/default/docker.sock",
    ".rd/docker.sock",  # Rancher Desktop
    ".orbstack/run/docker.sock",
)


@dataclass(frozen=True)
class Engine:
    client: docker.DockerClient
    host: str
    """`unix:///…` or `tcp://…`."""
    version: str
    native: str
    """Platform it runs without emulation, `linux/amd64` or `linux/arm64`."""
    platform: str
    """Platform that images are made for: the native one, or the user's choice."""
    tls: TLSConfig | None = None

    def connect(self, timeout: float) -> docker.DockerClient:
        """Another connection, for calls that must not hang: it gives up after `timeout` seconds of silence."""
        return _connect(self.host, self.tls, timeout)


@dataclass(frozen=True)
class _Candidate:
    host: str
    source: str
    """Where the address comes from, for messages."""
    tls: TLSConfig | None = None
    explicit: bool = False
    """The user asked for this engine, so no other may take its place."""
    export: bool = False
    """Other libraries would not find this engine by themselves."""


def say_on_stderr(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def ensure_engine(config: Config, say: Say = say_on_stderr, *, start: bool = True) -> Engine:
    """The engine that answers, or one that was started (if it may be) because none did and we are root on a machine that can.

    Raises EngineError that says what was tried and what to install or start.
    """
    tried: list[str] = []
    candidates = list(_candidates(config))
    engine = _first(candidates, config, tried)
    if engine is None and start and any(candidate.host == DEFAULT_HOST for candidate in candidates) and daemon.possible():
        local = _Candidate(DEFAULT_HOST, "the local engine")
        with daemon.lock():
            engine = _first([local], config, []) or daemon.start(lambda: _first([local], config, []), say)
    if engine is None:
        chosen = next((candidate.source for candidate in candidates if candidate.explicit), None)
        advice = f"Start that engine, or unset what names it ({chosen})." if chosen else daemon.advice(tried)
        raise EngineError("\n".join(["no Docker engine answers.", *(f"  {line}" for line in tried), advice]))
    return engine


def _candidates(config: Config) -> Iterator[_Candidate]:
    if config.docker_host:
        tls = kwargs_from_env().get("tls") if config.docker_host.startswith(("tcp", "http")) else None
        yield _Candidate(config.docker_host, "DOCKER_HOST", tls if isinstance(tls, TLSConfig) else None, explicit=True)
        return
    name = settings.docker_context()
    context = cast("Context | None", ContextAPI.get_context(name))
    if context is None and name:
        raise EngineError(f"DOCKER_CONTEXT is {name!r}, and there is no such context; `docker context ls` lists them")
    if context is not None and context.Name != "default" and context.Host:
        tls = context.TLSConfig
        yield _Candidate(context.Host, f"Docker context {context.Name!r}", tls, explicit=bool(name), export=tls is None)
        if name:
            return
    yield _Candidate(DEFAULT_HOST, "default socket")
    runtime = settings.runtime_folder()
    for path in [*([runtime / "docker.sock"] if runtime else []), *(Path.home() / socket for socket in _HOME_SOCKETS)]:
        if _is_socket(path):
            yield _Candidate(f"unix://{path}", "socket found", export=True)


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False


def _first(candidates: list[_Candidate], config: Config, tried: list[str]) -> Engine | None:
    for candidate in candidates:
        if candidate.host.startswith("ssh://"):
            tried.append(f"{candidate.source} {candidate.host}: ports of containers must be on this machine; use a local engine")
            continue
        try:
            _connect(candidate.host, candidate.tls, PROBE_TIMEOUT).close()
        except (DockerException, RequestException, OSError) as error:
            tried.append(f"{candidate.source} {candidate.host}: {_cause(error)}")
            continue
        if candidate.export:
            settings.point_to_engine(candidate.host)
        return _describe(candidate, config)
    return None


def _connect(host: str, tls: TLSConfig | None, timeout: float) -> docker.DockerClient:
    # The stubs allow whole seconds only; requests takes fractions.
    return docker.DockerClient(base_url=host, tls=tls or False, version="auto", timeout=cast("int", timeout))


def _describe(candidate: _Candidate, config: Config) -> Engine:
    client = _connect(candidate.host, candidate.tls, TIMEOUT)
    version: dict[str, Any] = client.version()
    native = f"{version['Os']}/{version['Arch']}"
    if native not in PLATFORMS:
        raise EngineError(
            f"the engine at {candidate.host} runs {native} containers; images are made for {' and '.join(PLATFORMS)}: "
            "switch Docker Desktop to Linux containers or point DOCKER_HOST at another engine"
        )
    return Engine(client, candidate.host, str(version["Version"]), native, config.platform or native, candidate.tls)


def _cause(error: BaseException) -> str:
    """The system's own words at the bottom of requests' and urllib3's wrapping."""
    inner = error
    while (deeper := inner.__cause__ or inner.__context__) is not None:
        inner = deeper
    words = inner.strerror if isinstance(inner, OSError) else None
    return words or str(inner) or type(inner).__name__
