"""What models cost and how long their answers may be: our table, and the user's over it."""

import importlib.resources
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from awm_factory.errors import ConfigError
from awm_factory.llm.protocol import Usage

_MILLION = 1_000_000
_DATED = re.compile(r"-\d{4}-\d{2}-\d{2}\Z")


class ModelFacts(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float | None = Field(None, ge=0)
    """USD for a million tokens of prompt."""
    cached: float | None = Field(None, ge=0)
    """The same for tokens of a prompt that the endpoint had cached; `input` where it is not given."""
    output: float | None = Field(None, ge=0)
    """The same for tokens of answers, thinking included."""
    most_tokens: int | None = Field(None, gt=0)
    """Longest answer, in tokens; longer ones are not asked for."""
    source: str | None = None
    """Where the numbers were read, and when."""


_TABLE = TypeAdapter(dict[str, ModelFacts])


@dataclass(frozen=True)
class Prices:
    table: dict[str, ModelFacts]

    @classmethod
    def load(cls, file: Path | None = None) -> Self:
        """Raises ConfigError that names the file and the entry at fault."""
        shipped = (importlib.resources.files("awm_factory.llm") / "models.toml").read_text(encoding="utf-8")
        table = _TABLE.validate_python(tomllib.loads(shipped))
        if file is None:
            return cls(table)
        try:
            return cls(table | _TABLE.validate_python(tomllib.loads(file.read_text(encoding="utf-8"))))
        except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError, ValidationError) as error:
            cause = str(error).replace("\n", " ")
            raise ConfigError(f"the table of prices {file} can't be read: {cause}; write it as docs/models.md shows") from error

    def facts(self, model: str) -> ModelFacts:
        """Of this name, or of the name without a date behind it; all unknown for any other: a guess would be a wrong price."""
        return self.table.get(model) or self.table.get(_DATED.sub("", model)) or ModelFacts()

    def known(self, model: str) -> bool:
        facts = self.facts(model)
        return facts.input is not None and facts.output is not None

    def usd(self, model: str, usage: Usage) -> float | None:
        """None where the price is unknown."""
        facts = self.facts(model)
        if facts.input is None or facts.output is None:
            return None
        cached = facts.input if facts.cached is None else facts.cached
        return ((usage.prompt - usage.cached) * facts.input + usage.cached * cached + usage.completion * facts.output) / _MILLION

    def require(self, model: str) -> None:
        """Raises ConfigError where a budget could not be kept, since nothing is known of the model's price."""
        if not self.known(model):
            raise ConfigError(
                f"the price of {model} is unknown, so no budget can be kept: add it by --prices FILE, or leave --budget out"
            )
