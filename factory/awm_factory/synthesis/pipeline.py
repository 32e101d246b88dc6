"""From scenarios to proved bundles, without barriers: each scenario goes on as soon as its own stage is done.

A later stage may show an earlier one to be at fault (a solver argues that the verifier is wrong, a gate finds a row that no
tool can read). The draft then goes back to that stage with the fault; what stands behind it is checked again and only mended
where it no longer holds. That happens in a bounded number of rounds, and follows from answers and seeds alone.
"""

import asyncio
import traceback
from collections import defaultdict
from collections.abc import AsyncIterable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from awm_factory.bundle import Bundle
from awm_factory.certify import Certified, certify
from awm_factory.errors import AwmError, BudgetSpent, OutOfQuota
from awm_factory.llm.protocol import Model
from awm_factory.problems import Problem
from awm_factory.store import Scenario
from awm_factory.synthesis.draft import PER_TASK, STAGES, Draft
from awm_factory.synthesis.notebook import Notebook
from awm_factory.synthesis.repair import Outcome, Repair
from awm_factory.synthesis.report import Row, StageFigures, SynthesisReport
from awm_factory.synthesis.settings import Settings
from awm_factory.synthesis.slots import Lanes
from awm_factory.synthesis.stage import owner
from awm_factory.synthesis.stages import open_stages
from awm_factory.synthesis.stages.solutions import unshown
from awm_factory.synthesis.workbench import Workbench

Key = tuple[str, str]
"""Stage and item."""


class Progress(Protocol):
    def stage(self, env_id: str, stage: str) -> None: ...

    def done(self, row: Row) -> None: ...


@dataclass(frozen=True)
class Made:
    """One scenario's end: its row, and its bundle where there is one to keep."""

    row: Row
    draft: Draft
    bundle: Bundle | None


class Pipeline:
    def __init__(
        self,
        model: Model,
        workbench: Workbench,
        settings: Settings,
        notebook: Notebook,
        progress: Progress,
        lanes: int = 1,
        is_kept: Callable[[Row], bool] = lambda _: False,
    ) -> None:
        """`lanes`: checks at once, as many as the sandbox of the workbench has. `is_kept`: see `Means`."""
        self._workbench = workbench
        self._settings = settings
        self._progress = progress
        self._lanes = Lanes(lanes)
        self._notebook = notebook
        self._is_kept = is_kept
        self._repair = Repair(model, settings, notebook, self._lanes)

    async def run(self, drafts: AsyncIterable[Draft], plan: Sequence[str], keep: Callable[[Made], None]) -> SynthesisReport:
        """Take every draft through `plan`. `keep` is told what each comes to, in a thread; the report has the drafts' order."""
        room = asyncio.Semaphore(self._settings.in_flight)
        tasks: list[asyncio.Task[Row]] = []
        try:
            async for draft in drafts:
                await room.acquire()
                self._notebook.begin(Scenario(draft.env_id, len(tasks), draft.scenario.model_dump(mode="json"), "running"))
                task = asyncio.create_task(self._one(draft, plan, keep))
                task.add_done_callback(lambda _: room.release())
                tasks.append(task)
            return SynthesisReport([await task for task in tasks])
        except BaseException:
            self._workbench.sandbox.close()  # no thread has to wait for the minutes that a proof takes
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._lanes.close()

    async def _one(self, draft: Draft, plan: Sequence[str], keep: Callable[[Made], None]) -> Row:
        row = Row(draft.env_id, draft.scenario.name)
        try:
            if (before := await self._lanes.run("keep", self._made_before, row.env_id)) is not None:
                self._progress.done(before)
                return before
            made = await _Course(self, row, plan).run(draft)
            await self._lanes.run("keep", keep, made)
        except (BudgetSpent, OutOfQuota) as error:
            row.outcome, row.error = "stopped", str(error)
        except AwmError as error:
            row.outcome, row.error = "failed", str(error)
        except Exception as error:  # noqa: BLE001  (one scenario of a batch)
            place = traceback.extract_tb(error.__traceback__)[-1]
            row.outcome = "failed"
            row.error = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno}); report this with the run"
        self._notebook.end(row)
        self._progress.done(row)
        return row

    def _made_before(self, env_id: str) -> Row | None:
        row = self._notebook.ended(env_id)
        return row if row is not None and row.digest and self._is_kept(row) else None

    # What a course needs of its pipeline.

    async def pass_over(
        self, name: str, draft: Draft, given: dict[Key, list[Problem]], asked: dict[Key, int]
    ) -> list[Outcome[Any]]:
        self._progress.stage(draft.env_id, name)
        stages = open_stages(name, draft, self._workbench)
        passes = [
            asyncio.create_task(self._repair.run(stage, draft, given.pop((name, stage.item), ()), asked[name, stage.item]))
            for stage in stages
        ]
        try:
            return list(await asyncio.gather(*passes))
        finally:
            # One that ends the scenario ends its siblings: they would go on to spend for nothing.
            for task in passes:
                task.cancel()
            await asyncio.gather(*passes, return_exceptions=True)

    async def prove(self, draft: Draft) -> Certified:
        self._progress.stage(draft.env_id, "certify")
        return await self._lanes.run("certify", certify, draft.bundle(), self._workbench.sandbox, self._workbench.options)

    @property
    def settings(self) -> Settings:
        return self._settings


