"""One environment's directory: read, write, digest."""

from awm_factory.bundle.disk import write_file
from awm_factory.bundle.model import MODES, Bundle, Manifest, Mending, Origin, Solution, Task, dump_json
from awm_factory.bundle.sql import canonical, finished, join_statements, split_statements, terminate

__all__ = [
    "MODES",
    "Bundle",
    "Manifest",
    "Mending",
    "Origin",
    "Solution",
    "Task",
    "canonical",
    "dump_json",
    "finished",
    "join_statements",
    "split_statements",
    "terminate",
    "write_file",
]
