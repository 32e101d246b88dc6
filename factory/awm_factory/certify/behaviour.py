"""Gate *behaviour*: called at random on live values, the app breaks none of the rules that hold whatever it is for.

Example: `hand_out_tag` refuses a request after it has stored half of it, and a failed call leaves the state changed.
"""

import json

from awm_factory.bundle import Bundle
from awm_factory.certify.evidence import Evidence, Options, could_not_run, severity
from awm_factory.problems import Problem, Severity
from awm_runtime.contract import CheckFailed, ExploreReply, ToolUse, Violation

NAME = "behaviour"
VERSION = 3

_TELLING = 3
"""Calls that all went well and changed nothing, before that is a fault and no accident of the values drawn."""

_WARNINGS = ("negative", "order", "idle", "given", "again", "limit", "constraint")
"""Kinds of what an author may mean so."""

_FIXES = {
    "exception": "Handle the case: answer with an HTTPException of status 4xx that says what is wrong.",
    "unhandled": "Look before it is tried, and answer with an HTTPException of status 4xx that says what is wrong.",
    "constraint": "Look before it is tried, and answer with what is wrong and what would do instead.",
    "invariant": "Check what the rule says before anything is stored.",
    "read_writes": "Take the writing out of the reading endpoint.",
    "failed_call_writes": "Commit once, at the end, after every check has passed.",
    "no_effect": "Commit what it changes, or answer with an error where nothing is done.",
    "list_get": "Let both endpoints read the same rows and columns.",
    "filter": "Mend the condition of the query.",
    "page": "Apply the limit to the query.",
    "sort": "Mend the order of the query.",
    "given": "Store, and answer, what was given.",
    "again": "Look at the state of the row before anything is done, and answer with an error where it was done already.",
    "limit": "Let the condition and the words of the refusal speak of one limit.",
    "reach": "Check the row in the writing endpoint as the reading one does.",
    "dangling": "Enforce foreign keys, or remove the rows that refer to the one removed.",
    "negative": "Check that there is enough before it is taken.",
    "order": "Check that the one does not pass the other before anything is stored.",
    "idle": "Answer with an error where nothing is done.",
    "hangs": "Look for an endless loop, a lock that is held, or a call that ends the process.",
}


def check(bundle: Bundle, evidence: Evidence, options: Options) -> list[Problem]:
    seen = evidence.explored
    if seen is None:
        return []
    if isinstance(seen, CheckFailed):
        return [could_not_run(NAME, "Exploring the app", seen).model_copy(update={"severity": severity(bundle.manifest.origin)})]
    strictness = severity(bundle.manifest.origin)
    return [_problem(violation, "warning" if _may_be_meant(violation, seen) else strictness) for violation in seen.violations]


def _may_be_meant(violation: Violation, seen: ExploreReply) -> bool:
    """Negative amounts can be debts, what was in order may have been so by chance, and a tool may find its work done already."""
    use = seen.uses.get(violation.tool, ToolUse())
    return violation.kind in _WARNINGS or (violation.kind == "no_effect" and (use.changed > 0 or use.ok < _TELLING))


def _problem(violation: Violation, strictness: Severity) -> Problem:
    return Problem(
        gate=NAME,
        severity=strictness,
        where=f"tool {violation.tool}" if violation.tool else "app.py",
        what=f"{violation.kind.replace('_', ' ')}: {violation.what}.{_sequence(violation)}",
        fix=_FIXES[violation.kind],
    )


def _sequence(violation: Violation) -> str:
    shown = "; ".join(f"{call.tool}({json.dumps(call.arguments, ensure_ascii=False)})" for call in violation.calls)
    return f" Calls: {shown}" if shown else ""
