"""What a fleet is before anything runs: its file, its tokens, its images, and files given by hand."""

import json
import os
import stat
from pathlib import Path

import pytest
import yaml

from awm_factory.errors import UsageError
from awm_factory.fleet import given, operate
from awm_factory.fleet.files import FleetFiles
from awm_factory.fleet.model import Fleet, Image, Scenario
from awm_factory.fleet.render import port_of, rendered

OWN = Image("sha256:" + "a" * 64, pulled=False)
PUSHED = Image("registry.example/awm/bee_yard@sha256:" + "b" * 64, pulled=True)


def fleet(**changes: object) -> Fleet:
    values: dict[str, object] = {
        "name": "trial",
        "lease": OWN,
        "scenarios": [Scenario("bee_yard", "bee-yard", OWN, replicas=3), Scenario("2048", "2048", PUSHED, replicas=2)],
        "capacity": 128,
        "queue": 64,
        "port": 20500,
        "workers": 1,
        "memory_mib": 768,
        "warm_mib": 77,
        "node": "n0de",
    }
    return Fleet(**(values | changes))  # type: ignore[arg-type]


def test_the_file_for_compose_has_what_hardens_and_nothing_that_clashes() -> None:
    document = yaml.safe_load(rendered(fleet(), "compose", "trial.secrets"))
    assert document["name"] == "awm-trial" and set(document["services"]) == {"lease", "bee-yard", "2048"}
    for name, service in document["services"].items():
        assert service["read_only"] is True and service["cap_drop"] == ["ALL"] and "container_name" not in service
        assert service["security_opt"] == ["no-new-privileges:true"] and service["mem_limit"] == service["memswap_limit"]
        assert service["healthcheck"]["test"] == ["CMD", "/opt/awm/bin/awm-healthcheck"]
        assert service.get("ports") == (["127.0.0.1:20500:8081"] if name == "lease" else None)
        assert {"type": "tmpfs", "target": "/tmp", "tmpfs": {"size": 67108864}} in service["volumes"]
    assert document["services"]["lease"]["networks"] == ["trainers"]
    assert (document["services"]["bee-yard"]["scale"], document["services"]["2048"]["scale"]) == (3, 2)
    assert document["services"]["2048"]["labels"] == {"awm.env_id": "2048"}


def test_an_image_of_ours_is_never_pulled_and_a_pushed_one_only_by_digest() -> None:
    services = yaml.safe_load(rendered(fleet(), "compose", "s"))["services"]
    assert (services["bee-yard"]["image"], services["bee-yard"]["pull_policy"]) == (OWN.reference, "never")
    assert (services["2048"]["image"], services["2048"]["pull_policy"]) == (PUSHED.reference, "missing")


def test_the_file_for_a_swarm_says_the_same_in_its_words_and_nothing_that_a_stack_ignores() -> None:
    document = yaml.safe_load(rendered(fleet(), "swarm", "s"))
    assert "name" not in document and document["version"] == "3.9", (
        "an older docker command takes a file without a version for 1.0"
    )
    ignored = {
        "security_opt",
        "mem_limit",
        "memswap_limit",
        "pids_limit",
        "scale",
        "restart",
        "pull_policy",
        "init",
        "container_name",
    }
    for name, service in document["services"].items():
        assert not ignored & set(service), name
        assert service["read_only"] is True and service["cap_drop"] == ["ALL"]
        assert service["deploy"]["resources"]["limits"]["pids"] > 0 and service["deploy"]["resources"]["limits"]["memory"]
    assert [document["services"][name]["deploy"]["replicas"] for name in ("bee-yard", "2048")] == [3, 2]
    assert document["services"]["bee-yard"]["deploy"]["endpoint_mode"] == "dnsrr"
    assert document["services"]["lease"]["deploy"]["placement"] == {"constraints": ["node.id == n0de"]}
    assert document["networks"]["agents"] == {"internal": True, "driver": "overlay", "attachable": True}


@pytest.mark.parametrize("engine", ["compose", "swarm"])
def test_no_token_is_in_the_file_and_its_port_can_be_read_back(engine: str) -> None:
    document = rendered(fleet(), engine, "trial.secrets").decode()  # type: ignore[arg-type]
    assert "TOKEN" not in document and port_of(document) == 20500


def test_tokens_are_made_once_and_only_their_owner_can_read_them(tmp_path: Path) -> None:
    files = FleetFiles.of(tmp_path, "trial")
    before = os.umask(0)
    try:
        files.ensure_secrets()
    finally:
        os.umask(before)
    first = {path.name: path.read_text() for path in files.secrets.iterdir()}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files.secrets.iterdir()} == {0o600}
    assert stat.S_IMODE(files.secrets.stat().st_mode) == 0o700
    assert files.token() in first["lease.env"] and files.token() not in first["containers.env"]
    assert first["container-token"].strip() in first["containers.env"]
    files.ensure_secrets()
    assert {path.name: path.read_text() for path in files.secrets.iterdir()} == first
    files.write(b"x")
    assert sorted(path.name for path in files.remove()) == ["trial.secrets", "trial.yaml"]
    assert files.remove() == [] and list(files.folder.iterdir()) == []


@pytest.mark.parametrize("name", ["", "-a", "A", "a_b", "../x", "a" * 41, "a b"])
def test_a_name_that_no_engine_takes_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="no name for a fleet"):
        FleetFiles.of(tmp_path, name)


def test_a_fleet_keeps_its_port_and_a_new_one_gets_a_free_one(tmp_path: Path) -> None:
    files = FleetFiles.of(tmp_path, "trial")
    assert 20000 <= operate.free_port(files) < 32768
    files.write(rendered(fleet(port=20999), "compose", "s"))
    assert operate.free_port(files) == 20999
    with pytest.raises(UsageError, match="there is no fleet other"):
        operate.address(FleetFiles.of(tmp_path, "other"))


def test_clashes_of_a_file_given_by_hand_are_all_named() -> None:
    document = given.Document.model_validate(
        {
            "services": {
                "lamp_hire": {"container_name": "lamp_hire", "ports": [{"published": "8001"}], "deploy": {"replicas": 3}},
                "cat_hotel": {"container_name": "cat_hotel", "ports": [{"published": "8001"}], "scale": 2},
                "alone": {"container_name": "alone", "ports": [{"published": "9000"}, {"published": "9100-9110"}]},
            }
        }
    )
    found = given.clashes(document)
    assert [one.partition(":")[0] for one in found] == [
        "lamp_hire",
        "lamp_hire",
        "cat_hotel",
        "cat_hotel",
        "lamp_hire and cat_hotel",
    ]
    assert "can't all be called lamp_hire" in found[0] and "host's port 8001" in found[1] and "port 8001" in found[4]


def test_what_is_rendered_has_no_clash_and_tells_its_containers() -> None:
    document = yaml.safe_load(rendered(fleet(), "compose", "s"))
    for service in document["services"].values():
        service["ports"] = [{"published": port.split(":")[1]} for port in service.get("ports", [])]
    found = given.Document.model_validate(json.loads(json.dumps(document)))
    assert given.clashes(found) == []
    assert found.expected() == {"bee_yard": 3, "2048": 2}
    with pytest.raises(UsageError, match="no service lease"):
        given.Document.model_validate({"services": {"web": {}}}).expected()
