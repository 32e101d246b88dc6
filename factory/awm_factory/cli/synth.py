"""The command that makes environments: by a language model, or by the offline author where none is named."""

import asyncio
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from awm_factory.cli import offline
from awm_factory.cli import settings as cli_settings
from awm_factory.cli.offline import difficulty_option, tasks_option
from awm_factory.cli.output import jobs_option, json_option, print_json, table
from awm_factory.cli.parameters import world_time as parsed_world_time
from awm_factory.cli.runs import open_store, print_costs, store_option
from awm_factory.errors import AwmError, BatchFailed, BudgetSpent, ConfigError, UsageError

if TYPE_CHECKING:
    from awm_factory.catalog import Catalog
    from awm_factory.config import Config
    from awm_factory.llm.protocol import Model
    from awm_factory.store import Cost, Store
    from awm_factory.synthesis.draft import Draft
    from awm_factory.synthesis.pipeline import Made
    from awm_factory.synthesis.report import Row, SynthesisReport
    from awm_factory.synthesis.run import Order
    from awm_factory.synthesis.settings import Settings

folder = click.Path(exists=True, file_okay=False, path_type=Path)
readable = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(short_help="Make environments, by a language model or without.")
@click.option("--count", type=click.IntRange(1), help="Write this many new scenarios, and an environment of each.")
@click.option(
    "--scenarios", "scenario_file", type=readable, help="Take these scenarios (JSON lines) instead of writing new ones."
)
@click.option("--seeds", type=readable, help="Seed scenarios (JSON lines) instead of our hundred; AWM's file will do.")
@click.option("--from-bundle", "bundles", multiple=True, metavar="ENV", help="Take up this environment of the workspace.")
@click.option("--input", "in_dir", type=folder, help="Take up the scenarios of this AWM run, with what it holds of them.")
@click.option("--missing", is_flag=True, help="Leave out scenarios that the workspace has an environment of.")
@click.option("--output", "out_dir", type=click.Path(file_okay=False, path_type=Path), help="Write what was made as an AWM run.")
@click.option("--only", metavar="STAGES", help="These stages only, separated by commas.")
@click.option("--from", "first", metavar="STAGE", help="Begin with this stage.")
@click.option("--to", "last", metavar="STAGE", help="End with this stage.")
@click.option("--model", help="Name of the model; without one, ours writes from domain packs. Also AWM_SYN_OVERRIDE_MODEL.")
@click.option("--budget", type=click.FloatRange(0, min_open=True), metavar="USD", help="Stop before more than this is spent.")
@click.option("--prices", type=readable, help="Table of prices that wins over ours (TOML).")
@click.option("--settings", "settings_file", type=readable, help="Numbers of the synthesis that differ from AWM's (TOML).")
@click.option("--seed", type=int, help="Of all draws; 0 where not given.")
@tasks_option
@difficulty_option
@click.option("--requests", type=click.IntRange(1), help="Requests in flight at once; 64 where not given.")
@click.option("--record", type=click.Path(file_okay=False, path_type=Path), help="Record every answer in this folder.")
@click.option("--replay", type=folder, help="Answer from this recording and send nothing.")
@click.option("--sandbox", "kind", type=click.Choice(["auto", "process"]), default="auto", help="Where generated code runs.")
@click.option("--run", "run_id", help="Name of the run; derived from the order where not given, so the same command goes on.")
@click.option("--world-time", callback=parsed_world_time, metavar="INSTANT", help="Start of time in the environments.")
@store_option
@jobs_option
@json_option
@click.pass_obj
def synth(workspace: Path | None, /, *, jobs: int | None, as_json: bool, **options: Any) -> None:
    """Take scenarios through all stages to proved bundles in the workspace's registry, or through some stages to files.

    The model is any that speaks the OpenAI API: OPENAI_API_KEY, OPENAI_BASE_URL and --model say which. Without a model, the
    offline author writes the scenarios of the domain packs, for nothing. Run the same command again after a stop of any kind,
    and it goes on where it was; no answer is paid for twice.
    """
    from awm_factory.config import ModelConfig

    config = cli_settings.load(workspace, jobs=jobs)
    models = ModelConfig.load(model=options["model"], prices=options["prices"])
    without = offline.is_wanted(models, options)
    chosen = _chosen_settings(options, offline.settings(config.jobs) if without else {})
    order = _order(config, options)
    if not without and (options["tasks"] or options["difficulty"]):
        raise UsageError("--tasks and --difficulty are for the offline author; say `tasks` in --settings for a model")
    if without:
        click.echo(offline.SAID, err=True)
        order = offline.order(order, chosen.seed)
    if options["missing"]:
        order = _missing(order, config)
        if not order.drafts and not order.count:
            click.echo("all of these environments are there already", err=True)
            return
    model = offline.model(chosen, options["difficulty"]) if without else None
    carry_out(config, order, chosen, model, {**options, "as_json": as_json})


