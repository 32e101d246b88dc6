"""Leases over containers in memory, with a clock that is set by hand and a real SQLite file."""

import asyncio
import contextlib
import random
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from awm_factory.fleet.lease import watch
from awm_factory.fleet.lease.containers import Silent
from awm_factory.fleet.lease.gate import Gate
from awm_factory.fleet.lease.refusal import Refusal
from awm_factory.fleet.lease.service import Leases
from awm_factory.fleet.lease.store import Held
from fleet_support import Clock, Fake, ask, house, until

pytestmark = pytest.mark.anyio

ENV = "toy_library"


def reason(leases: Leases, held: Held) -> tuple[int, str, str]:
    with pytest.raises(Refusal) as refused:
        leases.lease(held.lease_id)
    return refused.value.status, refused.value.code, refused.value.fault


async def test_leases_are_spread_and_released_episodes_are_gone_from_their_containers() -> None:
    one, two = Fake(ENV, "10.0.0.1"), Fake(ENV, "10.0.0.2")
    async with house(one, two) as here:
        held = [await here.leases.take(ask(), "a") for _ in range(6)]
        assert Counter(each.address for each in held) == {"10.0.0.1": 3, "10.0.0.2": 3}
        assert len({each.episode_id for each in held}) == 6
        for each in held:
            await here.leases.release(each.lease_id)
            await here.leases.release(each.lease_id)
        assert one.episodes == two.episodes == {}
        assert here.leases.status().episodes == 0
        assert reason(here.leases, held[0]) == (410, "released", "usage")


async def test_a_full_scenario_queues_and_the_next_release_serves_the_first_who_waits() -> None:
    async with house(Fake(ENV, "10.0.0.1", capacity=1)) as here:
        first = await here.leases.take(ask(), "a")
        second = asyncio.create_task(here.leases.take(ask(), "a"))
        third = asyncio.create_task(here.leases.take(ask(), "a"))
        await until(lambda: here.leases.status().waiting == 2)
        await here.leases.release(first.lease_id)
        held = await second
        assert not third.done()
        await here.leases.release(held.lease_id)
        await third


async def test_who_gives_up_waiting_is_not_served_any_more() -> None:
    async with house(Fake(ENV, "10.0.0.1", capacity=1)) as here:
        first = await here.leases.take(ask(), "a")
        second = asyncio.create_task(here.leases.take(ask(), "a"))
        await until(lambda: here.leases.status().waiting == 1)
        second.cancel()
        await until(second.done)
        assert here.leases.status().waiting == 0
        await here.leases.release(first.lease_id)
        await here.leases.take(ask(wait=0), "a")


async def test_who_waits_in_vain_and_who_finds_the_queue_full_is_told_when_to_come_again() -> None:
    async with house(Fake(ENV, "10.0.0.1", capacity=1), queue=1) as here:
        await here.leases.take(ask(), "a")
        waiting = asyncio.create_task(here.leases.take(ask(wait=600), "a"))
        await until(lambda: here.leases.status().waiting == 1)
        with pytest.raises(Refusal) as full:
            await here.leases.take(ask(), "a")
        assert (full.value.status, full.value.code) == (429, "queue_full") and full.value.headers() == {"retry-after": "2"}
        waiting.cancel()
        await until(lambda: here.leases.status().waiting == 0)
        with pytest.raises(Refusal) as late:
            await here.leases.take(ask(wait=0.05), "a")
        assert (late.value.status, late.value.code, late.value.fault) == (429, "full", "infrastructure")
        assert here.leases.status().waiting == 0


async def test_a_request_that_is_given_up_leaves_no_episode_whenever_that_happens() -> None:
    fake = Fake(ENV, "10.0.0.1", capacity=2)
    async with house(fake) as here:
        for steps in range(12):
            taking = asyncio.create_task(here.leases.take(ask(), "a"))
            for _ in range(steps):
                await asyncio.sleep(0)
            if taking.done():
                await here.leases.release(taking.result().lease_id)
            taking.cancel()
            await until(lambda: not here.leases.leases and here.leases.status().episodes == 0)
            assert fake.episodes == {}, steps


