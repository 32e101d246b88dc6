"""Churn on a fleet for minutes, with a container killed every so often: nothing may leak, grow, mix, or be laid to the policy.

    .venv/bin/python benchmarks/soak_fleet.py [ENV]... [--minutes 20] [--every 30] [--scenarios 4] [--clients 48] [--json]

Clients take leases, play scripts, fork, reset, walk off without a word, and compare what they see with what an episode alone came
to. Now and then the container that is killed is the lease service's own. Run it as root on the engine's machine: elsewhere a kill
is less of a crash. Exit status 1 where memory grows after the first quarter, a loss is not the infrastructure's, an episode shows
anything of another's, or anything is left over.
"""

import argparse
import asyncio
import json
import random
import statistics
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from fleet_bench import Expected, Script, crash, fleet, left_over, memory, outcome, play, scripts, workspace

from awm_factory.catalog import Catalog
from awm_factory.client import Fleet
from awm_factory.errors import Fault
from awm_factory.fleet import orchestrators
from awm_factory.fleet.planning import Planned

GROWTH: Final = 1.15
SHORT_TTL: Final = 5.0
"""Seconds that a lease lives whose holder walks off."""
SERVICE_EVERY: Final = 8
"""Of so many kills, one is the lease service's."""
SETTLE: Final = 90.0


