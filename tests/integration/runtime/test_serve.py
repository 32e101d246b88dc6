import json
import signal
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from runtime_support import LIBRARY_APP, LIBRARY_SQL, Served, database, rows, serve, write_environment


def titles(served: Served, episode: dict[str, object]) -> list[str]:
    return [loan["title"] for loan in served.call(episode, "list_loans")[1]]


def test_health_tells_what_is_served_and_which_layers_confine_it(library: Served) -> None:
    status, health = library.request("GET", "/health")
    assert status == 200
    assert health["status"] == "healthy"
    assert (health["env_id"], health["tasks"], health["tools"]) == ("library", 1, 9)
    assert health["confinement"].keys() == {"landlock", "seccomp"}
    assert health["module_state"] == []


def test_an_episode_is_played_judged_reset_and_deleted(library: Served) -> None:
    episode = library.new(task_id=0, seed=4)
    assert episode["instruction"] == "Lend the Kite book to Ada."
    assert library.of(episode, "verify", {"final_answer": ""})["reward"] == 0.0
    assert library.call(episode, "lend", {"member_id": 1, "title": "Kite book"}) == (
        False,
        {"member_id": 1, "title": "Kite book", "days": 14, "id": 2},
    )
    assert library.of(episode, "verify", {})["reward"] == 1.0
    assert library.of(episode, "reset")["steps"] == 0
    assert titles(library, episode) == ["Moss atlas"]
    assert library.request("DELETE", f"/episodes/{episode['episode_id']}")[0] == 204
    assert library.request("GET", f"/episodes/{episode['episode_id']}")[0] == 404


def test_reset_restores_the_very_bytes(library: Served) -> None:
    episode = library.new()
    before = library.db(episode)
    library.call(episode, "lend", {"member_id": 1, "title": "x"})
    assert library.db(episode) != before
    library.of(episode, "reset")
    assert library.db(episode) == before


def test_the_database_is_a_file_any_sqlite_reads(library: Served, tmp_path: Path) -> None:
    episode = library.new()
    library.call(episode, "lend", {"member_id": 1, "title": "saved"})
    path = tmp_path / "episode.db"
    path.write_bytes(library.db(episode))
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    assert connection.execute("SELECT title FROM loans ORDER BY id").fetchall() == [("Moss atlas",), ("saved",)]


def test_a_table_that_the_app_makes_on_import_belongs_to_the_seed(library: Served) -> None:
    episode = library.new()
    assert library.of(episode, "diff", method="GET") == {"tables": {}}
    assert rows(library.db(episode), "SELECT count(*) FROM stamps") == [(0,)]


def test_diff_tells_rows_added_and_removed(library: Served) -> None:
    episode = library.new()
    library.call(episode, "lend", {"member_id": 1, "title": "new"})
    library.call(episode, "remove_member", {"member_id": 2})
    tables = library.of(episode, "diff", method="GET")["tables"]
    assert [(change["before"] is None, change["after"] is None) for change in tables["loans"]] == [(False, True), (True, False)]
    assert tables["members"][0]["before"]["name"] == "Bo"


def test_a_fork_goes_its_own_way_and_a_snapshot_can_be_returned_to(library: Served) -> None:
    episode = library.new(task_id=0)
    library.call(episode, "lend", {"member_id": 1, "title": "common"})
    snapshot = library.of(episode, "snapshot")
    twin = library.of(episode, "fork")
    assert (twin["task_id"], twin["steps"]) == (0, 1)
    library.call(twin, "lend", {"member_id": 1, "title": "twin's"})
    library.call(episode, "lend", {"member_id": 1, "title": "own"})
    assert titles(library, twin) == ["Moss atlas", "common", "twin's"]
    assert titles(library, episode) == ["Moss atlas", "common", "own"]
    library.of(episode, "restore", snapshot)
    assert titles(library, episode) == ["Moss atlas", "common"]


