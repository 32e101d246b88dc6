"""A bundle's SQL as the checks want it: each statement with the table it belongs to and its place among that table's."""

from collections import Counter
from collections.abc import Iterable

from awm_factory.bundle import table_of
from awm_runtime.contract import Statement


def numbered(statements: Iterable[str]) -> list[Statement]:
    places: Counter[str] = Counter()
    result = []
    for sql in statements:
        table = table_of(sql)
        result.append(Statement(sql=sql, table=table, index=places[table]))
        places[table] += 1
    return result
