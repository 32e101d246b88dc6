"""Many episodes side by side. One that fails is a row; a stop of any kind loses what was under way and nothing else."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from awm_factory.errors import AwmError
from awm_factory.rollout.places import Places, Room
from awm_factory.rollout.play import Chosen, play, unplayed
from awm_factory.rollout.policy import Policy
from awm_factory.rollout.record import Rollout
from awm_factory.rollout.settings import Settings
from awm_factory.rollout.trajectories import Trajectories


@dataclass(frozen=True)
class Width:
    episodes: int = 64
    """At once, over all environments."""
    environments: int = 4
    """Open at once: each may be a container."""


async def run(
    plan: Sequence[Chosen],
    places: Places,
    policy: Policy,
    settings: Settings,
    kept: Trajectories,
    width: Width,
    done: Callable[[Rollout], None] = lambda _: None,
) -> list[Rollout]:
    """Play what `kept` does not hold yet; returns the rollouts of the whole plan, in its order."""
    missing: dict[str, list[Chosen]] = {}
    for chosen in plan:
        if chosen.name not in kept.done:
            missing.setdefault(chosen.env_id, []).append(chosen)
    episodes, environments = asyncio.Semaphore(width.episodes), asyncio.Semaphore(width.environments)

    def keep(rollout: Rollout) -> None:
        kept.add(rollout)
        done(rollout)

    async def one(room: Room, chosen: Chosen) -> None:
        async with episodes:
            try:
                async with room.seat(chosen) as env:
                    rollout = await play(env, policy, chosen, settings)
            except AwmError as error:
                rollout = unplayed(chosen, policy, settings, error)
            await asyncio.to_thread(keep, rollout)

    async def all_of(env_id: str, own: list[Chosen]) -> None:
        async with environments:
            try:
                async with places.open(env_id) as room, asyncio.TaskGroup() as group:
                    for chosen in own:
                        group.create_task(one(room, chosen))
            except AwmError as error:
                for chosen in own:
                    if chosen.name not in kept.done:
                        await asyncio.to_thread(keep, unplayed(chosen, policy, settings, error))

    async with asyncio.TaskGroup() as group:
        for env_id, own in missing.items():
            group.create_task(all_of(env_id, own))
    return [kept.done[chosen.name] for chosen in plan]
