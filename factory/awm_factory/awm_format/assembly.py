"""One scenario's records, put together; what is wrong or lost is said, and never stops the other scenarios."""

import re
from collections.abc import Callable
from typing import TypeVar

from pydantic import JsonValue

from awm_factory.awm_format import parts
from awm_factory.awm_format.index import ARTIFACTS, REQUIRED, VERIFIER_FILES, Group, Spot, scenario_name
from awm_factory.awm_format.parts import Verifier
from awm_factory.awm_format.records import AwmRecordSet, BrokenScenario
from awm_factory.bundle import Task
from awm_factory.errors import FormatError
from awm_factory.problems import Problem, Severity
from awm_runtime.contract import Statement, VerifierMode

_T = TypeVar("_T")
_WORLD_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_LOSS = {
    "gen_scenario": "It has no description.",
    "gen_tasks": "It has no tasks: its tools can be served, but there is nothing to train on.",
    "gen_sample": "It has no sample data: its database starts empty.",
    "gen_spec": "It has no API spec, so its endpoints can't be compared with what was planned.",
    "gen_verifier": "It has no verifier: no task of it can be scored.",
}


def assemble(env: str, group: Group, read: Callable[[Spot], dict[str, JsonValue]]) -> AwmRecordSet | BrokenScenario:
    findings = _Findings(env)
    findings.problems += group.problems
    for name in REQUIRED:
        if name not in group.spots and not group.problems:
            findings.add(
                "error",
                env,
                f"There is no record of it in {name}.jsonl.",
                "Finish its generation, or take its other records out.",
            )
    for name in ARTIFACTS:
        if len(places := group.spots.get(name, [])) > 1:
            lines = ", ".join(str(spot.line) for spot in places)
            findings.add("error", f"{name}.jsonl", f"Lines {lines} are all records of {env}.", "Keep one of them.")
    if findings.errors():
        return BrokenScenario(env, findings.errors())

    records = {name: read(group.spots[name][0]) for name in ARTIFACTS if name in group.spots}

    def parse(name: str, function: Callable[[JsonValue], _T], default: _T) -> _T:
        if name not in records:
            findings.add("warning", env, _LOSS[name], f"Add its record to {name}.jsonl.")
            return default
        try:
            return function(records[name])
        except FormatError as error:
            findings.add(
                "error", str(group.spots[name][0]), f"{error}.", "Correct the record, or take the scenario out of the run."
            )
            return default

    scenario, description = group.spellings[0], ""
    if "gen_scenario" in records:
        scenario = scenario_name(records["gen_scenario"], "gen_scenario")
    description = parse("gen_scenario", parts.description, "")
    no_tasks: tuple[list[Task], list[int]] = ([], [])
    no_statements: list[Statement] = []
    tasks, empty = parse("gen_tasks", parts.tasks, no_tasks)
    for position in empty:
        findings.add(
            "warning",
            f"task {position}",
            "It has no text, and is left out.",
            "Write it, or leave it; the others keep their index.",
        )
    schema = parse("gen_db", parts.schema_statements, no_statements)
    data = parse("gen_sample", parts.data_statements, no_statements)
    api_spec = parse("gen_spec", parts.api_spec, None)
    code = parse("gen_envs", parts.app_code, "")
    source: dict[str, JsonValue] = dict(records)
    verifiers = _verifiers(group, read, {task.task_id: task for task in tasks}, source, findings)
    if findings.errors():
        return BrokenScenario(env, findings.errors())
    return AwmRecordSet(
        env_id=env,
        scenario=scenario,
        description=description,
        schema=schema,
        data=data,
        app_code=code,
        api_spec=api_spec,
        tasks=tasks,
        verifiers=verifiers,
        world_time=_take_world_time(source),
        source=source,
        notes=findings.problems,
    )


class _Findings:
    def __init__(self, env: str) -> None:
        self.env = env
        self.problems: list[Problem] = []

    def add(self, severity: Severity, where: str, what: str, fix: str, task_id: int | None = None) -> None:
        what = what[:1].upper() + what[1:]
        self.problems.append(Problem(gate="import", severity=severity, where=where, what=what, fix=fix, task_id=task_id))

    def errors(self) -> list[Problem]:
        return [problem for problem in self.problems if problem.severity == "error"]


def _verifiers(
    group: Group,
    read: Callable[[Spot], dict[str, JsonValue]],
    tasks: dict[int, Task],
    source: dict[str, JsonValue],
    findings: _Findings,
) -> dict[tuple[int, VerifierMode], str]:
    """Several for one task and mode happen: AWM appends when it tries again, so the last counts; and of two files, the one
    that is named for the mode."""
    chosen: dict[tuple[int, VerifierMode], tuple[bool, str]] = {}
    empty: dict[tuple[int, VerifierMode], Spot] = {}
    for file in VERIFIER_FILES:
        spots = group.spots.get(file, [])
        records = [read(spot) for spot in spots]
        if records:
            source[file] = list[JsonValue](records)
        for spot, record in zip(spots, records, strict=True):
            found = _usable(record, spot, tasks, findings)
            if found is None:
                continue
            key, fitting = (found.task_id, found.mode), (found.mode == "code") == file.endswith("pure_code")
            if found.code is None:
                empty[key] = spot
                continue
            before = chosen.get(key)
            if before and before[1] != found.code:
                what = f"Task {key[0]} has an earlier {key[1]} verifier; the later counts, unless its file is for the other mode."
                findings.add("warning", str(spot), what, "Take one of them out.", key[0])
            if not before or fitting >= before[0]:
                chosen[key] = (fitting, found.code)
    for key, spot in empty.items():
        if key not in chosen:
            what = f"It holds no code, so task {key[0]} lacks this verifier."
            findings.add("warning", str(spot), what, "Generate it again.", key[0])
    if not chosen:
        fix = "Add its records to gen_verifier.jsonl or gen_verifier.pure_code.jsonl."
        findings.add("warning", findings.env, _LOSS["gen_verifier"], fix)
    return {key: code for key, (_, code) in chosen.items()}


def _usable(record: JsonValue, spot: Spot, tasks: dict[int, Task], findings: _Findings) -> Verifier | None:
    def note(what: str, fix: str, task_id: int | None = None) -> None:
        findings.add("warning", str(spot), what, fix, task_id)

    try:
        found = parts.verifier(record, spot.file)
    except FormatError as error:
        note(f"{error}; this verifier is left out.", "Correct the record.")
        return None
    task = tasks.get(found.task_id)
    if task is None:
        note(
            f"It verifies task {found.task_id}, which the scenario does not have, and is left out.",
            "Add the task to gen_tasks.jsonl.",
        )
        return None
    if found.code is not None and not found.defined:
        names = " nor ".join(parts.FUNCTIONS)
        note(
            f"Its code defines neither {names}; taken for {found.mode} by its file.", "Correct its function's name.", task.task_id
        )
    if found.instruction is not None and found.instruction.strip() != task.instruction.strip():
        note(
            f"It was written for another wording of task {task.task_id}.", "Compare the two, and generate it again.", task.task_id
        )
    return found


def _take_world_time(source: dict[str, JsonValue]) -> str | None:
    """Ours, and not AWM's: taken out of the record, so that the same run imported for another time has the same source."""
    record = source.get("gen_scenario")
    named = record.get("world_time") if isinstance(record, dict) else None
    if not isinstance(record, dict) or not isinstance(named, str) or not _WORLD_TIME.fullmatch(named):
        return None
    source["gen_scenario"] = {key: value for key, value in record.items() if key != "world_time"}
    return named
