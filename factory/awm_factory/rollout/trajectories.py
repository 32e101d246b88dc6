"""The file of a rollout: a line an episode, written when it ends, so that no kill loses more than what was under way.

A run that is started again goes on behind the lines that are there. Episodes that the infrastructure failed are played again;
their first lines move to `<file>.failed`, for nothing that happened is thrown away.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from awm_factory.bundle import write_file
from awm_factory.errors import FormatError, UsageError
from awm_factory.rollout.record import Rollout


class Trajectories:
    def __init__(self, path: Path, run: str) -> None:
        """Opens what is there. Raises FormatError for a file of anything else, UsageError for rollouts of other settings."""
        self.path = path
        self.done: dict[str, Rollout] = {}
        failed = []
        for rollout in _read(path):
            if rollout.run != run:
                raise UsageError(
                    f"{path} holds rollouts of another policy or other settings ({rollout.run}, not {run}); name another --output"
                )
            if rollout.to_repeat:
                failed.append(rollout)
            else:
                self.done[rollout.episode] = rollout
        self._settle(failed)
        self._file = path.open("ab")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, rollout: Rollout) -> None:
        """On disk when it returns."""
        self._file.write(_line(rollout))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.done[rollout.episode] = rollout

    def _settle(self, failed: list[Rollout]) -> None:
        """Leaves whole lines of episodes that count in the file, and nothing else."""
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return
        if failed:
            with Path(f"{self.path}.failed").open("ab") as file:
                file.writelines(map(_line, failed))
        whole = b"".join(map(_line, self.done.values()))
        if self.path.read_bytes() != whole:
            write_file(self.path, whole)


def _read(path: Path) -> Iterator[Rollout]:
    try:
        lines = path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}; name another --output") from error
    for number, line in enumerate(lines, 1):
        if number == len(lines) and not line.endswith(b"\n"):
            return  # A kill in the middle of a line: its episode is played again.
        try:
            yield Rollout.model_validate_json(line)
        except ValidationError as error:
            raise FormatError(
                f"{path}, line {number} is no rollout: {error.errors()[0]['msg']}; name another --output"
            ) from error


def _line(rollout: Rollout) -> bytes:
    return json.dumps(rollout.model_dump(mode="json"), ensure_ascii=False).encode() + b"\n"
