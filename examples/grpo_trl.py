"""GRPO with TRL 1.16 on environments of a fleet, as AWM trains: an episode is a sample, each of its turns a row.

    awm-factory fleet up --envs playhouse_box_office --replicas 1 --capacity 128
    pip install torch==2.13.0 trl==1.16.0 transformers==5.24.0 'awm-factory[factory]'
    python examples/grpo_trl.py --fleet http://127.0.0.1:PORT --token-file compose/NAME.token --env playhouse_box_office \
        --model Qwen/Qwen3-4B

Episodes are played by our rollout loop, so that a policy is trained on the very prompts it met: system message, tools, task and
the last three turns. TRL takes one row a prompt; `EpisodeTrainer` gives it one a turn, and every turn the advantage of its
episode among the episodes of the same task. docs/training.md says more.
"""

import argparse
import asyncio
import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import torch
from accelerate.utils import gather_object
from batched import BatchedPolicy, Generated, Row
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from awm_factory.client import Fleet
from awm_factory.errors import AwmError
from awm_factory.rollout import Chosen, Rollout, Settings, play
from awm_factory.rollout.places import Containers, Leases, Places, Room
from awm_factory.rollout.play import unplayed
from awm_factory.rollout.policy import Policy

AWM: Final[dict[str, Any]] = {
    "loss_type": "dapo",
    "beta": 0.0,
    "temperature": 1.0,
    "max_completion_length": 2048,
    "num_generations": 16,
    "max_steps": 96,
    "per_device_train_batch_size": 1,
    "steps_per_generation": 1024,
    "gradient_accumulation_steps": 1024,
    "bf16": True,
    "gradient_checkpointing": True,
    "use_vllm": True,
    "vllm_mode": "colocate",
}
"""AWM's scale, for those who have the GPUs: GRPO of Qwen3 4B, 8B or 14B on 526 environments, 96 steps of 1,024 episodes each,
temperature 1.0 and 2,048 tokens a reply. The number of episodes a task, learning rate and loss are TRL's or ours."""


class RowPolicy(Policy, Protocol):
    """`BatchedPolicy` and `EndpointPolicy`."""

    def begin(self) -> None: ...

    def end(self, chosen: Chosen) -> list[Row]: ...


@dataclass(frozen=True)
class Episode:
    rollout: Rollout
    rows: list[Row]

    @property
    def reward(self) -> float | None:
        """None for an episode that nobody may learn from, by the fault of environment or infrastructure."""
        return self.rollout.reward


class Stage:
    """Plays episodes for a trainer. Environments are opened once; `close` gives them back."""

    def __init__(self, places: Places, settings: Settings) -> None:
        self._places, self._settings = places, settings
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self._rooms: dict[str, Room] = {}

    def play(self, chosen: Sequence[Chosen], policy: RowPolicy) -> list[Episode]:
        """In the order of `chosen`. One that fails is an episode without a reward."""
        return self._runner.run(self._play(chosen, policy))

    def close(self) -> None:
        self._runner.run(self._stack.aclose())
        self._runner.close()

    async def _play(self, chosen: Sequence[Chosen], policy: RowPolicy) -> list[Episode]:
        for env_id in {one.env_id for one in chosen} - set(self._rooms):
            self._rooms[env_id] = await self._stack.enter_async_context(self._places.open(env_id))
        for _ in chosen:
            policy.begin()
        return await asyncio.gather(*(self._one(one, policy) for one in chosen))

    async def _one(self, chosen: Chosen, policy: RowPolicy) -> Episode:
        try:
            async with self._rooms[chosen.env_id].seat(chosen) as env:
                rollout = await play(env, policy, chosen, self._settings)
        except AwmError as error:
            rollout = unplayed(chosen, policy, self._settings, error)
        finally:
            rows = policy.end(chosen)
        return Episode(rollout, rows)


