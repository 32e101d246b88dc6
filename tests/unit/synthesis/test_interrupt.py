"""A run that is interrupted ends at once, whatever the sandbox is busy with."""

import asyncio
import threading

from awm_factory.errors import SandboxError
from awm_factory.sandbox.pool import Reply, Request, Sandbox
from awm_factory.store import Store
from awm_factory.synthesis.notebook import Notebook
from awm_factory.synthesis.pipeline import Made, Pipeline
from awm_factory.synthesis.scripted import ScriptedModel
from awm_factory.synthesis.settings import Settings
from awm_factory.synthesis.workbench import Workbench
from synthesis_support import ANSWERS, Quiet, each, shelf


class Busy(Sandbox):
    """With a check that takes as long as the sandbox is open."""

    base = "busy"

    def __init__(self) -> None:
        self.begun, self.closed = threading.Event(), threading.Event()

    def check(self, request: Request, time_limit: float = 60.0) -> Reply:
        self.begun.set()
        self.closed.wait()
        raise SandboxError("the sandbox is closed")

    def close(self) -> None:
        self.closed.set()


def test_an_interrupted_run_waits_for_no_check() -> None:
    sandbox, made = Busy(), list[Made]()

    async def go() -> None:
        with Store.open("sqlite://") as store:
            store.start_run("r", "scripted", {})
            settings = Settings(tasks=3, advice=False)
            bench = Workbench(sandbox, settings)
            pipeline = Pipeline(ScriptedModel(ANSWERS), bench, settings, Notebook(store, "r"), Quiet(), 2)
            running = asyncio.create_task(pipeline.run(each([shelf()]), ["solutions"], made.append))
            await asyncio.to_thread(sandbox.begun.wait)
            running.cancel()
            _, waiting = await asyncio.wait([running], timeout=10)
            sandbox.close()
            assert not waiting and running.cancelled()

    asyncio.run(go())
    assert not made
