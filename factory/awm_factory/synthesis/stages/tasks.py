"""Stage *tasks*: ten sentences of a user, each solvable for itself."""

from awm_factory.llm.answers import json_answer
from awm_factory.llm.protocol import Message
from awm_factory.problems import Problem
from awm_factory.synthesis.artifacts import TaskList, validated
from awm_factory.synthesis.checks import tasks as rules
from awm_factory.synthesis.checks.wording import dated
from awm_factory.synthesis.draft import Draft
from awm_factory.synthesis.stages.common import ask, fenced_json
from awm_factory.synthesis.workbench import Workbench


class TasksStage:
    name = "tasks"
    item = ""
    what = "list of tasks"

    def __init__(self, workbench: Workbench) -> None:
        self._count = workbench.settings.tasks

    def prompt(self, draft: Draft) -> tuple[Message, ...]:
        return ask("tasks", draft, count=self._count)

    def parse(self, reply: str) -> TaskList:
        return validated(TaskList, json_answer(reply), "task list")

    def check(self, artifact: TaskList, draft: Draft) -> list[Problem]:
        return rules.check(artifact.tasks, self._count)

    def apply(self, artifact: TaskList, draft: Draft) -> Draft:
        tasks = tuple(dated(task, draft.world_time) for task in artifact.tasks)
        return draft.with_(tasks=tasks, difficulty=dict(enumerate(artifact.difficulty)), author=artifact.author)

    def existing(self, draft: Draft) -> TaskList | None:
        if not draft.tasks:
            return None
        return TaskList(tasks=list(draft.tasks), difficulty=list(draft.difficulty.values()), author=draft.author)

    def show(self, artifact: TaskList) -> str:
        return fenced_json(artifact.model_dump(mode="json", exclude_defaults=True))
