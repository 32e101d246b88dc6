"""Where data files live: in the wheel's `_data`, or in the checkout that an editable install points to.

No other module builds a path from `__file__`.
"""

import importlib.util
from functools import cache
from pathlib import Path
from typing import Final

from awm_factory.errors import ConfigError

_PACKAGE: Final = Path(__file__).resolve().parent
_DATA: Final = _PACKAGE / "_data"


@cache
def checkout() -> Path | None:
    """Root of the checkout this code runs from; None where it was installed from a wheel."""
    root = _PACKAGE.parent.parent
    return root if not _DATA.is_dir() and (root / "pyproject.toml").is_file() else None


def templates() -> Path:
    """Jinja2 templates: prompts/, image/, compose/."""
    return _directory("templates")


def images() -> Path:
    """Hand-written image contexts: base/, lease/."""
    return _directory("images")


def compose() -> Path:
    """Hand-written compose files."""
    return _directory("compose")


def package() -> Path:
    """The sources of `awm_factory`, a part of which the lease service's image bakes in."""
    return _PACKAGE


def runtime_package() -> Path:
    """The sources of `awm_runtime`, which the base image bakes in; found without importing it."""
    spec = importlib.util.find_spec("awm_runtime")
    if spec is None or spec.origin is None:
        raise ConfigError("the package awm_runtime is missing from this installation; install awm-factory again")
    return Path(spec.origin).resolve().parent


def _directory(name: str) -> Path:
    root = _DATA if _DATA.is_dir() else _PACKAGE.parent.parent
    path = root / name
    if not path.is_dir():
        raise ConfigError(f"{path} is missing from this installation; install awm-factory again")
    return path
