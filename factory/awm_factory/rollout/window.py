"""What a policy sees of its episode, said in one function: rollouts and trainers both call it, so they train as they infer."""

from collections.abc import Sequence
from typing import Final

from awm_factory.llm.protocol import Message

TURNS: Final = 3
"""AWM's w: the last three turns, beside system message and task."""


def context(history: Sequence[Message], turns: int | None = TURNS, pinned: int = 0) -> tuple[Message, ...]:
    """System message and task, the first `pinned` turns, then the last `turns` turns whole; None shows all of them.

    A turn begins with what the policy said and holds the answers to it. What the text form pins is the listing of the tools,
    without which nothing later could be called.
    """
    begun = [place for place, message in enumerate(history) if message.role == "assistant"]
    if turns is None or len(begun) <= pinned + turns:
        return tuple(history)
    begun.append(len(history))
    return (*history[: begun[pinned]], *history[begun[len(begun) - 1 - turns] :])
