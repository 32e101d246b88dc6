"""A fleet on this machine's engine: what runs in it, who reaches what, and what is left when containers die or it ends."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from awm_factory.build import Silent
from awm_factory.client import Fleet
from awm_factory.config import Config
from awm_factory.errors import EpisodeLost
from awm_factory.fleet import operate, orchestrators
from awm_factory.fleet.operate import Running
from awm_factory.fleet.planning import Planned, Wish, plan
from awm_factory.images.base import BaseImage
from awm_factory.images.engine import Engine
from fleet_yard import crash, yards

ENVS = ("bee_yard_north", "bee_yard_south")
NAME = f"test-{os.getpid()}"
SERVICES = ("bee-yard-north", "bee-yard-south")


@pytest.fixture(scope="module")
def workspace(engine: Engine, base: BaseImage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """With two environments that have images."""
    folder = tmp_path_factory.mktemp("workspace")
    with yards(engine, base, folder, ENVS):
        yield folder


@dataclass
class Up:
    planned: Planned
    running: Running
    engine: Engine
    image: str
    """Of containers that stand for trainers and agents."""

    @property
    def fleet(self) -> Fleet:
        return Fleet.connect(self.running.url, self.planned.files.token())

    @property
    def label(self) -> str:
        return self.planned.orchestrator.label(self.planned.files)

    def inspected(self) -> dict[str, list[dict[str, object]]]:
        found: dict[str, list[dict[str, object]]] = {}
        for one in self.engine.client.containers.list(filters={"label": self.label}):
            found.setdefault(one.labels["com.docker.compose.service"], []).append(one.attrs)
        return found

    def inside(self, network: str, code: str) -> str:
        """What a Python program prints in a container on one of the fleet's networks."""
        name = f"{self.planned.files.project}_{network}"
        output = self.engine.client.containers.run(self.image, ["python", "-c", code], network=name, remove=True)
        return output.decode()

    def pid(self, name: str) -> int:
        return int(self.engine.client.api.inspect_container(name)["State"]["Pid"])


def wish(**changes: object) -> Wish:
    made = Wish(ENVS, NAME, "compose", 2, 4, 16, None, 256, None, None)
    return replace(made, **changes)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def up(engine: Engine, base: BaseImage, workspace: Path) -> Iterator[Up]:
    planned = plan(wish(), Config.load(workspace=workspace), Silent())
    try:
        yield Up(planned, planned.start(lambda _: None), engine, base.image_id)
    finally:
        operate.down(planned.files, planned.orchestrator, planned.client)


def test_every_container_is_hardened_and_nothing_but_the_lease_service_on_loopback_is_published(up: Up) -> None:
    found = up.inspected()
    assert {service: len(ones) for service, ones in found.items()} == {"lease": 1, SERVICES[0]: 2, SERVICES[1]: 2}
    project = up.planned.files.project
    for service, ones in found.items():
        for one in ones:
            host = one["HostConfig"]
            assert isinstance(host, dict)
            assert host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"] and not host["Privileged"]
            assert "no-new-privileges:true" in host["SecurityOpt"]
            assert host["Memory"] > 0 and host["MemorySwap"] == host["Memory"] and host["PidsLimit"] > 0
            assert host["RestartPolicy"]["Name"] == "unless-stopped"
            networks, ports = set(one["NetworkSettings"]["Networks"]), host["PortBindings"]  # type: ignore[index]
            if service == "lease":
                assert networks == {f"{project}_trainers"}
                assert [binding["HostIp"] for bindings in ports.values() for binding in bindings] == ["127.0.0.1"]
            else:
                assert networks == {f"{project}_trainers", f"{project}_agents"} and not ports
    assert all(image.startswith("sha256:") for ones in found.values() for one in ones for image in [one["Config"]["Image"]])  # type: ignore[index]


