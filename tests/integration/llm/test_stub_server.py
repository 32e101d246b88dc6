"""The stub server as a client meets it, over HTTP."""

import asyncio
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from awm_factory.errors import ConnectionLost, Malformed, ModelError, ProviderError, RateLimited, Truncated
from awm_factory.llm.answers import json_answer, python_answer
from awm_factory.llm.openai_model import OpenAIEmbedder, OpenAIModel
from awm_factory.llm.patience import AdaptiveLimit, Patience
from awm_factory.llm.protocol import EmbeddingRequest, ModelReply, ModelRequest, Outcome, Purpose, ToolSpec, ToolUse, Usage
from awm_factory.llm.recorded import RecordedModel, RecordingEmbedder, RecordingModel, Recordings
from awm_factory.llm.stub_faults import Faults, Latency
from awm_factory.llm.stub_server import Stub, running_stub
from llm_support import FunctionModel, ask, client, connected

pytestmark = pytest.mark.anyio

JSON = json.dumps(
    {"tables": [{"name": "boats", "ddl": "CREATE TABLE boats (id INTEGER);", "rows": ["INSERT INTO boats VALUES (1);"]}]}
)
CODE = "from fastapi import FastAPI\n\napp = FastAPI(title='x')\n"
VERIFIER = 'def verify_task_completion(initial, final, answer) -> dict:\n    """Say."""\n    return {"result": "others"}\n'


def total(log: list[dict[str, Any]]) -> Usage:
    usages = [entry["usage"] or {} for entry in log if entry["delivered"]]
    prompt, completion = (sum(usage.get(name, 0) for usage in usages) for name in ("prompt_tokens", "completion_tokens"))
    return Usage(prompt=prompt, completion=completion)


async def test_text_and_tokens_arrive_as_the_server_counted_them() -> None:
    stub = Stub(FunctionModel(lambda request: "häßlich 🛶 " * 500 + request.messages[1].content))
    with running_stub(stub) as url:
        async with connected(url) as model:
            replies = await asyncio.gather(*(model.complete(ask(str(n), max_tokens=9000)) for n in range(50)))
        log = httpx.get(url.removesuffix("/v1") + "/log").json()
    assert {reply.text for reply in replies} == {"häßlich 🛶 " * 500 + str(n) for n in range(50)}
    assert sum((reply.usage for reply in replies), Usage()) == total(log)
    assert len(log) == 50
    assert log[0]["purpose"] == {"env_id": "kiosk", "stage": "tasks", "item": "", "attempt": 1}


async def test_the_sdk_alone_gets_the_same_whole_and_in_chunks() -> None:
    with running_stub(Stub(FunctionModel(lambda _: "abc " * 1000))) as url:
        sdk = client(url)
        whole = await sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        stream = await sdk.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], stream=True)
        pieces = [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
        names = [model.id async for model in sdk.models.list()]
        await sdk.close()
    assert whole.choices[0].message.content == "".join(pieces) == "abc " * 1000
    assert len(pieces) == 10
    assert names == ["stub-model"]


async def test_azure_speaks_to_it_as_well() -> None:
    with running_stub(Stub(FunctionModel())) as url:
        azure = openai.AsyncAzureOpenAI(
            azure_endpoint=url.removesuffix("/v1"), api_key="none", api_version="2025-04-01-preview", max_retries=0
        )
        model = OpenAIModel(azure, "my-deployment")
        reply = await model.complete(ask("there"))
        await model.close()
    assert (reply.text, reply.model) == ("You said: there", "my-deployment")


async def test_calls_of_tools_cross_the_wire() -> None:
    calls = (ToolUse(id="c1", name="find", arguments='{"id": 3}'), ToolUse(id="c2", name="list", arguments="{}"))

    class Caller:
        name = "caller"

        async def complete(self, request: ModelRequest) -> ModelReply:
            assert request.tools[0].name == "find"
            return ModelReply(model="m", tool_calls=calls)

    with running_stub(Stub(Caller())) as url:
        async with connected(url) as model:
            reply = await model.complete(ask(tools=(ToolSpec(name="find", description="", parameters={}),)))
    assert reply.tool_calls == calls


@pytest.mark.parametrize("outcome", ["truncated", "no_choices", "filtered", "refused"])
async def test_recorded_outcomes_are_served_as_such(outcome: Outcome) -> None:
    class Outcomes(FunctionModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            return ModelReply(model="m", outcome=outcome, raw="" if outcome == "no_choices" else "half", detail="no")

    with running_stub(Stub(Outcomes())) as url:
        async with connected(url) as model:
            assert (await model.complete(ask())).outcome == outcome


async def test_an_answer_longer_than_was_asked_for_is_cut() -> None:
    with running_stub(Stub(FunctionModel(lambda _: "x" * 1000))) as url:
        async with connected(url) as model:
            reply = await model.complete(ask(max_tokens=100))
    assert (reply.outcome, reply.raw, reply.usage.completion) == ("truncated", "x" * 400, 100)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("rate_limit", RateLimited),
        ("rate_limit_after", RateLimited),
        ("server_error", ProviderError),
        ("disconnect", ConnectionLost),
    ],
)
async def test_transport_faults_are_real(fault: str, error: type[ModelError]) -> None:
    stub = Stub(FunctionModel(), faults=Faults.parse(f"{fault}=1"), retry_after=0.01)
    with running_stub(stub) as url:
        async with connected(url) as model:
            with pytest.raises(error) as caught:
                await model.complete(ask())
    assert len(stub.log) == 3
    assert [entry["faults"] for entry in stub.log] == [[fault]] * 3
    assert caught.value.unmetered == (3 if fault == "disconnect" else 0)


