"""A stage: what it needs, how it asks, how it reads the answer, and how the answer is checked by executing it."""

from typing import Final, Protocol, TypeVar

from awm_factory.llm.protocol import Message
from awm_factory.problems import Problem
from awm_factory.synthesis.draft import Draft

A = TypeVar("A")

OWNERS: Final = {
    "tasks": "tasks",
    "schema": "schema",
    "data": "data",
    "spec": "spec",
    "code": "code",
    "interface": "code",
    "behaviour": "code",
    "reset": "code",
    "verifiers": "verifiers",
    "null": "verifiers",
    "hygiene": "verifiers",
    "near_misses": "verifiers",
    "equivalents": "verifiers",
    "alternatives": "verifiers",
    "solutions": "solutions",
    "solvable": "solutions",
}
"""Which stage can mend what a gate finds. A gate that is not named here speaks of the code."""


def owner(problem: Problem) -> str:
    return OWNERS.get(problem.gate, "code")


class Stage(Protocol[A]):
    """One question to the model. A stage that works task by task is one object a task, told apart by `item`."""

    name: str
    item: str
    """The task's number, or empty."""
    what: str
    """What the answer is called in a sentence: `the whole {what}`."""

    def prompt(self, draft: Draft) -> tuple[Message, ...]: ...

    def parse(self, reply: str) -> A:
        """Raises AnswerError where the reply is not what was asked for."""
        ...

    def check(self, artifact: A, draft: Draft) -> list[Problem]:
        """Everything wrong with it, found by executing it. A Problem whose gate another stage owns sends the draft back there.

        Blocks while the sandbox works, so it is called in a thread.
        """
        ...

    def apply(self, artifact: A, draft: Draft) -> Draft: ...

    def existing(self, draft: Draft) -> A | None:
        """The artifact that the draft holds already."""
        ...

    def show(self, artifact: A) -> str:
        """The artifact as an answer in the form that the prompt asks for."""
        ...
