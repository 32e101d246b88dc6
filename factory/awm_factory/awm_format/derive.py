"""AWM records made from a bundle, for one that was written by hand, synthesized, or changed since its import."""

from collections.abc import Iterable

from pydantic import JsonValue

from awm_factory.bundle import Bundle, created_table, finished, indexed_table, terminate, written_table
from awm_runtime.contract import VerifierMode


def derived_record(bundle: Bundle, artifact: str) -> dict[str, JsonValue] | None:
    """None for an artifact that the bundle lacks."""
    scenario: dict[str, JsonValue] = {"scenario": bundle.manifest.scenario}
    match artifact:
        case "gen_scenario":
            return {"name": bundle.manifest.scenario, "description": bundle.manifest.description}
        case "gen_tasks":
            return scenario | {"tasks": list[JsonValue](_instructions(bundle))}
        case "gen_db":
            return scenario | {"db_schema": {"tables": _schema_tables(bundle.schema_sql)}, "db_path": _db_path(bundle)}
        case "gen_sample":
            tables = _data_tables(bundle.seed_sql)
            counts: dict[str, JsonValue] = {"tables_count": len(tables), "inserts_count": len(bundle.seed_sql)}
            return scenario | counts | {"sample_data": {"tables": tables}}
        case "gen_spec":
            return None if bundle.api_spec is None else scenario | {"api_spec": bundle.api_spec}
        case "gen_envs":
            return scenario | {"db_path": _db_path(bundle), "full_code": bundle.app_code}
        case _:
            raise KeyError(artifact)


def derived_verifier(bundle: Bundle, task_id: int, mode: VerifierMode) -> dict[str, JsonValue]:
    """AWM writes the scenario's safe form here, and its full name elsewhere."""
    instruction = next((task.instruction for task in bundle.tasks if task.task_id == task_id), "")
    return {
        "scenario": bundle.env_id,
        "task_idx": task_id,
        "task": instruction,
        "verification": {"code": bundle.verifiers[task_id, mode]},
    }


def _instructions(bundle: Bundle) -> list[str]:
    """AWM finds a task by its position, so a task that is missing leaves an empty text in its place."""
    texts = {task.task_id: task.instruction for task in bundle.tasks}
    return [texts.get(position, "") for position in range(max(texts, default=-1) + 1)]


def _db_path(bundle: Bundle) -> str:
    for name in ("gen_db", "gen_envs"):
        record = bundle.source.get(name)
        if isinstance(record, dict) and isinstance(path := record.get("db_path"), str):
            return path
    return f"./databases/{bundle.env_id}.db"


def _schema_tables(statements: Iterable[str]) -> list[JsonValue]:
    """Each table with its indexes and triggers; what belongs to no table (a view) goes with the table before it.

    What stands before the first table, a PRAGMA say, has an entry of its own without a name.
    """
    tables: dict[str, list[JsonValue]] = {}
    last = ""
    for statement in statements:
        created = created_table(statement)
        owner = indexed_table(statement)
        if created is not None and created not in tables:
            last = created
        table = owner if owner in tables else last
        tables.setdefault(table, []).append(terminate(statement) if finished(statement) else statement)
    return [{"name": table, "ddl": first, "indexes": rest} for table, (first, *rest) in tables.items()]


def _data_tables(statements: Iterable[str]) -> list[JsonValue]:
    """Runs of statements on one table, in order: a table that comes back has a second entry, for keys refer to earlier rows."""
    runs: list[tuple[str, list[JsonValue]]] = []
    for statement in statements:
        table = written_table(statement) or (runs[-1][0] if runs else "")
        if not runs or runs[-1][0] != table:
            runs.append((table, []))
        runs[-1][1].append(terminate(statement) if finished(statement) else statement)
    return [{"table_name": table, "insert_statements": inserts} for table, inserts in runs]
