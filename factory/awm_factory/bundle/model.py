"""One environment as a directory of files: what synthesis, import and people write, and image building reads.

    manifest.json  schema.sql  seed.sql  seed.db  app.py  api_spec.json  tasks.jsonl
    verifiers/<task_id>.code.py  verifiers/<task_id>.sql.py
    solutions/<task_id>.json     source/<artifact>.json      (host only: never inside an image)
    certificate.json                                        (outside the digest)

`schema.sql` and `seed.sql` hold one statement after another, each ended by `;` and a newline; `seed.db` is what the
base image makes of the two. Other files in the directory (record.json, a README) are left alone. Identity is content:
see `Bundle.digest`.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import JsonValue

from awm_factory.bundle.disk import replace_files, settle
from awm_factory.bundle.records import MODES, Manifest, Solution, Task
from awm_factory.bundle.sql import canonical, join_statements, split_statements
from awm_factory.certificate import Certificate
from awm_factory.errors import BundleError
from awm_factory.ids import is_env_id
from awm_runtime.contract import VerifierMode

_OWNED = (
    "manifest.json",
    "schema.sql",
    "seed.sql",
    "seed.db",
    "app.py",
    "api_spec.json",
    "tasks.jsonl",
    "certificate.json",
    "verifiers/*.py",
    "solutions/*.json",
    "source/*.json",
)
_NUMBER = re.compile(r"0|[1-9][0-9]*")
_SOURCE_NAME = re.compile(r"[a-z][a-z0-9_.]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_T = TypeVar("_T")


@dataclass(frozen=True)
class Bundle:
    """An environment in memory. Everything but `certificate` is its content."""

    manifest: Manifest
    schema_sql: list[str]
    """Statements without their trailing semicolon, made canonical on construction: one a string, none empty."""
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema_sql", canonical(self.schema_sql))
        object.__setattr__(self, "seed_sql", canonical(self.seed_sql))

    @property
    def env_id(self) -> str:
        return self.manifest.env_id

    def with_(self, **changes: Any) -> Self:
        return replace(self, **changes)

    def files(self) -> dict[str, bytes]:
        """Content that ships, by path inside the bundle: all but seed.db, solutions, source and certificate."""
        files = {
            "manifest.json": _json(self.manifest.model_dump(mode="json"), sort=True),
            "schema.sql": join_statements(self.schema_sql).encode(),
            "seed.sql": join_statements(self.seed_sql).encode(),
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
        """Make `directory` hold this bundle and nothing of an earlier one; a kill at any moment leaves the old or the new."""
        files = self.files() | self._solution_files()
        for name, record in self.source.items():
            if not _SOURCE_NAME.fullmatch(name):
                raise BundleError(f"{name!r} can't name a file in source/; use small letters, digits, `_` and `.`")
            files[f"source/{name}.json"] = _json(record)
        if self.seed_db is not None:
            files["seed.db"] = self.seed_db
        if self.certificate is not None:
            files["certificate.json"] = _json(self.certificate.model_dump(mode="json"), sort=True)
        replace_files(directory, files, _OWNED)

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Raises BundleError, naming the file, where something is missing or malformed."""
        try:
            settle(directory)
        except OSError as error:
            raise BundleError(
                f"{directory}: an interrupted write can't be finished: {error.strerror}; make it writable"
            ) from error
        return cls(
            manifest=_parse(directory / "manifest.json", _manifest),
            schema_sql=_parse(directory / "schema.sql", split_statements),
            seed_sql=_parse(directory / "seed.sql", split_statements),
            app_code=_parse(directory / "app.py", str),
            api_spec=_parse(directory / "api_spec.json", json.loads),
            tasks=_parse(directory / "tasks.jsonl", _tasks),
            verifiers={_verifier_key(path): _parse(path, str) for path in sorted((directory / "verifiers").glob("*.py"))},
            solutions={
                _task_id(path, path.stem): _parse(path, Solution.model_validate_json)
                for path in sorted((directory / "solutions").glob("*.json"))
            },
            source={path.stem: _parse(path, json.loads) for path in sorted((directory / "source").glob("*.json"))},
            seed_db=_read(directory / "seed.db") if (directory / "seed.db").exists() else None,
            certificate=(
                _parse(directory / "certificate.json", Certificate.model_validate_json)
                if (directory / "certificate.json").exists()
                else None
            ),
        )


def _manifest(text: str) -> Manifest:
    manifest = Manifest.model_validate_json(text)
    if not is_env_id(manifest.env_id):
        raise ValueError(f"{manifest.env_id!r} is no env_id (small letters, digits and single underscores, at most 63)")
    return manifest


def _tasks(text: str) -> list[Task]:
    """Lines end at newlines only: an instruction may hold other characters that `splitlines` takes for line ends."""
    tasks = [Task.model_validate_json(line) for line in text.split("\n") if line.strip()]
    if twice := [task_id for task_id, count in Counter(task.task_id for task in tasks).items() if count > 1]:
        raise ValueError(f"task_id {twice[0]} stands there twice")
    return tasks


def _verifier_key(path: Path) -> tuple[int, VerifierMode]:
    task_id, _, mode = path.stem.partition(".")
    for known in MODES:
        if mode == known:
            return _task_id(path, task_id), known
    raise BundleError(f"{path}: a verifier is named <task_id>.code.py or <task_id>.sql.py; rename it")


def _task_id(path: Path, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise BundleError(f"{path}: its name must begin with a task_id, a plain number; rename it")
    return int(text)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise BundleError(f"{path} is missing; a bundle needs it, write it or import the environment again") from None
    except OSError as error:
        raise BundleError(f"{path} can't be read: {error.strerror}; look at its type and permissions") from error


def _parse(path: Path, parse: Callable[[str], _T]) -> _T:
    """Decoded by hand, for text mode turns the `\\r\\n` inside a string of the code into `\\n`."""
    try:
        return parse(_read(path).decode())
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path} is malformed: {error}; correct it, or import the environment again") from error


def _json(value: Any, *, sort: bool = False) -> bytes:
    return dump_json(value, indent=1, sort=sort)


def _line(value: Any) -> bytes:
    return dump_json(value, sort=True)


def dump_json(value: Any, *, indent: int | None = None, sort: bool = False) -> bytes:
    """UTF-8 and a newline. Keys keep their author's order unless `sort`.

    Half a character, which models produce when cut off, is legal in JSON as an escape only.
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False, sort_keys=sort) + "\n"
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text).encode()


def _digest(files: dict[str, bytes]) -> str:
    total = hashlib.sha256()
    for name in sorted(files):
        content = files[name]
        total.update(f"{name}\0{len(content)}\0".encode())
        total.update(content)
    return total.hexdigest()
