"""The scenarios and category groups that the project ships, and those a user brings (AWM's `seed_scenario.jsonl` among them)."""

import json
from pathlib import Path

from pydantic import ValidationError

from awm_factory import resources
from awm_factory.errors import FormatError
from awm_factory.ids import env_id
from awm_factory.synthesis.artifacts import Scenario


def categories() -> list[str]:
    """The 24 groups, in the order of their rotation."""
    names: list[str] = json.loads((resources.templates() / "scenarios" / "categories.json").read_text(encoding="utf-8"))
    return names


def seeds() -> list[Scenario]:
    return read_scenarios(resources.templates() / "scenarios" / "seeds.jsonl")


def read_scenarios(path: Path) -> list[Scenario]:
    """JSON lines of `name` and, as far as known, `description` and `category`. Raises FormatError that names the line."""
    found: dict[str, Scenario] = {}
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path} can't be read: {error}; name a file of JSON lines, one scenario each") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            if isinstance(value, dict) and "name" not in value and "scenario" in value:
                value = value | {"name": value["scenario"]}
            scenario = Scenario.model_validate(value)
        except (ValueError, ValidationError) as error:
            raise FormatError(f"{path}, line {number}: {error}; each line holds an object with at least a name") from error
        found.setdefault(env_id(scenario.name), scenario)
    return list(found.values())
