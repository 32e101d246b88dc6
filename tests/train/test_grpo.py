"""The recipe trains for real: a tiny model, two environments, our rollout loop, TRL's trainer."""

import asyncio
import copy
import json
import math
import os
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import worlds
from batched import BatchedPolicy, EndpointPolicy, Generated, Row, rendered
from datasets import Dataset
from grpo_trl import Episode, EpisodeTrainer, Stage, advantages, tasks
from tiny import AgentPolicy, model, tokenizer, warmed
from transformers import PreTrainedTokenizerFast, Qwen3ForCausalLM
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer

from awm_factory.client.sync import AwmEnv
from awm_factory.client.trl import environment
from awm_factory.llm.protocol import Message, ToolSpec
from awm_factory.rollout import Chosen, Rollout, Settings, Turn, context
from awm_factory.rollout.agents import SolutionAgent
from awm_factory.rollout.places import Room, Running
from runtime_support import serve

pytestmark = pytest.mark.anyio
os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
torch.set_num_threads(1)

SETTINGS = Settings(form="native", turns=5, window=1, max_tokens=48)
"""A window of one turn already leaves out something of these short episodes."""
STEPS = 3


class Served:
    """Each environment at its own address."""

    def __init__(self, urls: dict[str, str]) -> None:
        self.urls = urls

    def open(self, env_id: str) -> AbstractAsyncContextManager[Room]:
        return Running(self.urls[env_id], None, 60.0).open(env_id)


@dataclass(frozen=True)
class School:
    """What all tests share: environments that run, and a model that has imitated agents for a while."""

    urls: dict[str, str]
    stage: Stage
    words: PreTrainedTokenizerFast
    pupil: Qwen3ForCausalLM


@pytest.fixture(scope="module")
def school(tmp_path_factory: pytest.TempPathFactory) -> Iterator[School]:
    with ExitStack() as stack:
        urls = {}
        for env_id in worlds.WORLDS:
            served = stack.enter_context(serve(worlds.write(env_id, tmp_path_factory.mktemp(env_id) / "env")))
            urls[env_id] = f"http://127.0.0.1:{served.port}"
        stage = Stage(Served(urls), SETTINGS)
        stack.callback(stage.close)
        chosen = [Chosen(*task, sample=0) for task in worlds.tasks()]
        texts: list[str] = []
        words = tokenizer(["placeholder"])
        lessons: list[Row] = []
        for _ in range(2):  # once to learn the words, once with them
            lessons = []
            for right in (True, True, False):
                policy = EndpointPolicy(AgentPolicy(SolutionAgent(worlds.solutions(right=right))), words)
                for episode in stage.play(chosen, policy):
                    assert episode.reward == float(right)
                    lessons += episode.rows
            texts = [words.decode(row.prompt_ids + row.completion_ids, skip_special_tokens=False) for row in lessons]
            words = tokenizer(texts) if len(words) < 500 else words
        pupil = model(words)
        assert warmed(pupil, lessons, 120) < 0.3
        yield School(urls, stage, words, pupil)


def config(folder: Path, **changes: Any) -> GRPOConfig:
    numbers: dict[str, Any] = {
        "num_generations": 4,
        "per_device_train_batch_size": 4,
        "steps_per_generation": 4,
        "gradient_accumulation_steps": 4,
        "max_steps": STEPS,
        "learning_rate": 1e-4,
        "max_completion_length": SETTINGS.max_tokens,
        "logging_steps": 1,
        "report_to": [],
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "save_strategy": "no",
        "disable_tqdm": True,
    }
    return GRPOConfig(output_dir=str(folder), **numbers | changes)


@pytest.fixture(scope="module")
def trained(school: School, tmp_path_factory: pytest.TempPathFactory) -> EpisodeTrainer:
    numbers = config(tmp_path_factory.mktemp("grpo"))
    trainer = EpisodeTrainer(
        copy.deepcopy(school.pupil),
        args=numbers,
        train_dataset=tasks(worlds.tasks(), numbers),
        processing_class=school.words,
        stage=school.stage,
    )
    trainer.train()
    return trainer