def advantages(rewards: Sequence[float | None], group: int, *, scaled: bool) -> list[float]:
    """Of episodes, each group of neighbours being tries of one task. One without a reward has none, and is in no mean."""
    found: list[float] = []
    for start in range(0, len(rewards), group):
        own = rewards[start : start + group]
        known = [reward for reward in own if reward is not None]
        mean = statistics.fmean(known) if known else 0.0
        spread = statistics.stdev(known) + 1e-4 if scaled and len(known) > 1 else 1.0
        found += [0.0 if reward is None else (reward - mean) / spread for reward in own]
    return found


class EpisodeTrainer(GRPOTrainer):  # type: ignore[misc]
    """Rows of the dataset name `env_id` and `task_id`."""

    def __init__(
        self, *args: Any, stage: Stage, policy: RowPolicy | None = None, template: dict[str, Any] | None = None, **rest: Any
    ):
        """Without a policy, the model that is trained plays, batched in this process by TRL's own generation (vLLM included)."""
        super().__init__(*args, reward_funcs=episode_reward, rollout_func=_rows_of_the_batch, **rest)
        if policy is None and self.accelerator.num_processes > 1:
            raise ValueError("the policy in this process runs in one process; with several, pass an EndpointPolicy")
        self.stage = stage
        self.policy = policy or BatchedPolicy(self._completions, self.processing_class, template=template)
        self.rows: list[Row] = []
        self.episodes: list[Episode] = []
        """Of the last batch."""

    def _completions(self, prompts: list[list[int]]) -> list[Generated]:
        ids, logprobs = self._generate_single_turn(prompts, None, {}, 1)
        return [Generated(*one) for one in zip(ids, logprobs or [None] * len(ids), strict=True)]

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        mode = "train" if self.model.training else "eval"
        group = self.num_generations if mode == "train" else self.num_generations_eval
        self.episodes = self.stage.play(_chosen(inputs), self.policy)
        rewards = gather_object([episode.reward for episode in self.episodes])
        gained = advantages(rewards, group, scaled=self.scale_rewards != "none")
        first = self.accelerator.process_index * len(inputs)
        own = gained[first : first + len(inputs)]

        # An episode without a reward teaches nothing, so its turns are left out.
        turns = [
            (place, row) for place, episode in enumerate(self.episodes) if episode.reward is not None for row in episode.rows
        ]
        multiple = math.lcm(group, self.args.steps_per_generation if mode == "train" else 1)
        wanted = math.ceil(max(1, *gather_object([len(turns)])) / multiple) * multiple
        blank = Row([self._tokenizer.pad_token_id], [self._tokenizer.eos_token_id], [0.0])
        fill = wanted - len(turns)
        self.rows = [row for _, row in turns] + [blank] * fill
        self.real = len(turns)
        expanded = [{**inputs[place], "reward_of_its_episode": self.episodes[place].reward} for place, _ in turns] + [
            {**inputs[0], "reward_of_its_episode": None}
        ] * fill

        output: dict[str, Any] = super()._generate_and_score_completions(expanded)
        output["advantages"] = torch.tensor([own[place] for place, _ in turns] + [0.0] * fill, device=self.accelerator.device)
        self._say(mode, rewards, group, [own[place] for place, _ in turns] + [0.0] * fill)
        return output

    def _say(self, mode: str, rewards: Sequence[float | None], group: int, shown: list[float]) -> None:
        """TRL's figures are of rows; those of episodes take their place."""
        known = [reward for reward in rewards if reward is not None]
        groups = [{r for r in rewards[start : start + group] if r is not None} for start in range(0, len(rewards), group)]
        rollouts = [episode.rollout for episode in self.episodes]
        figures = {
            "reward": statistics.fmean(known) if known else math.nan,
            "reward_std": statistics.stdev(known) if len(known) > 1 else math.nan,
            "frac_reward_zero_std": statistics.fmean(len(own) < 2 for own in groups),
        }
        for name, value in figures.items():
            self._metrics[mode][name][-1] = value
        self._metrics[mode]["episodes/masked"].append(statistics.fmean(reward is None for reward in rewards))
        self._metrics[mode]["episodes/format_errors"].append(statistics.fmean(bool(one.format_errors) for one in rollouts))
        self._metrics[mode]["episodes/turns"].append(statistics.fmean(one.turns for one in rollouts))
        log = self._logs["advantages"]
        for _ in range(min(len(shown), len(log))):
            log.pop()
        log.extend(shown)