async def test_disconnects_break_an_answer_that_is_no_stream() -> None:
    with running_stub(Stub(FunctionModel(), faults=Faults(disconnect=1))) as url:
        async with connected(url) as model:
            model.dialect.without_stream()
            with pytest.raises(ConnectionLost):
                await model.complete(ask())


@pytest.mark.parametrize(
    ("fault", "text", "expected"),
    [
        ("fence", CODE, CODE),
        ("thinking", CODE, CODE),
        ("fence", JSON, JSON),
        ("thinking", JSON, JSON),
        ("truncate", JSON, Truncated),
        ("truncate_silently", JSON, Truncated),
        ("invalid_json", JSON, Malformed),
        ("bad_sql", JSON, JSON.replace("INSERT INTO", "INSERT INTU")),
        ("broken_code", CODE, CODE.replace("FastAPI(", "FastApi(")),
        ("bad_sql", CODE, CODE),
    ],
)
async def test_faults_of_answers_are_what_they_say(fault: str, text: str, expected: str | type[Exception]) -> None:
    stub = Stub(FunctionModel(lambda _: text), faults=Faults.parse(f"{fault}=1"))
    with running_stub(stub) as url:
        async with connected(url) as model:
            reply = await model.complete(ask())
    take = json_answer if text == JSON else python_answer
    if isinstance(expected, str):
        assert take(reply.text) == take(expected)
        assert (reply.raw == text) == (stub.log[0]["faults"] == [])
    else:
        with pytest.raises(expected):
            take(reply.text)


@pytest.mark.parametrize("wrap", [str, lambda code: json.dumps({"code": code})])
async def test_a_lenient_verifier_passes_everything_also_inside_json(wrap: Any) -> None:
    with running_stub(Stub(FunctionModel(lambda _: wrap(VERIFIER)), faults=Faults(lenient_verifier=1))) as url:
        async with connected(url) as model:
            answer = (await model.complete(ask())).text
    code = answer if wrap is str else json_answer(answer)["code"]  # type: ignore[call-overload, index]
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["verify_task_completion"]("", "", None) == {"result": "complete"}


async def test_faults_and_latencies_depend_on_the_seed_and_not_on_the_order() -> None:
    async def outcomes(seed: int, backwards: bool) -> dict[str, str]:
        stub = Stub(FunctionModel(), seed=seed, faults=Faults(server_error=0.5), latency=Latency(median=0.005))
        found: dict[str, str] = {}
        with running_stub(stub) as url:
            async with connected(url) as model:
                for n in sorted(range(20), reverse=backwards):
                    await asyncio.gather(model.complete(ask(str(n))), return_exceptions=True)
        for entry in stub.log:
            found[entry["key"]] = f"{found.get(entry['key'], '')} {entry['status']} {entry['seconds']}"
        return found

    first = await outcomes(1, backwards=False)
    assert first == await outcomes(1, backwards=True)
    assert first != await outcomes(2, backwards=False)
    assert len(set(first.values())) > 10


