"""The fleet as a file for `docker compose` or `docker stack deploy`, of one template."""

import re
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from awm_factory import resources
from awm_factory.fleet.model import EngineKind, Fleet

_PORT: Final = re.compile(r"127\.0\.0\.1:(\d+):8081|published: (\d+)")


def rendered(fleet: Fleet, engine: EngineKind, secrets: str) -> bytes:
    """`secrets`: the folder with the tokens, as seen from the file."""
    loader = FileSystemLoader(resources.templates() / "compose")
    environment = Environment(loader=loader, undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
    text = environment.get_template("fleet.yaml.j2").render(fleet=fleet, swarm=engine == "swarm", secrets=secrets)
    return text.encode()


def port_of(document: str) -> int | None:
    """The lease service's port in a file that was rendered before."""
    found = _PORT.search(document)
    return int(found[1] or found[2]) if found else None