@dataclass
class Tally:
    minutes: float
    episodes: int = 0
    calls: int = 0
    forks: int = 0
    walked_off: int = 0
    too_slow: int = 0
    """Episodes of which a call or the verifier ran into its time limit."""
    kills: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    """By whose they are and their code."""
    wrong: list[str] = field(default_factory=list)
    mib: list[float] = field(default_factory=list)
    service: list[dict[str, int]] = field(default_factory=list)
    """Of the lease service: bytes of its store, descriptors of its process."""
    left: list[str] = field(default_factory=list)

    @property
    def grown(self) -> float:
        quarter = max(1, len(self.mib) // 4)
        return statistics.median(self.mib[-quarter:]) / statistics.median(self.mib[quarter : 2 * quarter] or self.mib)

    @property
    def good(self) -> bool:
        foreign = [fault for fault in self.faults if not fault.startswith("infrastructure")]
        return not (foreign or self.wrong or self.left or self.grown > GROWTH)


async def client(there: Fleet, known: dict[Script, Expected], end: float, tally: Tally, dice: random.Random) -> None:
    while time.monotonic() < end:
        script = dice.choice(list(known))
        leaving = dice.random() < 0.05
        try:
            lease = there.lease(script.env_id, script.task_id, ttl=SHORT_TTL if leaving else 60, wait=60)
            async with lease as env:
                if leaving:
                    await walk_off(env)
                    tally.walked_off += 1
                    continue
                if dice.random() < 0.1:
                    await env.call(*script.calls[0])
                    await env.reset()
                player = env
                if dice.random() < 0.1:
                    player = await env.fork()
                    tally.forks += 1
                texts = []
                for name, arguments in script.calls:
                    texts.append(await play(player, name, arguments))
                    tally.calls += 1
                verdict = await player.submit(script.answer)
                if verdict.error is not None or any('"kind": "timeout"' in text for text in texts):
                    tally.too_slow += 1
                elif (found := await outcome(player, script, texts, verdict.reward)) != known[script]:
                    tally.wrong.append(f"{script.env_id} task {script.task_id}: {found}, not {known[script]}")
            tally.episodes += 1
        except Fault as fault:
            tally.faults[f"{fault.fault}: {fault.code}"] += 1


async def walk_off(env: Any) -> None:
    """As a trainer's process that is killed: no heartbeat any more, and no release."""
    for lease_id in list(env._place._beats):
        env._place._be_silent(lease_id)
    env._held = None


async def killer(planned: Planned, every: float, end: float, tally: Tally, dice: random.Random) -> None:
    label = planned.orchestrator.label(planned.files)
    number = 0
    while time.monotonic() + every < end:
        await asyncio.sleep(every)
        parts = await asyncio.to_thread(orchestrators.parts, planned.client, label)
        number += 1
        own = number % SERVICE_EVERY == 0
        victims = [part for part in parts if part.state == "running" and (part.service == "lease") == own]
        victim = dice.choice(victims)
        await asyncio.to_thread(crash, planned.client, victim.name)
        tally.kills["lease service" if own else "container"] += 1
        sys.stderr.write(f"killed {victim.name}; {tally.episodes} episodes, {dict(tally.faults)}\n")


async def watcher(planned: Planned, end: float, tally: Tally) -> None:
    label = planned.orchestrator.label(planned.files)
    while time.monotonic() < end:
        tally.mib.append(await asyncio.to_thread(memory, planned.client, label))
        if found := await asyncio.to_thread(service_figures, planned):
            tally.service.append(found)
        await asyncio.sleep(10)


def service_figures(planned: Planned) -> dict[str, int] | None:
    code = "import os; print(sum(os.stat('/data/' + f).st_size for f in os.listdir('/data')), len(os.listdir('/proc/1/fd')))"
    answer = inside(planned, "lease", code)
    if not answer or len(answer[0].split()) != 2:
        return None
    store, descriptors = map(int, answer[0].split())
    return {"store_bytes": store, "descriptors": descriptors}


def inside(planned: Planned, service: str | None, code: str) -> list[str]:
    """What a program prints in each container of a service, or of all but the lease service."""
    found = []
    for part in orchestrators.parts(planned.client, planned.orchestrator.label(planned.files)):
        if part.state == "running" and (part.service == service if service else part.service != "lease"):
            done = planned.client.containers.get(part.name).exec_run(["python", "-c", code], stream=False)
            output = done.output if isinstance(done.output, bytes) else b""
            found.append(output.decode().strip() if done.exit_code == 0 else "")
    return found


async def settled(planned: Planned, there: Fleet, tally: Tally) -> None:
    """After the last client: leases end, and containers hold no episode."""
    code = "import json, urllib.request as u; print(json.load(u.urlopen('http://127.0.0.1:8000/health'))['episodes'])"
    give_up = time.monotonic() + SETTLE
    while True:
        status = await there.status()
        counts = await asyncio.to_thread(inside, planned, None, code)
        if status["leases"] == status["episodes"] == 0 and all(count == "0" for count in counts):
            return
        if time.monotonic() > give_up:
            tally.left.append(f"{status['leases']} leases, {status['episodes']} places, episodes by container: {counts}")
            return
        await asyncio.sleep(0.5)


async def soak(planned: Planned, there: Fleet, config_catalog: Catalog, envs: list[str], given: argparse.Namespace) -> Tally:
    tally, dice = Tally(given.minutes), random.Random(given.seed)
    known = await scripts(there, config_catalog, envs, 10)
    end = time.monotonic() + given.minutes * 60
    async with asyncio.TaskGroup() as group:
        for number in range(given.clients):
            group.create_task(client(there, known, end, tally, random.Random(given.seed + number)))
        group.create_task(killer(planned, given.every, end, tally, dice))
        group.create_task(watcher(planned, end, tally))
    await settled(planned, there, tally)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("envs", nargs="*", metavar="ENV")
    for name, default in (("minutes", 20.0), ("every", 30.0)):
        parser.add_argument(f"--{name}", type=float, default=default)
    for name, count in (("scenarios", 4), ("replicas", 2), ("clients", 48), ("capacity", 16), ("seed", 7)):
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with workspace(given.envs, given.scenarios) as (config, envs):
        with fleet(config, envs, given.replicas, given.capacity) as (planned, _, there):
            tally = asyncio.run(soak(planned, there, Catalog(config.workspace), envs, given))
        tally.left += left_over(planned)
    if given.json:
        print(json.dumps(asdict(tally) | {"grown": tally.grown}, indent=2))
    else:
        show(tally)
    return 0 if tally.good else 1


def show(tally: Tally) -> None:
    first, last = (tally.service[0], tally.service[-1]) if tally.service else ({}, {})
    rows = [
        ("minutes", f"{tally.minutes:g}"),
        ("episodes played to the end / calls / forks", f"{tally.episodes} / {tally.calls} / {tally.forks}"),
        ("leases whose holder walked off", f"{tally.walked_off}"),
        ("killed", ", ".join(f"{count} x {what}" for what, count in tally.kills.items()) or "nothing"),
        ("episodes lost, by fault", ", ".join(f"{count} x {what}" for what, count in sorted(tally.faults.items())) or "none"),
        ("episodes that ran into a time limit", f"{tally.too_slow}"),
        ("episodes with anything of another's", f"{len(tally.wrong)}"),
        ("memory of the fleet, MiB", f"{min(tally.mib):.0f} to {max(tally.mib):.0f}, x {tally.grown:.2f} (at most {GROWTH})"),
        ("lease service: store, bytes", f"{first.get('store_bytes')} -> {last.get('store_bytes')}"),
        ("lease service: descriptors", f"{first.get('descriptors')} -> {last.get('descriptors')}"),
        ("left over", "; ".join(tally.left) or "nothing"),
    ]
    for name, value in rows:
        print(f"{name:44} {value}")
    for line in tally.wrong[:5]:
        print(line)


if __name__ == "__main__":
    sys.exit(main())
