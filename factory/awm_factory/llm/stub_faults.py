"""What goes wrong at the stub server, and how long it takes: drawn by seed and request, so that concurrency changes nothing."""

import hashlib
import random
import re
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from awm_factory.errors import UsageError

_VERIFIER = re.compile(r"(def verify_task_completion\([^)]*\)[^:]*:(?:\n|\\n))( +)")


class Faults(BaseModel):
    """Share of the requests that each fault hits, from 0 to 1. The faults of an answer hit only those they can spoil."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rate_limit: float = Field(0.0, ge=0, le=1)
    """Status 429 without Retry-After."""
    rate_limit_after: float = Field(0.0, ge=0, le=1)
    """Status 429 with Retry-After."""
    server_error: float = Field(0.0, ge=0, le=1)
    disconnect: float = Field(0.0, ge=0, le=1)
    """The connection breaks in the middle of the answer."""
    empty: float = Field(0.0, ge=0, le=1)
    truncate: float = Field(0.0, ge=0, le=1)
    """Cut, with finish reason `length`."""
    truncate_silently: float = Field(0.0, ge=0, le=1)
    """Cut, with finish reason `stop`, as some proxies do."""
    fence: float = Field(0.0, ge=0, le=1)
    """Prose and a fence around the answer."""
    thinking: float = Field(0.0, ge=0, le=1)
    invalid_json: float = Field(0.0, ge=0, le=1)
    bad_sql: float = Field(0.0, ge=0, le=1)
    """One statement that SQLite refuses."""
    broken_code: float = Field(0.0, ge=0, le=1)
    """An app that does not start."""
    lenient_verifier: float = Field(0.0, ge=0, le=1)
    """A code verifier that passes everything."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `fault=share,fault=share`. Raises UsageError that lists the faults."""
        pairs = [part.partition("=") for part in text.split(",") if part.strip()]
        try:
            return cls.model_validate({name.strip(): share.strip() for name, _, share in pairs})
        except ValidationError as error:
            first = error.errors()[0]
            raise UsageError(
                f"--faults: {first['loc'][0]}: {first['msg']}; write fault=share,… with shares from 0 to 1 and faults of: "
                f"{', '.join(cls.model_fields)}"
            ) from error


class Latency(BaseModel):
    """Seconds an answer takes: lognormal, as measured times of such services are."""

    model_config = ConfigDict(frozen=True)

    median: float = Field(0.0, ge=0)
    sigma: float = Field(0.5, ge=0)


class Dice:
    """`nth` is how often a content has been asked before: a retry meets new luck, a second run of the same requests the same."""

    def __init__(self, seed: int, faults: Faults, latency: Latency) -> None:
        self._seed = seed
        self._faults = faults
        self._latency = latency

    def hits(self, fault: str, key: str, nth: int) -> bool:
        share: float = getattr(self._faults, fault)
        return share > 0 and self._random(fault, key, nth).random() < share

    def seconds(self, key: str, nth: int) -> float:
        if not self._latency.median:
            return 0.0
        return self._latency.median * self._random("latency", key, nth).lognormvariate(0, self._latency.sigma)

    def _random(self, what: str, key: str, nth: int) -> random.Random:
        digest = hashlib.sha256(f"{self._seed}\0{what}\0{key}\0{nth}".encode()).digest()
        return random.Random(int.from_bytes(digest[:8]))


def spoil(text: str, fault: str) -> str:
    """The answer with one fault in it; the same text where this fault has nothing to spoil."""
    match fault:
        case "bad_sql":
            return _first(text, ("INSERT INTO ", "CREATE TABLE "), ("INSERT INTU ", "CREATE TABEL "))
        case "broken_code":
            return text.replace("FastAPI(", "FastApi(", 1)
        case "lenient_verifier":
            return _VERIFIER.sub(r"\1\2return {'result': 'complete'}  # \2", text, count=1)
        case "invalid_json":
            return text[: text.rindex("}")] + ",}" + text[text.rindex("}") + 1 :] if text.lstrip().startswith("{") else text
        case "fence":
            tag = "json" if text.lstrip().startswith(("{", "[")) else "Python"
            return f"Of course! Here is what you asked for:\n\n```{tag}\n{text.rstrip()}\n```\n\nTell me if anything is missing."
        case "thinking":
            return f'<think>\nWhat is asked for? Perhaps {{"draft": [1, 2\n```\nNo, better so.\n</think>\n\n{text}'
        case "truncate" | "truncate_silently":
            return text[: len(text) * 3 // 5]
        case "empty":
            return ""
        case _:
            return text


def _first(text: str, old: tuple[str, ...], new: tuple[str, ...]) -> str:
    for before, after in zip(old, new, strict=True):
        if before in text:
            return text.replace(before, after, 1)
    return text