def test_a_few_steps_over_two_environments_move_the_weights(trained: EpisodeTrainer, school: School) -> None:
    logged = [entry for entry in trained.state.log_history if "loss" in entry]
    assert trained.state.global_step == len(logged) == STEPS
    assert all(math.isfinite(float(entry[name])) for entry in logged for name in ("loss", "reward", "reward_std"))
    assert any(float(entry["grad_norm"]) > 0 for entry in logged)
    assert any(float(entry["reward_std"]) > 0 for entry in logged)
    assert {episode.rollout.env_id for episode in trained.episodes} == set(worlds.WORLDS)
    moved = zip(trained.model.parameters(), school.pupil.parameters(), strict=True)
    assert any(not torch.equal(after, before) for after, before in moved)


def test_the_trainer_learns_from_the_very_prompts_of_the_rollout(trained: EpisodeTrainer, school: School) -> None:
    """Made again from the trajectory that the rollout kept, by the window that rollouts use, they are the same ids."""
    tools = {env_id: specs(url) for env_id, url in school.urls.items()}
    learnt = [row.prompt_ids for row in trained.rows[: trained.real]]
    shown, left_out = [], 0
    for episode in trained.episodes:
        history = [Message.model_validate(message) for message in episode.rollout.trajectory]
        for place, message in enumerate(history):
            if message.role == "assistant":
                seen = context(history[:place], SETTINGS.window)
                left_out += len(seen) < place
                shown.append(rendered(school.words, seen, tools[episode.rollout.env_id]))
    assert learnt == shown
    assert left_out > 0, "the window never left anything out, so nothing was tested"


def test_what_the_model_said_is_what_the_rollout_read(trained: EpisodeTrainer, school: School) -> None:
    for episode in trained.episodes:
        said = [message for message in episode.rollout.trajectory if message["role"] == "assistant"]
        assert len(said) == len(episode.rows) == episode.rollout.turns
        for message, row in zip(said, episode.rows, strict=True):
            for call in message.get("tool_calls", []):
                assert call["name"] in school.words.decode(row.completion_ids)


class Told:
    """A stage on which everything has happened already."""

    def __init__(self, episodes: list[Episode]) -> None:
        self.episodes = episodes

    def play(self, chosen: Sequence[Chosen], policy: object) -> list[Episode]:
        assert len(chosen) == len(self.episodes)
        return self.episodes


def told(reward: float | None, turns: int) -> Episode:
    rollout = Rollout(
        episode="x", env_id="bee_yard", task_id=0, task="", trajectory=[], final_answer=None, internal_errors=0, run="",
        policy="", sample=0, seed=0, ended="answer", reward=reward, turns=turns,
    )  # fmt: skip
    return Episode(rollout, [Row([5, 6], [7, 8, 9])] * turns)


def test_every_turn_has_the_advantage_of_its_episode_and_a_masked_one_has_no_turns(school: School, tmp_path: Path) -> None:
    """TRL's own baseline would be a mean over rows, in which long episodes weigh more."""
    episodes = [told(1.0, 5), told(0.0, 1), told(-1.0, 1), told(None, 4)]
    numbers = config(tmp_path, steps_per_generation=2, gradient_accumulation_steps=2, per_device_train_batch_size=2)
    trainer = EpisodeTrainer(
        school.pupil,
        args=numbers,
        train_dataset=tasks(worlds.tasks(), numbers),
        processing_class=school.words,
        stage=Told(episodes),
    )
    trainer.model.train()
    rows = [{"prompt": [{"role": "user", "content": ""}], "env_id": "bee_yard", "task_id": 0}] * 4
    batch = trainer._generate_and_score_completions(rows)
    high, middle, low = 1 / (1 + 1e-4), 0.0, -1 / (1 + 1e-4)
    assert batch["advantages"].tolist() == pytest.approx([high] * 5 + [middle, low, 0.0])
    assert batch["tool_mask"].sum(1).tolist()[:7] == [3] * 7
    assert (batch["tool_mask"] * batch["completion_mask"])[7].sum() == 0
    assert batch["num_items_in_batch"] == 7 * 3
    assert trainer._metrics["train"]["reward"][-1] == 0.0
    assert trainer._metrics["train"]["episodes/masked"][-1] == 0.25


