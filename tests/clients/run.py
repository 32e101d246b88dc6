"""Stock clients, each in its own venv or Node folder, against one environment image. `make test-clients` runs it.

    python tests/clients/run.py [--image awm/<env_id> --folder images/<env_id>] [--env-dir DIR] [--only NAME …]

Without --image a small environment is rendered and built on the base image, and removed afterwards; with --env-dir no engine is
needed, and the runtime of this checkout serves that bundle. Every script gets the URL of port 8000 and the name of a reading
tool, and where there is an image, its name and the folder it was built from; it fails loudly.
"""

import argparse
import json
import secrets
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent.parent
CACHE: Final = ROOT / ".build" / "clients"
UV: Final = str(Path(sys.executable).with_name("uv"))
START_LIMIT: Final = 120
"""Seconds until the container answers: two on an idle machine."""
LIMIT: Final = 600
"""Seconds for one client; OpenEnv's import everything they have, which takes a minute where eight processes share a core."""


@dataclass(frozen=True)
class Client:
    name: str
    packages: tuple[str, ...]
    script: str

    @property
    def node(self) -> bool:
        return self.script.endswith(".mjs")


CLIENTS: Final = (
    Client("mcp-1.26", ("mcp==1.26.0",), "mcp_v1.py"),
    Client("mcp-1.30", ("mcp==1.30.0",), "mcp_v1.py"),
    Client("mcp-2", ("mcp>=2,<3",), "mcp_v2.py"),
    Client("fastmcp", ("fastmcp",), "fastmcp_client.py"),
    Client("mcp-agent", ("mcp-agent", "mcp<2"), "mcp_agent_client.py"),
    Client("openenv-core-0.3", ("openenv-core==0.3.0",), "openenv_client.py"),
    Client("openenv-0.10", ("openenv==0.10.0",), "openenv_client.py"),
    Client("typescript", ("@modelcontextprotocol/sdk",), "typescript.mjs"),
)


