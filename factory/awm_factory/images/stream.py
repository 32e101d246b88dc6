"""The engine's own words while it builds, pushes or pulls: JSON objects on a stream that began with status 200.

The status says nothing about the outcome, so the stream does: an `error` entry anywhere is a failure, and so is an end
without the entry that success closes with.
"""

import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TextIO

LAST_LINES: Final = 50
"""Lines of the engine's output that an error shows."""

_SECRET = re.compile(r"token|secret|passw|passphrase|credential|auth|key", re.IGNORECASE)
_USERINFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
MASK: Final = "***"


def masks(build_args: Mapping[str, str]) -> list[str]:
    """Values of build arguments that must not be seen in a log, longest first; user and password of a proxy's URL are too."""
    secret = {value for name, value in build_args.items() if value and _SECRET.search(name)}
    for value in build_args.values():
        secret.update(_USERINFO.findall(value))
    return sorted(secret, key=len, reverse=True)


@dataclass
class Log:
    """Keeps the last lines for the error, and all of them in a file."""

    path: Path
    masked: list[str] = field(default_factory=list)
    last: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_LINES))
    _file: TextIO | None = None

    def write(self, text: str) -> None:
        for secret in self.masked:
            text = text.replace(secret, MASK)
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("w", encoding="utf-8")
        for line in text.splitlines():
            if line.strip():
                self.last.append(line)
                self._file.write(line + "\n")
        self._file.flush()

    def tail(self) -> str:
        return "\n".join(f"  {line}" for line in self.last)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


@dataclass(frozen=True)
class Outcome:
    error: str | None
    aux: dict[str, Any] | None
    """The last `aux` entry: an image's ID for a build, tag and digest for a push."""


def follow(stream: Iterable[Any], log: Log) -> Outcome:
    error, aux = None, None
    for entry in stream:
        if not isinstance(entry, dict):
            continue
        if text := entry.get("stream"):
            log.write(text)
        elif (status := entry.get("status")) and not entry.get("progressDetail"):
            log.write(f"{entry['id']}: {status}" if "id" in entry else status)
        if isinstance(entry.get("aux"), dict):
            aux = entry["aux"]
        if failure := entry.get("error") or (entry.get("errorDetail") or {}).get("message"):
            error = str(failure)
            log.write(error)
    return Outcome(error, aux)
