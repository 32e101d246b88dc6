"""`AwmEnv.from_image` on a real engine: whatever happens to its owner, no container stays."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import docker
import httpx
import pytest
from docker.errors import NotFound
from docker.models.containers import Container
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from awm_factory.client import AwmEnv, InfrastructureFault, UsageError, sync
from awm_factory.errors import EngineError
from awm_factory.images import docker_client, hardened
from awm_factory.images.base import BaseImage
from awm_factory.images.engine import Engine
from awm_runtime.contract import AGENT_PORT, CONTROL_PORT
from runtime_support import write_environment

pytestmark = pytest.mark.anyio

TRAINER = {"authorization": "Bearer a trainer's"}
LEND = {"member_id": 1, "title": "Kite book"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def image(engine: Engine, base: BaseImage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The library, as an image of its own."""
    folder = tmp_path_factory.mktemp("client-image")
    env = write_environment(folder / "env")
    for path in (env, *env.rglob("*")):  # the container's user is nobody's in particular
        path.chmod(0o755 if path.is_dir() else 0o644)
    (folder / "Dockerfile").write_text(f"FROM {base.reference}\nCOPY env /env\n")
    built, _ = engine.client.images.build(path=str(folder), tag="awm-test/client:library", rm=True)
    yield "awm-test/client:library"
    engine.client.images.remove(built.id, force=True)


def ours(client: docker.DockerClient, owner: str) -> list[Container]:
    return client.containers.list(all=True, filters={"label": f"{docker_client.OWNER}={owner}"})


async def test_a_container_is_started_played_in_and_removed(engine: Engine, image: str) -> None:
    async with AwmEnv.from_image(image) as env, env.beside() as other:
        [container] = ours(engine.client, docker_client.session_id())
        assert await env.reset(0) == await other.reset(0) == "Lend the Kite book to Ada."
        await env.call("lend", LEND)
        twin = await env.fork()
        await twin.call("lend", LEND | {"title": "Moss atlas"})
        third = await twin.fork()
        rewards = [(await one.submit("done")).reward for one in (env, twin, third, other)]
        assert rewards == [1.0, 1.0, 1.0, 0.0]
        assert [len((await one.call("list_loans")).content) for one in (env, twin, other)] == [2, 3, 1]  # type: ignore[arg-type]
        bindings = container.attrs["NetworkSettings"]["Ports"].values()
        assert {binding["HostIp"] for ports in bindings for binding in ports} == {"127.0.0.1"}
        config = container.attrs["HostConfig"]
        assert (config["ReadonlyRootfs"], config["CapDrop"], config["AutoRemove"]) == (True, ["ALL"], True)
        agent = AwmEnv.connect(env.agent_url.partition("/episodes/")[0])
        with pytest.raises(InfrastructureFault):
            await agent.reset(0)  # the agent's port has no control plane
        await agent.close()
        control = AwmEnv.connect(env._place.base)  # type: ignore[attr-defined]
        with pytest.raises(UsageError, match="token"):
            await control.reset(0)
        await control.close()
    assert ours(engine.client, docker_client.session_id()) == []


@pytest.mark.parametrize("moment", [0.0, 0.2, 0.6, 1.5, 3.0])
async def test_a_task_cancelled_at_any_moment_leaves_no_container(engine: Engine, image: str, moment: float) -> None:
    async def play() -> None:
        async with AwmEnv.from_image(image) as env:
            await env.reset(0)
            await env.call("misbehave", {"how": "loop"})

    task = asyncio.create_task(play())
    await asyncio.wait([task], timeout=moment)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await gone(engine.client, docker_client.session_id())


