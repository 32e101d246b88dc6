"""From settings to models. The only place where clients of endpoints are made."""

from typing import Final
from urllib.parse import urlsplit

import openai

from awm_factory.config import ModelConfig
from awm_factory.errors import ConfigError
from awm_factory.llm.openai_model import TIMEOUT, Client, OpenAIEmbedder, OpenAIModel
from awm_factory.llm.patience import AT_ONCE, AdaptiveLimit, Patience
from awm_factory.llm.prices import Prices

OPENAI: Final = "https://api.openai.com/v1"
"""Said outright, or the SDK would look for an address in the environment on its own."""


def connect_model(config: ModelConfig, prices: Prices, at_once: int = AT_ONCE) -> OpenAIModel:
    """Sends nothing yet. Raises ConfigError where no model is named, or no endpoint can be meant."""
    if config.model is None:
        raise ConfigError("no model is named, and a key alone spends nothing; name one by --model or AWM_SYN_OVERRIDE_MODEL")
    patience = Patience(AdaptiveLimit(at_once))
    return OpenAIModel(_client(config), config.model, patience, prices.facts(config.model).most_tokens)


def connect_embedder(config: ModelConfig, at_once: int = AT_ONCE) -> OpenAIEmbedder | None:
    """None where no endpoint for embeddings is set: a chat endpoint's key says nothing about them."""
    if config.embedding_api_key is None and config.embedding_base_url is None:
        return None
    key = config.embedding_api_key.get_secret_value() if config.embedding_api_key else "none"
    client = openai.AsyncOpenAI(api_key=key, base_url=_http(config.embedding_base_url) or OPENAI, max_retries=0, timeout=TIMEOUT)
    return OpenAIEmbedder(client, config.embedding_model, Patience(AdaptiveLimit(at_once)))


def _client(config: ModelConfig) -> Client:
    key = config.api_key.get_secret_value() if config.api_key else None
    base_url = _http(config.base_url)
    if config.provider == "azure":
        if base_url is None or key is None:
            raise ConfigError("the provider azure needs AZURE_ENDPOINT_URL and AZURE_OPENAI_API_KEY; set both")
        return openai.AsyncAzureOpenAI(
            azure_endpoint=base_url, api_key=key, api_version=config.api_version, max_retries=0, timeout=TIMEOUT
        )
    if key is None and base_url is None:
        raise ConfigError("no endpoint is set: OPENAI_API_KEY for OpenAI, OPENAI_BASE_URL for any other; set one of them")
    # The SDK insists on a key, a server on loopback doesn't.
    return openai.AsyncOpenAI(api_key=key or "none", base_url=base_url or OPENAI, max_retries=0, timeout=TIMEOUT)


def _http(url: str | None) -> str | None:
    if url is not None and (urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname):
        raise ConfigError(f"{url!r} is no address of an endpoint; write it as http://host:port/v1")
    return url
