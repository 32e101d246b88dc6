"""Does a built image behave as its manifest says? Started twice, as trainers start it, and asked from outside.

First with its ports published on loopback: health, tools, Host headers, verdicts, calls, reset, the end. Then on a network
without a way out, with its ports moved, asked from a second container: tools on both planes, nothing outside within reach.
"""

import contextlib
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import docker
import httpx
from docker.errors import DockerException
from pydantic import ValidationError
from requests.exceptions import RequestException
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from awm_factory.bundle import MODES, Bundle
from awm_factory.errors import EngineError, SmokeError
from awm_factory.ids import host_name
from awm_factory.images.docker_client import Owner
from awm_factory.images.hardened import LOOPBACK, Box, boxed, internal_network
from awm_factory.images.sockets import OUTSIDE, listeners, reached, sockets, wait_until_listening
from awm_factory.images.trial import Control, TrialError, Tried, list_tools, run, try_calls
from awm_runtime.contract import AGENT_PORT, CONTROL_PORT, Health
from awm_runtime.patience import patient

START_LIMIT: Final = 60.0
"""Seconds a container may take until it answers."""
STOP_LIMIT: Final = 2.0
PROBE_LIMIT: Final = 60.0
"""All three are stretched where the machine is busy."""
MOVED: Final = {"PORT": "18000", "AGENT_PORT": "18001"}
HOSTS: Final = (
    "localhost:8000",
    "awm-env-3:8000",
    "host.docker.internal:49153",
    "172.20.0.9:8000",
    "node7.cluster.example:30017",
)
"""How containers are addressed: loopback, service name, from another container, address, a cluster's node port."""
TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "awm-smoke", "version": "1"}},
}
_ACCEPT: Final = {"accept": "application/json, text/event-stream"}


@dataclass
class SmokeReport:
    """What was seen, check by check; every one of them held, or there would be a SmokeError."""

    env_id: str
    checks: dict[str, str] = field(default_factory=dict)
    start_seconds: float = 0.0
    """Container start to the first answered tools/list."""
    seconds: float = 0.0


def smoke(client: docker.DockerClient, image_id: str, bundle: Bundle, base_id: str, session: str) -> SmokeReport:
    """Raises SmokeError naming the check that failed, with the container's last log lines.

    `bundle` is what the image was rendered from; the second container runs `base_id`. All that is started carries the
    session's label and is removed whatever happens; a reap of the session ends the test at once.
    """
    begin = time.monotonic()
    owner = Owner(session)
    report = SmokeReport(bundle.env_id)
    with boxed(image_id, owner) as box:
        _published(client, box, bundle, report)
    alias = host_name(bundle.env_id)
    with internal_network(owner) as network, boxed(image_id, owner, network=network, alias=alias, environment=MOVED) as box:
        with _check(report, "from a second container", box):
            for variable, port in MOVED.items():
                wait_until_listening(box, int(port), variable, patient(START_LIMIT))
            urls = [f"http://{alias}:{port}/mcp" for port in MOVED.values()]
            command = ["sh", "-ec", 'for url; do python -m awm_runtime.probe "$url"; done', "probe", *urls]
            with boxed(base_id, owner, command=command, network=network) as probe:
                for variable, listed in zip(MOVED, _probed(probe, len(MOVED)), strict=True):
                    _same_tools(bundle, listed, f"on the port that {variable} names")
        with _check(report, "nothing outside", box):
            if answered := reached(box, OUTSIDE):
                raise TrialError(f"on a network without a way out, these answered all the same: {', '.join(answered)}")
    report.seconds = time.monotonic() - begin
    return report


