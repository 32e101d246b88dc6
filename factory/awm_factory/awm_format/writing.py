"""Bundles as an AWM run: records as they came where they still hold, made from the bundle where they don't."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from awm_factory.awm_format import parts
from awm_factory.awm_format.derive import derived_record, derived_verifier
from awm_factory.awm_format.index import ARTIFACTS, VERIFIER_FILES, Progress
from awm_factory.awm_format.source import imported_digests, part_digests, verifier_part
from awm_factory.bundle import Bundle, dump_json
from awm_factory.errors import FormatError, UsageError
from awm_runtime.contract import WORLD_TIME


@dataclass(frozen=True)
class ExportRow:
    env_id: str
    derived: list[str]
    """Records made from the bundle, because it has none or they no longer hold: `gen_db`, `gen_verifier/3.code`."""
    lost: list[str]
    """What AWM's format has no place for."""


def write_run(bundles: Iterable[Bundle], out_dir: Path, progress: Progress | None = None) -> list[ExportRow]:
    """Write `out_dir`, which must be new or empty; it appears as a whole when all is written. One bundle in memory at a time.

    Raises UsageError for a folder in use or an environment that comes twice, FormatError if writing fails.
    """
    report = progress or (lambda _done, _total: None)
    if out_dir.exists() and (not out_dir.is_dir() or any(out_dir.iterdir())):
        raise UsageError(f"{out_dir} exists and is not an empty folder; name a new one to export to")
    rows: list[ExportRow] = []
    try:
        out_dir.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{out_dir.name}.", dir=out_dir.parent))
        try:
            _fill(staging, bundles, rows, report)
            staging.chmod(0o755)
            if out_dir.exists():
                out_dir.rmdir()
            staging.rename(out_dir)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise FormatError(f"{out_dir} can't be written: {error.strerror}; free space, or name another folder") from error
    return rows


def _fill(staging: Path, bundles: Iterable[Bundle], rows: list[ExportRow], report: Progress) -> None:
    (staging / "databases").mkdir()
    with ExitStack() as stack:
        files = {name: stack.enter_context((staging / f"{name}.jsonl").open("wb")) for name in (*ARTIFACTS, VERIFIER_FILES[0])}
        for bundle in bundles:
            report(len(rows), None)
            if any(row.env_id == bundle.env_id for row in rows):
                raise UsageError(f"{bundle.env_id} comes twice in one export; name each environment once")
            row = ExportRow(bundle.env_id, [], [f"solutions of {len(bundle.solutions)} tasks"] if bundle.solutions else [])
            for name, record in _records(bundle, row.derived):
                if name not in files:
                    files[name] = stack.enter_context((staging / f"{name}.jsonl").open("wb"))
                files[name].write(dump_json(record))
            if bundle.seed_db is not None:
                (staging / "databases" / f"{bundle.env_id}.db").write_bytes(bundle.seed_db)
            rows.append(row)
    report(len(rows), len(rows))


def _records(bundle: Bundle, derived: list[str]) -> Iterator[tuple[str, JsonValue]]:
    then, now = imported_digests(bundle), part_digests(bundle)
    moved = bundle.manifest.world_time != WORLD_TIME
    for name in ARTIFACTS:
        if then.get(name) == now[name]:
            record = bundle.source.get(name)
        else:
            record = derived_record(bundle, name)
            derived.append(name)
        if name == "gen_scenario" and moved:
            base = record if isinstance(record, dict) else derived_record(bundle, name) or {}
            record = base | {"world_time": bundle.manifest.world_time}
        if record is not None:
            yield name, record
    yield from _verifier_records(bundle, then, now, derived)


def _verifier_records(
    bundle: Bundle, then: dict[str, str], now: dict[str, str], derived: list[str]
) -> Iterator[tuple[str, JsonValue]]:
    for file in VERIFIER_FILES:
        records = bundle.source.get(file)
        for record in records if isinstance(records, list) else []:
            part = _part(record, file)
            if part is None or then.get(part) == now.get(part):
                yield file, record
    for task_id, mode in sorted(bundle.verifiers):
        part = verifier_part(task_id, mode)
        if then.get(part) != now[part]:
            derived.append(part)
            yield ("gen_verifier.pure_code" if mode == "code" else "gen_verifier"), derived_verifier(bundle, task_id, mode)


def _part(record: JsonValue, file: str) -> str | None:
    try:
        found = parts.verifier(record, file)
    except FormatError:
        return None
    return verifier_part(found.task_id, found.mode) if found.code is not None else None
