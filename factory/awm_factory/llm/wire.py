"""From what an endpoint sends to a `ModelReply` or a `ModelError`. Nothing is taken on trust in a body with status 200."""

import email.utils
import time
from collections.abc import Mapping
from typing import Any, Final

import openai

from awm_factory.errors import ConnectionLost, ModelError, OutOfQuota, ProviderError, RateLimited, TimedOut
from awm_factory.llm.dialect import Fault
from awm_factory.llm.protocol import ModelReply, Outcome, ToolUse, Usage

_FINISHES: Final[dict[str, Outcome]] = {
    "length": "truncated",
    "max_tokens": "truncated",
    "model_length": "truncated",
    "content_filter": "filtered",
    "safety": "filtered",
}
"""Finish reasons that spoil an answer, with the spellings of proxies in front of other providers' models."""
_QUOTA: Final = ("insufficient_quota", "billing", "credit", "quota exceeded", "exceeded your current quota")


class Answer:
    """An answer put together from one body, or from the chunks of a stream."""

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.finish: str | None = None
        self._model = ""
        self._content: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._choices = 0

    def feed(self, body: object) -> None:
        """Raises ModelError where the body is an error in spite of its status."""
        if not isinstance(body, Mapping):
            raise ProviderError(f"the endpoint answered {str(body)[:200]!r} instead of a completion; check its base URL", 502)
        if body.get("error") and not body.get("choices"):
            raise from_fault(Fault.read(body), _status(body["error"]))
        self._model = str(body.get("model") or self._model)
        self._read_usage(body.get("usage"))
        choices = body.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, Mapping) and not choice.get("index"):
                self._read_choice(choice)

    @property
    def begun(self) -> bool:
        return self._choices > 0

    def reply(self, model: str) -> ModelReply:
        text = _whole("".join(self._content))
        refusal = _whole("".join(self._refusal))
        calls = tuple(ToolUse(**{name: _whole(value) for name, value in call.items()}) for _, call in sorted(self._calls.items()))
        outcome = _FINISHES.get((self.finish or "").lower(), "ok")
        if not self.begun:
            outcome = "no_choices"
        elif refusal:
            outcome = "refused"
        elif outcome == "ok" and not text.strip() and not calls:
            outcome = "empty"
        detail = refusal or (self.finish or "" if outcome == "filtered" else "")
        usage = self.usage or Usage()
        return ModelReply(model=self._model or model, outcome=outcome, raw=text, detail=detail, tool_calls=calls, usage=usage)

    def _read_choice(self, choice: Mapping[str, Any]) -> None:
        self._choices += 1
        self.finish = choice.get("finish_reason") or self.finish
        part = choice.get("message") or choice.get("delta")
        if not isinstance(part, Mapping):
            return
        content = part.get("content")
        if isinstance(content, list):
            content = "".join(str(piece.get("text") or "") for piece in content if isinstance(piece, Mapping))
        self._content.append(str(content or ""))
        self._refusal.append(str(part.get("refusal") or ""))
        for position, call in enumerate(part.get("tool_calls") or []):
            index = call.get("index")
            known = self._calls.setdefault(position if index is None else int(index), {"id": "", "name": "", "arguments": ""})
            function = call.get("function") or {}
            known["id"] = str(call.get("id") or known["id"])
            known["name"] += str(function.get("name") or "")
            known["arguments"] += str(function.get("arguments") or "")

    def _read_usage(self, usage: object) -> None:
        if isinstance(usage, Mapping):
            cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
            reasoning = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
            self.usage = Usage(
                prompt=int(usage.get("prompt_tokens") or 0),
                completion=int(usage.get("completion_tokens") or 0),
                cached=int(cached or 0),
                reasoning=int(reasoning or 0),
            )


def failure(error: openai.OpenAIError) -> ModelError:
    """What an exception of the SDK means. A refused parameter comes out as ProviderError with status 400 or 422."""
    if isinstance(error, openai.APITimeoutError):
        if not reached(error):
            return ConnectionLost("no connection to the endpoint within the time limit; check its address and that it is up")
        return TimedOut("no byte of the answer came within the time limit; ask for less at once, or check the endpoint")
    if isinstance(error, openai.APIConnectionError):
        return ConnectionLost(
            f"the connection to the endpoint failed ({error.__cause__ or error}); check its address and that it is up"
        )
    if isinstance(error, openai.APIStatusError):
        return from_fault(Fault.read(error.body or error.message), error.status_code, retry_after(error.response.headers))
    if isinstance(error, openai.APIError):
        return from_fault(Fault.read(error.body or error.message), _status(error.body))
    return ProviderError(f"the endpoint's answer can't be read: {error}; check its base URL", 502)


def reached(error: openai.OpenAIError) -> bool:
    """Whether the endpoint may have begun to answer, and to bill. The SDK folds all breaks into two types and keeps the cause."""
    return type(error.__cause__).__name__ not in {"ConnectError", "ConnectTimeout", "PoolTimeout"}


def from_fault(fault: Fault, status: int, wait: float | None = None) -> ModelError:
    words = f"{fault.code or ''} {fault.message}".lower()
    if status == 402 or (status in {403, 429} and any(sign in words for sign in _QUOTA)):
        return OutOfQuota(
            f"the account is out of quota: {fault.message}; top it up, or name another endpoint, and run the command again"
        )
    if status == 429 or fault.code in {"rate_limit_exceeded", "rate_limit_error"}:
        limited = RateLimited(f"the endpoint keeps refusing for its rate limit: {fault.message}; run the command again later")
        limited.retry_after = wait
        return limited
    advice = {
        401: "; check the API key",
        403: "; check the API key's rights",
        404: "; check the base URL and the model's name",
    }.get(status, "; try again later" if status >= 500 else "")
    error = ProviderError(f"the endpoint answered {status}: {fault.message}{advice}", status)
    error.retry_after = wait
    return error


def filtered(error: openai.APIError, model: str) -> ModelReply | None:
    """Azure refuses a prompt by its filter with status 400; that is an outcome like any other filter's."""
    fault = Fault.read(error.body)
    if fault.code == "content_filter" or "content management policy" in fault.message:
        return ModelReply(model=model, outcome="filtered", detail=fault.message)
    return None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds, from `retry-after-ms`, or `Retry-After` as a number or a date."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        value = headers.get("retry-after")
        if value is None:
            return None
        try:
            return max(0.0, float(value))
        except ValueError:
            return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _status(error: object) -> int:
    """HTTP-like status of an error inside a body. One that names none counts as the endpoint's own fault."""
    code = error.get("code", error.get("status")) if isinstance(error, Mapping) else None
    return int(str(code)) if str(code).isdigit() and 400 <= int(str(code)) <= 599 else 502


def _whole(text: str) -> str:
    """Half surrogate pairs, which JSON can spell and UTF-8 can't, become U+FFFD; nothing could store them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
