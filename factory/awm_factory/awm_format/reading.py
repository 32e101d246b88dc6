"""An AWM run, one environment at a time."""

import base64
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from pydantic import JsonValue

from awm_factory.awm_format.assembly import assemble
from awm_factory.awm_format.index import Progress, Spot, index_run, parse_record
from awm_factory.awm_format.records import AwmRecordSet, BrokenScenario
from awm_factory.awm_format.source import DIGESTS, part_digests
from awm_factory.bundle import Bundle, Manifest
from awm_factory.problems import Problem
from awm_runtime.contract import LoadReply


def draft_bundle(records: AwmRecordSet, reply: LoadReply, world_time: str) -> Bundle:
    """The bundle, once the sandbox has executed `records.load_request(world_time)`. Its tools are still to be listed."""
    bundle = Bundle(
        manifest=Manifest(
            env_id=records.env_id,
            scenario=records.scenario,
            description=records.description,
            origin="imported",
            world_time=world_time,
            dump_sha256=reply.dump_sha256,
        ),
        schema_sql=reply.schema_sql,
        seed_sql=reply.seed_sql,
        app_code=records.app_code,
        api_spec=records.api_spec,
        tasks=records.tasks,
        verifiers=records.verifiers,
        seed_db=base64.b64decode(reply.db),
    )
    return bundle.with_(source=records.source | {DIGESTS: dict(part_digests(bundle))})


def read_run(
    run_dir: Path, only: Collection[str] | None = None, progress: Progress | None = None
) -> Iterator[AwmRecordSet | BrokenScenario]:
    """Environments in the run's order, with one of them in memory at a time; `only` names env_ids.

    Raises FormatError if the directory is none of an AWM run. What is wrong with one scenario is a row.
    """
    report = progress or (lambda _done, _total: None)
    report(0, None)
    index = index_run(run_dir)
    if index.problems and only is None:
        yield from (BrokenScenario(None, [problem]) for problem in index.problems)
    chosen = [(env, group) for env, group in index.groups.items() if only is None or env in only]
    if only is not None:
        yield from (BrokenScenario(env, [_absent(env, run_dir)]) for env in sorted(set(only) - index.groups.keys()))
    with ExitStack() as stack:
        reader = _Reader(run_dir, stack)
        for done, (env, group) in enumerate(chosen):
            report(done, len(chosen))
            yield assemble(env, group, reader.record)
    report(len(chosen), len(chosen))


class _Reader:
    """Records by their place, each file opened once."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.directory = directory
        self._stack = stack
        self._files: dict[str, BinaryIO] = {}

    def record(self, spot: Spot) -> dict[str, JsonValue]:
        if spot.file not in self._files:
            self._files[spot.file] = self._stack.enter_context((self.directory / f"{spot.file}.jsonl").open("rb"))
        self._files[spot.file].seek(spot.offset)
        return parse_record(self._files[spot.file].read(spot.length))


def _absent(env: str, run_dir: Path) -> Problem:
    return Problem(
        gate="import",
        severity="error",
        where=env,
        what=f"No record in {run_dir} is of a scenario with this env_id.",
        fix="Look for its spelling in gen_envs.jsonl.",
    )
