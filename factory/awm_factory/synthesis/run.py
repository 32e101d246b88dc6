"""One run of the synthesis, put together: which scenarios, which stages, what with; and the name by which it goes on."""

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from awm_factory.errors import UsageError
from awm_factory.llm.protocol import Embedder, Model
from awm_factory.sandbox import Sandbox
from awm_factory.store import Store
from awm_factory.synthesis.artifacts import Scenario
from awm_factory.synthesis.draft import STAGES, Draft
from awm_factory.synthesis.notebook import Notebook
from awm_factory.synthesis.pipeline import Made, Pipeline, Progress
from awm_factory.synthesis.report import Row, SynthesisReport
from awm_factory.synthesis.scenarios import Audit, SelfInstruct, Thresholds, categories
from awm_factory.synthesis.settings import Settings
from awm_factory.synthesis.workbench import Workbench
from awm_runtime.contract import WORLD_TIME


@dataclass(frozen=True)
class Order:
    """What is to be made."""

    plan: tuple[str, ...] = STAGES
    count: int = 0
    """New scenarios to write; 0 where `drafts` are given."""
    seeds: Sequence[Scenario] = ()
    drafts: Sequence[Draft] = ()
    world_time: str = WORLD_TIME

    def run_id(self, model: str, settings: Settings) -> str:
        """The same order has the same name, so the same command goes on with it; more scenarios of it are the same run."""
        content = {
            "plan": self.plan,
            "seeds": [seed.model_dump() for seed in self.seeds],
            "drafts": [draft.bundle().digest() for draft in self.drafts],
            "world_time": self.world_time,
            "model": model,
            "settings": settings.model_dump(exclude={"requests", "in_flight"}),
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


@dataclass
class Means:
    """What it is made with."""

    model: Model
    embedder: Embedder
    thresholds: Thresholds
    sandbox: Sandbox
    lanes: int
    store: Store
    run_id: str
    settings: Settings
    progress: Progress
    keep: Callable[[Made], None]
    is_kept: Callable[[Row], bool]
    """Whether the bundle that a row of this run tells of is still where `keep` put it: then nothing of it is done again."""
    say: Callable[[str], None] = lambda _: None
    audits: list[Audit] = field(default_factory=list)


def stages_between(first: str | None, last: str | None, only: Sequence[str] = ()) -> tuple[str, ...]:
    """Stages by name, in their order. Raises UsageError for a name that is none, or an end before its start."""
    unknown = [name for name in (first, last, *only) if name is not None and name not in STAGES]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is no stage; the stages are {', '.join(STAGES)}")
    start = STAGES.index(first) if first else 0
    end = STAGES.index(last) if last else len(STAGES) - 1
    if end < start:
        raise UsageError(f"the stage {last} comes before {first}; turn them round")
    return tuple(name for name in STAGES[start : end + 1] if not only or name in only)


def described(drafts: Sequence[Draft]) -> Sequence[Draft]:
    """The same drafts. Raises UsageError where a scenario is a name alone: each stage would make up one of its own."""
    bare = [draft.scenario.name for draft in drafts if not draft.scenario.description.strip() and not draft.tasks]
    if bare:
        more = f" and {len(bare) - 3} more" if len(bare) > 3 else ""
        raise UsageError(
            f"no description, and no tasks to go by: {', '.join(map(repr, bare[:3]))}{more}; "
            "say in `description` what each is for, or leave it out"
        )
    return drafts


async def synthesize(order: Order, means: Means) -> SynthesisReport:
    """Raises ModelError where no new scenarios can be had; what goes wrong with one scenario is its row."""
    workbench = Workbench(means.sandbox, means.settings)
    notebook = Notebook(means.store, means.run_id)
    pipeline = Pipeline(means.model, workbench, means.settings, notebook, means.progress, means.lanes, means.is_kept)
    return await pipeline.run(_drafts(order, means), order.plan, means.keep)


async def _drafts(order: Order, means: Means) -> AsyncIterator[Draft]:
    for draft in order.drafts:
        yield draft
    if order.count:
        source = SelfInstruct(
            model=means.model,
            embedder=means.embedder,
            categories=categories(),
            seeds=order.seeds,
            thresholds=means.thresholds,
            settings=means.settings.scenarios,
            seed=means.settings.seed,
            temperature=means.settings.temperature,
            say=means.say,
            audited=means.audits.append,
        )
        async for scenario in source.scenarios(order.count):
            yield Draft(scenario=scenario, world_time=order.world_time)
