import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What `make` looks at, without a .venv."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def make(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "AWM_", "MFLAGS"))} | environ
    return subprocess.run(["make", *arguments], cwd=folder, env=env, capture_output=True, text=True)


def python(folder: Path, name: str, script: str) -> Path:
    """A program in the place of Python that answers as the script says."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_help_names_every_target() -> None:
    said = make(ROOT, "help").stdout
    for target in ("engine", "base", "build-envs", "test", "test-unit", "lint", "types", "lock", "push", "clean"):
        assert f"\n{target} " in f"\n{said}"


def test_a_python_that_is_too_old_is_refused_with_what_to_install(clone: Path) -> None:
    old = python(clone, "old", "exit 1")
    done = make(clone, ".venv", f"PYTHON={old}")
    assert done.returncode != 0
    assert f"None of these is a Python >= 3.11 with venv: {old}." in done.stderr
    assert "brew install python@3.13" in done.stderr
    assert not (clone / ".venv").exists()


def test_the_first_suitable_python_is_taken(clone: Path) -> None:
    """pyenv's shims exist for versions that are not selected, so a name on PATH says nothing."""
    python(clone, "python3", "exit 1")
    python(clone, "python3.13", f'echo "$@" >> {clone}/asked; case "$1" in -m) exit 3;; esac')
    done = make(clone, ".venv", PATH=f"{clone}:/usr/bin:/bin")
    assert done.returncode != 0  # there is no venv after it
    assert (clone / "asked").read_text().splitlines()[-1] == "-m venv .venv"


def test_variables_reach_the_command(clone: Path) -> None:
    arguments = ("SOURCE=my run", "JOBS=3", "ALLOW_PROBLEMS=1", "ENVS=a b", "BASE_OS=debian", "PLATFORM=arm64")
    planned = make(clone, "--dry-run", "build-envs", *arguments).stdout
    assert ".venv/bin/awm-factory build --jobs 3 --source 'my run' --allow-problems a b" in " ".join(planned.split())
    shown = make(clone, "--print-data-base", "--dry-run", "help", *arguments).stdout
    assert "AWM_BASE_OS := debian" in shown
    assert "AWM_PLATFORM := arm64" in shown


def test_no_problems_are_allowed_unless_asked_for(clone: Path) -> None:
    for arguments in ((), ("ALLOW_PROBLEMS=0",), ("ALLOW_PROBLEMS=",)):
        assert "--allow-problems" not in make(clone, "--dry-run", "build-envs", *arguments).stdout


def test_a_push_needs_to_know_where_to(clone: Path) -> None:
    (clone / ".venv" / "bin").mkdir(parents=True)
    python(clone / ".venv" / "bin", "python", "exit 0")
    done = make(clone, "push")
    assert done.returncode != 0
    assert "make push REGISTRY=ghcr.io/acme" in done.stderr


@pytest.mark.parametrize(("arguments", "count"), [((), 10), (("ENVS=all",), 100), (("ENVS=a b",), 0), (("SOURCE=run",), 0)])
def test_a_starter_set_is_written_first_where_nothing_is_named_and_by_no_model_that_costs(
    clone: Path, arguments: tuple[str, ...], count: int
) -> None:
    planned = " ".join(make(clone, "--dry-run", "build-envs", *arguments).stdout.split())
    assert (f"AWM_SYN_OVERRIDE_MODEL= .venv/bin/awm-factory synth --missing --count {count}" in planned) == bool(count)
    assert ".venv/bin/awm-factory build" in planned and " all" not in planned.partition("build")[2].split("&&")[0]
