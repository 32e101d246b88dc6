"""Finished episodes as JSON lines: what a rollout leaves behind, and what judging adds to it."""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import Field, ValidationError

from awm_factory.errors import FormatError
from awm_factory.reward.case import Case
from awm_factory.reward.judgement import Judgement, Mode, from_code_verifier
from awm_runtime.contract import Verdict


class StoredEpisode(Case):
    """One line. Fields of a trajectory that nobody needs for judging (tokens, times) are kept as they are."""

    model_config = Case.model_config | {"extra": "allow"}

    episode: str
    """Names it in reports and comparisons; unique within a file."""
    verdict: Verdict | None = None
    """The container's word in code mode, where there was a code verifier."""
    judgements: dict[str, Judgement] = Field(default_factory=dict)
    """By mode; a truth by hand may stand here under a name of its own."""

    def with_judgement(self, judgement: Judgement) -> "StoredEpisode":
        return self.model_copy(update={"judgements": self.judgements | {judgement.mode: judgement}})

    def by_code(self) -> Judgement:
        if self.verdict is None:
            return Judgement.failed("code", "no reward: the trajectory holds no verdict of a code verifier")
        return from_code_verifier(self.verdict)

    def judged(self, mode: Mode) -> bool:
        """A judgement that failed counts as none, so that judging again can mend it."""
        return mode in self.judgements and self.judgements[mode].error is None


def read_episodes(paths: Iterable[Path]) -> Iterator[StoredEpisode]:
    """Raises FormatError with file and line for what is no stored episode, or names one twice."""
    seen: dict[str, str] = {}
    for path in paths:
        try:
            with path.open(encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        yield _parsed(line, f"{path}, line {number}", seen)
        except (OSError, UnicodeDecodeError) as error:
            raise FormatError(f"{path} can't be read: {error}; name a file of trajectories, a JSON object a line") from error


def _parsed(line: str, where: str, seen: dict[str, str]) -> StoredEpisode:
    try:
        episode = StoredEpisode.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the line"
        raise FormatError(f"{where} is no stored episode: {field}: {first['msg']}; see docs/rewards.md for its fields") from error
    if episode.episode in seen:
        raise FormatError(
            f"{where} names episode {episode.episode!r} again, after {seen[episode.episode]}; give each its own name"
        )
    seen[episode.episode] = where
    return episode


def write_episodes(path: Path, episodes: Iterable[StoredEpisode]) -> None:
    """Replace the file as a whole, once all of it is written."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", delete=False, encoding="utf-8") as file:
        try:
            for episode in episodes:
                file.write(episode.model_dump_json() + "\n")
            file.close()
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
