"""A model whose answers are files: what a capable model would say, written down, with faults where a rehearsal wants them.

One folder an environment, named as one likes, found by the name in its scenario.json:

    scenario.json  tasks.json  schema.json  data.json  spec.json  code.py
    verifiers/<task>.code.py  verifiers/<task>.sql.py  solutions.json

`schema.1.json` answers the first attempt, `schema.json` every attempt that has no file of its own; so with all of them
(`code.2.py`, `verifiers/3.code.1.py`). Where an attempt differs in a few places only, `code.1.edits.json` lists these: each `old`
stands once in `code.py` and becomes `new`. The files hold artifacts; what is sent has the form that the prompts ask for.
"""

import json
import re
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from awm_factory.errors import FormatError, RecordingMissing
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
        for attempt in (purpose.attempt, 0):
            for entry in json.loads(written(self._folder(purpose), "solutions.json", attempt) or "[]"):
                if str(entry["task_id"]) == purpose.item:
                    return {key: value for key, value in entry.items() if key != "task_id"}
        raise _missing(self._folder(purpose) / "solutions.json", purpose)

    def _text(self, purpose: Purpose, stem: str, suffix: str) -> str:
        name = f"{stem}.{suffix}"
        text = written(self._folder(purpose), name, purpose.attempt)
        if text is None:
            raise _missing(self._folder(purpose) / name, purpose)
        return text

    def _folder(self, purpose: Purpose) -> Path:
        folder = self._folders.get(purpose.env_id)
        if folder is None:
            raise _missing(Path("scenario.json"), purpose)
        return folder


def written(folder: Path, name: str, attempt: int) -> str | None:
    """What a folder says for this attempt: a file of its own, or the one for all of them with the attempt's edits.

    Raises FormatError where an edit does not fit.
    """
    stem, suffix = name.rsplit(".", 1)
    own, edits, common = (folder / f"{stem}.{attempt}.{suffix}", folder / f"{stem}.{attempt}.edits.json", folder / name)
    if own.is_file() or not common.is_file():
        return own.read_text(encoding="utf-8") if own.is_file() else None
    text = common.read_text(encoding="utf-8")
    for edit in json.loads(edits.read_text(encoding="utf-8")) if edits.is_file() else []:
        if text.count(edit["old"]) != 1:
            raise FormatError(f"{edits}: {edit['old'][:60]!r} does not stand once in {name}; bring the edit up to date")
        text = text.replace(edit["old"], edit["new"])
    return text


def unwrapped(stage: str, value: JsonValue) -> JsonValue:
    """A file's content as the answer's object."""
    return {_WRAPPED[stage]: value} if isinstance(value, list) else value


def _missing(path: Path, purpose: Purpose) -> RecordingMissing:
    return RecordingMissing(f"{path} is missing, for {purpose.env_id}, {purpose.stage} {purpose.item}; write it")
