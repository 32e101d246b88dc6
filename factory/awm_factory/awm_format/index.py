"""Where each scenario's records stand in a run's files: one pass over every file, and only positions are kept."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import JsonValue

from awm_factory.errors import FormatError, UsageError
from awm_factory.ids import env_id
from awm_factory.problems import Problem

Progress = Callable[[int, int | None], None]
"""Called with environments done, and their number where it is known."""

ARTIFACTS = ("gen_scenario", "gen_tasks", "gen_db", "gen_sample", "gen_spec", "gen_envs")
"""Files that hold one record a scenario."""
VERIFIER_FILES = ("gen_verifier", "gen_verifier.pure_code")
"""Files that hold one record a task; a run may have both."""
REQUIRED = ("gen_db", "gen_envs")

_HEAD = re.compile(rb'\s*\{\s*"(?:scenario|name)"\s*:\s*("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True, slots=True)
class Spot:
    """One record's place."""

    file: str
    line: int
    offset: int
    length: int

    def __str__(self) -> str:
        return f"{self.file}.jsonl:{self.line}"


@dataclass
class Group:
    """All that a run holds of one scenario."""

    spellings: list[str] = field(default_factory=list)
    spots: dict[str, list[Spot]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add(self, spelling: str, spot: Spot) -> None:
        if spelling not in self.spellings:
            self.spellings.append(spelling)
        self.spots.setdefault(spot.file, []).append(spot)

    def has_body(self) -> bool:
        return any(name in self.spots for name in REQUIRED)


@dataclass
class RunIndex:
    groups: dict[str, Group] = field(default_factory=dict)
    """By env_id, in order of first appearance."""
    problems: list[Problem] = field(default_factory=list)
    """Lines that can't be told to be any scenario's."""


def index_run(directory: Path) -> RunIndex:
    """Raises FormatError if the directory is none of an AWM run, or a file of it can't be read."""
    missing = [f"{name}.jsonl" for name in REQUIRED if not (directory / f"{name}.jsonl").is_file()]
    if missing:
        raise FormatError(
            f"{directory} is no AWM run: it has no {' and no '.join(missing)}; name the folder that holds the gen_*.jsonl"
        )
    index = RunIndex()
    for file in (*ARTIFACTS, *VERIFIER_FILES):
        for spot, raw in _lines(directory, file):
            _place(index, spot, raw)
    _adopt_orphans(index)
    return index


def _lines(directory: Path, file: str) -> Iterator[tuple[Spot, bytes]]:
    path = directory / f"{file}.jsonl"
    offset = 0
    try:
        with path.open("rb") as lines:
            for number, raw in enumerate(lines, 1):
                if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
                    offset, raw = 3, raw[3:]
                if raw.strip():
                    yield Spot(file, number, offset, len(raw)), raw
                offset += len(raw)
    except FileNotFoundError:
        return
    except OSError as error:
        raise FormatError(f"{path} can't be read: {error.strerror}; look at its type and permissions") from error


def _place(index: RunIndex, spot: Spot, raw: bytes) -> None:
    name, complaint = None, ""
    try:
        name = scenario_name(parse_record(raw), spot.file)
        env = env_id(name)
    except (FormatError, UsageError) as error:
        complaint = str(error)
        env = _recover(raw)
    if name is not None and not complaint:
        index.groups.setdefault(env, Group()).add(name, spot)
        return
    problem = Problem(
        gate="import",
        severity="error",
        where=str(spot),
        what=f"{complaint[:1].upper()}{complaint[1:]}.",
        fix="Correct the line, or take it out to import without it.",
    )
    if env:
        index.groups.setdefault(env, Group()).problems.append(problem)
    else:
        index.problems.append(problem)


def _recover(raw: bytes) -> str:
    """Whose a malformed line is, so that this one fails instead of being imported without it. Empty if that can't be told."""
    head = _HEAD.match(raw)
    try:
        return env_id(json.loads(head[1])) if head else ""
    except (ValueError, UsageError):
        return ""


def _adopt_orphans(index: RunIndex) -> None:
    """AWM writes some files under a name where all that is no letter or digit became `_`; for a name with other characters
    that is no longer our env_id. Such records belong to the one scenario that AWM would write so."""
    owners: dict[str, list[Group]] = {}
    for group in index.groups.values():
        if group.has_body():
            for form in {_awm_form(spelling) for spelling in group.spellings}:
                owners.setdefault(form, []).append(group)
    for env, group in list(index.groups.items()):
        candidates = owners.get(env, [])
        if not group.has_body() and len(candidates) == 1:
            del index.groups[env]
            candidates[0].problems += group.problems
            for spots in group.spots.values():
                for spot in spots:
                    candidates[0].add(group.spellings[0], spot)


def _awm_form(name: str) -> str:
    return "_".join(re.findall("[a-z0-9]+", name.lower()))


def parse_record(raw: bytes) -> dict[str, JsonValue]:
    """Raises FormatError, without the place, for what is not one JSON object."""
    try:
        record = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the line is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise FormatError(f"the line holds a JSON {type(record).__name__}, not an object")
    return record


def scenario_name(record: dict[str, JsonValue], file: str) -> str:
    keys = ("name", "scenario") if file == "gen_scenario" else ("scenario", "name")
    for key in keys:
        if isinstance(name := record.get(key), str):
            return name
    raise FormatError(f"the record has no `{keys[0]}` that is a text")
