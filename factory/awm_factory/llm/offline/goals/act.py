"""One thing to be done, to rows that the sentence names."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from awm_factory.llm.offline.goals.ground import NAMING, Draft, Ground, drafted
from awm_factory.llm.offline.goals.telling import tell
from awm_factory.llm.offline.ir import Operation
from awm_factory.llm.offline.mention import Mention
from awm_factory.llm.offline.phrase import PLEAS, Sentence, put
from awm_factory.llm.offline.state import World
from awm_factory.llm.offline.trace import Trace

_TRIES = 24


@dataclass(frozen=True)
class Deed:
    """A write that would be carried out, and how it is asked for."""

    operation: Operation
    arguments: Mapping[str, Any]
    mentions: Mapping[str, Mention]
    sentence: Sentence

    @property
    def signature(self) -> tuple[object, ...]:
        return self.operation.key, repr(sorted(self.arguments.items()))

    def planned(self, ground: Ground, trace: Trace) -> Trace | None:
        """The look-ups and the write, made on the trace."""
        arguments = ground.given(trace, self.operation, self.arguments, self.mentions)
        if arguments is None:
            return None
        trace.call(self.operation.key, arguments)
        return None if trace.calls[-1].refused else trace


def deed(
    ground: Ground, operation: Operation, fixed: dict[str, Any] | None = None, world: World | None = None, tries: int = _TRIES
) -> Deed | None:
    """Arguments under which the operation is carried out and changes something; `world`: the state that it is to be tried on."""
    for _ in range(tries):
        arguments = ground.chooser.arguments(operation, fixed)
        if arguments is None:
            return None
        if not ground.changes(operation, arguments, world):
            continue
        arguments = ground.needed(operation, arguments, world)
        if not ground.changes(operation, arguments, world) or not _is_new(ground, operation, arguments):
            continue
        mentions = ground.named(operation, arguments)
        if mentions is None:
            continue
        sentence = ground.spoken(operation, arguments, mentions)
        if sentence is not None:
            return Deed(operation, arguments, mentions, sentence)
    return None


def _is_new(ground: Ground, operation: Operation, arguments: Mapping[str, Any]) -> bool:
    """A thing that is made is not called like one that is there."""
    if operation.kind != "create":
        return True
    for param in operation.params:
        value = arguments.get(param.key)
        if param.kind == "text" and isinstance(value, str) and NAMING.search(param.name or param.key):
            for entity in ground.domain.entities.values():
                for column in entity.columns:
                    if NAMING.search(column.name or column.key) and any(
                        str(row[column.key]).lower() == value.lower() for row in ground.world.all(entity.role)
                    ):
                        return False
    return True


def act(ground: Ground) -> Draft | None:
    for operation in ground.writes()[:4]:
        done = deed(ground, operation)
        if done is None:
            continue
        trace = done.planned(ground, Trace.on(ground.world))
        if trace is None:
            continue
        plea = ground.rng.randrange(len(PLEAS))
        request = put(PLEAS[plea], done.sentence.text)
        telling = tell(ground, trace, request)
        asked = telling if telling is not None and ground.rng.random() < 0.3 else None
        draft = drafted(
            ground,
            "act",
            instruction=f"{request} {asked.question}" if asked else request,
            signature=("act", done.signature),
            way=("act", done.sentence.way, plea, asked.way if asked else ""),
            trace=trace,
            answer=asked.answer if asked else f"Done as you asked: {done.sentence.text}.",
            told=asked.told if asked else (),
            mentions=tuple(done.mentions.values()),
            constraints=len(done.arguments) - len(done.mentions),
            made=done.sentence.made,
        )
        if draft is not None:
            return draft
    return None
