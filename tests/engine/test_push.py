"""Images to a real registry and back: pushed, removed here, pulled by digest, run, and the same to the last byte."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from docker.errors import ImageNotFound

from awm_factory.bundle import Bundle
from awm_factory.certify import Options, certify
from awm_factory.errors import PushError
from awm_factory.images.base import BaseImage
from awm_factory.images.build import BuiltImage, build, discard, tag_verified
from awm_factory.images.engine import Engine
from awm_factory.images.push import push
from awm_factory.images.render import render
from awm_factory.images.smoke import smoke
from awm_factory.sandbox import ContainerSandbox
from bee_yard import working

OWN = "push-tests.1.00000000"


@pytest.fixture(scope="module")
def bundle(engine: Engine, base: BaseImage) -> Bundle:
    with ContainerSandbox(engine.client, base.image_id, base.tag, owner=OWN) as sandbox:
        return certify(working("bee_yard_pushed"), sandbox, Options()).bundle


@pytest.fixture
def image(engine: Engine, base: BaseImage, bundle: Bundle, tmp_path: Path) -> Iterator[BuiltImage]:
    built = build(engine.client, render(bundle, base, tmp_path / "images"), base.reference, tmp_path / "logs")
    tag_verified(engine.client, built)
    yield built
    remove(engine, built)


def remove(engine: Engine, built: BuiltImage) -> None:
    try:
        names = engine.client.images.get(built.image_id).attrs
    except ImageNotFound:
        return
    for name in [*names["RepoTags"], *names["RepoDigests"]]:
        try:
            engine.client.images.remove(name)
        except ImageNotFound:
            continue
    discard(engine.client, built.image_id)


def test_a_pushed_image_comes_back_by_its_digest_on_an_engine_that_has_lost_it(
    engine: Engine, base: BaseImage, bundle: Bundle, registry: str, image: BuiltImage, tmp_path: Path
) -> None:
    tags = (image.context.tag, "latest", "v1")
    pushed = push(engine.client, image.reference, f"{registry}/awm", tags, tmp_path / "logs")
    assert pushed.reference == f"{registry}/awm/bee_yard_pushed@{pushed.digest}"
    assert set(httpx.get(f"http://{registry}/v2/awm/bee_yard_pushed/tags/list").json()["tags"]) == set(tags)

    remove(engine, image)
    with pytest.raises(ImageNotFound):
        engine.client.images.get(image.image_id)
    pulled = engine.client.images.pull(pushed.reference)
    assert pulled.id == image.image_id
    assert pulled.attrs["RepoDigests"] == [pushed.reference]
    report = smoke(engine.client, str(pulled.id), bundle, base.image_id, OWN)
    assert report.checks["calls"] == "list_hives read, add_hive wrote"
    assert not (tmp_path / "logs").exists() or not list((tmp_path / "logs").iterdir())


def test_pushing_again_gives_the_same_digest(engine: Engine, registry: str, image: BuiltImage, tmp_path: Path) -> None:
    first = push(engine.client, image.reference, f"{registry}/awm", ("latest",), tmp_path)
    assert push(engine.client, image.reference, f"{registry}/awm", ("latest",), tmp_path) == first


def test_a_registry_that_is_not_there_is_an_error_and_leaves_no_name_behind(
    engine: Engine, image: BuiltImage, tmp_path: Path
) -> None:
    with pytest.raises(PushError, match=r"127\.0\.0\.1:9/awm/bee_yard_pushed:latest was not pushed") as caught:
        push(engine.client, image.reference, "127.0.0.1:9/awm", ("latest",), tmp_path)
    assert "connection refused" in str(caught.value)
    assert not any(name.startswith("127.0.0.1:9/") for name in engine.client.images.get(image.image_id).tags)
