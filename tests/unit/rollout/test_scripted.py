"""Scripted agents as policies, and as the model behind the stub server."""

import pytest

from awm_factory.bundle import Solution
from awm_factory.errors import UsageError
from awm_factory.llm.protocol import Message, ModelRequest, Purpose, ToolSpec
from awm_factory.rollout import Chosen, Settings, play
from awm_factory.rollout.scripted import AgentModel, ScriptedPolicy
from awm_runtime.contract import ToolCall
from bee_yard import certified
from rollout_support import TOOLS, Kiosk

pytestmark = pytest.mark.anyio

TASK = Chosen("bee_yard", 3, 0)


async def test_the_solution_is_replayed_whatever_the_window_hides() -> None:
    calls = [ToolCall(tool="sell", arguments={"copies": 1}) for _ in range(3)]
    bundle = certified(
        tasks=[certified().tasks[0].model_copy(update={"instruction": "Sell 3 copies."})], solutions={0: Solution(calls=calls)}
    )
    found = await play(Kiosk(), ScriptedPolicy("solution", {"bee_yard": bundle}), TASK, Settings(window=1))
    assert ([call.tool for call in found.calls], found.reward) == (["sell"] * 3, 1.0)


async def test_an_agent_reads_what_its_calls_answered() -> None:
    found = await play(Kiosk(), ScriptedPolicy("random", {}, seed=1), TASK, Settings(turns=4))
    assert found.turns == 4 or found.ended == "answer"
    assert found.format_errors == []


def test_no_agent_of_another_name_is_guessed() -> None:
    with pytest.raises(UsageError, match="no scripted agent"):
        ScriptedPolicy("clever", {})
    with pytest.raises(UsageError, match="no scripted agent"):
        AgentModel("solution")


async def test_as_a_model_it_goes_on_where_the_messages_stand() -> None:
    tools = tuple(ToolSpec(name=tool.name, description=tool.description, parameters=tool.input_schema) for tool in TOOLS)
    said = [Message(role="system", content="…"), Message(role="user", content="Sell 3 copies.")]
    model = AgentModel("random", seed=1)
    for number in range(2):
        request = ModelRequest(messages=tuple(said), max_tokens=100, tools=tools, purpose=Purpose(stage="rollout"))
        reply = await model.complete(request)
        assert [use.id for use in reply.tool_calls] == [f"call_{number}"]
        assert reply.tool_calls[0].name in {"sell", "count"}
        answer = Message(role="tool", content='{"copies": 7}', tool_call_id=reply.tool_calls[0].id)
        said += [Message(role="assistant", tool_calls=reply.tool_calls), answer]
