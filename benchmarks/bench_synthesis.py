"""Figures of the synthesis: scheduling, CPU and memory of the host's side, and which injected faults end in a good artifact.

    python benchmarks/bench_synthesis.py [scheduling] [barriers] [cpu] [memory] [repair] [--json]

All answers are scripted (tests/data), so the figures are about this code and not about a model. Checks are executed once each in
the child-process sandbox and then answered from memory: what is measured is what stands outside the sandbox. `scheduling` and
`barriers` take five minutes each, most of it waiting for a stub server in a process of its own.
"""

import argparse
import asyncio
import json
import pickle
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import httpx
import openai
from synthesis_bench import AT_ONCE, ROOT, Clones, Remembering, Timed, bound, drafts, run, settings
from synthesis_faults import FAULTS

from awm_factory.cli.output import table
from awm_factory.errors import BudgetSpent
from awm_factory.llm.openai_model import OpenAIModel
from awm_factory.llm.patience import AdaptiveLimit, Patience
from awm_factory.llm.protocol import ModelReply, ModelRequest
from awm_factory.llm.stub_faults import Latency
from awm_factory.llm.stub_server import Stub, running_stub
from awm_factory.sandbox import ProcessSandbox
from awm_factory.synthesis.draft import STAGES
from synthesis_support import ANSWERS, Quiet

SMALL = ANSWERS / "tool_shelf"
LARGE = ROOT / "tests" / "data" / "answers" / "makers_tool_library"


@dataclass(frozen=True)
class Figures:
    title: str
    rows: dict[str, dict[str, float]]
    """What was measured, by name and unit."""

    def show(self) -> None:
        print(f"\n{self.title}\n")
        units = list(dict.fromkeys(unit for found in self.rows.values() for unit in found))
        table(
            ["", *units],
            [[name, *(f"{found[unit]:g}" if unit in found else "" for unit in units)] for name, found in self.rows.items()],
        )


# --- scheduling -----------------------------------------------------------------------------------------------------


