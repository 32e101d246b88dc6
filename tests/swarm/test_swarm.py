"""A fleet on a real swarm: one node, then two, one of which dies while episodes are played."""

import json
from pathlib import Path

import docker
import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from swarm_support import ENVS, Swarm

pytestmark = pytest.mark.timeout(1800)

PLAY = Path(__file__).with_name("play.py")


def containers(client: docker.DockerClient) -> list[dict[str, object]]:
    return [one.attrs for one in client.containers.list(filters={"label": "com.docker.stack.namespace=awm-fleet"})]


def waited(look: object, limit: float = 600) -> None:
    Retrying(stop=stop_after_delay(limit), wait=wait_fixed(0.5), retry=retry_if_result(lambda well: not well))(look)  # type: ignore[call-overload]


def test_on_one_node_a_fleet_comes_up_from_the_registry_serves_and_leaves_nothing(swarm: Swarm) -> None:
    shown = json.loads(
        swarm.fleet("up", "--engine", "swarm", "--registry", f"{swarm.registry}/awm", "--capacity", "8", "--json", *ENVS)
    )
    assert [len(one["containers"]) for one in shown["status"]["scenarios"]] == [1, 1]
    found = containers(swarm.manager.client())
    assert len(found) == 3
    for one in found:
        config, host = one["Config"], one["HostConfig"]
        assert isinstance(config, dict) and isinstance(host, dict)
        assert config["Image"].startswith(f"{swarm.registry}/awm/") and "@sha256:" in config["Image"]
        assert host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"] and host["Memory"] > 0 and host["PidsLimit"] > 0
    played = json.loads(swarm.manager.python(str(PLAY), shown["url"], shown["token_file"], "rounds", *ENVS))
    assert played == {"played": 16, "faults": {}}
    removed = json.loads(swarm.fleet("down", "--engine", "swarm", "--json"))
    assert len(removed["containers"]) == 3 and len(removed["volumes"]) == 1 and len(removed["files"]) == 2
    client = swarm.manager.client()
    assert not containers(client) and not client.volumes.list()
    assert not [one for one in client.networks.list() if one.name.startswith("awm-fleet")]


def test_on_two_nodes_a_node_that_dies_under_load_costs_its_own_leases_only(swarm: Swarm) -> None:
    token = swarm.manager.run("docker", "swarm", "join-token", "--quiet", "worker").strip()
    swarm.worker.run("docker", "swarm", "join", "--token", token, f"{swarm.manager.address}:2377")
    options = ("--engine", "swarm", "--registry", f"{swarm.registry}/awm", "--replicas", "2", "--capacity", "8", "--json")
    shown = json.loads(swarm.fleet("up", *options, *ENVS))
    assert [len(one["containers"]) for one in shown["status"]["scenarios"]] == [2, 2]
    there = {one["Id"] for one in containers(swarm.worker.client())}
    assert len(there) == 2, "replicas are not spread over the nodes"

    player = swarm.manager.start(str(PLAY), shown["url"], shown["token_file"], "until-lost", *ENVS)
    try:
        assert player.stdout is not None and player.stdout.readline() == "playing\n"
        swarm.worker.kill()
        out, _ = player.communicate(timeout=900)
    finally:
        player.kill()
    told = json.loads(out)
    assert told["lost"] == 8 and told["kept"] == 8, told
    assert set(told["faults"]) <= {"container_died", "hung_up", "no_answer"}, told
    assert told["new_leases_meanwhile"] > 0 and told["wrong"] == 0, told

    def replaced() -> bool:
        status = json.loads(swarm.fleet("status", "--engine", "swarm", "--json"))["status"]
        return [len(one["containers"]) for one in status["scenarios"]] == [2, 2]

    waited(replaced)
    swarm.fleet("down", "--engine", "swarm")
    assert not containers(swarm.manager.client())
