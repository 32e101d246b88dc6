"""A model whose answers are files: what a capable model would say, written down, with faults where a rehearsal wants them.

One folder an environment, named as one likes, found by the name in its scenario.json:

    scenario.json  tasks.json  schema.json  data.json  spec.json  code.py
    verifiers/<task>.code.py  verifiers/<task>.sql.py  solutions.json

`schema.1.json` answers the first attempt, `schema.json` every attempt that has no file of its own; so with all of them
(`code.2.py`, `verifiers/3.code.1.py`). The files hold artifacts; what is sent has the form that the prompts ask for.
"""

import json
import re
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from awm_factory.errors import RecordingMissing
from awm_factory.ids import env_id
from awm_factory.llm.protocol import ModelReply, ModelRequest, Purpose, Usage
from awm_factory.synthesis.stages.common import fenced_json, fenced_python

_ADVICE = "Mend every fault listed, and keep what was right."
_WRAPPED = {"tasks": "tasks", "schema": "tables", "data": "tables", "spec": "api_groups"}
"""Files that may hold the bare list; the answer names it."""


class ScriptedModel:
    def __init__(self, root: Path) -> None:
        self._folders: dict[str, Path] = {}
        for path in sorted(root.glob("*/scenario.json")):
            scenario = json.loads(path.read_text(encoding="utf-8"))
            self._folders[env_id(scenario["name"])] = path.parent

    @property
    def name(self) -> str:
        return "scripted"

    async def complete(self, request: ModelRequest) -> ModelReply:
        text = self._answer(request)
        prompt = sum(len(message.content) for message in request.messages)
        return ModelReply(model=self.name, raw=text, usage=Usage(prompt=prompt // 4, completion=len(text) // 4))

    def _answer(self, request: ModelRequest) -> str:
        purpose = request.purpose
        match purpose.stage:
            case "advice":
                return _ADVICE
            case "scenario":
                return fenced_json({"scenarios": self._scenarios(purpose)})
            case "classify":
                count = len(re.findall(r"^\d+\. ", request.messages[-1].content, re.MULTILINE))
                return fenced_json({"suitability": [9] * count})
            case "code":
                return fenced_python(self._text(purpose, "code", "py"))
            case "verifiers":
                pair = [self._text(purpose, f"verifiers/{purpose.item}.{mode}", "py") for mode in ("code", "sql")]
                return "\n\n".join(fenced_python(code) for code in pair)
            case "solutions":
                return fenced_json(self._solution(purpose))
            case stage:
                value = json.loads(self._text(purpose, stage, "json"))
                return fenced_json(unwrapped(stage, value))

    def _scenarios(self, purpose: Purpose) -> list[JsonValue]:
        """All of them, in every round; `scenario.1.json` is what the first round says of one."""
        number = purpose.item.partition("-")[0]
        found: list[JsonValue] = []
        for folder in self._folders.values():
            early = folder / f"scenario.{number}.json"
            found.append(json.loads((early if early.is_file() else folder / "scenario.json").read_text(encoding="utf-8")))
        return found

    def _solution(self, purpose: Purpose) -> dict[str, Any]:
        for name in (f"solutions.{purpose.attempt}.json", "solutions.json"):
            path = self._folder(purpose) / name
            entries = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
            for entry in entries:
                if str(entry["task_id"]) == purpose.item:
                    return {key: value for key, value in entry.items() if key != "task_id"}
        raise _missing(self._folder(purpose) / "solutions.json", purpose)

    def _text(self, purpose: Purpose, stem: str, suffix: str) -> str:
        for name in (f"{stem}.{purpose.attempt}.{suffix}", f"{stem}.{suffix}"):
            path = self._folder(purpose) / name
            if path.is_file():
                return path.read_text(encoding="utf-8")
        raise _missing(self._folder(purpose) / f"{stem}.{suffix}", purpose)

    def _folder(self, purpose: Purpose) -> Path:
        folder = self._folders.get(purpose.env_id)
        if folder is None:
            raise _missing(Path("scenario.json"), purpose)
        return folder


def unwrapped(stage: str, value: JsonValue) -> JsonValue:
    """A file's content as the answer's object."""
    return {_WRAPPED[stage]: value} if isinstance(value, list) else value


def _missing(path: Path, purpose: Purpose) -> RecordingMissing:
    return RecordingMissing(f"{path} is missing, for {purpose.env_id}, {purpose.stage} {purpose.item}; write it")
