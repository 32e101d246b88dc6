"""What an image holds under /env, read once by the supervisor; no other process of ours ever opens these files."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from awm_runtime.wire import WORLD_TIME, VerifierMode, VerifierSource


class BundleBroken(Exception):
    """A file of the environment is missing or malformed; the message names it."""


@dataclass(frozen=True)
class BundleFiles:
    directory: Path
    manifest: dict[str, Any]
    code: str
    seed: bytes
    tasks: dict[int, str]
    """Instructions by task index; only tasks that are shipped."""
    verifiers: dict[tuple[int, VerifierMode], VerifierSource]

    @property
    def env_id(self) -> str:
        return str(self.manifest["env_id"])

    @property
    def module_state(self) -> list[str]:
        """Why episodes can't share a process, where the check of this environment found any reason."""
        return [str(reason) for reason in self.manifest.get("module_state", [])]

    @property
    def world_time(self) -> str:
        return str(self.manifest.get("world_time") or WORLD_TIME)

    @classmethod
    def read(cls, directory: Path) -> Self:
        """Raises BundleBroken."""
        try:
            manifest = json.loads((directory / "manifest.json").read_text("utf-8"))
            lines = (directory / "tasks.jsonl").read_text("utf-8").splitlines()
            tasks = [json.loads(line) for line in lines if line.strip()]
            verifiers: dict[tuple[int, VerifierMode], VerifierSource] = {}
            for path in sorted((directory / "verifiers").glob("*.py")):
                task_id, _, mode = path.stem.partition(".")
                source = VerifierSource.model_validate({"task_id": int(task_id), "mode": mode, "code": path.read_text("utf-8")})
                verifiers[source.task_id, source.mode] = source
            return cls(
                directory=directory,
                manifest=manifest,
                code=(directory / "app.py").read_text("utf-8"),
                seed=(directory / "seed.db").read_bytes(),
                tasks={task["task_id"]: task["instruction"] for task in tasks},
                verifiers=verifiers,
            )
        except (OSError, ValueError, KeyError) as error:
            raise BundleBroken(f"{directory} holds no environment that can be served: {error}") from error
