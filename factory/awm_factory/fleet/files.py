"""What a fleet keeps on this machine: its file, and its tokens, which nobody but the owner can read."""

import re
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from awm_factory.bundle import write_file
from awm_factory.errors import UsageError

_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?\Z")


@dataclass(frozen=True)
class FleetFiles:
    folder: Path
    name: str

    @classmethod
    def of(cls, workspace: Path, name: str) -> "FleetFiles":
        """Raises UsageError for a name that no engine would take."""
        if not _NAME.match(name):
            raise UsageError(f"{name!r} is no name for a fleet; use up to 40 of a-z, 0-9 and hyphens")
        return cls(workspace / "compose", name)

    @property
    def project(self) -> str:
        return f"awm-{self.name}"

    @property
    def document(self) -> Path:
        return self.folder / f"{self.name}.yaml"

    @property
    def secrets(self) -> Path:
        return self.folder / f"{self.name}.secrets"

    @property
    def token_file(self) -> Path:
        """Holds what callers of the lease service send, and nothing else."""
        return self.secrets / "token"

    def token(self) -> str:
        """Raises UsageError where this workspace has no such fleet."""
        try:
            return self.token_file.read_text().strip()
        except OSError as error:
            raise UsageError(
                f"{self.token_file} can't be read: {error.strerror}; where there is no fleet {self.name}, `awm-factory fleet up` "
                "starts one"
            ) from error

    def ensure_secrets(self) -> None:
        """Random tokens, once for each fleet, so that a second `up` leaves running containers alone."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.secrets.mkdir(mode=0o700, exist_ok=True)
        fleet = self._kept("token")
        container = self._kept("container-token")
        for name, text in {
            "lease.env": f"AWM_TOKEN={container}\nAWM_FLEET_TOKEN={fleet}\n",
            "containers.env": f"AWM_TOKEN={container}\n",
        }.items():
            self._write(name, text)

    def write(self, document: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        write_file(self.document, document)

    def remove(self) -> list[Path]:
        """What there was."""
        found = [path for path in (self.document, self.secrets) if path.exists()]
        self.document.unlink(missing_ok=True)
        shutil.rmtree(self.secrets, ignore_errors=True)
        return found

    def _kept(self, name: str) -> str:
        try:
            return (self.secrets / name).read_text().strip()
        except FileNotFoundError:
            token = secrets.token_hex(24)
            self._write(name, token + "\n")
            return token

    def _write(self, name: str, text: str) -> None:
        path = self.secrets / name
        partial = path.with_name(f".{name}.partial")
        partial.touch(mode=0o600)
        partial.write_text(text)
        partial.replace(path)
