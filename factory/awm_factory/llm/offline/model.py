"""The offline author as a model: prompt in, text out, through the same stages, parsers and checks as any other."""

import hashlib
import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from pydantic import JsonValue

from awm_factory import resources
from awm_factory.errors import UsageError
from awm_factory.ids import env_id
from awm_factory.llm.answers import fenced_json, fenced_python
from awm_factory.llm.offline.author import TASKS, Author, author_of
from awm_factory.llm.offline.catalogue import described
from awm_factory.llm.offline.compose import draws
from awm_factory.llm.offline.packs import scenarios
from awm_factory.llm.protocol import ModelReply, ModelRequest, Usage

NAME: Final = "offline-author"
_SCENARIO: Final = re.compile(r"^## The application\nName: (.+)$", re.MULTILINE)
_TASK_COUNT: Final = re.compile(r"^Write (\d+) tasks ", re.MULTILINE)
_TASK: Final = re.compile(r"^## The task\nTask (\d+): (.+)$", re.MULTILINE)
_WANTED: Final = re.compile(r"^Write (\d+) new ones", re.MULTILINE)
_EXAMPLE: Final = re.compile(r"^- (.+?) \(", re.MULTILINE)
_ADVICE: Final = "Each answer is computed from the scenario's name and seed; asking again brings the same one."
_CONTENT_CATEGORIES: Final = re.compile(r"\b(encyclop|news|search engine|streaming|map|weather|forecast|live price)", re.I)


@cache
def version() -> str:
    """Of the author: 8 hex digits over its sources and packs."""
    found = hashlib.sha256()
    templates = resources.templates()
    for root in (resources.package() / "llm" / "offline", templates / "domains", templates / "offline"):
        for path in sorted(path for path in root.rglob("*") if path.suffix in (".py", ".toml", ".j2")):
            found.update(f"{path.relative_to(root).as_posix()}\0".encode() + path.read_bytes())
    return found.hexdigest()[:8]


class OfflineModel:
    """Costs nothing and answers only about scenarios of the domain packs and their variants."""

    def __init__(self, *, seed: int = 0, tasks: int = TASKS, levels: Sequence[int] = ()) -> None:
        self._seed = seed
        self._levels = tuple(levels)
        self._counts: dict[str, int] = {}
        self._tasks = tasks
        said = [version(), *([f"seed {seed}"] if seed else []), *(f"level {level}" for level in self._levels)]
        self._name = f"{NAME} ({', '.join(said)})"

    @property
    def name(self) -> str:
        """Answers are kept by their prompt and this name, so it tells apart whatever else they follow from."""
        return self._name

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Raises UsageError for a scenario of no pack."""
        return ModelReply(model=self.name, raw=self.answer(request), usage=Usage())

    def answer(self, request: ModelRequest) -> str:
        prompt = "\n".join(message.content for message in request.messages if message.role == "user")
        match request.purpose.stage:
            case "advice":
                return _ADVICE
            case "scenario":
                return fenced_json({"scenarios": self._scenarios(prompt, request.purpose.item)})
            case "classify":
                return fenced_json({"suitability": [_suitability(line) for line in re.findall(r"^\d+\. (.+)$", prompt, re.M)]})
            case "tasks":
                tasks = self._author(request, prompt).tasks
                difficulty: list[JsonValue] = [task.difficulty.model_dump(mode="json") for task in tasks]
                writer: JsonValue = {"name": NAME, "version": version(), "seed": self._seed}
                return fenced_json({"tasks": [task.instruction for task in tasks], "difficulty": difficulty, "author": writer})
            case "schema":
                return fenced_json(self._author(request, prompt).schema)
            case "data":
                return fenced_json(self._author(request, prompt).data)
            case "spec":
                return fenced_json(self._author(request, prompt).spec)
            case "code":
                return fenced_python(self._author(request, prompt).code)
            case "verifiers":
                author, number = self._of_task(request, prompt)
                task = author.tasks[number]
                return f"{fenced_python(task.code_verifier)}\n\n{fenced_python(task.sql_verifier)}"
            case "solutions":
                author, number = self._of_task(request, prompt)
                return fenced_json(author.tasks[number].solution.model_dump(mode="json", exclude_defaults=True))
            case stage:
                raise UsageError(f"the offline author has nothing to say in the stage {stage!r}; name a model with --model")

    def _author(self, request: ModelRequest, prompt: str) -> Author:
        name = _SCENARIO.search(prompt)
        key = request.purpose.env_id or (env_id(name[1]) if name else "")
        if count := _TASK_COUNT.search(prompt):
            self._counts[key] = int(count[1])
        return author_of(key, self._seed, self._counts.get(key, self._tasks), self._levels)

    def _of_task(self, request: ModelRequest, prompt: str) -> tuple[Author, int]:
        author = self._author(request, prompt)
        asked = _TASK.search(prompt)
        number = author.task(asked[2]) if asked else int(request.purpose.item)
        if number is None:
            raise UsageError(
                f"{author.env_id} has no such task as the offline author knows it: {asked[2] if asked else ''!r}; "
                "ask with the seed, the number and the difficulty of tasks that it was begun with"
            )
        return author, number

    def _scenarios(self, prompt: str, item: str) -> list[JsonValue]:
        """Variants that the prompt does not show, in an order of the seed and the round."""
        wanted = _WANTED.search(prompt)
        shown = set(_EXAMPLE.findall(prompt))
        every = [key for key, (_, variant) in scenarios().items() if variant is not None and variant.name not in shown]
        chosen = draws("scenarios", self._seed, item).sample(every, min(int(wanted[1]) if wanted else 10, len(every)))
        return [dict(described(key)) for key in chosen]


def _suitability(scenario: str) -> int:
    """By the prompt's own principle: records that can be made up, or content that is the product."""
    return 4 if _CONTENT_CATEGORIES.search(scenario) else 9
