import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import docker
import pytest
from docker.errors import ImageNotFound

from awm_factory.config import Config
from awm_factory.errors import EngineError, HubUnavailable
from awm_factory.images import os_debian, os_image
from awm_factory.images.base import BaseImage, ensure_base
from awm_factory.images.engine import Engine


@pytest.fixture
def stand_in(engine: Engine, base: BaseImage, registry: str) -> str:
    """The OS image under another name in a local registry, in place of the hub's."""
    reference = f"{registry}/python:3.13-slim-trixie"
    source = engine.client.images.get(base.image_id).labels["awm.os"]
    name, _, tag = reference.rpartition(":")
    engine.client.images.get(source).tag(name, tag)
    try:
        for entry in engine.client.api.push(name, tag, stream=True, decode=True):
            assert "error" not in entry, entry
    finally:
        engine.client.images.remove(reference)
    return reference


def test_the_hubs_os_is_pinned_at_first_pull_and_found_again_without_the_hub(
    engine: Engine, base: BaseImage, stand_in: str, config: Config, tmp_path: Path
) -> None:
    said: list[str] = []
    hub = config.model_copy(update={"os_image": stand_in, "base_os": "auto", "os_lock": tmp_path / "os.lock"})
    built = ensure_base(engine, hub, said.append)
    try:
        [pin] = os_image.read(hub.os_lock)
        assert pin.kind == "hub"
        assert pin.digest in said[0]
        python = engine.client.containers.run(built.image_id, ["python", "-V"], network_mode="none", remove=True)
        assert python.startswith(b"Python 3.13.")
        again = ensure_base(replace(engine, host="unix:///nowhere.sock"), hub, said.append)
        assert (again.reference, again.built) == (built.reference, False)
        assert built.reference != base.reference
    finally:
        for reference in (built.reference, pin.reference):
            remove(engine.client, reference)


def test_the_pinned_digest_is_pulled_again_though_the_tag_has_moved_on(
    engine: Engine, base: BaseImage, stand_in: str, config: Config, tmp_path: Path
) -> None:
    hub = config.model_copy(update={"os_image": stand_in, "base_os": "hub", "os_lock": tmp_path / "os.lock"})
    pin = os_image.ensure_os(engine, hub)
    remove(engine.client, pin.reference)
    repository, _, tag = stand_in.rpartition(":")
    engine.client.images.get(base.image_id).tag(repository, tag)
    try:
        list(engine.client.api.push(repository, tag, stream=True, decode=True))
        assert engine.client.api.inspect_distribution(stand_in)["Descriptor"]["digest"] != pin.digest
        assert os_image.ensure_os(engine, hub) == pin
        assert engine.client.images.get(pin.reference)
    finally:
        for reference in (stand_in, pin.reference):
            remove(engine.client, reference)


@contextmanager
def registry_that(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """`127.0.0.1:<port>` of a registry that does nothing else; a real one can't be brought to it on demand."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def do_HEAD(self) -> None:
            answer(self)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def test_a_rate_limit_is_named_with_what_helps(engine: Engine, config: Config, tmp_path: Path) -> None:
    def limited(request: BaseHTTPRequestHandler) -> None:
        body = b'{"errors": [{"code": "TOOMANYREQUESTS", "message": "You have reached your unauthenticated pull rate limit."}]}'
        request.send_response(429 if "manifests" in request.path else 200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if request.command != "HEAD":
            request.wfile.write(body)

    with registry_that(limited) as address:
        hub = config.model_copy(update={"os_image": f"{address}/python:3", "base_os": "hub", "os_lock": tmp_path / "os.lock"})
        with pytest.raises(HubUnavailable, match=r"rate limit[\s\S]*docker login[\s\S]*BASE_OS=debian"):
            os_image.ensure_os(engine, hub)


def test_a_registry_that_hangs_is_given_up(
    engine: Engine, config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("awm_factory.images.os_hub.RESOLVE_TIMEOUT", 0.5)
    over = threading.Event()
    with registry_that(lambda _: over.wait(30) and None) as address:
        hub = config.model_copy(update={"os_image": f"{address}/python:3", "base_os": "hub", "os_lock": tmp_path / "os.lock"})
        try:
            with pytest.raises(HubUnavailable, match="does not answer"):
                os_image.ensure_os(engine, hub)
        finally:
            over.set()


def test_without_a_hub_an_os_image_is_made_from_debian_and_that_is_said(
    engine: Engine, base: BaseImage, config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Making one is left to the base image's own fixture and to the benchmark; here it lies in the cache already."""
    if reason := os_debian.impossible():
        pytest.skip(reason)
    made = [pin for pin in os_image.read(config.os_lock) if pin.kind == "debian" and pin.platform == engine.platform]
    if not made:
        pytest.skip("this base image stands on the hub's OS image")
    monkeypatch.setattr(os_debian, "make", lambda *_: made[0].digest)
    said: list[str] = []
    nowhere = config.model_copy(update={"os_image": "127.0.0.1:1/python:3", "base_os": "auto", "os_lock": tmp_path / "os.lock"})
    assert os_image.ensure_os(engine, nowhere, said.append) == made[0]
    assert "127.0.0.1:1/python:3 does not answer" in said[0]
    assert "Debian trixie instead" in said[0]


def test_a_forced_hub_that_does_not_answer_is_an_error_and_nothing_is_pinned(
    engine: Engine, config: Config, tmp_path: Path
) -> None:
    hub = config.model_copy(update={"os_image": "127.0.0.1:1/python:3.13", "base_os": "hub", "os_lock": tmp_path / "os.lock"})
    with pytest.raises(HubUnavailable, match=r"does not answer[\s\S]*BASE_OS=debian"):
        os_image.ensure_os(engine, hub)
    assert not hub.os_lock.exists()


def test_a_tag_the_registry_does_not_have_is_an_error_and_no_reason_to_take_another_os(
    engine: Engine, registry: str, config: Config, tmp_path: Path
) -> None:
    hub = config.model_copy(update={"os_image": f"{registry}/python:absent", "os_lock": tmp_path / "os.lock"})
    with pytest.raises(EngineError, match="AWM_OS_IMAGE") as caught:
        os_image.ensure_os(engine, hub)
    assert not isinstance(caught.value, HubUnavailable)


def test_an_image_of_another_platform_is_refused_and_not_named(
    engine: Engine, stand_in: str, config: Config, tmp_path: Path
) -> None:
    other = "linux/arm64" if engine.platform == "linux/amd64" else "linux/amd64"
    hub = config.model_copy(update={"os_image": stand_in, "base_os": "hub", "os_lock": tmp_path / "os.lock"})
    with pytest.raises(EngineError, match="PLATFORM"):
        os_image.ensure_os(replace(engine, platform=other), hub)
    assert not hub.os_lock.exists()
    assert not engine.client.images.list(filters={"reference": f"awm/os:hub-*-{other.rpartition('/')[2]}"})


def remove(client: docker.DockerClient, reference: str) -> None:
    try:
        client.images.remove(reference)
    except ImageNotFound:
        return
