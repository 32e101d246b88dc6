"""Gate *schema*: every statement of it executes, the database is undamaged, and has every column that the code uses.

Example: `CREATE INDEX idx_users_org ON users(organization_id)` on a table whose own DDL failed.
"""

from typing import Literal

from awm_factory.bundle import Bundle
from awm_factory.certify.evidence import Evidence, Options, could_not_run, excerpt, severity
from awm_factory.problems import Problem, Severity
from awm_runtime.contract import AppReply, CheckFailed, LoadReply, StatementFailure

NAME = "schema"
VERSION = 2


def check(bundle: Bundle, evidence: Evidence, options: Options) -> list[Problem]:
    load = evidence.load
    if isinstance(load, CheckFailed):
        return [could_not_run(NAME, "Loading schema and data", load)]
    problems = failed_statements(NAME, "schema", load, options)
    if not load.tables:
        problems.append(
            Problem(
                gate=NAME,
                severity="error",
                where="schema.sql",
                what="The schema makes no table at all.",
                fix="Write a CREATE TABLE statement for each entity of the scenario.",
            )
        )
    problems += [
        Problem(
            gate=NAME,
            severity="error",
            where="seed.db",
            what=f"SQLite's integrity check says: {row}.",
            fix="Mend the rows it names.",
        )
        for row in load.integrity
    ]
    if isinstance(evidence.app, AppReply):
        problems += [
            Problem(gate=NAME, severity=severity(bundle.manifest.origin), where=found.where, what=found.what, fix=found.fix)
            for found in evidence.app.findings
            if found.kind == "unknown_column"
        ]
    return problems


def failed_statements(gate: str, phase: Literal["schema", "data"], load: LoadReply, options: Options) -> list[Problem]:
    """One Problem a failed statement; errors where their share is above the tolerance."""
    failures = [failure for failure in load.failures if failure.phase == phase]
    total = max(1, load.statements_total.get(phase, 0))
    how: Severity = "error" if len(failures) / total > options.max_failed_statements else "warning"
    return [_failure(gate, how, failure) for failure in failures]


def _failure(gate: str, how: Severity, failure: StatementFailure) -> Problem:
    where = f"{failure.table}, {'statement' if failure.phase == 'schema' else 'insert'} {failure.index}"
    return Problem(
        gate=gate,
        severity=how,
        where=where,
        what=f"SQLite refuses it: {failure.error}. Statement: {excerpt(failure.sql)}",
        fix=_advice(failure.error),
        statement=True,
    )


def _advice(error: str) -> str:
    lower = error.lower()
    if "foreign key" in lower:
        return "Insert the parent row first, or name a parent that exists."
    if "check constraint" in lower:
        return "Use a value that the CHECK allows, or widen the CHECK."
    if "unique" in lower:
        return "Give the row a value no earlier row has."
    if "no such table" in lower or "no such column" in lower or "has no column" in lower:
        return "Use only tables and columns that the schema defines, and define them before they are used."
    if "values for" in lower or "values were supplied" in lower:
        return "Give exactly one value for each column named."
    if "not null" in lower:
        return "Give a value for the column, or let it be NULL in the schema."
    return "Mend the statement so that SQLite executes it with foreign keys on."
