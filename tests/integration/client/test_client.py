"""The client against a real runtime."""

import asyncio
import socket
import sqlite3
from typing import Any

import pytest

from awm_factory.client import AwmEnv, InfrastructureFault, UsageError, connections, sync
from client_support import TOKEN, relay
from runtime_support import Served, rows

pytestmark = pytest.mark.anyio

LEND: dict[str, Any] = {"member_id": 1, "title": "Kite book"}


async def test_an_episode_from_reset_to_verdict(url: str) -> None:
    async with AwmEnv.connect(url, token=TOKEN) as env:
        assert await env.reset(0) == env.instruction == "Lend the Kite book to Ada."
        assert (await env.submit("done")).reward == 0.0
        result = await env.call("lend", LEND)
        assert (result.is_error, result.fault, result.content) == (False, None, {**LEND, "days": 14, "id": 2})
        verdict = await env.submit("done")
        assert (verdict.reward, verdict.classification, verdict.fault, verdict.masked) == (1.0, "complete", None, False)
        assert (await env.diff()).tables["loans"][0].after == {"id": 2, "days": 14, "lent_at": "2026-01-01 00:00:01", **LEND}
        assert rows(await env.database(), "SELECT title FROM loans") == [("Moss atlas",), ("Kite book",)]


async def test_tools_come_as_mcp_has_them_and_as_chat_completions_want_them(url: str) -> None:
    async with AwmEnv.connect(url, token=TOKEN) as env:
        await env.reset()
        tools = {tool.name: tool for tool in await env.tools()}
        assert tools["lend"].input_schema["required"] == ["member_id", "title"]
        [function] = [tool["function"] for tool in await env.openai_tools() if tool["function"]["name"] == "lend"]
        assert function["parameters"] == tools["lend"].input_schema
        assert function["description"] == tools["lend"].description


async def test_reset_gives_back_the_seed_at_once_and_keeps_what_is_not_named(url: str) -> None:
    """Case 56: no write of the episode before may be seen, and the next snapshot holds what came after."""
    async with AwmEnv.connect(url, token=TOKEN) as env:
        await env.reset(0, seed=7)
        for _ in range(3):
            await env.call("lend", LEND)
        assert await env.reset() == "Lend the Kite book to Ada."
        assert len((await env.call("list_loans")).content) == 1  # type: ignore[arg-type]
        await env.call("lend", LEND)
        assert rows(await env.database(), "SELECT count(*) FROM loans") == [(2,)]
        stamped = (await env.call("stamp")).content
        await env.reset()
        await env.call("list_loans")
        await env.call("lend", LEND)
        assert (await env.call("stamp")).content == stamped


async def test_a_fork_goes_its_own_way_and_ends_with_its_environment(url: str, container: Served) -> None:
    async with AwmEnv.connect(url, token=TOKEN) as env:
        await env.reset(0)
        twin = await env.fork()
        await twin.call("lend", LEND)
        assert ((await twin.submit()).reward, (await env.submit()).reward) == (1.0, 0.0)
        async with await twin.fork() as third:
            assert (await third.submit()).reward == 1.0
            gone = third.episode_id
        assert container.request("GET", f"/episodes/{gone}")[0] == 404
        left = (env.episode_id, twin.episode_id)
    assert [container.request("GET", f"/episodes/{episode}")[0] for episode in left] == [404, 404]
    with pytest.raises(UsageError, match="was closed"):
        await twin.call("list_loans")


async def test_environments_beside_each_other_share_connections_and_see_nothing_of_one_another(container: Served) -> None:
    async with relay(container.port) as port, AwmEnv.connect(f"http://127.0.0.1:{port.port}", token=TOKEN) as env:
        url = f"http://127.0.0.1:{port.port}"
        others = [env.beside() for _ in range(5)] + [AwmEnv.connect(url, token=TOKEN)]
        for number, other in enumerate(others):
            await other.reset(0)
            await other.call("lend", LEND | {"title": f"Canary {number}"})
        for number, other in enumerate(others):
            titles = rows(await other.database(), "SELECT title FROM loans WHERE title LIKE 'Canary%'")
            assert titles == [(f"Canary {number}",)]
        assert port.opened == 1, "calls one after the other take one connection"
        await others[-1].close()


async def test_hundreds_of_episodes_side_by_side(url: str, container: Served) -> None:
    async def play(env: AwmEnv) -> float | None:
        async with env:
            await env.reset(0)
            await env.call("lend", LEND)
            return (await env.submit()).reward

    async with AwmEnv.connect(url, token=TOKEN) as env:
        assert await asyncio.gather(*(play(env.beside()) for _ in range(100))) == [1.0] * 100
    assert container.request("GET", "/episodes")[1] == []


async def test_whoever_is_cancelled_leaves_no_episode(url: str, container: Served) -> None:
    """In the middle of a call, and while an episode is being made, of which the answer is then never read."""
    for moment in range(6):
        reached = asyncio.Event()

        async def play(moment: int, reached: asyncio.Event) -> None:
            async with AwmEnv.connect(url, token=TOKEN) as env:
                loop = asyncio.get_running_loop()
                for _ in range(moment):
                    await asyncio.sleep(0)
                loop.call_soon(reached.set)
                await env.reset(0)
                await env.call("misbehave", {"how": "loop"})

        task = asyncio.create_task(play(moment, reached))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while connections._origins.get(asyncio.get_running_loop()):
            await asyncio.sleep(0.01)
    async with asyncio.timeout(60):
        while container.request("GET", "/episodes")[1]:
            await asyncio.sleep(0.01)


def test_the_twin_without_async_does_the_same(url: str, container: Served) -> None:
    with sync.AwmEnv.connect(url, token=TOKEN) as env, sync.AwmEnv.connect(url, token=TOKEN) as other:
        assert env.reset(0) == env.instruction == other.reset(0)
        assert {tool.name for tool in env.tools()} == {tool["function"]["name"] for tool in env.openai_tools()}
        env.call("lend", LEND)
        with env.fork() as twin, env.beside() as third:
            assert third.reset(0) is not None
            assert (twin.submit("done").reward, third.submit().reward, other.submit().reward) == (1.0, 0.0, 0.0)
        assert list(env.diff().tables) == ["loans"]
        assert sqlite3.connect(":memory:").execute("SELECT 1").fetchone() and env.database()[:6] == b"SQLite"
    assert container.request("GET", "/episodes")[1] == []
    with pytest.raises(UsageError, match="was closed"):
        env.reset(0)


def test_the_port_of_nobody_is_an_infrastructure_fault_and_no_address_a_usage_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with (
            sync.AwmEnv.connect(f"http://127.0.0.1:{free.getsockname()[1]}") as env,
            pytest.raises(InfrastructureFault) as caught,
        ):
            env.reset(0)
    assert caught.value.code == "unreachable"
    with sync.AwmEnv.connect("no address") as env, pytest.raises(UsageError, match="http://host:port"):
        env.reset(0)
