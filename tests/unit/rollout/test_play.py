"""The agent loop, turn by turn."""

import pytest

from awm_factory.client import CallResult
from awm_factory.errors import EpisodeLost, MalformedCall, ProviderError
from awm_factory.llm.protocol import ModelReply
from awm_factory.rollout import Chosen, Settings, play
from rollout_support import Kiosk, Says, call, says, seller

pytestmark = pytest.mark.anyio

TASK = Chosen("kiosk", 3, 0)


async def test_calls_are_carried_out_and_the_text_without_a_call_is_the_answer() -> None:
    kiosk = Kiosk()
    found = await play(kiosk, seller(), TASK, Settings())
    assert kiosk.calls == [("sell", {"copies": 3})]
    assert (found.final_answer, found.reward, found.ended, found.turns) == ("Sold.", 1.0, "answer", 2)
    assert [message["role"] for message in found.trajectory] == ["system", "user", "assistant", "tool", "assistant"]
    assert (found.tokens.prompt, found.tokens.completion) == (20, 4)


async def test_several_calls_of_one_reply_are_carried_out_in_their_order() -> None:
    both = ModelReply(model="fake", tool_calls=call("sell", '{"copies": 3}').tool_calls + call("count", "", "c2").tool_calls)
    found = await play(Kiosk(), Says(both, says("Sold.")), TASK, Settings())
    assert [played.text for played in found.calls] == ['{"copies": 7}', '{"copies": 7}']
    assert [message.get("tool_call_id") for message in found.trajectory[3:5]] == ["c1", "c2"]


@pytest.mark.parametrize(
    "reply",
    [
        call("steal"),
        call("sell", "{copies: 3}"),
        call("sell", "[3]"),
        call("sell", '{"copies": NaN}'),
        says('<tool_call>{"name": "sell"}</tool_call>'),
        says('Let me see. <tool_call>{"name"'),
    ],
)
async def test_a_format_error_ends_the_episode_with_minus_one_and_touches_nothing(reply: ModelReply) -> None:
    kiosk = Kiosk()
    found = await play(kiosk, Says(reply), TASK, Settings())
    assert (found.reward, found.ended, found.final_answer) == (-1.0, "format_error", None)
    assert kiosk.calls == []
    assert found.verdict is None


async def test_what_the_container_holds_for_a_format_error_is_one() -> None:
    kiosk = Kiosk()
    kiosk.fails["sell"] = MalformedCall("the arguments are no JSON")
    found = await play(kiosk, Says(call("sell")), TASK, Settings())
    assert (found.reward, found.ended) == (-1.0, "format_error")


async def test_without_the_penalty_the_policy_is_told_and_goes_on() -> None:
    policy = Says(call("steal"), call("sell", '{"copies": 3}'), says("Sold."))
    found = await play(Kiosk(), policy, TASK, Settings(stop_on_format_error=False))
    assert (found.reward, found.ended) == (1.0, "answer")
    assert found.format_errors == ["there is no tool 'steal'"]
    assert "no tool 'steal'" in policy.turns[1].history[-1].content


async def test_a_reply_cut_at_the_limit_is_no_answer() -> None:
    found = await play(Kiosk(), Says(says("I have sold", outcome="truncated")), TASK, Settings())
    assert (found.ended, found.final_answer, found.reward) == ("tokens", None, 0.0)


async def test_thinking_is_no_part_of_the_answer_but_stays_in_the_history() -> None:
    policy = Says(call("sell", '{"copies": 3}'), says("<think>Is <tool_call> needed? No.</think>\n\nSold."))
    found = await play(Kiosk(), policy, TASK, Settings())
    assert (found.final_answer, found.reward) == ("Sold.", 1.0)
    assert "<think>" in found.trajectory[-1]["content"]


async def test_turns_run_out_and_what_was_done_counts() -> None:
    policy = Says(by=lambda turn: call("sell", '{"copies": 1}'))
    found = await play(Kiosk(), policy, TASK, Settings(turns=3))
    assert (found.ended, found.turns, found.reward) == ("turns", 3, 0.0)


async def test_the_policy_sees_the_window_and_a_scripted_one_the_whole_history() -> None:
    policy = Says(by=lambda turn: call("count"))
    await play(Kiosk(), policy, TASK, Settings(turns=6, window=2))
    last = policy.turns[-1]
    assert [message.role for message in last.messages] == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert len(last.history) == 2 + 2 * 5


async def test_a_lost_container_is_nobodys_zero() -> None:
    kiosk = Kiosk()
    kiosk.fails["sell"] = EpisodeLost("the container died", "container_died")
    found = await play(kiosk, seller(), TASK, Settings())
    assert (found.reward, found.ended) == (None, "fault")
    assert found.failure is not None
    assert (found.failure.fault, found.failure.code) == ("infrastructure", "container_died")
    assert found.to_repeat


