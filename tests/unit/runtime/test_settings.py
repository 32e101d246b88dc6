import pytest

from awm_runtime.settings import Settings, SettingsError


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOST", "PORT", "AGENT_PORT", "AWM_TOKEN", "AWM_TTL", "AWM_WORKERS"):
        monkeypatch.delenv(name, raising=False)


def test_the_ports_are_the_contracts_unless_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (Settings.read().port, Settings.read().agent_port) == (8000, 8001)
    monkeypatch.setenv("PORT", "9000")
    monkeypatch.setenv("AGENT_PORT", "9001")
    assert (Settings.read().port, Settings.read().agent_port) == (9000, 9001)


def test_a_value_that_is_no_number_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "http")
    with pytest.raises(SettingsError, match="PORT='http'"):
        Settings.read()


def test_outside_a_container_it_listens_on_loopback_inside_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("awm_runtime.settings.in_container", lambda: False)
    assert Settings.read().host == "127.0.0.1"
    monkeypatch.setattr("awm_runtime.settings.in_container", lambda: True)
    assert Settings.read().host == "0.0.0.0"
    monkeypatch.setenv("HOST", "::")
    assert Settings.read().host == "::"


def test_an_empty_token_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWM_TOKEN", "")
    assert Settings.read().token is None
