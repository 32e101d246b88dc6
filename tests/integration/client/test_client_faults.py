"""Whose fault is it? What a trainer is told by who broke what (cases 35 and 38, and docs/client.md)."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from awm_factory.client import AwmEnv, EnvironmentFault, EpisodeLost, InfrastructureFault, MalformedCall, UsageError
from client_support import TOKEN, relay
from runtime_support import Served, free_port, serve

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def impatient(directory: Path) -> Iterator[Served]:
    """A container that gives a call a second."""
    with serve(directory, AWM_TOKEN=TOKEN, AWM_CALL_TIMEOUT="1", AWM_WORKERS="2") as served:
        yield served


MALFORMED: list[tuple[str, Any, str]] = [
    ("no_such_tool", {}, "unknown_tool"),
    ("", {}, "unknown_tool"),
    ("lend", ["Kite book"], "arguments"),
    ("lend", "[1]", "arguments"),
    ("lend", '{"title": "Kite', "arguments"),
    ("lend", {"days": float("nan")}, "arguments"),
    ("lend", {"days": object()}, "arguments"),
    ("lend", '{"title": "\\ud800"}', "arguments"),
]


@pytest.mark.parametrize(("tool", "arguments", "code"), MALFORMED)
async def test_what_is_no_call_at_all_is_the_policys_and_counts(url: str, tool: str, arguments: Any, code: str) -> None:
    async with AwmEnv.connect(url, token=TOKEN) as env:
        await env.reset(0)
        with pytest.raises(MalformedCall) as caught:
            await env.call(tool, arguments)
        assert (caught.value.fault, caught.value.masked, caught.value.code) == ("policy", False, code)
        assert (await env.submit()).internal_errors == 0


FAILED: list[tuple[str, dict[str, Any], str, str]] = [
    ("lend", {"member_id": "one", "title": "Kite book"}, "invalid_arguments", "policy"),
    ("lend", {"member_id": 99, "title": "Kite book"}, "constraint", "policy"),
    ("commit_then_refuse", {}, "refused", "policy"),
    ("flush_then_fail", {}, "internal", "environment"),
    ("misbehave", {"how": "loop"}, "timeout", "environment"),
    ("misbehave", {"how": "crash"}, "crashed", "environment"),
]


@pytest.mark.parametrize(("tool", "arguments", "kind", "fault"), FAILED)
async def test_a_call_that_fails_is_a_result_that_says_whose_fault_it_is(
    impatient: Served, tool: str, arguments: dict[str, Any], kind: str, fault: str
) -> None:
    async with AwmEnv.connect(f"http://127.0.0.1:{impatient.port}", token=TOKEN) as env:
        await env.reset(0)
        result = await env.call(tool, arguments)
        assert (result.is_error, result.kind, result.fault) == (True, kind, fault)
        assert (await env.submit()).internal_errors == (fault == "environment")
        if fault == "environment":
            with pytest.raises(EnvironmentFault) as caught:
                result.raise_for_fault()
            assert (caught.value.masked, caught.value.code) == (True, kind)
        else:
            result.raise_for_fault()


@pytest.mark.parametrize(
    ("task_id", "answer", "said"),
    [(1, None, "lower"), (2, None, "None"), (2, "true", "True"), (2, "capital", "Complete"), (2, "nan", "nan"), (2, "hang", "s")],
)
async def test_a_verifier_that_fails_gives_no_reward_and_its_error(url: str, task_id: int, answer: str | None, said: str) -> None:
    """Case 38: never 0.0 and never "others", in a form that a trainer can drop; and the container goes on."""
    async with AwmEnv.connect(url, token=TOKEN) as env:
        await env.reset(task_id)
        verdict = await env.submit(answer)
        assert (verdict.reward, verdict.classification, verdict.masked, verdict.fault) == (None, None, True, "environment")
        assert said in (verdict.error or "")
        with pytest.raises(EnvironmentFault, match="mask this episode"):
            verdict.raise_for_fault()
        await env.reset(0)
        assert (await env.submit()).reward == 0.0


async def test_no_answer_in_time_is_the_infrastructures(url: str) -> None:
    async with AwmEnv.connect(url, token=TOKEN) as env:
        await env.reset(0)
        env._place.connections.timeout = 0.2
        with pytest.raises(InfrastructureFault, match="mask this episode") as caught:
            await env.call("misbehave", {"how": "loop"})
        assert (caught.value.fault, caught.value.masked, caught.value.code) == ("infrastructure", True, "no_answer")


async def test_a_container_killed_in_the_middle_of_a_call_and_restarted(directory: Path) -> None:
    """Case 35: one clear error, then "the episode is lost" instead of a score on a fresh database, then reset goes on."""
    ports = free_port(), free_port()
    async with relay(ports[0]) as port, AwmEnv.connect(f"http://127.0.0.1:{port.port}", token=TOKEN) as env:
        with serve(directory, ports, AWM_TOKEN=TOKEN) as served:
            await env.reset(0)
            await env.call("lend", {"member_id": 1, "title": "Kite book"})
            port.passed.clear()
            call = asyncio.create_task(env.call("misbehave", {"how": "loop"}))
            await port.passed.wait()
            served.process.kill()
            with pytest.raises(InfrastructureFault) as caught:
                await call
            assert (caught.value.masked, caught.value.code) == (True, "hung_up")
        with pytest.raises(InfrastructureFault):
            await env.call("list_loans")
        with serve(directory, ports, AWM_TOKEN=TOKEN):
            for _ in range(2):
                with pytest.raises(EpisodeLost, match="reset begins another"):
                    await env.call("list_loans")
            with pytest.raises(EpisodeLost):
                await env.submit("done")
            assert await env.reset() == "Lend the Kite book to Ada."
            assert (await env.submit("done")).reward == 0.0


async def test_what_a_trainer_does_wrong_is_a_usage_error(url: str) -> None:
    async with AwmEnv.connect(url) as env:
        with pytest.raises(UsageError, match="pass the token"):
            await env.reset(0)
    async with AwmEnv.connect(url, token=TOKEN) as env:
        with pytest.raises(UsageError, match="call reset"):
            await env.call("list_loans")
        with pytest.raises(UsageError, match="there is no task 9"):
            await env.reset(9)
        await env.reset(0)
        with pytest.raises(UsageError, match="there is no task 9"):
            await env.reset(9)
        with pytest.raises(UsageError, match="has no verifier"):
            await env.submit(mode="sql")
        assert await env.reset(0) is not None
