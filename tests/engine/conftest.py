"""Real Docker under every test here. Where no engine can be had the tests fail, as `make test` promises one."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from awm_factory.config import Config
from awm_factory.images import daemon
from awm_factory.images.base import BaseImage, ensure_base
from awm_factory.images.engine import Engine, ensure_engine, say_on_stderr

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.engine)


@pytest.fixture(scope="session", autouse=True)
def no_reaper() -> None:
    """testcontainers' own cleaner is an image from a hub; what tests start they stop themselves."""
    os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"


@pytest.fixture(scope="session")
def config() -> Config:
    return Config.load()


@pytest.fixture(scope="session")
def engine(config: Config) -> Engine:
    return ensure_engine(config)


@pytest.fixture(scope="session")
def base(engine: Engine, config: Config) -> BaseImage:
    return ensure_base(engine, config)


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real registry on loopback, `127.0.0.1:<port>`, empty at first and gone afterwards."""
    if daemon.program("docker-registry") is None:
        if not (daemon.debian_like() and os.geteuid() == 0):
            pytest.skip("the registry server is missing: `sudo apt-get install docker-registry`")
        daemon.apt_install(["docker-registry"], "tests push to a real registry", say_on_stderr)
    folder = tmp_path_factory.mktemp("registry")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (folder / "config.yml").write_text(
        f"version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {folder / 'data'}\n  delete:\n    enabled: true\n"
        f"http:\n  addr: {address}\nlog:\n  level: warn\n"
    )
    with (folder / "log").open("w") as log:
        program = daemon.program("docker-registry") or "docker-registry"
        server = subprocess.Popen([program, "serve", str(folder / "config.yml")], stdout=log, stderr=log)
    try:
        _answers(f"http://{address}/v2/", server, folder / "log")
        yield address
    finally:
        server.terminate()
        server.wait(timeout=10)
        shutil.rmtree(folder / "data", ignore_errors=True)


def _answers(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 15
    while True:
        try:
            httpx.get(url, timeout=1).raise_for_status()
        except httpx.TransportError:
            if server.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the registry did not start:\n{log.read_text()}")
        else:
            return
