"""The environments that docs/ shows are what the offline author writes today."""

import importlib.util
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[4] / "docs"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_examples", DOCS / "generate_examples.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_examples_are_what_the_author_writes() -> None:
    module = generator()
    written = {path.relative_to(module.FOLDER).as_posix(): path for path in module.FOLDER.rglob("*") if path.is_file()}
    made = module.files()
    assert written.keys() == made.keys(), "run .venv/bin/python docs/generate_examples.py"
    stale = [path for path, text in made.items() if written[path].read_text(encoding="utf-8") != text]
    assert stale == [], "run .venv/bin/python docs/generate_examples.py"
