"""Finding an engine, against servers on Unix sockets that answer as one does when asked who it is."""

import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any

import pytest

from awm_factory.config import Config
from awm_factory.errors import EngineError
from awm_factory.images import daemon
from awm_factory.images import engine as engines
from awm_factory.images.engine import ensure_engine

Serve = Callable[..., str]


class Server(ThreadingUnixStreamServer):
    daemon_threads = True

    def get_request(self) -> tuple[Any, Any]:
        request, _ = super().get_request()
        return request, ("local", 0)


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder without any engine, on a machine whose default socket is missing and where none can be started.

    Its path is short, as a socket's may have 104 bytes on macOS.
    """
    folder = Path(tempfile.mkdtemp(prefix="awm-", dir="/tmp"))
    monkeypatch.setenv("HOME", str(folder))
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, "")  # so that what the code sets is undone too
        monkeypatch.delenv(name)
    monkeypatch.setattr(engines, "DEFAULT_HOST", f"unix://{folder}/default.sock")
    monkeypatch.setattr(daemon, "possible", lambda: False)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def serve(home: Path) -> Iterator[Serve]:
    servers: list[Server] = []

    def start(path: str, system: str = "linux", machine: str = "amd64") -> str:
        version = {"Version": "27.0", "ApiVersion": "1.44", "MinAPIVersion": "1.24", "Os": system, "Arch": machine}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = json.dumps(version).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        (home / path).parent.mkdir(parents=True, exist_ok=True)
        server = Server(str(home / path), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return f"unix://{home / path}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def context(home: Path, name: str, host: str, *, current: bool = True) -> None:
    folder = home / ".docker" / "contexts" / "meta" / sha256(name.encode()).hexdigest()
    folder.mkdir(parents=True)
    endpoint = {"Host": host, "SkipTLSVerify": False}
    (folder / "meta.json").write_text(json.dumps({"Name": name, "Metadata": {}, "Endpoints": {"docker": endpoint}}))
    (home / ".docker" / "config.json").write_text(json.dumps({"currentContext": name} if current else {}))


def test_the_default_socket_is_used_and_needs_no_variable(serve: Serve) -> None:
    host = serve("default.sock")
    engine = ensure_engine(Config())
    assert (engine.host, engine.version, engine.native, engine.platform) == (host, "27.0", "linux/amd64", "linux/amd64")
    assert "DOCKER_HOST" not in os.environ


def test_docker_desktops_socket_in_the_home_folder_is_found_and_told_to_other_libraries(serve: Serve) -> None:
    host = serve(".docker/run/docker.sock", machine="arm64")
    engine = ensure_engine(Config())
    assert (engine.host, engine.platform) == (host, "linux/arm64")
    assert os.environ["DOCKER_HOST"] == host


def test_the_current_context_wins_over_the_default_socket(serve: Serve, home: Path) -> None:
    serve("default.sock")
    host = serve("colima.sock")
    context(home, "colima", host)
    assert ensure_engine(Config()).host == host


def test_a_current_context_that_is_stopped_gives_way_to_the_default_socket(serve: Serve, home: Path) -> None:
    context(home, "desktop-linux", f"unix://{home}/stopped.sock")
    host = serve("default.sock")
    assert ensure_engine(Config()).host == host


def test_a_context_named_in_the_environment_is_used_and_no_other(
    serve: Serve, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve("default.sock")
    monkeypatch.setenv("DOCKER_CONTEXT", "far")
    with pytest.raises(EngineError, match=r"DOCKER_CONTEXT is 'far', and there is no such context"):
        ensure_engine(Config())
    context(home, "far", f"unix://{home}/far.sock", current=False)
    with pytest.raises(EngineError, match=r"Docker context 'far' unix://.*/far.sock: No such file[\s\S]*Start that engine"):
        ensure_engine(Config())
    host = serve("far.sock")
    assert ensure_engine(Config()).host == host


def test_an_engine_named_by_docker_host_is_never_replaced_by_another(serve: Serve, home: Path) -> None:
    serve("default.sock")
    with pytest.raises(EngineError, match=r"DOCKER_HOST unix:///nowhere.sock: No such file[\s\S]*unset what names it"):
        ensure_engine(Config(docker_host="unix:///nowhere.sock"))


def test_an_engine_over_ssh_is_refused_because_its_ports_are_elsewhere(home: Path) -> None:
    with pytest.raises(EngineError, match=r"ssh://far: ports of containers must be on this machine"):
        ensure_engine(Config(docker_host="ssh://far"))


def test_an_engine_of_windows_containers_is_an_error_that_says_how_to_switch(serve: Serve) -> None:
    serve("default.sock", system="windows")
    with pytest.raises(EngineError, match=r"runs windows/amd64 containers.*switch Docker Desktop to Linux containers"):
        ensure_engine(Config())


def test_the_users_platform_is_what_images_are_made_for(serve: Serve) -> None:
    serve("default.sock")
    engine = ensure_engine(Config(platform="linux/arm64"))
    assert (engine.native, engine.platform) == ("linux/amd64", "linux/arm64")


def test_no_engine_is_started_where_one_answers(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    serve("default.sock")
    monkeypatch.setattr(daemon, "possible", lambda: True)
    monkeypatch.setattr(daemon, "start", lambda *_: pytest.fail("a second engine was started"))
    ensure_engine(Config())


def test_no_engine_at_all_is_an_error_with_all_that_was_tried_and_what_to_do(home: Path) -> None:
    with pytest.raises(EngineError) as caught:
        ensure_engine(Config())
    first, tried, advice = str(caught.value).splitlines()
    assert first == "no Docker engine answers."
    assert tried == f"  default socket unix://{home}/default.sock: No such file or directory"
    assert advice.startswith(("Start", "Install"))
