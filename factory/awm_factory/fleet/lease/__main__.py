"""`python -m awm_factory.fleet.lease`: the process in the lease service's container.

It listens on two ports, one for callers on the trainers' network and one to be published on the host, as that decides which
addresses work for them.
"""

import asyncio
import logging
import signal
from collections.abc import Sequence
from pathlib import Path

import click
import uvicorn
import uvloop

from awm_factory.fleet.lease.app import LeaseApp
from awm_factory.fleet.lease.containers import HttpContainers
from awm_factory.fleet.lease.metrics import Metrics
from awm_factory.fleet.lease.service import Leases
from awm_factory.fleet.lease.store import Store

INSIDE, OUTSIDE = 8080, 8081
"""Ports: on the trainers' network, and to be published."""
_LONGEST_IDLE = 75
"""Seconds a caller's idle connection is kept; trainers keep theirs over a whole step."""


@click.command()
@click.option("--scenario", "scenarios", multiple=True, required=True, metavar="ENV_ID=SERVICE")
@click.option("--queue", type=click.IntRange(0), default=1024, show_default=True, help="Requests that may wait for one scenario.")
@click.option("--width", type=click.IntRange(1), default=2, show_default=True, help="Calls into one container at once.")
@click.option("--store", type=click.Path(dir_okay=False, path_type=Path), default="/data/leases.db", show_default=True)
@click.option("--token", envvar="AWM_FLEET_TOKEN", required=True, help="What callers must send.")
@click.option("--container-token", envvar="AWM_TOKEN", required=True, help="What containers ask for.")
@click.option("--host", default="0.0.0.0", show_default=True)
def main(scenarios: tuple[str, ...], queue: int, width: int, store: Path, token: str, container_token: str, host: str) -> None:
    """Lease episodes of the scenarios' containers."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    services = dict(scenario.split("=", 1) for scenario in scenarios)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(services, queue, width, store, token, container_token, host))


async def _serve(
    services: dict[str, str], queue: int, width: int, path: Path, token: str, container_token: str, host: str
) -> None:
    store = Store(path)
    try:
        async with (
            HttpContainers(container_token) as containers,
            Leases(services, containers, store, Metrics(), queue=queue, width=width) as leases,
        ):
            await _listen(
                [
                    _server(LeaseApp(leases, token, direct=True), host, INSIDE),
                    _server(LeaseApp(leases, token, direct=False), host, OUTSIDE),
                ]
            )
    finally:
        store.close()


async def _listen(servers: Sequence[uvicorn.Server]) -> None:
    """Until SIGTERM or SIGINT, or until a server ends by itself."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    running = [loop.create_task(server._serve()) for server in servers]
    stopping = loop.create_task(stop.wait())
    await asyncio.wait([*running, stopping], return_when=asyncio.FIRST_COMPLETED)
    for server in servers:
        server.should_exit = True
    stopping.cancel()
    await asyncio.wait(running, timeout=2)


def _server(app: LeaseApp, host: str, port: int) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="none",
        lifespan="off",
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        timeout_keep_alive=_LONGEST_IDLE,
        timeout_graceful_shutdown=1,
        backlog=4096,
    )
    return uvicorn.Server(config)


main()
