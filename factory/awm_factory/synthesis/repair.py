"""The only loop of the synthesis: ask, parse, execute, and ask again with what went wrong.

At most N answers a pass; the best attempt is kept, by fewest weighted problems, and its problems are kept with it, so that
nothing passes as good by outliving its attempts. Everything sent follows from what came before, never from time or order.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from awm_factory.errors import AnswerError, BudgetSpent, OutOfQuota
from awm_factory.llm.protocol import Message, Model, ModelReply, ModelRequest, Purpose, conversation
from awm_factory.problems import Problem
from awm_factory.store import Attempt
from awm_factory.synthesis import prompts
from awm_factory.synthesis.draft import STAGES, Draft
from awm_factory.synthesis.notebook import Notebook
from awm_factory.synthesis.settings import Settings
from awm_factory.synthesis.slots import Lanes, Slots
from awm_factory.synthesis.stage import Stage, owner

A = TypeVar("A")
WEIGHTS: Final = {"error": 10, "warning": 1}
MOST_SHOWN: Final = 30
"""Problems told in one prompt."""
MOST_TEXT: Final = 4000
"""Characters of one problem in a prompt."""


@dataclass(frozen=True)
class Outcome(Generic[A]):
    """What one pass over a stage came to."""

    stage: Stage[A]
    artifact: A | None
    """None where no answer could be used at all."""
    problems: list[Problem]
    """Of the artifact kept."""
    answers: int
    """Answers asked for in this pass; 0 where what existed was good."""

    @property
    def own(self) -> list[Problem]:
        """Errors that this stage itself has to mend."""
        return [problem for problem in self.problems if problem.severity == "error" and owner(problem) == self.stage.name]

    @property
    def foreign(self) -> list[Problem]:
        """Errors that an earlier stage has to mend."""
        return [problem for problem in self.problems if problem.severity == "error" and owner(problem) != self.stage.name]

    @property
    def errors(self) -> list[Problem]:
        return [*self.own, *self.foreign]

    @property
    def passed(self) -> bool:
        return self.artifact is not None and not self.errors


@dataclass
class _Pass(Generic[A]):
    """State of one pass: the best attempt so far, and everything that went wrong."""

    stage: str
    best: A | None = None
    problems: list[Problem] = field(default_factory=list)
    best_number: int = 0
    """The attempt that brought it; 0 for what existed before."""
    history: list[list[Problem]] = field(default_factory=list)
    unreadable: str = ""

    def offer(self, artifact: A, problems: list[Problem], number: int) -> None:
        self.unreadable = ""
        self.history.append(problems)
        if self.best is None or self._rank(problems) < self._rank(self.problems):
            self.best, self.problems, self.best_number = artifact, problems, number

    def _rank(self, problems: list[Problem]) -> tuple[int, int]:
        """First what this stage could have done better, then what it leaves to others."""
        return weight([problem for problem in problems if owner(problem) == self.stage]), weight(problems)


class Repair:
    def __init__(self, model: Model, settings: Settings, notebook: Notebook, lanes: Lanes) -> None:
        self._model = model
        self._settings = settings
        self._notebook = notebook
        self._lanes = lanes
        self._slots = Slots(settings.requests)
        self._ended: BudgetSpent | OutOfQuota | None = None
        """What ended the run for all: no further prompt is written, let alone sent."""

    async def run(self, stage: Stage[A], draft: Draft, given: Sequence[Problem] = (), before: int = 0) -> Outcome[A]:
        """One pass. `given`: faults of the existing artifact that others found; `before`: answers asked for in earlier passes.

        Raises ModelError where no answer came at all, BudgetSpent, SandboxError.
        """
        state: _Pass[A] = _Pass(stage.name)
        existing = stage.existing(draft)
        if existing is not None:
            problems = [*await self._lanes.run(stage.name, stage.check, existing, draft), *given]
            state.offer(existing, problems, 0)
            if _settled(stage, problems):
                return Outcome(stage, existing, problems, 0)
        answers = 0
        settled = False
        while not settled and answers < self._settings.attempts_of(stage.name):
            answers += 1
            settled = await self._attempt(stage, draft, state, before + answers)
        if state.best_number:
            await asyncio.to_thread(self._notebook.choose, draft.env_id, stage.name, stage.item, state.best_number)
        return Outcome(stage, state.best, state.problems, answers)

    async def _attempt(self, stage: Stage[A], draft: Draft, state: _Pass[A], number: int) -> bool:
        """True where the answer is good, and is the best of course."""
        started = time.monotonic()
        async with self._slots.take(STAGES.index(stage.name)):
            if self._ended is not None:
                raise type(self._ended)(str(self._ended))
            request = ModelRequest(
                messages=await self._messages(stage, draft, state, number),
                max_tokens=self._settings.max_tokens.of(stage.name),
                temperature=self._settings.temperature,
                sample=number - 1,
                purpose=Purpose(env_id=draft.env_id, stage=stage.name, item=stage.item, attempt=number),
            )
            try:
                reply = await self._model.complete(request)
            except (BudgetSpent, OutOfQuota) as error:
                self._ended = error
                raise
        return await self._lanes.run(stage.name, self._judge, stage, draft, state, request, reply, started)

    def _judge(
        self, stage: Stage[A], draft: Draft, state: _Pass[A], request: ModelRequest, reply: ModelReply, started: float
    ) -> bool:
        """Take the answer apart, execute it and write down what came of it."""
        cpu = time.thread_time()
        number = request.purpose.attempt
        artifact: A | None = None
        try:
            artifact = stage.parse(reply.text)
        except AnswerError as error:
            problems = [
                Problem(
                    gate=stage.name,
                    severity="error",
                    where=f"answer {number}",
                    what=f"{error}.",
                    fix="Answer in the form asked for.",
                )
            ]
            state.unreadable = str(error)
            state.history.append(problems)
        else:
            problems = stage.check(artifact, draft)
            state.offer(artifact, problems, number)
        settled = artifact is not None and _settled(stage, problems)
        self._notebook.write(
            Attempt(
                env_id=draft.env_id,
                stage=stage.name,
                item=stage.item,
                number=number,
                prompt="\n\n".join(f"[{message.role}]\n{message.content}" for message in request.messages),
                answer=reply.raw,
                artifact=None if artifact is None else stage.show(artifact).encode("utf-8", "replace"),
                problems=tuple(problems),
                weight=weight(problems),
                cpu_seconds=time.thread_time() - cpu,
                seconds=time.monotonic() - started,
            )
        )
        return settled

    async def _messages(self, stage: Stage[A], draft: Draft, state: _Pass[A], number: int) -> tuple[Message, ...]:
        """The stage's own prompt; from the second answer on with the best attempt and what is wrong with it."""
        base = stage.prompt(draft)
        if not state.history:
            return base
        advice = await self._advice(stage, draft, state, number)
        own = [problem for problem in state.problems if owner(problem) == stage.name]
        own.sort(key=lambda problem: problem.severity)
        text = prompts.render(
            "repair",
            what=stage.what,
            unreadable=state.unreadable,
            problems=[_short(problem) for problem in own[:MOST_SHOWN]],
            left_out=max(0, len(own) - MOST_SHOWN),
            advice=advice,
        )
        if state.best is None:
            *others, last = base
            return (*others, last.model_copy(update={"content": f"{last.content}\n\n{text}"}))
        return (*base, Message(role="assistant", content=stage.show(state.best)), Message(role="user", content=text))

    async def _advice(self, stage: Stage[Any], draft: Draft, state: _Pass[A], number: int) -> str:
        """Errors of the stage so far, condensed by a call of its own. A retry is worth more than its advice: none is no fault."""
        if not self._settings.advice:
            return ""
        shown = [[_short(problem) for problem in problems[:MOST_SHOWN]] for problems in state.history]
        text = prompts.render("advice", what=stage.what, name=draft.scenario.name, history=shown)
        request = ModelRequest(
            messages=conversation(prompts.render("system", world_time=draft.world_time), text),
            max_tokens=self._settings.max_tokens.advice,
            temperature=self._settings.temperature,
            purpose=Purpose(
                env_id=draft.env_id, stage="advice", item="-".join(filter(None, (stage.name, stage.item))), attempt=number
            ),
        )
        try:
            return (await self._model.complete(request)).text.strip()
        except AnswerError:
            return ""


def weight(problems: Sequence[Problem]) -> int:
    return sum(WEIGHTS[problem.severity] for problem in problems)


def _settled(stage: Stage[Any], problems: Sequence[Problem]) -> bool:
    """True where another answer of this stage could mend nothing: what is left are warnings, or another stage's errors."""
    return not any(problem.severity == "error" and owner(problem) == stage.name for problem in problems)


def _short(problem: Problem) -> Problem:
    return problem.model_copy(update={"what": problem.what[:MOST_TEXT]}) if len(problem.what) > MOST_TEXT else problem
