"""The inputs of faults reported elsewhere, where a checkout has them beside it; inputs of our own are in the other tests."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from awm_factory.errors import ProviderError, Truncated
from awm_factory.llm.answers import json_answer, python_answer
from awm_factory.llm.protocol import ModelReply
from awm_factory.llm.stub_server import on_loopback
from llm_support import Endpoint, ask, connected

CASES = Path(__file__).parents[4] / "shared" / "cases" / "inputs"
pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not CASES.is_dir(), reason="../shared is absent")]


def test_fenced_code_is_taken_out_whole() -> None:
    code = python_answer((CASES / "01-fenced-env-code" / "response-a.txt").read_text(), defines="app")
    compile(code, "app.py", "exec")
    assert code.startswith("import os\n")
    assert "Use ```mono``` names only" in code
    assert code.rstrip().endswith('port=int(os.getenv("PORT", "8000")))')


@pytest.mark.parametrize("finish", ["length", "stop"])
async def test_a_cut_answer_is_refused_whatever_its_finish_reason(finish: str) -> None:
    body = json.loads((CASES / "02-truncated-json" / "completion.json").read_text())
    body["choices"][0]["finish_reason"] = finish
    with on_loopback(Endpoint(lambda *_: body).app()) as url:
        async with connected(url) as model:
            reply = await model.complete(ask())
    with pytest.raises(Truncated):
        json_answer(reply.text)


async def test_bodies_without_usable_choices_are_five_outcomes() -> None:
    bodies = [json.loads(line) for line in (CASES / "04-empty-choices" / "bodies.jsonl").read_text().splitlines()]
    endpoint = Endpoint(lambda body, _: bodies[int(body["messages"][1]["content"])])
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            results = await asyncio.gather(*(model.complete(ask(str(n))) for n in range(5)), return_exceptions=True)
    assert isinstance(results[0], ProviderError)
    assert (results[0].status, "upstream overloaded" in str(results[0])) == (529, True)
    replies = [result for result in results if isinstance(result, ModelReply)]
    assert [(reply.outcome, reply.detail) for reply in replies] == [
        ("no_choices", ""),
        ("filtered", "content_filter"),
        ("refused", "I can't help with that."),
        ("ok", ""),
    ]
    assert json_answer(replies[-1].text) == {"tables": []}


@pytest.fixture
def picky(request: pytest.FixtureRequest) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    script = CASES / "05-token-parameter" / "picky_llm.py"
    with subprocess.Popen([sys.executable, script, str(port)], env=os.environ | {"MODE": request.param}) as process:
        try:
            with httpx.Client(transport=httpx.HTTPTransport(retries=50)) as client:
                client.get(f"http://127.0.0.1:{port}/log").raise_for_status()
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


@pytest.mark.parametrize(("picky", "refused"), [("new", 2), ("old", 0)], indirect=["picky"])
async def test_a_picky_endpoint_refuses_at_most_twice_in_a_run_of_twenty(picky: str, refused: int) -> None:
    async with connected(picky) as model:
        replies = await asyncio.gather(*(model.complete(ask(str(n), temperature=0.5)) for n in range(20)))
    log = httpx.get(f"{picky}/log").json()
    assert [reply.text for reply in replies] == ["ok"] * 20
    assert len(log) == 20 + refused
    assert log[0] != log[1] or not refused
