from pathlib import Path

import pytest

from awm_factory.config import Config
from awm_factory.errors import ConfigError


def test_nothing_set_gives_the_checkout_and_an_engine_to_be_found() -> None:
    config = Config.load({})
    assert config.workspace == Path(__file__).parents[2]
    assert config.cache == config.workspace / ".build"
    assert config.os_lock == config.workspace / "images" / "base" / "os.lock"
    assert (config.base_os, config.platform, config.docker_host) == ("auto", None, None)


def test_variables_are_read_and_options_win_over_them() -> None:
    environ = {"AWM_JOBS": "3", "AWM_BASE_OS": "debian", "DOCKER_HOST": "tcp://127.0.0.1:1", "AWM_OS_IMAGE": ""}
    config = Config.load(environ, base_os="hub", workspace=None)
    assert (config.jobs, config.base_os, config.docker_host) == (3, "hub", "tcp://127.0.0.1:1")
    assert config.os_image == "python:3.13-slim-trixie"


@pytest.mark.parametrize("written", ["arm64", "linux/arm64", "linux/aarch64", "AArch64", "linux/arm64/v8"])
def test_a_platform_may_be_written_as_people_do(written: str) -> None:
    assert Config.load({"AWM_PLATFORM": written}).platform == "linux/arm64"


@pytest.mark.parametrize(
    ("variable", "value"),
    [("AWM_PLATFORM", "windows/amd64"), ("AWM_BASE_OS", "alpine"), ("AWM_JOBS", "0"), ("AWM_JOBS", "many")],
)
def test_a_wrong_value_is_an_error_that_names_the_variable(variable: str, value: str) -> None:
    with pytest.raises(ConfigError, match=rf"{variable}\) is '{value}': .* correct or unset it"):
        Config.load({variable: value})