def carry_out(config: "Config", order: "Order", chosen: "Settings", model: "Model | None", given: Mapping[str, Any]) -> None:
    """Synthesize, keep, print. `model` is one that costs nothing; None for the endpoint that the options name."""
    from awm_factory.catalog import Catalog

    options = {**dict.fromkeys(("replay", "record", "budget", "prices", "model", "out_dir", "run_id")), **given}
    as_json = options["as_json"]
    with open_store(options["store"], config.workspace) as store:
        report, run_id = asyncio.run(_synthesize(config, order, chosen, options, Catalog(config.workspace), store, model))
        costs = store.costs(run_id)
    if as_json:
        print_json({"run": run_id, "rows": report.rows, "rates": report.rates, "costs": costs})
    else:
        _print_report(report, run_id, costs)
    stopped = [row for row in report.rows if row.outcome == "stopped"]
    if stopped:
        raise BudgetSpent(f"{len(stopped)} of {len(report.rows)} scenarios were stopped: {stopped[0].error}")
    if not report.ok:
        bad = sum(row.outcome not in {"made", "marked"} for row in report.rows)
        raise BatchFailed(f"{bad} of {len(report.rows)} scenarios came to nothing; `awm-factory runs show {run_id}` says why")


async def _synthesize(
    config: "Config",
    order: "Order",
    chosen: "Settings",
    options: dict[str, Any],
    catalog: "Catalog",
    store: "Store",
    own: "Model | None",
) -> tuple["SynthesisReport", str]:
    from awm_factory.cli import synth_means
    from awm_factory.cli.synth_progress import SynthProgress
    from awm_factory.config import ModelConfig
    from awm_factory.llm.estimate import PLAN, estimate
    from awm_factory.llm.metered import Ledger, MeteredEmbedder, MeteredModel
    from awm_factory.llm.prices import Prices
    from awm_factory.synthesis.files import write_drafts
    from awm_factory.synthesis.run import Means, synthesize

    models = ModelConfig.load(model=options["model"], prices=options["prices"])
    prices = Prices.load(models.prices)
    model, embedder, thresholds = synth_means.answering(models, prices, options, chosen, own)
    run_id = options["run_id"] or order.run_id(model.name, chosen)
    store.start_run(run_id, model.name, chosen.model_dump(mode="json"))
    names = [model.name] if thresholds is None or embedder.name.startswith("wordllama") else [model.name, embedder.name]
    ledger = await Ledger.open(store.calls(run_id), prices, names, options["budget"])
    count = order.count or len(order.drafts)
    kept: dict[str, Draft] = {}

    def keep(made: "Made") -> None:
        if options["out_dir"] is not None:
            kept[made.row.env_id] = made.draft
        if made.bundle is not None:
            _write(catalog, made, replaces={draft.env_id for draft in order.drafts})

    with (
        SynthProgress(count, lambda: ledger.budget.spent) as progress,
        synth_means.sandbox(config, options["kind"], progress.say) as sandbox,
    ):
        if options["replay"] is None and own is None:
            planned = [part for part in PLAN if part.stage in {*order.plan, "advice", "classify"}]
            progress.say(f"run {run_id}: {estimate(prices, model.name, count, planned)}")
        means = Means(
            model=MeteredModel(model, ledger),
            embedder=MeteredEmbedder(embedder, ledger),
            thresholds=thresholds,
            sandbox=sandbox,
            lanes=config.jobs,
            store=store,
            run_id=run_id,
            settings=chosen,
            progress=progress,
            keep=keep,
            is_kept=lambda row: options["out_dir"] is None and _is_kept(catalog, row),
            say=progress.say,
        )
        state: Any = "stopped"
        try:
            report = await synthesize(order, means)
            state = "stopped" if any(row.outcome == "stopped" for row in report.rows) else "done"
        finally:
            store.finish_run(run_id, state, json.dumps([audit.model_dump() for audit in means.audits]) if means.audits else "")
            for part in (model, embedder):
                if hasattr(part, "close"):
                    await part.close()
    if options["out_dir"] is not None:
        write_drafts([kept[row.env_id] for row in report.rows if row.env_id in kept], options["out_dir"])
    return report, run_id


