"""What the stages make, in AWM's own record forms, parsed once where a model's answer or an imported bundle comes in."""

from typing import Annotated, Any, Final, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StringConstraints, ValidationError

from awm_factory.bundle import Author, Difficulty, Solution, Variant
from awm_factory.errors import Malformed
from awm_runtime.contract import ToolCall

M = TypeVar("M", bound=BaseModel)
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]

MOST_SHOWN: Final = 5
"""Validation faults told at once; a model mends the rest of a kind with the first."""


class Artifact(BaseModel):
    model_config = ConfigDict(frozen=True)


class Scenario(Artifact):
    name: Text
    description: str = ""
    category: str = ""
    suitability: int | None = None
    """1 to 10: can its data be synthesized? None for a scenario that nobody classified."""


class TaskList(Artifact):
    tasks: list[Text]
    difficulty: list[Difficulty] = []
    """Of each task, in their order, where the author knows it; else empty."""
    author: Author | None = None
    """A program that writes tasks and all that follows; asked of nobody."""


class TableSchema(Artifact):
    name: Text
    ddl: Text
    indexes: list[str] = []


class Schema(Artifact):
    tables: list[TableSchema]
    invariants: dict[str, str] = {}
    """As the manifest has them; asked of nobody, and kept for the gates where the author knows some."""

    @property
    def statements(self) -> list[str]:
        return [sql for table in self.tables for sql in (table.ddl, *table.indexes)]


class TableData(Artifact):
    table_name: Text
    reasoning: str = ""
    insert_statements: list[str]


class RowPattern(Artifact):
    """Rows of a table in which every named column holds the value given."""

    table: Text
    equals: dict[str, JsonValue] = Field(min_length=1)


class TaskRows(Artifact):
    """What the author of the sample data promises about one task: which rows it needs, and which it is about to make."""

    task_id: int
    present: list[RowPattern] = []
    absent: list[RowPattern] = []


class SampleData(Artifact):
    tables: list[TableData]
    tasks: list[TaskRows] = []

    @property
    def statements(self) -> list[str]:
        return [sql for table in self.tables for sql in table.insert_statements]


class Param(Artifact):
    model_config = ConfigDict(frozen=True, extra="allow")

    type: str
    param_type: Literal["query", "path", "body"]
    required: bool = False
    description: str = ""
    example: JsonValue = None


class Endpoint(Artifact):
    model_config = ConfigDict(frozen=True, extra="allow")

    path: str
    method: str
    summary: str
    description: str
    operation_id: str
    tags: list[str] = []
    request_params: dict[str, Param] = {}
    response: JsonValue = None
    required_tables: list[str] = []
    required_fields: dict[str, list[str]] = {}


class ApiGroup(Artifact):
    model_config = ConfigDict(frozen=True, extra="allow")

    group_name: str
    endpoints: list[Endpoint]


class ApiSpec(Artifact):
    """Read for checking only: the draft keeps the answer's own JSON, keys and order included."""

    model_config = ConfigDict(frozen=True, extra="allow")

    api_groups: list[ApiGroup]

    @property
    def endpoints(self) -> list[Endpoint]:
        return [endpoint for group in self.api_groups for endpoint in group.endpoints]


class VerifierPair(Artifact):
    """Both verifiers of a task. `sql` gathers evidence for a judge, `code` decides; empty where an import lacks one."""

    code: str = ""
    sql: str = ""


Part = Literal["solution", "verifier", "data", "code", "spec"]


class Blame(Artifact):
    """What the solver holds to be at fault when its solution is not accepted."""

    part: Part
    why: Text


class Attempted(Artifact):
    """Answer of the solutions stage: the calls, and whose fault it is that they don't work."""

    calls: list[ToolCall]
    final_answer: str | None = None
    alternatives: list[Variant] = []
    """Ways that are as good; asked of nobody, and kept for the gates where the author knows some."""
    near_misses: list[Variant] = []
    blame: Blame | None = None

    @property
    def solution(self) -> Solution:
        return Solution(
            calls=self.calls, final_answer=self.final_answer, alternatives=self.alternatives, near_misses=self.near_misses
        )

    @classmethod
    def of(cls, solution: Solution) -> Self:
        return cls.model_validate(solution.model_dump(mode="json"))


def validated(kind: type[M], value: Any, what: str) -> M:
    """The value as an artifact. Raises Malformed that names the places at fault, as the next prompt will show it."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc'])) or what}: {fault['msg']}" for fault in error.errors()]
        more = f"; and {len(faults) - MOST_SHOWN} more" if len(faults) > MOST_SHOWN else ""
        raise Malformed(f"the {what} lacks the form asked for: {'; '.join(faults[:MOST_SHOWN])}{more}") from None
