"""The supervisor: PID 1 of an environment's container. It runs no environment code and holds the episodes' states."""

import asyncio
import logging
import math
import signal
import time
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import uvicorn
import uvloop
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from awm_runtime.bundle_files import BundleFiles
from awm_runtime.console import complain
from awm_runtime.control import Control
from awm_runtime.episodes import Episodes
from awm_runtime.fresh import Fresh
from awm_runtime.http import App, Receive, Scope, Send
from awm_runtime.judges import Judge
from awm_runtime.mcp import McpServer
from awm_runtime.one_write import OneWriteProtocol
from awm_runtime.openenv import OpenEnv
from awm_runtime.planes import AgentPlane, ControlPlane, McpRoutes
from awm_runtime.pool import EnvironmentBroken, Order, Pool
from awm_runtime.settings import Settings
from awm_runtime.task_routes import TaskRoutes

_log = logging.getLogger("awm_runtime")
_STOP_WITHIN = 1.0
"""Seconds that open requests have to end after SIGTERM."""


@dataclass
class _Activity:
    """When the container was last asked for anything, for AWM_TTL."""

    last: float

    def watch(self, app: App) -> App:
        async def watched(scope: Scope, receive: Receive, send: Send) -> None:
            if scope.get("path") != "/health":
                self.last = time.monotonic()
            await app(scope, receive, send)

        return watched


@contextmanager
def environment(settings: Settings, zygote: Fresh) -> Iterator[tuple[Pool, Episodes]]:
    """The environment imported, its processes started; all ended afterwards. Raises BundleBroken, EnvironmentBroken."""
    with ExitStack() as stack:
        stack.enter_context(zygote)
        files = BundleFiles.read(settings.env_dir)
        pool = Pool(settings.workers, zygote)
        pool.begin(
            Order(
                code=files.code,
                seed=files.seed,
                world_time=files.world_time,
                module_state=files.module_state,
                memory=settings.check_memory,
                max_result=settings.max_result,
                warm_memory=settings.warm_memory // settings.workers,
            )
        )
        ready = pool.finish()
        stack.callback(pool.close)
        judge = stack.enter_context(Fresh.start("awm_runtime.judge"))
        yield pool, Episodes(files, settings, pool, ready, Judge(judge, ready.seed))


def serve(settings: Settings, zygote: Fresh) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit status."""
    try:
        with environment(settings, zygote) as (pool, episodes):
            return _run(_serve(settings, pool, episodes))
    except EnvironmentBroken as error:
        complain(error)
        return 1


def _run(main: Coroutine[object, object, int]) -> int:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


async def _serve(settings: Settings, pool: Pool, episodes: Episodes) -> int:
    await pool.open()
    activity = _Activity(time.monotonic())
    trainer, agent = McpServer(episodes, sessions=True), McpServer(episodes)
    routes = [*OpenEnv(episodes, trainer).routes(), *TaskRoutes(episodes).routes()]
    app = Control(episodes, settings.max_body).app(routes)
    control = ControlPlane(McpRoutes(episodes, trainer, settings.max_body), app, settings.token)
    servers = [
        server(activity.watch(control), settings, settings.port),
        server(activity.watch(AgentPlane(McpRoutes(episodes, agent, settings.max_body))), settings, settings.agent_port),
    ]
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    running = [loop.create_task(one._serve()) for one in servers]
    watchers = [loop.create_task(_watch(settings, pool, episodes, activity, stop)), loop.create_task(stop.wait())]
    await asyncio.wait([*running, watchers[1]], return_when=asyncio.FIRST_COMPLETED)
    for one in servers:
        one.should_exit = True
    failed = any(task.done() and (task.cancelled() or task.exception() or not stop.is_set()) for task in running)
    _, late = await asyncio.wait(running, timeout=_STOP_WITHIN)
    for task in [*late, *watchers]:
        task.cancel()
    return 1 if failed or pool.broken else 0


def server(app: App, settings: Settings, port: int) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=port,
        loop="none",
        http=OneWriteProtocol,
        ws=WebSocketsSansIOProtocol,
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
        # As long as an episode may rest: a policy thinks for minutes between two calls, and to its client a closed connection may
        # look like a lost episode.
        timeout_keep_alive=math.ceil(settings.idle_ttl),
        ws_max_size=4 << 20,
    )
    return uvicorn.Server(config)


async def _watch(settings: Settings, pool: Pool, episodes: Episodes, activity: _Activity, stop: asyncio.Event) -> None:
    """Once a second: episodes past their time, a container that nobody uses, a zygote that died."""
    while True:
        await asyncio.sleep(1)
        episodes.expire()
        if settings.ttl is not None and time.monotonic() - activity.last > settings.ttl:
            _log.warning("nothing was asked for %g s (AWM_TTL); this container ends itself", settings.ttl)
            stop.set()
        if pool.zygote.process.poll() is not None:
            _log.error("the process that imports the environment died; this container ends itself")
            pool.broken = True
            stop.set()
