"""Writing a run in the AWM format: the way back, and nothing stale on it."""

import base64
import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from awm_factory.awm_format import AwmRecordSet, draft_bundle, read_run, write_run
from awm_factory.awm_format.derive import derived_record
from awm_factory.awm_format.parts import data_statements, schema_statements
from awm_factory.bundle import Bundle, Manifest, Solution, Task, canonical
from awm_factory.errors import FormatError, UsageError
from awm_runtime.contract import WORLD_TIME, LoadReply

SMALL_RUN = Path(__file__).parent.parent / "data" / "awm_run_small"
DESK = "lost_found_desk_3465e8b9"
SPRING = "2026-05-01T00:00:00Z"
FILES = ("gen_scenario", "gen_tasks", "gen_db", "gen_sample", "gen_spec", "gen_envs", "gen_verifier", "gen_verifier.pure_code")


def load(records: AwmRecordSet, world_time: str) -> LoadReply:
    """What the sandbox does, for data whose only clock is the word 'now'."""
    database = sqlite3.connect(":memory:")
    schema = canonical(statement.sql for statement in records.schema)
    seed = [sql.replace("'now'", f"'{world_time[:19]}'") for sql in canonical(statement.sql for statement in records.data)]
    for sql in (*schema, *seed):
        database.execute(sql)
    database.commit()
    return reply_of(schema, seed, database.serialize())


def reply_of(schema: list[str], seed: list[str], database: bytes) -> LoadReply:
    return LoadReply(
        failures=[],
        statements_total={"schema": len(schema), "data": len(seed)},
        schema_sql=schema,
        seed_sql=seed,
        moving=[],
        db=base64.b64encode(database).decode(),
        dump_sha256="d" * 64,
        integrity=[],
        dangling=[],
        tables=[],
    )


def imported(run: Path, world_time: str | None = None) -> dict[str, Bundle]:
    bundles = {}
    for records in read_run(run):
        assert isinstance(records, AwmRecordSet), records
        time = world_time or records.world_time or WORLD_TIME
        bundles[records.env_id] = draft_bundle(records, load(records, time), time)
    return bundles


def lines(run: Path) -> dict[str, list[str]]:
    """Records by file, each as text so that the order of keys counts, without the order of records."""
    found = {}
    for name in FILES:
        path = run / f"{name}.jsonl"
        found[name] = (
            sorted(json.dumps(json.loads(line)) for line in path.read_bytes().split(b"\n") if line) if path.exists() else []
        )
    return found


def own(**changes: Any) -> Bundle:
    """Written by hand."""
    return Bundle(
        manifest=Manifest(env_id="kiosk", scenario="Kiosk", description="Sells papers.", origin="handwritten"),
        schema_sql=[
            "CREATE TABLE papers (id INTEGER PRIMARY KEY, title TEXT) -- daily",
            'CREATE TABLE IF NOT EXISTS main."sold ones" (paper INTEGER REFERENCES papers(id))',
            "CREATE INDEX papers_by_title ON papers(title)",
            "CREATE TRIGGER t AFTER INSERT ON papers BEGIN SELECT 1; END",
            "CREATE VIEW v AS SELECT * FROM papers",
        ],
        seed_sql=[
            "INSERT INTO papers VALUES (1, 'Dawn; a paper') -- tenor",
            "INSERT INTO [sold ones] VALUES (1)",
            "INSERT OR REPLACE INTO papers VALUES (2, 'Dusk')",
            "UPDATE papers SET title = 'Night' WHERE id = 2",
        ],
        app_code="app = 1\r\n",
        api_spec={"z": 1, "a": 2},
        tasks=[Task(task_id=0, instruction="Buy one."), Task(task_id=2, instruction="List\u2028all.")],
        verifiers={
            (0, "code"): "def verify_task_completion(): ...",
            (0, "sql"): "def verify_task(): ...",
            (2, "sql"): "def verify_task(): 2",
        },
        seed_db=b"SQLite format 3\0",
    ).with_(**changes)


def test_import_then_export_gives_the_records_back_as_they_came(tmp_path: Path) -> None:
    rows = write_run(imported(SMALL_RUN).values(), tmp_path / "out")
    assert lines(tmp_path / "out") == lines(SMALL_RUN)
    assert [(row.env_id, row.derived, row.lost) for row in rows] == [
        (env, [], []) for env in ("kayak_club", DESK, "seed_library")
    ]


def test_import_export_import_is_the_identity(tmp_path: Path) -> None:
    first = imported(SMALL_RUN)
    write_run(first.values(), tmp_path / "out")
    assert imported(tmp_path / "out") == first


def test_it_is_the_identity_by_way_of_the_disk_too(tmp_path: Path) -> None:
    first = imported(SMALL_RUN)
    for env_id, bundle in first.items():
        bundle.write(tmp_path / env_id)
    write_run((Bundle.read(tmp_path / env_id) for env_id in first), tmp_path / "out")
    assert lines(tmp_path / "out") == lines(SMALL_RUN)
    assert imported(tmp_path / "out") == first