def test_tokens_are_random_and_for_their_owner_only(up: Up) -> None:
    folder = up.planned.files.secrets
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    token = up.planned.files.token()
    assert len(token) == 48 and token not in up.planned.files.document.read_text()
    assert token != (folder / "container-token").read_text().strip()
    assert httpx.get(f"{up.running.url}/status").status_code == 401
    for one in (one for service, ones in up.inspected().items() if service != "lease" for one in ones):
        assert not any(token in setting for setting in one["Config"]["Env"])  # type: ignore[index]


def test_agents_reach_mcp_alone_and_trainers_the_lease_service(up: Up) -> None:
    asked = {
        "control plane": f"http://{SERVICES[0]}:8000/tasks",
        "episodes": f"http://{SERVICES[0]}:8000/episodes",
        "agent's port": f"http://{SERVICES[0]}:8001/mcp",
        "agent's port, control route": f"http://{SERVICES[0]}:8001/tasks",
        "lease service": "http://lease:8080/health",
        "outside": "http://1.1.1.1/",
    }
    code = f"""
import json, urllib.request, urllib.error
found = {{}}
for name, url in {asked!r}.items():
    try:
        # What answers has all the time that a busy machine takes; nothing ever comes from outside.
        limit = 3 if name == "outside" else 60
        found[name] = urllib.request.urlopen(urllib.request.Request(url, method="GET"), timeout=limit).status
    except urllib.error.HTTPError as error:
        found[name] = error.code
    except OSError as error:
        found[name] = "unreachable"
print(json.dumps(found))
"""
    common = {
        "control plane": 401,
        "episodes": 401,
        "agent's port": 405,
        "agent's port, control route": 404,
        "outside": "unreachable",
    }
    assert json.loads(up.inside("agents", code)) == common | {"lease service": "unreachable"}
    assert json.loads(up.inside("trainers", code)) == common | {"lease service": 200}


def test_a_lease_from_within_leads_agents_straight_to_the_container(up: Up) -> None:
    post = """
import json, sys, urllib.request
def post(url, body, token=None):
    headers = {"content-type": "application/json", **({"authorization": "Bearer " + token} if token else {})}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    return urllib.request.urlopen(request, timeout=60).read().decode()
"""
    token = up.planned.files.token()
    asked = {"env_id": ENVS[0], "task_id": 0, "ttl": 30}
    lease = json.loads(up.inside("trainers", f"{post}print(post('http://lease:8080/leases', {asked!r}, {token!r}))"))
    assert lease["agent_url"].startswith(f"http://{up.planned.files.project}-{SERVICES[0]}-")
    assert lease["agent_url"].endswith(f":8001/episodes/{lease['episode_id']}/mcp")
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    reply = json.loads(up.inside("agents", f"{post}print(post({lease['agent_url']!r}, {listing!r}))"))
    assert reply["result"]["tools"]
    verdict = json.loads(up.inside("trainers", f"{post}print(post({lease['control_url']!r} + '/verify', {{}}, {token!r}))"))
    assert verdict["mode"] == "code"
    ended = httpx.delete(f"{up.running.url}/leases/{lease['lease_id']}", headers={"authorization": f"Bearer {token}"})
    assert ended.status_code == 204


def test_a_dead_container_ends_its_leases_as_the_fleets_fault_and_a_restarted_service_keeps_the_others(up: Up) -> None:
    async def play() -> None:
        envs = [await up.fleet.lease(ENVS[0], 0).__aenter__() for _ in range(4)]
        status = await up.fleet.status()
        victim, other = next(one["containers"] for one in status["scenarios"] if one["env_id"] == ENVS[0])
        assert victim["episodes"] == other["episodes"] == 2
        crash(up.engine.client, victim["host"])
        outcomes = []
        for env in envs:
            try:
                outcomes.append(len(await env.tools()) > 0)
            except EpisodeLost as lost:
                outcomes.append(lost.code == "container_died" and lost.masked and "lost")
        assert sorted(map(str, outcomes)) == ["True", "True", "lost", "lost"]
        async with up.fleet.lease(ENVS[0], 0) as new, up.fleet.lease(ENVS[1], 0):
            assert await new.tools()

        up.engine.client.containers.get(f"{up.planned.files.project}-lease-1").restart(timeout=3)
        await asyncio.to_thread(_answers, f"{up.running.url}/health")
        for env, outcome in zip(envs, outcomes, strict=True):
            if outcome is True:
                await env.submit("done")
            await env.close()
        await asyncio.to_thread(wait_for, up, replicas=2, leases=0)

    asyncio.run(play())


