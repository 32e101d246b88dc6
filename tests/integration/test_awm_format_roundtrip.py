"""A run, through the sandbox that executes its statements, into bundles and back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from awm_factory.awm_format import AwmRecordSet, draft_bundle, read_run, write_run
from awm_factory.bundle import Bundle
from awm_factory.sandbox import ProcessSandbox, Sandbox
from awm_runtime.contract import WORLD_TIME, LoadReply

SMALL_RUN = Path(__file__).parent.parent / "data" / "awm_run_small"
SHARED_RUN = Path(__file__).parents[3] / "shared" / "awm-run"

runs = pytest.mark.parametrize(
    "run",
    [
        SMALL_RUN,
        pytest.param(SHARED_RUN, marks=pytest.mark.skipif(not SHARED_RUN.is_dir(), reason="the real run is not on this machine")),
    ],
    ids=["small", "real"],
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with ProcessSandbox(1) as sandbox:
        yield sandbox


def imported(run: Path, sandbox: Sandbox) -> dict[str, Bundle]:
    bundles = {}
    for records in read_run(run):
        assert isinstance(records, AwmRecordSet), records
        world_time = records.world_time or WORLD_TIME
        reply = sandbox.check(records.load_request(world_time))
        assert isinstance(reply, LoadReply), reply
        bundles[records.env_id] = draft_bundle(records, reply, world_time)
        assert bundles[records.env_id].schema_sql == reply.schema_sql
        assert bundles[records.env_id].seed_sql == reply.seed_sql
    return bundles


@runs
def test_import_export_import_is_the_identity(run: Path, sandbox: Sandbox, tmp_path: Path) -> None:
    first = imported(run, sandbox)
    assert len(first) >= 3
    rows = write_run(first.values(), tmp_path / "out")
    assert all(row.derived == [] for row in rows)
    assert imported(tmp_path / "out", sandbox) == first


@runs
def test_records_made_from_a_bundle_load_to_the_same_database(run: Path, sandbox: Sandbox, tmp_path: Path) -> None:
    first = imported(run, sandbox)
    write_run((bundle.with_(source={}) for bundle in first.values()), tmp_path / "out")
    second = imported(tmp_path / "out", sandbox)
    for env_id, bundle in first.items():
        assert second[env_id].seed_db == bundle.seed_db
        assert second[env_id].manifest.dump_sha256 == bundle.manifest.dump_sha256
        assert second[env_id].seed_sql == bundle.seed_sql
        assert second[env_id].verifiers == bundle.verifiers


def test_the_small_runs_clock_is_evaluated_at_the_world_time(sandbox: Sandbox) -> None:
    assert any("2025-12-29 00:00:00" in statement for statement in imported(SMALL_RUN, sandbox)["kayak_club"].seed_sql)
