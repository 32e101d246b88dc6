"""What a run is said to cost beforehand, held to the prompts and to written answers as they are."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from statistics import mean

from awm_factory.llm.estimate import PLAN
from awm_factory.llm.protocol import ModelRequest, Purpose
from awm_factory.sandbox import ProcessSandbox
from awm_factory.synthesis.artifacts import Scenario
from awm_factory.synthesis.draft import STAGES, Draft
from awm_factory.synthesis.scripted import ScriptedModel
from awm_factory.synthesis.settings import Settings
from awm_factory.synthesis.stages import open_stages
from awm_factory.synthesis.workbench import Workbench
from synthesis_support import DATA

ANSWERS = DATA.parent / "answers"
CHARACTERS = 3.5
"""Per token, as the budget reckons."""
LATE = 9
"""An attempt that has no faults planted."""


def calls(folder: str) -> Iterator[tuple[str, float, float]]:
    """Stage, and tokens of prompt and answer, of each call when all goes well."""
    draft = Draft(scenario=Scenario.model_validate_json((ANSWERS / folder / "scenario.json").read_text()))
    bench = Workbench(ProcessSandbox(1), Settings())
    for name in STAGES[1:]:
        for stage in open_stages(name, draft, bench):
            messages = stage.prompt(draft)
            purpose = Purpose(env_id=draft.env_id, stage=name, item=stage.item, attempt=LATE)
            reply = asyncio.run(ScriptedModel(ANSWERS).complete(ModelRequest(messages=messages, max_tokens=1, purpose=purpose)))
            yield name, sum(len(message.content) for message in messages) / CHARACTERS, len(reply.raw) / CHARACTERS
            draft = stage.apply(stage.parse(reply.raw), draft)


def test_the_plan_is_within_a_factor_of_two_of_what_stages_take() -> None:
    taken: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    folders = [path.parent.name for path in ANSWERS.glob("*/solutions.json")]
    for folder in folders:
        for name, prompt, completion in calls(folder):
            taken[name].append((prompt, completion))
    plans = {plan.stage: plan for plan in PLAN}
    assert list(taken) == list(STAGES[1:])
    for name, pairs in taken.items():
        assert plans[name].calls * len(folders) == len(pairs), name
        for planned, measured in zip(
            (plans[name].prompt, plans[name].completion), map(mean, zip(*pairs, strict=True)), strict=True
        ):
            assert 0.5 < planned / measured < 2.0, (name, planned, measured)
