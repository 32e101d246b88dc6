"""What every command begins with: where the workspace is, and which environments are meant."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from awm_factory.errors import UsageError

if TYPE_CHECKING:
    from awm_factory.catalog import Catalog
    from awm_factory.config import Config


def load(workspace: Path | None, **options: Any) -> "Config":
    """Settings from the environment and the command line; the workspace is looked for where neither names it."""
    from awm_factory import resources
    from awm_factory.catalog import find_workspace
    from awm_factory.config import Config

    config = Config.load(workspace=workspace, **options)
    given = config.workspace if "workspace" in config.model_fields_set else None
    return config.model_copy(update={"workspace": find_workspace(given, Path.cwd(), resources.checkout())})


def chosen(names: Sequence[str], catalog: "Catalog") -> list[str]:
    """The environments named, by env_id or by scenario name, or all there are. Raises UsageError for one there is not."""
    from awm_factory.ids import env_id, is_env_id

    known = catalog.env_ids()
    if not known:
        raise UsageError(f"{catalog.registry} holds no environments; `awm-factory import RUN_DIR` brings some in")
    if not names:
        return known
    wanted = list(dict.fromkeys(name if is_env_id(name) else env_id(name) for name in names))
    missing = [name for name in wanted if name not in known]
    if missing:
        raise UsageError(f"{catalog.registry} has no environment {', '.join(missing)}; `awm-factory list` shows those there are")
    return wanted
