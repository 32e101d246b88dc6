"""Bundles on disk: what is written is what is read, all of it or none, and the digest speaks of what ships."""

import json
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from awm_factory.bundle import Bundle, Difficulty, Manifest, Mending, Solution, Task, disk, write_file
from awm_factory.certificate import Certificate, Subject
from awm_factory.errors import BundleError
from awm_runtime.contract import ToolCall


def a_bundle(**changes: Any) -> Bundle:
    return Bundle(
        manifest=Manifest(
            env_id="kiosk",
            scenario="Kiosk",
            origin="imported",
            tools=["buy", "list_papers"],
            renamed={"z": "zz", "a": "aa"},
            mendings=[Mending(tool="buy", kind="renamed", why="Too long.")],
        ),
        schema_sql=["CREATE TABLE papers (id INTEGER PRIMARY KEY, title TEXT) -- daily", "CREATE INDEX i ON papers(title)"],
        seed_sql=["INSERT INTO papers VALUES (1, 'Dawn; a paper') -- tenor", "INSERT INTO papers VALUES (2, 'open"],
        app_code="app = 1\r\nname = 'a\u2028b'\n",
        api_spec={"zebra": 1, "api_groups": [{"path": "/b", "method": "GET"}]},
        tasks=[Task(task_id=0, instruction="Buy\u2028one\x85."), Task(task_id=3, instruction="List.")],
        verifiers={(0, "code"): "def verify_task_completion(): ...\r\n", (0, "sql"): "x", (10, "code"): "y"},
        solutions={0: Solution(calls=[ToolCall(tool="buy", arguments={"b": 1, "a": [None, 2.5]})], final_answer="Done.")},
        source={"gen_db": {"b": 1, "a": "cut \ud83d"}, "gen_verifier.pure_code": [{"scenario": "Kiosk"}]},
        seed_db=b"SQLite format 3\0...",
        certificate=Certificate(
            subject=Subject(
                bundle_digest="d", solutions_digest="s", base="process", gates={"schema": 1}, seed=0, budget={"calls": 5}
            ),
            gates={"schema": "passed"},
            problems=[],
            tasks=[],
        ),
    ).with_(**changes)


def test_write_then_read_is_the_identity(tmp_path: Path) -> None:
    bundle = a_bundle()
    bundle.write(tmp_path / "kiosk")
    again = Bundle.read(tmp_path / "kiosk")
    assert again == bundle
    assert again.digest() == bundle.digest()
    assert list(again.api_spec) == ["zebra", "api_groups"]  # type: ignore[arg-type]
    assert list(again.solutions[0].calls[0].arguments) == ["b", "a"]


@settings(max_examples=50, deadline=None)
@given(
    sql=st.lists(st.text(), max_size=3),
    text=st.text(st.characters(exclude_categories=["Cs"])),
    spec=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    ),
)
def test_write_then_read_is_the_identity_for_any_content(
    tmp_path_factory: pytest.TempPathFactory, sql: list[str], text: str, spec: Any
) -> None:
    directory = tmp_path_factory.mktemp("bundle")
    sql = [statement.encode(errors="replace").decode() for statement in sql]
    bundle = a_bundle(schema_sql=sql, seed_sql=sql, app_code=text, api_spec=spec, tasks=[Task(task_id=1, instruction=text)])
    bundle.write(directory)
    assert Bundle.read(directory) == bundle


def test_a_tasks_difficulty_is_kept_and_one_without_is_written_as_ever(tmp_path: Path) -> None:
    hard = Difficulty(
        kind="act", level=4, score=9.5, calls=4, depth=3, id_hops=2, constraints=3, distractors=7, irrelevant_tools=30
    )
    bundle = a_bundle(tasks=[Task(task_id=0, instruction="Buy."), Task(task_id=1, instruction="Sell.", difficulty=hard)])
    bundle.write(tmp_path / "kiosk")
    assert Bundle.read(tmp_path / "kiosk").tasks == bundle.tasks
    assert bundle.files()["tasks.jsonl"].splitlines()[0] == b'{"instruction": "Buy.", "task_id": 0}'


