from pathlib import Path

import docker
import pytest
from docker.errors import ImageNotFound

from awm_factory.config import Config
from awm_factory.images.base import BaseImage, ensure_base
from awm_factory.images.engine import Engine

LIMIT = 240 * 1000 * 1000
"""Bytes that a base image on the OS made here may have."""


def run(engine: Engine, base: BaseImage, *command: str, **options: object) -> str:
    """Run as a cautious trainer would: arbitrary user, read-only, no capabilities, no network."""
    cautious = {"user": "4321:99", "read_only": True, "cap_drop": ["ALL"], "network_mode": "none", "remove": True} | options
    return engine.client.containers.run(base.image_id, list(command), **cautious).decode()  # type: ignore[call-overload]


def test_it_is_not_built_twice(engine: Engine, base: BaseImage, config: Config) -> None:
    said: list[str] = []
    again = ensure_base(engine, config, said.append)
    assert (again.reference, again.image_id, again.built, said) == (base.reference, base.image_id, False, [])


def test_it_stays_under_its_limit_on_the_os_made_here(engine: Engine, base: BaseImage) -> None:
    image = engine.client.images.get(base.image_id)
    if not image.labels["awm.os"].startswith("awm/os:debian"):
        pytest.skip(f"the OS image is {image.labels['awm.os']}")
    assert image.attrs["Size"] <= LIMIT


def test_any_user_gets_python_313_and_any_other_command_is_executed(engine: Engine, base: BaseImage) -> None:
    assert run(engine, base, "python", "-V").startswith("Python 3.13.")
    assert run(engine, base, "sh", "-c", "echo $$; id -u; pwd").split() == ["1", "4321", "/tmp"]


def test_what_the_runtime_imports_comes_from_bytecode_of_the_image(engine: Engine, base: BaseImage) -> None:
    """Nothing could write it later, so each start would compile the sources again."""
    script = (
        "import importlib.util, pathlib, sys, fastapi, fastapi_mcp, sqlalchemy.orm, uvicorn, awm_runtime.contract\n"
        "modules = [getattr(m, '__file__', None) or '' for m in list(sys.modules.values())]\n"
        "files = [f for f in modules if f.endswith('.py')]\n"
        "print(len(files), [f for f in files if not pathlib.Path(importlib.util.cache_from_source(f)).is_file()])\n"
        # Flags 1: by hash and unchecked, so that a changed file time can't make it stale.
        "print({pathlib.Path(importlib.util.cache_from_source(f)).read_bytes()[4:8] for f in files} == {b'\\1\\0\\0\\0'})\n"
    )
    count, *rest = run(engine, base, "python", "-c", script).split()
    assert int(count) > 500
    assert rest == ["[]", "True"]


def test_locked_packages_are_there_in_the_locked_versions_and_no_installer(engine: Engine, base: BaseImage) -> None:
    script = "import importlib.metadata as m; [print(d.name.lower().replace('_', '-'), d.version) for d in m.distributions()]"
    lines = run(engine, base, "python", "-c", script).splitlines()
    installed = dict(line.split() for line in lines)
    assert {name.lower(): version for name, version in base.packages.items()} == installed
    assert "pip" not in installed


def test_hash_order_is_the_same_in_every_container(engine: Engine, base: BaseImage) -> None:
    assert len({run(engine, base, "python", "-c", "print(hash('a'))") for _ in range(2)}) == 1


def test_bases_that_differ_in_the_runtime_share_all_layers_but_the_last(
    engine: Engine, base: BaseImage, config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = tmp_path / "awm_runtime"
    runtime.mkdir()
    monkeypatch.setattr("awm_factory.resources.runtime_package", lambda: runtime)
    layers, references = [], {base.reference}
    for mark in ("one", "two"):
        (runtime / "__init__.py").write_text(f"MARK = {mark!r}\n")
        changed = ensure_base(engine, config, lambda _: None)
        try:
            assert changed.built
            assert run(engine, changed, "python", "-c", "import awm_runtime; print(awm_runtime.MARK)") == f"{mark}\n"
            layers.append(engine.client.images.get(changed.image_id).attrs["RootFS"]["Layers"])
            references.add(changed.reference)
        finally:
            remove(engine.client, changed.reference)
    assert len(references) == 3
    assert layers[0][:-1] == layers[1][:-1]
    assert layers[0][-1] != layers[1][-1]


def remove(client: docker.DockerClient, reference: str) -> None:
    try:
        client.images.remove(reference)
    except ImageNotFound:
        return
