"""The offline author on the command line: it writes where no model is named, and makes new rows and tasks for what it wrote."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from awm_factory.cli import settings as cli_settings
from awm_factory.cli.output import jobs_option, json_option
from awm_factory.cli.runs import store_option
from awm_factory.errors import UsageError

if TYPE_CHECKING:
    from awm_factory.config import ModelConfig
    from awm_factory.llm.offline.model import OfflineModel
    from awm_factory.synthesis.draft import Draft
    from awm_factory.synthesis.run import Order
    from awm_factory.synthesis.settings import Settings

DIFFICULTIES: Final = {"easy": (1, 2), "medium": (3,), "hard": (4, 5)}
SAID: Final = "no model is named: the offline author writes from domain packs, at 0 tokens and 0 USD (docs/offline-author.md)"
SETTINGS: Final[dict[str, Any]] = {
    "attempts": 1,
    "attempts_tasks": 1,
    "rounds": 0,
    "advice": False,
    "calls": 0,
    "mutants": 0,
    "prove_once": True,
}
"""It says the same again when asked again, so nothing is executed twice; the longer gates are left to certify."""
RESEEDED: Final = ("tasks", "data", "verifiers", "solutions")

difficulty_option = click.option(
    "--difficulty",
    metavar="LEVEL",
    callback=lambda _context, _option, value: levels(value) if value else (),
    help="Of tasks without a model: easy, medium, hard, or 1 to 5; all levels where not given.",
)
tasks_option = click.option(
    "--tasks", type=click.IntRange(1, 10_000), help="Tasks an environment, without a model; 10 where not given."
)


def levels(text: str) -> tuple[int, ...]:
    """Raises UsageError for a name that is no level."""
    if text in DIFFICULTIES:
        return DIFFICULTIES[text]
    if text in {"1", "2", "3", "4", "5"}:
        return (int(text),)
    raise UsageError(f"{text!r} is no difficulty; say easy, medium, hard, or a level from 1 to 5")


def is_wanted(models: "ModelConfig", options: dict[str, Any]) -> bool:
    return models.model is None and options["replay"] is None


def settings(jobs: int) -> dict[str, Any]:
    """Its answers are there at once, so more scenarios in flight than lanes would only take each other's place in the sandbox."""
    return {**SETTINGS, "in_flight": jobs + 1}


def model(chosen: "Settings", difficulty: Sequence[int]) -> "OfflineModel":
    from awm_factory.llm.offline.model import OfflineModel

    return OfflineModel(seed=chosen.seed, tasks=chosen.tasks, levels=difficulty)


def order(given: "Order", seed: int) -> "Order":
    """The same order for an author that knows its scenarios: new ones are taken from the packs, and others refused.

    Raises UsageError where it knows too few, or one is of no pack.
    """
    from dataclasses import replace

    from awm_factory.llm.offline.author import pack_of
    from awm_factory.llm.offline.catalogue import described, shuffled
    from awm_factory.synthesis.artifacts import Scenario
    from awm_factory.synthesis.draft import Draft

    for draft in given.drafts:
        pack_of(draft.env_id)
    if not given.count:
        return given
    every = shuffled(seed)
    if given.count > len(every):
        raise UsageError(
            f"the domain packs hold {len(every)} scenarios, not {given.count}; ask for fewer, name a model, or add packs"
        )
    scenarios = [Scenario.model_validate(described(key)) for key in every[: given.count]]
    drafts = [Draft(scenario=scenario, world_time=given.world_time) for scenario in scenarios]
    return replace(given, count=0, seeds=(), drafts=drafts)


@click.command("reseed", short_help="Give an environment new rows, tasks, verifiers and solutions.")
@click.argument("env")
@click.option("--seed", type=int, default=0, show_default=True, help="Of rows and tasks.")
@tasks_option
@difficulty_option
@click.option("--sandbox", "kind", type=click.Choice(["auto", "process"]), default="auto", help="Where generated code runs.")
@store_option
@jobs_option
@json_option
@click.pass_obj
def reseed(
    workspace: Path | None,
    env: str,
    seed: int,
    tasks: int | None,
    difficulty: tuple[int, ...],
    kind: str,
    store: str | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Keep the code of ENV, which the offline author wrote, and make its data, tasks, verifiers and solutions anew, proved again.

    The same seed makes the same bundle on any machine. Any number of tasks that the domain has is made: `--tasks 500`.
    """
    from awm_factory.catalog import Catalog
    from awm_factory.cli.synth import carry_out
    from awm_factory.synthesis.run import Order
    from awm_factory.synthesis.settings import Settings

    config = cli_settings.load(workspace, jobs=jobs)
    draft = _without_rows(Catalog(config.workspace).read(env))
    chosen = Settings.model_validate({**settings(config.jobs), "seed": seed} | ({"tasks": tasks} if tasks else {}))
    options = {"kind": kind, "store": store, "difficulty": difficulty, "as_json": as_json}
    carry_out(config, Order(plan=RESEEDED, drafts=[draft]), chosen, model(chosen, difficulty), options)


def _without_rows(bundle: Any) -> "Draft":
    """Raises UsageError for an environment whose code is not what the offline author writes for its scenario."""
    from awm_factory.llm.offline.author import Author
    from awm_factory.synthesis.artifacts import Schema
    from awm_factory.synthesis.draft import Draft

    author = Author(bundle.env_id, count=0)
    if author.code.strip() != bundle.app_code.strip():
        raise UsageError(
            f"the code of {bundle.env_id} is not what the offline author writes for it; synthesize it again, and reseed that"
        )
    draft = Draft.from_bundle(bundle).with_(schema=Schema.model_validate(author.schema))
    return draft.with_(tasks=None, difficulty={}, data=None, verifiers={}, solutions={})
