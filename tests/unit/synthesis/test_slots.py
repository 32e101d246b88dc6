"""Room for requests: never more at once than there is, the longest way first, and none lost when a waiter gives up."""

import asyncio

from awm_factory.synthesis.slots import Slots


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