def _published(client: docker.DockerClient, box: Box, bundle: Bundle, report: SmokeReport) -> None:
    with contextlib.ExitStack() as stack:
        with _check(report, "healthy", box):
            control = stack.enter_context(Control(f"http://{LOOPBACK}:{box.port(CONTROL_PORT)}"))
            agent = f"http://{LOOPBACK}:{box.port(AGENT_PORT)}"
            health = _healthy(box, control.http)
            report.checks["healthy"] = f"{health.tools} tools, {health.tasks} tasks"
        with _check(report, "tools", box):
            tools = run(list_tools(f"{control.base_url}/mcp"))
            report.start_seconds = time.monotonic() - box.started
            _same_tools(bundle, [tool.name for tool in tools], f"on port {CONTROL_PORT}")
            _same_tools(bundle, [tool.name for tool in run(list_tools(f"{agent}/mcp"))], f"on port {AGENT_PORT}")
            report.checks["tools"] = f"exactly the manifest's {len(tools)}"
        with _check(report, "health check of the image", box):
            report.checks["health check of the image"] = _own_check(client, box)
        with _check(report, "Host headers", box):
            for url in (f"{control.base_url}/mcp", f"{agent}/mcp"):
                _takes_any_host(control.http, url)
        with _check(report, "untouched episodes", box):
            report.checks["untouched episodes"] = f"{_untouched(control, bundle)} verdicts, none complete"
        with _check(report, "calls", box):
            episode = control.open(_task_with_solution(bundle))
            tried = run(try_calls(control, episode, bundle, tools))
            report.checks["calls"] = _answered(tried)
        with _check(report, "reset", box):
            control.reset(episode.episode_id)
            if control.database(episode.episode_id) != tried.fresh:
                raise TrialError("after reset the database is not byte for byte the one that the episode began with")
            report.checks["reset"] = f"byte-identical, {len(tried.fresh)} bytes"
        with _check(report, "stop", box), _listening(control.http):
            limit = patient(STOP_LIMIT)
            code, seconds = box.signal("SIGTERM", limit + 3)
            if code is None or seconds > limit:
                raise TrialError(
                    f"SIGTERM {'did not end it' if code is None else 'ended it'} after {seconds:.1f} s, not {limit:.3g} s"
                )
            if code not in {0, 128 + 15}:
                raise TrialError(f"SIGTERM ended it with exit code {code} instead of 0")
            report.checks["stop"] = f"exit code {code} after {seconds:.2f} s"


@contextlib.contextmanager
def _check(report: SmokeReport, name: str, box: Box) -> Iterator[None]:
    report.checks[name] = "held"
    try:
        yield
    except (TrialError, EngineError, DockerException, RequestException, httpx.HTTPError) as error:
        words = "\n".join(f"  {line}" for line in box.last_words().splitlines())
        raise SmokeError(
            f"{report.env_id} failed its smoke test at {name!r}: {error}\nThe container's last lines:\n{words}\nTo look closer, "
            f"`docker build --tag try images/{report.env_id}`, then `docker run --rm --publish 127.0.0.1:8000:8000 try`"
        ) from error


def _healthy(box: Box, http: httpx.Client) -> Health:
    def ask() -> httpx.Response | None:
        if not box.running():
            raise TrialError("the container ended before it answered")
        try:
            return http.get("/health", timeout=2)
        except httpx.TransportError:
            return None

    retry, limit = retry_if_result(lambda reply: reply is None or reply.status_code >= 500), patient(START_LIMIT)
    try:
        reply = Retrying(stop=stop_after_delay(limit), wait=wait_fixed(0.05), retry=retry)(ask)
    except RetryError as error:
        last: httpx.Response | None = error.last_attempt.result()
        if last is not None:
            said = f"its last answer was {last.status_code}: {last.text[:200]}"
        else:
            said = listeners(sockets(box), CONTROL_PORT)
        raise TrialError(f"no answer to GET /health on the published port within {limit:.3g} s; {said}") from None
    try:
        return Health.model_validate_json(reply.content if reply is not None else b"")
    except ValidationError as error:
        raise TrialError(f"GET /health answered something else: {error}") from error


def _same_tools(bundle: Bundle, listed: list[str], where: str) -> None:
    expected, seen = set(bundle.manifest.tools), set(listed)
    named = {"missing": expected - seen, "not in the manifest": seen - expected}
    differences = [f"{what}: {', '.join(sorted(names))}" for what, names in named.items() if names]
    if len(listed) != len(seen):
        differences.append("one name is listed twice")
    if refused := sorted(name for name in seen if not TOOL_NAME.match(name)):
        differences.append(f"model providers refuse {', '.join(refused)}: a name is 1 to 64 of A-Z a-z 0-9 _ -")
    if differences:
        raise TrialError(f"tools/list {where} is not as it should be; {'; '.join(differences)}")


