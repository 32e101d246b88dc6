"""The author of one environment: domain, rows, tasks and, from these, every artifact as a model would answer it.

Everything follows from the scenario's name, the seed and the tasks asked for: the same bundle on any machine and any Python.
"""

from collections.abc import Collection, Mapping
from datetime import date, datetime
from functools import cached_property, lru_cache
from typing import Any

from awm_factory.errors import UsageError
from awm_factory.llm.offline.compose import compose, draws, recipe, seeded
from awm_factory.llm.offline.emit.code import code
from awm_factory.llm.offline.emit.data import data
from awm_factory.llm.offline.emit.schema import schema
from awm_factory.llm.offline.emit.spec import spec
from awm_factory.llm.offline.outcome import Known
from awm_factory.llm.offline.packs import Pack, packs, scenarios
from awm_factory.llm.offline.plan import PlannedTask, plan_tasks

TASKS = 10


class Author:
    """Tasks are planned with the rows, since some plant a slip in them: nothing is emitted before all of it is known."""

    def __init__(self, env_id: str, *, seed: int = 0, count: int = TASKS, levels: Collection[int] | None = None) -> None:
        """`levels` of difficulty, 1 to 5, that tasks may have; all where None. Raises UsageError for an unknown scenario."""
        self.env_id, self.seed = env_id, seed
        self.pack = pack_of(env_id)
        self.domain, kits = compose(self.pack, recipe(self.pack, env_id))
        self.world = seeded(self.domain, kits, seed)
        self.tasks: list[PlannedTask] = plan_tasks(self.domain, self.world, draws("tasks", env_id, seed), count, levels)

    @cached_property
    def schema(self) -> dict[str, Any]:
        return schema(self.domain)

    @cached_property
    def data(self) -> dict[str, Any]:
        return data(self.world, [self._promise(number, task) for number, task in enumerate(self.tasks)])

    @cached_property
    def spec(self) -> dict[str, Any]:
        return spec(self.world)

    @cached_property
    def code(self) -> str:
        return code(self.domain)

    def task(self, text: str) -> int | None:
        """The number of the task with these words."""
        return next((number for number, task in enumerate(self.tasks) if text.startswith(task.instruction)), None)

    def _promise(self, number: int, task: PlannedTask) -> dict[str, Any]:
        """Which rows the task needs, and which would mean that it is done."""
        outcome = task.wanted.outcome
        absent: list[dict[str, Any]] = []
        present = [{"table": row.table, "equals": {"id": row.id}} for row in outcome.removed if isinstance(row.id, int)]
        for row in outcome.changed:
            if isinstance(row.id, int):
                present.append({"table": row.table, "equals": {"id": row.id}})
                absent.append({"table": row.table, "equals": {"id": row.id} | _plain(row.values)})
        absent += [{"table": new.table, "equals": _plain(new.values)} for new in outcome.added]
        return {
            "task_id": number,
            "present": present,
            "absent": [pattern for pattern in absent if self._is_new(pattern)],
        }

    def _is_new(self, pattern: dict[str, Any]) -> bool:
        """Whether it says something that no row of the start state fulfils."""
        entity = next(entity for entity in self.domain.entities.values() if entity.plural == pattern["table"])
        keys = {column.name: column.key for column in entity.columns} | {"id": "id"}
        equals = {keys[name]: value for name, value in pattern["equals"].items()}
        return len(equals) > 1 and not any(
            all(_stored(row[key]) == value for key, value in equals.items()) for row in self.world.all(entity.role)
        )


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """The cells whose value is known beforehand, as they are stored."""
    known = {name: cell.id if isinstance(cell, Known) else cell for name, cell in values.items()}
    return {name: _stored(cell) for name, cell in known.items() if isinstance(cell, str | int | date)}


def _stored(value: Any) -> Any:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}.000000"
    if isinstance(value, date):
        return value.isoformat()
    return int(value) if isinstance(value, bool) else value


def pack_of(env_id: str) -> Pack:
    """The pack of a scenario, under its variant where it is one."""
    found = scenarios().get(env_id)
    if found is None:
        raise UsageError(
            f"no domain pack knows the scenario {env_id!r}: without a model only those of templates/domains can be written; "
            "name a model with --model, or add a pack (docs/offline-author.md)"
        )
    key, variant = found
    return packs()[key].under(variant) if variant is not None else packs()[key]


@lru_cache(maxsize=64)
def author_of(env_id: str, seed: int = 0, count: int = TASKS, levels: tuple[int, ...] = ()) -> Author:
    """Kept for the stages of environments in flight, which ask for one artifact after another."""
    return Author(env_id, seed=seed, count=count, levels=levels or None)
