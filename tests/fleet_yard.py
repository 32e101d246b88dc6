"""What tests and benchmarks of fleets share: a workspace with small environments that have images, and containers that crash."""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import docker

from awm_factory.bundle import Bundle
from awm_factory.catalog import Catalog, Record
from awm_factory.certify import Options, certify
from awm_factory.images.base import BaseImage
from awm_factory.images.build import BuiltImage, build, discard, tag_verified
from awm_factory.images.engine import Engine
from awm_factory.images.render import render
from awm_factory.sandbox import ContainerSandbox
from bee_yard import working


@contextlib.contextmanager
def yards(engine: Engine, base: BaseImage, folder: Path, env_ids: Sequence[str]) -> Iterator[list[BuiltImage]]:
    """The bee yard under each of the names, proved once. Their images go afterwards."""
    catalog = Catalog(folder)
    with ContainerSandbox(engine.client, base.image_id, base.tag, owner="fleet-tests.1.00000000") as sandbox:
        bundle = certify(working(env_ids[0]), sandbox, Options()).bundle
    images: list[BuiltImage] = []
    try:
        for env_id in env_ids:
            one = renamed(bundle, env_id)
            image = build(engine.client, render(one, base, folder / "images"), base.reference, folder / "logs")
            tag_verified(engine.client, image)
            images.append(image)
            catalog.write(one)
            catalog.write_record(env_id, Record(bundle_digest=one.digest(), images={image.reference: image.image_id}))
        yield images
    finally:
        for image in images:
            for name in engine.client.images.get(image.image_id).tags:
                engine.client.images.remove(name)
            discard(engine.client, image.image_id)


def renamed(bundle: Bundle, env_id: str) -> Bundle:
    """The same environment under another name, its certificate with it."""
    other = bundle.with_(manifest=bundle.manifest.model_copy(update={"env_id": env_id}))
    assert bundle.certificate is not None
    subject = bundle.certificate.subject.model_copy(update={"bundle_digest": other.digest()})
    return other.with_(certificate=bundle.certificate.model_copy(update={"subject": subject}))


def crash(client: docker.DockerClient, name: str) -> None:
    """End a container as a crash would, so that the engine starts it again; `docker kill` would have it stay down.

    By a signal to its first process where that is one of this machine's; else, as in Docker Desktop, all other processes in it
    are killed, after which an environment's supervisor ends itself.
    """
    found = client.api.inspect_container(name)
    pid = found["State"]["Pid"]
    with contextlib.suppress(OSError):
        if sys.platform == "linux" and found["Id"] in Path(f"/proc/{pid}/cgroup").read_text():
            os.kill(pid, signal.SIGKILL)
            return
    client.containers.get(name).exec_run(["python", "-c", "import os; os.kill(-1, 9)"])
