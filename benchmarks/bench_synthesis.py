"""Figures of the synthesis: scheduling, CPU and memory of the host's side, and which injected faults end in a good artifact.

    python benchmarks/bench_synthesis.py [scheduling] [barriers] [cpu] [memory] [repair]

All answers are scripted (tests/data), so the figures are about this code and not about a model. Checks are executed once each in
the child-process sandbox and then answered from memory: what is measured is what stands outside the sandbox. `scheduling` and
`barriers` take five minutes each, most of it waiting for a stub server in a process of its own.
"""

import asyncio
import hashlib
import json
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import openai

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from synthesis_faults import FAULTS  # noqa: E402

from awm_factory.errors import BudgetSpent  # noqa: E402
from awm_factory.llm.metered import Ledger, MeteredModel  # noqa: E402
from awm_factory.llm.openai_model import OpenAIModel  # noqa: E402
from awm_factory.llm.patience import AdaptiveLimit, Patience  # noqa: E402
from awm_factory.llm.prices import Prices  # noqa: E402
from awm_factory.llm.protocol import ModelReply, ModelRequest  # noqa: E402
from awm_factory.llm.stub_faults import Latency  # noqa: E402
from awm_factory.llm.stub_server import Stub, running_stub  # noqa: E402
from awm_factory.sandbox import ProcessSandbox  # noqa: E402
from awm_factory.sandbox.pool import Reply, Request  # noqa: E402
from awm_factory.store import Store  # noqa: E402
from awm_factory.synthesis.artifacts import Scenario  # noqa: E402
from awm_factory.synthesis.draft import PER_TASK, STAGES, Draft  # noqa: E402
from awm_factory.synthesis.notebook import Notebook  # noqa: E402
from awm_factory.synthesis.pipeline import Made, Pipeline  # noqa: E402
from awm_factory.synthesis.report import SynthesisReport  # noqa: E402
from awm_factory.synthesis.scripted import ScriptedModel  # noqa: E402
from awm_factory.synthesis.settings import Settings  # noqa: E402
from awm_factory.synthesis.workbench import Workbench  # noqa: E402
from synthesis_support import ANSWERS, Quiet  # noqa: E402

SMALL = ANSWERS / "tool_shelf"
LARGE = ROOT / "tests" / "data" / "answers" / "makers_tool_library"
AT_ONCE = 64


class Remembering:
    """A sandbox that executes each check once, whichever environment asks."""

    def __init__(self, inner: ProcessSandbox) -> None:
        self._inner = inner
        self._known: dict[str, Reply] = {}
        self.base = inner.base

    def check(self, request: Request, time_limit: float = 60.0) -> Reply:
        content = request.model_dump(mode="json")
        if isinstance(content.get("source"), dict):
            content["source"]["env_id"] = ""
        key = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        if key not in self._known:
            self._known[key] = self._inner.check(request, time_limit)
        return self._known[key]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass


class Clones:
    """Answers every scenario as the one of `folder`."""

    name = "clones"

    def __init__(self, folder: Path, edit: Callable[[ModelRequest, str], str] | None = None) -> None:
        self._inner = ScriptedModel(folder.parent)
        self._env_id = folder.name
        self._edit = edit

    async def complete(self, request: ModelRequest) -> ModelReply:
        asked = request.purpose
        own = asked.model_copy(update={"env_id": self._env_id})
        reply = await self._inner.complete(request.model_copy(update={"purpose": own}))
        return reply.model_copy(update={"raw": self._edit(request, reply.raw)}) if self._edit else reply


def drafts(folder: Path, count: int) -> list[Draft]:
    scenario = Scenario.model_validate(json.loads((folder / "scenario.json").read_text()))
    return [Draft(scenario=scenario.model_copy(update={"name": f"{scenario.name} {n}"})) for n in range(count)]


def settings(folder: Path, **more: Any) -> Settings:
    tasks = json.loads((folder / "tasks.json").read_text())
    count = len(tasks["tasks"] if isinstance(tasks, dict) else tasks)
    return Settings(**({"tasks": count, "solvable_runs": 1, "in_flight": 5000} | more))


async def run(
    model: Any,
    sandbox: Any,
    chosen: Settings,
    taken: Iterable[Draft],
    plan: Sequence[str] = STAGES,
    watch: Any = None,
    *,
    metered: bool = False,
) -> tuple[SynthesisReport, list[Made]]:
    made: list[Made] = []

    async def each() -> AsyncIterator[Draft]:
        for draft in taken:
            yield draft

    with tempfile.TemporaryDirectory() as folder, Store.open(str(Path(folder) / "runs.db")) as store:
        store.start_run("bench", "clones", {})
        model = MeteredModel(model, Ledger(store.calls("bench"), Prices({}))) if metered else model
        pipeline = Pipeline(model, Workbench(sandbox, chosen), chosen, Notebook(store, "bench"), watch or Quiet(), 2)
        return await pipeline.run(each(), plan, made.append), made


