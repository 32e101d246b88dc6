"""What the store promises, on each database it supports."""

import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from awm_factory.errors import StoreError
from awm_factory.problems import Problem
from awm_factory.store import Attempt, Scenario, Store, total

PROBLEM = Problem(gate="schema", severity="error", where="users[3]", what="It fails.", fix="Mend it.")
AWKWARD = "NUL \0, half a pair \ud83d, a whole \U0001f6f6, 'quotes'; and \n lines"
FIGURES: dict[str, Any] = {
    "env_id": "kiosk",
    "stage": "tasks",
    "item": "",
    "attempt": 1,
    "model": "gpt",
    "outcome": "ok",
    "failed": False,
    "hit": False,
    "requests": 1,
    "unmetered": 0,
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "cached_tokens": 2,
    "usd": 0.25,
    "seconds": 1.5,
}


def test_a_run_started_again_goes_on_with_its_first_settings(store: Store) -> None:
    store.start_run("r1", "gpt", {"seed": 1})
    store.finish_run("r1", "stopped", "budget spent")
    assert (store.run("r1").state, store.run("r1").note) == ("stopped", "budget spent")
    again = store.start_run("r1", "other", {"seed": 2})
    assert (again.state, again.model, again.settings, again.finished_at) == ("running", "gpt", {"seed": 1}, None)
    store.start_run("r2", "gpt", {})
    assert [run.run_id for run in store.runs()] == ["r1", "r2"]
    with pytest.raises(StoreError, match="no run 'r3'; runs in it: r1, r2"):
        store.run("r3")


def test_scenarios_stay_in_order_and_keep_their_state_when_put_again(store: Store) -> None:
    store.start_run("r1", "gpt", {})
    for position, env_id in enumerate(["zoo", "bank", "kiosk"]):
        store.put_scenario("r1", Scenario(env_id, position, {"name": env_id, "description": AWKWARD}))
    store.end_scenario("r1", "bank", "failed", AWKWARD, {"note": 1})
    store.put_scenario("r1", Scenario("bank", 9, {"name": "other"}))
    assert (store.ending("r1", "bank"), store.ending("r1", "zoo"), store.ending("r2", "bank")) == ({"note": 1}, None, None)
    store.end_scenario("r1", "bank", "failed", AWKWARD, {"note": AWKWARD})
    assert store.ending("r1", "bank") == {"note": AWKWARD}
    zoo, bank, _ = store.scenarios("r1")
    assert (zoo.env_id, zoo.state, zoo.record["name"]) == ("zoo", "pending", "zoo")
    assert (bank.env_id, bank.position, bank.state, bank.record["name"]) == ("bank", 1, "failed", "bank")
    assert bank.note == AWKWARD.replace("\0", "\ufffd").replace("\ud83d", "\ufffd")


def test_an_attempt_comes_back_as_it_was_and_replaces_itself(store: Store) -> None:
    store.start_run("r1", "gpt", {})
    prompt = AWKWARD.replace("\ud83d", "") * 10_000
    first = Attempt("kiosk", "schema", 1, prompt, "answer", b"\0artifact", (PROBLEM,), 2.5, cpu_seconds=0.5, seconds=3.0)
    second = Attempt("kiosk", "schema", 2, prompt, item="x")
    store.put_attempt("r1", replace(first, weight=9.0, answer=None))
    store.put_attempt("r1", first)
    store.put_attempt("r1", second)
    assert store.attempts("r1") == [first, second]
    assert store.attempts("r1", stage="tasks") == store.attempts("r1", env_id="zoo") == store.attempts("r2") == []


def test_one_attempt_of_a_part_is_chosen(store: Store) -> None:
    store.start_run("r1", "gpt", {})
    for number in (1, 2, 3):
        for item in ("0", "1"):
            store.put_attempt("r1", Attempt("kiosk", "verifiers", number, "p", item=item))
    store.choose_attempt("r1", "kiosk", "verifiers", "0", 2)
    store.choose_attempt("r1", "kiosk", "verifiers", "0", 3)
    chosen = [(attempt.item, attempt.number) for attempt in store.attempts("r1", "kiosk", "verifiers") if attempt.chosen]
    assert chosen == [("0", 3)]


