"""What an image can be asked besides serving: verify, export, certificate."""

import argparse
import sys
import tarfile
from pathlib import Path

from awm_runtime import clock
from awm_runtime import verify as verifiers
from awm_runtime.bundle_files import BundleFiles
from awm_runtime.console import complain, tell
from awm_runtime.settings import Settings


def verify(settings: Settings, arguments: list[str]) -> int:
    """Judge a database file against the seed. Status 0 with the verdict on stdout, whatever it says; 2 for wrong arguments."""
    parser = argparse.ArgumentParser(prog="awm-runtime verify")
    parser.add_argument("task_id", type=int)
    parser.add_argument("database", type=Path, help="the episode's database, as GET /episodes/{id}/db gives it")
    parser.add_argument("--answer", help="the agent's final answer")
    parser.add_argument("--mode", choices=["code", "sql"], default="code")
    parser.add_argument("--initial", type=Path, help="the database before the episode (default: the seed)")
    given = parser.parse_args(arguments)
    files = BundleFiles.read(settings.env_dir)
    source = files.verifiers.get((given.task_id, given.mode))
    if source is None:
        complain(f"task {given.task_id} has no verifier of mode {given.mode}")
        return 2
    try:
        final = given.database.read_bytes()
        initial = given.initial.read_bytes() if given.initial else files.seed
    except OSError as error:
        complain(error)
        return 2
    now = clock.parse_world_time(files.world_time)
    tell(verifiers.verify(source, initial, final, given.answer, now).model_dump_json())
    return 0


def export(settings: Settings, _arguments: list[str]) -> int:
    """The environment's files as a tar stream on stdout, without times and owners, so that it is the same every time."""
    if sys.stdout.isatty():
        complain("export writes a tar stream; send it to a file or to `tar x`")
        return 2
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as archive:
        for path in sorted(settings.env_dir.rglob("*")):
            archive.add(path, path.relative_to(settings.env_dir).as_posix(), recursive=False, filter=_plain)
    return 0


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() else 0o644
    return member


def certificate(settings: Settings, _arguments: list[str]) -> int:
    path = settings.env_dir / "certificate.json"
    if not path.is_file():
        complain("this environment was built without a certificate")
        return 1
    sys.stdout.write(path.read_text("utf-8"))
    return 0
