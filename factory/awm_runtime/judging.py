"""One verifier over many ends of episodes: one confined child for all of them, the verifier's code executed anew for each."""

import math
import os
from collections.abc import Sequence
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
    with verify.databases(initial, ends[0].final) as files:
        pairs = [_Pair(files.directory, initial, end.final, f"final{place}.db") for place, end in enumerate(ends)]
        for pair in pairs:
            pair.final_path.write_bytes(pair.final)
            pair.final_path.chmod(0o444)

        def prepare(_note: batches.Note) -> batches.Piece:
            os.environ.clear()
            os.chdir(files.directory)
            clock.install()
            seconds = (math.ceil(verify.TIME_LIMIT) + 1) * len(ends)
            limits = confine.Limits(memory=verify.MEMORY_LIMIT, cpu_seconds=seconds)
            confine.confine([*confine.python_paths(), files.directory], limits, may_fork=False)
            return piece

        def piece(index: int) -> bytes:
            with clock.world(ends[index].now):
                return verify.verdict(source, pairs[index], ends[index].answer).model_dump_json().encode()

        found = []
        judged = batches.each(len(ends), batches.forked(prepare), verify.TIME_LIMIT).pieces
        for done, pair in zip(judged, pairs, strict=True):
            if isinstance(done, ChildFailed):
                found.append(Verdict(mode=source.mode, error=f"the verifier gave no verdict: {done}"))
            elif not pair.intact():
                found.append(Verdict(mode=source.mode, error="the verifier wrote to a database; it may only read them"))
            else:
                found.append(Verdict.model_validate_json(done))
        return found
