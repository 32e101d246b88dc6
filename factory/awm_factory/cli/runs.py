"""Commands that show what runs of the synthesis came to, from the store."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from awm_factory.cli import settings as cli_settings
from awm_factory.cli.output import json_option, print_json, table

if TYPE_CHECKING:
    from awm_factory.store import Cost, Store

STORE = "runs.db"
store_option = click.option(
    "--store", metavar="URL", help="Path or database URL of the runs; runs.db in the workspace where not given."
)


def open_store(url: str | None, workspace: Path) -> "Store":
    from awm_factory.store import Store

    return Store.open(url or str(workspace / STORE))


def print_costs(costs: Sequence["Cost"]) -> None:
    from awm_factory.store import total

    by_stage: dict[str, list[Cost]] = {}
    for cost in costs:
        by_stage.setdefault(cost.stage, []).append(cost)
    rows = [(stage, total(parts)) for stage, parts in by_stage.items()] + [("total", total(list(costs)))]
    columns = ["stage", "calls", "from the store", "retries", "failed", "prompt tokens", "answer tokens", "USD", "CPU s"]
    table(columns, [[stage, *_figures(cost)] for stage, cost in rows])


def _figures(cost: "Cost") -> list[str]:
    usd = "unknown" if cost.usd is None else f"{cost.usd:.4f}"
    counts = [str(value) for value in (cost.calls, cost.hits, cost.retries, cost.failures)]
    return [*counts, f"{cost.prompt_tokens:,}", f"{cost.completion_tokens:,}", usd, f"{cost.cpu_seconds:.1f}"]


@click.group(short_help="Look at past runs.")
def runs() -> None:
    """Runs of the synthesis and what they came to."""


@runs.command("list", short_help="Show the runs of the store.")
@store_option
@json_option
@click.pass_obj
def runs_list(workspace: Path | None, store: str | None, as_json: bool) -> None:
    """Show the runs of the store, oldest first."""
    with open_store(store, cli_settings.load(workspace).workspace) as opened:
        found = opened.runs()
    if as_json:
        print_json(found)
    else:
        table(["run", "state", "model"], [[run.run_id, run.state, run.model] for run in found])


@runs.command("show", short_help="Show one run: scenarios, attempts, costs.")
@click.argument("run_id", metavar="RUN")
@click.option("--env", "env_id", help="All attempts of this environment, with what was wrong with each.")
@store_option
@json_option
@click.pass_obj
def runs_show(workspace: Path | None, run_id: str, env_id: str | None, store: str | None, as_json: bool) -> None:
    """Show how each scenario of RUN stands, and what it cost by environment and stage."""
    with open_store(store, cli_settings.load(workspace).workspace) as opened:
        run, scenarios, costs = opened.run(run_id), opened.scenarios(run_id), opened.costs(run_id)
        attempts = opened.attempts(run_id, env_id) if env_id else []
    if as_json:
        shown = [
            {"stage": a.stage, "item": a.item, "number": a.number, "chosen": a.chosen, "problems": a.problems} for a in attempts
        ]
        print_json({"run": run, "scenarios": scenarios, "costs": costs, "attempts": shown})
        return
    click.echo(f"run {run.run_id}, {run.state}, with {run.model}")
    table(["environment", "state", "note"], [[one.env_id, one.state, one.note] for one in scenarios])
    for attempt in attempts:
        mark = " (kept)" if attempt.chosen else ""
        place = f"{attempt.stage} {attempt.item}".strip()
        click.echo(f"\n{place}, attempt {attempt.number}{mark}: {len(attempt.problems)} problems")
        for problem in attempt.problems:
            click.echo(f"  {problem.severity} {problem}")
    columns = [
        "environment",
        "stage",
        "calls",
        "from the store",
        "retries",
        "failed",
        "prompt tokens",
        "answer tokens",
        "USD",
        "CPU s",
    ]
    table(columns, [[cost.env_id or "(pool)", cost.stage, *_figures(cost)] for cost in costs])
    print_costs(costs)