def prepared(client: Client) -> list[str]:
    """The command that runs a client's script, installed first where it is not yet."""
    folder = CACHE / client.name
    done = folder / ".installed"
    wanted = "\n".join(client.packages)
    if not done.is_file() or done.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if client.node:
            subprocess.run(["npm", "install", "--silent", "--prefix", str(folder), *client.packages], check=True)
        else:
            subprocess.run([UV, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
            install = [UV, "pip", "install", "--quiet", "--compile-bytecode", "--python", str(folder)]
            subprocess.run([*install, *client.packages], check=True)
        done.write_text(wanted)
    if client.node:
        shutil.copy(HERE / client.script, folder / client.script)  # Node looks for packages beside the script
        return ["node", str(folder / client.script)]
    return [str(folder / "bin" / "python"), str(HERE / client.script)]


@dataclass(frozen=True)
class Target:
    url: str
    """Of a running environment's port 8000."""
    image: str = ""
    folder: str = ""
    """The rendered context of the image."""


@contextmanager
def served(image: str, folder: Path | None, directory: Path | None) -> Iterator[Target]:
    sys.path.insert(0, str(ROOT / "tests"))
    if directory is not None:
        from runtime_support import serve

        with serve(directory) as running:
            yield Target(f"http://127.0.0.1:{running.port}")
        return
    with ExitStack() as stack:
        if not image:
            image, folder = stack.enter_context(built())
        options = [
            "--read-only",
            "--tmpfs",
            "/tmp",
            "--cap-drop",
            "ALL",
            "--security-opt",
            "no-new-privileges",
            "--user",
            "65532",
        ]
        run = ["docker", "run", "--detach", "--rm", "--pull", "never", "--publish", "127.0.0.1::8000"]
        container = output([*run, "--label", "awm.owner=test-clients", *options, "--pids-limit", "256", image])
        stack.callback(subprocess.run, ["docker", "stop", "--time", "2", container], check=False, capture_output=True)
        port = output(["docker", "port", container, "8000/tcp"]).splitlines()[0].rpartition(":")[2]
        url = f"http://127.0.0.1:{port}"
        try:
            until_healthy(url)
        except TimeoutError:
            subprocess.run(["docker", "logs", container], check=False)
            raise
        yield Target(url, image, str(folder or ""))


@contextmanager
def built() -> Iterator[tuple[str, Path]]:
    """The tests' library as an image, and the folder it was rendered into."""
    from awm_factory.bundle import Bundle, Manifest, Task
    from awm_factory.certificate import Certificate, Subject, TaskCertificate
    from awm_factory.config import Config
    from awm_factory.images.base import ensure_base
    from awm_factory.images.build import build
    from awm_factory.images.engine import ensure_engine
    from awm_factory.images.render import render
    from runtime_support import COMPLETE_IF_LENT, LIBRARY_APP, LIBRARY_SQL, database

    config = Config.load()
    engine = ensure_engine(config)
    base = ensure_base(engine, config)
    bundle = Bundle(
        manifest=Manifest(env_id="lending_library", scenario="Lending library", origin="handwritten"),
        schema_sql=[],
        seed_sql=[],
        app_code=LIBRARY_APP,
        seed_db=database(LIBRARY_SQL),
        tasks=[Task(task_id=0, instruction="Lend the Kite book to Ada.")],
        verifiers={(0, "code"): COMPLETE_IF_LENT},
    )
    subject = Subject(bundle_digest=bundle.digest(), solutions_digest="", base=base.tag, gates={}, seed=0, budget={})
    tasks = [TaskCertificate(task_id=0, shipped=True, gates={})]
    certificate = Certificate(subject=subject, gates={}, problems=[], tasks=tasks)
    with tempfile.TemporaryDirectory() as folder:
        context = render(bundle.with_(certificate=certificate), base, Path(folder))
        name = f"awm-test-clients:{secrets.token_hex(4)}"
        image = build(engine.client, context, base.reference, Path(folder) / "logs")
        engine.client.images.get(image.image_id).tag(name)
        try:
            yield name, context.directory
        finally:
            engine.client.images.remove(name, force=True)


def output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def until_healthy(url: str) -> None:
    deadline = time.monotonic() + START_LIMIT
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=10):
                return
        except OSError:
            select.select([], [], [], 0.1)  # until it listens there is nothing to wait on but its port
    raise TimeoutError(f"{url} did not become healthy within {START_LIMIT} s")


def a_reading_tool(url: str) -> str:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with urllib.request.urlopen(
        urllib.request.Request(f"{url}/mcp", json.dumps(message).encode(), method="POST"), timeout=30
    ) as answer:
        tools: list[dict[str, Any]] = json.load(answer)["result"]["tools"]
    return next(tool["name"] for tool in tools if not tool["inputSchema"].get("required"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image", default="")
    parser.add_argument("--folder", type=Path, help="the rendered context of --image, for openenv's validator")
    parser.add_argument("--env-dir", type=Path)
    parser.add_argument("--only", nargs="*", choices=[client.name for client in CLIENTS])
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the container goes, too
    failed = []
    if given.image and given.folder is None:
        parser.error("--image needs --folder, what it was built from: images/<env_id>")
    with served(given.image, given.folder, given.env_dir) as target:
        tool = a_reading_tool(target.url)
        for client in CLIENTS:
            if given.only and client.name not in given.only:
                continue
            try:
                command = prepared(client)
                more = [target.image, target.folder] if target.image and client.script == "openenv_client.py" else []
                run = subprocess.run(
                    [*command, target.url, tool, *more], capture_output=True, text=True, timeout=LIMIT, check=False
                )
                fine = run.returncode == 0
                said = run.stdout.strip().splitlines()[-1] if fine else run.stderr[-1500:]
            except (OSError, subprocess.SubprocessError) as error:
                fine, said = False, str(error)
            print(f"{'ok  ' if fine else 'FAIL'} {client.name:<18} {said}", flush=True)
            if not fine:
                failed.append(client.name)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
