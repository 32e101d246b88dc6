"""Gate *solvable*: the reference solution, played over MCP on fresh episodes, is complete each time and ends in one state."""

import re

from awm_factory.bundle import Bundle, Task
from awm_factory.certify.evidence import Evidence, Options, could_not_run
from awm_factory.problems import Problem
from awm_runtime.contract import CallsReply, CheckFailed, Playthrough, ToolResult, Verdict

NAME = "solvable"
VERSION = 1


def check(bundle: Bundle, evidence: Evidence, options: Options) -> list[Problem]:
    problems = []
    for task in bundle.tasks:
        reply = evidence.solved.get(task.task_id)
        if isinstance(reply, CheckFailed):
            problems.append(could_not_run(NAME, "Playing the solution", reply, task.task_id))
        elif reply is not None:
            problems += _played(bundle, task, reply)
    return problems


def _played(bundle: Bundle, task: Task, reply: CallsReply) -> list[Problem]:
    problems = [problem for run in reply.runs[:1] for problem in _one(bundle, task, run)]
    if problems:
        return problems
    later = [run for run in reply.runs[1:] if any(verdict.classification != "complete" for verdict in _scored(run))]
    states = {run.dump_sha256 for run in reply.runs}
    if later or len(states) > 1:
        what = (
            f"{len(later)} of {len(reply.runs)} runs are not complete"
            if later
            else f"{len(reply.runs)} runs end in {len(states)} states"
        )
        problems.append(
            _problem(
                task, f"The solution is not repeatable: {what}.", "Remove what depends on anything but seed, calls and clock."
            )
        )
    return problems


def _one(bundle: Bundle, task: Task, run: Playthrough) -> list[Problem]:
    calls = bundle.solutions[task.task_id].calls
    broken = [
        f"call {number} ({call.tool}) answered {result.kind}: {_told(result)}"
        for number, (call, result) in enumerate(zip(calls, run.results, strict=False))
        if result.kind in {"internal", "timeout", "crashed", "invalid_arguments", "format_error"}
    ]
    if broken:
        return [
            _problem(task, f"The solution can't be played: {'; '.join(broken)}.", "Mend the call, or the endpoint that fails.")
        ]
    wrong = [verdict for verdict in _scored(run) if verdict.classification != "complete"]
    if wrong:
        said = wrong[0].error or wrong[0].classification
        return [
            _problem(
                task, f"The code verifier does not accept the solution; it says {said}.", "Mend the verifier, or the solution."
            )
        ]
    return []


def _told(result: ToolResult) -> str:
    """Its message, without addresses in memory, which differ from run to run."""
    error = result.content.get("error") if isinstance(result.content, dict) else None
    text = str(error.get("message")) if isinstance(error, dict) else str(result.content)
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def _scored(run: Playthrough) -> list[Verdict]:
    return [verdict for verdict in run.verdicts if verdict.mode == "code"]


def _problem(task: Task, what: str, fix: str) -> Problem:
    return Problem(gate=NAME, severity="error", where=f"task {task.task_id}", what=what, fix=fix, task_id=task.task_id)
