"""An environment in the making: the artifacts that exist so far. Frozen, so that stages of one draft can run side by side."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from pydantic import JsonValue

from awm_factory.bundle import MODES, Author, Bundle, Difficulty, Manifest, Origin, Solution, Task, table_of
from awm_factory.ids import env_id
from awm_factory.synthesis.artifacts import SampleData, Scenario, Schema, TableData, TableSchema, VerifierPair
from awm_runtime.contract import WORLD_TIME

STAGES: Final = ("scenario", "tasks", "schema", "data", "spec", "code", "verifiers", "solutions")
"""In the order in which each needs those before it."""
PER_TASK: Final = ("verifiers", "solutions")


@dataclass(frozen=True)
class Draft:
    scenario: Scenario
    origin: Origin = "synthesized"
    """Stays `imported` for an environment whose code is not written here: its gates are lenient, its tasks' are not."""
    world_time: str = WORLD_TIME
    tasks: tuple[str, ...] | None = None
    difficulty: Mapping[int, Difficulty] = field(default_factory=dict)
    """By task, where its author knows it."""
    author: Author | None = None
    schema: Schema | None = None
    data: SampleData | None = None
    spec: JsonValue = None
    code: str | None = None
    verifiers: Mapping[int, VerifierPair] = field(default_factory=dict)
    solutions: Mapping[int, Solution] = field(default_factory=dict)
    source: Mapping[str, JsonValue] = field(default_factory=dict)
    """Records that an imported environment came from; kept beside the bundle."""

    @property
    def env_id(self) -> str:
        return env_id(self.scenario.name)

    @property
    def task_ids(self) -> range:
        return range(len(self.tasks or ()))

    def has(self, stage: str) -> bool:
        """True where the stage has made something, for a stage by task: for every task."""
        made = getattr(self, stage)
        return all(task_id in made for task_id in self.task_ids) if stage in PER_TASK else made is not None

    def with_(self, **changes: Any) -> Self:
        return replace(self, **changes)

    def bundle(self) -> Bundle:
        """What there is so far as a bundle, for the gates; parts not made yet are empty."""
        return Bundle(
            manifest=Manifest(
                env_id=self.env_id,
                scenario=self.scenario.name,
                description=self.scenario.description,
                origin=self.origin,
                world_time=self.world_time,
                invariants=self.schema.invariants if self.schema else {},
                author=self.author,
            ),
            schema_sql=self.schema.statements if self.schema else [],
            seed_sql=self.data.statements if self.data else [],
            app_code=self.code or "",
            api_spec=self.spec,
            tasks=[
                Task(task_id=number, instruction=text, difficulty=self.difficulty.get(number))
                for number, text in enumerate(self.tasks or ())
                if text
            ],
            verifiers={
                (task_id, mode): code
                for task_id, pair in sorted(self.verifiers.items())
                for mode in MODES
                if (code := getattr(pair, mode))
            },
            solutions=dict(sorted(self.solutions.items())),
            source=dict(self.source),
        )

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> Self:
        """Take up an environment that exists. Tasks must be numbered without gaps, as AWM's are."""
        instructions = {task.task_id: task.instruction for task in bundle.tasks}
        return cls(
            scenario=Scenario(name=bundle.manifest.scenario, description=bundle.manifest.description),
            origin=bundle.manifest.origin,
            world_time=bundle.manifest.world_time,
            tasks=tuple(instructions.get(number, "") for number in range(max(instructions, default=-1) + 1)) or None,
            difficulty={task.task_id: task.difficulty for task in bundle.tasks if task.difficulty is not None},
            author=bundle.manifest.author,
            schema=_schema(bundle.schema_sql, bundle.manifest.invariants) if bundle.schema_sql else None,
            data=_data(bundle.seed_sql) if bundle.seed_sql else None,
            spec=bundle.api_spec,
            code=bundle.app_code or None,
            verifiers={
                task_id: VerifierPair(
                    code=bundle.verifiers.get((task_id, "code"), ""), sql=bundle.verifiers.get((task_id, "sql"), "")
                )
                for task_id in sorted({task_id for task_id, _ in bundle.verifiers})
            },
            solutions=dict(bundle.solutions),
            source=bundle.source,
        )


def _by_table(statements: list[str]) -> dict[str, list[str]]:
    tables: dict[str, list[str]] = {}
    for sql in statements:
        tables.setdefault(table_of(sql), []).append(sql)
    return tables


def _schema(statements: list[str], invariants: dict[str, str]) -> Schema:
    """One entry a table; statements that belong to none (a PRAGMA) go before the first."""
    tables = [TableSchema(name=name or "(none)", ddl=own[0], indexes=own[1:]) for name, own in _by_table(statements).items()]
    return Schema(tables=tables, invariants=invariants)


def _data(statements: list[str]) -> SampleData:
    """Runs of statements for one table stay where they are: a later table may need rows of an earlier one."""
    tables: list[TableData] = []
    for sql in statements:
        name = table_of(sql) or "(none)"
        if tables and tables[-1].table_name == name:
            tables[-1].insert_statements.append(sql)
        else:
            tables.append(TableData(table_name=name, insert_statements=[sql]))
    return SampleData(tables=tables)