@contextmanager
def stub() -> Iterator[str]:
    """Its latencies follow from seed and content, so every new one makes the same run wait as long."""
    with subprocess.Popen(
        [sys.executable, __file__, "--stub"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.communicate("")


def serve() -> None:
    with running_stub(Stub(Clones(LARGE), latency=Latency(median=6.0))) as url:
        print(url, flush=True)
        sys.stdin.read()


async def timed(title: str, sandbox: Remembering, steps: Sequence[Sequence[str]]) -> Figures:
    """A hundred scenarios of ten tasks through the plans of `steps`, one after the other, over HTTP."""
    chosen, count = settings(LARGE), 100
    await run(Clones(LARGE), sandbox, chosen, drafts(LARGE, 1))
    with stub() as url:
        client = openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0, timeout=600)
        model, taken = Timed(OpenAIModel(client, "stub", Patience(AdaptiveLimit(AT_ONCE)))), drafts(LARGE, count)
        started, used_before = time.monotonic(), used()
        for plan in steps:
            report, made = await run(model, sandbox, chosen, taken, plan, metered=True)
            lost = [row for row in report.rows if row.outcome not in {"made", "marked"}]
            assert not lost, lost[0]
            place = {one.row.env_id: one.draft for one in made}
            taken = [place[draft.env_id] for draft in taken]
        seconds, cpu_seconds = time.monotonic() - started, used() - used_before
        log = httpx.get(url.removesuffix("/v1") + "/log").json()
        await client.close()
    assert len(log) == len(model.spans)
    least = bound(log)
    return Figures(
        f"{title}: {count} scenarios of {LARGE.name}, {len(log)} calls, lognormal latencies, {AT_ONCE} at once",
        {
            "wall time": {"s": round(seconds, 1)},
            "lower bound": {"s": round(least, 1), "wall time in bounds": round(seconds / least, 2)},
            "slots in use until the last start": {"%": round(model.in_use() * 100, 1)},
            "CPU on this side": {"s": round(cpu_seconds)},
        },
    )


async def scheduling(sandbox: Remembering) -> Figures:
    return await timed("Without barriers", sandbox, [STAGES])


async def barriers(sandbox: Remembering) -> Figures:
    return await timed("Stage by stage, as AWM does", sandbox, [[stage] for stage in STAGES[1:]])


# --- CPU and memory -------------------------------------------------------------------------------------------------


def used() -> float:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


async def cpu(sandbox: Remembering) -> Figures:
    count, rows = 10, {}
    for folder in (SMALL, LARGE):
        await run(Clones(folder), sandbox, settings(folder), drafts(folder, 1))
        before = used()
        report, _ = await run(Clones(folder), sandbox, settings(folder), drafts(folder, count))
        seconds = (used() - before) / count
        assert all(row.outcome in {"made", "marked"} for row in report.rows), report.rows[0]
        lines = len((folder / "code.py").read_text().splitlines())
        rows[folder.name] = {"s an environment": round(seconds, 2), "lines of code": lines}
    return Figures("CPU outside the sandbox", rows)


async def memory(sandbox: Remembering) -> Figures:
    """In a process of its own: peaks are never given back."""
    done = subprocess.run([sys.executable, __file__, "hold", "--json"], capture_output=True, text=True, check=True)
    return Figures(**json.loads(done.stdout)["hold"])


async def hold(sandbox: Remembering) -> Figures:
    """A thousand drafts, finished but for their solutions, and as many prompts as may be on their way."""
    count = 1000
    chosen = settings(LARGE)
    plan = [stage for stage in STAGES if stage != "solutions"]
    _, made = await run(Clones(LARGE), sandbox, chosen, drafts(LARGE, 1), plan)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    packed = pickle.dumps(made[0].draft)

    class Waiting(Quiet):
        """Lets nobody go on until all have begun, and then nobody at all."""

        name = "waiting"

        def __init__(self) -> None:
            super().__init__()
            self.prompts = 0

        async def complete(self, request: ModelRequest) -> ModelReply:
            self.prompts += 1
            while len(self.stages) < count:
                await asyncio.sleep(0.1)
            raise BudgetSpent("enough")

    waiting = Waiting()
    taken = (pickle.loads(packed).with_(scenario=draft.scenario) for draft in drafts(LARGE, count))
    report, _ = await run(waiting, sandbox, chosen, taken, ["solutions"], waiting)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    assert [row.outcome for row in report.rows] == ["stopped"] * count
    return Figures(
        f"Memory: {count} scenarios of {LARGE.name} in flight, at most {AT_ONCE} prompts among them",
        {"before": {"MiB": round(before)}, "peak": {"MiB": round(peak)}},
    )


# --- repair ---------------------------------------------------------------------------------------------------------


async def repair(sandbox: Remembering) -> Figures:
    rows: dict[str, dict[str, float]] = {}
    for name, faults in FAULTS.items():
        good = answers = 0
        for stage, item, spoiled in faults:
            hit = False

            def edit(request: ModelRequest, text: str, stage: str = stage, item: str = item, spoiled: Any = spoiled) -> str:
                nonlocal hit
                asked = request.purpose
                if (asked.stage, asked.item, asked.attempt) == (stage, item, 1):
                    hit = True
                    return str(spoiled(text))
                # A solver that is rejected blames the verifier, as the transcript proves.
                if asked.stage == "solutions" and asked.attempt > 1 and stage == "verifiers" and asked.item == item:
                    return json.dumps(
                        json.loads(text.strip("`json\n")) | {"blame": {"part": "verifier", "why": "It rejects this."}}
                    )
                return text

            report, _ = await run(Clones(SMALL, edit=edit), sandbox, settings(SMALL), drafts(SMALL, 1))
            row = report.rows[0]
            assert hit, (name, stage)
            good += row.outcome == "made" and row.tasks_shipped == row.tasks_total
            figures = row.stages.get(stage)
            answers += figures.answers - figures.questions + 1 if figures else 0
        rows[name] = {"faults": len(faults), "mended": good, "answers": round(answers / len(faults), 2)}
    return Figures("Repair: injected faults by class, those that end in a good environment, mean answers of the stage", rows)


PARTS = {part.__name__: part for part in (scheduling, barriers, cpu, memory, repair)}


async def measured(chosen: Sequence[str], *, as_json: bool) -> None:
    found = {}
    with ProcessSandbox(2) as process:
        sandbox = Remembering(process)
        for name in chosen:
            found[name] = figures = await (PARTS | {"hold": hold})[name](sandbox)
            if not as_json:
                figures.show()
    if as_json:
        print(json.dumps({name: asdict(figures) for name, figures in found.items()}, indent=2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=list(PARTS), metavar="PART")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--stub", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if unknown := set(options.parts) - {*PARTS, "hold"}:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if options.stub:
        serve()
    else:
        asyncio.run(measured(options.parts, as_json=options.json))


if __name__ == "__main__":
    main()
