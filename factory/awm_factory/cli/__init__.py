"""The command `awm-factory`: parse, call one function, print. Results go to stdout, progress and errors to stderr.

Commands import what they need when they run, so that `--help` and a mistyped option answer at once.
"""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from awm_factory.cli.certify import audit, certify
from awm_factory.cli.diversity import diversity
from awm_factory.cli.environments import build, check, export, import_, list_, render, smoke
from awm_factory.cli.fleet import fleet
from awm_factory.cli.judge import agreement_, verify
from awm_factory.cli.machine import base, engine, reap
from awm_factory.cli.offline import reseed
from awm_factory.cli.registry import push
from awm_factory.cli.rollout import rollout
from awm_factory.cli.runs import runs
from awm_factory.cli.stub import stub_llm
from awm_factory.cli.synth import synth
from awm_factory.errors import AwmError

INTERRUPTED = 130
"""Exit code of a command that was ended by Ctrl-C, as shells have it."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="awm-factory")
@click.option(
    "--workspace",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that holds registry/ and images/; not given: the current one, else the checkout.",
)
@click.pass_context
def cli(context: click.Context, workspace: Path | None) -> None:
    """Make verified tool-use environments for training agents: one container image each."""
    context.obj = workspace


for command in (
    import_,
    export,
    check,
    certify,
    audit,
    build,
    list_,
    render,
    smoke,
    push,
    engine,
    base,
    reap,
    synth,
    reseed,
    runs,
    stub_llm,
    verify,
    agreement_,
    fleet,
    diversity,
    rollout,
):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Every error ends here, as one message and its exit code. SIGTERM and a closed terminal are cleaned up after like Ctrl-C."""
    for name in ("SIGTERM", "SIGHUP"):
        if number := getattr(signal, name, None):
            signal.signal(number, _as_interrupt)
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    try:
        result = cli.main(args=arguments, prog_name="awm-factory", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted; what was running has been removed", err=True)
        return INTERRUPTED
    except AwmError as error:
        click.echo(f"error: {error}", err=True)
        return error.exit_code
    return result if isinstance(result, int) else 0


def _as_interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
