"""Starting an engine, with programs of our own in dockerd's place: the real one is started by CI."""

import fcntl
import os
import signal
import sys
from pathlib import Path

import pytest

from awm_factory.errors import EngineError
from awm_factory.images import daemon


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose programs stand for the system's, on a machine without systemd."""
    folder = tmp_path / "sbin"
    folder.mkdir()
    monkeypatch.setattr(daemon, "_PATH", f"{folder}:{daemon._PATH}")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(daemon, "_LOG", tmp_path / "dockerd.log")
    monkeypatch.setattr(daemon, "_PID_FILES", {"dockerd": tmp_path / "docker.pid"})
    monkeypatch.setattr(daemon, "_SYSTEMD", tmp_path / "absent")
    return folder


def program(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_a_started_engine_is_waited_for_and_outlives_its_starter(programs: Path, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    report = f"import os; open('{ready}.new', 'w').write(f'{{os.getppid()}} {{os.getsid(0)}}')"
    program(programs, "dockerd", f'sleep 0.3; {sys.executable} -c "{report}"; mv {ready}.new {ready}; exec sleep 60')
    said: list[str] = []

    pid, session = daemon.start(lambda: ready.read_text() if ready.exists() else None, said.append).split()

    os.kill(int(pid), signal.SIGTERM)
    assert session != str(os.getsid(0))
    assert said == [f"no Docker engine answers: starting dockerd, its log is {tmp_path / 'dockerd.log'}"]


def test_the_pid_file_of_a_killed_engine_does_not_keep_the_next_from_starting(programs: Path, tmp_path: Path) -> None:
    file = tmp_path / "docker.pid"
    program(
        programs, "dockerd", f"test ! -e {file} || exit 1; touch {tmp_path}/ready; exec sleep 60 & echo $! > {tmp_path}/pid; wait"
    )
    file.write_text(str(os.getpid()))  # a number that came to another process

    assert daemon.start(lambda: "up" if (tmp_path / "ready").exists() else None, lambda _: None)

    os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
    assert not file.exists()


def test_an_engine_that_ends_at_once_is_an_error_with_its_last_words(programs: Path) -> None:
    program(programs, "dockerd", "echo 'failed to start daemon: no iptables' >&2; exit 3")
    with pytest.raises(EngineError, match=r"ended with exit code 3[\s\S]*no iptables"):
        daemon.start(lambda: None, lambda _: None)


def test_an_engine_that_never_answers_is_given_up(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "START_TIMEOUT", 0.5)
    program(programs, "dockerd", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    with pytest.raises(EngineError, match=r"did not answer within 0.5 s"):
        daemon.start(lambda: None, lambda _: None)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)


def test_systemd_starts_it_where_it_is_the_init_system(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "_SYSTEMD", tmp_path)
    program(programs, "dockerd", "exit 1")
    program(programs, "systemctl", f'echo "$@" > {tmp_path}/asked')
    assert daemon.start(lambda: "up", lambda _: None) == "up"
    assert (tmp_path / "asked").read_text() == "start docker\n"

    program(programs, "systemctl", "echo 'Unit docker.service not found.' >&2; exit 5")
    with pytest.raises(EngineError, match=r"docker.service not found"):
        daemon.start(lambda: "up", lambda _: None)


def test_docker_is_installed_where_it_is_missing(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "_PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    real = daemon.program
    monkeypatch.setattr(daemon, "program", lambda name: None if name == "dockerd" else real(name))
    program(programs, "later", "exec sleep 1")
    program(programs, "apt-get", f'echo "$DEBIAN_FRONTEND $@" >> {tmp_path}/asked; cp {programs}/later {programs}/dockerd')
    said: list[str] = []
    assert daemon.start(lambda: "up", said.append) == "up"
    assert (tmp_path / "asked").read_text().splitlines() == [
        "noninteractive -o Acquire::Retries=3 update -q",
        "noninteractive -o Acquire::Retries=3 install -qy --no-install-recommends docker.io",
    ]
    assert said[0] == "no Docker engine on this machine: installing docker.io"


def test_a_failed_installation_is_an_error_with_apts_last_words(programs: Path) -> None:
    program(programs, "apt-get", "echo 'E: Could not get lock /var/lib/dpkg/lock'; exit 100")
    with pytest.raises(EngineError, match=r"apt-get update -q` failed:\nE: Could not get lock"):
        daemon.apt_install(["docker.io"], "why", lambda _: None)


def test_one_starter_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon, "_LOCK", tmp_path / "lock")
    with daemon.lock(), (tmp_path / "lock").open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with (tmp_path / "lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.parametrize(
    ("platform", "tried", "advice"),
    [
        ("darwin", [], "Start Docker Desktop"),
        ("linux", ["default socket unix:///var/run/docker.sock: Permission denied"], "usermod -aG docker"),
        ("win32", [], "Install Docker Engine or Docker Desktop"),
    ],
)
def test_advice_fits_the_machine(platform: str, tried: list[str], advice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemon.sys, "platform", platform)
    assert advice in daemon.advice(tried)
    assert not daemon.possible() or platform == "linux"
