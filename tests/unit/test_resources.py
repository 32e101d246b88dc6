from pathlib import Path

import pytest

from awm_factory import resources
from awm_factory.errors import ConfigError

CHECKOUT = Path(__file__).parents[2]


def test_a_checkout_is_found_and_its_files_are_used() -> None:
    assert resources.checkout() == CHECKOUT
    assert (resources.templates() / "image" / "Dockerfile.j2").is_file()
    assert (resources.images() / "base" / "Dockerfile").is_file()
    assert (resources.compose() / "registry.yaml").is_file()


def test_the_runtimes_sources_are_found() -> None:
    assert (resources.runtime_package() / "contract.py").is_file()


def test_a_missing_folder_is_an_error_that_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "_DATA", tmp_path)
    with pytest.raises(ConfigError, match=r"templates is missing .* install awm-factory again"):
        resources.templates()
