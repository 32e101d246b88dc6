"""The smoke test against images that keep to the contract but for one fault, each found by the check that is made for it."""

import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from awm_factory.bundle import Bundle, Manifest, Task
from awm_factory.certificate import Certificate, Subject, TaskCertificate
from awm_factory.errors import EngineError, SmokeError
from awm_factory.images import hardened, sockets
from awm_factory.images import smoke as smoke_module
from awm_factory.images.base import BaseImage
from awm_factory.images.build import discard, run_build
from awm_factory.images.context import tar
from awm_factory.images.docker_client import OWNER, Owner, reap
from awm_factory.images.engine import Engine
from awm_factory.images.smoke import smoke

OWN = "smoke-tests.1.00000000"

BUNDLE = Bundle(
    manifest=Manifest(env_id="note_pad", scenario="Note pad", origin="handwritten", tools=["add_note", "list_notes"]),
    schema_sql=[],
    seed_sql=[],
    app_code="",
    tasks=[Task(task_id=0, instruction="Add a note.")],
    verifiers={(0, "code"): "stands in the server"},
    certificate=Certificate(
        subject=Subject(bundle_digest="", solutions_digest="", base="", gates={}, seed=0, budget={}),
        gates={},
        problems=[],
        tasks=[TaskCertificate(task_id=0, shipped=True, gates={})],
    ),
)


