"""The start data: a row an INSERT, in the order of the entities, so that every reference finds its row."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from awm_factory.llm.offline.emit.sql import sql_literal
from awm_factory.llm.offline.ir import Entity
from awm_factory.llm.offline.state import World
from awm_factory.llm.offline.values import Row


def data(world: World, promises: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    tables = []
    for entity in world.domain.entities.values():
        rows = [_insert(entity, row) for row in world.all(entity.role)]
        if rows:
            tables.append(
                {"table_name": entity.plural, "reasoning": entity.about or f"The {entity.nouns}.", "insert_statements": rows}
            )
    return {"tables": tables, "tasks": list(promises)}


def _insert(entity: Entity, row: Row) -> str:
    names = ", ".join(("id", *(column.name for column in entity.columns)))
    values = ", ".join(_literal(row[key]) for key in ("id", *(column.key for column in entity.columns)))
    return f"INSERT INTO {entity.plural} ({names}) VALUES ({values});"


def _literal(value: object) -> str:
    """Moments as SQLAlchemy writes them."""
    if isinstance(value, datetime):
        return f"'{value:%Y-%m-%d %H:%M:%S}.000000'"
    return sql_literal(value)
