"""Both databases, for real: SQLite in memory and in a file, and a PostgreSQL cluster of our own on loopback."""

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from awm_factory.store import Store


def _postgres_bin() -> Path:
    """Folder of initdb and pg_ctl, installed first where we are root on Debian or Ubuntu."""

    def found() -> list[Path]:
        on_path = shutil.which("initdb")
        versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
        return [Path(on_path).resolve().parent] if on_path else [path.parent for path in versions]

    if not found() and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update", "-qq"], ["install", "-qq", "--no-install-recommends", "postgresql"]):
            subprocess.run(["apt-get", *command], env=environment, check=False, capture_output=True)
    if not found():
        pytest.skip(
            "PostgreSQL is not installed and can't be installed from here: install it, or run as root on Debian or Ubuntu"
        )
    return found()[-1]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """URL of a database server that holds nothing; it refuses to run as root, so there it runs as nobody."""
    programs = _postgres_bin()
    user = "nobody" if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="awm-postgres-"))

    def run(program: str, *arguments: str) -> None:
        subprocess.run([programs / program, *arguments], user=user, cwd=folder, check=True, capture_output=True)

    try:
        if user is not None:
            shutil.chown(folder, user)
        run("initdb", "-D", "data", "-U", "tester", "-A", "trust", "--no-sync")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", f"-h 127.0.0.1 -p {port} -k {folder} -F", "start")
        try:
            yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-D", "data", "-w", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder)


def _empty(kind: str, request: pytest.FixtureRequest, folder: Path) -> str:
    """URL of a database with nothing in it."""
    if kind == "postgresql":
        server: str = request.getfixturevalue("postgres")
        name = f"t{uuid.uuid4().hex}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return server.removesuffix("postgres") + name
    return "sqlite://" if kind == "memory" else str(folder / "runs.db")


@pytest.fixture(params=["memory", "file", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with Store.open(_empty(request.param, request, tmp_path)) as opened:
        yield opened


@pytest.fixture(params=["file", "postgresql"])
def shared_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty store that several processes can open."""
    return _empty(request.param, request, tmp_path)
