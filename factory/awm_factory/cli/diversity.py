"""The command that tells how different the environments of a set are."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from awm_factory.cli import settings
from awm_factory.cli.environments import envs_argument, run_directory
from awm_factory.cli.output import json_option, print_json, table
from awm_factory.errors import UsageError

if TYPE_CHECKING:
    from awm_factory.bundle import Bundle
    from awm_factory.diversity import Diversity


@click.command(short_help="Tell how different environments are.")
@envs_argument
@click.option("--run", "run_dir", type=run_directory, metavar="DIR", help="Of this AWM run instead of the workspace.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the order in which the set is taken to grow.")
@json_option
@click.pass_obj
def diversity(workspace: Path | None, envs: tuple[str, ...], run_dir: Path | None, seed: int, as_json: bool) -> None:
    """Compare environments, all or those named, by their texts, schemas, tools and solutions; near-duplicates are listed."""
    import numpy as np

    from awm_factory.config import ModelConfig
    from awm_factory.diversity import features, measure
    from awm_factory.llm.connect import connect_embedder
    from awm_factory.llm.protocol import EmbeddingRequest, Purpose
    from awm_factory.synthesis.scenarios import LocalEmbedder, Thresholds
    from awm_factory.synthesis.scenarios.local import CALIBRATED

    bundles = _of_run(run_dir, envs) if run_dir is not None else _of_workspace(workspace, envs)
    if not bundles:
        raise UsageError("there is no environment to compare; synthesize some, or name an AWM run by --run")
    found = [features(bundle) for bundle in bundles]
    remote = connect_embedder(ModelConfig.load())
    embedder, thresholds = (remote, Thresholds()) if remote is not None else (LocalEmbedder(), CALIBRATED)
    request = EmbeddingRequest(texts=tuple(one.text for one in found), purpose=Purpose(stage="diversity"))
    vectors = np.array(asyncio.run(embedder.embed(request)).vectors, dtype=np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    result = measure(found, vectors, thresholds.refuse_above, seed)
    if as_json:
        print_json(result)
    else:
        show(result, f"{embedder.name}, near-duplicates above {thresholds.refuse_above}")


def _of_workspace(workspace: Path | None, envs: tuple[str, ...]) -> "list[Bundle]":
    from awm_factory.catalog import Catalog

    catalog = Catalog(settings.load(workspace).workspace)
    return [catalog.read(env_id) for env_id in settings.chosen(envs, catalog)]


def _of_run(run_dir: Path, envs: tuple[str, ...]) -> "list[Bundle]":
    """As the run's files have them: nothing is executed."""
    from awm_factory.awm_format import AwmRecordSet, read_run
    from awm_factory.bundle import Bundle, Manifest
    from awm_factory.ids import env_id, is_env_id

    only = [name if is_env_id(name) else env_id(name) for name in envs] or None
    return [
        Bundle(
            manifest=Manifest(env_id=one.env_id, scenario=one.scenario, description=one.description, origin="imported"),
            schema_sql=[statement.sql for statement in one.schema],
            seed_sql=[],
            app_code=one.app_code,
            api_spec=one.api_spec,
        )
        for one in read_run(run_dir, only)
        if isinstance(one, AwmRecordSet)
    ]


def show(result: "Diversity", texts: str) -> None:
    """As tables. `texts`: which embedder, and above which cosine it has texts for near-duplicates."""
    rows = [
        ["environments", str(result.environments)],
        ["text similarity, mean of all pairs", f"{result.text_similarity:.3f}"],
        ["text similarity, closest pair", f"{result.text_closest:.3f} ({texts})"],
        ["near-duplicates", f"{result.near_duplicates} ({result.near_duplicate_share:.1%})"],
        ["Vendi score of the schemas", f"{result.schema_vendi:.1f} of {result.environments}"],
    ]
    if result.calls_vendi is not None and result.calls_vendi_named is not None:
        kinds = f"{result.solution_kinds} kinds in {result.solutions} solutions"
        rows.append(["Vendi score of the solutions, without names", f"{result.calls_vendi:.1f} ({kinds})"])
        rows.append(["Vendi score of the solutions, by tool names", f"{result.calls_vendi_named:.1f}"])
    if result.unread_statements:
        rows.append(["statements of schemas that can't be read", str(result.unread_statements)])
    table(["figure", ""], rows)
    table(
        ["environments", "novelty of text", "of schema", "of solutions"],
        [
            [str(step.size), f"{step.text:.3f}", f"{step.schema:.3f}", "" if step.calls is None else f"{step.calls:.3f}"]
            for step in result.novelty
        ],
    )
    if result.pairs:
        table(
            ["near-duplicates", "", "text", "same schema and tools"],
            [[pair.one, pair.other, f"{pair.text:.3f}", "yes" if pair.same_structure else ""] for pair in result.pairs],
        )
