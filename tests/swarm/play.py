"""Plays episodes of a fleet, in the network of the node it is started on: `play.py URL TOKEN_FILE rounds|until-lost ENV...`"""

import asyncio
import json
import sys
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

from awm_factory.client import AwmEnv, Fleet
from awm_factory.errors import EpisodeLost, Fault


async def played(env: AwmEnv, number: int, writes: int = 1) -> bool:
    """The episode's next write and a read; whether the read shows all its writes and no other's."""
    await env.call("add_hive", {"label": f"Canary {number}-{writes}"})
    text = (await env.call("list_hives", {})).text
    return text.count("Canary") == text.count(f"Canary {number}-") == writes


async def rounds(fleet: Fleet, envs: list[str]) -> dict[str, object]:
    faults: Counter[str] = Counter()

    async def one(number: int) -> bool:
        async with fleet.lease(envs[number % len(envs)], 0) as env:
            return await played(env, number) and (await env.submit("done")).error is None

    done = await asyncio.gather(*(one(number) for number in range(16)))
    return {"played": sum(done), "faults": faults}


async def until_lost(fleet: Fleet, envs: list[str]) -> dict[str, object]:
    """Sixteen leases, played until eight of them are lost; the others go on, and new ones are taken meanwhile."""
    faults: Counter[str] = Counter()
    lost: set[int] = set()
    writes: Counter[int] = Counter()
    over = asyncio.Event()
    wrong = new = 0

    async def one(number: int, env: AwmEnv) -> None:
        nonlocal wrong
        while not over.is_set():
            try:
                writes[number] += 1
                wrong += not await played(env, number, writes[number])
            except EpisodeLost as error:
                faults[error.code] += 1
                lost.add(number)
                if len(lost) == 8:
                    over.set()
                return
            except Fault as error:
                faults[error.code] += 1
                writes[number] -= 1

    async def newcomer() -> None:
        nonlocal new
        while not (over.is_set() and new):
            try:
                async with fleet.lease(envs[0], 0, wait=120) as env:
                    await env.tools()
                    new += bool(lost)
            except Fault as error:
                faults[error.code] += 1

    async with AsyncExitStack() as stack:
        held = [await stack.enter_async_context(fleet.lease(envs[number % len(envs)], 0)) for number in range(16)]
        print("playing", flush=True)
        await asyncio.gather(*(one(number, env) for number, env in enumerate(held)), newcomer())
        kept = 0
        for number, env in enumerate(held):
            if number not in lost:
                kept += await played(env, number, writes[number] + 1)
    return {"lost": len(lost), "kept": kept, "faults": faults, "new_leases_meanwhile": new, "wrong": wrong}


async def main() -> None:
    url, token_file, how, *envs = sys.argv[1:]
    fleet = Fleet.connect(url, Path(token_file).read_text().strip(), timeout=300)
    print(json.dumps(await (rounds if how == "rounds" else until_lost)(fleet, envs)))


asyncio.run(main())