def _is_kept(catalog: "Catalog", row: "Row") -> bool:
    try:
        bundle = catalog.read(row.env_id)
    except AwmError:
        return False
    return (bundle.digest(), bundle.solutions_digest()) == (row.digest, row.solutions_digest)


def _write(catalog: "Catalog", made: "Made", replaces: set[str]) -> None:
    """Into the registry, but never over an environment that somebody else made."""
    assert made.bundle is not None
    env_id = made.row.env_id
    with catalog.lock(env_id, timeout=60):
        if env_id in catalog.env_ids() and env_id not in replaces and catalog.read(env_id).manifest.origin != "synthesized":
            raise UsageError(
                f"{catalog.registry} has an environment {env_id} that was not synthesized; move it, or rename the scenario"
            )
        catalog.write(made.bundle)


def _chosen_settings(options: dict[str, Any], defaults: Mapping[str, Any]) -> "Settings":
    from pydantic import ValidationError

    from awm_factory.synthesis.settings import Settings

    path = options["settings_file"]
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8")) if path else {}
        values = {**defaults, **values}
        values |= {name: options[name] for name in ("seed", "requests", "tasks") if options[name] is not None}
        return Settings.model_validate(values)
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise ConfigError(
            f"the settings{f' of {path}' if path else ''} can't be used: {error}; docs/synthesis.md lists them"
        ) from error


def _order(config: "Config", options: dict[str, Any]) -> "Order":
    from awm_factory.catalog import Catalog
    from awm_factory.ids import env_id, is_env_id
    from awm_factory.synthesis.draft import Draft
    from awm_factory.synthesis.files import read_drafts
    from awm_factory.synthesis.run import Order, described, stages_between
    from awm_factory.synthesis.scenarios import read_scenarios, seeds
    from awm_runtime.contract import WORLD_TIME

    plan = stages_between(
        options["first"], options["last"], [name.strip() for name in (options["only"] or "").split(",") if name]
    )
    world_time = options["world_time"] or WORLD_TIME
    drafts: list[Draft] = []
    if options["scenario_file"]:
        drafts += [Draft(scenario=scenario, world_time=world_time) for scenario in read_scenarios(options["scenario_file"])]
    if options["in_dir"]:
        drafts += read_drafts(options["in_dir"], world_time)
    for name in options["bundles"]:
        drafts.append(Draft.from_bundle(Catalog(config.workspace).read(name if is_env_id(name) else env_id(name))))
    count = options["count"] or 0
    if drafts:
        return Order(plan=plan, drafts=described(drafts[:count] if count else drafts), world_time=world_time)
    if not count:
        raise UsageError("say what to make: --count N for new scenarios, or --scenarios, --input or --from-bundle")
    planted = read_scenarios(options["seeds"]) if options["seeds"] else seeds()
    return Order(plan=plan, count=count, seeds=planted, world_time=world_time)


def _missing(order: "Order", config: "Config") -> "Order":
    """Without those that the registry holds; new scenarios, which nobody knows yet, are all missing."""
    from dataclasses import replace

    from awm_factory.catalog import Catalog

    known = set(Catalog(config.workspace).env_ids())
    return replace(order, drafts=[draft for draft in order.drafts if draft.env_id not in known])


def _print_report(report: "SynthesisReport", run_id: str, costs: Sequence["Cost"]) -> None:
    cells = [
        [row.env_id, row.outcome, f"{row.tasks_shipped} of {row.tasks_total}", str(len(row.problems) or ""), row.error or ""]
        for row in report.rows
    ]
    click.echo(f"run {run_id}")
    table(["environment", "outcome", "tasks", "errors left", "why"], cells)
    rates = [[rate.stage, str(rate.questions), f"{rate.success:.0%}", f"{rate.iterations:.2f}"] for rate in report.rates]
    table(["stage", "questions", "success", "mean iterations"], rates)
    print_costs(costs)
