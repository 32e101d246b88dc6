"""One environment as a directory of files: what synthesis, import and people write, and image building reads.

    manifest.json  schema.sql  seed.sql  seed.db  app.py  api_spec.json  tasks.jsonl
    verifiers/<task_id>.code.py  verifiers/<task_id>.sql.py
    solutions/<task_id>.json     source/<artifact>.json      (host only: never inside an image)
    certificate.json                                        (outside the digest)

`schema.sql` and `seed.sql` hold one statement after another, each ended by `;` and a newline; `seed.db` is what the
base image makes of the two. Identity is content: see `Bundle.digest`.
"""

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from awm_factory.certificate import Certificate
from awm_factory.errors import BundleError
from awm_factory.ids import is_env_id
from awm_runtime.contract import WORLD_TIME, ToolCall, VerifierMode

Origin = Literal["handwritten", "imported", "synthesized"]
MODES: tuple[VerifierMode, ...] = ("code", "sql")


class Mending(BaseModel):
    """A difference between the tools served and what fastapi-mcp would make of the same app."""

    model_config = ConfigDict(frozen=True)

    tool: str
    kind: Literal["omitted", "renamed", "null_allowed", "schema_repaired"]
    why: str


class Manifest(BaseModel):
    model_config = ConfigDict(frozen=True)

    format: Literal[1] = 1
    env_id: str
    scenario: str
    description: str = ""
    origin: Origin
    world_time: str = WORLD_TIME
    tools: list[str] = []
    """Names on the MCP wire, sorted; filled by the check that lists them in the sandbox."""
    renamed: dict[str, str] = {}
    """Name on the wire to operation id, where the two differ."""
    mendings: list[Mending] = []
    dump_sha256: str = ""
    """Canonical dump of the seeded database; stands for seed.db in the bundle digest."""


class Task(BaseModel):
    model_config = ConfigDict(frozen=True)

    task_id: int = Field(ge=0)
    instruction: str


class Solution(BaseModel):
    """Reference trajectory of one task."""

    model_config = ConfigDict(frozen=True)

    calls: list[ToolCall]
    final_answer: str | None = None


