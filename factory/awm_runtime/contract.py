"""Wire types: what the host and the runtime say to each other.

Two conversations use them. The *checks* protocol runs over a pipe to `python -m awm_runtime.checks` inside the
sandbox: one JSON object a line each way, `CheckRequest` in, `CheckReply` out, each request executed in a forked child.
The *episode* protocol runs over HTTP on port 8000 of an environment container. This is the only module of the runtime
that the host imports, so it depends on pydantic and nothing else.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

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


# --- checks: loading a database -------------------------------------------------------------------------------------


class Statement(Wire):
    """One string of SQL as its author wrote it (it may hold several statements, or none)."""

    sql: str
    table: str
    index: int
    """Position among this table's statements of its phase, from 0: `inserts of users[3]`."""


class StatementFailure(Wire):
    phase: Literal["schema", "data"]
    table: str
    index: int
    sql: str
    error: str
    """SQLite's own message: `CHECK constraint failed: state IN (...)`."""


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


class LoadRequest(Wire):
    """Execute schema and data statement by statement, foreign keys on, at the world time."""

    op: Literal["load"] = "load"
    world_time: str
    statements_schema: list[Statement]
    statements_data: list[Statement]


class MovingStatement(Wire):
    """A data statement whose rows depend on the clock or on chance."""

    table: str
    index: int
    source: Literal["clock", "random"]


class LoadReply(Wire):
    op: Literal["load"] = "load"
    failures: list[StatementFailure]
    statements_total: dict[Literal["schema", "data"], int]
    """Statements executed in each phase, after splitting strings that hold several; the denominator of a failure ratio."""
    schema_sql: list[str]
    """Every schema statement, one a string, without trailing semicolon, failing ones included."""
    seed_sql: list[str]
    """The same for data, moving ones replaced by literals as evaluated at the world time."""
    moving: list[MovingStatement]
    db: str
    """The database file, base64. Byte-identical for the same statements, world time and SQLite build."""
    dump_sha256: str
    """SHA-256 of the canonical dump (tables by name, rows by key, values typed), which does not depend on the SQLite build."""
    integrity: list[str]
    """Rows of `PRAGMA integrity_check` other than `ok`."""
    dangling: list[ForeignKeyViolation]
    tables: list[Table]


# --- checks: the app ------------------------------------------------------------------------------------------------


class EnvironmentSource(Wire):
    """What the runtime needs to serve an environment."""

    env_id: str
    app_code: str
    db: str
    """Seeded database file, base64."""
    world_time: str


class Tool(Wire):
    name: str
    """Name on the MCP wire, of `[A-Za-z0-9_-]{1,64}`."""
    operation_id: str
    """Name in the environment's code; differs from `name` only where that one can't be a tool name."""
    method: str
    path: str
    description: str
    input_schema: dict[str, JsonValue]


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


class AppRequest(Wire):
    """Import the app, list its tools, look for tools that can't work, and call every reading tool that needs no arguments."""

    op: Literal["app"] = "app"
    source: EnvironmentSource
    reuse: bool = False
    """As in TrialsRequest."""


class ToolMending(Wire):
    """A difference between a tool as it is served and what fastapi-mcp makes of the same endpoint."""

    tool: str
    kind: Literal["omitted", "renamed", "null_allowed", "schema_repaired"]
    why: str


class AppReply(Wire):
    op: Literal["app"] = "app"
    tools: list[Tool]
    """Tools that can be served, in the order of the app's routes; empty where the app does not start."""
    findings: list[Finding]
    mendings: list[ToolMending] = []

    @property
    def keeps_state(self) -> bool:
        """Whether episodes tell each other apart, by the source or by trial, so that each needs a process of its own."""
        return any(finding.kind == "module_state" for finding in self.findings)


# --- checks: verifiers and calls ------------------------------------------------------------------------------------


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


