"""Commands about the user's registry."""

from pathlib import Path

import click

from awm_factory.cli import settings
from awm_factory.cli.output import StderrProgress, json_option, print_json, table
from awm_factory.errors import PushError, UsageError


@click.command(short_help="Push verified images to a registry.")
@click.argument("envs", nargs=-1, metavar="[ENV]...")
@click.option(
    "--registry", required=True, metavar="PREFIX", help="Where to: a host and a path, such as ghcr.io/acme or 127.0.0.1:5000/awm."
)
@click.option("--tag", help="A tag besides the digest and latest.")
@json_option
@click.pass_obj
def push(workspace: Path | None, envs: tuple[str, ...], registry: str, tag: str | None, as_json: bool) -> None:
    """Push verified images, those there are or those named, read their digests back from the registry, and record them."""
    from awm_factory.build.pushing import push_envs
    from awm_factory.catalog import Catalog
    from awm_factory.images.engine import ensure_engine
    from awm_factory.images.push import checked_prefix

    config = settings.load(workspace)
    catalog = Catalog(config.workspace)
    checked_prefix(registry)
    ids = settings.chosen(envs, catalog) if envs else [row.env_id for row in catalog.rows() if row.image]
    if not ids:
        raise UsageError(f"{catalog.registry} holds no environment with an image; run `awm-factory build` first")
    with StderrProgress() as progress:
        rows = push_envs(ids, catalog, ensure_engine(config, progress.say).client, registry, tag, config.cache / "logs", progress)
    failed = [row for row in rows if row.error is not None]
    if as_json:
        print_json(rows)
    else:
        table(["environment", "pushed", "tags"], [[row.env_id, row.reference or "failed", ", ".join(row.tags)] for row in rows])
    if failed:
        raise PushError("\n".join([f"{len(failed)} of {len(rows)} images were not pushed.", *(str(row.error) for row in failed)]))