async def test_an_environment_or_a_task_that_is_not_there_is_the_callers_mistake() -> None:
    fake = Fake(ENV, "10.0.0.1", capacity=1)
    async with house(fake) as here:
        for request, code in ((ask("nowhere"), "unknown_env"), (ask(task_id=7), "refused")):
            with pytest.raises(Refusal) as refused:
                await here.leases.take(request, "a")
            assert (refused.value.status, refused.value.code, refused.value.fault) == (404, code, "usage")
        await here.leases.take(ask(), "a")


async def test_a_lease_lives_as_long_as_it_is_heard_of() -> None:
    fake = Fake(ENV, "10.0.0.1")
    async with house(fake) as here:
        kept, left = [await here.leases.take(ask(ttl=10), "a") for _ in range(2)]
        here.clock.now += 6
        assert here.leases.prolong(kept.lease_id, None).expires_at == here.clock.now + 10
        here.clock.now += 6
        here.leases._sooner.set()
        await until(lambda: len(fake.episodes) == 1)
        assert here.leases.lease(kept.lease_id).episode_id in fake.episodes
        assert reason(here.leases, left) == (410, "expired", "usage")


async def test_a_shorter_lease_taken_later_expires_first() -> None:
    async with house(Fake(ENV, "10.0.0.1")) as here:
        long = await here.leases.take(ask(ttl=1000), "a")
        short = await here.leases.take(ask(ttl=0.05), "a")
        here.clock.now += 1
        await until(lambda: short.lease_id not in here.leases.leases)
        assert long.lease_id in here.leases.leases


async def test_a_container_that_dies_ends_its_leases_as_the_fleets_fault_and_no_others() -> None:
    one, two = Fake(ENV, "10.0.0.1"), Fake(ENV, "10.0.0.2")
    async with house(one, two) as here:
        held = [await here.leases.take(ask(), "a") for _ in range(4)]
        one.die()
        lost = next(each for each in held if each.address == one.address)
        with pytest.raises(Refusal) as gone:
            await here.leases.forward(lost, "agent", "POST", "/mcp", b"{}")
        assert (gone.value.status, gone.value.code, gone.value.fault) == (410, "container_died", "infrastructure")
        for each in held:
            if each.address == one.address:
                assert reason(here.leases, each) == (410, "container_died", "infrastructure")
            else:
                assert (await here.leases.forward(each, "agent", "POST", "/mcp", b"{}")).status == 200
        new = await here.leases.take(ask(), "a")
        assert new.address == two.address
        one.start()
        await until(lambda: one.address in here.leases.known)
        assert (await here.leases.take(ask(), "a")).address == one.address


async def test_a_restart_between_two_looks_is_seen_by_the_containers_new_start() -> None:
    fake = Fake(ENV, "10.0.0.1", capacity=1)
    async with house(fake) as here:
        held = await here.leases.take(ask(), "a")
        fake.restart()
        with pytest.raises(Refusal) as gone:
            await here.leases.forward(held, "agent", "POST", "/mcp", b"{}")
        assert gone.value.code == "container_died"
        assert (await here.leases.take(ask(), "a")).episode_id in fake.episodes


async def test_an_episode_missing_from_a_container_that_is_well_is_the_fleets_fault_too() -> None:
    fake = Fake(ENV, "10.0.0.1", capacity=1)
    async with house(fake) as here:
        held = await here.leases.take(ask(), "a")
        fake.episodes.clear()
        with pytest.raises(Refusal) as gone:
            await here.leases.forward(held, "control", "POST", "/verify")
        assert (gone.value.code, gone.value.fault) == ("service_error", "infrastructure")
        await here.leases.take(ask(), "a")


async def test_a_container_that_dies_while_it_makes_an_episode_costs_the_caller_nothing() -> None:
    one, two = Fake(ENV, "10.0.0.1"), Fake(ENV, "10.0.0.2")
    async with house(one, two) as here:
        one.before_answer = lambda method, path: one.die() if method == "POST" else None
        held = [await here.leases.take(ask(), "a") for _ in range(3)]
        assert {each.address for each in held} == {two.address}