class VerifyRequest(Wire):
    op: Literal["verify"] = "verify"
    verifiers: list[VerifierSource]
    initial_db: str
    final_db: str
    """Both base64."""
    final_answer: str | None
    world_time: str


class VerifyReply(Wire):
    op: Literal["verify"] = "verify"
    verdicts: list[Verdict]
    """One a verifier, in the request's order."""


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


class CallsRequest(Wire):
    """Play calls on a fresh episode, then verify it, each given number of times."""

    op: Literal["calls"] = "calls"
    source: EnvironmentSource
    calls: list[ToolCall]
    final_answer: str | None = None
    verifiers: list[VerifierSource] = []
    repeat: Annotated[int, Field(ge=1, le=10)] = 1
    seed: int = 0


class Playthrough(Wire):
    results: list[ToolResult]
    verdicts: list[Verdict]
    db: str
    """Final database, base64."""
    dump_sha256: str


class CallsReply(Wire):
    op: Literal["calls"] = "calls"
    runs: list[Playthrough]


# --- checks: many trials, verifiers under observation, exploration ----------------------------------------------------


class Trial(Wire):
    """One way through an environment: calls on a fresh episode, and the answer at their end."""

    calls: list[ToolCall]
    final_answer: str | None = None
    task_id: int | None = None
    """Whose verifiers judge it; None is judged by nobody."""
    seed: int = 0


class TrialsRequest(Wire):
    """Play every trial, in one process where the environment allows it, and judge each by the code verifiers of its task."""

    op: Literal["trials"] = "trials"
    source: EnvironmentSource
    trials: list[Trial]
    verifiers: list[VerifierSource] = []
    random_columns: list[tuple[str, str]] = []
    """Columns, by table, that chance fills in new rows; they are no part of the canonical state."""
    call_limit: float = 10.0
    """Seconds a call may take."""
    results: bool = True
    """Whether results of calls and the digest of the dump are wanted in the reply."""
    databases: bool = False
    """Whether the databases at the end are."""
    reuse: bool = False
    """Whether the process that imports the environment is kept, and used by the next check of the same source."""
    alone: bool = False
    """Whether each trial needs a process of its own though the source does not show it, as the check of the app may have seen."""
    parts: list[int] = []
    """How many of the trials share a process, part by part; all where empty. Databases are those of the first part."""


class RowChange(Wire):
    key: list[JsonValue]
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class TrialRun(Wire):
    arguments: list[JsonValue] = []
    """Of each call, references filled in."""
    results: list[ToolResult] = []
    kinds: list[str] = []
    """Outcome of each call."""
    wrote: list[bool] = []
    """Which calls left another database behind them."""
    verdicts: list[Verdict] = []
    state: str = ""
    """Digest of the canonical state: equal where two ends hold the same facts."""
    dump_sha256: str = ""
    db: str = ""
    """Final database, base64, where it was asked for."""
    changes: dict[str, list[RowChange]] = {}
    """Rows that differ from the start, by table."""
    error: str | None = None
    """Why it could not be played to its end."""


class TrialsReply(Wire):
    op: Literal["trials"] = "trials"
    runs: list[TrialRun]
    random_columns: list[tuple[str, str]] = []
    """Columns in which two of the trials differ that have equal calls and another seed."""


class InspectedCase(Wire):
    """A pair of databases and an answer for verifiers to look at."""

    final_db: str
    final_answer: str | None


class InspectRequest(Wire):
    """Run verifiers under observation: what they open, start and write, how long they take, whether they repeat themselves."""

    op: Literal["inspect"] = "inspect"
    verifiers: list[VerifierSource]
    initial_db: str
    ends: dict[int, InspectedCase]
    """The end of each task's solution, where it has one."""
    world_time: str


