"""How long a fleet may take to come up: as long as its containers keep coming."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import docker
import httpx
import pytest
from tenacity import nap

from awm_factory.errors import EngineError
from awm_factory.fleet import operate
from awm_factory.fleet.files import FleetFiles
from awm_factory.fleet.lease.status import ContainerStatus, ScenarioStatus, Status

EXPECTED = {"bee_yard": 3, "pond": 1}


class Machine:
    """Seconds pass while somebody waits; each of its containers answers at its time."""

    def __init__(self, answers_at: list[float], *, broken: bool = False) -> None:
        self.now, self.answers_at, self.broken = 0.0, answers_at, broken
        self.said: list[str] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def status(self, _files: FleetFiles) -> Status:
        if self.now < 10:
            raise httpx.ConnectError("the lease service is not there yet")
        up = sum(self.now >= at for at in self.answers_at)
        containers = [ContainerStatus(host="", address="", episodes=0, capacity=1, accepting=True)] * up
        scenarios = [
            ScenarioStatus(env_id="bee_yard", leases=0, waiting=0, containers=containers[:3]),
            ScenarioStatus(env_id="pond", leases=0, waiting=0, containers=containers[3:]),
        ]
        return Status(leases=0, waiting=0, episodes=0, capacity=up, scenarios=scenarios)


def come_up(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operate, "_ask", machine.status)
    monkeypatch.setattr(operate.orchestrators, "ended", lambda *_: machine.broken)
    monkeypatch.setattr(operate, "time", SimpleNamespace(monotonic=lambda: machine.now))
    monkeypatch.setattr(nap, "time", SimpleNamespace(sleep=machine.sleep))
    files = FleetFiles.of(Path("/nowhere"), "trial")
    operate._wait_ready(files, cast("docker.DockerClient", None), "", EXPECTED, machine.said.append)


def test_a_busy_machine_that_starts_one_container_after_the_other_has_the_time_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine([300.0, 600.0, 900.0, 1200.0])
    come_up(machine, monkeypatch)
    assert machine.said == [f"{count} of 4 containers answer" for count in range(5)]
    assert machine.now == pytest.approx(1200, abs=1)


@pytest.mark.parametrize(("broken", "seconds"), [(True, 120), (False, 900)])
def test_a_container_that_never_answers_is_given_up_and_named_sooner_where_one_ended(
    broken: bool, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine([20.0, 30.0, 1e9, 1e9], broken=broken)
    with pytest.raises(EngineError, match=rf"within {seconds} s, and these do not: 1 of bee_yard, 1 of pond"):
        come_up(machine, monkeypatch)
    assert machine.now == pytest.approx(30 + seconds, abs=1)
