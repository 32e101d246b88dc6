"""The store where it needs no server. What holds for both databases is in tests/integration/store."""

import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from awm_factory.errors import StoreError
from awm_factory.store import Store, connect


def test_a_path_is_enough_and_what_was_written_is_there_again(tmp_path: Path) -> None:
    with Store.open(str(tmp_path / "runs.db")) as store:
        store.start_run("r1", "gpt", {"count": 3})
    with Store.open(f"sqlite:///{tmp_path / 'runs.db'}") as store:
        assert store.run("r1").settings == {"count": 3}


def test_a_store_in_memory_serves_many_threads() -> None:
    with Store.open("sqlite://") as store:
        store.start_run("r1", "gpt", {})
        threads = [threading.Thread(target=lambda n=n: store.put_artifact(f"{n}".encode())) for n in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert store.artifact(store.put_artifact(b"7")) == b"7"


def test_a_store_of_another_layout_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    Store.open(str(path)).close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE meta SET version = 99")
    with pytest.raises(StoreError, match="layout 99, this version needs 1"):
        Store.open(str(path))


def test_what_cannot_be_opened_is_named_without_its_password(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database, but long enough to look like one" * 50)
    with pytest.raises(StoreError, match=r"text\.db can't be opened: file is not a database"):
        Store.open(str(tmp_path / "text.db"))
    with pytest.raises(StoreError, match="--store names mysql"):
        Store.open("mysql://host/db")
    with pytest.raises(StoreError, match="neither a path nor a database URL"):
        Store.open("::://")
    with pytest.raises(StoreError, match=r"postgresql\+psycopg://me:\*\*\*@127\.0\.0\.1:1/x") as caught:
        Store.open("postgresql://me:secret@127.0.0.1:1/x")
    assert "secret" not in str(caught.value)


def test_without_the_driver_the_message_says_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\nfrom awm_factory.store import Store\nStore.open('postgresql://127.0.0.1/x')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "needs psycopg; run: pip install 'awm-factory[postgres]'" in done.stderr


def test_a_transaction_that_writes_holds_the_lock_from_its_start(tmp_path: Path) -> None:
    path = str(tmp_path / "runs.db")
    Store.open(path).close()
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    engine = connect.engine(connect.parse(path))
    with engine.begin():
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    with engine.execution_options(awm_write=True).begin(), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    other.close()
    engine.dispose()


KILLED = """
import os, sys
from awm_factory.store import Store
store = Store.open(sys.argv[1])
store.start_run("r1", "gpt", {})
for n in range(1000):
    digest = store.put_artifact(f"artifact {n}".encode() * 100)
    print(digest, flush=True)
    if n == int(sys.argv[2]):
        os.kill(os.getpid(), 9)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    path = str(tmp_path / "runs.db")
    for at in (0, 7, 50):
        done = subprocess.run([sys.executable, "-c", KILLED, path, str(at)], capture_output=True, text=True, check=False)
        digests = done.stdout.split()
        assert done.returncode == -9
        assert len(digests) == at + 1
        with Store.open(path) as store:
            assert [store.artifact(digest)[:9] for digest in digests] == [b"artifact "] * len(digests)
