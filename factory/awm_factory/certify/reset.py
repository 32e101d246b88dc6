"""Gate *reset*: an episode that is reset is the seed again, and the same calls give the same database in any process.

Example: a counter kept in a module's variable, which a reset does not reach, numbers the orders of the next episode on.
"""

from awm_factory.bundle import Bundle
from awm_factory.certify.evidence import Evidence, Options, severity
from awm_factory.problems import Problem
from awm_runtime.contract import ExploreReply

NAME = "reset"
VERSION = 1


def check(bundle: Bundle, evidence: Evidence, options: Options) -> list[Problem]:
    seen = evidence.explored
    if not isinstance(seen, ExploreReply):
        return []
    found = []
    if not seen.reset_identical:
        found.append("An episode that was reset is not byte-identical to the seed.")
    if len(set(seen.repeats[:2])) > 1:
        found.append("The same calls in two fresh processes give two different databases.")
    elif len(set(seen.repeats)) > 1:
        found.append("The same calls give another database in the next episode of the same process: something outlives a reset.")
    return [
        Problem(
            gate=NAME,
            severity=severity(bundle.manifest.origin),
            where="app.py",
            what=what,
            fix="Keep all state in the database, and take time and chance from the standard library alone.",
        )
        for what in found
    ]
