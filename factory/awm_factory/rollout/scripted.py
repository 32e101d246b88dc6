"""Scripted agents in the place of a language model: as policies of a rollout, and behind the stub server."""

import asyncio
import json
from collections.abc import Mapping

from pydantic import JsonValue

from awm_factory.bundle import Bundle
from awm_factory.llm.protocol import ModelReply, ModelRequest, ToolUse
from awm_factory.rollout.agents import Agent, Say, Scene, SolutionAgent, Step, agent
from awm_factory.rollout.policy import Turn
from awm_factory.rollout.record import PlayedCall
from awm_runtime.contract import ToolCall


class ScriptedPolicy:
    """Calls tools natively, and sees every call of its episode, window or not."""

    def __init__(self, name: str, bundles: Mapping[str, Bundle], seed: int = 0) -> None:
        """`bundles` by env_id, whose solutions the agent `solution` replays. Raises UsageError for a name that is no agent's."""
        self._name = name
        self._by_env: Mapping[str, Agent] = (
            {env_id: SolutionAgent.of(bundle) for env_id, bundle in bundles.items()} if name == "solution" else {}
        )
        self._agent = None if name == "solution" else agent(name, seed)

    @property
    def name(self) -> str:
        return self._name

    async def act(self, turn: Turn) -> ModelReply:
        playing = self._agent or self._by_env[turn.env_id]
        scene = Scene(turn.history[1].content, turn.tools, tuple(map(_step, turn.calls)))
        return await _move(playing, scene, turn.number)

    async def close(self) -> None:
        """There is nothing to give back."""


def _step(call: PlayedCall) -> Step:
    return Step(ToolCall(tool=call.tool, arguments=call.arguments), _content(call.text), call.kind != "ok")


def _content(text: str) -> JsonValue:
    try:
        return json.loads(text)  # type: ignore[no-any-return]
    except ValueError:
        return text


class AgentModel:
    """A scripted agent as a model, for the stub server: it plays from the messages alone, so it wants a window of all turns."""

    def __init__(self, name: str, seed: int = 0) -> None:
        """Raises UsageError for a name that is no agent's, or `solution`, whose solutions no request holds."""
        self._agent = agent(name, seed)

    @property
    def name(self) -> str:
        return self._agent.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        answers = {message.tool_call_id: message.content for message in request.messages if message.role == "tool"}
        steps = [
            _step_of(use, answers[use.id]) for message in request.messages for use in message.tool_calls if use.id in answers
        ]
        task = next((message.content for message in request.messages if message.role == "user"), "")
        return await _move(self._agent, Scene(task, request.tools, tuple(steps)), len(steps))


def _step_of(use: ToolUse, text: str) -> Step:
    content = _content(text)
    failed = isinstance(content, dict) and isinstance(content.get("error"), dict)
    return Step(ToolCall(tool=use.name, arguments=json.loads(use.arguments)), content, failed)


async def _move(playing: Agent, scene: Scene, number: int) -> ModelReply:
    """The agent's next move as a model says it. It searches in a thread, so that other episodes go on meanwhile."""
    move = await asyncio.to_thread(playing.move, scene)
    if isinstance(move, Say):
        return ModelReply(model=playing.name, raw=move.answer)
    use = ToolUse(id=f"call_{number}", name=move.tool, arguments=json.dumps(move.arguments))
    return ModelReply(model=playing.name, tool_calls=(use,))