def test_advantages_are_of_a_group_and_masked_episodes_are_in_no_mean() -> None:
    assert advantages([1.0, 0.0, None, None, 1.0, 1.0], 2, scaled=False) == [0.5, -0.5, 0.0, 0.0, 0.0, 0.0]
    assert advantages([None, 1.0, 0.0], 3, scaled=False) == [0.0, 0.5, -0.5]
    assert advantages([1.0, 0.0], 2, scaled=True) == pytest.approx([0.7070, -0.7070], abs=1e-4)


def test_fewer_tasks_than_a_batch_wants_are_repeated(tmp_path: Path) -> None:
    """TRL's `train()` would return after no step at all."""
    numbers = config(tmp_path, num_generations=2)
    assert len(tasks(worlds.tasks(), numbers)) == numbers.generation_batch_size // numbers.num_generations == 8


async def test_a_batch_is_generated_once_all_have_asked_and_a_failure_reaches_everybody(school: School) -> None:
    sizes: list[int] = []

    def generate(prompts: list[list[int]]) -> list[Generated]:
        sizes.append(len(prompts))
        if len(sizes) == 2:
            raise RuntimeError("out of memory")
        return [Generated(school.words("Done.<|im_end|>")["input_ids"]) for _ in prompts]

    policy = BatchedPolicy(generate, school.words)
    chosen = [Chosen("bee_yard", 0, sample) for sample in range(3)]
    turns = [
        Turn(
            env_id="bee_yard",
            task_id=0,
            sample=one.sample,
            number=0,
            messages=(Message(role="user"),),
            history=(),
            tools=(),
            native=True,
        )
        for one in chosen
    ]
    for _ in chosen:
        policy.begin()
    replies = await asyncio.gather(*map(policy.act, turns))
    assert (sizes, [reply.raw for reply in replies]) == ([3], ["Done."] * 3)
    assert len(policy.end(chosen[0])) == 1
    failed = await asyncio.gather(*map(policy.act, turns[1:]), return_exceptions=True)
    assert (sizes, [str(error) for error in failed]) == ([3, 2], ["out of memory"] * 2)


def test_the_class_for_environment_factory_trains_and_leaves_no_episode(school: School, tmp_path: Path) -> None:
    numbers = config(tmp_path, max_steps=1, max_completion_length=256, max_tool_calling_iterations=3)
    rows = [
        {"prompt": [{"role": "user", "content": ""}], "environment": env_id, "task_id": number}
        for env_id, number in worlds.tasks()
    ]
    trainer = GRPOTrainer(
        copy.deepcopy(school.pupil),
        args=numbers,
        train_dataset=Dataset.from_list(rows),
        processing_class=copy.deepcopy(school.words),
        environment_factory={env_id: environment(env_id, url=url) for env_id, url in school.urls.items()},
    )
    trainer.train()
    [entry] = [entry for entry in trainer.state.log_history if "loss" in entry]
    assert {f"rewards/{env_id}/mean" for env_id in worlds.WORLDS} <= set(entry)
    for url in school.urls.values():
        with urllib.request.urlopen(f"{url}/episodes") as answer:
            assert json.load(answer) == []


def test_every_tool_becomes_a_schema_that_transformers_reads(school: School) -> None:
    for env_id, url in school.urls.items():
        instance = environment(env_id, url=url)()
        for tool in specs(url):
            made = get_json_schema(getattr(instance, tool.name))["function"]
            assert (made["name"], set(made["parameters"]["properties"])) == (tool.name, set(tool.parameters["properties"]))


def specs(url: str) -> tuple[ToolSpec, ...]:
    with AwmEnv.connect(url) as env:
        env.reset()
        return tuple(ToolSpec(name=t.name, description=t.description, parameters=t.input_schema) for t in env.tools())