async def test_latency_is_taken_and_lognormal() -> None:
    stub = Stub(FunctionModel(), latency=Latency(median=0.05, sigma=0.3))
    with running_stub(stub) as url:
        async with connected(url) as model:
            started = time.monotonic()
            replies = await asyncio.gather(*(model.complete(ask(str(n))) for n in range(40)))
            wall = time.monotonic() - started
    seconds = sorted(entry["seconds"] for entry in stub.log)
    assert 0.035 < seconds[20] < 0.07
    assert wall >= seconds[-1]
    assert all(reply.latency >= seconds[0] for reply in replies)


async def test_a_narrow_endpoint_serves_all_who_wait_and_fewer_are_sent_at_once() -> None:
    stub = Stub(FunctionModel(), capacity=4, latency=Latency(median=0.02, sigma=0))
    limit = AdaptiveLimit(64)
    with running_stub(stub) as url:
        model = OpenAIModel(client(url), "m", Patience(limit, 0.02))
        await model.complete(ask("first"))
        replies = await asyncio.gather(*(model.complete(ask(str(n))) for n in range(100)))
        await model.close()
    assert len({reply.text for reply in replies}) == 100
    assert limit.limit <= 16
    assert Counter(entry["status"] for entry in stub.log)[200] == 101


async def test_embeddings_are_unit_vectors_near_each_other_where_texts_share_words() -> None:
    with running_stub(Stub(FunctionModel())) as url:
        embedder = OpenAIEmbedder(client(url), "text-embedding-3-large")
        texts = ("a shop for boats", "a boats shop", "hospital billing")
        reply = await embedder.embed(EmbeddingRequest(texts=texts, dimensions=256, purpose=Purpose(stage="scenarios")))
        await embedder.close()
    one, near, far = reply.vectors

    def cosine(a: tuple[float, ...], b: tuple[float, ...]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert len(one) == 256
    assert cosine(one, one) == pytest.approx(1, abs=1e-4)
    assert cosine(one, near) > 0.6 > 0.3 > cosine(one, far)
    assert reply.usage.prompt == sum(-(-len(text) // 4) for text in texts)


async def test_a_run_is_recorded_over_http_and_replayed_without(tmp_path: Path) -> None:
    recordings = Recordings(tmp_path)
    purpose = Purpose(stage="scenarios")
    with running_stub(Stub(FunctionModel())) as url:
        async with connected(url) as real:
            model = RecordingModel(real, recordings)
            first = await asyncio.gather(*(model.complete(ask(str(n % 30), sample=n // 30)) for n in range(60)))
        embedder = OpenAIEmbedder(client(url), "e")
        vectors = await RecordingEmbedder(embedder, recordings).embed(EmbeddingRequest(texts=("a", "b"), purpose=purpose))
        await embedder.close()
    replay = RecordedModel(Recordings(tmp_path))
    assert [await replay.complete(ask(str(n % 30), sample=n // 30)) for n in range(60)] == list(first)
    assert await replay.embed(EmbeddingRequest(texts=("a", "b"), purpose=purpose)) == vectors


async def test_the_stub_answers_from_a_recording_through_any_dialect(tmp_path: Path) -> None:
    recordings = Recordings(tmp_path)
    request = ask("hello", max_tokens=9999, temperature=0.3, sample=2)
    await RecordingModel(FunctionModel(), recordings).complete(request)
    stub = Stub(RecordedModel(Recordings(tmp_path)))
    with running_stub(stub) as url:
        async with connected(url, most_tokens=100) as model:
            model.dialect.dropped |= {"temperature"}
            assert (await model.complete(request)).text == "You said: hello"
            with pytest.raises(ProviderError, match=r"404: .* holds no answer for kiosk, tasks, attempt 1"):
                await model.complete(ask("hello", sample=3))
    assert "temperature" not in stub.log[0]["params"]
