"""What an author says of a task beside its solution."""

import json

from awm_factory.bundle import Solution, Variant
from awm_factory.sandbox import ProcessSandbox
from awm_factory.synthesis.artifacts import Scenario
from awm_factory.synthesis.draft import Draft
from awm_factory.synthesis.settings import Settings
from awm_factory.synthesis.stages.solutions import SolutionStage
from awm_factory.synthesis.workbench import Workbench
from awm_runtime.contract import ToolCall

CALL = {"tool": "take_back", "arguments": {"loan_id": 2}}
OTHER = {"tool": "take_back", "arguments": {"loan_id": 3}}


def stage() -> SolutionStage:
    return SolutionStage(Workbench(ProcessSandbox(1), Settings()), 0)


def test_other_ways_and_near_misses_that_an_author_names_reach_the_bundle() -> None:
    answer = {
        "calls": [CALL],
        "alternatives": [{"why": "any of them will do", "calls": [OTHER]}],
        "near_misses": [{"why": "nothing taken back", "calls": [], "final_answer": "Done."}],
    }
    artifact = stage().parse(json.dumps(answer))
    draft = stage().apply(artifact, Draft(scenario=Scenario(name="Tool shed"), tasks=("Take back any loan.",)))
    kept = draft.bundle().solutions[0]
    assert kept.alternatives == [Variant(why="any of them will do", calls=[ToolCall.model_validate(OTHER)])]
    assert [near.final_answer for near in kept.near_misses] == ["Done."]
    assert stage().existing(draft) == artifact


def test_a_plain_solution_is_shown_without_what_nobody_said() -> None:
    plain = stage().parse(json.dumps({"calls": [CALL]}))
    assert json.loads(stage().show(plain).removeprefix("```json\n").removesuffix("\n```")) == {"calls": [CALL]}
    assert plain.solution == Solution(calls=[ToolCall.model_validate(CALL)])