def _rows_of_the_batch(prompts: list[Any], trainer: EpisodeTrainer) -> dict[str, Any]:
    """TRL's `rollout_func`: the turns are played already, by the time it asks."""
    logprobs = [row.logprobs for row in trainer.rows]
    return {
        "prompt_ids": [row.prompt_ids for row in trainer.rows],
        "completion_ids": [row.completion_ids for row in trainer.rows],
        "logprobs": logprobs if all(one is not None for one in logprobs[: trainer.real]) and trainer.real else None,
        # What fills a batch up counts for nothing, not even in the number of tokens that the loss is divided by.
        "env_mask": [[int(place < trainer.real)] * len(row.completion_ids) for place, row in enumerate(trainer.rows)],
    }


def episode_reward(reward_of_its_episode: list[float | None], **_: Any) -> list[float | None]:
    """Of each row; TRL's own baseline of them is not used."""
    return reward_of_its_episode


def _chosen(inputs: Sequence[dict[str, Any]]) -> list[Chosen]:
    """Tries of one task are numbered as they come."""
    seen: dict[tuple[str, int], int] = defaultdict(int)
    found = []
    for row in inputs:
        key = row["env_id"], row["task_id"]
        found.append(Chosen(*key, sample=seen[key]))
        seen[key] += 1
    return found


def tasks(chosen: Sequence[tuple[str, int]], config: GRPOConfig) -> Dataset:
    """A row a task, repeated where they are fewer than a batch wants: of a batch that is not full TRL would train nothing."""
    wanted = math.ceil(config.generation_batch_size / config.num_generations)
    times = math.ceil(wanted / len(chosen))
    rows = [
        {"prompt": [{"role": "user", "content": f"{env_id}/{task_id}"}], "env_id": env_id, "task_id": task_id}
        for env_id, task_id in chosen
    ]
    return Dataset.from_list(rows * times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--env", action="append", required=True, help="may be given more than once")
    parser.add_argument("--tasks", type=int, default=10, help="tasks of each environment: 0 to this number less 1")
    parser.add_argument("--fleet", help="address of a lease service; without it each environment is a container of awm/<env>")
    parser.add_argument("--token-file", type=Path)
    parser.add_argument("--form", choices=["native", "text"], default="text", help="text is AWM's")
    parser.add_argument("--output", default="grpo")
    parser.add_argument("--awm", action="store_true", help="AWM's scale")
    given, rest = parser.parse_known_args()

    from transformers import HfArgumentParser

    own = ["--output_dir", given.output, *rest]
    [config] = HfArgumentParser(GRPOConfig).parse_args_into_dataclasses(own)
    if given.awm:
        config = GRPOConfig(**{"output_dir": given.output, **AWM})
    token = given.token_file.read_text().strip() if given.token_file else None
    places: Places = Leases(Fleet.connect(given.fleet, token), wait=600) if given.fleet else Containers(60.0, ttl=6 * 3600.0)
    stage = Stage(places, Settings(form=given.form, temperature=config.temperature, max_tokens=config.max_completion_length))
    try:
        chosen = [(env_id, task_id) for env_id in given.env for task_id in range(given.tasks)]
        trainer = EpisodeTrainer(given.model, args=config, train_dataset=tasks(chosen, config), stage=stage)
        trainer.train()
        trainer.save_model()
    finally:
        stage.close()


if __name__ == "__main__":
    main()
