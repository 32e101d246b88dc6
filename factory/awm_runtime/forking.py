"""The work of a zygote: it confines itself, imports one environment, and forks a worker for every socket that it is handed."""

import asyncio
import gc
import os
import signal
import socket

from awm_runtime import confine, frames, fresh, worker
from awm_runtime.environment import Environment, prepare_process, warm_up
from awm_runtime.frames import Frame
from awm_runtime.loading import LoadFailed
from awm_runtime.module_state import written_names


def live() -> None:
    """Returns when the supervisor is gone. The caller looks for no garbage until then."""
    if (begun := fresh.begin()) is None:
        return
    link, message = begun
    order, seed = message.header, message.blob
    os.chdir("/")
    prepare_process()
    bounds = confine.Limits(memory=order["memory"], open_files=1024)
    held = confine.confine(confine.python_paths(), bounds, may_fork=True)
    try:
        environment = Environment(order["code"], seed, order["world_time"])
    except LoadFailed as failure:
        frames.send(link, Frame({"failed": f"{failure.where}: {failure.what}"}))
        return
    tools = [served.tool.model_dump(mode="json") for served in environment.derived.tools]
    frames.send(link, Frame({"tools": tools, "confinement": held.as_dict()}, environment.seed))
    # From here on the supervisor lists tools; calls wait until there are workers.
    module_state = order["module_state"] or _module_state(order["code"], environment)
    if not module_state:
        asyncio.run(warm_up(environment))
    environment.freeze()
    gc.enable()
    frames.send(link, Frame({"module_state": module_state}))
    limits = worker.Limits(result=order["max_result"], warm_memory=order["warm_memory"])
    _fork_on_demand(link, environment, limits, solo=bool(module_state))


def _module_state(code: str, environment: Environment) -> list[str]:
    """Why this environment can't share a process between episodes; empty where it can."""
    found = [f"{function} writes {name}" for name, function in written_names(code).items()]
    return found + (["a connection is kept from import on"] if environment.holds_connection else [])


def _fork_on_demand(link: socket.socket, environment: Environment, limits: worker.Limits, *, solo: bool) -> None:
    """Each message brings the socket of a new worker, and is answered with its process id."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # dead workers need no burial
    confine.adopt_orphans()
    while (message := frames.receive(link)) is not None:
        _, descriptor = message
        assert descriptor is not None
        process = os.fork()
        if process == 0:
            link.close()
            worker.start(environment, socket.socket(fileno=descriptor), limits, solo=solo)
        os.close(descriptor)
        frames.send(link, Frame({"pid": process}))