class Observation(Wire):
    """What one verifier did."""

    untouched: Verdict
    """Its word on the databases of an episode that did and said nothing."""
    acts: list[str]
    """Files opened, processes started, statements that write: `opens /etc/passwd`."""
    seconds: float
    """Processor time of its slowest run."""
    memory: int
    """Bytes that it needed at most beyond an empty process."""
    unstable: list[str]
    """How runs on the same databases differed, each with what alone had changed."""
    exact_floats: list[str]
    """Columns whose stored fraction moved by its last binary digit turned `complete` into something else."""
    already: list[str] = []
    """Where doing nothing is `complete`: rows of the start without which it is not, `listings id 1`."""


class InspectReply(Wire):
    op: Literal["inspect"] = "inspect"
    observations: list[Observation]


class ExploreRequest(Wire):
    """Call tools at random, with arguments from schemas and live results, and report what breaks a rule that every app keeps."""

    op: Literal["explore"] = "explore"
    source: EnvironmentSource
    calls: int
    """Budget."""
    invariants: dict[str, str] = {}
    """By a sentence, a SELECT of the rows that break it."""
    scripts: list[list[ToolCall]] = []
    """Calls that are known to go well, such as solutions: some runs begin with a part of one, and go on at random from there."""
    seed: int = 0
    call_limit: float = 10.0
    reuse: bool = False
    """As in TrialsRequest."""


class Violation(Wire):
    kind: Literal[
        "exception",
        "unhandled",
        "constraint",
        "invariant",
        "read_writes",
        "failed_call_writes",
        "no_effect",
        "list_get",
        "filter",
        "page",
        "sort",
        "given",
        "again",
        "limit",
        "reach",
        "dangling",
        "negative",
        "order",
        "idle",
        "hangs",
    ]
    tool: str
    what: str
    calls: list[ToolCall]
    """The shortest sequence found that shows it, from a fresh episode."""


class ToolUse(Wire):
    calls: int = 0
    ok: int = 0
    refused: int = 0
    internal: int = 0
    changed: int = 0


class WriteSample(Wire):
    """Calls that change something, from a fresh episode; the last one does."""

    calls: list[ToolCall]
    tables: list[str]


class RefusalSample(Wire):
    """Calls, from a fresh episode, of which the last is refused with a number in its words."""

    calls: list[ToolCall]
    words: str
    """What it is refused with, without figures."""


class ExploreReply(Wire):
    op: Literal["explore"] = "explore"
    calls: int
    uses: dict[str, ToolUse]
    violations: list[Violation]
    writes: list[WriteSample]
    refusals: list[RefusalSample] = []
    repeats: list[str]
    """Digests of one sequence played in two fresh processes, and once more in the second of them."""
    reset_identical: bool
    """Whether an episode that was reset is byte-identical to the seed."""


class ParseRequest(Wire):
    """Read Python by the grammar of the version it will run on."""

    op: Literal["parse"] = "parse"
    code: str


class ParseReply(Wire):
    op: Literal["parse"] = "parse"
    tree: str | None
    """The syntax tree as JSON text, as `syntax` packs it; None where the code is no Python."""
    fault: str = ""
    line: int = 0


class CheckFailed(Wire):
    """The check itself could not be carried out: time limit, memory limit, or a crash of the child that ran it."""

    op: Literal["failed"] = "failed"
    reason: Literal["timeout", "memory", "crashed", "bad_request"]
    message: str


CheckRequest = Annotated[
    LoadRequest | AppRequest | VerifyRequest | CallsRequest | TrialsRequest | InspectRequest | ExploreRequest | ParseRequest,
    Field(discriminator="op"),
]
CheckReply = Annotated[
    LoadReply | AppReply | VerifyReply | CallsReply | TrialsReply | InspectReply | ExploreReply | ParseReply | CheckFailed,
    Field(discriminator="op"),
]


class CheckEnvelope(Wire):
    """One line of the checks protocol towards the sandbox."""

    id: int
    time_limit: float
    """Seconds of wall time for this check; the child is killed after it."""
    request: CheckRequest


class ReplyEnvelope(Wire):
    id: int
    reply: CheckReply


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