def test_two_interleaved_episodes_have_their_own_clock_chance_and_rows(library: Served) -> None:
    one, two, again = library.new(seed=1), library.new(seed=2), library.new(seed=1)
    library.call(two, "list_loans")
    library.call(two, "list_loans")
    first, other, same = (library.call(episode, "stamp")[1] for episode in (one, two, again))
    assert first == same
    assert first[0].startswith("2026-01-01 00:00:01")
    assert other[0].startswith("2026-01-01 00:00:03")
    assert library.db(one) == library.db(again)
    assert library.db(one) != library.db(two)


def test_the_same_calls_give_the_same_bytes_in_another_container(library: Served, tmp_path: Path) -> None:
    with serve(write_environment(tmp_path / "env"), AWM_WORKERS="1") as other:
        databases = []
        for served in (library, other):
            episode = served.new(seed=9)
            served.call(episode, "stamp")
            served.call(episode, "lend", {"member_id": 1, "title": "x"})
            databases.append(served.db(episode))
    assert databases[0] == databases[1]


@pytest.mark.parametrize(
    ("how", "kind"),
    [("loop", "timeout"), ("swallow", "timeout"), ("query", "timeout"), ("exit", "crashed"), ("crash", "crashed")],
)
def test_a_handler_that_hangs_or_dies_ends_its_call_only(library: Served, how: str, kind: str) -> None:
    episode = library.new(task_id=0)
    library.call(episode, "lend", {"member_id": 1, "title": "before"})
    is_error, answer = library.call(episode, "misbehave", {"how": how})
    assert is_error
    assert answer["error"]["kind"] == kind
    assert titles(library, episode) == ["Moss atlas", "before"]
    assert library.of(episode, "verify", {})["internal_errors"] == 1


def test_hostile_calls_make_no_other_episode_wait_or_fail(library: Served) -> None:
    hostile = [library.new() for _ in range(4)]
    friendly = library.new()
    threads = [threading.Thread(target=library.call, args=(episode, "misbehave", {"how": "swallow"})) for episode in hostile]
    for thread in threads:
        thread.start()
    waits = []
    while any(thread.is_alive() for thread in threads):
        started = time.monotonic()
        assert library.call(friendly, "lend", {"member_id": 1, "title": "x"})[0] is False
        waits.append(time.monotonic() - started)
    assert len(titles(library, friendly)) == 1 + len(waits)
    assert len(waits) > 4  # with calls one behind the other there would be one a second


def test_failing_calls_leave_nothing_and_the_next_one_works(library: Served) -> None:
    episode = library.new()
    for _ in range(20):
        assert library.call(episode, "flush_then_fail")[0]
        assert library.call(episode, "commit_then_refuse")[0]
    started = time.monotonic()
    assert titles(library, episode) == ["Moss atlas"]
    assert time.monotonic() - started < 10  # a lock left behind makes it wait for thirty


def test_more_episodes_than_a_worker_keeps_ready_lose_nothing(library: Served) -> None:
    episodes = [library.new() for _ in range(120)]
    for _ in range(2):
        for number, episode in enumerate(episodes):
            assert library.call(episode, "lend", {"member_id": 1, "title": f"{number}"})[0] is False
    for number, episode in enumerate(episodes):
        assert titles(library, episode) == ["Moss atlas", f"{number}", f"{number}"]
        library.request("DELETE", f"/episodes/{episode['episode_id']}")


def test_a_client_of_an_earlier_start_is_told_so(library: Served) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    status, answer = library.request("POST", "/mcp", message, headers={"Mcp-Session-Id": "of an earlier start"})
    assert status == 404
    assert "restarted" in answer["error"]["message"]