def test_writing_the_same_bundle_again_touches_no_file(tmp_path: Path) -> None:
    a_bundle().write(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    a_bundle().write(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_a_write_removes_what_the_bundle_no_longer_has_and_nothing_else(tmp_path: Path) -> None:
    a_bundle().write(tmp_path)
    (tmp_path / "README.md").write_text("Ours.")
    (tmp_path / "record.json").write_text("{}")
    a_bundle(verifiers={(1, "sql"): "z"}, solutions={}, source={}, seed_db=None, certificate=None).write(tmp_path)
    names = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file())
    ours = ["README.md", "record.json"]
    assert names == sorted(
        [*ours, "api_spec.json", "app.py", "manifest.json", "schema.sql", "seed.sql", "tasks.jsonl", "verifiers/1.sql.py"]
    )


class Killed(BaseException):
    pass


def test_a_kill_at_any_moment_of_a_write_leaves_the_old_bundle_or_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = a_bundle(), a_bundle(app_code="new\n", seed_sql=[], verifiers={(7, "code"): "w"}, solutions={})
    outcomes = []
    for moment in range(200):
        directory = tmp_path / str(moment)
        old.write(directory)
        with monkeypatch.context() as patch:
            finished = not killed_at(moment, patch, lambda directory=directory: new.write(directory))  # type: ignore[misc]
        outcomes.append(Bundle.read(directory))
        assert outcomes[-1] in (old, new)
        new.write(directory)
        assert Bundle.read(directory) == new
        assert not list(directory.glob(".*"))
        if finished:
            break
    assert outcomes[0] == old
    assert outcomes[-1] == new
    assert outcomes.count(new) > 3


def killed_at(moment: int, patch: pytest.MonkeyPatch, write: Any) -> bool:
    """Run `write`, killed before its n-th change of the file system. No `finally` of the code under test gets to clean up."""
    left = [moment]

    def guard(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def guarded(*args: Any, **kwargs: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return original(*args, **kwargs)

        patch.setattr(owner, name, guarded)

    for name in ("write_bytes", "write_text", "rename", "replace", "unlink", "mkdir"):
        guard(Path, name)
    guard(disk.shutil, "rmtree")
    guard(disk.tempfile, "mkdtemp")
    try:
        write()
    except Killed:
        return True
    return False


def test_readers_and_other_writers_never_spoil_a_write(tmp_path: Path) -> None:
    one = a_bundle()
    other = a_bundle(app_code="other\n", seed_sql=[], verifiers={(7, "code"): "w"}, solutions={}, seed_db=None)
    stop = threading.Event()

    def read_on() -> None:
        while not stop.is_set():
            with suppress(BundleError):  # torn: this one read between two writes
                Bundle.read(tmp_path)

    with ThreadPoolExecutor(4) as pool:
        readers = [pool.submit(read_on) for _ in range(3)]
        writer = pool.submit(lambda: [bundle.write(tmp_path) for bundle in [one, other] * 20])
        writer.result()
        stop.set()
        for reader in readers:
            reader.result()
    assert Bundle.read(tmp_path) == other
    assert not list(tmp_path.glob(".*"))
    with ThreadPoolExecutor(4) as pool:
        for written in [pool.submit(bundle.write, tmp_path) for bundle in [one, other] * 20]:
            written.result()
    assert Bundle.read(tmp_path) in (one, other)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("manifest.json", None, r"manifest\.json is missing"),
        ("app.py", None, r"app\.py is missing"),
        ("manifest.json", b"{", r"manifest\.json is malformed"),
        ("manifest.json", b'{"env_id": "Kiosk", "scenario": "Kiosk", "origin": "imported"}', "is no env_id"),
        ("manifest.json", b'{"env_id": "kiosk", "scenario": "Kiosk", "origin": "imported", "wrold_time": ""}', "wrold_time"),
        (
            "tasks.jsonl",
            b'{"task_id": 0, "instruction": "a"}\n{"task_id": 0, "instruction": "b"}\n',
            "task_id 0 stands there twice",
        ),
        ("app.py", b"\xff", r"app\.py is malformed"),
        ("api_spec.json", b"[" * 100_000, r"api_spec\.json is malformed"),
        ("verifiers/x.code.py", b"", "must begin with a task_id"),
        ("verifiers/01.code.py", b"", "must begin with a task_id"),
        ("verifiers/1.python.py", b"", "is named <task_id>"),
        ("solutions/one.json", b"{}", "must begin with a task_id"),
        ("solutions/1.json", b"{}", r"solutions/1\.json is malformed"),
        ("certificate.json", b"{}", r"certificate\.json is malformed"),
    ],
)
def test_a_broken_bundle_is_an_error_that_names_the_file(
    tmp_path: Path, name: str, content: bytes | None, complaint: str
) -> None:
    a_bundle().write(tmp_path)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(BundleError, match=complaint):
        Bundle.read(tmp_path)


def test_a_folder_in_a_files_place_is_an_error_too(tmp_path: Path) -> None:
    a_bundle().write(tmp_path)
    (tmp_path / "seed.db").unlink()
    (tmp_path / "seed.db").mkdir()
    with pytest.raises(BundleError, match=r"seed\.db can't be read"):
        Bundle.read(tmp_path)


def test_a_source_name_can_not_leave_its_folder(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="can't name a file"):
        a_bundle(source={"../manifest": 1}).write(tmp_path)


@pytest.mark.parametrize("change", [{"seed_db": b"other"}, {"certificate": None}, {"source": {}}, {"solutions": {}}])
def test_the_digest_ignores_what_does_not_ship_and_the_databases_bytes(change: dict[str, Any]) -> None:
    assert a_bundle(**change).digest() == a_bundle().digest()


@pytest.mark.parametrize(
    "change",
    [
        {"schema_sql": []},
        {"seed_sql": []},
        {"app_code": ""},
        {"api_spec": {"api_groups": [], "zebra": 1}},
        {"tasks": []},
        {"verifiers": {(0, "sql"): "def verify_task_completion(): ...\r\n", (0, "code"): "x", (10, "code"): "y"}},
        {"manifest": a_bundle().manifest.model_copy(update={"dump_sha256": "f"})},
        {"manifest": a_bundle().manifest.model_copy(update={"world_time": "2020-01-01T00:00:00Z"})},
    ],
)
def test_the_digest_covers_all_that_ships(change: dict[str, Any]) -> None:
    assert a_bundle(**change).digest() != a_bundle().digest()


def test_solutions_have_a_digest_of_their_own() -> None:
    assert a_bundle(solutions={}).solutions_digest() != a_bundle().solutions_digest()
    assert a_bundle(app_code="").solutions_digest() == a_bundle().solutions_digest()


def test_statements_are_made_canonical_when_a_bundle_is_made() -> None:
    bundle = a_bundle(seed_sql=[" SELECT 1; SELECT 2; ", "", "-- nothing"])
    assert bundle.seed_sql == ["SELECT 1", "SELECT 2"]


def test_a_single_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "record.json"
    write_file(path, b"old")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk is full")))
    with pytest.raises(OSError, match="disk is full"):
        write_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["record.json"]  # noqa: PTH208
    assert path.stat().st_mode & 0o777 == 0o644


def test_files_are_readable_text(tmp_path: Path) -> None:
    a_bundle().write(tmp_path)
    assert (tmp_path / "schema.sql").read_text() == (
        "CREATE TABLE papers (id INTEGER PRIMARY KEY, title TEXT) -- daily\n;\nCREATE INDEX i ON papers(title);\n"
    )
    assert json.loads((tmp_path / "tasks.jsonl").read_bytes().split(b"\n")[1]) == {"task_id": 3, "instruction": "List."}
    shutil.rmtree(tmp_path)
