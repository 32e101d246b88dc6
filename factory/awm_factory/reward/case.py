"""What a judge is shown, fenced so that no text in it can pass for anything but data.

The agent writes into its trajectory, its final answer and, through the tools, into the database, so all of it may speak to the
judge. Each value is JSON on one line, so nothing in it begins a line of its own. `<`, `>` and bracketed words such as `[INST]`
are spelled as escapes, so that no server takes them for the control tokens of its chat template. The fence carries a digest of
what it encloses: a text would have to contain its own SHA-256 to imitate it.
"""

import hashlib
import json
import re
from functools import cache
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import BaseModel, ConfigDict, JsonValue

from awm_factory import resources
from awm_factory.llm.protocol import Message, conversation
from awm_factory.reward.judgement import Mode
from awm_runtime.contract import StateDiff

MOST_CHARACTERS: Final = 400_000
"""Of all data together, about 100,000 tokens; longer texts inside are shortened until it fits."""
_LENGTHS: Final = (20_000, 5_000, 1_000, 250)
_BRACKETED: Final = re.compile(r"\[(/?[A-Z_]+)\]")


class Case(BaseModel):
    """One finished episode. `evidence` and `changes` are not shown in llm mode."""

    model_config = ConfigDict(frozen=True)

    task: str
    trajectory: list[JsonValue]
    """Messages and tool calls in their order, in any JSON form that keeps who said what."""
    final_answer: str | None = None
    evidence: JsonValue = None
    """What a sql verifier returned."""
    evidence_error: str | None = None
    """Why it returned nothing; then there is nothing to judge by in sql mode."""
    changes: StateDiff | None = None
    internal_errors: int = 0
    env_id: str = ""
    task_id: int | None = None

    def messages(self, mode: Mode) -> tuple[Message, ...]:
        """Raises ValueError where the case is too long even when shortened."""
        lines = self._lines(mode)
        nonce = hashlib.sha256(json.dumps(lines).encode()).hexdigest()[:32]
        system = _render("judge_system", nonce=nonce, evidence=mode == "sql")
        return conversation(system, _render("judge", nonce=nonce, data=lines))

    def _lines(self, mode: Mode) -> list[tuple[str, str]]:
        data: dict[str, Any] = {"task": self.task}
        data |= {f"step {number}": step for number, step in enumerate(self.trajectory, 1)}
        data |= {"final_answer": self.final_answer, "internal_errors": self.internal_errors}
        if mode == "sql":
            data |= {"evidence": self.evidence, "changes": None if self.changes is None else self.changes.model_dump(mode="json")}
        for length in _LENGTHS:
            lines = [(name, _one_line(_shortened(value, length))) for name, value in data.items()]
            if sum(len(line) for _, line in lines) <= MOST_CHARACTERS:
                return lines
        raise ValueError(f"the episode is too long to be judged: more than {MOST_CHARACTERS:,} characters when shortened")


def _one_line(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=True).replace("<", "\\u003c").replace(">", "\\u003e")
    return _BRACKETED.sub(r"\\u005b\1\\u005d", text)


def _shortened(value: JsonValue, length: int) -> JsonValue:
    if isinstance(value, str) and len(value) > length:
        half = length // 2
        return f"{value[:half]} [... {len(value) - 2 * half} characters left out ...] {value[-half:]}"
    if isinstance(value, list):
        return [_shortened(item, length) for item in value]
    if isinstance(value, dict):
        return {_key(name, length): _shortened(item, length) for name, item in value.items()}
    return value


def _key(name: str, length: int) -> str:
    return name if len(name) <= length else f"{name[:length]} [...]"


@cache
def _templates() -> Environment:
    loader = FileSystemLoader(resources.templates() / "prompts")
    # Plain text for a model: HTML's escapes are not those that protect it.
    return Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)


def _render(template: str, **values: Any) -> str:
    return _templates().get_template(f"{template}.j2").render(**values)
