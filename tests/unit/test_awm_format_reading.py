"""Reading a run in the AWM format: its oddities are normal, its faults are rows."""

import json
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from awm_factory.awm_format import AwmRecordSet, BrokenScenario, came_from, draft_bundle, read_run
from awm_factory.awm_format.parts import verifier
from awm_factory.errors import FormatError
from awm_factory.problems import Problem
from awm_runtime.contract import LoadReply, Statement

SMALL_RUN = Path(__file__).parent.parent / "data" / "awm_run_small"
DESK = "lost_found_desk_3465e8b9"

Edit = Callable[[list[dict[str, Any]]], Any]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SMALL_RUN, tmp_path / "run"))


def edit(run: Path, file: str, change: Edit) -> None:
    path = run / f"{file}.jsonl"
    records = [json.loads(line) for line in path.read_bytes().split(b"\n") if line] if path.exists() else []
    change(records)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def append_line(run: Path, file: str, line: bytes) -> int:
    path = run / f"{file}.jsonl"
    content = path.read_bytes() + line + b"\n"
    path.write_bytes(content)
    return content.count(b"\n")


def good(run: Path) -> dict[str, AwmRecordSet]:
    return {row.env_id: row for row in read_run(run) if isinstance(row, AwmRecordSet)}


def broken(run: Path) -> dict[str | None, list[Problem]]:
    return {row.env_id: row.problems for row in read_run(run) if isinstance(row, BrokenScenario)}


def notes(records: AwmRecordSet) -> str:
    return "\n".join(map(str, records.notes))


def test_the_small_run_reads_whole() -> None:
    assert broken(SMALL_RUN) == {}
    assert list(good(SMALL_RUN)) == ["kayak_club", DESK, "seed_library"]


def test_records_spelled_differently_between_files_are_one_scenario() -> None:
    kayak = good(SMALL_RUN)["kayak_club"]
    assert kayak.scenario == "Kayak Club"
    assert kayak.description.startswith("A club lends boats")
    assert set(kayak.source) == {
        "gen_scenario", "gen_tasks", "gen_db", "gen_sample", "gen_spec", "gen_envs", "gen_verifier", "gen_verifier.pure_code"
    }  # fmt: skip
    assert kayak.notes == []


def test_records_under_awms_own_form_of_an_unplain_name_find_their_scenario() -> None:
    desk = good(SMALL_RUN)[DESK]
    assert desk.scenario == "Lost & Found Desk"
    assert (0, "code") in desk.verifiers
    assert desk.api_spec is not None


def test_awms_form_shared_by_two_scenarios_is_nobodys(run: Path) -> None:
    for file in ("gen_db", "gen_envs"):
        edit(run, file, lambda records: records.append(records[1] | {"scenario": "Lost/Found Desk"}))
    assert "lost_found_desk" in broken(run)
    assert good(run)[DESK].verifiers == {}


def test_statements_keep_their_table_and_place() -> None:
    kayak = good(SMALL_RUN)["kayak_club"]
    assert [(s.table, s.index) for s in kayak.schema] == [("boats", 0), ("trips", 0), ("trips", 1), ("trips", 2)]
    assert [(s.table, s.index) for s in kayak.data] == [("boats", 0), ("boats", 1), ("trips", 0)]
    request = kayak.load_request("2026-05-01T00:00:00Z")
    assert request.statements_data[1].sql.count("INSERT") == 2
    assert request.world_time == "2026-05-01T00:00:00Z"


def test_a_table_that_comes_twice_counts_on(run: Path) -> None:
    edit(run, "gen_sample", lambda records: records[0]["sample_data"]["tables"].append(records[0]["sample_data"]["tables"][0]))
    assert [s.index for s in good(run)["kayak_club"].data if s.table == "boats"] == [0, 1, 2, 3]


def test_verifiers_are_told_apart_by_their_function(run: Path) -> None:
    edit(run, "gen_verifier", lambda records: records.clear())
    everything = (SMALL_RUN / "gen_verifier.jsonl").read_bytes() + (SMALL_RUN / "gen_verifier.pure_code.jsonl").read_bytes()
    expected = good(SMALL_RUN)
    for file, other in (("gen_verifier", "gen_verifier.pure_code"), ("gen_verifier.pure_code", "gen_verifier")):
        (run / f"{file}.jsonl").write_bytes(everything)
        (run / f"{other}.jsonl").unlink(missing_ok=True)
        assert {env: records.verifiers for env, records in good(run).items()} == {
            env: records.verifiers for env, records in expected.items()
        }