def test_a_world_time_goes_along(tmp_path: Path) -> None:
    first = imported(SMALL_RUN, SPRING)
    assert "2026-05-01" in first["kayak_club"].seed_sql[3]
    write_run(first.values(), tmp_path / "out")
    again = imported(tmp_path / "out")
    assert again["kayak_club"] == first["kayak_club"]
    assert again["seed_library"].manifest.world_time == SPRING
    assert imported(tmp_path / "out", WORLD_TIME)["kayak_club"] == imported(SMALL_RUN)["kayak_club"]


def test_databases_lie_beside_the_records(tmp_path: Path) -> None:
    bundles = imported(SMALL_RUN)
    write_run(bundles.values(), tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out" / "databases").iterdir()) == sorted(f"{env}.db" for env in bundles)
    database = sqlite3.connect(tmp_path / "out" / "databases" / "kayak_club.db")
    assert database.execute("SELECT count(*) FROM boats").fetchone() == (3,)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"app_code": "app = 2\n"}, ["gen_envs"]),
        ({"api_spec": {"api_groups": []}}, ["gen_spec"]),
        ({"api_spec": None}, ["gen_spec"]),
        ({"schema_sql": ["CREATE TABLE boats (id INTEGER)"]}, ["gen_db"]),
        ({"seed_sql": []}, ["gen_sample"]),
        ({"seed_sql": ["INSERT INTO boats VALUES (9, 'Teal', 1)"]}, ["gen_sample"]),
        ({"verifiers": {(0, "code"): "def verify_task_completion(): 2", (0, "sql"): "def verify_task(): 2"}},
         ["gen_verifier/0.code", "gen_verifier/0.sql"]),
    ],
)  # fmt: skip
def test_what_was_changed_since_the_import_is_never_exported_as_it_came(
    tmp_path: Path, change: dict[str, Any], expected: list[str]
) -> None:
    changed = imported(SMALL_RUN)["kayak_club"].with_(**change)
    (row,) = write_run([changed], tmp_path / "out")
    assert row.derived == expected
    (records,) = read_run(tmp_path / "out")
    assert isinstance(records, AwmRecordSet)
    assert records.app_code == changed.app_code
    assert records.api_spec == changed.api_spec
    assert canonical(s.sql for s in records.schema) == changed.schema_sql
    if expected == ["gen_sample"]:
        assert canonical(s.sql for s in records.data) == changed.seed_sql
    assert records.verifiers == changed.verifiers
    assert records.tasks == changed.tasks


def test_a_changed_task_takes_its_verifiers_records_along(tmp_path: Path) -> None:
    bundle = imported(SMALL_RUN)["kayak_club"]
    tasks = [Task(task_id=0, instruction="Another."), bundle.tasks[1]]
    (row,) = write_run([bundle.with_(tasks=tasks)], tmp_path / "out")
    assert row.derived == ["gen_tasks", "gen_verifier/0.code", "gen_verifier/0.sql"]
    assert not any("on the Lune with the boat" in record for records in lines(tmp_path / "out").values() for record in records)


def test_a_bundle_under_another_name_uses_none_of_its_records(tmp_path: Path) -> None:
    bundle = imported(SMALL_RUN)["kayak_club"]
    renamed = bundle.with_(manifest=bundle.manifest.model_copy(update={"env_id": "canoe_club", "scenario": "Canoe Club"}))
    (row,) = write_run([renamed], tmp_path / "out")
    assert len(row.derived) == 9
    assert [records.env_id for records in read_run(tmp_path / "out")] == ["canoe_club"]


def test_a_bundle_written_by_hand_becomes_records_that_say_the_same(tmp_path: Path) -> None:
    (row,) = write_run([own(solutions={0: Solution(calls=[])})], tmp_path / "out")
    assert row.lost == ["solutions of 1 tasks"]
    (records,) = read_run(tmp_path / "out")
    assert isinstance(records, AwmRecordSet)
    assert (records.scenario, records.description) == ("Kiosk", "Sells papers.")
    assert sorted(canonical(s.sql for s in records.schema)) == sorted(own().schema_sql)
    assert canonical(s.sql for s in records.data) == own().seed_sql
    assert records.app_code == own().app_code
    assert list(records.api_spec) == ["z", "a"]  # type: ignore[arg-type]
    assert (records.tasks, records.verifiers) == (own().tasks, own().verifiers)


def test_derived_records_have_awms_fields(tmp_path: Path) -> None:
    write_run([own()], tmp_path / "out")
    record = {name: [json.loads(line) for line in texts] for name, texts in lines(tmp_path / "out").items()}
    tables = record["gen_db"][0]["db_schema"]["tables"]
    assert [(table["name"], len(table["indexes"])) for table in tables] == [("papers", 2), ("sold ones", 1)]
    assert tables[0]["ddl"].endswith("-- daily\n;")
    assert record["gen_db"][0]["db_path"] == "./databases/kiosk.db"
    sample = record["gen_sample"][0]
    assert [table["table_name"] for table in sample["sample_data"]["tables"]] == ["papers", "sold ones", "papers"]
    assert (sample["tables_count"], sample["inserts_count"]) == (3, 4)
    assert record["gen_scenario"] == [{"name": "Kiosk", "description": "Sells papers."}]
    assert record["gen_tasks"] == [{"scenario": "Kiosk", "tasks": ["Buy one.", "", "List\u2028all."]}]
    assert [(r["scenario"], r["task_idx"], r["task"]) for r in record["gen_verifier.pure_code"]] == [("kiosk", 0, "Buy one.")]
    assert sorted(r["task_idx"] for r in record["gen_verifier"]) == [0, 2]


