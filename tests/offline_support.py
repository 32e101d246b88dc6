"""Environments of the offline author for tests and benchmarks: as bundles, and as worlds that an agent can call."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from pydantic import JsonValue

from awm_factory.bundle import Author as Provenance
from awm_factory.bundle import Bundle, Manifest, Task
from awm_factory.llm.offline.arguments import Refusal
from awm_factory.llm.offline.author import Author
from awm_factory.llm.offline.ir import Domain, Entity, Operation, Param
from awm_factory.llm.offline.model import NAME, version
from awm_factory.llm.offline.state import World
from awm_factory.llm.offline.steps import ReturnPage, ReturnRecord, ReturnRow, ReturnTable
from awm_factory.llm.protocol import ToolSpec
from awm_factory.rollout.agents import Agent, Say, Scene, Step
from awm_runtime.contract import Tool, ToolCall

MOST_CALLS = 40


def bundle_of(author: Author) -> Bundle:
    """What the synthesis makes of an author's answers."""
    schema, data = author.schema, author.data
    return Bundle(
        manifest=Manifest(
            env_id=author.env_id,
            scenario=author.domain.name,
            description=author.domain.description,
            origin="synthesized",
            invariants=schema["invariants"],
            author=Provenance(name=NAME, version=version(), seed=author.seed),
        ),
        schema_sql=[sql for table in schema["tables"] for sql in (table["ddl"], *table["indexes"])],
        seed_sql=[sql for table in data["tables"] for sql in table["insert_statements"]],
        app_code=author.code,
        api_spec=author.spec,
        tasks=[
            Task(task_id=number, instruction=task.instruction, difficulty=task.difficulty)
            for number, task in enumerate(author.tasks)
        ],
        verifiers={(number, "code"): task.code_verifier for number, task in enumerate(author.tasks)}
        | {(number, "sql"): task.sql_verifier for number, task in enumerate(author.tasks)},
        solutions={number: task.solution for number, task in enumerate(author.tasks)},
    )


@dataclass
class WorldEpisode:
    """An episode as the author predicts it: called by names, answering by names."""

    world: World

    def call(self, call: ToolCall) -> Step:
        domain = self.world.domain
        operation = next((op for op in domain.operations.values() if op.name == call.tool), None)
        if operation is None:
            return Step(call, {"detail": f"There is no tool {call.tool}."}, is_error=True)
        try:
            result = self.world.run(operation.key, _by_key(operation.params, call.arguments))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            # Arguments that the app would refuse before its own code sees them.
            return Step(call, {"detail": f"{error}"}, is_error=True)
        if isinstance(result, Refusal):
            return Step(call, {"detail": result.detail}, is_error=True)
        return Step(call, _named(domain, operation, result), is_error=False)


def _by_key(params: tuple[Param, ...], arguments: dict[str, JsonValue]) -> dict[str, Any]:
    by_name = {param.name or param.key: param for param in params}
    found: dict[str, Any] = {}
    for name, value in arguments.items():
        param = by_name.get(name)
        if param is None and name not in ("limit", "offset", "sort"):
            raise ValueError(f"{name}: unexpected argument")
        if param is None or value is None:
            found[name if param is None else param.key] = value
            continue
        found[param.key] = _checked(param, value)
    return found


def _checked(param: Param, value: Any) -> Any:
    if param.kind in ("int", "money", "ref") and (isinstance(value, bool) or not isinstance(value, int)):
        raise ValueError(f"{param.name}: Input should be a valid integer")
    if param.kind in ("text", "choice") and not isinstance(value, str):
        raise ValueError(f"{param.name}: Input should be a valid string")
    if param.kind == "date":
        return date.fromisoformat(str(value)[:10])
    if param.kind == "datetime":
        return datetime.fromisoformat(str(value))
    if param.kind == "list":
        return [_by_key(param.items, item) for item in value]
    return value


def _named(domain: Domain, operation: Operation, result: dict[str, Any]) -> JsonValue:
    match operation.returns:
        case ReturnPage():
            entity = domain.entity(operation.entity)
            return {**result, "items": [_row(entity, item) for item in result["items"]]}
        case ReturnRow(children=children):
            named = _row(
                domain.entity(operation.entity), {key: value for key, value in result.items() if key not in dict(children)}
            )
            for role, _ in children:
                named[domain.entity(role).plural] = [_row(domain.entity(role), item) for item in result[role]]
            return named
        case ReturnRecord(fields=fields):
            return {field.name or field.key: result[field.key] for field in fields}
        case ReturnTable(fields=fields):
            return {"rows": [{field.name or field.key: row[field.key] for field in fields} for row in result["rows"]]}


def _row(entity: Entity, row: dict[str, Any]) -> dict[str, JsonValue]:
    names = {column.key: column.name or column.key for column in entity.columns} | {show.key: show.name for show in entity.shows}
    return {names.get(key, key): value for key, value in row.items()}


@dataclass(frozen=True)
class Played:
    calls: tuple[ToolCall, ...]
    answer: str


def play(agent: Agent, world: World, instruction: str, tools: list[Tool]) -> Played:
    """An episode in a copy of the world."""
    episode = WorldEpisode(world.copy())
    specs = tuple(ToolSpec(name=tool.name, description=tool.description, parameters=tool.input_schema) for tool in tools)
    steps: tuple[Step, ...] = ()
    while len(steps) < MOST_CALLS:
        move = agent.move(Scene(instruction, specs, steps))
        if isinstance(move, Say):
            return Played(tuple(step.call for step in steps), move.answer)
        steps = (*steps, episode.call(move))
    return Played(tuple(step.call for step in steps), "")