@pytest.mark.parametrize(
    ("code", "mode", "defined"),
    [
        ("def verify_task(a, b): ...", "sql", True),
        ("async def verify_task_completion(a, b, c=None): ...", "code", True),
        ("import os\n\ndef helper():\n    def verify_task(): ...\n\ndef verify_task_completion(): ...", "code", True),
        ("def verify_task(): ...\ndef verify_task_completion(): return verify_task()", "code", True),
        ("def verify_task(a):\n    x = f'{a[\"b']}' +\n", "sql", True),
        ("'''\ndef verify_task(): ...\n'''\ndef verify_task_completion(): ...", "code", True),
        ("def check(): ...", "sql", False),
        ("def verify_task_later(): ...", "sql", False),
        ("x = " + "(" * 5_000, "sql", False),
        ("a\0b", "sql", False),
    ],
)
def test_the_mode_is_that_of_the_function_at_the_top(code: str, mode: str, defined: bool) -> None:
    found = verifier({"task_idx": 0, "verification": {"code": code}}, "gen_verifier")
    assert (found.mode, found.defined) == (mode, defined)


def test_code_with_neither_function_goes_by_its_file_with_a_note(run: Path) -> None:
    record = {"scenario": "Kayak Club", "task_idx": 1, "verification": {"code": "def check(): ..."}}
    edit(run, "gen_verifier", lambda records: records.append(record))
    kayak = good(run)["kayak_club"]
    assert kayak.verifiers[1, "sql"] == "def check(): ..."
    assert "neither verify_task_completion nor verify_task; taken for sql by its file" in notes(kayak)


def test_the_last_of_two_verifiers_counts_for_awm_appends_when_it_tries_again(run: Path) -> None:
    second = "def verify_task_completion(): return 2"
    record = {"scenario": "Kayak Club", "task_idx": 0, "verification": {"code": second}}
    edit(run, "gen_verifier.pure_code", lambda records: records.append(record))
    kayak = good(run)["kayak_club"]
    assert kayak.verifiers[0, "code"] == second
    assert "gen_verifier.pure_code.jsonl:6: Task 0 has an earlier code verifier" in notes(kayak)


def test_of_two_files_the_one_named_for_the_mode_counts(run: Path) -> None:
    record = {"scenario": "Kayak Club", "task_idx": 0, "verification": {"code": "def verify_task_completion(): return 'stray'"}}
    edit(run, "gen_verifier", lambda records: records.append(record))
    before = good(SMALL_RUN)["kayak_club"].verifiers[0, "code"]
    assert good(run)["kayak_club"].verifiers[0, "code"] == before
    record = {"scenario": "Kayak Club", "task_idx": 0, "verification": {"code": "def verify_task(): return 'stray'"}}
    edit(run, "gen_verifier.pure_code", lambda records: records.append(record))
    before = good(SMALL_RUN)["kayak_club"].verifiers[0, "sql"]
    assert good(run)["kayak_club"].verifiers[0, "sql"] == before


def test_a_record_without_code_is_noted_unless_a_later_one_has_it(run: Path) -> None:
    assert "holds no code" not in notes(good(SMALL_RUN)["seed_library"])
    edit(run, "gen_verifier.pure_code", lambda records: records.pop())
    seeds = good(run)["seed_library"]
    assert "gen_verifier.pure_code.jsonl:4: It holds no code, so task 2 lacks this verifier." in notes(seeds)
    assert list(seeds.verifiers) == [(0, "code")]


def test_a_verifier_of_another_wording_or_of_no_task_is_noted(run: Path) -> None:
    edit(run, "gen_tasks", lambda records: records[0].update(tasks=["Another task altogether."]))
    kayak = good(run)["kayak_club"]
    assert "another wording of task 0" in notes(kayak)
    assert "It verifies task 1, which the scenario does not have" in notes(kayak)
    assert set(kayak.verifiers) == {(0, "code"), (0, "sql")}


def test_tasks_are_texts_or_objects_and_empty_ones_leave_the_others_their_index(run: Path) -> None:
    assert [task.task_id for task in good(SMALL_RUN)["seed_library"].tasks] == [0, 2]
    assert good(SMALL_RUN)[DESK].tasks[0].instruction == "Hand the green umbrella to Ines Park."
    objects = [{"task_id": 4, "instruction": "Four."}, {"description": "One."}, None, {"other": 1}]
    edit(run, "gen_tasks", lambda records: records[0].update(tasks=objects))
    kayak = good(run)["kayak_club"]
    assert [(task.task_id, task.instruction) for task in kayak.tasks] == [(4, "Four."), (1, "One.")]
    assert "task 2: It has no text" in notes(kayak)
    assert "task 3: It has no text" in notes(kayak)


