"""Environment images on a real engine: their labels, their one thin layer, and what is left of a build that fails."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from awm_factory.errors import BuildError
from awm_factory.images import build as build_module
from awm_factory.images.base import BaseImage
from awm_factory.images.build import BuiltImage, build, discard, find, run_build, tag_verified
from awm_factory.images.context import Context, tar
from awm_factory.images.engine import Engine
from awm_factory.images.render import render
from bee_yard import certified

SCENARIO = 'Mugs "R" Us\nRUN $(id) \\ ${PATH}'


@pytest.fixture
def context(base: BaseImage, tmp_path: Path) -> Context:
    return render(certified(SCENARIO), base, tmp_path / "images")


@pytest.fixture
def built(engine: Engine, base: BaseImage, context: Context, tmp_path: Path) -> Iterator[BuiltImage]:
    image = build(engine.client, context, base.reference, tmp_path / "logs")
    yield image
    for name in engine.client.images.get(image.image_id).tags:
        engine.client.images.remove(name)
    discard(engine.client, image.image_id)


def left_over(engine: Engine, name: Path) -> list[object]:
    """Images and containers that bear the label of one test's Dockerfile."""
    label = {"label": f"awm.test={name}"}
    return [*engine.client.images.list(all=True, filters=label), *engine.client.containers.list(all=True, filters=label)]


def test_labels_reach_the_image_as_they_are_meant(engine: Engine, base: BaseImage, built: BuiltImage) -> None:
    labels = engine.client.images.get(built.image_id).labels
    assert labels["org.opencontainers.image.title"] == " ".join(SCENARIO.split())
    assert labels["awm.env_id"] == "bee_yard"
    assert labels["awm.base"] == base.reference
    said = json.loads(labels["awm.certificate"])
    assert (said["passed"], said["gates"], said["tasks"]) == (True, {"schema": "passed"}, [0, 2])


def test_an_environment_adds_one_layer_with_its_files_readable_by_anybody(
    engine: Engine, base: BaseImage, built: BuiltImage
) -> None:
    image, below = engine.client.images.get(built.image_id), engine.client.images.get(base.image_id)
    assert image.attrs["RootFS"]["Layers"][:-1] == below.attrs["RootFS"]["Layers"]
    assert image.attrs["Size"] - below.attrs["Size"] <= 1_000_000
    assert image.attrs["Config"]["Entrypoint"] == below.attrs["Config"]["Entrypoint"]
    listing = engine.client.containers.run(
        built.image_id,
        [
            "sh",
            "-c",
            "cd /env && find . -type f | sort && cat tasks.jsonl verifiers/2.code.py && stat -c '%u %g %a %Y' app.py verifiers",
        ],
        user="48211:48211",
        read_only=True,
        cap_drop=["ALL"],
        network_mode="none",
        remove=True,
    ).decode()
    assert "./seed.db" in listing
    assert "./verifiers/0.code.py" in listing
    assert "# verifier 2" in listing
    assert "1.code.py" not in listing
    assert "solutions" not in listing
    assert "Dockerfile" not in listing
    assert listing.splitlines()[-2:] == ["0 0 644 0", "0 0 755 0"]


def test_the_same_context_gives_the_same_image_and_no_tag_before_it_is_verified(
    engine: Engine, base: BaseImage, context: Context, built: BuiltImage, tmp_path: Path
) -> None:
    assert engine.client.images.get(built.image_id).tags == []
    assert find(engine.client, context) is None
    assert build(engine.client, context, base.reference, tmp_path / "logs") == built
    tag_verified(engine.client, built)
    tag_verified(engine.client, built)
    assert sorted(engine.client.images.get(built.image_id).tags) == [context.reference, "awm/bee_yard:latest"]
    assert find(engine.client, context) == built
    discard(engine.client, built.image_id)
    assert find(engine.client, context) == built, "what bears a tag is not discarded"


def test_a_failed_build_says_why_and_leaves_no_image_and_no_container(engine: Engine, base: BaseImage, tmp_path: Path) -> None:
    folder = tmp_path / "context"
    folder.mkdir()
    (folder / "Dockerfile").write_text(
        f"FROM {base.reference}\nLABEL awm.test={tmp_path}\nRUN echo wanted: beehive-ledger==9.9 >&2; exit 7\n"
    )
    with pytest.raises(BuildError, match=r"beehive-ledger==9\.9") as caught:
        run_build(engine.client, tar(folder), tmp_path / "build.log", what="it")
    assert "returned a non-zero code: 7" in str(caught.value)
    assert str(tmp_path / "build.log") in str(caught.value)
    assert left_over(engine, tmp_path) == []


def test_an_interrupted_build_leaves_no_image_and_no_container(
    engine: Engine, base: BaseImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "context"
    folder.mkdir()
    (folder / "Dockerfile").write_text(f"FROM {base.reference}\nLABEL awm.test={tmp_path}\nRUN echo begun; sleep 300\n")
    write = build_module.Log.write

    def interrupted(log: build_module.Log, text: str) -> None:
        write(log, text)
        if "begun" in text and not text.startswith("Step"):
            assert len(left_over(engine, tmp_path)) == 2
            raise KeyboardInterrupt

    monkeypatch.setattr(build_module.Log, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_build(engine.client, tar(folder), tmp_path / "build.log", what="it")
    assert left_over(engine, tmp_path) == []
    assert not (tmp_path / "build.log").exists()
