"""Rendering a build context: what ships and what must not, and that its digest speaks of all of it."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from awm_factory.errors import BundleError
from awm_factory.ids import env_id
from awm_factory.images.base import BaseImage
from awm_factory.images.context import Context, read_files
from awm_factory.images.render import quoted, render
from bee_yard import certified

BASE = BaseImage(
    reference="awm/base:00112233445566aa",
    image_id="sha256:" + "a" * 64,
    platform="linux/amd64",
    packages={"fastapi": "0.1", "mcp": "1.26.0"},
)


def test_only_tasks_that_the_certificate_lets_ship_are_inside(tmp_path: Path) -> None:
    context = render(certified(), BASE, tmp_path)
    tasks = [json.loads(line) for line in (context.directory / "env/tasks.jsonl").read_text().splitlines()]
    assert [task["task_id"] for task in tasks] == [0, 2]
    assert sorted(path.name for path in (context.directory / "env/verifiers").iterdir()) == ["0.code.py", "2.code.py"]
    assert json.loads((context.directory / "env/certificate.json").read_text())["tasks"][1]["reason"] == "unsound"


def test_neither_solutions_nor_imported_records_are_anywhere_in_the_context(tmp_path: Path) -> None:
    context = render(certified(), BASE, tmp_path)
    content = b"\0".join(read_files(context.directory).values())
    assert b"secret_answer" not in content
    assert b"imported as it came" not in content
    assert (context.directory / ".dockerignore").read_text() == "*\n!env\n"


def test_the_folder_has_what_openenv_looks_for(tmp_path: Path) -> None:
    directory = render(certified(), BASE, tmp_path).directory
    assert "name: bee_yard\n" in (directory / "openenv.yaml").read_text()
    project = tomllib.loads((directory / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"server": "server.app:main"}
    locked = tomllib.loads((directory / "uv.lock").read_text())["package"]
    assert [package["name"] for package in locked] == [project["name"]]
    compile((directory / "server/app.py").read_text(), "app.py", "exec")
    plan = json.loads((directory / "validation/runtime.json").read_text())
    assert [action["tool_name"] for action in plan["actions"]] == ["submit"]


def test_every_package_of_the_base_image_is_listed_with_its_version(tmp_path: Path) -> None:
    context = render(certified(), BASE, tmp_path)
    assert json.loads((context.directory / "env/packages.json").read_text()) == BASE.packages


def test_the_labels_tell_what_the_image_is(tmp_path: Path) -> None:
    described = {"description": "Hives and\n their keepers. " + "Honey. " * 99}
    bundle = certified(manifest=certified().manifest.model_copy(update=described))
    text = (render(bundle, BASE, tmp_path).directory / "Dockerfile").read_text()
    labels = dict(re.findall(r'([a-z0-9._]+)="((?:[^"\\]|\\.)*)"', text))
    assert labels["org.opencontainers.image.title"] == "Bee yard"
    description = labels["org.opencontainers.image.description"]
    assert description.startswith("Hives and their keepers. Honey.")
    assert description.endswith("Honey. …")
    assert 290 < len(description) <= 300
    assert labels["awm.env_id"] == "bee_yard"
    assert labels["awm.bundle_digest"] == bundle.digest()
    assert labels["awm.tasks"] == "2"
    assert labels["awm.origin"] == "handwritten"
    assert labels["awm.base"] == BASE.reference
    certificate = json.loads(labels["awm.certificate"].replace('\\"', '"'))
    assert (certificate["passed"], certificate["gates"], certificate["tasks"]) == (True, {"schema": "passed"}, [0, 2])
    assert certificate["near_misses"] == [0, 0]
    assert text.splitlines()[1] == f"FROM {BASE.reference}"


def test_the_same_bundle_and_base_render_to_the_same_digest_and_leave_the_folder_alone(tmp_path: Path) -> None:
    first = render(certified(), BASE, tmp_path)
    before = (first.directory / "Dockerfile").stat()
    again = render(certified(), BASE, tmp_path)
    elsewhere = render(certified(), BASE, tmp_path / "other")
    assert first == again
    assert first.digest == elsewhere.digest
    assert re.fullmatch(r"[0-9a-f]{16}", first.tag)
    assert first.reference == f"awm/bee_yard:{first.tag}"
    assert (first.directory / "Dockerfile").stat().st_ino == before.st_ino


@pytest.mark.parametrize(
    "changes",
    [
        {"app_code": "app = 1\n"},
        {"seed_db": b"SQLite format 3\0other"},
        {"shipped": (0,)},
        {"scenario": "Bee yards"},
    ],
)
def test_whatever_changes_inside_changes_the_digest(changes: dict[str, Any], tmp_path: Path) -> None:
    assert render(certified(), BASE, tmp_path).digest != render(certified(**changes), BASE, tmp_path).digest


def test_another_base_image_changes_the_digest(tmp_path: Path) -> None:
    other = BaseImage(reference="awm/base:ffffffffffffffff", image_id="x", platform=BASE.platform, packages=BASE.packages)
    assert render(certified(), BASE, tmp_path).digest != render(certified(), other, tmp_path).digest


def test_a_folder_of_an_earlier_rendering_is_replaced_as_a_whole(tmp_path: Path) -> None:
    context = render(certified(), BASE, tmp_path)
    (context.directory / "env/solutions.json").write_text("left over")
    render(certified(shipped=(2,)), BASE, tmp_path)
    assert not (context.directory / "env/solutions.json").exists()
    assert not (context.directory / "env/verifiers/0.code.py").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["bee_yard"]


def test_an_interrupted_rendering_leaves_the_earlier_one_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = render(certified(), BASE, tmp_path)
    before = read_files(context.directory)
    write = Path.write_bytes

    def interrupted(path: Path, data: bytes) -> int:
        if path.name == "seed.sql":
            raise KeyboardInterrupt
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        render(certified(app_code="app = 2\n"), BASE, tmp_path)
    assert read_files(context.directory) == before
    assert [path.name for path in tmp_path.iterdir()] == ["bee_yard"]


def test_a_bundle_without_certificate_or_database_is_not_rendered(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"no certificate\.json.*awm-factory check bee_yard"):
        render(certified().with_(certificate=None), BASE, tmp_path)
    with pytest.raises(BundleError, match=r"no seed\.db"):
        render(certified().with_(seed_db=None), BASE, tmp_path)


def test_a_certificate_of_an_earlier_bundle_lets_nothing_ship(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="another bundle"):
        render(certified().with_(app_code="app = evil\n"), BASE, tmp_path)


def test_a_name_from_a_model_stays_one_word_of_the_dockerfile() -> None:
    assert quoted('Mugs "R" Us\nRUN $(id) \\ \ud83d') == '"Mugs \\"R\\" Us RUN \\$(id) \\\\ ?"'


@pytest.mark.parametrize(
    "name", ["Coffee/Tea", "Coffee Tea", "茶屋", "$(touch x)", "-dash", "UPPER lower", "y" * 200, "dots..and__more", "A & B"]
)
def test_every_scenario_name_gives_an_image_reference_that_registries_accept(name: str) -> None:
    component = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
    reference = Context(env_id=env_id(name), directory=Path(), digest="0123456789abcdef" * 4).reference
    assert re.fullmatch(rf"awm/{component}:[0-9a-f]{{16}}", reference)
    assert len(reference) < 128