async def test_a_model_that_gives_no_answer_leaves_the_trajectory_so_far() -> None:
    policy = Says(call("sell", '{"copies": 3}'), ProviderError("the endpoint answered 500", 500))
    found = await play(Kiosk(), policy, TASK, Settings())
    assert (found.reward, found.to_repeat, len(found.calls)) == (None, True, 1)


async def test_a_policy_that_crashes_is_a_row() -> None:
    found = await play(Kiosk(), Says(ZeroDivisionError("oh")), TASK, Settings())
    assert found.failure is not None
    assert (found.failure.code, found.reward) == ("policy_crashed", None)


async def test_a_broken_verifier_gives_no_reward_and_is_the_environments_fault() -> None:
    kiosk = Kiosk()
    kiosk.fails["submit"] = CallResult("KeyError: 'copies'")
    found = await play(kiosk, seller(), TASK, Settings())
    assert found.failure is not None
    assert (found.reward, found.failure.fault, found.to_repeat) == (None, "environment", False)
    assert found.environment_failed


async def test_a_call_that_the_environment_fails_is_read_by_the_policy_and_counted() -> None:
    kiosk = Kiosk()
    kiosk.fails["sell"] = CallResult('{"error": "internal"}', is_error=True, kind="internal")
    found = await play(kiosk, seller(), TASK, Settings())
    assert found.trajectory[3]["content"] == '{"error": "internal"}'
    assert (found.final_answer, found.internal_errors, found.environment_failed) == ("Sold.", 1, True)


@pytest.mark.parametrize("tool", ["sell", "count"])
async def test_a_rollout_is_masked_by_the_verdicts_own_rule(tool: str) -> None:
    """A call that the environment fails costs the reward where the task was not completed, and nothing where it was."""
    kiosk = Kiosk()
    kiosk.fails[tool] = CallResult('{"error": "internal"}', is_error=True, kind="internal")
    found = await play(kiosk, Says(call("count"), call("sell", '{"copies": 3}'), says("Sold.")), TASK, Settings())
    assert found.verdict is not None
    assert (found.reward is None) == found.verdict.masked == (tool == "sell")
    if tool == "sell":
        assert found.failure is not None
        assert (found.failure.fault, found.failure.code, found.to_repeat) == ("environment", "calls", False)
    else:
        assert (found.reward, found.failure) == (1.0, None)


async def test_a_format_error_is_the_policys_whatever_the_environment_did_before() -> None:
    kiosk = Kiosk()
    kiosk.fails["sell"] = CallResult('{"error": "internal"}', is_error=True, kind="internal")
    found = await play(kiosk, Says(call("sell"), call("steal")), TASK, Settings())
    assert (found.reward, found.ended, found.failure) == (-1.0, "format_error", None)


async def test_samples_have_seeds_of_their_own() -> None:
    kiosk = Kiosk()
    found = await play(kiosk, seller(), Chosen("kiosk", 3, 2), Settings(seed=7))
    assert kiosk.seed == found.seed == 9


async def test_in_the_text_form_the_listing_stays_in_the_window() -> None:
    listing = '<tool_call>\n{"name": "list_tools", "arguments": {}}\n</tool_call>'
    one = '<tool_call>\n{"name": "call_tool", "arguments": {"tool_name": "count", "arguments": "{}"}}\n</tool_call>'
    policy = Says(says(listing), *[says(one)] * 5, says("Done."))
    found = await play(Kiosk(), policy, TASK, Settings(form="text", window=1))
    assert [played.tool for played in found.calls] == ["count"] * 5
    last = policy.turns[-1]
    assert not last.native
    assert [message.role for message in last.messages] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert "Sell copies." in last.messages[3].content
    assert last.messages[4].content == one


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ('{"name": "sell", "arguments": {"copies": 3}}', "there is no function"),
        ('{"name": "call_tool", "arguments": {"tool_name": "steal", "arguments": {}}}', "there is no tool"),
        ('{"name": "call_tool", "arguments": {"arguments": {}}}', "call_tool wants tool_name"),
        ('{"name": "call_tool", "arguments": {"tool_name": "sell", "arguments": "3"}}', "not a JSON object"),
        ('{"name": "call_tool", "arguments"', "no JSON object"),
    ],
)
async def test_every_way_to_misspell_a_call_in_text_is_a_format_error(body: str, why: str) -> None:
    found = await play(Kiosk(), Says(says(f"<tool_call>{body}</tool_call>")), TASK, Settings(form="text"))
    assert (found.reward, found.final_answer) == (-1.0, None)
    assert why in found.format_errors[0]
