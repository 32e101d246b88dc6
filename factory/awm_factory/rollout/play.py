"""The agent loop: one policy, one task, one episode, one verdict."""

import time
from dataclasses import dataclass, field
from typing import Any, Protocol

from awm_factory.client import CallResult, Tool, Verdict
from awm_factory.errors import AwmError, Fault, InfrastructureFault, MalformedCall, ModelError, UsageError
from awm_factory.llm.protocol import Message, ModelReply, ToolSpec
from awm_factory.rollout.forms import FORMS, Action, Ending, Form, FormatError, ListTools, listing
from awm_factory.rollout.policy import Policy, Turn
from awm_factory.rollout.record import Ended, Failure, PlayedCall, Rollout, Seconds, Tokens, episode_name
from awm_factory.rollout.settings import FORMAT_PENALTY, Settings
from awm_factory.rollout.window import context
from awm_runtime.contract import StateDiff, VerifierMode


class Environment(Protocol):
    """What the loop needs of `AwmEnv`."""

    async def reset(self, task_id: int | None = None, seed: int | None = None) -> str | None: ...

    async def tools(self) -> list[Tool]: ...

    async def call(self, name: str, arguments: dict[str, Any]) -> CallResult: ...

    async def submit(self, answer: str | None = None, mode: VerifierMode | None = None) -> Verdict: ...

    async def diff(self) -> StateDiff: ...


@dataclass(frozen=True)
class Chosen:
    """Which episode is to be played."""

    env_id: str
    task_id: int | None
    sample: int

    @property
    def name(self) -> str:
        return episode_name(self.env_id, self.task_id, self.sample)


async def play(env: Environment, policy: Policy, chosen: Chosen, settings: Settings) -> Rollout:
    """What goes wrong in the episode, the policy's own code included, is its row, with whose fault it was."""
    episode = _Played(policy, chosen, settings)
    started = time.monotonic()
    failure: Failure | None = None
    try:
        await episode.begin(env)
        while episode.ended is None:
            await episode.turn(env)
        await episode.judge(env)
    except (Fault, ModelError) as error:
        failure = _failure(error)
    return episode.record(failure, time.monotonic() - started)


def unplayed(chosen: Chosen, policy: Policy, settings: Settings, error: AwmError) -> Rollout:
    """The row of an episode that could not even begin."""
    return _Played(policy, chosen, settings).record(_failure(error), 0.0)


def _failure(error: AwmError) -> Failure:
    if isinstance(error, Fault):
        return Failure(fault=error.fault, code=error.code or "fault", message=str(error))
    code = "model" if isinstance(error, ModelError) else "unavailable"
    return Failure(fault="infrastructure", code=code, message=str(error))


