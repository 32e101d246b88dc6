"""The schema in AWM's form: a table an entity, with its constraints, and an index for every reference."""

from typing import Any, Final

from awm_factory.llm.offline.emit.sql import check_sql, invariants, sql_literal
from awm_factory.llm.offline.ir import Column, Domain, Entity

_TYPES: Final = {
    "int": "INTEGER",
    "money": "INTEGER",
    "ref": "INTEGER",
    "text": "TEXT",
    "choice": "TEXT",
    "date": "DATE",
    "datetime": "DATETIME",
    "bool": "BOOLEAN",
}


def schema(domain: Domain) -> dict[str, Any]:
    """Tables as a model would answer them, and besides, for the gates, the invariants that they keep."""
    tables = domain.entities.values()
    return {
        "tables": [{"name": entity.plural, "ddl": _table(domain, entity), "indexes": _indexes(entity)} for entity in tables],
        "invariants": invariants(domain),
    }


def _table(domain: Domain, entity: Entity) -> str:
    lines = ["id INTEGER PRIMARY KEY", *(_column(column) for column in entity.columns)]
    lines += [f"UNIQUE ({', '.join(entity.column(key).name for key in unique)})" for unique in entity.uniques]
    states = domain.states.get(entity.role.partition(".")[0], {})
    lines += [f"CHECK ({check_sql(check, entity, states)})" for check in entity.checks]
    for column in entity.columns:
        if column.kind == "ref":
            target = domain.entity(column.ref).plural
            rule = "CASCADE" if column.owned else "RESTRICT"
            lines.append(f"FOREIGN KEY ({column.name}) REFERENCES {target} (id) ON DELETE {rule}")
    return f"CREATE TABLE {entity.plural} (\n    " + ",\n    ".join(lines) + "\n)"


def _column(column: Column) -> str:
    words = [column.name, _TYPES[column.kind]]
    if not column.null:
        words.append("NOT NULL")
    if column.unique:
        words.append("UNIQUE")
    if column.kind == "choice":
        words.append(f"CHECK ({column.name} IN ({', '.join(sql_literal(value) for value in column.choices)}))")
    elif column.kind == "bool":
        words.append(f"CHECK ({column.name} IN (0, 1))")
    elif column.low is not None and column.high is not None:
        words.append(f"CHECK ({column.name} BETWEEN {column.low} AND {column.high})")
    elif column.kind != "text" and column.low is not None:
        words.append(f"CHECK ({column.name} >= {column.low})")
    elif column.kind != "text" and column.high is not None:
        words.append(f"CHECK ({column.name} <= {column.high})")
    return " ".join(words)


def _indexes(entity: Entity) -> list[str]:
    leading = {unique[0] for unique in entity.uniques}
    return [
        f"CREATE INDEX ix_{entity.plural}_{column.name} ON {entity.plural} ({column.name})"
        for column in entity.columns
        if column.kind == "ref" and not column.unique and column.key not in leading
    ]