async def test_an_episode_made_by_a_new_start_that_we_have_not_met_is_not_leased() -> None:
    fake = Fake(ENV, "10.0.0.1", capacity=1)
    async with house(fake) as here:
        fake.before_answer = lambda method, path: (setattr(fake, "before_answer", lambda *_: None), fake.restart())[0]
        held = await here.leases.take(ask(), "a")
        await here.settled()
        if held.episode_id not in fake.episodes:
            assert reason(here.leases, held)[1] == "container_died"
            held = await here.leases.take(ask(), "a")
        assert list(fake.episodes) == [held.episode_id]


async def test_a_silent_container_keeps_its_leases_and_gets_no_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = Fake(ENV, "10.0.0.1"), Fake(ENV, "10.0.0.2")
    async with house(one, two) as here:
        held = [await here.leases.take(ask(), "a") for _ in range(2)]
        slow = next(each for each in held if each.address == one.address)
        one.state = "silent"
        with pytest.raises(Refusal) as late:
            await here.leases.forward(slow, "agent", "POST", "/mcp", b"{}")
        assert (late.value.status, late.value.code) == (504, "no_answer")
        assert {(await here.leases.take(ask(), "a")).address for _ in range(3)} == {two.address}
        one.state = "well"
        await here.settled()
        assert (await here.leases.forward(slow, "agent", "POST", "/mcp", b"{}")).status == 200

        one.state = "silent"
        monkeypatch.setattr(watch, "SILENCE", -1.0)
        await here.settled()
        assert reason(here.leases, slow)[1] == "container_died"


async def test_a_request_under_way_ends_with_its_container_and_not_when_its_time_is_up() -> None:
    fake = Fake(ENV, "10.0.0.1", held_up=asyncio.Event())
    async with house(fake) as here:
        held = await here.leases.take(ask(), "a")
        call = asyncio.create_task(here.leases.forward(held, "agent", "POST", "/mcp", b"{}"))
        await until(lambda: len(here.leases._under_way[held.address]) == 1)
        fake.die()
        with pytest.raises(Refusal) as gone:
            await asyncio.wait_for(call, 60)
        assert gone.value.code == "container_died"


async def test_a_lease_that_a_dead_machine_was_asked_for_comes_from_another_container() -> None:
    """A machine that is gone hangs up on nobody."""
    gone, other = Fake(ENV, "10.0.0.1", making=asyncio.Event()), Fake(ENV, "10.0.0.2")
    async with house(gone, other) as here:
        taking = asyncio.create_task(here.leases.take(ask(), "a"))
        await until(lambda: here.leases.places.used(gone.address) == 1)
        gone.die()
        held = await asyncio.wait_for(taking, 60)
        assert held.address == other.address


async def test_calls_beyond_a_containers_processes_wait_outside_unless_one_is_held_up() -> None:
    fake = Fake(ENV, "10.0.0.1", held_up=asyncio.Event())
    async with house(fake) as here:
        here.leases._gates = {(fake.address, "agent"): Gate(1, 0.2)}  # type: ignore[assignment]
        held = [await here.leases.take(ask(), "a") for _ in range(2)]
        inside: list[str] = []
        fake.before_answer = lambda method, path: inside.append(path) if "/mcp" in path else None
        calls = [asyncio.create_task(here.leases.forward(each, "agent", "POST", "/mcp", b"{}")) for each in held]
        await until(lambda: len(inside) == 2)
        assert not any(call.done() for call in calls)
        fake.held_up.set()
        assert [(await call).status for call in calls] == [200, 200]


async def test_verdicts_are_given_one_after_the_other_and_keep_nothing_else_waiting() -> None:
    """On a busy machine each takes longer than a call may, and all at once would take longer still."""
    fake = Fake(ENV, "10.0.0.1", held_up=asyncio.Event())
    async with house(fake) as here:
        here.leases._gates = defaultdict(lambda: Gate(1, 600))
        here.leases._judging = {fake.address: Gate(1, 600)}  # type: ignore[assignment]
        held = [await here.leases.take(ask(), "a") for _ in range(3)]
        inside: list[str] = []
        fake.before_answer = lambda method, path: inside.append(path.rpartition("/")[2])
        verdicts = [asyncio.create_task(here.leases.forward(each, "control", "POST", "/verify")) for each in held]
        await until(lambda: inside == ["verify"])
        others = [asyncio.create_task(here.leases.forward(held[0], "control", "GET", "/diff"))]
        others.append(asyncio.create_task(here.leases.forward(held[0], "agent", "POST", "/mcp", b"{}")))
        await until(lambda: len(inside) == 3)
        assert sorted(inside) == ["diff", "mcp", "verify"] and not any(each.done() for each in verdicts)
        fake.held_up.set()
        assert [(await each).status for each in [*verdicts, *others]] == [200] * 5
        assert inside.count("verify") == 3


