"""What one scenario of a run comes to: an environment to materialize, or a row that says why not."""

from dataclasses import dataclass, field

from pydantic import JsonValue

from awm_factory.bundle import Task
from awm_factory.problems import Problem
from awm_runtime.contract import LoadRequest, Statement, VerifierMode


@dataclass(frozen=True)
class BrokenScenario:
    """A scenario, or a line that can't be told to be any scenario's, that can't be imported; the others can."""

    env_id: str | None
    problems: list[Problem]


@dataclass(frozen=True)
class AwmRecordSet:
    """One environment of a run, parsed. Its statements have not been executed yet."""

    env_id: str
    scenario: str
    description: str
    schema: list[Statement]
    data: list[Statement]
    app_code: str
    api_spec: JsonValue
    tasks: list[Task]
    verifiers: dict[tuple[int, VerifierMode], str]
    world_time: str | None
    """Where the run names one: AWM has no such field, our own exports do when it isn't the default."""
    source: dict[str, JsonValue]
    """Records as they came, by file."""
    notes: list[Problem] = field(default_factory=list)
    """Warnings: what the run lacks or contradicts, and what is lost by it."""

    def load_request(self, world_time: str) -> LoadRequest:
        return LoadRequest(world_time=world_time, statements_schema=self.schema, statements_data=self.data)
