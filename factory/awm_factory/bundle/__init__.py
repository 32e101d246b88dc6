"""One environment's directory: read, write, digest."""

from awm_factory.bundle.disk import write_file
from awm_factory.bundle.model import Bundle, dump_json
from awm_factory.bundle.records import MODES, Author, Difficulty, Manifest, Mending, Origin, Solution, Task, Variant
from awm_factory.bundle.sql import canonical, finished, join_statements, split_statements, terminate
from awm_factory.bundle.tables import created_table, indexed_table, table_of, written_table

__all__ = [
    "MODES",
    "Author",
    "Bundle",
    "Difficulty",
    "Manifest",
    "Mending",
    "Origin",
    "Solution",
    "Task",
    "Variant",
    "canonical",
    "created_table",
    "dump_json",
    "finished",
    "indexed_table",
    "join_statements",
    "split_statements",
    "table_of",
    "terminate",
    "write_file",
    "written_table",
]
