"""The command that lets a policy play episodes and keeps what came of them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from awm_factory.cli import settings as cli_settings
from awm_factory.cli.output import json_option, print_json, table
from awm_factory.errors import BatchFailed, UsageError

if TYPE_CHECKING:
    from awm_factory.bundle import Bundle
    from awm_factory.config import Config
    from awm_factory.rollout import Chosen, ModelPolicy, Rollout, Settings, Summary
    from awm_factory.rollout.places import Places
    from awm_factory.rollout.scripted import ScriptedPolicy

CONTAINER_TTL = 6 * 3600.0
"""Seconds after which a container of a rollout ends by itself, should its owner be killed."""


@click.command(short_help="Let a policy play episodes.")
@click.option(
    "--env", "envs", multiple=True, metavar="ENV",
    help="Environment to play; may be given more than once. All of the fleet, if none is named.",
)  # fmt: skip
@click.option("--task", "tasks", multiple=True, type=click.IntRange(0), help="Task to play; all that ship where not given.")
@click.option("--samples", type=click.IntRange(1), default=1, show_default=True, help="Episodes a task.")
@click.option("--model", help="Name of the model. Also AWM_SYN_OVERRIDE_MODEL.")
@click.option("--base-url", help="Where it is served, such as http://127.0.0.1:8000/v1. Also OPENAI_BASE_URL.")
@click.option("--agent", metavar="NAME", help="A scripted agent instead: random, greedy, chaining, search or solution.")
@click.option("--url", help="Play on the container that listens here (its port 8000) instead of starting one.")
@click.option(
    "--fleet",
    "fleet",
    metavar="NAME|URL",
    help="Play on leases of a fleet: the workspace's own by its name, any by its URL.",
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File that holds the container's or the fleet's token; a fleet named by NAME has its own.",
)
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), default=Path("rollouts.jsonl"), show_default=True,
    help="Where the episodes go, a line each; what is there already is not played again.",
)  # fmt: skip
@click.option("--parallel", type=click.IntRange(1), default=64, show_default=True, help="Episodes at once.")
@click.option("--form", type=click.Choice(["native", "text"]), default="native", show_default=True, help="How tools are called.")
@click.option("--turns", type=click.IntRange(1), help="Replies of the policy in an episode; 30 where not given.")
@click.option("--window", type=click.IntRange(0), help="Turns that the policy sees, 0 for all; 3 where not given.")
@click.option("--temperature", type=click.FloatRange(0), help="1.0 where not given.")
@click.option("--max-tokens", type=click.IntRange(1), help="Of one reply; 2048 where not given.")
@click.option("--call-timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="60 where not given.")
@click.option("--keep-going", is_flag=True, help="A format error is told to the policy instead of ending the episode with -1.0.")
@click.option("--seed", type=int, help="Of the first sample; the next has the next.")
@json_option
@click.pass_obj
def rollout(workspace: Path | None, /, *, as_json: bool, **options: Any) -> None:
    """Play episodes of environments, and print how many were complete, by environment.

    The policy is any model that speaks the OpenAI API. Run the same command again after a stop of any kind, and it goes on;
    episodes that the infrastructure failed are played again then.
    """
    from awm_factory.rollout import Trajectories, summaries

    chosen = _settings(options)
    config = cli_settings.load(workspace)
    options["place"] = url, token = _place(config, options)
    if options["fleet"] and url and not options["envs"]:
        options["envs"] = _served(url, token)
    policy = _policy(config, options)
    with Trajectories(options["output"], chosen.digest(policy.name)) as kept:
        plan = _plan(config, options)
        rollouts = asyncio.run(_run(plan, options, policy, chosen, kept))
    told = summaries(rollouts)
    if as_json:
        print_json(told)
    else:
        _print(told)
    failed = [one for one in rollouts if one.failure is not None]
    if failed:
        first = failed[0].failure
        raise BatchFailed(
            f"{len(failed)} of {len(rollouts)} episodes have no reward, the first for: {first.message if first else ''}; "
            f"mask them, or run the command again for those that the infrastructure failed"
        )


async def _run(
    plan: "Sequence[Chosen]", options: dict[str, Any], policy: "ModelPolicy | ScriptedPolicy", chosen: "Settings", kept: Any
) -> "list[Rollout]":
    from awm_factory.cli.rollout_progress import RolloutProgress
    from awm_factory.rollout import Width, run

    width = Width(episodes=options["parallel"])
    with RolloutProgress(len(plan), [kept.done[one.name] for one in plan if one.name in kept.done]) as progress:
        try:
            return await run(plan, _places(options, chosen), policy, chosen, kept, width, progress.done)
        finally:
            await policy.close()


def _settings(options: dict[str, Any]) -> "Settings":
    from awm_factory.rollout import Settings

    given = {name: options[name] for name in ("form", "turns", "temperature", "max_tokens", "call_timeout", "seed")}
    values = {name: value for name, value in given.items() if value is not None}
    if options["window"] is not None:
        values["window"] = options["window"] or None
    return Settings(**values, stop_on_format_error=not options["keep_going"])


def _policy(config: "Config", options: dict[str, Any]) -> "ModelPolicy | ScriptedPolicy":
    from awm_factory.config import ModelConfig
    from awm_factory.llm.connect import connect_model
    from awm_factory.llm.prices import Prices
    from awm_factory.rollout import ModelPolicy
    from awm_factory.rollout.scripted import ScriptedPolicy

    if not options["agent"]:
        models = ModelConfig.load(model=options["model"], base_url=options["base_url"])
        return ModelPolicy(connect_model(models, Prices.load(models.prices), options["parallel"]))
    if options["model"] or options["form"] == "text":
        raise UsageError("a scripted agent is no model, and calls tools natively; leave out --model and --form text")
    bundles = {env_id: _bundle(config, env_id) for env_id in options["envs"]} if options["agent"] == "solution" else {}
    return ScriptedPolicy(options["agent"], bundles, options["seed"] or 0)


def _place(config: "Config", options: dict[str, Any]) -> tuple[str | None, str | None]:
    """Address and token of what is named by --url or --fleet."""
    token = options["token_file"].read_text(encoding="utf-8").strip() if options["token_file"] else None
    named = options["fleet"]
    if options["url"] and named:
        raise UsageError("--url and --fleet name two places to play at; choose one")
    if named and "://" not in named:
        from awm_factory.fleet.files import FleetFiles
        from awm_factory.fleet.operate import address

        files = FleetFiles.of(config.workspace, named)
        return address(files), token or files.token()
    return options["url"] or named, token


def _places(options: dict[str, Any], chosen: "Settings") -> "Places":
    from awm_factory.client import Fleet
    from awm_factory.rollout.places import Containers, Leases, Running

    url, token = options["place"]
    if url is None:
        return Containers(chosen.call_timeout, CONTAINER_TTL)
    if options["fleet"]:
        return Leases(Fleet.connect(url, token, timeout=chosen.call_timeout), wait=CONTAINER_TTL)
    return Running(url, token, chosen.call_timeout)


def _plan(config: "Config", options: dict[str, Any]) -> "list[Chosen]":
    from awm_factory.rollout import Chosen

    if not options["envs"]:
        raise UsageError("say what to play: --env ENV; `awm-factory list` shows what there is")
    if options["url"] and len(options["envs"]) > 1:
        raise UsageError("the container of --url is one environment; name just that by --env")
    return [
        Chosen(env_id, task_id, sample)
        for env_id in options["envs"]
        for task_id in options["tasks"] or _shipped(config, env_id)
        for sample in range(options["samples"])
    ]


def _served(url: str, token: str | None) -> list[str]:
    """Environments of a fleet."""
    from awm_factory.client.sync import Fleet

    return [one["env_id"] for one in Fleet.connect(url, token).status()["scenarios"]]


def _shipped(config: "Config", env_id: str) -> list[int]:
    bundle = _bundle(config, env_id)
    certificate = bundle.certificate
    shipped = {task.task_id for task in certificate.tasks if task.shipped} if certificate is not None else None
    return [task.task_id for task in bundle.tasks if shipped is None or task.task_id in shipped]


def _bundle(config: "Config", env_id: str) -> "Bundle":
    from awm_factory.catalog import Catalog

    catalog = Catalog(config.workspace)
    if env_id not in catalog.env_ids():
        raise UsageError(f"{catalog.registry} has no environment {env_id}, so its tasks are unknown here; name them by --task")
    return catalog.read(env_id)


def _print(told: "Sequence[Summary]") -> None:
    ks = sorted({k for one in told for k in one.pass_at})
    columns = ["environment", "episodes", *(f"pass@{k}" for k in ks), "mean reward", "environment errors", "format errors"]
    rows = [
        [
            one.env_id,
            f"{one.episodes}{f', {one.masked} masked' if one.masked else ''}",
            *(f"{one.pass_at[k]:.1%}" if k in one.pass_at else "" for k in ks),
            "" if one.mean_reward is None else f"{one.mean_reward:.3f}",
            f"{one.environment_errors:.1%}",
            f"{one.format_errors:.1%}",
            f"{one.turns:.1f}",
            f"{one.calls:.1f}",
            f"{one.prompt_tokens:,} + {one.completion_tokens:,}",
            f"{one.seconds:.1f}",
        ]
        for one in told
    ]
    table([*columns, "turns", "calls", "tokens", "seconds"], rows)
