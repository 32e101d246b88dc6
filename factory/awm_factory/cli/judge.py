"""Commands that judge stored trajectories, and compare the modes of judging."""

import asyncio
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from awm_factory.cli import settings as cli_settings
from awm_factory.cli.output import json_option, print_json, table
from awm_factory.cli.runs import open_store, print_costs, store_option
from awm_factory.errors import BatchFailed, BudgetSpent, UsageError

if TYPE_CHECKING:
    from awm_factory.config import Config
    from awm_factory.reward import Judgement, Mode, StoredEpisode
    from awm_factory.store import Store

trajectories = click.argument("files", metavar="FILE…", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))


@click.command(short_help="Judge stored trajectories.")
@trajectories
@click.option(
    "--mode",
    type=click.Choice(["code", "sql", "llm"]),
    default="sql",
    show_default=True,
    help="Verifier, judge with evidence, judge alone.",
)
@click.option("--model", help="Name of the judge's model. Also AWM_SYN_OVERRIDE_MODEL; code mode needs none.")
@click.option(
    "--judge-votes", type=click.IntRange(1), default=1, show_default=True, help="Judgements asked for; most of them decide."
)
@click.option("--budget", type=click.FloatRange(0, min_open=True), metavar="USD", help="Stop before more than this is spent.")
@click.option(
    "--prices", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Table of prices that wins over ours (TOML)."
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="Write the episodes here, with their judgements.")
@store_option
@json_option
@click.pass_obj
def verify(
    workspace: Path | None,
    files: tuple[Path, ...],
    mode: "Mode",
    model: str | None,
    judge_votes: int,
    budget: float | None,
    prices: Path | None,
    output: Path | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Give every episode of the files its reward in one mode.

    An episode that was judged before, by the same model from the same content, is answered from the store and costs nothing.
    """
    from awm_factory.reward import read_episodes, write_episodes

    config = cli_settings.load(workspace)
    episodes = list(read_episodes(files))
    with open_store(store, config.workspace) as opened:
        if mode == "code":
            judged, costs = [episode.with_judgement(episode.by_code()) for episode in episodes], []
        else:
            run_id = _run_id(mode, judge_votes, episodes)
            judged = asyncio.run(_judge(config, episodes, mode, model, judge_votes, budget, prices, opened, run_id))
            costs = list(opened.costs(run_id))
    if output is not None:
        write_episodes(output, judged)
    said = {episode.episode: episode.judgements[mode] for episode in judged if mode in episode.judgements}
    if as_json:
        print_json({"mode": mode, "episodes": said, "costs": costs})
    else:
        table(["episode", "task", "classification", "reward", "why"], [_cells(episode, mode) for episode in judged])
        if costs:
            print_costs(costs)
    left = len(judged) - len(said)
    if left:
        raise BudgetSpent(
            f"{left} of {len(judged)} episodes were not judged, the budget is spent; give more with --budget, then repeat"
        )
    failed = [name for name, judgement in said.items() if judgement.error is not None]
    if failed:
        raise BatchFailed(f"{len(failed)} of {len(judged)} episodes have no reward; mask them in training, or judge them again")


def _run_id(mode: str, votes: int, episodes: list["StoredEpisode"]) -> str:
    """The same files judged again in one mode are the same run, so a budget holds for all tries together."""
    names = "\n".join(sorted(episode.episode for episode in episodes))
    return f"judge-{mode}-{votes}-{hashlib.sha256(names.encode()).hexdigest()[:8]}"


async def _judge(
    config: "Config",
    episodes: list["StoredEpisode"],
    mode: "Mode",
    model: str | None,
    votes: int,
    budget: float | None,
    prices: Path | None,
    store: "Store",
    run_id: str,
) -> list["StoredEpisode"]:
    from awm_factory.config import ModelConfig
    from awm_factory.llm.connect import connect_model
    from awm_factory.llm.metered import Ledger, MeteredModel
    from awm_factory.llm.prices import Prices
    from awm_factory.reward import Judge

    models = ModelConfig.load(model=model, prices=prices)
    table_of_prices = Prices.load(models.prices)
    connected = connect_model(models, table_of_prices)
    store.start_run(run_id, connected.name, {"mode": mode, "votes": votes})
    try:
        ledger = await Ledger.open(store.calls(run_id), table_of_prices, [connected.name], budget)
        judge = Judge(MeteredModel(connected, ledger), votes)

        async def one(episode: "StoredEpisode") -> "StoredEpisode":
            try:
                return episode.with_judgement(await judge.judge(episode, mode))
            except BudgetSpent:
                return episode

        return list(await asyncio.gather(*map(one, episodes)))
    finally:
        await connected.close()
        store.finish_run(run_id, "done", "")


def _cells(episode: "StoredEpisode", mode: str) -> list[str]:
    judgement = episode.judgements.get(mode)
    task = f"{episode.env_id} {episode.task_id if episode.task_id is not None else ''}".strip()
    if judgement is None:
        return [episode.episode, task, "not judged", "", ""]
    reward = "" if judgement.reward is None else f"{judgement.reward:g}"
    return [episode.episode, task, judgement.classification or "", reward, judgement.error or judgement.reason]


@click.command("agreement", short_help="Compare the modes of judging.")
@trajectories
@json_option
def agreement_(files: tuple[Path, ...], as_json: bool) -> None:
    """Compare the judgements in the files by mode, and list the episodes they dispute.

    A file that `verify --output` wrote holds them; verdicts of code verifiers count as mode `code` without judging.
    """
    from awm_factory.reward import agreement, read_episodes

    found: dict[str, dict[str, Judgement]] = {}
    for episode in read_episodes(files):
        by_code = {"code": episode.by_code()} if episode.verdict is not None else {}
        found[episode.episode] = by_code | episode.judgements
    result = agreement(found)
    if not result.pairs:
        raise UsageError(
            "the files hold judgements of one mode only; judge them in another with `awm-factory verify --mode … --output …`"
        )
    if as_json:
        print_json(result)
        return
    click.echo(f"{result.episodes} episodes, {len(result.disputes)} disputed")
    table(
        ["modes", "both rewarded", "agree", "kappa", "only the first says complete", "only the second"],
        [
            [
                f"{pair.first} / {pair.second}",
                str(pair.both),
                "" if pair.rate is None else f"{pair.rate:.0%}",
                "" if pair.kappa is None else f"{pair.kappa:.2f}",
                str(pair.only_first),
                str(pair.only_second),
            ]
            for pair in result.pairs
        ],
    )
    rows = [
        [dispute.episode, mode, judgement.classification or "no reward", judgement.error or judgement.reason]
        for dispute in result.disputes
        for mode, judgement in sorted(dispute.judgements.items())
    ]
    if rows:
        table(["episode", "mode", "says", "why"], rows)
