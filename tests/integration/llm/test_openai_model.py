"""The client against endpoints as they are: picky, overloaded, talkative, and sometimes gone."""

import asyncio
import socket
import time
from typing import Any

import openai
import pytest
from fastapi import Response
from fastapi.responses import StreamingResponse

from awm_factory.errors import ConnectionLost, OutOfQuota, ProviderError, RateLimited, Refused, TimedOut, Truncated
from awm_factory.llm.openai_model import OpenAIModel
from awm_factory.llm.patience import AdaptiveLimit, Patience
from awm_factory.llm.protocol import ToolSpec
from awm_factory.llm.stub_server import on_loopback
from llm_support import Body, Endpoint, ask, client, completion, connected, refusal

pytestmark = pytest.mark.anyio


def unsupported(param: str) -> Response:
    return refusal(400, f"parameter {param} cannot be used with this model", param=param, code="unsupported_parameter")


def new_model(body: Body, _: int) -> Any:
    if "max_tokens" in body:
        return unsupported("max_tokens")
    if body.get("temperature", 1) != 1:
        return unsupported("temperature")
    return completion()


def old_server(body: Body, _: int) -> Any:
    return unsupported("max_completion_tokens") if "max_completion_tokens" in body else completion()


@pytest.mark.parametrize(("picky", "allowed"), [(new_model, 2), (old_server, 0)])
async def test_a_refused_parameter_is_swapped_or_dropped_once_for_the_whole_run(picky: Any, allowed: int) -> None:
    endpoint = Endpoint(picky)
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            replies = await asyncio.gather(*(model.complete(ask(str(n), temperature=0.2)) for n in range(20)))
    assert [reply.text for reply in replies] == ["ok"] * 20
    assert len(endpoint.bodies) - 20 == allowed
    assert sum(reply.attempts for reply in replies) == len(endpoint.bodies)


async def test_an_endpoint_that_refuses_to_stream_is_asked_without() -> None:
    endpoint = Endpoint(lambda body, _: refusal(422, "stream is not supported here") if body.get("stream") else completion())
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            assert [(await model.complete(ask(str(n)))).text for n in range(3)] == ["ok"] * 3
    assert len(endpoint.bodies) == 4


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 128000. This model supports at most 16384 completion tokens, whereas you provided 128000.",
        "Invalid max_tokens value, the maximum is 16384 output tokens",
        "max_tokens must be less than or equal to `16384`".replace("`", ""),
    ],
)
async def test_the_longest_answer_of_a_model_is_learned_from_its_refusal(message: str) -> None:
    endpoint = Endpoint(
        lambda body, _: completion() if body["max_tokens"] <= 16384 else refusal(400, message, param="max_tokens")
    )
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            await asyncio.gather(*(model.complete(ask(str(n), max_tokens=128_000)) for n in range(20)))
    assert [body["max_tokens"] for body in endpoint.bodies] == [128_000] + [16384] * 20


async def test_a_context_that_is_too_short_leaves_room_for_the_prompt() -> None:
    def answer(body: Body, _: int) -> Any:
        prompt = len(body["messages"][1]["content"]) // 3
        if prompt + body["max_tokens"] > 32768:
            return refusal(
                400,
                f"'max_tokens' is too large: {body['max_tokens']}. This model's maximum context length is 32768 tokens and your "
                f"request has {prompt} input tokens.",
            )
        return completion()

    endpoint = Endpoint(answer)
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            for text in ("x" * 30_000, "y" * 60_000, "z" * 3_000):
                assert (await model.complete(ask(text, max_tokens=128_000))).text == "ok"
    assert len(endpoint.bodies) == 4
    assert endpoint.bodies[1]["max_tokens"] > 20_000


async def test_a_known_limit_is_kept_to_from_the_start() -> None:
    endpoint = Endpoint(lambda *_: completion())
    with on_loopback(endpoint.app()) as url:
        async with connected(url, most_tokens=16384) as model:
            await model.complete(ask(max_tokens=128_000))
    assert endpoint.bodies[0]["max_tokens"] == 16384


async def test_a_request_that_is_wrong_is_sent_once() -> None:
    endpoint = Endpoint(lambda *_: refusal(400, "messages[0].role is wrong", param="messages"))
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            with pytest.raises(ProviderError, match="400: messages") as caught:
                await model.complete(ask())
    assert caught.value.status == 400
    assert len(endpoint.bodies) == 1


