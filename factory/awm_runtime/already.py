"""Rows of the start by which a verifier finds its task done before anybody acts: without one of them it says so no more."""

import base64
import json
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from awm_runtime import batches, confine, dump, judging
from awm_runtime.children import ChildFailed
from awm_runtime.contract import VerifierSource

_LIMIT: Final = 10.0
_TRIED: Final = 256
"""Tables or rows that are left out one by one, at most."""
_SECONDS: Final = 10.0
"""What the verifier may take over all of them, by what one look takes it."""
_BYTES: Final = 1 << 26
"""What the databases made so may amount to."""
_TOLD: Final = 5


def satisfying(source: VerifierSource, initial: bytes, now: float, look: float) -> list[str]:
    """`listings id 1`; a table's name where only all of its rows together make the difference, nothing where no table does.

    `look`: seconds that the verifier takes for one.
    """
    most = int(min(_TRIED, _SECONDS / max(look, 0.01), _BYTES / len(initial)))
    tables = _missed(source, initial, now, most, None)
    rows = _missed(source, initial, now, most, tables) if tables else []
    return (rows or tables)[:_TOLD]


def _missed(source: VerifierSource, initial: bytes, now: float, most: int, tables: Sequence[str] | None) -> list[str]:
    """What must not be missing from the end: tables as a whole, or rows of those tables."""

    def cut() -> bytes:
        cuts = islice(_each_cut(initial, tables), most)
        return json.dumps([(name, base64.b64encode(left).decode()) for name, left in cuts]).encode()

    def prepare(_note: batches.Note) -> batches.Piece:
        confine.confine(confine.python_paths(), confine.Limits(memory=1 << 30), may_fork=False)
        return lambda _: cut()

    (made,) = batches.each(1, batches.forked(prepare), _LIMIT).pieces
    if isinstance(made, ChildFailed):
        return []
    cuts = [(name, base64.b64decode(left)) for name, left in json.loads(made)]
    verdicts = judging.verdicts(source, initial, [judging.End(left, "", now) for _, left in cuts])
    return [name for (name, _), verdict in zip(cuts, verdicts, strict=True) if verdict.classification != "complete"]


def _each_cut(initial: bytes, tables: Sequence[str] | None) -> Iterator[tuple[str, bytes]]:
    """The start without the rows of one table, for each; of tables that are named, without one row, for each of their rows."""
    whole = dump.open_bytes(initial)
    for layout in dump.layouts(whole):
        table = dump.quote(layout.name)
        if tables is None:
            yield from _cut(initial, layout.name, f"DELETE FROM {table}", ())
        elif layout.name in tables:
            key = ", ".join(dump.quote(name) for name in layout.key)
            where = " AND ".join(f"{dump.quote(name)} IS ?" for name in layout.key)
            for row in whole.execute(f"SELECT {key} FROM {table} ORDER BY {key} LIMIT {_TRIED}").fetchall():
                told = ", ".join(f"{name} {value!r}" for name, value in zip(layout.key, row, strict=True))
                yield from _cut(initial, f"{layout.name} {told}", f"DELETE FROM {table} WHERE {where}", row)


def _cut(initial: bytes, name: str, sql: str, values: Sequence[object]) -> Iterator[tuple[str, bytes]]:
    copy = dump.open_bytes(initial)
    try:
        gone = copy.execute(sql, values).rowcount
        copy.commit()
    except sqlite3.Error:
        return
    if gone:
        yield name, copy.serialize()