def _own_check(client: docker.DockerClient, box: Box) -> str:
    """Run the image's HEALTHCHECK once, rather than wait for the engine's next turn at it."""
    test = (client.images.get(box.container.attrs["Image"]).attrs["Config"].get("Healthcheck") or {}).get("Test") or ["NONE"]
    kind, words = test[0], test[1:]
    if kind == "NONE":
        return "it has none"
    code, output = box.run(["/bin/sh", "-c", *words] if kind == "CMD-SHELL" else words)
    if code != 0:
        raise TrialError(f"{' '.join(words)} ended with {code}: {output.strip()[:500]}")
    return "exit code 0"


def _takes_any_host(http: httpx.Client, url: str) -> None:
    for host in HOSTS:
        reply = http.post(url, json=_INITIALIZE, headers=_ACCEPT | {"host": host})
        if reply.status_code != 200:
            raise TrialError(f"initialize with the header Host: {host} answered {reply.status_code}: {reply.text[:200]}")


def _untouched(control: Control, bundle: Bundle) -> int:
    count = 0
    for task_id in bundle.certificate.shipped_tasks if bundle.certificate else []:
        episode = control.open(task_id)
        for mode in MODES:
            if (task_id, mode) in bundle.verifiers:
                verdict = control.verify(episode.episode_id, mode)
                if verdict.error is not None:
                    raise TrialError(f"the {mode} verifier of task {task_id} fails on an untouched episode: {verdict.error}")
                if verdict.classification == "complete" or (verdict.reward or 0) > 0:
                    raise TrialError(f"the {mode} verifier of task {task_id} rewards an untouched episode")
                count += 1
        control.close(episode.episode_id)
    return count


def _task_with_solution(bundle: Bundle) -> int | None:
    shipped = bundle.certificate.shipped_tasks if bundle.certificate else []
    return next((task_id for task_id in shipped if task_id in bundle.solutions), None)


def _answered(tried: Tried) -> str:
    """Raises TrialError where nothing could be read, or where no write got through and the environment itself was at fault."""
    if tried.reading is None and tried.writing is None:
        tools = tried.broken or tried.refused
        raise TrialError(f"no tool answered a call without an error: {'; '.join(tools) or 'there are none'}")
    if tried.writing is None and tried.broken:
        raise TrialError(f"no call could write; these failed inside: {'; '.join(tried.broken)}")
    written = (
        f"{tried.writing} wrote" if tried.writing else f"no made-up call was let through to write ({len(tried.refused)} refused)"
    )
    return f"{tried.reading} read, {written}" if tried.reading else written


@contextlib.contextmanager
def _listening(http: httpx.Client) -> Iterator[None]:
    """A client that waits on the server's event stream, as agents do; it must not keep the container from ending."""
    opened = http.post("/mcp", json=_INITIALIZE, headers=_ACCEPT)
    headers = {"accept": "text/event-stream"}
    if identity := opened.headers.get("mcp-session-id"):
        headers["mcp-session-id"] = identity
    with http.stream("GET", "/mcp", headers=headers):
        yield


def _probed(probe: Box, count: int) -> list[list[str]]:
    """Names of the tools that each of the second container's probes found."""
    limit = patient(PROBE_LIMIT)
    try:
        code = probe.container.wait(timeout=limit)["StatusCode"]
    except RequestException:
        raise TrialError(f"the second container got no answer within {limit:.3g} s") from None
    if code != 0:
        raise TrialError(f"the second container could not list the tools: {probe.last_words()}")
    lines = probe.container.logs(stdout=True, stderr=False).decode(errors="replace").splitlines()
    try:
        found = [[tool["name"] for tool in json.loads(line)["tools"]] for line in lines]
    except (ValueError, KeyError, TypeError) as error:
        raise TrialError(f"the second container's probe printed something else than tools: {error!r}") from error
    if len(found) != count:
        raise TrialError(f"the second container printed {len(found)} lists of tools instead of {count}")
    return found
