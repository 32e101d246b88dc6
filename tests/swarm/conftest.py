"""A swarm of two private engines, in namespaces of their own; skipped where the machine can't have them."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from awm_factory.config import Config
from awm_factory.fleet.image import ensure_lease_image
from awm_factory.images import daemon
from awm_factory.images.base import ensure_base
from awm_factory.images.engine import ensure_engine, say_on_stderr
from awm_factory.images.os_image import ensure_os
from fleet_yard import yards
from swarm_support import ENVS, SUBNET, Swarm, impossible, network, node, registry

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.swarm)


@pytest.fixture(scope="module")
def swarm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swarm]:
    """Two nodes, the second not joined yet; images are on the first one only, as its own."""
    if reason := impossible():
        pytest.skip(reason)
    if daemon.program("docker-registry") is None:
        if not daemon.debian_like():
            pytest.skip("the registry server is missing: `sudo apt-get install docker-registry`")
        daemon.apt_install(["docker-registry"], "a swarm pulls from a real registry", say_on_stderr)
    folder = tmp_path_factory.mktemp("swarm")
    config = Config.load(workspace=folder)
    engine = ensure_engine(config)
    base = ensure_base(engine, config)
    own = [base.reference, ensure_os(engine, config).reference, ensure_lease_image(engine, config)]
    with (
        yards(engine, base, folder, ENVS) as images,
        network() as address,
        registry(folder, address) as trusted,
        node(11, folder, trusted) as manager,
        node(12, folder, trusted) as worker,
    ):
        save = subprocess.Popen(["docker", "save", *own, *(image.reference for image in images)], stdout=subprocess.PIPE)
        subprocess.run(["docker", f"--host={manager.host}", "load"], stdin=save.stdout, check=True, capture_output=True)
        assert save.wait() == 0
        manager.run("docker", "swarm", "init", "--advertise-addr", f"{SUBNET}.11")
        before = engine.client.info()["Swarm"]["LocalNodeState"]
        yield Swarm(manager, worker, trusted, folder)
        assert engine.client.info()["Swarm"]["LocalNodeState"] == before, "a test touched the user's engine"
