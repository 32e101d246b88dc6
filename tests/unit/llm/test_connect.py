from pathlib import Path

import pytest

from awm_factory.config import ModelConfig
from awm_factory.errors import ConfigError
from awm_factory.llm.connect import connect_embedder, connect_model
from awm_factory.llm.prices import Prices

OPENAI = {"OPENAI_API_KEY": "sk-secret", "AWM_SYN_OVERRIDE_MODEL": "gpt-5"}
AZURE = {"AWM_SYN_LLM_PROVIDER": "azure", "AZURE_ENDPOINT_URL": "https://x.example", "AZURE_OPENAI_API_KEY": "k"}


def test_awms_variables_are_read_and_options_win() -> None:
    config = ModelConfig.load(OPENAI | {"OPENAI_BASE_URL": "http://host/v1", "AWM_PRICES": "p.toml", "OPENAI_API_VERSION": ""})
    assert (config.provider, config.model, config.base_url, config.prices) == (
        "openai",
        "gpt-5",
        "http://host/v1",
        Path("p.toml"),
    )
    assert ModelConfig.load(OPENAI, model="other").model == "other"
    azure = ModelConfig.load(OPENAI | AZURE)
    assert azure.api_key is not None
    assert (azure.base_url, azure.api_key.get_secret_value()) == ("https://x.example", "k")


def test_keys_are_never_shown() -> None:
    assert "secret" not in repr(ModelConfig.load(OPENAI))
    with pytest.raises(ConfigError, match="AWM_SYN_LLM_PROVIDER: Input should be 'openai' or 'azure'"):
        ModelConfig.load(OPENAI | {"AWM_SYN_LLM_PROVIDER": "other"})


def test_a_key_alone_spends_nothing() -> None:
    with pytest.raises(ConfigError, match="no model is named"):
        connect_model(ModelConfig.load({"OPENAI_API_KEY": "sk-secret"}), Prices.load())


@pytest.mark.parametrize(
    ("environ", "cause"),
    [
        ({"AWM_SYN_OVERRIDE_MODEL": "gpt-5"}, "no endpoint is set"),
        ({"AWM_SYN_OVERRIDE_MODEL": "d", "AWM_SYN_LLM_PROVIDER": "azure"}, "needs AZURE_ENDPOINT_URL and AZURE_OPENAI_API_KEY"),
        (OPENAI | {"OPENAI_BASE_URL": "127.0.0.1:8000"}, "no address of an endpoint"),
    ],
)
def test_an_endpoint_must_be_meant(environ: dict[str, str], cause: str) -> None:
    with pytest.raises(ConfigError, match=cause):
        connect_model(ModelConfig.load(environ), Prices.load())


def test_a_known_models_limit_is_taken_along_and_the_sdk_does_not_retry() -> None:
    model = connect_model(ModelConfig.load({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, model="gpt-4o"), Prices.load())
    assert model.dialect.most_tokens == 16384
    assert model._client.max_retries == 0
    assert str(model._client.base_url) == "http://127.0.0.1:1/v1/"


def test_embeddings_need_an_endpoint_of_their_own() -> None:
    assert connect_embedder(ModelConfig.load(OPENAI)) is None
    own = {"EMBEDDING_OPENAI_BASE_URL": "http://host/v1", "EMBEDDING_OPENAI_API_KEY": "k"}
    embedder = connect_embedder(ModelConfig.load(own))
    assert embedder is not None
    assert embedder.name == "text-embedding-3-large"
