"""A thousand episodes of the tests' library for minutes: random calls, resets, forks, verifies, disconnects and hostile handlers.

    python benchmarks/soak_runtime.py [--minutes 10] [--episodes 1024] [--json]

Prints memory, descriptors, threads and processes as it goes, with --json a line of JSON each; exit status 1 where any grows
after the first quarter, a verdict is wrong, or an episode shows rows that it should not have.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "benchmarks")]

from runtime_bench import Raw, family, memory, message  # noqa: E402

from runtime_support import serve, write_environment  # noqa: E402

_CLIENTS: Final = 16
_HOSTILE: Final = ("loop", "swallow", "query", "exit", "crash")
_GROWTH: Final = 1.15


@dataclass
class Expected:
    """What an episode must hold."""

    path: str
    id: str
    titles: list[str] = field(default_factory=lambda: ["Moss atlas"])


@dataclass
class Tally:
    calls: int = 0
    hostile: int = 0
    late: int = 0
    wrong: list[str] = field(default_factory=list)


async def client(port: int, share: list[Expected], end: float, tally: Tally, dice: random.Random) -> None:
    raw = await Raw.open(port)
    while time.monotonic() < end and not tally.wrong:
        episode = dice.choice(share)
        roll = dice.random()
        if roll < 0.02:
            raw.writer.close()
            raw = await Raw.open(port)
        elif roll < 0.03:
            # A client that goes away in the middle of its call: the call may or may not count, so the episode starts anew.
            other = await Raw.open(port)
            other.writer.write(f"POST {episode.path} HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n".encode())
            other.writer.close()
        elif roll < 0.08:
            await raw.ask("POST", f"/episodes/{episode.id}/reset", b'{"task_id": 0}')
            episode.titles = ["Moss atlas"]
        elif roll < 0.10:
            twin = json.loads((await raw.ask("POST", f"/episodes/{episode.id}/fork", b"{}"))[1])
            if await titles(raw, twin["mcp_path"], tally) not in (None, episode.titles):
                tally.wrong.append(f"fork of {episode.id}")
            await raw.ask("DELETE", f"/episodes/{twin['episode_id']}")
        elif roll < 0.13:
            verdict = json.loads((await raw.ask("POST", f"/episodes/{episode.id}/verify", b"{}"))[1])
            if verdict["reward"] != float(episode.titles.count("Kite book") == 1):
                tally.wrong.append(f"verdict of {episode.id}: {verdict}")
        elif roll < 0.132:
            await call(raw, episode.path, "misbehave", how=dice.choice(_HOSTILE))
            tally.hostile += 1
        elif roll < 0.2:
            await call(raw, episode.path, dice.choice(["flush_then_fail", "commit_then_refuse"]))
        elif roll < 0.5 and len(episode.titles) < 60:
            title = dice.choice(["Kite book", "Tide tables", "Knots"])
            answer = await call(raw, episode.path, "lend", member_id=1, title=title)
            if answer.get("title") == title:
                episode.titles.append(title)
            elif answer["error"]["kind"] == "timeout":
                tally.late += 1  # the machine was too busy for AWM_CALL_TIMEOUT; then nothing of the call may be there
            else:
                tally.wrong.append(f"lend in {episode.id}: {answer}")
        elif (found := await titles(raw, episode.path, tally)) not in (None, episode.titles):
            tally.wrong.append(f"rows of {episode.id}: {found} and not {episode.titles}")
        tally.calls += 1


async def call(raw: Raw, path: str, tool: str, **arguments: Any) -> Any:
    answer = json.loads(
        (await raw.ask("POST", path, json.dumps(message("tools/call", name=tool, arguments=arguments)).encode()))[1]
    )
    return json.loads(answer["result"]["content"][0]["text"])


async def titles(raw: Raw, path: str, tally: Tally) -> list[str] | None:
    """None where the call came too late."""
    answer = await call(raw, path, "list_loans")
    if isinstance(answer, list):
        return [loan["title"] for loan in answer]
    assert answer["error"]["kind"] == "timeout", answer
    tally.late += 1
    return None


def measured(process: int) -> dict[str, float]:
    found = {"MiB": round(memory(process)), "descriptors": 0, "threads": 0, "processes": 0}
    for folder in family(process):
        try:
            found["descriptors"] += len(list((folder / "fd").iterdir()))
            found["threads"] += len(list((folder / "task").iterdir()))
        except OSError:
            continue
        found["processes"] += 1
    return found


async def soak(port: int, process: int, minutes: float, episodes: int, *, as_json: bool) -> int:
    setup = await Raw.open(port)
    made = [json.loads((await setup.ask("POST", "/episodes", b'{"task_id": 0}'))[1]) for _ in range(episodes)]
    expected = [Expected(one["mcp_path"], one["episode_id"]) for one in made]
    tally, started = Tally(), time.monotonic()
    end = started + minutes * 60
    shares = [expected[number::_CLIENTS] for number in range(_CLIENTS)]
    tasks = [asyncio.create_task(client(port, share, end, tally, random.Random(number))) for number, share in enumerate(shares)]
    history = []
    while any(not task.done() for task in tasks):
        await asyncio.wait(tasks, timeout=minutes * 60 / 20)
        history.append(measured(process))
        seconds = round(time.monotonic() - started)
        if as_json:
            counts = {"calls": tally.calls, "hostile": tally.hostile, "late": tally.late}
            print(json.dumps({"seconds": seconds, **counts, **history[-1]}), flush=True)
        else:
            done = f"{tally.calls:7} calls, {tally.hostile} hostile, {tally.late} late"
            print(f"{seconds:6} s {done}  {history[-1]}", flush=True)
    await asyncio.gather(*tasks)
    early, late = history[len(history) // 4 : len(history) // 2] or history[:1], history[-len(history) // 4 :] or history[-1:]
    grown = [key for key in early[0] if max(h[key] for h in late) > _GROWTH * max(h[key] for h in early) + 4]
    for line in [*tally.wrong, *(f"{key} grew" for key in grown)]:
        print(json.dumps({"wrong": line}) if as_json else f"WRONG: {line}")
    return 1 if tally.wrong or grown else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--episodes", type=int, default=1024)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = {"AWM_CALL_TIMEOUT": "1", "AWM_MAX_EPISODES": str(given.episodes + 64), "AWM_MAX_CALLS": "10000000"}
        with serve(write_environment(Path(folder) / "env"), **settings) as served:
            sys.exit(asyncio.run(soak(served.port, served.process.pid, given.minutes, given.episodes, as_json=given.json)))


if __name__ == "__main__":
    main()