@pytest.fixture
def image_with(engine: Engine, base: BaseImage, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """Builds the stand-in environment with one fault; the engine's build cache makes the second time instant."""

    def build(fault: str) -> str:
        context = tmp_path / "context"
        context.mkdir()
        shutil.copy(Path(__file__).parent / "standin" / "server.py", context)
        (context / "Dockerfile").write_text(
            f'FROM {base.reference}\nENV FAULT="{fault}"\nCOPY server.py /env/server.py\nCMD ["python", "/env/server.py"]\n'
        )
        image = run_build(engine.client, tar(context), tmp_path / "build.log", what="the stand-in")
        made.append(image)
        return image

    made: list[str] = []
    yield build
    for image in made:
        discard(engine.client, image)


def left_over(engine: Engine) -> list[str]:
    label = {"label": f"{OWNER}={OWN}"}
    containers = engine.client.containers.list(all=True, filters=label)
    return [str(one.name) for one in [*containers, *engine.client.networks.list(filters=label)]]


def test_an_image_that_keeps_its_promises_passes_every_check(
    engine: Engine, base: BaseImage, image_with: Callable[[str], str]
) -> None:
    report = smoke(engine.client, image_with(""), BUNDLE, base.image_id, OWN)
    assert report.checks["calls"] == "list_notes read, add_note wrote"
    assert report.checks["untouched episodes"] == "1 verdicts, none complete"
    assert report.checks["stop"].startswith("exit code 0")
    assert list(report.checks)[-2:] == ["from a second container", "nothing outside"]
    assert 0 < report.start_seconds < report.seconds
    assert left_over(engine) == []


@pytest.mark.parametrize(
    ("fault", "check", "says"),
    [
        ("exits", "healthy", "ended before it answered"),
        ("loopback", "healthy", "listens on 127.0.0.1 only"),
        ("extra_tool", "tools", "not in the manifest: drop_notes"),
        ("odd_name", "tools", "model providers refuse größe messen"),
        ("host_check", "Host headers", "answered 421"),
        ("rewards_nothing", "untouched episodes", "task 0 rewards an untouched episode"),
        ("verifier_breaks", "untouched episodes", "KeyError: 'notes'"),
        ("readonly", "calls", "attempt to write a readonly database"),
        ("no_reset", "reset", "not byte for byte"),
        ("slow_stop", "stop", "SIGTERM did not end it"),
        ("bad_exit", "stop", "exit code 9"),
        ("fixed_port", "from a second container", "with PORT=18000, nothing listens on port 18000 inside"),
    ],
)
def test_a_fault_is_named_by_the_check_that_finds_it(
    fault: str,
    check: str,
    says: str,
    engine: Engine,
    base: BaseImage,
    image_with: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if fault in {"loopback", "fixed_port"}:
        monkeypatch.setattr(smoke_module, "START_LIMIT", 6.0)
    with pytest.raises(SmokeError, match=says) as caught:
        smoke(engine.client, image_with(fault), BUNDLE, base.image_id, OWN)
    assert f"failed its smoke test at {check!r}" in str(caught.value)
    assert "stand-in environment starts" in str(caught.value), "the container's last lines belong to the message"
    assert left_over(engine) == []


def test_a_container_runs_without_rights_and_is_published_on_loopback_only(
    engine: Engine, image_with: Callable[[str], str]
) -> None:
    with hardened.boxed(image_with(""), Owner(OWN)) as box:
        box.container.reload()
        host = box.container.attrs["HostConfig"]
        assert host["ReadonlyRootfs"]
        assert host["CapDrop"] == ["ALL"]
        assert host["SecurityOpt"] == ["no-new-privileges"]
        assert host["Memory"] == 1 << 30
        assert host["PidsLimit"] == hardened.PIDS
        assert {binding["HostIp"] for bindings in box.container.ports.values() for binding in bindings} == {"127.0.0.1"}
        assert box.run(["id", "-u"])[1].strip() == hardened.USER.split(":")[0]
        assert box.run(["touch", "/env/x"])[0] != 0
        assert box.run(["touch", "/tmp/x"])[0] == 0
    assert left_over(engine) == []


def test_an_address_that_answers_is_told_from_one_that_an_internal_network_keeps_off(
    engine: Engine, image_with: Callable[[str], str]
) -> None:
    """Even a refusal is an answer: what was sent has got through."""
    image = image_with("")
    with hardened.boxed(image, Owner(OWN)) as target, hardened.boxed(image, Owner(OWN)) as neighbour:
        target.container.reload()
        address = target.container.attrs["NetworkSettings"]["Networks"]["bridge"]["IPAddress"]
        asked = [f"{address}:8000", f"{address}:9"]
        wait_until(lambda: f"{address}:8000" in sockets.reached(neighbour, asked))
        assert sockets.reached(neighbour, asked) == asked
        with hardened.internal_network(Owner(OWN)) as network, hardened.boxed(image, Owner(OWN), network=network) as enclosed:
            assert sockets.reached(enclosed, asked) == []


def wait_until(holds: Callable[[], bool]) -> None:
    Retrying(stop=stop_after_delay(20), wait=wait_fixed(0.1), retry=retry_if_result(lambda held: not held))(holds)


def test_an_interrupt_leaves_neither_container_nor_network(
    engine: Engine, base: BaseImage, image_with: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        assert len(left_over(engine)) == 3
        raise KeyboardInterrupt

    image = image_with("")
    monkeypatch.setattr(smoke_module, "_probed", interrupt)
    with pytest.raises(KeyboardInterrupt):
        smoke(engine.client, image, BUNDLE, base.image_id, OWN)
    assert left_over(engine) == []


def test_a_reap_ends_a_test_at_once_and_lets_it_start_nothing_more(
    engine: Engine, base: BaseImage, image_with: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an interrupted batch would go on for as long as its tests take, or leave what was started a moment too late."""
    image = image_with("")
    session = f"{OWN}.reaped"
    published = smoke_module._published

    def reaped_between(*arguments: object) -> None:
        published(*arguments)  # type: ignore[arg-type]
        reap(engine.client, session)

    monkeypatch.setattr(smoke_module, "_published", reaped_between)
    with pytest.raises(EngineError, match="called off"):
        smoke(engine.client, image, BUNDLE, base.image_id, session)
    assert engine.client.networks.list(filters={"label": f"{OWNER}={session}"}) == []
    monkeypatch.setattr(smoke_module, "_published", published)
    smoke(engine.client, image, BUNDLE, base.image_id, session)


def test_reap_removes_what_a_dead_session_left_and_spares_the_living(engine: Engine, image_with: Callable[[str], str]) -> None:
    image = image_with("")
    living = f"{socket.gethostname()}.{os.getpid()}.0"
    with (
        hardened.boxed(image, Owner(f"{socket.gethostname()}.{2**22 + 1}.0")) as dead,
        hardened.boxed(image, Owner(living)) as alive,
    ):
        reaped = reap(engine.client)
        assert dead.container.name in reaped.containers
        assert alive.container.name not in reaped.containers
        assert alive.running()
        assert not dead.running()
        assert reap(engine.client, living).containers == [alive.container.name]
        assert not alive.running()
