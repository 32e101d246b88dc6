"""What all stages put into a prompt in the same way, so that equal parts of prompts are equal to the letter."""

import json

from pydantic import JsonValue

from awm_factory.llm.protocol import Message
from awm_factory.synthesis import prompts
from awm_factory.synthesis.draft import Draft


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


def fenced_json(value: JsonValue) -> str:
    return f"```json\n{json.dumps(value, ensure_ascii=False, indent=1)}\n```"


def fenced_python(code: str) -> str:
    return f"```python\n{code.rstrip()}\n```"
