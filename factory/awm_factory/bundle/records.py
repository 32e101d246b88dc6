"""What a bundle's JSON files hold: the manifest, tasks and solutions. Fields that say nothing are left out of the files."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from awm_runtime.contract import WORLD_TIME, ToolCall, VerifierMode

Origin = Literal["handwritten", "imported", "synthesized"]
MODES: tuple[VerifierMode, ...] = ("code", "sql")
_RARE = ("author", "invariants", "module_state")
"""Fields of a manifest that are left out where they are empty."""


class Mending(BaseModel):
    """A difference between the tools served and what fastapi-mcp would make of the same app."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: str
    kind: Literal["omitted", "renamed", "null_allowed", "schema_repaired"]
    why: str


class Author(BaseModel):
    """A program that wrote an environment: what its bundle follows from, besides the scenario's name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    version: str
    """8 hex digits over the program's sources and data."""
    seed: int


class Manifest(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    env_id: str
    scenario: str
    description: str = ""
    origin: Origin
    world_time: str = WORLD_TIME
    tools: list[str] = []
    """Names on the MCP wire, sorted; filled by the check that lists them in the sandbox."""
    renamed: dict[str, str] = {}
    """Name on the wire to operation id, where the two differ."""
    mendings: list[Mending] = []
    dump_sha256: str = ""
    """Canonical dump of the seeded database; stands for seed.db in the bundle digest."""
    module_state: list[str] = []
    """Why each episode needs a process of its own, as the check of the app found it."""
    invariants: dict[str, str] = {}
    """What always holds, by a sentence that says it: a SELECT of the rows that break it, which finds none."""
    author: Author | None = None
    """None where a model or a person wrote it."""

    @model_serializer(mode="wrap")
    def _without_empty_rarities(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = serialize(self)
        return {name: value for name, value in fields.items() if value or name not in _RARE}


class Difficulty(BaseModel):
    """What a task asks of a solver, where its author knows; docs/bundle.md says what each figure counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str
    """`act`, `find`, `ask`, `conditional`, `several`, `repair`, `open`, `policy`."""
    level: int = Field(ge=1, le=5)
    score: float
    calls: int
    depth: int
    """Calls of the longest chain in which one needs the result of another."""
    id_hops: int
    """Look-ups that stand one behind the other before the last id is known."""
    constraints: int
    """Conditions that the sentence sets: values, filters, comparisons."""
    distractors: int
    """Rows that share something with those that are meant."""
    irrelevant_tools: int


class Task(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    task_id: int = Field(ge=0)
    instruction: str
    difficulty: Difficulty | None = None

    @model_serializer(mode="wrap")
    def _without_unknown_difficulty(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = serialize(self)
        return {name: value for name, value in fields.items() if value is not None or name != "difficulty"}


class Variant(BaseModel):
    """Another way through a task, that its author names: as good as the solution, or short of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    why: str
    calls: list[ToolCall]
    final_answer: str | None = None


class Solution(BaseModel):
    """Reference trajectory of one task, and what its author knows besides about what must be accepted and what not."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls: list[ToolCall]
    final_answer: str | None = None
    alternatives: list[Variant] = []
    near_misses: list[Variant] = []

    @model_serializer(mode="wrap")
    def _without_empty_lists(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A plain solution is its calls and its answer, as ever."""
        fields: dict[str, Any] = serialize(self)
        return {name: value for name, value in fields.items() if value or name not in ("alternatives", "near_misses")}