def test_artifacts_are_kept_once_and_named_by_content(store: Store) -> None:
    digests = {store.put_artifact(b"x" * 100_000) for _ in range(3)}
    assert len(digests) == 1
    assert store.artifact(digests.pop()) == b"x" * 100_000
    with pytest.raises(StoreError, match="no artifact"):
        store.artifact("0" * 64)


def test_a_reply_and_its_cost_are_one_transaction(store: Store) -> None:
    store.start_run("r1", "gpt", {})
    with pytest.raises(StoreError):
        store.add_call("r1", "k" * 64, '{"raw": "x"}', FIGURES | {"model": None})
    assert store.reply("k" * 64) is None
    store.add_call("r1", "k" * 64, '{"raw": "x\\u0000"}', FIGURES)
    store.add_call("r1", "k" * 64, '{"raw": "other"}', FIGURES)
    assert store.reply("k" * 64) == '{"raw": "x\\u0000"}'


def test_costs_are_summed_by_environment_and_stage(store: Store) -> None:
    store.start_run("r1", "gpt", {})
    store.start_run("r2", "gpt", {})
    calls = store.calls("r1")
    calls.add_call("a" * 64, "{}", FIGURES)
    calls.add_call("b" * 64, "{}", FIGURES | {"requests": 3, "unmetered": 1})
    nothing = {
        "hit": True,
        "requests": 0,
        "prompt_tokens": 0,
        "completion_tokens": 0,
        "cached_tokens": 0,
        "usd": 0.0,
        "seconds": 0.0,
    }
    calls.add_call("a" * 64, None, FIGURES | nothing)
    failed = {"failed": True, "outcome": "RateLimited", "requests": 3, "prompt_tokens": 0, "completion_tokens": 0, "usd": 0.0}
    calls.add_call("c" * 64, None, FIGURES | failed | {"cached_tokens": 0})
    calls.add_call("d" * 64, "{}", FIGURES | {"env_id": "", "stage": "scenarios", "usd": None})
    store.add_call("r2", "e" * 64, "{}", FIGURES)
    store.put_attempt("r1", Attempt("kiosk", "tasks", 1, "p", cpu_seconds=0.5))
    store.put_attempt("r1", Attempt("kiosk", "code", 1, "p", cpu_seconds=0.25))
    outside, code, tasks = store.costs("r1")
    assert (outside.env_id, outside.stage, outside.usd) == ("", "scenarios", None)
    assert (code.stage, code.calls, code.usd, code.cpu_seconds) == ("code", 0, 0.0, 0.25)
    assert (tasks.calls, tasks.hits, tasks.retries, tasks.failures, tasks.unmetered) == (4, 1, 4, 1, 1)
    assert (tasks.prompt_tokens, tasks.completion_tokens, tasks.cached_tokens) == (20, 10, 4)
    assert (tasks.usd, tasks.cpu_seconds, tasks.seconds) == (0.5, 0.5, 4.5)
    assert total([code, tasks]).usd == 0.5
    assert total([outside, code, tasks]).usd is None
    assert total([outside, code, tasks]).calls == 5
    assert calls.spent() == 0.5


def test_many_threads_write_at_once(store: Store) -> None:
    store.start_run("r1", "gpt", {})
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: store.add_call("r1", f"{n % 50:064}", f'"{n % 50}"', FIGURES), range(200)))
    assert store.costs("r1")[0].calls == 200
    assert all(store.reply(f"{n:064}") == f'"{n}"' for n in range(50))


def test_a_store_is_opened_while_another_process_is_about_to_write(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE notes (text)")
        other.execute("BEGIN IMMEDIATE")
        letting_go = threading.Timer(0.3, other.execute, ["COMMIT"])
        letting_go.start()
        with Store.open(str(path)) as store:
            store.start_run("r1", "gpt", {})
        letting_go.join()


WRITER = """
import sys
from awm_factory.store import Attempt, Store
with Store.open(sys.argv[1]) as store:
    store.start_run("r1", "gpt", {})
    for n in range(50):
        store.put_attempt("r1", Attempt(sys.argv[2], "tasks", n, "p" * 1000, "a" * 1000))
        store.attempts("r1", sys.argv[2], "tasks")
"""


def test_two_processes_open_and_write_at_once(shared_url: str) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", WRITER, shared_url, name]) for name in ("one", "two")]
    assert [process.wait() for process in processes] == [0, 0]
    with Store.open(shared_url) as store:
        assert len(store.attempts("r1")) == 100
