"""A certified bundle as a build context: images/<env_id>/ with a Dockerfile and the files that ship.

Only tasks that the certificate lets ship are inside, with their verifiers. Solutions and imported records never are:
an agent that could read them would have the answers.
"""

import json
import re
import shutil
import tempfile
import textwrap
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from awm_factory import resources
from awm_factory.bundle import Bundle
from awm_factory.certificate import Certificate
from awm_factory.errors import BundleError
from awm_factory.images.base import BaseImage
from awm_factory.images.context import Context, digest, read_files

FOLDER: Final = "env"
"""Where the context holds what becomes /env."""
OPENENV: Final = ("openenv.yaml", "pyproject.toml", "uv.lock", "server/app.py", "validation/runtime.json")
"""What makes the context a folder that OpenEnv's tools take; none of it goes into the image."""
DESCRIPTION: Final = 300
"""Characters of the scenario's description in a label; a registry shows a line or two."""


def render(bundle: Bundle, base: BaseImage, images_dir: Path) -> Context:
    """Write images_dir/<env_id>/, as a whole or not at all, and leave it alone where it holds the same already.

    Raises BundleError for a bundle without a database or with a certificate that speaks of something else.
    """
    files = rendered(bundle, base)
    directory = images_dir / bundle.env_id
    if not directory.is_dir() or read_files(directory) != files:
        _replace(directory, files)
    return Context(env_id=bundle.env_id, directory=directory, digest=digest(files))


def rendered(bundle: Bundle, base: BaseImage) -> dict[str, bytes]:
    """Every file of the context, by its path in it."""
    certificate, seed_db = _ready(bundle)
    ships = set(certificate.shipped_tasks)
    shipped = bundle.with_(
        tasks=[task for task in bundle.tasks if task.task_id in ships],
        verifiers={key: code for key, code in bundle.verifiers.items() if key[0] in ships},
    )
    content = shipped.files() | {
        "seed.db": seed_db,
        "certificate.json": _json(certificate.model_dump(mode="json")),
        "packages.json": _json(base.packages),
    }
    values = {"base": base.reference, "labels": labels(bundle, certificate, base)}
    return {f"{FOLDER}/{name}": data for name, data in content.items()} | {
        "Dockerfile": _template("Dockerfile.j2", values),
        ".dockerignore": _template("dockerignore.j2", values),
        **{name: _template(f"openenv/{name}.j2", {"env_id": bundle.env_id}) for name in OPENENV},
    }


def labels(bundle: Bundle, certificate: Certificate, base: BaseImage) -> dict[str, str]:
    return {
        "org.opencontainers.image.title": bundle.manifest.scenario,
        "org.opencontainers.image.description": textwrap.shorten(bundle.manifest.description, DESCRIPTION, placeholder=" …"),
        "awm.env_id": bundle.env_id,
        "awm.bundle_digest": bundle.digest(),
        "awm.tasks": str(len(certificate.shipped_tasks)),
        "awm.certificate": json.dumps(certificate.summary(), separators=(",", ":"), sort_keys=True),
        "awm.origin": bundle.manifest.origin,
        "awm.base": base.reference,
    }


def _ready(bundle: Bundle) -> tuple[Certificate, bytes]:
    advice = f"run `awm-factory check {bundle.env_id}`"
    if bundle.certificate is None or bundle.seed_db is None:
        missing = "certificate.json" if bundle.certificate is None else "seed.db"
        raise BundleError(f"{bundle.env_id} has no {missing}, so nothing says what may ship; {advice}")
    if bundle.certificate.subject.bundle_digest != bundle.digest():
        raise BundleError(f"the certificate of {bundle.env_id} speaks of another bundle than this one; {advice}")
    return bundle.certificate, bundle.seed_db


def _template(name: str, values: dict[str, Any]) -> bytes:
    environment = Environment(
        loader=FileSystemLoader(resources.templates() / "image"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["quoted"] = quoted
    return environment.get_template(name).render(values).encode()


def quoted(value: str) -> str:
    """As a double-quoted word of a Dockerfile that stands for exactly this text, on one line.

    A scenario's name comes from a model: `$(id)`, quotes and line ends in it must reach the label, not the parser.
    """
    line = " ".join(value.encode(errors="replace").decode().split())
    return '"' + re.sub(r'(["\\$])', r"\\\1", line) + '"'


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def _replace(directory: Path, files: dict[str, bytes]) -> None:
    directory.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        new = temporary / "new"
        for name, content in files.items():
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        if directory.exists():
            directory.rename(temporary / "old")
        new.rename(directory)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
