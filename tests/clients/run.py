"""Stock clients, each in its own venv or Node folder, against one environment image. `make test-clients` runs it.

    python tests/clients/run.py [--image awm/<env_id>] [--env-dir DIR] [--only NAME …]

Without --image the newest environment image of this engine is taken; with --env-dir no engine is needed, and the runtime of this
checkout serves that bundle. Every script gets the URL of port 8000 and the name of a reading tool, and fails loudly.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent.parent
CACHE: Final = ROOT / ".build" / "clients"


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
            venv.create(folder, with_pip=True)
            subprocess.run(
                [str(folder / "bin" / "pip"), "install", "-qq", "--disable-pip-version-check", *client.packages], check=True
            )
        done.write_text(wanted)
    if client.node:
        shutil.copy(HERE / client.script, folder / client.script)  # Node looks for packages beside the script
        return ["node", str(folder / client.script)]
    return [str(folder / "bin" / "python"), str(HERE / client.script)]


@contextmanager
def served(image: str | None, directory: Path | None) -> Iterator[str]:
    """The URL of a running environment's port 8000."""
    if directory is not None:
        sys.path.insert(0, str(ROOT / "tests"))
        from runtime_support import serve

        with serve(directory) as running:
            yield f"http://127.0.0.1:{running.port}"
        return
    name = image or newest_image()
    options = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", "65532"]
    command = [
        "docker",
        "run",
        "--detach",
        "--rm",
        "--pull",
        "never",
        "--publish",
        "127.0.0.1::8000",
        "--label",
        "awm.owner=test-clients",
    ]
    container = output([*command, *options, "--pids-limit", "256", name])
    try:
        port = output(["docker", "port", container, "8000/tcp"]).splitlines()[0].rpartition(":")[2]
        url = f"http://127.0.0.1:{port}"
        until_healthy(url)
        yield url
    finally:
        subprocess.run(["docker", "stop", "--time", "2", container], check=False, capture_output=True)


def newest_image() -> str:
    listed = output(["docker", "images", "--filter", "label=awm.env_id", "--format", "{{.ID}}"]).splitlines()
    if not listed:
        sys.exit("no environment image on this engine; run make build-envs first, or name a bundle by --env-dir")
    return listed[0]


def output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def until_healthy(url: str) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):
                return
        except OSError:
            continue
    raise TimeoutError(f"{url} did not become healthy within 30 s")


def a_reading_tool(url: str) -> str:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with urllib.request.urlopen(
        urllib.request.Request(f"{url}/mcp", json.dumps(message).encode(), method="POST"), timeout=30
    ) as answer:
        tools: list[dict[str, Any]] = json.load(answer)["result"]["tools"]
    return next(tool["name"] for tool in tools if not tool["inputSchema"].get("required"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--image")
    parser.add_argument("--env-dir", type=Path)
    parser.add_argument("--only", nargs="*", choices=[client.name for client in CLIENTS])
    given = parser.parse_args()
    failed = []
    with served(given.image, given.env_dir) as url:
        tool = a_reading_tool(url)
        for client in CLIENTS:
            if given.only and client.name not in given.only:
                continue
            try:
                command = prepared(client)
                run = subprocess.run([*command, url, tool], capture_output=True, text=True, timeout=180, check=False)
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