@pytest.mark.parametrize(
    ("file", "lost"),
    [
        ("gen_scenario", "has no description"),
        ("gen_tasks", "has no tasks"),
        ("gen_sample", "its database starts empty"),
        ("gen_spec", "has no API spec"),
    ],
)
def test_a_missing_optional_file_is_a_note_of_what_is_lost(run: Path, file: str, lost: str) -> None:
    (run / f"{file}.jsonl").unlink()
    kayak = good(run)["kayak_club"]
    assert lost in notes(kayak)
    assert file not in kayak.source


def test_missing_verifier_files_are_one_note(run: Path) -> None:
    (run / "gen_verifier.jsonl").unlink()
    (run / "gen_verifier.pure_code.jsonl").unlink()
    assert notes(good(run)["kayak_club"]).count("has no verifier") == 1


@pytest.mark.parametrize("file", ["gen_db", "gen_envs"])
def test_a_folder_without_a_required_file_is_no_run(run: Path, file: str) -> None:
    (run / f"{file}.jsonl").unlink()
    with pytest.raises(FormatError, match=rf"has no {file}\.jsonl"):
        list(read_run(run))


def test_a_folder_that_is_not_there_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="is no AWM run"):
        list(read_run(tmp_path / "nowhere"))


@pytest.mark.parametrize("file", ["gen_db", "gen_envs"])
def test_a_scenario_without_a_required_record_is_a_row_and_the_others_go_on(run: Path, file: str) -> None:
    edit(run, file, lambda records: records.pop(0))
    assert [str(problem) for problem in broken(run)["kayak_club"]] == [
        f"[import] kayak_club: There is no record of it in {file}.jsonl. Finish its generation, or take its other records out."
    ]
    assert list(good(run)) == [DESK, "seed_library"]


@pytest.mark.parametrize("file", ["gen_scenario", "gen_tasks", "gen_db", "gen_sample", "gen_spec", "gen_envs"])
def test_two_records_of_one_scenario_in_one_file_are_a_row(run: Path, file: str) -> None:
    edit(run, file, lambda records: records.append(records[0] | {"scenario": "KAYAK CLUB", "name": "KAYAK CLUB"}))
    (problem,) = broken(run)["kayak_club"]
    assert problem.where == f"{file}.jsonl"
    assert "Lines 1, " in problem.what
    assert list(good(run)) == [DESK, "seed_library"]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b'{"other": 1', "not JSON"),
        (b"[1, 2]", "holds a JSON list"),
        (b'{"scenario": 7}', "no `scenario` that is a text"),
        (b'{"scenario": " "}', "holds nothing to name"),
        (b'{"scenario": "cut \\ud83d"}', "not valid Unicode"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"scenario": "x", "n": ' + b"9" * 10_000 + b"}", "not JSON"),
    ],
)
def test_a_line_that_is_nobodys_is_a_row_with_file_and_number(run: Path, line: bytes, complaint: str) -> None:
    number = append_line(run, "gen_sample", line)
    rows = [row for row in read_run(run) if isinstance(row, BrokenScenario)]
    assert len(rows) == 1
    (problem,) = rows[0].problems
    assert problem.where == f"gen_sample.jsonl:{number}"
    assert complaint in problem.what
    assert set(good(run)) == set(good(SMALL_RUN))


def test_a_scenario_whose_line_is_cut_off_fails_instead_of_being_imported_without_it(run: Path) -> None:
    path = run / "gen_sample.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0][: len(lines[0]) // 2] + b"\n" + lines[1])
    (problem,) = broken(run)["kayak_club"]
    assert problem.where == "gen_sample.jsonl:1"
    assert set(good(run)) == {DESK, "seed_library"}


@pytest.mark.parametrize(
    ("file", "change", "where"),
    [
        ("gen_db", {"db_schema": None}, "`db_schema`"),
        ("gen_db", {"db_schema": {"tables": [{"ddl": "x"}]}}, "`db_schema.tables[0].name`"),
        ("gen_db", {"db_schema": {"tables": [{"name": "t", "ddl": 7}]}}, "`db_schema.tables[0].ddl`"),
        ("gen_db", {"db_schema": {"tables": [{"name": "t", "ddl": "\ud83d"}]}}, "half a character"),
        ("gen_sample", {"sample_data": {"tables": [{"table_name": "t", "insert_statements": [None]}]}}, "insert_statements[0]`"),
        ("gen_envs", {"full_code": None}, "`full_code`"),
        ("gen_envs", {"full_code": "x = '\udc00'"}, "half a character"),
        ("gen_tasks", {"tasks": "one"}, "`tasks`"),
        ("gen_tasks", {"tasks": [{"task_id": 1, "task": "a"}, "b"]}, "`tasks[1]` has the index 1"),
        ("gen_scenario", {"description": 5}, "`description`"),
    ],
)
def test_a_record_of_the_wrong_shape_is_a_row_that_says_where(run: Path, file: str, change: dict[str, Any], where: str) -> None:
    edit(run, file, lambda records: records[0].update(change))
    (problem,) = broken(run)["kayak_club"]
    assert problem.where == f"{file}.jsonl:1"
    assert where in problem.what
    assert set(good(run)) == {DESK, "seed_library"}


