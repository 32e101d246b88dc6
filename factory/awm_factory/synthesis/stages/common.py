"""What all stages put into a prompt in the same way, so that equal parts of prompts are equal to the letter."""

from awm_factory.llm.answers import fenced_json, fenced_python
from awm_factory.llm.protocol import Message
from awm_factory.synthesis import prompts
from awm_factory.synthesis.draft import Draft

__all__ = ["ask", "fenced_json", "fenced_python"]


def ask(template: str, draft: Draft, item: str = "", **values: object) -> tuple[Message, ...]:
    return prompts.request(
        template,
        world_time=draft.world_time,
        scenario=draft.scenario,
        item=item,
        tasks=draft.tasks or (),
        schema=draft.schema.statements if draft.schema else (),
        data=draft.data.statements if draft.data else (),
        code=draft.code or "",
        **values,
    )
