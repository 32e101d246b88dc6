"""Prompts are files (templates/prompts/*.j2); this renders them. A name that a template wants and nobody gave is an error."""

from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from awm_factory import resources
from awm_factory.llm.protocol import Message, conversation


@cache
def _environment() -> Environment:
    loader = FileSystemLoader(resources.templates() / "prompts")
    # Prompts are plain text for a model: HTML's escapes would only corrupt the code and SQL in them.
    return Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)


def render(template: str, **values: Any) -> str:
    return _environment().get_template(f"{template}.j2").render(**values)


def request(template: str, *, world_time: str, **values: Any) -> tuple[Message, ...]:
    return conversation(render("system", world_time=world_time), render(template, world_time=world_time, **values))
