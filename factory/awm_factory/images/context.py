"""A rendered build context: a folder whose content alone decides the image's tag, and the tar of it that the engine gets."""

import hashlib
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Context:
    env_id: str
    directory: Path
    digest: str
    """SHA-256 hex of the rendered files: the Dockerfile among them, which names the base image by its content tag."""

    @property
    def tag(self) -> str:
        return self.digest[:16]

    @property
    def repository(self) -> str:
        return f"awm/{self.env_id}"

    @property
    def reference(self) -> str:
        """`awm/<env_id>:<tag>`."""
        return f"{self.repository}:{self.tag}"


def digest(files: dict[str, bytes]) -> str:
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name}\0{len(files[name])}\0".encode())
        total.update(files[name])
    return total.hexdigest()


def read_files(directory: Path) -> dict[str, bytes]:
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in sorted(directory.rglob("*")) if path.is_file()}


def tar(directory: Path) -> bytes:
    """The context as the engine wants it. Owner, modes, times and order are fixed, so the same files make the same layer."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(directory.rglob("*")):
            info = tarfile.TarInfo(path.relative_to(directory).as_posix())
            info.mode = 0o755 if path.is_dir() else 0o644
            if path.is_dir():
                info.type = tarfile.DIRTYPE
                archive.addfile(info)
            else:
                content = path.read_bytes()
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()
