"""Wire types: what the host and the runtime say to each other.

Two conversations use them. The *checks* protocol runs over a pipe to `python -m awm_runtime.checks` inside the
sandbox: one JSON object a line each way, `CheckRequest` in, `CheckReply` out, each request executed in a forked child.
The *episode* protocol runs over HTTP on port 8000 of an environment container. Beside `patience`
this is the only module of the runtime that the host imports, so it and the two it is made of depend on pydantic and nothing else.
"""

from typing import Annotated, Literal

from pydantic import Field

from awm_runtime.wire import (
    AGENT_PORT,
    CONTROL_PORT,
    WORLD_TIME,
    Classification,
    Column,
    EnvironmentSource,
    Episode,
    Finding,
    ForeignKeyViolation,
    Health,
    NewEpisode,
    RowChange,
    StateDiff,
    Table,
    Tool,
    ToolCall,
    ToolMending,
    ToolResult,
    Verdict,
    VerifierMode,
    VerifierSource,
    VerifyEpisode,
    Wire,
    build,
)
from awm_runtime.wire_trials import (
    ExploreReply,
    ExploreRequest,
    InspectedCase,
    InspectReply,
    InspectRequest,
    Observation,
    RefusalSample,
    ToolUse,
    Trial,
    TrialRun,
    TrialsReply,
    TrialsRequest,
    Violation,
    WriteSample,
)

__all__ = [
    "AGENT_PORT",
    "CONTROL_PORT",
    "HOMES",
    "WORLD_TIME",
    "AppReply",
    "AppRequest",
    "CallsReply",
    "CallsRequest",
    "CheckEnvelope",
    "CheckFailed",
    "CheckReply",
    "CheckRequest",
    "Classification",
    "Column",
    "EnvironmentSource",
    "Episode",
    "ExploreReply",
    "ExploreRequest",
    "Finding",
    "ForeignKeyViolation",
    "Health",
    "InspectReply",
    "InspectRequest",
    "InspectedCase",
    "LoadReply",
    "LoadRequest",
    "MovingStatement",
    "NewEpisode",
    "Observation",
    "ParseReply",
    "ParseRequest",
    "Playthrough",
    "RefusalSample",
    "ReplyEnvelope",
    "RowChange",
    "StateDiff",
    "Statement",
    "StatementFailure",
    "Table",
    "Tool",
    "ToolCall",
    "ToolMending",
    "ToolResult",
    "ToolUse",
    "Trial",
    "TrialRun",
    "TrialsReply",
    "TrialsRequest",
    "Verdict",
    "VerifierMode",
    "VerifierSource",
    "VerifyEpisode",
    "VerifyReply",
    "VerifyRequest",
    "Violation",
    "Wire",
    "WriteSample",
    "build",
]

HOMES = 2
"""Environments that a lane of the sandbox keeps imported: those of two bundles may be checked in turns on it."""


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


# --- the app -------------------------------------------------------------------------------------------------------


class AppRequest(Wire):
    """Import the app, list its tools, look for tools that can't work, and call every reading tool that needs no arguments."""

    op: Literal["app"] = "app"
    source: EnvironmentSource
    reuse: bool = False
    """As in TrialsRequest."""


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


# --- verifiers and calls -------------------------------------------------------------------------------------------


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


# --- the rest, and how requests and replies travel -----------------------------------------------------------------


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
