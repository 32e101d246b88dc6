"""AWM's run directory of JSON lines, both ways. The format, and what becomes of each field: docs/awm-format.md."""

from awm_factory.awm_format.index import ARTIFACTS, VERIFIER_FILES, Progress
from awm_factory.awm_format.reading import draft_bundle, read_run
from awm_factory.awm_format.records import AwmRecordSet, BrokenScenario
from awm_factory.awm_format.source import came_from
from awm_factory.awm_format.writing import ExportRow, write_run

__all__ = [
    "ARTIFACTS",
    "VERIFIER_FILES",
    "AwmRecordSet",
    "BrokenScenario",
    "ExportRow",
    "Progress",
    "came_from",
    "draft_bundle",
    "read_run",
    "write_run",
]
