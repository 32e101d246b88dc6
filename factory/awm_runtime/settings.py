"""What the environment variables of a container say, read once; the only module of the runtime that reads them."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from awm_runtime.wire import AGENT_PORT, CONTROL_PORT


class SettingsError(Exception):
    """A variable can't be used; the message says which and what it may be."""


@dataclass(frozen=True)
class Settings:
    env_dir: Path = Path("/env")
    """`AWM_ENV_DIR`: where the bundle lies."""
    host: str = "127.0.0.1"
    """`HOST`; 0.0.0.0 in a container, where loopback could not be published."""
    port: int = CONTROL_PORT
    """`PORT`: control plane, OpenEnv wire and MCP."""
    agent_port: int = AGENT_PORT
    """`AGENT_PORT`: MCP only."""
    token: str | None = None
    """`AWM_TOKEN`: asked for as a bearer token on the control port, /health excepted."""
    workers: int = 1
    """`AWM_WORKERS`: processes that run tool calls; as many as there are cores."""
    max_episodes: int = 1024
    """`AWM_MAX_EPISODES`."""
    max_calls: int = 10_000
    """`AWM_MAX_CALLS`: calls of one episode."""
    idle_ttl: float = 3600.0
    """`AWM_IDLE_TTL`: seconds without a call after which an episode is dropped."""
    ttl: float | None = None
    """`AWM_TTL`: seconds without any request after which the container ends itself."""
    call_timeout: float = 10.0
    """`AWM_CALL_TIMEOUT`: seconds of wall time for one tool call."""
    max_body: int = 4 << 20
    """`AWM_MAX_BODY`: bytes of one request."""
    max_result: int = 4 << 20
    """`AWM_MAX_RESULT`: bytes of one result."""
    warm_memory: int = 768 << 20
    """`AWM_WARM_MEMORY`: bytes for databases kept ready for the next call; at most a third of the container's memory."""
    check_memory: int = 1 << 30
    """`AWM_CHECK_MEMORY`: bytes that a process running environment code may add to what it starts with."""
    format_error_ends: bool = True
    """`AWM_FORMAT_ERROR_ENDS`: 0 lets an episode on the OpenEnv wire go on after a format error."""

    @classmethod
    def read(cls) -> Self:
        """Raises SettingsError."""
        env = os.environ
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return cls(
            env_dir=Path(env.get("AWM_ENV_DIR", "/env")),
            host=env.get("HOST") or ("0.0.0.0" if in_container() else "127.0.0.1"),
            port=_integer("PORT", CONTROL_PORT),
            agent_port=_integer("AGENT_PORT", AGENT_PORT),
            token=env.get("AWM_TOKEN") or None,
            workers=_integer("AWM_WORKERS", max(1, min(cores, 16))),
            max_episodes=_integer("AWM_MAX_EPISODES", 1024),
            max_calls=_integer("AWM_MAX_CALLS", 10_000),
            idle_ttl=_integer("AWM_IDLE_TTL", 3600),
            ttl=_integer("AWM_TTL", 0) or None,
            call_timeout=_integer("AWM_CALL_TIMEOUT", 10),
            max_body=_integer("AWM_MAX_BODY", 4 << 20),
            max_result=_integer("AWM_MAX_RESULT", 4 << 20),
            warm_memory=_integer("AWM_WARM_MEMORY", min(768 << 20, memory_limit() // 3)),
            check_memory=_integer("AWM_CHECK_MEMORY", 1 << 30),
            format_error_ends=env.get("AWM_FORMAT_ERROR_ENDS", "1") != "0",
        )


def _integer(name: str, default: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return default
    if not text.isdecimal():
        raise SettingsError(f"{name}={text!r} is no whole number; set one, or leave {name} out for {default}")
    return int(text)


def in_container() -> bool:
    return os.getpid() == 1 or Path("/.dockerenv").exists() or Path("/run/.containerenv").exists()


def memory_limit() -> int:
    """Bytes that the container may use, or a terabyte where nothing limits it."""
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(name).read_text().strip()
        except OSError:
            continue
        if text.isdecimal():
            return min(int(text), 1 << 40)
    return 1 << 40
