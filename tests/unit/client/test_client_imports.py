"""A trainer imports the client into an environment of its own, which must not be burdened with the factory's packages."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

ROOT = Path(__file__).parents[3]
IMPORT = "import sys, awm_factory.client, awm_factory.client.sync, awm_factory.client.wire\n"


def test_importing_the_client_loads_neither_docker_openai_jinja2_nor_testcontainers() -> None:
    assert loaded() & {"docker", "openai", "jinja2", "testcontainers", "click", "httpx", "mcp", "requests"} == set()


def test_importing_the_client_needs_only_what_a_bare_installation_has() -> None:
    bare = distributions(core())
    others = {name for name, owners in packages_distributions().items() if not bare & set(map(canonical, owners))}
    hidden = sorted(others - {"awm_factory", "awm_runtime"} - set(sys.stdlib_module_names))
    assert {"httpx", "click", "docker", "mcp", "rich"} <= set(hidden)
    script = f"import sys\nsys.modules.update(dict.fromkeys({hidden!r}))\n" + IMPORT
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_bare_installation_says_what_the_command_lacks() -> None:
    script = "import sys; sys.modules['click'] = None\nfrom awm_factory.__main__ import main\nmain()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'awm-factory[factory]'" in done.stderr


def test_from_image_without_dockers_sdk_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['docker'] = None\n"
        "from awm_factory.client import AwmEnv, UsageError\n"
        "try: AwmEnv.from_image('awm/any')\n"
        "except UsageError as error: print(error)\n"
    )
    assert "awm-factory[docker]" in subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout


def loaded() -> set[str]:
    script = IMPORT + "print(*{name.split('.')[0] for name in sys.modules})"
    return set(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split())


def core() -> list[str]:
    return list(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])


def distributions(requirements: list[str]) -> set[str]:
    """Those named, and what they need in turn."""
    found: set[str] = set()
    waiting = list(requirements)
    while waiting:
        line = waiting.pop()
        name = re.match(r"[A-Za-z0-9._-]+", line)
        assert name
        if "extra ==" not in line and (plain := canonical(name[0])) not in found:
            try:
                waiting += requires(name[0]) or []
            except PackageNotFoundError:
                continue  # for another platform or Python
            found.add(plain)
    return found


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()
