"""Drafts as files of an AWM run, whole or in part: what `--only` and `--from` read, and what a run of some stages writes.

`awm_format` imports and exports finished environments; here any stage may be the last one that there is.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue

from awm_factory.awm_format.derive import derived_record, derived_verifier
from awm_factory.bundle import Solution, dump_json, write_file
from awm_factory.errors import AnswerError, FormatError
from awm_factory.ids import env_id
from awm_factory.synthesis.artifacts import SampleData, Scenario, Schema, TaskList, VerifierPair, validated
from awm_factory.synthesis.draft import Draft

FILES: Final = {
    "scenario": "gen_scenario",
    "tasks": "gen_tasks",
    "schema": "gen_db",
    "data": "gen_sample",
    "spec": "gen_spec",
    "code": "gen_envs",
}
_CODE: Final = "gen_verifier.pure_code"
_SQL: Final = "gen_verifier"
_SOLUTIONS: Final = "gen_solution"
"""Solutions are not AWM's: the file is ours."""


def read_drafts(directory: Path, world_time: str) -> list[Draft]:
    """Every scenario of the run's files, with what there is of it. Raises FormatError that names file and line."""
    drafts = {
        env_id(name): Draft(
            scenario=Scenario(
                name=name, description=str(record.get("description") or ""), category=str(record.get("category") or "")
            ),
            world_time=str(record.get("world_time") or world_time),
        )
        for name, record in _records(directory, "gen_scenario")
    }
    for stage, file in FILES.items():
        if stage == "scenario":
            continue
        for name, record in _records(directory, file):
            key = env_id(name)
            draft = drafts.setdefault(key, Draft(scenario=Scenario(name=name), world_time=world_time))
            drafts[key] = draft.with_(**{stage: _artifact(stage, record, directory / f"{file}.jsonl")})
    for name, record in _records(directory, _CODE):
        _add_verifier(drafts, name, record, "code")
    for name, record in _records(directory, _SQL):
        _add_verifier(drafts, name, record, "code" if "def verify_task_completion" in _code(record) else "sql")
    for name, record in _records(directory, _SOLUTIONS):
        known = drafts.get(env_id(name))
        if known is not None:
            solutions = {**known.solutions, int(record["task_idx"]): Solution.model_validate(record["solution"])}
            drafts[env_id(name)] = known.with_(solutions=solutions)
    return list(drafts.values())


def write_drafts(drafts: Iterable[Draft], directory: Path) -> None:
    """One file an artifact, a record a scenario, in the drafts' order; what no draft has makes no file."""
    lines: dict[str, list[bytes]] = {}
    for draft in drafts:
        bundle = draft.bundle()
        for stage, file in FILES.items():
            record = derived_record(bundle, file) if stage == "scenario" or draft.has(stage) else None
            if record is not None:
                if stage == "scenario" and draft.scenario.category:
                    record = record | {"category": draft.scenario.category}
                lines.setdefault(file, []).append(dump_json(record))
        for task_id, mode in bundle.verifiers:
            file = _CODE if mode == "code" else _SQL
            lines.setdefault(file, []).append(dump_json(derived_verifier(bundle, task_id, mode)))
        for task_id, solution in bundle.solutions.items():
            entry = {"scenario": bundle.manifest.scenario, "task_idx": task_id, "solution": solution.model_dump(mode="json")}
            lines.setdefault(_SOLUTIONS, []).append(dump_json(entry))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for file, records in lines.items():
            write_file(directory / f"{file}.jsonl", b"".join(records))
    except OSError as error:
        raise FormatError(f"{directory} can't be written: {error.strerror}; free space, or name another folder") from error


def _records(directory: Path, file: str) -> Iterable[tuple[str, Mapping[str, Any]]]:
    path = directory / f"{file}.jsonl"
    if not path.is_file():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            yield str(record["name"] if file == "gen_scenario" else record["scenario"]), record
        except (ValueError, KeyError, TypeError) as error:
            raise FormatError(f"{path}, line {number} is no record of a scenario: {error!r}; correct it") from error


def _artifact(stage: str, record: Mapping[str, Any], path: Path) -> Any:
    try:
        match stage:
            case "tasks":
                return tuple(validated(TaskList, {"tasks": record["tasks"]}, "task list").tasks)
            case "schema":
                return validated(Schema, record["db_schema"], "schema")
            case "data":
                return validated(SampleData, record["sample_data"], "sample data")
            case "spec":
                return record["api_spec"]
            case _:
                return str(record["full_code"])
    except (KeyError, AnswerError) as error:
        raise FormatError(f"{path}: {error} (in {record.get('scenario')}); correct the record") from error


def _add_verifier(drafts: dict[str, Draft], name: str, record: Mapping[str, Any], mode: str) -> None:
    draft = drafts.get(env_id(name))
    if draft is None:
        return
    task_id = int(record["task_idx"])
    pair = draft.verifiers.get(task_id, VerifierPair()).model_copy(update={mode: _code(record)})
    drafts[env_id(name)] = draft.with_(verifiers={**draft.verifiers, task_id: pair})


def _code(record: Mapping[str, Any]) -> str:
    verification: JsonValue = record.get("verification")
    return str(verification.get("code") or "") if isinstance(verification, dict) else ""
