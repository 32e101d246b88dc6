"""One module a stage. `open_stages` gives the questions that one name stands for: one, or one a task."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from awm_factory.synthesis.draft import Draft
from awm_factory.synthesis.stage import Stage
from awm_factory.synthesis.stages.code import CodeStage
from awm_factory.synthesis.stages.data import DataStage
from awm_factory.synthesis.stages.schema import SchemaStage
from awm_factory.synthesis.stages.solutions import SolutionStage
from awm_factory.synthesis.stages.spec import SpecStage
from awm_factory.synthesis.stages.tasks import TasksStage
from awm_factory.synthesis.stages.verifiers import VerifierStage
from awm_factory.synthesis.workbench import Workbench

_WHOLE: Final[dict[str, Callable[[Workbench], Stage[Any]]]] = {
    "tasks": TasksStage,
    "schema": SchemaStage,
    "data": DataStage,
    "spec": SpecStage,
    "code": CodeStage,
}
_BY_TASK: Final[dict[str, Callable[[Workbench, int], Stage[Any]]]] = {"verifiers": VerifierStage, "solutions": SolutionStage}


def open_stages(name: str, draft: Draft, workbench: Workbench) -> Sequence[Stage[Any]]:
    if name in _WHOLE:
        return [_WHOLE[name](workbench)]
    return [_BY_TASK[name](workbench, task_id) for task_id in draft.task_ids]
