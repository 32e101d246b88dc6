"""Pushing a workspace: what a registry confirmed is recorded, what failed is a row, and nothing out of date goes out."""

from pathlib import Path
from typing import Any

import pytest

from awm_factory.build import Silent
from awm_factory.build.pushing import push_envs
from awm_factory.catalog import Catalog, Pushed, Record
from awm_factory.errors import UsageError
from bee_yard import certified
from standin_engine import standin_engine

IMAGE = "sha256:" + "5" * 64
DIGEST = "sha256:" + "c" * 64
TAG = "0123456789abcdef"
NAME = "127.0.0.1:5000/awm/bee_yard"
EARLIER = Pushed(reference=f"{NAME}@sha256:{'0' * 64}", digest=f"sha256:{'0' * 64}")
ELSEWHERE = Pushed(reference=f"ghcr.io/acme/bee_yard@{DIGEST}", digest=DIGEST)
PUSHED: list[dict[str, Any]] = [{"status": "Pushed"}, {"aux": {"Tag": "x", "Digest": DIGEST, "Size": 528}}]


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = Catalog(tmp_path)
    bundle = certified()
    catalog.write(bundle)
    images = {f"awm/bee_yard:{TAG}": IMAGE, "awm/bee_yard:latest": IMAGE}
    catalog.write_record("bee_yard", Record(bundle_digest=bundle.digest(), images=images, pushed=[EARLIER, ELSEWHERE]))
    return catalog


def engine_with(stream: list[dict[str, Any]]) -> Any:
    held = {f"{NAME}:{tag}": DIGEST for tag in (TAG, "latest", "v1")}
    return standin_engine(images={f"awm/bee_yard:{TAG}": IMAGE}, push_stream=stream, held=held)


def pushed(engine: Any, catalog: Catalog, env_ids: list[str], tag: str | None = None) -> Any:
    return push_envs(env_ids, catalog, engine.client, "127.0.0.1:5000/awm", tag, catalog.workspace / "logs", Silent())


def test_an_image_goes_under_digest_latest_and_the_tag_asked_for_and_replaces_the_record_of_that_place(catalog: Catalog) -> None:
    with engine_with(PUSHED) as engine:
        (row,) = pushed(engine, catalog, ["bee_yard"], "v1")
        assert (row.reference, row.tags, row.error) == (f"{NAME}@{DIGEST}", (TAG, "latest", "v1"), None)
        pushed(engine, catalog, ["bee_yard"])
    record = catalog.record("bee_yard")
    assert record is not None
    assert record.pushed == [ELSEWHERE, Pushed(reference=f"{NAME}@{DIGEST}", digest=DIGEST)]


def test_what_a_registry_refused_is_not_recorded_as_pushed(catalog: Catalog) -> None:
    with engine_with([{"error": "denied: not yours"}]) as engine:
        (row,) = pushed(engine, catalog, ["bee_yard"])
    assert row.reference is None
    assert "denied: not yours" in row.error
    assert row.exit_code == 6
    record = catalog.record("bee_yard")
    assert record is not None
    assert record.pushed == [EARLIER, ELSEWHERE]


def test_one_that_was_never_built_is_a_row_and_the_others_are_pushed(catalog: Catalog) -> None:
    bundle = certified()
    catalog.write(bundle.with_(manifest=bundle.manifest.model_copy(update={"env_id": "ant_hill"})))
    with engine_with(PUSHED) as engine:
        rows = pushed(engine, catalog, ["ant_hill", "bee_yard"])
    assert "awm-factory build ant_hill" in rows[0].error
    assert rows[1].reference == f"{NAME}@{DIGEST}"


def test_an_image_of_an_earlier_bundle_does_not_go_out(catalog: Catalog) -> None:
    catalog.write(certified(app_code="app = 'new'\n"))
    with engine_with(PUSHED) as engine:
        (row,) = pushed(engine, catalog, ["bee_yard"])
        assert "earlier bundle" in row.error
        assert not engine.asked("POST", "push")


def test_a_prefix_that_no_registry_takes_ends_the_command_before_anything_happens(catalog: Catalog) -> None:
    with engine_with(PUSHED) as engine, pytest.raises(UsageError):
        push_envs(["bee_yard"], catalog, engine.client, "https://ghcr.io/acme", None, catalog.workspace, Silent())
