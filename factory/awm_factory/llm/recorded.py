"""Record a run and play it again with no network.

A recording is a directory of JSON lines, one file an environment, a line an answer: `{"key", "purpose", "reply"}`. The key is the
request's content, so a changed prompt misses rather than getting the answer to another question.
"""

import fcntl
import json
import os
from pathlib import Path

from awm_factory.errors import RecordingMissing
from awm_factory.llm.protocol import Embedder, EmbeddingReply, EmbeddingRequest, Model, ModelReply, ModelRequest, Purpose


class Recordings:
    """Reads on demand: only the places of the lines are held in memory. Several processes may add to one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._places: dict[str, tuple[Path, int]] = {}
        self._torn = 0
        for path in sorted(directory.glob("*.jsonl")):
            with path.open("rb") as file:
                place = 0
                for line in file:
                    self._note(path, place, line)
                    place += len(line)

    def find(self, key: str, purpose: Purpose) -> str:
        """The reply's JSON. Raises RecordingMissing."""
        if place := self._places.get(key):
            path, offset = place
            with path.open("rb") as file:
                file.seek(offset)
                return json.dumps(json.loads(file.readline())["reply"])
        torn = f" ({self._torn} lines there can't be read)" if self._torn else ""
        part = f"{purpose.stage}-{purpose.item}" if purpose.item else purpose.stage
        raise RecordingMissing(
            f"{self.directory} holds no answer{torn} for {purpose.env_id or 'no environment'}, {part}, attempt {purpose.attempt} "
            f"(content {key[:16]}): prompts or settings differ from the recorded run's; record it again"
        )

    def add(self, key: str, purpose: Purpose, reply: str) -> None:
        """Appended under a lock and in one write; the end of a line that a kill tore off is closed first."""
        if key in self._places:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f"{purpose.env_id or '_'}.jsonl"
        entry = {"key": key, "purpose": purpose.model_dump(mode="json"), "reply": json.loads(reply)}
        line = json.dumps(entry, sort_keys=True).encode() + b"\n"
        with path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            end = file.seek(0, os.SEEK_END)
            if end and os.pread(file.fileno(), 1, end - 1) != b"\n":
                file.write(b"\n")
                end += 1
            file.write(line)
            file.flush()
        self._places[key] = (path, end)

    def _note(self, path: Path, place: int, line: bytes) -> None:
        try:
            self._places[json.loads(line)["key"]] = (path, place)
        except (ValueError, KeyError, TypeError):
            self._torn += 1


class RecordedModel:
    """Plays a recording; sends nothing. The same request always gets the same reply, so a replay needs no order."""

    def __init__(self, recordings: Recordings, name: str = "recorded") -> None:
        self._recordings = recordings
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    async def complete(self, request: ModelRequest) -> ModelReply:
        return ModelReply.model_validate_json(self._recordings.find(request.key(), request.purpose))

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        return EmbeddingReply.model_validate_json(self._recordings.find(request.key(), request.purpose))


class RecordingModel:
    """Passes requests on and records the replies, also the unusable ones that were paid for."""

    def __init__(self, inner: Model, recordings: Recordings) -> None:
        self._inner = inner
        self._recordings = recordings

    @property
    def name(self) -> str:
        return self._inner.name

    async def complete(self, request: ModelRequest) -> ModelReply:
        reply = await self._inner.complete(request)
        self._recordings.add(request.key(), request.purpose, reply.model_dump_json())
        return reply


class RecordingEmbedder:
    def __init__(self, inner: Embedder, recordings: Recordings) -> None:
        self._inner = inner
        self._recordings = recordings

    @property
    def name(self) -> str:
        return self._inner.name

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        reply = await self._inner.embed(request)
        self._recordings.add(request.key(), request.purpose, reply.model_dump_json())
        return reply
