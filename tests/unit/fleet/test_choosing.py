"""Which images a fleet stands on, and what keeps one from being planned; with an engine that only knows which images it has."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import docker
import pytest
from docker.errors import ImageNotFound

from awm_factory.build import Silent
from awm_factory.catalog import Catalog, Pushed, Record
from awm_factory.config import Config
from awm_factory.errors import CatalogError, EngineError, UsageError
from awm_factory.fleet import choosing, planning
from awm_factory.fleet.planning import Wish
from bee_yard import certified

ID = "sha256:" + "1" * 64
REFERENCE = "registry.example/awm/bee_yard@sha256:" + "2" * 64


@dataclass
class Images:
    """Of an engine that has these."""

    there: set[str] = field(default_factory=set)

    def get(self, reference: str) -> SimpleNamespace:
        if reference not in self.there:
            raise ImageNotFound(reference)
        return SimpleNamespace(id=reference)


def engine(*there: str) -> docker.DockerClient:
    return cast("docker.DockerClient", SimpleNamespace(images=Images(set(there))))


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    found = Catalog(tmp_path)
    bundle = certified()
    found.write(bundle)
    images = {"awm/bee_yard:latest": ID, "awm/bee_yard:0123456789abcdef": ID}
    pushed = [Pushed(reference=REFERENCE, digest="sha256:" + "2" * 64)]
    found.write_record("bee_yard", Record(bundle_digest=bundle.digest(), images=images, pushed=pushed))
    return found


def test_an_image_that_the_engine_has_is_taken_by_its_id(catalog: Catalog) -> None:
    [scenario] = choosing.local(["bee_yard"], catalog, engine(ID))
    assert (scenario.service, scenario.image.reference, scenario.image.pulled) == ("bee-yard", ID, False)


def test_one_that_only_a_registry_has_is_taken_from_there_by_digest(catalog: Catalog) -> None:
    [scenario] = choosing.local(["bee_yard"], catalog, engine())
    assert (scenario.image.reference, scenario.image.pulled) == (REFERENCE, True)


def test_every_environment_without_an_image_is_named_with_the_command_that_makes_them(catalog: Catalog) -> None:
    with pytest.raises(CatalogError, match="no image of orchard, pond; run `awm-factory build orchard pond`"):
        choosing.local(["orchard", "bee_yard", "pond"], catalog, engine(ID))


def test_an_environment_with_the_services_own_name_is_refused(catalog: Catalog) -> None:
    catalog.write(certified("Lease").with_(manifest=certified().manifest.model_copy(update={"env_id": "lease"})))
    catalog.write_record("lease", Record(bundle_digest="x", images={"awm/lease:0": ID}))
    with pytest.raises(UsageError, match="the name lease is the lease service's own"):
        choosing.local(["lease"], catalog, engine(ID))


def wish(**changes: Any) -> Wish:
    values: dict[str, Any] = {
        "envs": ["bee_yard"],
        "name": "trial",
        "kind": "swarm",
        "replicas": 1,
        "capacity": 8,
        "queue": 8,
        "port": None,
        "memory": None,
        "workers": None,
        "registry": None,
    }
    return Wish(**(values | changes))


@pytest.mark.parametrize(
    ("swarm", "registry", "said"),
    [
        ({"LocalNodeState": "active", "ControlAvailable": True}, None, "--registry"),
        ({"LocalNodeState": "inactive", "ControlAvailable": False}, "r.example/a", "docker swarm init"),
        ({"LocalNodeState": "active", "ControlAvailable": False}, "r.example/a", "on a manager"),
    ],
)
def test_what_a_swarm_needs_is_said_before_anything_is_pushed(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, swarm: dict[str, object], registry: str | None, said: str
) -> None:
    client = SimpleNamespace(info=lambda: {"Swarm": swarm, "NCPU": 2})
    monkeypatch.setattr(planning, "ensure_engine", lambda *_: SimpleNamespace(client=client))
    with pytest.raises((UsageError, EngineError), match=said):
        planning.plan(wish(registry=registry), Config(workspace=catalog.workspace), Silent())


def test_without_names_a_fleet_has_every_environment_with_an_image(catalog: Catalog) -> None:
    assert planning._counts(wish(envs=[], replicas=2), catalog) == {"bee_yard": 2}
    assert planning._counts(wish(envs=["Bee yard", "bee_yard"]), catalog) == {"bee_yard": 1}
    with pytest.raises(UsageError, match="run `awm-factory build` first"):
        planning._counts(wish(envs=[]), Catalog(catalog.workspace / "elsewhere"))


def test_an_environment_may_have_more_containers_than_the_others(catalog: Catalog) -> None:
    """Case 53: three of one and two of another."""
    asked = wish(envs=["lamp_hire=3", "Cat hotel=2", "bee_yard"], replicas=4)
    assert planning._counts(asked, catalog) == {"lamp_hire": 3, "cat_hotel": 2, "bee_yard": 4}
    for wrong in ("lamp_hire=", "lamp_hire=0", "lamp_hire=many", "lamp_hire=1001"):
        with pytest.raises(UsageError, match="how many containers, from 1 to 1000"):
            planning._counts(wish(envs=[wrong]), catalog)
