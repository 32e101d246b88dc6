"""One verifier over many ends of episodes: one confined child for all of them, the verifier's code executed anew for each."""

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from awm_runtime import batches, clock, confine, verify
from awm_runtime.children import ChildFailed
from awm_runtime.contract import Verdict, VerifierSource
from awm_runtime.verify import Databases

_FINALS: Final = 64
"""Databases that lie beside each other in the verifier's folder."""


@dataclass(frozen=True)
class End:
    final: bytes
    answer: str | None
    now: float


@dataclass(frozen=True)
class _Pair(Databases):
    name: str = "final.db"

    @property
    def final_path(self) -> Path:
        return self.directory / self.name


def verdicts(source: VerifierSource, initial: bytes, ends: Sequence[End]) -> list[Verdict]:
    """One an end, in order; what is equal is judged once."""
    known: dict[End, Verdict] = {}
    distinct = list(dict.fromkeys(ends))
    for start in range(0, len(distinct), _FINALS):
        some = distinct[start : start + _FINALS]
        known.update(zip(some, _judged(source, initial, some), strict=True))
    return [known[end] for end in ends]


def _judged(source: VerifierSource, initial: bytes, ends: list[End]) -> list[Verdict]:
    with files(initial, [end.final for end in ends]) as pairs:

        def prepare(_note: batches.Note) -> batches.Piece:
            os.environ.clear()
            os.chdir(pairs[0].directory)
            clock.install()
            seconds = (math.ceil(verify.TIME_LIMIT) + 1) * len(ends)
            limits = confine.Limits(memory=verify.MEMORY_LIMIT, cpu_seconds=seconds)
            confine.confine([*confine.python_paths(), pairs[0].directory], limits, may_fork=False)
            return piece

        def piece(index: int) -> bytes:
            with clock.world(ends[index].now):
                return verify.verdict(source, pairs[index], ends[index].answer).model_dump_json().encode()

        found = []
        for done, pair in zip(batches.each(len(ends), batches.forked(prepare), verify.TIME_LIMIT).pieces, pairs, strict=True):
            fault = done if isinstance(done, ChildFailed) else None
            found.append(sound(source, fault, None if isinstance(done, ChildFailed) else Verdict.model_validate_json(done), pair))
        return found


@contextmanager
def files(initial: bytes, finals: Sequence[bytes]) -> Iterator[list[Databases]]:
    """Databases in one folder, those that are equal in one file."""
    distinct = {final: f"final{place}.db" for place, final in enumerate(dict.fromkeys(finals))}
    with verify.databases(initial, finals[0]) as first:
        pairs = {final: _Pair(first.directory, initial, final, name) for final, name in distinct.items()}
        for pair in pairs.values():
            pair.final_path.write_bytes(pair.final)
            pair.final_path.chmod(0o444)
        yield [pairs[final] for final in finals]


def sound(source: VerifierSource, fault: ChildFailed | None, verdict: Verdict | None, files: Databases) -> Verdict:
    """What a child said, less what it can't be believed: it ran generated code, which could have written the reply itself."""
    if fault is not None or verdict is None:
        return Verdict(mode=source.mode, error=f"the verifier gave no verdict: {fault}")
    if not files.intact():
        return Verdict(mode=source.mode, error="the verifier wrote to a database; it may only read them")
    reward = verify.REWARDS.get(verdict.classification) if verdict.classification is not None and source.mode == "code" else None
    return verdict.model_copy(update={"mode": source.mode, "reward": reward})