@dataclass(frozen=True)
class Bundle:
    """An environment in memory. Everything but `certificate` is its content."""

    manifest: Manifest
    schema_sql: list[str]
    """Statements without their trailing semicolon."""
    seed_sql: list[str]
    app_code: str
    api_spec: JsonValue = None
    tasks: list[Task] = field(default_factory=list)
    verifiers: dict[tuple[int, VerifierMode], str] = field(default_factory=dict)
    solutions: dict[int, Solution] = field(default_factory=dict)
    source: dict[str, JsonValue] = field(default_factory=dict)
    """Imported records as they came, by artifact name (`gen_db`, `gen_envs`, …)."""
    seed_db: bytes | None = None
    certificate: Certificate | None = None

    @property
    def env_id(self) -> str:
        return self.manifest.env_id

    def with_(self, **changes: Any) -> Self:
        return replace(self, **changes)

    def files(self) -> dict[str, bytes]:
        """Content that ships, by path inside the bundle: all but seed.db, solutions, source and certificate."""
        files = {
            "manifest.json": _json(self.manifest.model_dump(mode="json")),
            "schema.sql": _statements(self.schema_sql),
            "seed.sql": _statements(self.seed_sql),
            "app.py": self.app_code.encode(),
            "api_spec.json": _json(self.api_spec),
            "tasks.jsonl": b"".join(_line(task.model_dump(mode="json")) for task in self.tasks),
        }
        for (task_id, mode), code in self.verifiers.items():
            files[f"verifiers/{task_id}.{mode}.py"] = code.encode()
        return files

    def digest(self) -> str:
        """SHA-256 over the shipped files, hex. The database counts by its SQL and canonical dump, never by its bytes."""
        return _digest(self.files())

    def solutions_digest(self) -> str:
        return _digest(self._solution_files())

    def _solution_files(self) -> dict[str, bytes]:
        return {f"solutions/{task_id}.json": _json(s.model_dump(mode="json")) for task_id, s in self.solutions.items()}

    def write(self, directory: Path) -> None:
        """Replace `directory` by this bundle as a whole: written beside it first, then renamed.

        `record.json`, the catalogue's, is carried over.
        """
        files = self.files() | self._solution_files()
        files |= {f"source/{name}.json": _json(record) for name, record in self.source.items()}
        if self.seed_db is not None:
            files["seed.db"] = self.seed_db
        if self.certificate is not None:
            files["certificate.json"] = _json(self.certificate.model_dump(mode="json"))
        record = directory / "record.json"
        if record.is_file():
            files["record.json"] = record.read_bytes()
        directory.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
        try:
            temporary.chmod(0o755)
            for name, content in files.items():
                path = temporary / name
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(content)
            if directory.exists():
                retired = temporary / ".old"
                os.rename(directory, retired)
                for name in list(files):
                    (retired / name).unlink(missing_ok=True)
            os.rename(temporary, directory)
            shutil.rmtree(directory / ".old", ignore_errors=True)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Raises BundleError, naming the file, where something is missing or malformed."""
        try:
            manifest = Manifest.model_validate_json(_read(directory / "manifest.json"))
            if not is_env_id(manifest.env_id):
                raise BundleError(f"{directory / 'manifest.json'}: {manifest.env_id!r} is no env_id; see `awm_factory.ids`")
            tasks = [Task.model_validate_json(line) for line in _read(directory / "tasks.jsonl").splitlines() if line.strip()]
            verifiers = {}
            for path in sorted((directory / "verifiers").glob("*.py")):
                task_id, _, mode = path.stem.partition(".")
                if mode not in MODES or not task_id.isdigit():
                    raise BundleError(f"{path}: a verifier is named <task_id>.code.py or <task_id>.sql.py; rename it")
                verifiers[int(task_id), mode] = _read(path)
            return cls(
                manifest=manifest,
                schema_sql=split_statements(_read(directory / "schema.sql")),
                seed_sql=split_statements(_read(directory / "seed.sql")),
                app_code=_read(directory / "app.py"),
                api_spec=json.loads(_read(directory / "api_spec.json")),
                tasks=tasks,
                verifiers=verifiers,
                solutions={
                    int(path.stem): Solution.model_validate_json(_read(path)) for path in sorted((directory / "solutions").glob("*.json"))
                },
                source={path.stem: json.loads(_read(path)) for path in sorted((directory / "source").glob("*.json"))},
                seed_db=(directory / "seed.db").read_bytes() if (directory / "seed.db").is_file() else None,
                certificate=(
                    Certificate.model_validate_json(_read(directory / "certificate.json"))
                    if (directory / "certificate.json").is_file()
                    else None
                ),
            )
        except (ValidationError, ValueError) as error:
            raise BundleError(f"{directory} is not a readable bundle: {error}; write it anew or import it again") from error


def split_statements(sql: str) -> list[str]:
    """Statements of a script, without their trailing semicolons and surrounding space; comments stay with what follows them.

    A semicolon inside a string, a comment or a trigger's body ends nothing: SQLite's own `complete_statement` decides.
    """
    import sqlite3

    statements, start = [], 0
    for position, character in enumerate(sql):
        if character == ";" and sqlite3.complete_statement(sql[start : position + 1]):
            statements.append(sql[start:position].strip())
            start = position + 1
    statements.append(sql[start:].strip())
    return [statement for statement in statements if statement]


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BundleError(f"{path} is missing; a bundle needs it, write it or import the environment again") from None


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def _line(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, sort_keys=True) + "\n").encode()


def _statements(statements: list[str]) -> bytes:
    return "".join(f"{statement};\n" for statement in statements).encode()


def _digest(files: dict[str, bytes]) -> str:
    total = hashlib.sha256()
    for name in sorted(files):
        content = files[name]
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()
