"""Many episodes: side by side, resumed, and summed up."""

import asyncio
from pathlib import Path

import pytest

from awm_factory.errors import FormatError, ProviderError, UsageError
from awm_factory.llm.protocol import Message, ModelReply
from awm_factory.reward import read_episodes
from awm_factory.rollout import Chosen, Rollout, Settings, Trajectories, Turn, Width, context, run, summaries
from awm_factory.rollout.summary import pass_at_k
from rollout_support import Says, Street, call, says, seller

pytestmark = pytest.mark.anyio

PLAN = [Chosen(env, task, sample) for env in ("kiosk", "stall") for task in (1, 2) for sample in range(3)]


async def rollouts(
    path: Path, policy: Says, street: Street | None = None, episodes: int = 64, plan: list[Chosen] = PLAN
) -> list[Rollout]:
    settings = Settings()
    with Trajectories(path, settings.digest(policy.name)) as kept:
        return await run(plan, street or Street(), policy, settings, kept, Width(episodes))


async def test_every_episode_of_the_plan_is_a_line_that_judging_reads(tmp_path: Path) -> None:
    found = await rollouts(tmp_path / "out.jsonl", seller())
    assert [one.episode for one in found] == [chosen.name for chosen in PLAN]
    assert sorted(one.episode for one in read_episodes([tmp_path / "out.jsonl"])) == sorted(chosen.name for chosen in PLAN)
    assert all(one.by_code().reward == 1.0 for one in read_episodes([tmp_path / "out.jsonl"]))


async def test_no_more_episodes_than_allowed_are_open_at_once(tmp_path: Path) -> None:
    class Slow(Says):
        async def act(self, turn: Turn) -> ModelReply:
            await asyncio.sleep(0)
            return await super().act(turn)

    street = Street()
    policy = Slow(by=lambda turn: call("count") if turn.number < 3 else says("Done."))
    await rollouts(tmp_path / "out.jsonl", policy, street, 4)
    assert street.most_open == 4


async def test_a_run_that_is_started_again_plays_only_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    await rollouts(path, seller(), plan=PLAN[:5])
    street = Street()
    found = await rollouts(path, seller(), street)
    assert len(street.kiosks) == len(PLAN) - 5
    assert len(found) == len(path.read_text().splitlines()) == len(PLAN)


async def test_a_line_that_a_kill_cut_is_played_again(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    await rollouts(path, seller())
    path.write_bytes(path.read_bytes()[:-40])
    street = Street()
    found = await rollouts(path, seller(), street)
    assert len(street.kiosks) == 1
    assert len(found) == len(list(read_episodes([path]))) == len(PLAN)


async def test_what_the_infrastructure_failed_is_played_again_and_its_first_line_kept_aside(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    failing = Says(ProviderError("the endpoint answered 500", 500), ProviderError("the endpoint answered 500", 500))
    first = await rollouts(path, failing, plan=PLAN[:2])
    assert [one.reward for one in first] == [None, None]
    again = await rollouts(path, seller(), plan=PLAN[:2])
    assert [one.reward for one in again] == [1.0, 1.0]
    assert len(list(read_episodes([path]))) == 2
    assert [one.reward for one in read_episodes([Path(f"{path}.failed")])] == [None, None]


async def test_an_environment_that_can_not_be_had_fails_its_own_episodes_only(tmp_path: Path) -> None:
    found = await rollouts(tmp_path / "out.jsonl", seller(), Street(closed=["stall"]))
    assert [one.reward for one in found] == [1.0] * 6 + [None] * 6
    assert found[-1].failure is not None
    assert "no image awm/stall" in found[-1].failure.message


async def test_rollouts_of_other_settings_are_never_mixed(tmp_path: Path) -> None:
    await rollouts(tmp_path / "out.jsonl", seller(), plan=PLAN[:1])
    with pytest.raises(UsageError, match="other settings"):
        Trajectories(tmp_path / "out.jsonl", Settings(window=5).digest("says"))


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text('{"episode": "by somebody else"}\n')
    with pytest.raises(FormatError, match="line 1"):
        Trajectories(path, "x")
    assert path.read_text() == '{"episode": "by somebody else"}\n'


async def test_a_cancelled_run_keeps_what_was_finished(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    stuck = asyncio.Event()

    class Stuck(Says):
        async def act(self, turn: Turn) -> ModelReply:
            if turn.env_id == "stall":
                stuck.set()
                await asyncio.Event().wait()
            return await super().act(turn)

    task = asyncio.create_task(rollouts(path, Stuck(by=lambda turn: says("Done.")), episodes=100))
    await stuck.wait()
    while not path.exists() or len(path.read_bytes().splitlines()) < 6:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(list(read_episodes([path]))) == 6


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"), [(4, 0, 1, 0.0), (4, 4, 2, 1.0), (4, 1, 1, 0.25), (4, 1, 2, 0.5), (5, 3, 3, 1.0)]
)
def test_pass_at_k_is_the_unbiased_estimate(n: int, c: int, k: int, expected: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(expected)


async def test_the_summary_counts_by_environment_and_leaves_out_what_is_masked(tmp_path: Path) -> None:
    lucky = Says(
        by=lambda turn: call("sell", f'{{"copies": {turn.task_id}}}') if turn.number == 0 and turn.sample == 0 else says("x")
    )
    found = await rollouts(tmp_path / "out.jsonl", lucky, Street(closed=["stall"]))
    kiosk, stall, whole = summaries(found)
    assert (kiosk.episodes, kiosk.masked) == (6, 0)
    assert kiosk.pass_at == {1: pytest.approx(1 / 3), 2: pytest.approx(2 / 3)}
    assert (stall.masked, stall.pass_at, stall.mean_reward) == (6, {}, None)
    assert (whole.env_id, whole.episodes, whole.masked) == ("all", 12, 6)
    assert whole.mean_reward == pytest.approx(1 / 3)


def history(turns: int) -> list[Message]:
    said = [Message(role="system", content="s"), Message(role="user", content="u")]
    for number in range(turns):
        said += [Message(role="assistant", content=f"a{number}"), Message(role="tool", content=f"t{number}", tool_call_id="c")]
    return said


@pytest.mark.parametrize(
    ("turns", "pinned", "expected"),
    [
        (3, 0, "s u a2 t2 a3 t3 a4 t4"),
        (1, 0, "s u a4 t4"),
        (1, 1, "s u a0 t0 a4 t4"),
        (4, 1, "s u a0 t0 a1 t1 a2 t2 a3 t3 a4 t4"),
        (9, 0, "s u a0 t0 a1 t1 a2 t2 a3 t3 a4 t4"),
        (None, 0, "s u a0 t0 a1 t1 a2 t2 a3 t3 a4 t4"),
    ],
)
def test_the_window_keeps_whole_turns(turns: int | None, pinned: int, expected: str) -> None:
    assert " ".join(message.content for message in context(history(5), turns, pinned)) == expected


def test_the_window_keeps_all_answers_of_a_turn_with_several_calls() -> None:
    said = [*history(2), Message(role="assistant", content="a2"), *(Message(role="tool", content=f"t2{n}") for n in "xy")]
    assert [message.content for message in context(said, 1)] == ["s", "u", "a2", "t2x", "t2y"]
