"""The catalogue: what there is, what was built of it, and one builder at a time."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from awm_factory.bundle import Bundle, Manifest, Task
from awm_factory.catalog import Catalog, Pushed, Record, find_workspace
from awm_factory.certificate import Certificate, Subject, TaskCertificate
from awm_factory.errors import BundleError, CatalogError


def a_bundle(env_id: str = "kiosk", **changes: Any) -> Bundle:
    return Bundle(
        manifest=Manifest(env_id=env_id, scenario="Kiosk", origin="handwritten", tools=["buy"]),
        schema_sql=["CREATE TABLE a (b)"],
        seed_sql=[],
        app_code="app = 1\n",
        tasks=[Task(task_id=0, instruction="Buy."), Task(task_id=1, instruction="Sell.")],
    ).with_(**changes)


def certificate(bundle: Bundle, outcome: Any = "passed") -> Certificate:
    subject = Subject(
        bundle_digest=bundle.digest(), solutions_digest=bundle.solutions_digest(), base="process", gates={}, seed=0, budget={}
    )
    tasks = [TaskCertificate(task_id=i, shipped=i == 0, gates={}) for i in range(2)]
    return Certificate(subject=subject, gates={"schema": outcome}, problems=[], tasks=tasks)


RECORD = Record(
    bundle_digest="d",
    base="awm/base:0",
    images={"awm/kiosk:1234": "sha256:a", "awm/kiosk:latest": "sha256:a"},
    pushed=[Pushed(reference="localhost:5000/kiosk:1234", digest="sha256:b")],
    checks={"smoke": "passed"},
    sizes={"image": 7},
)


def test_bundles_and_records_are_written_and_read(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    assert catalog.env_ids() == []
    catalog.write(a_bundle())
    catalog.write(a_bundle("bakery"))
    assert catalog.env_ids() == ["bakery", "kiosk"]
    assert catalog.record("kiosk") is None
    catalog.write_record("kiosk", RECORD)
    assert catalog.record("kiosk") == RECORD
    catalog.write(a_bundle(app_code="app = 2\n"))
    assert catalog.record("kiosk") == RECORD
    assert catalog.read("kiosk").app_code == "app = 2\n"
    assert catalog.context("kiosk") == tmp_path / "images" / "kiosk"


def test_rows_say_what_is_current(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    bundle = a_bundle()
    catalog.write(bundle)
    (row,) = catalog.rows()
    assert (row.certificate, row.image, row.current, row.shipped_tasks) == ("none", "", False, None)
    assert (row.scenario, row.origin, row.tools, row.tasks, row.digest) == ("Kiosk", "handwritten", 1, 2, bundle.digest())
    catalog.write(bundle.with_(certificate=certificate(bundle)))
    catalog.write_record("kiosk", RECORD.model_copy(update={"bundle_digest": bundle.digest()}))
    (row,) = catalog.rows()
    assert (row.certificate, row.image, row.current, row.shipped_tasks) == ("passed", "awm/kiosk:1234", True, 1)
    assert row.pushed == RECORD.pushed
    catalog.write(bundle.with_(certificate=certificate(bundle, "failed")))
    assert next(catalog.rows()).certificate == "failed"
    catalog.write(bundle.with_(certificate=certificate(bundle), app_code="app = 2\n"))
    (row,) = catalog.rows()
    assert (row.certificate, row.current) == ("stale", False)


def test_broken_environments_are_rows_and_the_others_are_listed(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    for env_id in ("bakery", "cinema", "dairy", "farm", "kiosk"):
        catalog.write(a_bundle(env_id))
    (tmp_path / "registry" / "bakery" / "manifest.json").write_text("{")
    (tmp_path / "registry" / "cinema" / "record.json").write_text("{}")
    (tmp_path / "registry" / "dairy").rename(tmp_path / "registry" / "dairy_two")
    (tmp_path / "registry" / "farm").rename(tmp_path / "registry" / "Farm house")
    errors = {row.env_id: row.error for row in catalog.rows()}
    assert list(errors) == ["Farm house", "bakery", "cinema", "dairy_two", "kiosk"]
    assert "manifest.json is malformed" in (errors["bakery"] or "")
    assert "record.json can't be read" in (errors["cinema"] or "")
    assert "holds the environment dairy; rename" in (errors["dairy_two"] or "")
    assert "is no env_id" in (errors["Farm house"] or "")
    assert errors["kiosk"] is None


def test_leftovers_and_strays_are_no_environments(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.write(a_bundle())
    (tmp_path / "registry" / "half" / ".staging-x").mkdir(parents=True)
    (tmp_path / "registry" / "README.md").write_text("Hello.")
    with catalog.lock("kiosk"):
        assert catalog.env_ids() == ["kiosk"]
    (tmp_path / "registry" / "half" / ".staging-x").rename(tmp_path / "registry" / "half" / ".commit")
    assert catalog.env_ids() == ["half", "kiosk"]


@pytest.mark.parametrize("env_id", ["../kiosk", "", ".", "Kiosk", "a/b"])
def test_no_name_leads_out_of_the_registry(tmp_path: Path, env_id: str) -> None:
    catalog = Catalog(tmp_path)
    for use in (catalog.directory, catalog.context, catalog.read, catalog.record):
        with pytest.raises(CatalogError, match="is no env_id"):
            use(env_id)
    with pytest.raises(CatalogError, match="is no env_id"), catalog.lock(env_id):
        pass


def test_what_is_not_there_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="has no environment kiosk"):
        Catalog(tmp_path).read("kiosk")
    with pytest.raises(CatalogError, match="can't be written"):
        Catalog(tmp_path).write_record("kiosk", RECORD)


def test_a_registry_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "registry").write_text("")
    catalog = Catalog(tmp_path)
    assert catalog.env_ids() == []
    with pytest.raises(CatalogError, match="can't be written"):
        catalog.write(a_bundle())
    with pytest.raises(CatalogError, match="can't be used"), catalog.lock("kiosk"):
        pass


def test_a_bundle_in_anothers_folder_is_not_read(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    catalog.write(a_bundle())
    (tmp_path / "registry" / "kiosk").rename(tmp_path / "registry" / "bakery")
    with pytest.raises(BundleError, match="holds the environment kiosk"):
        catalog.read("bakery")


HOLD = """
import sys
from pathlib import Path
from awm_factory.catalog import Catalog
with Catalog(Path(sys.argv[1])).lock("kiosk"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_process_at_a_time_works_on_an_environment_and_a_killed_one_lets_go(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path)
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(CatalogError, match="another awm-factory is working on kiosk"), catalog.lock("kiosk"):
            pass
        with catalog.lock("bakery"):
            pass
        other.kill()
        other.wait()
        with catalog.lock("kiosk", timeout=10):
            pass


def test_the_lock_holds_within_a_process_too(tmp_path: Path) -> None:
    with Catalog(tmp_path).lock("kiosk"), pytest.raises(CatalogError, match="another"), Catalog(tmp_path).lock("kiosk"):
        pass
    with Catalog(tmp_path).lock("kiosk"):
        pass


def test_the_workspace_is_the_one_given_or_the_current_folder_or_the_checkout(tmp_path: Path) -> None:
    given, cwd, checkout = (tmp_path / name for name in ("given", "cwd", "checkout"))
    for folder in (given, cwd, checkout):
        folder.mkdir()
    assert find_workspace(given, cwd, checkout) == given
    assert find_workspace(None, cwd, checkout) == checkout
    with pytest.raises(CatalogError, match="`mkdir registry` here, or name a workspace"):
        find_workspace(None, cwd, None)
    (cwd / "registry").mkdir()
    assert find_workspace(None, cwd, checkout) == cwd
    with pytest.raises(CatalogError, match="is no folder; make it"):
        find_workspace(tmp_path / "nowhere", cwd, checkout)