@dataclass
class _Played:
    policy: Policy
    chosen: Chosen
    settings: Settings
    history: list[Message] = field(default_factory=list)
    tools: tuple[ToolSpec, ...] = ()
    pinned: int = 0
    turns: int = 0
    ended: Ended | None = None
    answer: str | None = None
    instruction: str = ""
    calls: list[PlayedCall] = field(default_factory=list)
    format_errors: list[str] = field(default_factory=list)
    verdict: Verdict | None = None
    evidence: dict[str, Any] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    policy_seconds: float = 0.0
    tool_seconds: float = 0.0
    verify_seconds: float = 0.0

    @property
    def form(self) -> Form:
        return FORMS[self.settings.form]

    async def begin(self, env: Environment) -> None:
        """Raises Fault."""
        self.instruction = await env.reset(self.chosen.task_id, self.settings.seed + self.chosen.sample) or ""
        self.tools = tuple(
            ToolSpec(name=tool.name, description=tool.description, parameters=tool.input_schema) for tool in await env.tools()
        )
        self.history = [self.form.system(), Message(role="user", content=self.instruction)]

    async def turn(self, env: Environment) -> None:
        """One reply of the policy and what comes of it. Raises Fault, ModelError."""
        reply = await self._asked()
        said = self.form.read(reply, self.tools)
        self.history.append(self.form.said(reply))
        self.turns += 1
        if said.ending is not None:
            self._end(said.ending)
            return
        if self.turns == 1 and any(isinstance(action, ListTools) for action in said.actions):
            self.pinned = 1
        for action in said.actions:
            self.history.append(self.form.answer(action, await self._done(env, action)))
            if self.ended is not None:
                return
        if self.turns >= self.settings.turns:
            self.ended = "turns"

    async def judge(self, env: Environment) -> None:
        """The verdict, and beside it what a judge would want to see. Raises Fault."""
        if self.ended == "format_error":
            return
        started = time.monotonic()
        self.verdict = await env.submit(self.answer)
        self.evidence = {"changes": await env.diff()}
        if self.verdict.mode == "code":
            self.evidence |= await self._sql_evidence(env)
        else:
            self.evidence |= {"evidence": self.verdict.evidence, "evidence_error": self.verdict.error}
        self.verify_seconds = time.monotonic() - started
        self.verdict.raise_for_fault()

    def record(self, failure: Failure | None, seconds: float) -> Rollout:
        reward = FORMAT_PENALTY if self.ended == "format_error" else self.verdict.reward if self.verdict else None
        return Rollout(
            episode=self.chosen.name,
            env_id=self.chosen.env_id,
            task_id=self.chosen.task_id,
            task=self.instruction,
            trajectory=[message.model_dump(mode="json", exclude_defaults=True) for message in self.history],
            final_answer=self.answer,
            verdict=self.verdict,
            internal_errors=self.verdict.internal_errors if self.verdict else 0,
            **self.evidence,
            run=self.settings.digest(self.policy.name),
            policy=self.policy.name,
            sample=self.chosen.sample,
            seed=self.settings.seed + self.chosen.sample,
            ended="fault" if failure else self.ended or "fault",
            reward=None if failure else reward,
            turns=self.turns,
            calls=self.calls,
            format_errors=self.format_errors,
            failure=failure,
            tokens=Tokens(prompt=self.prompt_tokens, completion=self.completion_tokens),
            seconds=Seconds(policy=self.policy_seconds, tools=self.tool_seconds, verify=self.verify_seconds, whole=seconds),
        )

    async def _asked(self) -> ModelReply:
        turn = Turn(
            env_id=self.chosen.env_id,
            task_id=self.chosen.task_id,
            sample=self.chosen.sample,
            number=self.turns,
            messages=context(self.history, self.settings.window, self.pinned),
            history=tuple(self.history),
            tools=self.tools,
            calls=tuple(self.calls),
            native=self.form.native,
            temperature=self.settings.temperature,
            max_tokens=self.settings.max_tokens,
        )
        started = time.monotonic()
        try:
            reply = await self.policy.act(turn)
        except ModelError:
            raise
        except Exception as error:  # Boundary: a policy may be anybody's code, and its siblings must go on.
            raise InfrastructureFault(
                f"the policy {self.policy.name} raised {error!r}; mend it, then run the command again", "policy_crashed"
            ) from error
        finally:
            self.policy_seconds += time.monotonic() - started
        self.prompt_tokens += reply.usage.prompt
        self.completion_tokens += reply.usage.completion
        if reply.outcome in ("filtered", "no_choices") and (unusable := reply.error()) is not None:
            raise unusable
        return reply

    def _end(self, ending: Ending) -> None:
        self.ended, self.answer = ("tokens" if ending.cut else "answer"), ending.text

    async def _done(self, env: Environment, action: Action) -> str:
        """What the policy reads of it."""
        match action:
            case FormatError():
                return self._broken(action.why)
            case ListTools():
                return listing(self.tools)
        started = time.monotonic()
        try:
            result = await env.call(action.tool, action.arguments)
        except MalformedCall as error:
            return self._broken(str(error))
        finally:
            self.tool_seconds += (seconds := time.monotonic() - started)
        self.calls.append(
            PlayedCall(
                turn=self.turns - 1,
                tool=action.tool,
                arguments=action.arguments,
                text=result.text,
                kind=result.kind,
                fault=result.fault,
                seconds=seconds,
            )
        )
        return result.text

    def _broken(self, why: str) -> str:
        self.format_errors.append(why)
        if self.settings.stop_on_format_error:
            self.ended = "format_error"
        return f"Error: {why}"

    async def _sql_evidence(self, env: Environment) -> dict[str, Any]:
        """For a judge that looks at the episode later; a task may have a code verifier alone."""
        try:
            verdict = await env.submit(self.answer, "sql")
        except UsageError:
            return {}
        return {"evidence": verdict.evidence, "evidence_error": verdict.error}
