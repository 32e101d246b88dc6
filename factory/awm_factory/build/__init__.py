"""The main job: import -> check -> certify -> render -> build -> smoke -> catalogue."""

from awm_factory.build.importing import export_run, import_run
from awm_factory.build.pipeline import Knobs, build_envs, check_envs
from awm_factory.build.report import BatchReport, Progress, Row, Silent
from awm_factory.build.workshop import Workshop, open_sandbox, open_workshop

__all__ = [
    "BatchReport",
    "Knobs",
    "Progress",
    "Row",
    "Silent",
    "Workshop",
    "build_envs",
    "check_envs",
    "export_run",
    "import_run",
    "open_sandbox",
    "open_workshop",
]
