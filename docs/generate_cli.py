"""Writes docs/cli.md from what the commands say of themselves: `.venv/bin/python docs/generate_cli.py`."""

from pathlib import Path
from typing import Final

import click

from awm_factory.cli import cli

PAGE: Final = Path(__file__).with_name("cli.md")
WIDTH: Final = 100

HEAD: Final = """# The command line

Generated from `--help` by `docs/generate_cli.py`; a test holds it up to date.

Results go to standard output, progress and errors to standard error. `--json` prints a result for programs. Settings that
every command shares come from the environment; [setup.md](setup.md) lists them.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | some environments of a batch failed; the others are done |
| 2 | the command line or a setting makes no sense |
| 3 | a run, a bundle or the workspace can't be read |
| 4 | no Docker engine, or the sandbox broke |
| 5 | an image could not be built, or failed its smoke test |
| 6 | a registry refused an image |
| 130 | interrupted; what was running has been removed |
"""


def page() -> str:
    parts = [HEAD, _block([])]
    for name in sorted(cli.commands):
        parts += [f"## {name}\n", _block([name])]
    return "\n".join(parts)


def _block(path: list[str]) -> str:
    command: click.Command = cli
    context = click.Context(
        cli, info_name="awm-factory", **cli.context_settings | {"max_content_width": WIDTH, "terminal_width": WIDTH}
    )
    for name in path:
        command = cli.commands[name]
        context = click.Context(command, info_name=name, parent=context)
    return f"```\n{command.get_help(context)}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
