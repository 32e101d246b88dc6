"""Settings, read once by the CLI and passed down. The only module of the host side that looks at the environment.

Each setting is an environment variable `AWM_<FIELD>`; options of the command line win over it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import platformdirs
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from awm_factory import resources
from awm_factory.errors import ConfigError

PREFIX: Final = "AWM_"
BaseOs = Literal["auto", "hub", "debian"]
PLATFORMS: Final = ("linux/amd64", "linux/arm64")


def _platform(value: object) -> object:
    """`arm64`, `linux/aarch64` and the like as the engine writes them."""
    if not isinstance(value, str):
        return value
    machine = value.strip().lower().removeprefix("linux/").removesuffix("/v8")
    return {"x86_64": "linux/amd64", "amd64": "linux/amd64", "aarch64": "linux/arm64", "arm64": "linux/arm64"}.get(machine, value)


Platform = Annotated[Literal["linux/amd64", "linux/arm64"], BeforeValidator(_platform)]


def _workspace() -> Path:
    return resources.checkout() or Path.cwd()


def _cache() -> Path:
    root = resources.checkout()
    return root / ".build" if root else platformdirs.user_cache_path("awm-factory")


def _os_lock() -> Path:
    return resources.images() / "base" / "os.lock" if resources.checkout() else _cache() / "os.lock"


class Config(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    workspace: Path = Field(default_factory=_workspace)
    """Folder that holds registry/ and images/<env_id>/: the checkout, or where a user of the wheel stands."""
    cache: Path = Field(default_factory=_cache)
    """What can be made again: wheelhouse, OS archive, logs. `.build` in a checkout, else the user's cache folder."""
    os_lock: Path = Field(default_factory=_os_lock)
    """File that pins the OS image: beside the base image's Dockerfile in a checkout, in the cache of an installed wheel."""
    jobs: int = Field(default_factory=lambda: max(1, min(8, os.cpu_count() or 1)), ge=1, le=64)
    """Environments verified and built side by side."""
    base_os: BaseOs = "auto"
    """OS image under the base image: from the hub, made with mmdebstrap, or the first of the two that can be had."""
    os_image: str = "python:3.13-slim-trixie"
    """Reference of the hub's OS image; another registry's copy of it may stand here. It must hold Python 3.13 as python3."""
    platform: Platform | None = None
    """Platform of the images; None for the engine's own."""
    debian_mirror: str | None = None
    """Mirror that mmdebstrap takes trixie from; None for the one this machine's apt uses, as below."""
    debian_security_mirror: str | None = None
    docker_host: str | None = None
    """Address of the engine; None to look for it. Also read from `DOCKER_HOST`, as every Docker client does."""

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None, **options: Any) -> Self:
        """From the environment, with the options that are not None laid over it. Empty variables count as unset.

        Raises ConfigError that names the variable or option at fault.
        """
        env = os.environ if environ is None else environ
        values: dict[str, Any] = {}
        if host := env.get("DOCKER_HOST"):
            values["docker_host"] = host
        for field in cls.model_fields:
            if value := env.get(PREFIX + field.upper()):
                values[field] = value
        values |= {name: value for name, value in options.items() if value is not None}
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            name = str(first["loc"][0])
            raise ConfigError(
                f"{name} (environment variable {PREFIX}{name.upper()}) is {values[name]!r}: {first['msg']}; correct or unset it"
            ) from error


class ModelConfig(BaseModel):
    """Which language models are used, by the environment variables of AWM's own tools, and where they are."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    provider: Literal["openai", "azure"] = "openai"
    """`AWM_SYN_LLM_PROVIDER`. `openai` is any endpoint that speaks the OpenAI API."""
    model: str | None = None
    """`AWM_SYN_OVERRIDE_MODEL`; Azure's deployment. No default: a key alone spends nothing."""
    api_key: SecretStr | None = None
    """`OPENAI_API_KEY`, or `AZURE_OPENAI_API_KEY` with the provider azure."""
    base_url: str | None = None
    """`OPENAI_BASE_URL`, or `AZURE_ENDPOINT_URL`; None for OpenAI itself."""
    api_version: str = "2025-04-01-preview"
    """`OPENAI_API_VERSION`; Azure alone wants one."""
    embedding_model: str = "text-embedding-3-large"
    """`EMBEDDING_OPENAI_MODEL`; AWM's."""
    embedding_api_key: SecretStr | None = None
    """`EMBEDDING_OPENAI_API_KEY`."""
    embedding_base_url: str | None = None
    """`EMBEDDING_OPENAI_BASE_URL`. Without it and the key, embeddings are made here."""
    prices: Path | None = None
    """`AWM_PRICES`: a table that wins over ours; see docs/models.md."""

    @classmethod
    def load(cls, environ: Mapping[str, str] | None = None, **options: Any) -> Self:
        """From the environment, with the options that are not None laid over it. Empty variables count as unset.

        Raises ConfigError that names the variable at fault, and never shows a key.
        """
        env = os.environ if environ is None else environ
        azure = (options.get("provider") or env.get("AWM_SYN_LLM_PROVIDER")) == "azure"
        variables = {
            "provider": "AWM_SYN_LLM_PROVIDER",
            "model": "AWM_SYN_OVERRIDE_MODEL",
            "api_key": "AZURE_OPENAI_API_KEY" if azure else "OPENAI_API_KEY",
            "base_url": "AZURE_ENDPOINT_URL" if azure else "OPENAI_BASE_URL",
            "api_version": "OPENAI_API_VERSION",
            "embedding_model": "EMBEDDING_OPENAI_MODEL",
            "embedding_api_key": "EMBEDDING_OPENAI_API_KEY",
            "embedding_base_url": "EMBEDDING_OPENAI_BASE_URL",
            "prices": "AWM_PRICES",
        }
        values: dict[str, Any] = {field: env[variable] for field, variable in variables.items() if env.get(variable)}
        values |= {name: value for name, value in options.items() if value is not None}
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            raise ConfigError(
                f"{variables.get(str(first['loc'][0]), first['loc'][0])}: {first['msg']}; correct or unset it"
            ) from error


def point_to_engine(host: str) -> None:
    """Make libraries that look for the engine themselves (testcontainers, the docker command) use the one we found.

    Needed where the address came from a Docker context or a socket in the home folder, which they don't all look at.
    """
    os.environ["DOCKER_HOST"] = host
    os.environ.pop("DOCKER_CONTEXT", None)


def docker_context() -> str | None:
    """Name in `DOCKER_CONTEXT`, which wins over the context that the Docker configuration names."""
    return os.environ.get("DOCKER_CONTEXT") or None


def runtime_folder() -> Path | None:
    """`XDG_RUNTIME_DIR`, where a rootless engine keeps its socket."""
    value = os.environ.get("XDG_RUNTIME_DIR")
    return Path(value) if value else None
