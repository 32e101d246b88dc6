"""Finding and installing Docker Compose, with programs of our own in the place of docker and apt."""

import os
from pathlib import Path

import pytest

from awm_factory.config import Config
from awm_factory.errors import EngineError
from awm_factory.images import compose_plugin, daemon


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(daemon, "_PATH", f"{folder}:{daemon._PATH}")
    monkeypatch.setattr(daemon, "_LOCK", tmp_path / "lock")
    monkeypatch.setattr(compose_plugin, "PLUGINS", tmp_path / "plugins")
    monkeypatch.setattr(daemon, "possible", lambda: True)
    return folder


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_a_plugin_that_is_there_is_used_as_it_is(programs: Path) -> None:
    program(programs, "docker", "echo v2.40.3")
    program(programs, "apt-get", "exit 9")
    assert compose_plugin.ensure_compose(Config()) == "2.40.3"


@pytest.mark.parametrize(
    "answer", ["echo 'docker: unknown command: docker compose' >&2; exit 1", "echo 'Docker version 20.10.24'"]
)
def test_an_older_docker_that_takes_compose_for_something_else_has_none(programs: Path, answer: str) -> None:
    program(programs, "docker", answer)
    assert compose_plugin.version() is None


def test_the_package_of_version_2_is_installed_where_apt_has_one(programs: Path, tmp_path: Path) -> None:
    program(programs, "docker", f"test -e {tmp_path}/installed && echo 2.24.6")
    program(programs, "apt-cache", 'test "$2" = docker-compose-v2 && printf "x:\\n  Candidate: 2.24.6+ds1\\n"')
    program(programs, "apt-get", f'case "$*" in *install*docker-compose-v2) touch {tmp_path}/installed;; esac')
    said: list[str] = []
    assert compose_plugin.ensure_compose(Config(), said.append) == "2.24.6"
    assert said == ["fleets need Docker Compose 2: installing docker-compose-v2"]


def test_where_apt_has_version_1_only_the_plugin_comes_out_of_the_next_debians_package(programs: Path, tmp_path: Path) -> None:
    program(programs, "docker", f"test -x {tmp_path}/plugins/docker-compose && echo 2.26.1")
    program(programs, "apt-cache", 'printf "docker-compose:\\n  Candidate: 1.29.2-3\\n"')
    program(programs, "apt-get", f'cat "$PWD/sources.list" >> {tmp_path}/mirrors; touch docker-compose_2.26.1_amd64.deb')
    plugin = "usr/libexec/docker/cli-plugins"
    program(programs, "dpkg-deb", f'mkdir -p "$3/{plugin}"; echo program > "$3/{plugin}/docker-compose"')
    assert compose_plugin.ensure_compose(Config(debian_mirror="http://mirror.example/debian"), lambda _: None) == "2.26.1"
    assert "deb http://mirror.example/debian trixie main\n" in (tmp_path / "mirrors").read_text()
    assert [path.name for path in (tmp_path / "plugins").iterdir()] == ["docker-compose"]


def test_a_mirror_that_fails_is_named_with_what_to_do(programs: Path) -> None:
    program(programs, "docker", "exit 1")
    program(programs, "apt-cache", "exit 0")
    program(programs, "apt-get", "echo 'E: Could not resolve mirror.example' >&2; exit 100")
    with pytest.raises(EngineError, match=r"Could not resolve mirror.example\nInstall the plugin"):
        compose_plugin.ensure_compose(Config(debian_mirror="http://mirror.example/debian"), lambda _: None)


def test_where_nothing_can_be_installed_the_error_says_what_to_install(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(programs, "docker", "exit 1")
    monkeypatch.setattr(daemon, "possible", lambda: False)
    with pytest.raises(EngineError, match="Install the plugin: docker-compose-plugin"):
        compose_plugin.ensure_compose(Config())