async def test_what_a_busy_container_did_not_delete_is_deleted_later() -> None:
    fake = Fake(ENV, "10.0.0.1", capacity=1)
    async with house(fake) as here:
        held = await here.leases.take(ask(), "a")
        fake.state = "silent"
        await here.leases.release(held.lease_id)
        assert list(fake.episodes) == [held.episode_id]
        fake.state = "well"
        new = await here.leases.take(ask(), "a")
        assert list(fake.episodes) == [new.episode_id]


async def test_an_episode_whose_making_was_never_answered_is_found_and_deleted() -> None:
    fake = Fake(ENV, "10.0.0.1", capacity=2)
    async with house(fake) as here:
        held = await here.leases.take(ask(), "a")

        def lose_the_answer(method: str, path: str) -> None:
            if method == "POST":
                fake.before_answer = lambda *_: None
                fake.episodes["f" * 32] = []
                raise Silent("no answer")

        for make in (lambda: here.leases.take(ask(), "a"), lambda: here.leases.fork(held)):
            fake.before_answer = lose_the_answer
            with contextlib.suppress(Refusal):
                made = await make()
                await here.leases.release(made.lease_id) if isinstance(made, Held) else None
            await here.settled()
            assert list(fake.episodes) == [held.episode_id]


async def test_leases_survive_a_restart_of_the_service_and_strays_are_deleted(tmp_path: Path) -> None:
    fakes = [Fake(ENV, "10.0.0.1", capacity=3), Fake(ENV, "10.0.0.2", capacity=3)]
    clock = Clock()
    async with house(*fakes, store=tmp_path / "leases.db", clock=clock) as here:
        held = [await here.leases.take(ask(ttl=60), "a") for _ in range(4)]
        twin, _ = await here.leases.fork(held[0])
        await here.leases.forward(held[0], "control", "POST", "/reset", b'{"task_id": 1}')
        await here.leases.release(held[3].lease_id)
    fakes[0].episodes["f" * 32] = []
    fakes[1].restart()
    clock.now += 30
    async with house(*fakes, store=tmp_path / "leases.db", clock=clock) as here:
        mine = [each for each in held[:3] if each.address == fakes[0].address]
        assert set(fakes[0].episodes) == {*(each.episode_id for each in mine), twin.episode_id}
        for each in mine:
            assert here.leases.lease(each.lease_id).expires_at == each.expires_at
            assert (await here.leases.forward(each, "agent", "POST", "/mcp", b"{}")).status == 200
        assert here.leases.status().episodes == len(fakes[0].episodes)
        assert here.leases.lease(held[0].lease_id).task_id == 1
        assert here.leases.leases[held[0].lease_id] == [held[0].episode_id, twin.episode_id]
        assert {reason(here.leases, each)[1] for each in held[:3] if each not in mine} == {"container_died"}
        assert reason(here.leases, held[3])[1] == "released"
        clock.now += 31
        here.leases._sooner.set()
        await until(lambda: not fakes[0].episodes)


async def test_leases_whose_containers_do_not_come_back_end_after_a_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = Fake(ENV, "10.0.0.1")
    async with house(fake, store=tmp_path / "leases.db") as here:
        held = await here.leases.take(ask(), "a")
    fake.die()
    monkeypatch.setattr(watch, "GRACE", 0.05)
    async with house(fake, store=tmp_path / "leases.db") as here:
        assert here.leases.lease(held.lease_id) == held
        await until(lambda: held.lease_id not in here.leases.leases)
        assert reason(here.leases, held)[1] == "container_died"