def test_a_container_with_a_token_answers_nothing_on_its_control_port_without_it_but_its_health(
    engine: Engine, image: str
) -> None:
    """The agent's port asks for none."""
    owner = docker_client.Owner(f"{docker_client.session_id()}.token")
    image_id = engine.client.images.get(image).id
    with hardened.boxed(image_id, owner, environment={"AWM_TOKEN": "a trainer's"}) as box:
        control, agent = (f"http://{hardened.LOOPBACK}:{box.port(port)}" for port in (CONTROL_PORT, AGENT_PORT))
        with httpx.Client(trust_env=False, timeout=30) as http:
            waiting = Retrying(
                stop=stop_after_delay(60), wait=wait_fixed(0.1), retry=retry_if_exception_type(httpx.TransportError)
            )
            assert waiting(http.get, f"{control}/health").status_code == 200
            asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            requests = [("GET", "/tasks", None), ("GET", "/schema", None), ("POST", "/episodes", {}), ("POST", "/mcp", asked)]
            for headers, status in (({}, {401}), ({"authorization": "Bearer another's"}, {401}), (TRAINER, {200, 201})):
                for method, path, body in requests:
                    reply = http.request(method, control + path, json=body, headers=headers)
                    assert reply.status_code in status, (method, path, headers)
            assert http.post(f"{agent}/mcp", json=asked).status_code == 200


PLAYER = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # started in the background, it would be ignored
from awm_factory.client.sync import AwmEnv
from awm_factory.images.docker_client import session_id
print(session_id(), flush=True)
with AwmEnv.from_image(sys.argv[1], ttl=float(sys.argv[2])) as env:
    env.reset(0)
    print("playing", flush=True)
    env.call("misbehave", {"how": "loop"})
"""


def player(image: str, ttl: float) -> "tuple[subprocess.Popen[str], str]":
    """A process that plays, in the middle of a call, and its session."""
    process = subprocess.Popen([sys.executable, "-c", PLAYER, image, str(ttl)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    owner = process.stdout.readline().strip()
    assert process.stdout.readline() == "playing\n"
    return process, owner


async def test_an_owner_that_is_interrupted_takes_its_container_with_it(engine: Engine, image: str) -> None:
    process, owner = player(image, 600)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) != 0
    assert ours(engine.client, owner) == []


async def test_the_container_of_a_killed_owner_ends_by_itself(engine: Engine, image: str) -> None:
    process, owner = player(image, 12)
    process.kill()
    process.wait()
    assert len(ours(engine.client, owner)) == 1
    await gone(engine.client, owner)


async def test_the_container_of_a_killed_owner_is_reaped_before_that(engine: Engine, image: str) -> None:
    process, owner = player(image, 600)
    process.kill()
    process.wait()
    [container] = ours(engine.client, owner)
    done = subprocess.run(
        [Path(sys.executable).with_name("awm-factory"), "reap", "--json"], check=True, capture_output=True, text=True
    )
    assert container.name in json.dumps(json.loads(done.stdout))
    await gone(engine.client, owner)


async def test_a_container_outlives_its_time_for_as_long_as_its_owner_lives(engine: Engine, image: str) -> None:
    """A trainer computes for long between two calls."""
    async with AwmEnv.from_image(image, ttl=9) as env:
        await env.reset(0)
        [container] = ours(engine.client, docker_client.session_id())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(20):
                await gone(engine.client, docker_client.session_id())
        assert container.status == "running"
        assert (await env.submit()).reward == 0.0


def test_an_environment_that_nobody_closed_goes_with_its_process(engine: Engine, image: str) -> None:
    script = PLAYER.partition("with ")[0] + "env = AwmEnv.from_image(sys.argv[1]); env.__enter__(); print(env.reset(0))"
    done = subprocess.run([sys.executable, "-c", script, image], check=True, capture_output=True, text=True, timeout=250)
    owner, said = done.stdout.splitlines()
    assert (said, done.stderr) == ("Lend the Kite book to Ada.", "")
    assert ours(engine.client, owner) == []


def test_the_twin_without_async_and_an_image_that_is_not_there(image: str) -> None:
    with sync.AwmEnv.from_image(image) as env:
        env.reset(0)
        assert env.call("lend", LEND).kind == "ok"
    with pytest.raises(EngineError, match="docker pull"), sync.AwmEnv.from_image("awm/nothing_of_that_name:at-all"):
        pass
    with pytest.raises(UsageError, match="was closed"):
        env.reset(0)


async def gone(client: docker.DockerClient, owner: str) -> None:
    async with asyncio.timeout(60):
        for container in ours(client, owner):
            try:
                await asyncio.to_thread(container.wait, condition="removed")
            except NotFound:
                continue