UNUSABLE: list[Body] = [
    {"model": "m", "choices": None, "error": {"message": "upstream overloaded", "code": 529}},
    {"model": "m", "choices": []},
    {"model": "m", "choices": [{"index": 0, "finish_reason": "content_filter", "message": {"content": None}}]},
    {
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": None, "refusal": "I can't help with that."}}],
    },
    completion('{"tables": []}'),
]


async def test_five_bodies_with_status_200_are_five_outcomes_and_only_the_first_two_are_tried_again() -> None:
    endpoint = Endpoint(lambda body, _: UNUSABLE[int(body["messages"][1]["content"])])
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            results = await asyncio.gather(*(model.complete(ask(str(n))) for n in range(5)), return_exceptions=True)
    overloaded, *replies = results
    assert isinstance(overloaded, ProviderError)
    assert overloaded.status == 529
    assert "upstream overloaded" in str(overloaded)
    assert [reply.outcome for reply in replies] == ["no_choices", "filtered", "refused", "ok"]  # type: ignore[union-attr]
    with pytest.raises(Refused, match="I can't help with that"):
        _ = replies[2].text  # type: ignore[union-attr]
    asked = [body["messages"][1]["content"] for body in endpoint.bodies]
    assert [asked.count(str(n)) for n in range(5)] == [3, 3, 1, 1, 1]


async def test_an_answer_cut_at_the_limit_is_no_text_and_its_tokens_count() -> None:
    endpoint = Endpoint(lambda *_: completion('{"tables": [', finish="length"))
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            reply = await model.complete(ask())
    assert (reply.usage.prompt, reply.usage.completion, len(endpoint.bodies)) == (7, 3, 1)
    with pytest.raises(Truncated, match="after 3 tokens"):
        _ = reply.text


async def test_an_answer_with_half_a_surrogate_pair_can_be_stored() -> None:
    body = '{"model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"content":"a\\ud83d b \\ud83d\\ude00"}}]}'
    endpoint = Endpoint(lambda *_: Response(body, media_type="application/json"))
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            reply = await model.complete(ask())
    assert reply.text == "a\ufffd b \U0001f600"
    assert reply.model_dump_json()


async def test_empty_answers_are_asked_again_and_all_of_them_are_billed() -> None:
    endpoint = Endpoint(lambda _, n: completion("") if n < 2 else completion("at last"))
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            reply = await model.complete(ask())
    assert reply.text == "at last"
    assert (reply.attempts, reply.usage.prompt, reply.usage.completion) == (3, 21, 9)


async def test_a_billed_answer_is_not_lost_when_the_endpoint_breaks_afterwards() -> None:
    endpoint = Endpoint(lambda _, n: completion("") if n == 0 else refusal(503, "down"))
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            reply = await model.complete(ask())
    assert (reply.outcome, reply.usage.prompt, reply.attempts) == ("empty", 7, 3)


async def test_a_rate_limit_without_end_is_given_up_after_three_attempts() -> None:
    endpoint = Endpoint(lambda *_: refusal(429, "slow down"))
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            with pytest.raises(RateLimited) as caught:
                await model.complete(ask())
    assert caught.value.attempts == len(endpoint.bodies) == 3


@pytest.mark.parametrize("header", [{"retry-after": "0.4"}, {"retry-after-ms": "400"}])
async def test_retry_after_is_waited_for(header: dict[str, str]) -> None:
    endpoint = Endpoint(lambda _, n: refusal(429, "slow down", header) if n == 0 else completion())
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            started = time.monotonic()
            assert (await model.complete(ask())).text == "ok"
    assert 0.4 <= time.monotonic() - started < 5


async def test_a_wait_of_hours_is_reported_at_once() -> None:
    endpoint = Endpoint(lambda *_: refusal(429, "daily limit", {"retry-after": "7200"}))
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            with pytest.raises(RateLimited):
                await model.complete(ask())
    assert len(endpoint.bodies) == 1


@pytest.mark.parametrize(
    "answer", [refusal(429, "You exceeded your current quota", code="insufficient_quota"), refusal(402, "no credit left")]
)
async def test_an_empty_account_is_not_asked_twice(answer: Response) -> None:
    endpoint = Endpoint(lambda *_: answer)
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            with pytest.raises(OutOfQuota, match="out of quota"):
                await model.complete(ask())
    assert len(endpoint.bodies) == 1


