"""The OS image made with mmdebstrap, with a program of our own in its place: the real one makes CI's base image."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from awm_factory.config import Config
from awm_factory.errors import BuildError, EngineError
from awm_factory.images import daemon, os_debian

ENGINE: Any = SimpleNamespace(platform="linux/arm64", client=None)
LISTED = """Debian|Debian|http://mirror.test/debian/
Debian|Debian-Security|http://mirror.test/security/
Other|Other|http://elsewhere.test/
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    program(folder, "apt-get", f"printf '%s' '{LISTED}'")
    return folder


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(cache=tmp_path / "cache")


def test_what_is_made_is_kept_in_a_form_that_any_engine_loads(programs: Path, config: Config, tmp_path: Path) -> None:
    program(programs, "mmdebstrap", f'printf "%s\\n" "$SOURCE_DATE_EPOCH" "$@" > {tmp_path}/asked\nfor last; do\n'
            'case "$last" in /*.tar) printf layer > "$last";; esac; done')  # fmt: skip
    recipe = os_debian.recipe(config)

    digest = os_debian.make(ENGINE, config, recipe, None, lambda _: None)

    assert digest == f"sha256:{hashlib.sha256(b'layer').hexdigest()}"
    with tarfile.open(os_debian.archive(config, "linux/arm64", digest)) as archive:
        content = {member.name: read(archive, member) for member in archive}
    [entry] = json.loads(content["manifest.json"])
    assert content[entry["Layers"][0]] == b"layer"
    image = json.loads(content[entry["Config"]])
    assert (image["architecture"], image["os"], image["rootfs"]["diff_ids"]) == ("arm64", "linux", [digest])
    asked = (tmp_path / "asked").read_text()
    assert "--architectures=arm64" in asked
    assert f"{os_debian.EPOCH}\n" in asked
    assert "deb http://mirror.test/debian trixie main" in asked
    assert "deb http://mirror.test/security trixie-security main" in asked
    assert [path.name for path in (config.cache / "os").iterdir()] == [os_debian.archive(config, "linux/arm64", digest).name]


def test_without_a_mirror_of_this_machine_mmdebstrap_takes_its_own(programs: Path, config: Config, tmp_path: Path) -> None:
    program(programs, "apt-get", "exit 0")
    script = f'printf "%s\\n" "$@" > {tmp_path}/asked; for last; do :; done; printf layer > "$last"'
    program(programs, "mmdebstrap", script)
    os_debian.make(ENGINE, config, os_debian.recipe(config), None, lambda _: None)
    *_, suite, target = (tmp_path / "asked").read_text().splitlines()
    assert (suite, target.endswith("/layer.tar")) == ("trixie", True)


def read(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    assert isinstance(file, io.BufferedReader)
    return file.read()


def test_what_was_made_is_used_again(programs: Path, config: Config) -> None:
    program(programs, "mmdebstrap", "exit 1")
    digest = f"sha256:{'5' * 64}"
    kept = os_debian.archive(config, "linux/arm64", digest)
    kept.parent.mkdir(parents=True)
    kept.touch()
    assert os_debian.make(ENGINE, config, os_debian.recipe(config), digest, pytest.fail) == digest


def test_a_failure_is_an_error_with_the_programs_last_words_and_leaves_nothing(programs: Path, config: Config) -> None:
    program(programs, "mmdebstrap", "echo 'E: mirror is unreachable' >&2; exit 1")
    with pytest.raises(BuildError, match=r"for linux/arm64:\nE: mirror is unreachable\n.*AWM_DEBIAN_MIRROR"):
        os_debian.make(ENGINE, config, os_debian.recipe(config), None, lambda _: None)
    assert list((config.cache / "os").iterdir()) == []


def test_another_recipe_is_another_os() -> None:
    recipe = os_debian.recipe(Config())
    other = os_debian.recipe(Config(debian_mirror="http://other.test/debian"))
    assert recipe.digest() == os_debian.recipe(Config()).digest() != other.digest()


def test_where_none_can_be_made_the_error_names_the_way_out(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "program", lambda _: None)
    with pytest.raises(EngineError, match=r"root on Debian or Ubuntu.*BASE_OS=hub takes python:3.13-slim-trixie instead"):
        os_debian.make(ENGINE, config, os_debian.recipe(config), None, lambda _: None)
    monkeypatch.setattr(os_debian.sys, "platform", "darwin")
    assert "Linux only" in (os_debian.impossible() or "")
