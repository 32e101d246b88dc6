"""What bench_synthesis.py measures with: clones of one recorded environment, and checks that are executed once each."""

import hashlib
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from awm_factory.llm.metered import Ledger, MeteredModel  # noqa: E402
from awm_factory.llm.openai_model import OpenAIModel  # noqa: E402
from awm_factory.llm.prices import Prices  # noqa: E402
from awm_factory.llm.protocol import ModelReply, ModelRequest  # noqa: E402
from awm_factory.sandbox import ProcessSandbox  # noqa: E402
from awm_factory.sandbox.pool import Reply, Request, Sandbox  # noqa: E402
from awm_factory.store import Store  # noqa: E402
from awm_factory.synthesis.artifacts import Scenario  # noqa: E402
from awm_factory.synthesis.draft import PER_TASK, STAGES, Draft  # noqa: E402
from awm_factory.synthesis.notebook import Notebook  # noqa: E402
from awm_factory.synthesis.pipeline import Made, Pipeline  # noqa: E402
from awm_factory.synthesis.report import SynthesisReport  # noqa: E402
from awm_factory.synthesis.scripted import ScriptedModel  # noqa: E402
from awm_factory.synthesis.settings import Settings  # noqa: E402
from awm_factory.synthesis.workbench import Workbench  # noqa: E402
from synthesis_support import Quiet  # noqa: E402

AT_ONCE = 64


class Remembering(Sandbox):
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

    def close(self) -> None:
        """Whoever opened the inner one closes it."""


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
