"""Commands about the machine: the engine, the base image, and what interrupted runs left behind."""

from dataclasses import asdict
from pathlib import Path

import click

from awm_factory.cli import settings
from awm_factory.cli.output import StderrProgress, json_option, print_json, table
from awm_factory.errors import EngineError


@click.command(short_help="Find or start a Docker engine.")
@json_option
@click.pass_obj
def engine(workspace: Path | None, as_json: bool) -> None:
    """Find the Docker engine that answers; where none does, and we are root on Debian or Ubuntu, install and start one.

    Docker Compose, which only fleets need, is installed likewise; where that can't be done, it is only said.
    """
    from awm_factory.images import compose_plugin
    from awm_factory.images.engine import ensure_engine

    config = settings.load(workspace)
    with StderrProgress() as progress:
        found = ensure_engine(config, progress.say)
        try:
            compose = compose_plugin.ensure_compose(config, progress.say)
        except EngineError as error:
            progress.say(f"fleets can't be started yet: {error}")
            compose = None
    facts = {
        "host": found.host,
        "version": found.version,
        "native": found.native,
        "platform": found.platform,
        "compose": compose,
    }
    if as_json:
        print_json(facts)
    else:
        click.echo(f"Docker engine {found.version} at {found.host}, images for {found.platform}")
        if compose:
            click.echo(f"Docker Compose {compose}")


@click.command(short_help="Build the base image that environments share.")
@json_option
@click.pass_obj
def base(workspace: Path | None, as_json: bool) -> None:
    """Build the base image that all environment images share, where its inputs have changed."""
    from awm_factory.images.base import ensure_base
    from awm_factory.images.engine import ensure_engine

    config = settings.load(workspace)
    with StderrProgress() as progress:
        image = ensure_base(ensure_engine(config, progress.say), config, progress.say)
    if as_json:
        print_json(asdict(image))
    else:
        click.echo(image.reference)


@click.command(short_help="Remove what killed sessions left behind.")
@click.option("--running", is_flag=True, help="Also those of sessions that are still at work.")
@click.option("--images", is_flag=True, help="Also tags awm/… that this workspace's catalogue does not name.")
@json_option
@click.pass_obj
def reap(workspace: Path | None, running: bool, images: bool, as_json: bool) -> None:
    """Remove containers and networks that sessions of awm-factory left behind when they were killed.

    With --images also old images: tags of environments that no record of the workspace names, and bases that no named image
    stands on, but for the newest. Another workspace on the same engine would have to build its own again.
    """
    from awm_factory.catalog import Catalog
    from awm_factory.images import docker_client, prune
    from awm_factory.images.engine import ensure_engine

    config = settings.load(workspace)
    client = ensure_engine(config).client
    reaped = asdict(docker_client.reap(client, running=running))
    if images:
        catalog = Catalog(config.workspace)
        records = [catalog.record(env_id) for env_id in catalog.env_ids()]
        reaped["images"] = prune.prune(client, {tag for record in records if record is not None for tag in record.images})
    if as_json:
        print_json(reaped)
        return
    table(["removed", "name"], [(kind.removesuffix("s"), name) for kind, names in reaped.items() for name in names])