async def test_a_twin_has_a_place_of_its_own_and_ends_before_its_lease_or_with_it() -> None:
    fake = Fake(ENV, "10.0.0.1", capacity=3)
    async with house(fake) as here:
        held = await here.leases.take(ask(), "a")
        first, _ = await here.leases.fork(held)
        second, _ = await here.leases.fork(first)
        with pytest.raises(Refusal) as full:
            await here.leases.fork(held)
        assert (full.value.status, full.value.code) == (429, "full")
        await here.leases.drop_twin(first)
        assert set(fake.episodes) == {held.episode_id, second.episode_id}
        assert here.leases.lease(held.lease_id) == held
        with pytest.raises(Refusal):
            here.leases.episode(first.episode_id)
        await here.leases.release(held.lease_id)
        assert fake.episodes == {} and here.leases.status().episodes == 0


async def test_an_address_that_came_to_another_environments_container_is_taken_for_what_it_is() -> None:
    lost, other = Fake(ENV, "10.0.0.1"), Fake("tool_shed", "10.0.0.2")
    async with house(lost, other) as here:
        held = await here.leases.take(ask(), "a")
        here.containers.fakes[0] = Fake("tool_shed", "10.0.0.1")
        await until(lambda: here.leases.known.get("10.0.0.1") is not None and here.leases.known["10.0.0.1"].env_id == "tool_shed")
        assert reason(here.leases, held)[1] == "container_died"
        with pytest.raises(Refusal) as refused:
            await here.leases.take(ask(wait=0), "a")
        assert refused.value.code == "no_container"


async def test_metrics_tell_leases_containers_and_why_leases_ended() -> None:
    fake = Fake(ENV, "10.0.0.1")
    async with house(fake) as here:
        held = [await here.leases.take(ask(), "a") for _ in range(3)]
        await here.leases.release(held[0].lease_id)
        found = {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(here.leases.metrics.text().decode())
            for sample in family.samples
        }
        assert found["awm_fleet_leases", ENV] == 2
        assert found["awm_fleet_capacity", ENV] == 4
        assert found["awm_fleet_leases_granted_total", ENV] == 3
        assert found["awm_fleet_leases_ended_total", ENV, "released"] == 1
        assert found["awm_fleet_lease_seconds_count",] == 3


@pytest.mark.parametrize("seed", range(5))
async def test_under_churn_and_dying_containers_no_episode_is_leased_twice_and_none_leaks(seed: int) -> None:
    dice = random.Random(seed)
    fakes = [Fake(ENV, f"10.0.0.{number}", capacity=3) for number in range(4)]
    held_now: set[str] = set()
    outcomes: Counter[str] = Counter()
    async with house(*fakes) as here:

        async def trainer() -> None:
            for _ in range(25):
                try:
                    held = await here.leases.take(ask(wait=5), f"client{dice.randrange(3)}")
                except Refusal as refusal:
                    outcomes[refusal.code] += 1
                    continue
                assert held.episode_id not in held_now
                held_now.add(held.episode_id)
                try:
                    for _ in range(dice.randrange(4)):
                        call = f'"{held.lease_id}"'.encode()
                        calls = (await here.leases.forward(held, "agent", "POST", "/mcp", call)).json()["calls"]
                        assert isinstance(calls, list) and set(calls) == {call.decode()}, "an episode saw another's calls"
                    outcomes["done"] += 1
                except Refusal as refusal:
                    outcomes[f"{refusal.code}, {refusal.fault}"] += 1
                held_now.discard(held.episode_id)
                await here.leases.release(held.lease_id)

        async def killer() -> None:
            for _ in range(30):
                victim = dice.choice(fakes)
                await asyncio.sleep(0.002)
                victim.die()
                await asyncio.sleep(0.002)
                victim.start()

        await asyncio.gather(*(trainer() for _ in range(20)), killer())
        await here.settled()
        await until(lambda: not any(fake.episodes for fake in fakes))
        assert here.leases.status().leases == here.leases.status().episodes == 0
        assert here.leases.held == {} and here.leases._place == {}
    assert all(fake.fullest <= fake.capacity for fake in fakes)
    assert outcomes.pop("done") > 100 and outcomes["container_died, infrastructure"] > 0, outcomes
    assert all(outcome.endswith(("infrastructure", "no_container")) for outcome in outcomes), outcomes
