"""Commands about fleets: containers of many environments behind one lease service."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from awm_factory.cli import settings
from awm_factory.cli.output import StderrProgress, json_option, print_json, stdout, table

if TYPE_CHECKING:
    from awm_factory.fleet.operate import Running
    from awm_factory.fleet.planning import Wish

F = TypeVar("F", bound=Callable[..., Any])

name_option = click.option("--name", default="fleet", show_default=True, help="Of the fleet; several may run side by side.")
engine_option = click.option(
    "--engine",
    "kind",
    type=click.Choice(["compose", "swarm"]),
    default="compose",
    show_default=True,
    help="Docker Compose on this machine, or Docker Swarm on several.",
)


def _wishes(command: F) -> F:
    """Options of `render` and `up`."""
    options = [
        click.argument("envs", nargs=-1, metavar="[ENV[=N]]..."),
        click.option(
            "--envs",
            "first",
            metavar="ENV[=N]",
            help="The first environment; more may follow. All that have an image, if none is named. N: its containers.",
        ),
        name_option,
        engine_option,
        click.option(
            "--replicas",
            type=click.IntRange(1, 1000),
            default=1,
            show_default=True,
            help="Containers of each environment; N wins.",
        ),
        click.option(
            "--capacity", type=click.IntRange(1, 4096), default=128, show_default=True, help="Episodes of one container."
        ),
        click.option(
            "--queue", type=click.IntRange(0), default=1024, show_default=True, help="Requests that may wait for one environment."
        ),
        click.option(
            "--port", type=click.IntRange(1, 65535), help="Of the lease service on this machine; a free one if not given."
        ),
        click.option(
            "--memory", type=click.IntRange(192), metavar="MIB", help="Limit of one container; by its capacity if not given."
        ),
        click.option(
            "--workers", type=click.IntRange(1, 64), help="Processes for tool calls in one container; by the CPUs if not given."
        ),
        click.option(
            "--registry", metavar="PREFIX", help="Push the images there first and pull them by digest; a swarm needs it."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _wish(envs: tuple[str, ...], first: str | None, **options: Any) -> "Wish":
    from awm_factory.fleet.planning import Wish

    return Wish(envs=[*([first] if first else []), *envs], **options)


@click.group(short_help="Lease episodes of many environments.")
def fleet() -> None:
    """Containers of many environments behind one lease service, on this machine or on a swarm."""


@fleet.command(short_help="Write a fleet's file without starting it.")
@_wishes
@json_option
@click.pass_obj
def render(workspace: Path | None, /, envs: tuple[str, ...], first: str | None, as_json: bool, **options: Any) -> None:
    """Write compose/<name>.yaml and its tokens, and start nothing."""
    from awm_factory.fleet import planning

    config = settings.load(workspace)
    with StderrProgress() as progress:
        planned = planning.plan(_wish(envs, first, **options), config, progress)
        planned.write()
    if as_json:
        print_json({"file": str(planned.files.document), "token_file": str(planned.files.token_file)})
    else:
        click.echo(planned.files.document)


@fleet.command(short_help="Start a fleet.")
@_wishes
@click.option(
    "--file",
    "given",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Start this file, as `fleet render` wrote it and you edited it, instead of writing one.",
)
@json_option
@click.pass_obj
def up(
    workspace: Path | None, /, envs: tuple[str, ...], first: str | None, given: Path | None, as_json: bool, **options: Any
) -> None:
    """Write compose/<name>.yaml, start it, and wait until every container answers.

    A fleet that runs is brought into line: more or fewer replicas, other environments, newer images.
    """
    from awm_factory.fleet import planning

    config = settings.load(workspace)
    with StderrProgress() as progress:
        if given is not None:
            running = planning.start_given(given, config, progress.say)
        else:
            running = planning.plan(_wish(envs, first, **options), config, progress).start(progress.say)
    _print(running, as_json=as_json)


@fleet.command(short_help="Show a fleet's containers and leases.")
@name_option
@engine_option
@json_option
@click.pass_obj
def status(workspace: Path | None, name: str, kind: str, as_json: bool) -> None:
    """Show a fleet's address, its containers with their episodes, and how many requests wait."""
    from awm_factory.fleet import operate, planning

    files, orchestrator, client = planning.find(name, kind, settings.load(workspace))
    _print(operate.status(files, orchestrator, client), as_json=as_json)


@fleet.command(short_help="End a fleet and remove all of it.")
@name_option
@engine_option
@json_option
@click.pass_obj
def down(workspace: Path | None, name: str, kind: str, as_json: bool) -> None:
    """End a fleet: its containers, networks, volumes, tokens and file are removed. Leases end with it."""
    from awm_factory.fleet import operate, planning

    files, orchestrator, client = planning.find(name, kind, settings.load(workspace))
    removed = operate.down(files, orchestrator, client)
    if as_json:
        print_json(removed)
        return
    kinds = (
        ("container", removed.containers),
        ("network", removed.networks),
        ("volume", removed.volumes),
        ("file", removed.files),
    )
    table(["removed", "name"], [(kind, one) for kind, names in kinds for one in names])


def _print(running: "Running", *, as_json: bool) -> None:
    if as_json:
        print_json(running)
        return
    states = {part.name: part for part in running.parts}
    rows = []
    for scenario in running.status.scenarios:
        for number, one in enumerate(scenario.containers, 1):
            part = states.get(one.host)
            state = "answers" if one.accepting else "silent"
            rows.append(
                [
                    scenario.env_id,
                    str(number),
                    f"{one.host}:8001",
                    f"{one.episodes} of {one.capacity}",
                    f"{state}, {part.restarts} restarts" if part and part.restarts else state,
                ]
            )
        if not scenario.containers:
            rows.append([scenario.env_id, "", "", "", "no container answers"])
    table(["environment", "replica", "address in the network", "episodes", "state"], rows)
    said = running.status
    stdout().print(
        f"\nlease service  {running.url}\ntoken          {running.token_file}\n"
        f"leases         {said.leases}, {said.episodes} of {said.capacity} episodes in use, {said.waiting} requests wait",
        soft_wrap=True,
    )
