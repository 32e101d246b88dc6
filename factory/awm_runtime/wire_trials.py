"""Wire types of the larger checks: many trials, verifiers under observation, exploration."""

from typing import Literal

from pydantic import JsonValue

from awm_runtime.wire import EnvironmentSource, RowChange, ToolCall, ToolResult, Verdict, VerifierSource, Wire


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
