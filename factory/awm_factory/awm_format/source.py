"""Whether an imported record still says what the bundle says.

seed.sql holds evaluated literals, so it can't be compared to the record it came from. Instead an import notes a digest of
what it made of each record; a bundle that was changed since differs from it, and its record is never exported again.
"""

import hashlib
import json
from typing import Any

from awm_factory.awm_format.records import AwmRecordSet
from awm_factory.bundle import Bundle

DIGESTS = "digests"
"""Name in `Bundle.source`, among the records."""


def part_digests(bundle: Bundle) -> dict[str, str]:
    """SHA-256 of each part of a bundle, by the record it stands for; verifiers one by one."""
    instructions = {task.task_id: task.instruction for task in bundle.tasks}
    parts: dict[str, Any] = {
        "gen_scenario": [bundle.manifest.scenario, bundle.manifest.description],
        "gen_tasks": sorted(instructions.items()),
        "gen_db": bundle.schema_sql,
        "gen_sample": bundle.seed_sql,
        "gen_spec": bundle.api_spec,
        "gen_envs": bundle.app_code,
    }
    for (task_id, mode), code in bundle.verifiers.items():
        parts[verifier_part(task_id, mode)] = [instructions.get(task_id), code]
    return {name: hashlib.sha256(json.dumps([bundle.env_id, part]).encode()).hexdigest() for name, part in parts.items()}


def verifier_part(task_id: int, mode: str) -> str:
    return f"gen_verifier/{task_id}.{mode}"


def imported_digests(bundle: Bundle) -> dict[str, str]:
    """As noted by the import; empty for a bundle that was never imported."""
    noted = bundle.source.get(DIGESTS)
    return {name: value for name, value in noted.items() if isinstance(value, str)} if isinstance(noted, dict) else {}


def came_from(bundle: Bundle, records: AwmRecordSet) -> bool:
    """True if these are the very records the bundle was imported from, none more and none less."""
    return {name: record for name, record in bundle.source.items() if name != DIGESTS} == records.source
