"""The ledger of a run, summed by the database."""

from dataclasses import asdict, replace
from typing import Any

import sqlalchemy as sa

from awm_factory.store.records import Cost
from awm_factory.store.tables import Attempt, Call

_COUNTS = ("calls", "hits", "retries", "failures", "unmetered", "prompt_tokens", "completion_tokens", "cached_tokens")


def costs(connection: sa.Connection, run_id: str) -> list[Cost]:
    figures = sa.select(
        Call.env_id,
        Call.stage,
        sa.func.count().label("calls"),
        _count(Call.hit).label("hits"),
        sa.func.sum(sa.case((Call.requests > 1, Call.requests - 1), else_=0)).label("retries"),
        _count(Call.failed).label("failures"),
        sa.func.sum(Call.unmetered).label("unmetered"),
        sa.func.sum(Call.prompt_tokens).label("prompt_tokens"),
        sa.func.sum(Call.completion_tokens).label("completion_tokens"),
        sa.func.sum(Call.cached_tokens).label("cached_tokens"),
        sa.func.sum(Call.usd).label("usd"),
        _count(Call.usd.is_(None)).label("unpriced"),
        sa.func.sum(Call.seconds).label("seconds"),
    )
    cpu = sa.select(Attempt.env_id, Attempt.stage, sa.func.sum(Attempt.cpu_seconds)).where(Attempt.run_id == run_id)
    rows = connection.execute(figures.where(Call.run_id == run_id).group_by(Call.env_id, Call.stage)).all()
    spent = {(env, stage): float(sum_) for env, stage, sum_ in connection.execute(cpu.group_by(Attempt.env_id, Attempt.stage))}
    found = {(row.env_id, row.stage): _cost(row, spent.get((row.env_id, row.stage), 0.0)) for row in rows}
    for (env_id, stage), seconds in spent.items():
        found.setdefault((env_id, stage), Cost(env_id, stage, cpu_seconds=seconds))
    return [found[place] for place in sorted(found)]


def total(parts: list[Cost]) -> Cost:
    """One row of all; its price is unknown where any of theirs is."""
    whole = Cost("", "total")
    for cost in parts:
        usd = None if whole.usd is None or cost.usd is None else whole.usd + cost.usd
        figures = {name: value for name, value in asdict(cost).items() if name not in {"env_id", "stage", "usd"}}
        whole = replace(whole, usd=usd, **{name: getattr(whole, name) + value for name, value in figures.items()})
    return whole


def _count(condition: Any) -> Any:
    return sa.func.sum(sa.case((condition, 1), else_=0))


def _cost(row: Any, cpu_seconds: float) -> Cost:
    usd = None if row.unpriced else float(row.usd)
    counts = {name: int(getattr(row, name)) for name in _COUNTS}
    return Cost(row.env_id, row.stage, usd=usd, cpu_seconds=cpu_seconds, seconds=float(row.seconds), **counts)
