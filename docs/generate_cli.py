"""Writes docs/cli.md from what the commands say of themselves: `.venv/bin/python docs/generate_cli.py`."""

from collections.abc import Iterator
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
| 7 | the database of runs can't be used |
| 8 | a language model gave nothing that can be used |
| 9 | the next call might cost more than the budget leaves |
| 10 | an episode failed by the fault of policy, environment or infrastructure |
| 130 | interrupted; what was running has been removed |
"""


def page() -> str:
    return "\n".join([HEAD, *(_section(path) for path in paths())])


def paths(command: click.Command = cli, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command by the words that call it: none for `awm-factory` itself, `("runs", "list")` for one in a group."""
    yield path
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from paths(command.commands[name], (*path, name))


def _section(path: tuple[str, ...]) -> str:
    command: click.Command = cli
    context = click.Context(
        cli, info_name="awm-factory", **cli.context_settings | {"max_content_width": WIDTH, "terminal_width": WIDTH}
    )
    for name in path:
        assert isinstance(command, click.Group)
        command = command.commands[name]
        context = click.Context(command, info_name=name, parent=context)
    title = f"## {' '.join(path)}\n\n" if path else ""
    return f"{title}```\n{command.get_help(context)}\n```\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
