"""OpenEnv's unmodified clients, and its validator: on a URL, on a folder, and starting the image themselves."""

import asyncio
import re
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

INSPECT: Final = ("docker", "image", "inspect", "--format", "{{json .RepoTags}}")
PROMISED: Final = (
    "static.manifest",
    "runtime.startup",
    "runtime.reward_well_formed",
    "runtime.observation_schema",
    "runtime.state_contract",
    "runtime.network_policy",
)
"""All checks that openenv 0.10 has; it skips the others of its policy as not implemented."""


async def main(url: str, tool: str, image: str = "", folder: str = "") -> None:
    async with GenericEnvClient(base_url=url) as env:
        await play(env, tool)
    for production in (False, True):
        client = MCPToolClient(base_url=url)
        client.use_production_mode = production
        async with client as tools:
            names = [listed.name for listed in await tools.list_tools()]
            assert tool in names
            assert "submit" not in names
            assert await tools.call_tool(tool) is not None
    await asyncio.to_thread(validate, "--url", url)
    if image:
        if find_spec("openenv.validation"):
            await asyncio.to_thread(validate, "--level", "static", "--skip-build", folder)
            await asyncio.to_thread(validate_image, folder)
        else:
            await asyncio.to_thread(validate, folder)
        slowest = await from_image(image, tool)
        print(f"{len(names)} tools, validated, ended {slowest:.1f} s after docker stop at most")
    else:
        print(f"{len(names)} tools, validated")


async def play(env: Any, tool: str) -> None:
    first = await env.reset(task_id=None, seed=3)
    assert first.done is False
    step = await env.step({"type": "call_tool", "tool_name": tool, "arguments": {}})
    assert step.observation["error"] is None, step
    assert step.reward is None
    end = await env.step({"type": "call_tool", "tool_name": "submit", "arguments": {"answer": "nothing"}})
    assert end.done is True, end
    assert end.reward == 0.0, end


async def from_image(image: str, tool: str) -> float:
    """Seconds that the slower one took to end. Each client starts a container, waits 30 s for its health, and stops it."""
    slowest = 0.0
    for kind in (GenericEnvClient, MCPToolClient):
        env = await kind.from_docker_image(image)
        try:
            if kind is MCPToolClient:
                assert tool in [listed.name for listed in await env.list_tools()]
            else:
                await play(env, tool)
        finally:
            started = time.monotonic()
            await env.close()
            slowest = max(slowest, time.monotonic() - started)
    assert slowest < 10, slowest
    return slowest


def validate(*target: str) -> None:
    """`openenv validate`, in this process: its imports alone take seconds."""
    from openenv.cli.__main__ import app
    from typer.testing import CliRunner

    run = CliRunner().invoke(app, ["validate", *target])
    assert run.exit_code == 0, run.output


def validate_image(folder: str) -> None:
    """The default level of later versions: build the folder's image and play an episode in it, without a network.

    Two things are not theirs: the helper beside it, for which they pull Python's image by digest, is the base image, which has
    Python; and the start may take longer than 30 s, as it does where a hundred processes share two cores.
    """
    from openenv.validation import Level, Verdict, run_validation
    from openenv.validation.providers.docker import DockerValidationProvider

    class Provider(DockerValidationProvider):  # type: ignore[misc]
        def start(self, spec: Any) -> Any:
            return super().start(spec.model_copy(update={"startup_timeout_s": 240.0}))

    provider = Provider()
    dockerfile = (Path(folder) / "Dockerfile").read_text()
    provider.helper_image = re.search("^FROM ([^ ]+)$", dockerfile, re.MULTILINE)[1]
    report = run_validation(Path(folder), max_level=Level.SEMANTIC, provider=provider)
    results = {result.check_id: result for result in report.results}
    built = results["runtime.startup"].measured.get("image_ref")
    if built and subprocess.run([*INSPECT, built], capture_output=True, text=True, check=True).stdout.strip() == "[]":
        subprocess.run(["docker", "rmi", built], capture_output=True, check=True)
    for check in PROMISED:
        assert results[check].status.value == "pass", results[check]
    assert report.verdict is not Verdict.FAIL, report


asyncio.run(main(*sys.argv[1:]))