def test_one_export_mixes_imported_and_own_bundles(tmp_path: Path) -> None:
    write_run([own(), *imported(SMALL_RUN).values()], tmp_path / "out")
    again = imported(tmp_path / "out")
    assert set(again) == {"kiosk", "kayak_club", DESK, "seed_library"}
    assert again["kayak_club"] == imported(SMALL_RUN)["kayak_club"]
    write_run(again.values(), tmp_path / "second")
    assert lines(tmp_path / "second") == lines(tmp_path / "out")


names = st.sampled_from(["a", "b", '"b"', "[c d]", "`e`", "main.a", "'f'", "x(", "on"])
templates = st.sampled_from(
    [
        "CREATE TABLE {} (x)",
        "create temp table if not exists {}(x)",
        "CREATE /* c */ TABLE {} (x) -- end",
        "CREATE INDEX i ON {}(x)",
        "CREATE UNIQUE INDEX i ON {}(x)",
        "CREATE TRIGGER t AFTER INSERT ON {} BEGIN SELECT 1; END",
        "PRAGMA foreign_keys = ON",
        "SELECT '{}",
        "INSERT INTO {} VALUES (1)",
        "WITH w AS (SELECT 1) INSERT INTO {} SELECT 1",
        "DELETE FROM {}",
        "-- c\nREPLACE INTO {} VALUES (';')",
    ]
)
scripts = st.lists(st.builds(lambda template, name: template.format(name), templates, names), max_size=8).map(canonical)


@settings(deadline=None)
@given(scripts)
def test_no_statement_is_lost_or_added_whatever_it_is(script: list[str]) -> None:
    bundle = own(schema_sql=script, seed_sql=script)
    schema = canonical(statement.sql for statement in schema_statements(derived_record(bundle, "gen_db")))
    data = canonical(statement.sql for statement in data_statements(derived_record(bundle, "gen_sample")))
    assert data == script
    assert sorted(schema) == sorted(script)


def test_an_export_never_writes_over_anything(tmp_path: Path) -> None:
    run = Path(shutil.copytree(SMALL_RUN, tmp_path / "run"))
    with pytest.raises(UsageError, match="not an empty folder"):
        write_run(imported(SMALL_RUN).values(), run)
    assert lines(run) == lines(SMALL_RUN)
    (tmp_path / "empty").mkdir()
    write_run([own()], tmp_path / "empty")
    assert (tmp_path / "empty" / "gen_db.jsonl").exists()


def test_an_export_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    def breaking() -> Iterator[Bundle]:
        yield own()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_run(breaking(), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UsageError, match="comes twice"):
        write_run([own(), own()], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_can_not_be_written_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FormatError, match="can't be written"):
        write_run([own()], tmp_path / "file" / "out")


def test_progress_counts_bundles(tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    write_run(imported(SMALL_RUN).values(), tmp_path / "out", lambda done, total: seen.append((done, total)))
    assert seen == [(0, None), (1, None), (2, None), (3, 3)]


SHARED_RUN = Path(__file__).parents[3] / "shared" / "awm-run"


@pytest.mark.skipif(not SHARED_RUN.is_dir(), reason="the real run is not on this machine")
def test_a_real_runs_records_come_back_as_they_were(tmp_path: Path) -> None:
    bundles = []
    for records in read_run(SHARED_RUN):
        assert isinstance(records, AwmRecordSet)
        schema, seed = (canonical(statement.sql for statement in phase) for phase in (records.schema, records.data))
        bundles.append(draft_bundle(records, reply_of(schema, seed, b""), WORLD_TIME))
        bundles[-1].write(tmp_path / records.env_id)
        assert Bundle.read(tmp_path / records.env_id) == bundles[-1]
    assert all(row.derived == [] for row in write_run(bundles, tmp_path / "out"))
    assert lines(tmp_path / "out") == lines(SHARED_RUN)
    changed = [bundle.with_(source={}) for bundle in bundles]
    write_run(changed, tmp_path / "derived")
    for records, bundle in zip(read_run(tmp_path / "derived"), bundles, strict=True):
        assert isinstance(records, AwmRecordSet)
        assert sorted(canonical(s.sql for s in records.schema)) == sorted(bundle.schema_sql)
        assert canonical(s.sql for s in records.data) == bundle.seed_sql
        assert (records.tasks, records.verifiers, records.app_code) == (bundle.tasks, bundle.verifiers, bundle.app_code)
