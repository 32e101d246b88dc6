"""A thousand episodes leased at once from a fleet on this machine, each with ten calls and a verify.

    .venv/bin/python benchmarks/bench_fleet.py [ENV]... [--episodes 1024] [--scenarios 8] [--calls 10] [--json]

Client, lease service and containers share the machine's CPUs. All leases are held before the first call, and all episodes call at
once, so a call's time is mostly its turn's. Afterwards every episode's answers and database are compared with those of one that
played the same alone. An episode that is lost on the way is counted with its fault, and the others go on. Exit status 1 where one
is lost or differs, anything is left over, or the fleet takes more than 2 GiB.
"""

import argparse
import asyncio
import itertools
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Final

from fleet_bench import (
    Expected,
    Script,
    Times,
    fleet,
    left_over,
    memory,
    outcome,
    percentiles,
    play,
    scripts,
    timed,
    workspace,
)

from awm_factory.catalog import Catalog
from awm_factory.client import AwmEnv, Fleet
from awm_factory.errors import Fault
from awm_factory.fleet.planning import Planned

TARGET_MIB: Final = 2048
WAIT: Final = 600.0
"""Seconds that a lease may queue."""


@dataclass
class Figures:
    scenarios: int
    episodes: int
    calls_each: int
    containers: int
    load_before: float
    """Of one minute, before the fleet is started and after the last verdict; beyond the second CPU others were at work."""
    load_after: float
    start_s: float
    wall_s: float
    """From the first lease to the last verdict."""
    leases_s: float
    calls_s: float
    verifies_s: float
    calls_per_second: float
    lease_ms: tuple[float, float]
    call_ms: tuple[float, float]
    verify_ms: tuple[float, float]
    idle_mib: float
    peak_mib: float
    rewarded: int
    too_slow: int
    """Episodes of which a call or the verifier ran into its time limit, as happens on a machine that is busy otherwise."""
    strange: int
    """Other episodes whose answers or database are not those of an episode alone."""
    lost: dict[str, int]
    """Episodes that could not be played to their end, by fault and code."""
    leases_left: int
    left_over: list[str]

    @property
    def good(self) -> bool:
        return not (self.strange or self.lost or self.leases_left or self.left_over or self.peak_mib > TARGET_MIB)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("envs", nargs="*", metavar="ENV")
    parser.add_argument("--episodes", type=int, default=1024)
    parser.add_argument("--scenarios", type=int, default=8)
    parser.add_argument("--calls", type=int, default=10)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    load = os.getloadavg()[0]
    with workspace(given.envs, given.scenarios) as (config, envs):
        capacity = -(-given.episodes // (len(envs) * given.replicas))
        begin = time.perf_counter()
        with fleet(config, envs, given.replicas, capacity) as (planned, _, there):
            start = time.perf_counter() - begin
            figures = asyncio.run(
                measure(planned, there, Catalog(config.workspace), envs, given.episodes, given.calls, start, load)
            )
        figures.left_over = left_over(planned)
    if given.json:
        print(json.dumps(asdict(figures), indent=2))
    else:
        show(figures)
    return 0 if figures.good else 1


async def measure(
    planned: Planned, there: Fleet, catalog: Catalog, envs: list[str], episodes: int, calls: int, start: float, load: float
) -> Figures:
    label = planned.orchestrator.label(planned.files)
    idle = memory(planned.client, label)
    by_env: dict[str, list[Script]] = {}
    expected = await scripts(there, catalog, envs, calls)
    for script in expected:
        by_env.setdefault(script.env_id, []).append(script)
    envs = [env_id for env_id in envs if env_id in by_env]
    chosen = [by_env[envs[n % len(envs)]][n // len(envs) % len(by_env[envs[n % len(envs)]])] for n in range(episodes)]
    times = Times()
    held: dict[int, AwmEnv] = {}
    lost: Counter[str] = Counter()
    texts: list[list[str]] = [[] for _ in range(episodes)]
    rewards: list[float | None] = [None] * episodes
    late: set[int] = set()

    async def lease(number: int) -> None:
        env = there.lease(chosen[number].env_id, chosen[number].task_id, wait=WAIT)
        with timed(times.lease):
            held[number] = await env.__aenter__()

    async def episode(number: int) -> None:
        for name, arguments in chosen[number].calls:
            with timed(times.call):
                texts[number].append(await play(held[number], name, arguments))
            if '"kind": "timeout"' in texts[number][-1]:
                late.add(number)

    async def verify(number: int) -> None:
        with timed(times.verify):
            verdict = await held[number].submit(chosen[number].answer)
        rewards[number] = verdict.reward
        if verdict.error is not None:
            late.add(number)

    async def compare(number: int) -> None:
        nonlocal strange
        came: Expected = await outcome(held[number], chosen[number], texts[number], rewards[number])
        strange += number not in late and came != expected[chosen[number]]

    async def all_of(step: Callable[[int], Awaitable[None]], numbers: Iterable[int]) -> None:
        async def one(number: int) -> None:
            try:
                await step(number)
            except Fault as fault:
                lost[f"{fault.fault}: {fault.code} ({step.__name__})"] += 1
                if (env := held.pop(number, None)) is not None:
                    await env.close()

        await asyncio.gather(*map(one, list(numbers)))

    strange = 0
    marks = [time.perf_counter()]
    try:
        for step in (lease, episode, verify):
            await all_of(step, held if step is not lease else range(episodes))
            marks.append(time.perf_counter())
        load_after, peak = os.getloadavg()[0], memory(planned.client, label)
        await all_of(compare, held)
    finally:
        await asyncio.gather(*(env.close() for env in held.values()))
    status = await there.status()
    spans = [after - before for before, after in itertools.pairwise(marks)]
    return Figures(
        scenarios=len(envs),
        episodes=episodes,
        calls_each=calls,
        containers=sum(len(one["containers"]) for one in status["scenarios"]),
        load_before=round(load, 2),
        load_after=round(load_after, 2),
        start_s=start,
        wall_s=marks[-1] - marks[0],
        leases_s=spans[0],
        calls_s=spans[1],
        verifies_s=spans[2],
        calls_per_second=len(times.call) / spans[1],
        lease_ms=percentiles(times.lease),
        call_ms=percentiles(times.call),
        verify_ms=percentiles(times.verify),
        idle_mib=idle,
        peak_mib=peak,
        rewarded=sum(reward == 1.0 for reward in rewards),
        too_slow=len(late),
        strange=strange,
        lost=dict(lost),
        leases_left=status["leases"] + status["episodes"],
        left_over=[],
    )


def show(found: Figures) -> None:
    rows = [
        ("episodes, scenarios, containers", f"{found.episodes}, {found.scenarios}, {found.containers}"),
        ("load of the machine, before -> after", f"{found.load_before} -> {found.load_after}"),
        ("fleet up, s", f"{found.start_s:.1f}"),
        (
            "wall: leases + calls + verifies, s",
            f"{found.wall_s:.1f} = {found.leases_s:.1f} + {found.calls_s:.1f} + {found.verifies_s:.1f}",
        ),
        ("calls a second", f"{found.calls_per_second:.0f}"),
        *(
            (f"{name}, p50 / p99 ms", f"{pair[0]:.0f} / {pair[1]:.0f}")
            for name, pair in (("lease", found.lease_ms), ("call", found.call_ms), ("verify", found.verify_ms))
        ),
        ("memory of the fleet, idle / peak MiB", f"{found.idle_mib:.0f} / {found.peak_mib:.0f} (at most {TARGET_MIB})"),
        ("rewarded 1.0", f"{found.rewarded}"),
        ("episodes that ran into a time limit", f"{found.too_slow}"),
        ("episodes with anything of another's", f"{found.strange}"),
        ("episodes lost", ", ".join(f"{count} x {fault}" for fault, count in found.lost.items()) or "none"),
        ("leases left / anything left over", f"{found.leases_left} / {', '.join(found.left_over) or 'nothing'}"),
    ]
    for name, value in rows:
        print(f"{name:40} {value}")


if __name__ == "__main__":
    sys.exit(main())
