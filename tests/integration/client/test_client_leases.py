"""The client and the lease service, both real, on a real runtime; only the name server is left out."""

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from awm_factory.client import EpisodeLost, Fleet, InfrastructureFault, UsageError, sync
from client_support import TOKEN, relay
from fleet_support import until
from lease_support import ENV, FLEET, service
from runtime_support import Served, free_port, serve

pytestmark = pytest.mark.anyio


async def test_a_lease_is_an_episode_that_has_begun(container: Served) -> None:
    async with service(container) as it:
        async with it.fleet.lease(ENV, 0) as env:
            assert env.instruction == "Lend the Kite book to Ada."
            assert env.agent_url.startswith(f"{it.fleet.url}agent/")
            await env.call("lend", {"member_id": 1, "title": "Kite book"})
            twin = await env.fork()
            assert ((await twin.submit()).reward, (await env.submit()).reward) == (1.0, 1.0)
            assert await env.reset() == env.instruction
            assert ((await twin.submit()).reward, (await env.submit()).reward) == (1.0, 0.0)
            assert [lease["env_id"] for lease in (await it.fleet.status())["scenarios"]] == [ENV]
        assert not it.leases.leases


async def test_a_lease_is_kept_alive_for_as_long_as_it_is_held(container: Served) -> None:
    async with service(container) as it, it.fleet.lease(ENV, 0, ttl=0.3) as env:
        [lease] = it.leases.leases
        for _ in range(4):
            await it.pass_by(0.2)
            await until(lambda: it.leases.lease(lease).expires_at == it.clock.now + 0.3)
        assert (await env.call("list_loans")).kind == "ok"


async def test_a_lease_that_expired_says_so_and_reset_takes_another(container: Served) -> None:
    async with service(container) as it, it.fleet.lease(ENV, 0) as env:
        await it.pass_by(10_000)
        await until(lambda: not it.leases.leases)
        with pytest.raises(EpisodeLost, match=r"the lease expired.*mask this episode") as caught:
            await env.call("list_loans")
        assert (caught.value.fault, caught.value.masked, caught.value.code) == ("infrastructure", True, "expired")
        with pytest.raises(EpisodeLost, match="the lease expired"):
            await env.submit()
        assert await env.reset() == "Lend the Kite book to Ada."
        assert (await env.submit()).reward == 0.0


async def test_a_container_that_dies_under_a_lease_is_the_infrastructures(directory: Path) -> None:
    with serve(directory, AWM_TOKEN=TOKEN) as container:
        async with service(container) as it, it.fleet.lease(ENV, 0) as env:
            container.process.kill()
            container.process.wait()
            with pytest.raises(InfrastructureFault) as caught:
                await env.call("list_loans")
            assert caught.value.masked
            await until(lambda: not it.leases.leases)
            with pytest.raises(EpisodeLost) as lost:
                await env.submit()
            assert lost.value.code == "container_died"


async def test_whoever_finds_the_fleet_full_waits_as_long_as_it_was_told_to(directory: Path) -> None:
    with serve(directory, AWM_TOKEN=TOKEN, AWM_MAX_EPISODES="1") as container:
        async with service(container, time.time, queue=0) as it, it.fleet.lease(ENV, 0) as env:
            other = it.fleet.lease(ENV, 0, wait=0.1)
            with pytest.raises(InfrastructureFault) as caught:
                await other.__aenter__()
            assert (caught.value.masked, caught.value.code) == (True, "queue_full")
            waiting = asyncio.create_task(it.fleet.lease(ENV, 0, wait=30).__aenter__())
            await env.close()
            patient = await waiting
            assert patient.instruction is not None
            await patient.close()


async def test_an_agent_that_passes_the_service_by_has_no_more_calls_than_one_that_does_not(directory: Path) -> None:
    with serve(directory, AWM_TOKEN=TOKEN, AWM_MAX_CALLS="3") as container:
        async with service(container) as it, it.fleet.lease(ENV, 0) as env:
            await env.call("list_loans")
            path, asked = f"/episodes/{env.episode_id}/mcp", {"name": "list_loans", "arguments": {}}
            replies = [await asyncio.to_thread(container.rpc, path, "tools/call", asked) for _ in range(3)]
            assert ["result" in reply for reply in replies] == [True, True, False]
            assert "has had its 3 calls" in replies[2]["error"]["message"]
            with pytest.raises(InfrastructureFault, match="has had its 3 calls"):
                await env.call("list_loans")


async def test_a_lease_service_that_is_restarted_is_not_noticed(container: Served, tmp_path: Path) -> None:
    port, store = free_port(), tmp_path / "leases.db"
    async with AsyncExitStack() as stack:
        async with service(container, time.time, port, store) as it:
            env = await stack.enter_async_context(it.fleet.lease(ENV, 0))
            await env.call("lend", {"member_id": 1, "title": "Kite book"})
        call = asyncio.create_task(env.call("list_loans"))
        async with service(container, time.time, port, store):
            assert len((await call).content) == 2  # type: ignore[arg-type]
            assert (await env.submit()).reward == 1.0
            await env.close()
    assert container.request("GET", "/episodes")[1] == []


async def test_a_service_that_is_restarted_behind_an_engines_proxy_is_not_noticed_by_who_wants_a_lease(
    container: Served, tmp_path: Path
) -> None:
    """The proxy takes connections all the while, and hangs up."""
    port, store = free_port(), tmp_path / "leases.db"
    async with relay(port) as published, AsyncExitStack() as stack:
        fleet = Fleet.connect(f"http://127.0.0.1:{published.port}", FLEET)
        async with service(container, time.time, port, store):
            await stack.enter_async_context(fleet.lease(ENV, 0))
        asking, telling = asyncio.create_task(fleet.lease(ENV, 0).__aenter__()), asyncio.create_task(fleet.status())
        before = published.opened
        await until(lambda: published.opened > before + 4)
        assert not asking.done() and not telling.done()
        async with service(container, time.time, port, store):
            other = await asking
            assert (await telling)["leases"] in (1, 2)
            await other.close()
            await stack.aclose()
    assert container.request("GET", "/episodes")[1] == []


async def test_what_is_asked_wrongly_of_a_fleet_is_a_usage_error(container: Served) -> None:
    async with service(container) as it:
        for fleet, env_id, task_id, said in (
            (Fleet.connect(it.fleet.url), ENV, 0, "token"),
            (it.fleet, "nowhere", 0, "nowhere"),
            (it.fleet, ENV, 9, "there is no task 9"),
        ):
            with pytest.raises(UsageError, match=said):
                await fleet.lease(env_id, task_id).__aenter__()
        async with it.fleet.lease(ENV, 0) as env:
            with pytest.raises(UsageError, match="another lease"):
                env.beside()
        with pytest.raises(UsageError, match="was closed"):
            await env.reset()
        assert not it.leases.leases


async def test_a_lease_without_async(container: Served) -> None:
    def play(url: str) -> float | None:
        with sync.Fleet.connect(url, FLEET).lease(ENV, 0) as env:
            env.call("lend", {"member_id": 1, "title": "Kite book"})
            return env.submit("done").reward

    async with service(container) as it:
        assert await asyncio.to_thread(play, it.fleet.url) == 1.0
        assert (await asyncio.to_thread(sync.Fleet.connect(it.fleet.url, FLEET).status))["leases"] == 0
        assert not it.leases.leases
