"""Wire types of what an environment's container itself serves: tools, calls, verdicts, and episodes over HTTP.

Apart from the checks protocol (`contract`, which has all names), so that no container builds models that it never uses.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

WORLD_TIME = "2026-01-01T00:00:00Z"
"""Start of time in an episode when the author of the environment names none."""

CONTROL_PORT = 8000
AGENT_PORT = 8001

VerifierMode = Literal["code", "sql"]
Classification = Literal["complete", "others", "incomplete", "agent_error", "server_error"]


class Wire(BaseModel):
    # Built when first used: each process of a container uses a few of these, and building them all takes a tenth of its start.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def build(*models: type[Wire]) -> None:
    """Build these models, or all, now: in a process that forks, or each of its children would do it."""
    for model in models or Wire.__subclasses__():
        model.model_rebuild()


class Column(Wire):
    name: str
    type: str
    not_null: bool
    primary_key: bool
    default: str | None


class Table(Wire):
    name: str
    columns: list[Column]
    rows: int


class ForeignKeyViolation(Wire):
    table: str
    rowid: int | None
    parent: str


class Tool(Wire):
    name: str
    """Name on the MCP wire, of `[A-Za-z0-9_-]{1,64}`."""
    operation_id: str
    """Name in the environment's code; differs from `name` only where that one can't be a tool name."""
    method: str
    path: str
    description: str
    input_schema: dict[str, JsonValue]


class ToolMending(Wire):
    """A difference between a tool as it is served and what fastapi-mcp makes of the same endpoint."""

    tool: str
    kind: Literal["omitted", "renamed", "null_allowed", "schema_repaired"]
    why: str


class Finding(Wire):
    """Something about an app that its author should know."""

    kind: Literal[
        "import_error",
        "no_app",
        "no_tools",
        "shadowed_route",
        "duplicate_route",
        "duplicate_name",
        "recursive_model",
        "name_clash",
        "long_name",
        "invalid_schema",
        "field_shadows_type",
        "unserved_endpoint",
        "module_state",
        "lasting_thread",
        "unknown_column",
        "unreadable_row",
        "failing_read",
    ]
    where: str
    what: str
    fix: str
    omitted: str | None = None
    """Name of the tool that is left out because of it."""
    mended: bool = False
    """True where the runtime serves the tool all the same, by working around the fault."""


class ToolCall(Wire):
    tool: str
    arguments: dict[str, JsonValue]
    """A string `{{calls[0].id}}` stands for a value in an earlier result, by JSONPath after the call's index."""


class ToolResult(Wire):
    """Outcome of one tool call."""

    is_error: bool
    kind: Literal[
        "ok", "invalid_arguments", "not_found", "refused", "constraint", "internal", "timeout", "crashed", "format_error"
    ]
    """`refused` is a 4xx of the environment's own; `internal`, `timeout` and `crashed` are the environment's fault."""
    status: int | None
    """HTTP status the endpoint answered, where it answered at all."""
    content: JsonValue
    """The endpoint's JSON, or the error's message and details."""


class EnvironmentSource(Wire):
    """What the runtime needs to serve an environment."""

    env_id: str
    app_code: str
    db: str
    """Seeded database file, base64."""
    world_time: str


class VerifierSource(Wire):
    task_id: int
    mode: VerifierMode
    code: str


class Verdict(Wire):
    """How an episode ended. A verifier that crashes, hangs or returns nonsense gives reward null and its error, never 0."""

    mode: VerifierMode
    classification: Classification | None = None
    reward: float | None = None
    evidence: JsonValue = None
    """What a sql verifier returned, for the judge to read."""
    error: str | None = None
    internal_errors: int = 0
    """Tool calls of the episode that failed by the environment's own fault."""


class RowChange(Wire):
    key: list[JsonValue]
    before: dict[str, Any] | None
    after: dict[str, Any] | None


# --- episodes over HTTP ---------------------------------------------------------------------------------------------


class NewEpisode(Wire):
    """Body of `POST /episodes`. `episode_id` is an alias on the control plane only."""

    task_id: int | None = None
    seed: int = 0
    episode_id: str | None = None


class Episode(Wire):
    """Reply of `POST /episodes`, `.../reset` and `.../fork`."""

    episode_id: str
    task_id: int | None
    instruction: str | None
    seed: int
    world_time: str
    mcp_path: str
    """`/episodes/{id}/mcp`, the same on both ports."""
    steps: int = 0


class VerifyEpisode(Wire):
    """Body of `POST /episodes/{id}/verify`. Without `mode` the code verifier is taken, or sql where there is none."""

    final_answer: str | None = None
    mode: VerifierMode | None = None


class StateDiff(Wire):
    """Reply of `GET /episodes/{id}/diff`: rows added, removed and changed against the seed, by table."""

    tables: dict[str, list[RowChange]]


class Health(Wire):
    """Reply of `GET /health`."""

    status: Literal["healthy"]
    env_id: str
    episodes: int
    capacity: int
    tasks: int
    tools: int
    confinement: dict[str, JsonValue]
    """Which of the self-sandbox's layers hold: `{"landlock": 7, "seccomp": true}`."""
    module_state: list[str] = []
    """Why each episode is served by a process of its own; empty where episodes share processes."""