def test_unknown_fields_stay_in_the_source() -> None:
    assert good(SMALL_RUN)["kayak_club"].source["gen_scenario"]["category"] == "sports"  # type: ignore[index,call-overload]


def test_a_byte_order_mark_carriage_returns_and_blank_lines_are_no_matter(run: Path) -> None:
    expected = good(SMALL_RUN)
    for path in run.iterdir():
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n\r\n"))
    assert good(run) == expected


def test_only_chosen_environments_are_read_and_unknown_ones_are_rows() -> None:
    rows = list(read_run(SMALL_RUN, only=["seed_library", "nowhere"]))
    assert [(type(row).__name__, row.env_id) for row in rows] == [("BrokenScenario", "nowhere"), ("AwmRecordSet", "seed_library")]


def test_progress_counts_environments() -> None:
    seen: list[tuple[int, int | None]] = []
    list(read_run(SMALL_RUN, progress=lambda done, total: seen.append((done, total))))
    assert seen == [(0, None), (0, 3), (1, 3), (2, 3), (3, 3)]


def test_memory_does_not_grow_with_the_run(run: Path) -> None:
    def inflate(count: int) -> None:
        for file in ("gen_db", "gen_envs", "gen_tasks"):
            record = json.loads((SMALL_RUN / f"{file}.jsonl").read_bytes().split(b"\n")[0])
            with (run / f"{file}.jsonl").open("w") as lines:
                for number in range(count):
                    lines.write(json.dumps(record | {"scenario": f"Copy {number}", "padding": "x" * 100_000}) + "\n")

    def peak() -> int:
        tracemalloc.start()
        count = sum(isinstance(row, AwmRecordSet) for row in read_run(run))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count > 3
        return peak

    for file in ("gen_scenario", "gen_sample", "gen_spec", "gen_verifier", "gen_verifier.pure_code"):
        (run / f"{file}.jsonl").unlink()
    inflate(10)
    small = peak()
    inflate(200)
    assert peak() < small + 1_000_000


def test_a_draft_holds_what_the_sandbox_made_of_the_statements() -> None:
    kayak = good(SMALL_RUN)["kayak_club"]
    reply = LoadReply(
        failures=[],
        statements_total={"schema": 1, "data": 1},
        schema_sql=["CREATE TABLE t (a)"],
        seed_sql=["INSERT INTO t VALUES (1)"],
        moving=[],
        db="U1FMaXRl",
        dump_sha256="abc",
        integrity=[],
        dangling=[],
        tables=[],
    )
    bundle = draft_bundle(kayak, reply, "2026-05-01T00:00:00Z")
    assert bundle.seed_db == b"SQLite"
    assert (bundle.schema_sql, bundle.seed_sql) == (["CREATE TABLE t (a)"], ["INSERT INTO t VALUES (1)"])
    assert bundle.manifest.origin == "imported"
    assert bundle.manifest.world_time == "2026-05-01T00:00:00Z"
    assert bundle.manifest.dump_sha256 == "abc"
    assert came_from(bundle, kayak)
    assert not came_from(bundle, good(SMALL_RUN)["seed_library"])


def test_a_world_time_of_ours_is_read_and_taken_out_of_the_record(run: Path) -> None:
    edit(run, "gen_scenario", lambda records: records[0].update(world_time="2026-05-01T00:00:00Z"))
    kayak = good(run)["kayak_club"]
    assert kayak.world_time == "2026-05-01T00:00:00Z"
    assert kayak.source == good(SMALL_RUN)["kayak_club"].source
    edit(run, "gen_scenario", lambda records: records[0].update(world_time="spring"))
    assert good(run)["kayak_club"].world_time is None


SHARED_RUN = Path(__file__).parents[3] / "shared" / "awm-run"


@pytest.mark.skipif(not SHARED_RUN.is_dir(), reason="the real run is not on this machine")
def test_a_real_run_reads_whole() -> None:
    real = good(SHARED_RUN)
    assert {env: (len(r.schema), len(r.data), len(r.tasks), len(r.verifiers)) for env, r in real.items()} == {
        "gofundme": (36, 60, 10, 10),
        "fortnite_item_shop": (60, 119, 10, 10),
        "etsy_digital_downloads": (57, 138, 10, 10),
        "surveymonkey_apply": (66, 105, 10, 10),
    }
    assert all(records.notes == [] for records in real.values())
    assert real["surveymonkey_apply"].schema[1] == Statement(
        sql="CREATE INDEX idx_users_org ON users(organization_id);", table="users", index=1
    )