def _answers(url: str) -> None:
    def look() -> bool:
        try:
            return httpx.get(url).status_code == 200
        except httpx.TransportError:
            return False

    Retrying(stop=stop_after_delay(30), wait=wait_fixed(0.1), retry=retry_if_result(lambda well: not well))(look)


def wait_for(up: Up, *, replicas: int, leases: int) -> None:
    def look() -> bool:
        said = operate.status(up.planned.files, up.planned.orchestrator, up.planned.client).status
        return [len(one.containers) for one in said.scenarios] == [replicas, replicas] and said.leases == leases

    Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.2), retry=retry_if_result(lambda well: not well))(look)


def test_scaled_down_and_up_again_it_has_no_orphans_and_the_same_address_and_tokens(up: Up, workspace: Path) -> None:
    before, token = up.running.url, up.planned.files.token()
    kept = up.pid(f"{up.planned.files.project}-{SERVICES[0]}-1")
    for replicas in (1, 2):
        planned = plan(wish(replicas=replicas), Config.load(workspace=workspace), Silent())
        running = planned.start(lambda _: None)
        assert {service: len(ones) for service, ones in up.inspected().items()} == {
            "lease": 1,
            SERVICES[0]: replicas,
            SERVICES[1]: replicas,
        }
        assert (running.url, planned.files.token()) == (before, token)
    assert up.pid(f"{up.planned.files.project}-{SERVICES[0]}-1") == kept, "a container that need not change was restarted"


def test_the_command_shows_the_fleet_and_takes_it_down_without_a_trace(up: Up, workspace: Path) -> None:
    files = up.planned.files

    def awm(*arguments: str) -> str:
        command = [sys.executable, "-m", "awm_factory", "--workspace", str(workspace), "fleet", *arguments, "--name", NAME]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    shown = json.loads(awm("status", "--json"))
    assert shown["url"] == up.running.url and len(shown["parts"]) == 5
    table = awm("status")
    assert all(f"{files.project}-{service}-{number}:8001" in table for service in SERVICES for number in (1, 2))
    before = orchestrators.present(up.engine.client, up.label)
    assert len(before.containers) == 5 and len(before.networks) == 2 and len(before.volumes) == 1
    removed = json.loads(awm("down", "--json"))
    assert (len(removed["containers"]), len(removed["networks"]), len(removed["volumes"])) == (5, 2, 1)
    assert orchestrators.present(up.engine.client, up.label).nothing
    assert list(files.folder.iterdir()) == []
    assert json.loads(awm("down", "--json")) == {"containers": [], "networks": [], "volumes": [], "files": []}


def test_a_fleet_that_is_interrupted_while_it_starts_leaves_nothing(engine: Engine, workspace: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "awm_factory",
        "--workspace",
        str(workspace),
        "fleet",
        "up",
        "--name",
        f"{NAME}-cut",
        ENVS[0],
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "containers answer" in line:
            process.send_signal(signal.SIGTERM)
            break
    _, err = process.communicate(timeout=150)
    assert process.returncode == 130, err
    assert orchestrators.present(engine.client, f"com.docker.compose.project=awm-{NAME}-cut").nothing
    assert not list((workspace / "compose").glob(f"{NAME}-cut*"))
