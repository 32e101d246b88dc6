"""Churn on a fleet for minutes, with a container killed every so often: nothing may leak, grow, mix, or be laid to the policy.

    .venv/bin/python benchmarks/soak_fleet.py [ENV]... [--minutes 20] [--every 30] [--scenarios 4] [--clients 48] [--json]

Clients take leases, play scripts, fork, reset, walk off without a word, and compare what they see with what an episode alone came
to. Now and then the container that is killed is the lease service's own. Run it as root on the engine's machine: elsewhere a kill
is less of a crash. Exit status 1 where memory grows after the first quarter, a loss is not the infrastructure's, an episode shows
anything of another's, or anything is left over: a container, a lease, an episode, a file in a container, a process's descriptor.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import docker
from fleet_bench import Expected, Script, crash, fleet, left_over, memory, outcome, play, scripts, workspace

from awm_factory.catalog import Catalog
from awm_factory.client import Fleet
from awm_factory.errors import Fault
from awm_factory.fleet import orchestrators
from awm_factory.fleet.lease.containers import KEEP
from awm_factory.fleet.planning import Planned

GROWTH: Final = 1.15
SHORT_TTL: Final = 5.0
"""Seconds that a lease lives whose holder walks off."""
SERVICE_EVERY: Final = 8
"""Of so many kills, one is the lease service's."""
SETTLE: Final = 120.0
SLACK: Final = 8
"""Files or descriptors more than before that are no leak; one an episode would be thousands."""


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
    loads: list[float] = field(default_factory=list)
    """Of the machine, one minute's."""
    store: list[int] = field(default_factory=list)
    """Bytes of the lease service's."""
    before: dict[str, int] = field(default_factory=dict)
    """Before the first client: files by service and, as `<service> fds`, descriptors of the first process; the most that one of
    its containers has."""
    after: dict[str, int] = field(default_factory=dict)
    """After the last client."""
    left: list[str] = field(default_factory=list)

    @property
    def grown(self) -> float:
        quarter = max(1, len(self.mib) // 4)
        return statistics.median(self.mib[-quarter:]) / statistics.median(self.mib[quarter : 2 * quarter] or self.mib)

    @property
    def good(self) -> bool:
        foreign = [fault for fault in self.faults if not fault.startswith("infrastructure")]
        return not (foreign or self.wrong or self.left or self.leaked or self.grown > GROWTH)

    @property
    def leaked(self) -> list[str]:
        """Files and descriptors that stayed. Kept connections to containers come and go, so a few more are none."""
        return [
            f"{name}: {self.before.get(name, 0)} -> {count}"
            for name, count in self.after.items()
            if count > self.before.get(name, 0) + SLACK
        ]


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
        tally.loads.append(os.getloadavg()[0])
        code = "import os; print(sum(os.stat('/data/' + f).st_size for f in os.listdir('/data')))"
        tally.store += [int(said) for _, said in await asyncio.to_thread(inside, planned, code, "lease") if said]
        await asyncio.sleep(10)


def inside(planned: Planned, code: str, service: str | None = None) -> list[tuple[str, str]]:
    """What a program prints in each container of a service, or in all; with the service's name. Empty where it can't run."""
    found = []
    for part in orchestrators.parts(planned.client, planned.orchestrator.label(planned.files)):
        if part.state == "running" and service in (None, part.service):
            try:
                done = planned.client.containers.get(part.name).exec_run(["python", "-c", code], stream=False)
            except docker.errors.DockerException:
                continue
            output = done.output if isinstance(done.output, bytes) else b""
            found.append((part.service, output.decode().strip() if done.exit_code == 0 else ""))
    return found


def kept(planned: Planned) -> dict[str, int]:
    """Files and descriptors by service."""
    code = (
        "import os; files = sum(len(names) for top in ('/tmp', '/data', '/dev/shm') for _, _, names in os.walk(top));"
        "print(files, len(os.listdir('/proc/1/fd')))"
    )
    found: dict[str, int] = {}
    for service, said in inside(planned, code):
        for name, count in zip((service, f"{service} fds"), said.split(), strict=False):
            found[name] = max(found.get(name, 0), int(count))
    return found


async def settled(planned: Planned, there: Fleet, tally: Tally) -> None:
    """After the last client: leases end, and containers hold no episode."""
    code = "import json, urllib.request as u; print(json.load(u.urlopen('http://127.0.0.1:8000/health', timeout=9))['episodes'])"
    give_up = time.monotonic() + SETTLE
    while True:
        status = await there.status()
        counts = await asyncio.to_thread(inside, planned, code)
        if status["leases"] == status["episodes"] == 0 and all(said == "0" for service, said in counts if service != "lease"):
            return
        if time.monotonic() > give_up:
            tally.left.append(f"{status['leases']} leases, {status['episodes']} places, episodes by container: {counts}")
            return
        await asyncio.sleep(0.5)


async def soak(planned: Planned, there: Fleet, config_catalog: Catalog, envs: list[str], given: argparse.Namespace) -> Tally:
    tally, dice = Tally(given.minutes), random.Random(given.seed)
    known = await scripts(there, config_catalog, envs, 10)
    tally.before = await asyncio.to_thread(kept, planned)
    end = time.monotonic() + given.minutes * 60
    async with asyncio.TaskGroup() as group:
        for number in range(given.clients):
            group.create_task(client(there, known, end, tally, random.Random(given.seed + number)))
        group.create_task(killer(planned, given.every, end, tally, dice))
        group.create_task(watcher(planned, end, tally))
    await settled(planned, there, tally)
    # A connection that is kept for the next request is let go after a few seconds.
    await asyncio.sleep(KEEP + 1)
    tally.after = await asyncio.to_thread(kept, planned)
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
        print(json.dumps(asdict(tally) | {"grown": tally.grown, "leaked": tally.leaked}, indent=2))
    else:
        show(tally)
    return 0 if tally.good else 1


def show(tally: Tally) -> None:
    rows = [
        ("minutes", f"{tally.minutes:g}"),
        ("episodes played to the end / calls / forks", f"{tally.episodes} / {tally.calls} / {tally.forks}"),
        ("leases whose holder walked off", f"{tally.walked_off}"),
        ("killed", ", ".join(f"{count} x {what}" for what, count in tally.kills.items()) or "nothing"),
        ("episodes lost, by fault", ", ".join(f"{count} x {what}" for what, count in sorted(tally.faults.items())) or "none"),
        ("episodes that ran into a time limit", f"{tally.too_slow}"),
        ("episodes with anything of another's", f"{len(tally.wrong)}"),
        ("memory of the fleet, MiB", f"{min(tally.mib):.0f} to {max(tally.mib):.0f}, x {tally.grown:.2f} (at most {GROWTH})"),
        ("lease service's store, bytes", f"{tally.store[0]} -> {tally.store[-1]}, {max(tally.store)} at most"),
        ("files and descriptors that stayed", "; ".join(tally.leaked) or "none"),
        ("left over", "; ".join(tally.left) or "nothing"),
        (
            "load of the machine",
            f"{min(tally.loads):.0f} to {max(tally.loads):.0f}, {statistics.fmean(tally.loads):.0f} in the mean",
        ),
    ]
    for name, value in rows:
        print(f"{name:44} {value}")
    for line in tally.wrong[:5]:
        print(line)


if __name__ == "__main__":
    sys.exit(main())
