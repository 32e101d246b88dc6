import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINTER = Path(sys.executable).with_name("lint-imports")


def test_modules_import_only_what_the_design_lets_them() -> None:
    done = subprocess.run([LINTER, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_an_import_from_a_later_group_is_found(tmp_path: Path) -> None:
    """The same contracts over a house with one wall broken."""
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    for name, text in {
        "awm_factory/errors.py": "import awm_factory.bundle",
        "awm_factory/bundle.py": "import awm_runtime.main",
        **{f"awm_factory/{name}.py": "" for name in ("ids", "problems", "resources", "syntax", "config", "certificate")},
        "awm_runtime/contract.py": "",
        "awm_runtime/main.py": "import awm_factory.errors",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text + "\n")
    done = subprocess.run([LINTER, "--no-cache"], cwd=tmp_path, capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1, done.stdout
    assert "0 kept, 3 broken" in done.stdout, done.stdout