async def test_a_server_error_passes_and_a_wrong_key_does_not() -> None:
    endpoint = Endpoint(
        lambda body, n: refusal(401, "bad key") if body["messages"][1]["content"] == "key" else refusal(500, "oops")
    )
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            with pytest.raises(ProviderError, match="401: bad key; check the API key"):
                await model.complete(ask("key"))
            assert len(endpoint.bodies) == 1
            with pytest.raises(ProviderError, match="500: oops"):
                await model.complete(ask())
    assert len(endpoint.bodies) == 4


async def test_a_silent_endpoint_is_not_asked_twice_since_both_answers_might_be_billed() -> None:
    async def silent() -> Response:
        await asyncio.sleep(1)
        return Response("{}")

    endpoint = Endpoint(lambda *_: silent())
    with on_loopback(endpoint.app()) as url:
        model = OpenAIModel(client(url, timeout=openai.Timeout(0.2)), "m", Patience(AdaptiveLimit(), 0.01))
        with pytest.raises(TimedOut) as caught:
            await model.complete(ask())
        await model.close()
    assert (len(endpoint.bodies), caught.value.unmetered) == (1, 1)


async def test_nobody_there_is_a_lost_connection_and_nothing_is_owed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with connected(f"http://127.0.0.1:{port}") as model:
        with pytest.raises(ConnectionLost) as caught:
            await model.complete(ask())
    assert (caught.value.attempts, caught.value.unmetered) == (3, 0)


@pytest.mark.parametrize(
    "events",
    [
        'data: {"choices":[{"index":0,"delta":{"content":"half"}}]}\n\n',
        'data: {"choices":[{"index":0,"delta":{"content":"half"}}]}\n\ndata: [DONE]\n\n',
        'data: {"choices":[{"index":0,"delta":{"content":"half"}}]}\n\ndata: {"error":{"message":"overloaded","code":529}}\n\n',
        "data: {broken\n\n",
    ],
)
async def test_a_stream_that_ends_without_a_finish_is_no_answer(events: str) -> None:
    def answer(_: Body, n: int) -> Any:
        return StreamingResponse(iter([events]), media_type="text/event-stream") if n == 0 else completion("whole")

    endpoint = Endpoint(answer)
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            reply = await model.complete(ask())
    assert (reply.text, reply.attempts, reply.unmetered) == ("whole", 2, 1)


async def test_a_stream_that_hides_its_tokens_is_given_up_for_a_body_that_tells_them() -> None:
    whole = 'data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

    def answer(body: Body, _: int) -> Any:
        return StreamingResponse(iter([whole]), media_type="text/event-stream") if body.get("stream") else completion()

    endpoint = Endpoint(answer)
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            replies = [await model.complete(ask(str(n))) for n in range(3)]
    assert [reply.text for reply in replies] == ["ok"] * 3
    assert [reply.unmetered for reply in replies] == [1, 0, 0]
    assert ["stream" in body for body in endpoint.bodies] == [True, False, False]


async def test_a_page_of_html_is_a_provider_error() -> None:
    endpoint = Endpoint(lambda *_: Response("<html>login</html>", media_type="text/html"))
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            with pytest.raises(ProviderError, match="check its base URL"):
                await model.complete(ask())


async def test_calls_of_tools_come_out_whole_from_a_stream_in_pieces() -> None:
    pieces = [
        '{"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"c1","function":{"name":"find","arguments":""}}]}}]}',
        '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\\"id\\""}}]}}]}',
        '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":": 3}"}}]}}]}',
        '{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c2","function":{"name":"list","arguments":"{}"}}]}}]}',
        '{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}',
        '{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":4}}}',
        "[DONE]",
    ]
    endpoint = Endpoint(lambda *_: StreamingResponse((f"data: {piece}\n\n" for piece in pieces), media_type="text/event-stream"))
    tool = ToolSpec(name="find", description="Find it.", parameters={"type": "object"})
    with on_loopback(endpoint.app()) as url:
        async with connected(url) as model:
            reply = await model.complete(ask(tools=(tool,)))
    assert [(call.id, call.name, call.arguments) for call in reply.tool_calls] == [
        ("c1", "find", '{"id": 3}'),
        ("c2", "list", "{}"),
    ]
    assert (reply.text, reply.usage.cached, reply.usage.completion, reply.unmetered) == ("", 4, 9, 0)
    assert endpoint.bodies[0]["tools"][0]["function"]["name"] == "find"
