"""A folder whose files change together: all of the new ones, or all of the old.

The new files are laid out in a staging folder inside, which one rename turns into `.commit`; from there on whoever comes
next finishes the move. Renaming the folder itself would be shorter, but loses files that are not ours (a README beside a
hand-written environment), and fails where the folder lies in a lower layer of an overlay file system.
"""

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

_COMMIT = ".commit"
_PLAN = ".plan.json"


def replace_files(directory: Path, files: Mapping[str, bytes], owned: Collection[str]) -> None:
    """Make `directory` hold exactly `files` among those that match the glob patterns `owned`; leave all others alone.

    Survives a kill at any moment. Two writers take turns.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with _alone(directory):
        _finish(directory)
        for leftover in directory.glob(".staging-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        present = {path.relative_to(directory).as_posix() for pattern in owned for path in directory.glob(pattern)}
        changed = [name for name, content in files.items() if name not in present or (directory / name).read_bytes() != content]
        stale = sorted(present - files.keys())
        if changed or stale:
            _commit(directory, {name: files[name] for name in changed}, stale)
            _finish(directory)


def settle(directory: Path) -> None:
    """Finish a write that was interrupted after its commit."""
    if (directory / _COMMIT).exists():
        with _alone(directory):
            _finish(directory)


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Without it a slow reader could finish one write over the next one."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _commit(directory: Path, changed: Mapping[str, bytes], stale: list[str]) -> None:
    staging = Path(tempfile.mkdtemp(prefix=".staging-", dir=directory))
    try:
        for name, content in changed.items():
            path = staging / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        (staging / _PLAN).write_text(json.dumps({"move": list(changed), "remove": stale}), encoding="utf-8")
        staging.rename(directory / _COMMIT)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _finish(directory: Path) -> None:
    """Idempotent, so that it may itself be interrupted."""
    commit = directory / _COMMIT
    try:
        plan = json.loads((commit / _PLAN).read_text(encoding="utf-8"))
    except FileNotFoundError:
        shutil.rmtree(commit, ignore_errors=True)
        return
    for name in plan["move"]:
        (directory / name).parent.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):
            (commit / name).replace(directory / name)
    for name in plan["remove"]:
        (directory / name).unlink(missing_ok=True)
    shutil.rmtree(commit, ignore_errors=True)


def write_file(path: Path, content: bytes) -> None:
    """Replace one file as a whole."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