def test_sigterm_ends_everything_at_once(tmp_path: Path) -> None:
    with serve(write_environment(tmp_path / "env")) as served:
        episode = served.new()
        thread = threading.Thread(
            target=lambda: served.request("POST", episode["mcp_path"], _call("misbehave", {"how": "swallow"})), daemon=True
        )
        thread.start()
        while served.request("GET", f"/episodes/{episode['episode_id']}")[0] != 200:
            pass
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(8) == 0  # an engine waits for ten


def _call(tool: str, arguments: dict[str, object]) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def test_an_environment_that_does_not_start_ends_the_container_with_its_reason(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (
        pytest.raises(RuntimeError, match="status 1"),
        serve(write_environment(tmp_path / "env", code="raise ValueError('no key')")),
    ):
        pass
    assert "ValueError: no key" in capfd.readouterr().err


def test_limits_answer_with_clear_errors(tmp_path: Path) -> None:
    settings = {"AWM_MAX_EPISODES": "2", "AWM_MAX_CALLS": "3", "AWM_MAX_BODY": "2000", "AWM_MAX_RESULT": "300"}
    with serve(write_environment(tmp_path / "env"), **settings) as served:
        episode = served.new()
        served.new(episode_id="second")
        status, answer = served.request("POST", "/episodes", {})
        assert (status, "all 2 episodes" in answer["error"]) == (429, True)
        for _ in range(3):
            served.call(episode, "lend", {"member_id": 1, "title": "long " * 40})
        assert "3 calls" in served.rpc(episode["mcp_path"], "tools/call", {"name": "list_loans"})["error"]["message"]
        assert served.request("POST", episode["mcp_path"], b"x" * 3000)[0] == 413
        served.of(episode, "reset")
        for _ in range(2):
            served.call(episode, "lend", {"member_id": 1, "title": "long " * 40})
        is_error, answer = served.call(episode, "list_loans")
        assert is_error
        assert "ask for less" in answer["error"]["message"]


GROWING = """
import sqlite3
from fastapi import FastAPI
app = FastAPI()


@app.post("/grow", operation_id="grow")
async def grow(size: int):
    c = sqlite3.connect("x.db")
    c.execute("CREATE TABLE IF NOT EXISTS blobs (data BLOB)")
    c.execute("INSERT INTO blobs VALUES (zeroblob(?))", (size,))
    c.commit()
    return c.execute("SELECT count(*), sum(length(data)) FROM blobs").fetchone()
"""


def test_a_database_grows_up_to_its_limit(tmp_path: Path) -> None:
    with serve(write_environment(tmp_path / "env", code=GROWING)) as served:
        episode = served.new()
        assert served.call(episode, "grow", {"size": 60 << 20}) == (False, [1, 60 << 20])
        is_error, answer = served.call(episode, "grow", {"size": 8 << 20})
        assert is_error
        assert "64 MiB" in answer["error"]["message"]
        assert served.call(episode, "grow", {"size": 1 << 20}) == (False, [2, 61 << 20])


def test_an_alias_names_an_episode_on_the_control_plane_only(library: Served) -> None:
    episode = library.new(episode_id="mine")
    assert episode["episode_id"] == "mine"
    assert library.request("GET", "/episodes/mine")[0] == 200
    assert library.request("POST", "/episodes", {"episode_id": "mine"})[0] == 409
    assert library.request("POST", "/episodes/mine/mcp", {}, port=library.agent_port)[0] == 404
    library.request("DELETE", "/episodes/mine")


def test_a_container_that_nobody_uses_ends_itself(tmp_path: Path) -> None:
    with serve(write_environment(tmp_path / "env"), AWM_TTL="1") as served:
        assert served.process.wait(10) == 0


STATEFUL = LIBRARY_APP.replace("engine =", "CALLS = []\nengine =", 1).replace(
    '@application.post("/half"',
    "@application.post('/note', operation_id='note')\nasync def note(word: str):\n    CALLS.append(word)\n"
    "    if word == 'die':\n        os._exit(1)\n    if word == 'no':\n        raise HTTPException(400, 'no')\n"
    "    return CALLS\n\n\n"
    '@application.post("/half"',
)


def test_module_state_is_an_episodes_own_and_undone_with_a_failed_call(tmp_path: Path) -> None:
    with serve(write_environment(tmp_path / "env", code=STATEFUL)) as served:
        assert served.request("GET", "/health")[1]["module_state"] == ["note writes CALLS"]
        one, two = served.new(), served.new()
        served.call(one, "note", {"word": "a"})
        assert served.call(two, "note", {"word": "b"})[1] == ["b"]
        assert served.call(one, "note", {"word": "no"})[0]
        assert served.call(one, "note", {"word": "die"})[1]["error"]["kind"] == "crashed"
        twin = served.of(one, "fork")
        assert served.call(one, "note", {"word": "c"})[1] == ["a", "c"]
        assert served.call(twin, "note", {"word": "d"})[1] == ["a", "d"]
        served.of(one, "reset")
        assert served.call(one, "note", {"word": "e"})[1] == ["e"]


CACHING = """
from functools import lru_cache
from fastapi import FastAPI
app = FastAPI()


@lru_cache
def words():
    return []


@app.post("/note", operation_id="note")
async def note(word: str):
    words().append(word)
    return words()
"""


def test_module_state_that_the_check_saw_is_an_episodes_own(tmp_path: Path) -> None:
    directory = write_environment(tmp_path / "env", code=CACHING)
    manifest = json.loads((directory / "manifest.json").read_text())
    (directory / "manifest.json").write_text(json.dumps(manifest | {"module_state": ["note tells episodes of each other"]}))
    with serve(directory) as served:
        assert served.request("GET", "/health")[1]["module_state"] == ["note tells episodes of each other"]
        one, two = served.new(), served.new()
        served.call(one, "note", {"word": "a"})
        assert served.call(two, "note", {"word": "b"})[1] == ["b"]


def test_an_environment_with_one_session_for_all_calls_works(tmp_path: Path) -> None:
    code = (
        "import sqlite3\nfrom fastapi import FastAPI, HTTPException\napp = FastAPI()\n"
        "c = sqlite3.connect('library.db', check_same_thread=False)\n"
        "@app.post('/lend', operation_id='lend')\ndef lend(title: str, fail: bool = False):\n"
        "    c.execute('INSERT INTO loans (member_id, title, days) VALUES (1, ?, 1)', (title,))\n    c.commit()\n"
        "    if fail:\n        raise HTTPException(400, 'no')\n"
        "    return [row[0] for row in c.execute('SELECT title FROM loans ORDER BY id')]\n"
    )
    with serve(write_environment(tmp_path / "env", code=code)) as served:
        one, two = served.new(), served.new()
        served.call(one, "lend", {"title": "a"})
        assert served.call(two, "lend", {"title": "b"})[1] == ["Moss atlas", "b"]
        assert served.call(one, "lend", {"title": "x", "fail": True})[0]
        assert served.call(one, "lend", {"title": "c"})[1] == ["Moss atlas", "a", "c"]


def test_results_are_the_text_that_fastapi_mcp_sends(library: Served) -> None:
    answer = library.rpc(library.new()["mcp_path"], "tools/call", {"name": "list_loans", "arguments": {}})
    expected = [{"member_id": 2, "title": "Moss atlas", "days": 7, "id": 1}]
    assert answer["result"] == {"content": [{"type": "text", "text": json.dumps(expected, indent=2)}], "isError": False}


def test_the_seed_file_itself_is_never_written(library: Served, tmp_path: Path) -> None:
    directory = write_environment(tmp_path / "env")
    for path in directory.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    directory.chmod(0o555)
    with serve(directory) as served:
        assert served.call(served.new(), "lend", {"member_id": 1, "title": "x"})[0] is False
    assert (directory / "seed.db").read_bytes() == database(LIBRARY_SQL)