class _Course:
    """One scenario's way through the stages."""

    def __init__(self, pipeline: Pipeline, row: Row, plan: Sequence[str]) -> None:
        self._pipeline = pipeline
        self._row = row
        self._plan = [name for name in STAGES if name in plan and name != "scenario"]
        self._rounds = pipeline.settings.rounds
        self._asked: dict[Key, int] = defaultdict(int)
        self._last: dict[Key, Outcome[Any]] = {}

    async def run(self, draft: Draft) -> Made:
        given: dict[Key, list[Problem]] = {}
        place = 0
        while True:
            while place < len(self._plan):
                name = self._plan[place]
                outcomes = await self._pipeline.pass_over(name, draft, given, self._asked)
                for outcome in outcomes:
                    draft = self._settle(draft, name, outcome)
                if name not in PER_TASK and outcomes[0].artifact is None:
                    return self._end(draft, "refused", outcomes[0].problems)
                back = self._sent_back([problem for outcome in outcomes for problem in outcome.foreign], before=place)
                place = self._go_back(back, given) if back else place + 1
            if not draft.has("code") or "solutions" not in self._plan:
                return self._unproved(draft)
            certified = await self._pipeline.prove(draft)
            found = [problem for problem in certified.certificate.problems if problem.severity == "error"]
            if self._pipeline.settings.prove_once:
                found += unshown(draft, certified.evidence)
            back = self._sent_back(found, before=len(self._plan), proved=True)
            if not back:
                return self._proved(draft, certified, found)
            place = self._go_back(back, given)

    def _settle(self, draft: Draft, name: str, outcome: Outcome[Any]) -> Draft:
        key = (name, outcome.stage.item)
        self._asked[key] += outcome.answers
        self._last[key] = outcome
        return draft if outcome.artifact is None else outcome.stage.apply(outcome.artifact, draft)

    def _sent_back(self, problems: list[Problem], before: int, *, proved: bool = False) -> dict[Key, list[Problem]]:
        """Faults by the stage that can mend them: of this plan, before this place, and not at its wits' end already."""
        if not self._rounds:
            return {}
        back: dict[Key, list[Problem]] = {}
        for problem in problems:
            name = owner(problem)
            key = (name, str(problem.task_id) if name in PER_TASK and problem.task_id is not None else "")
            known = key in self._last and (not proved or self._last[key].passed)
            if name in self._plan[:before] and known:
                back.setdefault(key, []).append(problem)
        return back

    def _go_back(self, back: dict[Key, list[Problem]], given: dict[Key, list[Problem]]) -> int:
        self._rounds -= 1
        for key, problems in back.items():
            given.setdefault(key, []).extend(problems)
        return min(self._plan.index(name) for name, _ in back)

    def _proved(self, draft: Draft, certified: Certified, found: list[Problem]) -> Made:
        certificate = certified.certificate
        row = self._row
        row.tasks_shipped, row.tasks_total = len(certificate.shipped_tasks), len(certificate.tasks)
        left = [problem for outcome in self._last.values() for problem in outcome.errors]
        left += [problem for problem in found if problem not in left]
        if not certificate.passed or row.tasks_shipped < self._pipeline.settings.least_tasks:
            return self._end(draft, "refused", left)
        row.digest, row.solutions_digest = certified.bundle.digest(), certified.bundle.solutions_digest()
        made = self._end(draft, "marked" if left else "made", left)
        return Made(row, made.draft, certified.bundle)

    def _unproved(self, draft: Draft) -> Made:
        """A run of some stages only: there is nothing to prove yet."""
        left = [problem for outcome in self._last.values() for problem in outcome.errors]
        self._row.tasks_total = len(draft.tasks or ())
        return self._end(draft, "marked" if left else "made", left)

    def _end(self, draft: Draft, outcome: Any, problems: list[Problem]) -> Made:
        row = self._row
        row.outcome, row.problems = outcome, problems
        for (name, item), last in self._last.items():
            figures = row.stages.setdefault(name, StageFigures())
            figures.questions += 1
            figures.passed += last.passed
            figures.answers += self._asked[name, item]
        return Made(row, draft, None)
