"""Room for requests and checks: never more at once than there is, the longest way first, and none lost when a waiter gives up."""

import asyncio
import threading

from awm_factory.synthesis.slots import Lanes, Slots


def test_so_many_at_once_and_low_ranks_first() -> None:
    async def go() -> tuple[list[str], int]:
        slots, order, at_once, most = Slots(2), [], 0, 0

        async def work(name: str, rank: int) -> None:
            nonlocal at_once, most
            async with slots.take(rank):
                order.append(name)
                at_once += 1
                most = max(most, at_once)
                await asyncio.sleep(0.01)
                at_once -= 1

        names = [("a", 7), ("b", 7), ("c", 7), ("d", 1), ("e", 3), ("f", 1)]
        await asyncio.gather(*(work(name, rank) for name, rank in names))
        return order, most

    order, most = asyncio.run(go())
    assert (order, most) == (["a", "b", "d", "f", "e", "c"], 2)


def test_a_waiter_that_is_cancelled_takes_no_room() -> None:
    async def go() -> str:
        slots = Slots(1)

        async def work(name: str) -> str:
            async with slots.take(0):
                await asyncio.sleep(0.01)
                return name

        first, second, third = (asyncio.create_task(work(name)) for name in "abc")
        await asyncio.sleep(0)
        second.cancel()
        await first
        return await asyncio.wait_for(third, 1)

    assert asyncio.run(go()) == "c"


def test_one_that_is_cancelled_just_when_its_turn_comes_passes_it_on() -> None:
    async def go() -> list[str]:
        slots, order = Slots(1), list[str]()

        async def work(name: str) -> None:
            async with slots.take(0):
                order.append(name)

        async with slots.take(0):
            waiting = [asyncio.create_task(work(name)) for name in "ab"]
            await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 1)
        async with slots.take(0):
            order.append("c")
        return order

    assert asyncio.run(go()) == ["b", "c"]


def test_what_is_finished_is_kept_first_then_checks_by_stage_and_proofs_last() -> None:
    async def go() -> list[str]:
        lanes, order, begun = Lanes(1), list[str](), threading.Event()
        try:
            blocking = asyncio.create_task(lanes.run("tasks", begun.wait))
            await asyncio.sleep(0)
            names = ["certify", "solutions", "verifiers", "code", "keep", "code"]
            others = [asyncio.create_task(lanes.run(name, order.append, name)) for name in names]
            await asyncio.sleep(0)
            assert not order
            begun.set()
            await asyncio.gather(blocking, *others)
        finally:
            begun.set()
            lanes.close()
        return order

    assert asyncio.run(go()) == ["keep", "code", "code", "verifiers", "solutions", "certify"]


def test_a_check_that_is_given_up_leaves_its_lane_to_the_next() -> None:
    async def go() -> str:
        lanes, release = Lanes(1), threading.Event()
        try:
            first = asyncio.create_task(lanes.run("code", release.wait))
            await asyncio.sleep(0)
            first.cancel()
            release.set()
            return await asyncio.wait_for(lanes.run("code", str, "next"), 5)
        finally:
            lanes.close()

    assert asyncio.run(go()) == "next"