def show(title: str, rows: Sequence[Sequence[object]]) -> None:
    print(f"\n{title}")
    for row in rows:
        print("  " + "  ".join(f"{cell:<34}" if n == 0 else f"{cell!s:>12}" for n, cell in enumerate(row)))


# --- scheduling -----------------------------------------------------------------------------------------------------


class Timed:
    """When each request was under way."""

    def __init__(self, inner: OpenAIModel) -> None:
        self._inner = inner
        self.name = inner.name
        self.spans: list[tuple[float, float]] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        started = time.monotonic()
        try:
            return await self._inner.complete(request)
        finally:
            self.spans.append((started, time.monotonic()))

    def in_use(self) -> float:
        """Share of the slots that were taken, from the first request to the start of the last one."""
        first, last = min(span[0] for span in self.spans), max(span[0] for span in self.spans)
        return sum(min(end, last) - start for start, end in self.spans) / (AT_ONCE * (last - first))


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


def bound(log: list[dict[str, Any]]) -> float:
    """No schedule is shorter: the longest chain of one scenario, or all waiting spread over all slots."""
    waited: dict[str, dict[tuple[str, str], float]] = {}
    for entry in log:
        asked = entry["purpose"]
        waited.setdefault(asked["env_id"], {})[asked["stage"], asked["item"]] = entry["seconds"]

    def chain(calls: dict[tuple[str, str], float]) -> float:
        whole = sum(seconds for (_, item), seconds in calls.items() if not item)
        by_task = [max(s for (stage, item), s in calls.items() if item and stage == name) for name in PER_TASK]
        return whole + sum(by_task)

    total = sum(seconds for calls in waited.values() for seconds in calls.values())
    return max(max(map(chain, waited.values())), total / AT_ONCE)


async def timed(title: str, sandbox: Remembering, steps: Sequence[Sequence[str]]) -> None:
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
    show(
        f"{title}: {count} scenarios of {LARGE.name}, {len(log)} calls, lognormal latencies, {AT_ONCE} at once",
        [
            ["wall time", f"{seconds:.1f} s"],
            ["lower bound", f"{least:.1f} s", f"x {seconds / least:.2f}"],
            ["slots in use until the last start", f"{model.in_use():.1%}"],
            ["CPU on this side", f"{cpu_seconds:.0f} s"],
        ],
    )


async def scheduling(sandbox: Remembering) -> None:
    await timed("Without barriers", sandbox, [STAGES])


async def barriers(sandbox: Remembering) -> None:
    await timed("Stage by stage, as AWM does", sandbox, [[stage] for stage in STAGES[1:]])


# --- CPU and memory -------------------------------------------------------------------------------------------------


def used() -> float:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


async def cpu(sandbox: Remembering) -> None:
    count = 10
    for folder in (SMALL, LARGE):
        await run(Clones(folder), sandbox, settings(folder), drafts(folder, 1))
        before = used()
        report, _ = await run(Clones(folder), sandbox, settings(folder), drafts(folder, count))
        seconds = (used() - before) / count
        assert all(row.outcome in {"made", "marked"} for row in report.rows), report.rows[0]
        lines = len((folder / "code.py").read_text().splitlines())
        show(f"CPU outside the sandbox: {folder.name}, {lines} lines of code", [["an environment", f"{seconds:.2f} s"]])


async def memory(sandbox: Remembering) -> None:
    """In a process of its own: peaks are never given back."""
    done = subprocess.run([sys.executable, __file__, "--memory"], capture_output=True, text=True, check=True)
    print(done.stdout.rstrip())


async def hold(sandbox: Remembering) -> None:
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
    show(
        f"Memory: {count} scenarios of {LARGE.name} in flight, at most {AT_ONCE} prompts among them",
        [["before", f"{before:.0f} MiB"], ["peak", f"{peak:.0f} MiB"]],
    )


# --- repair ---------------------------------------------------------------------------------------------------------


async def repair(sandbox: Remembering) -> None:
    rows: list[list[object]] = []
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
        rows.append([name, len(faults), f"{good} of {len(faults)}", f"{answers / len(faults):.2f}"])
    show("Repair: injected faults by class, those that end in a good environment, mean answers of the stage", rows)


async def main(chosen: Sequence[str]) -> None:
    with ProcessSandbox(2) as process:
        sandbox = Remembering(process)
        if chosen == ["--memory"]:
            await hold(sandbox)
            return
        for part_ in (scheduling, barriers, cpu, memory, repair):
            if not chosen or part_.__name__ in chosen:
                await part_(sandbox)


if __name__ == "__main__":
    if sys.argv[1:] == ["--stub"]:
        serve()
    else:
        asyncio.run(main(sys.argv[1:]))
