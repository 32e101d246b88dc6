"""Any endpoint that speaks the OpenAI API, Azure's included, as a `Model` and as an `Embedder`.

Answers are streamed, so that no proxy cuts a connection which is silent for minutes and a long answer is never billed twice; an
endpoint that answers with one JSON body all the same is understood. The SDK's own retries are off: see `patience.py`.
"""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, Final, cast

import httpx2
import openai

from awm_factory.errors import ConnectionLost, ModelError, ProviderError, TimedOut
from awm_factory.llm.dialect import Dialect, Fault
from awm_factory.llm.patience import AdaptiveLimit, Patience, Tally
from awm_factory.llm.protocol import EmbeddingReply, EmbeddingRequest, ModelReply, ModelRequest, Usage
from awm_factory.llm.wire import Answer, failure, filtered, reached

SILENCE: Final = 1800.0
"""Seconds without a byte before an answer is given up: reasoning models think for minutes before the first."""
TIMEOUT: Final = openai.Timeout(SILENCE, connect=30.0)
REQUEST_HEADER: Final = "x-awm-request"
"""What an endpoint's dialect leaves out of the body; the stub server finds recordings by it, other endpoints ignore it."""
_TEXTS_AT_ONCE: Final = 512

Client = openai.AsyncOpenAI | openai.AsyncAzureOpenAI


class OpenAIModel:
    def __init__(self, client: Client, model: str, patience: Patience | None = None, most_tokens: int | None = None) -> None:
        """`client` must have `max_retries=0`; `most_tokens` is the model's longest answer, where it is known."""
        self._client = client
        self._model = model
        self._patience = patience or Patience(AdaptiveLimit())
        self.dialect = Dialect(most_tokens=most_tokens)

    @property
    def name(self) -> str:
        return self._model

    async def complete(self, request: ModelRequest) -> ModelReply:
        billed: list[Usage] = []

        async def send(tally: Tally) -> ModelReply:
            reply = await self._attempt(request, tally)
            billed.append(reply.usage)
            return reply

        try:
            reply, tally = await self._patience.call(send, lambda reply: reply.outcome in {"empty", "no_choices"})
        except ModelError as error:
            if not billed:
                raise
            # An answer was paid for before the attempts ran out: it is the outcome, or its tokens would be in no ledger.
            outcome = ModelReply(model=self._model, outcome="empty", detail=str(error))
            return _totalled(outcome, billed, error.attempts, error.unmetered, 0.0)
        return _totalled(reply, billed, tally.attempts, tally.unmetered, tally.seconds)

    async def close(self) -> None:
        await self._client.close()

    async def _attempt(self, request: ModelRequest, tally: Tally) -> ModelReply:
        unsaid = request.model_dump(mode="json", include={"max_tokens", "temperature", "sample", "purpose"})
        headers = {REQUEST_HEADER: json.dumps(unsaid)}
        while True:
            params = self.dialect.params(self._model, request)
            async with AsyncExitStack() as stack:
                try:
                    if self.dialect.is_proven(params):
                        response = await self._open(stack, params, headers, tally)
                    else:
                        async with self.dialect.probing:
                            params = self.dialect.params(self._model, request)
                            response = await self._open(stack, params, headers, tally)
                            self.dialect.prove(params)
                except openai.APIStatusError as error:
                    if reply := filtered(error, self._model):
                        return reply
                    refused = error.status_code in {400, 422}
                    if refused and self.dialect.learn(Fault.read(error.body or error.message), params):
                        continue
                    raise failure(error) from error
                except openai.OpenAIError as error:
                    tally.unmetered += reached(error)
                    raise failure(error) from error
                return await self._read(response, tally)

    async def _open(self, stack: AsyncExitStack, params: dict[str, Any], headers: dict[str, str], tally: Tally) -> Any:
        """The response, its headers received and its body not."""
        tally.attempts += 1
        create = cast(Any, self._client.chat.completions.with_streaming_response.create)
        return await stack.enter_async_context(create(**params, extra_headers=headers))

    async def _read(self, response: Any, tally: Tally) -> ModelReply:
        answer = Answer()
        streamed = "text/event-stream" in response.headers.get("content-type", "")
        try:
            if streamed:
                stream = await response.parse(to=openai.AsyncStream[object])
                async for chunk in cast(AsyncIterator[object], stream):
                    answer.feed(chunk)
            else:
                answer.feed(_json(await response.text()))
        except openai.OpenAIError as error:
            tally.unmetered += 1
            raise failure(error) from error
        except httpx2.TimeoutException as error:
            tally.unmetered += 1
            raise TimedOut("the answer stopped in the middle until the time limit; ask for less at once") from error
        except (httpx2.HTTPError, json.JSONDecodeError) as error:
            tally.unmetered += 1
            raise ConnectionLost(f"the answer broke off or can't be read ({error}); try again") from error
        if streamed and answer.begun and answer.finish is None:
            tally.unmetered += 1
            raise ConnectionLost("the endpoint ended its answer without saying that it was complete; try again")
        if answer.usage is None:
            tally.unmetered += 1
            if streamed:
                self.dialect.without_stream()
        return answer.reply(self._model)


class OpenAIEmbedder:
    def __init__(self, client: Client, model: str, patience: Patience | None = None) -> None:
        self._client = client
        self._model = model
        self._patience = patience or Patience(AdaptiveLimit())

    @property
    def name(self) -> str:
        return self._model

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        vectors: list[tuple[float, ...]] = []
        usage, attempts, unmetered, latency = Usage(), 0, 0, 0.0
        for start in range(0, len(request.texts), _TEXTS_AT_ONCE):
            texts = request.texts[start : start + _TEXTS_AT_ONCE]
            part, tally = await self._patience.call(partial(self._attempt, texts, request.dimensions), lambda _: False)
            vectors += part.vectors
            usage += part.usage
            attempts, unmetered, latency = attempts + tally.attempts, unmetered + tally.unmetered, latency + tally.seconds
        return EmbeddingReply(
            model=self._model, vectors=tuple(vectors), usage=usage, attempts=attempts, unmetered=unmetered, latency=latency
        )

    async def close(self) -> None:
        await self._client.close()

    async def _attempt(self, texts: tuple[str, ...], dimensions: int | None, tally: Tally) -> EmbeddingReply:
        tally.attempts += 1
        extra = {} if dimensions is None else {"dimensions": dimensions}
        try:
            reply = await self._client.embeddings.create(input=list(texts), model=self._model, **cast(Any, extra))
        except openai.OpenAIError as error:
            tally.unmetered += reached(error) and not isinstance(error, openai.APIStatusError)
            raise failure(error) from error
        except (ValueError, TypeError) as error:
            raise ProviderError(f"the endpoint's embeddings can't be read: {error}; check its base URL", 502) from error
        vectors = [tuple(item.embedding) for item in sorted(reply.data or [], key=lambda item: item.index)]
        if len(vectors) != len(texts):
            raise ProviderError(f"the endpoint answered {len(vectors)} vectors for {len(texts)} texts; try again", 502)
        usage = Usage(prompt=reply.usage.prompt_tokens if reply.usage else 0)
        return EmbeddingReply(model=reply.model or self._model, vectors=tuple(vectors), usage=usage)


def _totalled(reply: ModelReply, billed: list[Usage], attempts: int, unmetered: int, seconds: float) -> ModelReply:
    usage = sum(billed, Usage())
    return reply.model_copy(update={"usage": usage, "attempts": attempts, "unmetered": unmetered, "latency": seconds})


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text
