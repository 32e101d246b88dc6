"""Writes three whole environments of the offline author to docs/examples-offline: `.venv/bin/python docs/generate_examples.py`.

They are the first three of the packs' hundred in the order of SEED, which `awm-factory synth --count 3` takes as well.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from awm_factory.llm.offline.author import Author
from awm_factory.llm.offline.catalogue import shuffled
from awm_factory.llm.offline.plan import PlannedTask

FOLDER: Final = Path(__file__).with_name("examples-offline")
SEED: Final = 0
COUNT: Final = 3
_SHOWN: Final = 3
"""Rows of a table on the page; seed.sql has all."""
_WIDEST: Final = 7
"""Columns of a table on the page."""

HEAD: Final = """# Three environments of the offline author

The first three of a shuffle of the packs' hundred scenarios, in the order of seed 0: the same that `awm-factory synth --count 3`
writes. Nothing is chosen or touched up: `docs/generate_examples.py` writes these files, and a test holds them to what the author
writes today.

| environment | tables | rows | tools | lines of code | tasks |
| --- | --- | --- | --- | --- | --- |
"""


def files() -> dict[str, str]:
    """By path beneath FOLDER."""
    found: dict[str, str] = {}
    index = HEAD
    for env_id in shuffled(SEED)[:COUNT]:
        author = Author(env_id)
        statements = [sql for table in author.data["tables"] for sql in table["insert_statements"]]
        ddl = [sql for table in author.schema["tables"] for sql in (table["ddl"], *table["indexes"])]
        found[f"{env_id}/app.py"] = author.code
        found[f"{env_id}/schema.sql"] = "".join(f"{sql};\n" for sql in ddl)
        found[f"{env_id}/seed.sql"] = "".join(f"{sql};\n" for sql in statements)
        found[f"{env_id}/README.md"] = "\n".join(_page(author)) + "\n"
        found[f"{env_id}/verifier.py"] = author.tasks[0].code_verifier
        index += (
            f"| [{author.pack.name}]({env_id}/README.md) | {len(author.domain.entities)} | {len(statements)} "
            f"| {len(author.domain.operations)} | {len(author.code.splitlines())} | {len(author.tasks)} |\n"
        )
    return {"README.md": index, **found}


def _page(author: Author) -> Iterator[str]:
    yield f"# {author.pack.name}\n"
    yield f"{author.pack.description}\n"
    yield "Code: [app.py](app.py). Data: [schema.sql](schema.sql), [seed.sql](seed.sql). Verifier: [verifier.py](verifier.py).\n"
    yield "## Tasks\n"
    for number, task in enumerate(author.tasks):
        yield from _task(number, task)
    yield "## Data\n"
    yield f"Up to {_SHOWN} rows and {_WIDEST} columns of each table.\n"
    for entity in author.domain.entities.values():
        rows = list(author.world.all(entity.role))
        columns = [column for column in entity.columns if not column.null][:_WIDEST] or list(entity.columns[:_WIDEST])
        yield f"**{entity.plural}**, {len(rows)} rows\n"
        yield f"| id | {' | '.join(column.name for column in columns)} |"
        yield f"|{' --- |' * (len(columns) + 1)}"
        for row in rows[:_SHOWN]:
            yield f"| {row['id']} | {' | '.join(str(row[column.key]) for column in columns)} |"
        yield ""
    yield "## Tools\n"
    for operation in author.domain.operations.values():
        yield f"- `{operation.name}`: {operation.summary}"


def _task(number: int, task: PlannedTask) -> Iterator[str]:
    hard = task.difficulty
    yield f"{number}. {task.instruction}\n"
    yield f"   *{hard.kind}, level {hard.level}.* By the reference solution:\n"
    for call in task.solution.calls:
        yield f"   - `{call.tool}({json.dumps(call.arguments, ensure_ascii=False)})`"
    yield f"   - *{task.solution.final_answer}*\n"


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    for path, text in files().items():
        (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
