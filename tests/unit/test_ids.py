"""Names: what a scenario may be called, and what it is called everywhere else."""

import re
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from awm_factory.errors import UsageError
from awm_factory.ids import MAX_LENGTH, container_name, env_id, host_name, is_env_id

REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*\Z")
"""A path component of the distribution reference grammar."""
DNS_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\Z")
CONTAINER = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+\Z")
PLAIN = re.compile(r"[A-Za-z0-9]+(?:[ _][A-Za-z0-9]+)*\Z")

ODD_NAMES = [
    "Trains/Trams",
    "Trains Trams",
    "trains--trams",
    "図書館",
    "図書館 二号",
    "Пекарня «Тесто»",
    "Crème Brûlée Orders",
    "CRÈME BRÛLÉE ORDERS",
    "-rf now",
    "dots...and___bars",
    "B" * 200,
    "B" * 199 + "C",
    "parcel_desk_7",
    "parcel-desk-7",
    "shop (beta); v1.0 `id` $(id)",
    "latest",
    "nul",
    "Großmarkt 3",
    "GROSSMARKT 3",
    "façade",
    "fac̦ade",
    "snail 🐌 post",
    "🐌",
    "7",
    " leading and trailing ",
    "two  spaces",
]

names = st.text(min_size=1, max_size=80).filter(lambda text: not is_refused(text))


def is_refused(text: str) -> bool:
    try:
        env_id(text)
    except UsageError:
        return True
    return False


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Parcel Desk", "parcel_desk"),
        ("parcel_desk", "parcel_desk"),
        ("Parcel_Desk 33", "parcel_desk_33"),
        ("Parcel-Desk", "parcel_desk_c7387fbc"),
        ("🐌", "env_1de02dc0"),
        ("B" * 63, "b" * 63),
        ("B" * 64, "b" * 54 + "_c422e707"),
    ],
)
def test_plain_names_take_awms_form_and_all_others_a_hash(name: str, expected: str) -> None:
    assert env_id(name) == expected


def test_names_of_many_kinds_never_share_an_id() -> None:
    assert len({env_id(name) for name in ODD_NAMES}) == len(ODD_NAMES)


@pytest.mark.parametrize("name", ["", "  ", ".", "..", "\n", "\u200b", "\u00a0"])
def test_names_that_hold_nothing_to_see_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match="holds nothing to name an environment by"):
        env_id(name)


def test_half_a_character_is_refused_with_a_message_of_ours() -> None:
    with pytest.raises(UsageError, match="not valid Unicode"):
        env_id("cut \ud83d")


@settings(deadline=None)
@given(names)
@example("X")
@example("B" * 200)
@example("-rf now")
@example("$(id)")
def test_every_name_is_valid_wherever_it_is_used(name: str) -> None:
    env = env_id(name)
    assert is_env_id(env)
    assert REPOSITORY.match(env)
    assert len(f"awm/{env}") <= 255
    assert DNS_LABEL.match(host_name(env))
    assert CONTAINER.match(container_name(env))
    assert not env.startswith((".", "-"))
    assert "/" not in env
    assert len(f"{env}.db".encode()) <= 255


@settings(deadline=None)
@given(names, names)
@example("Trains/Trams", "Trains Trams")
@example("Trains/Trams", "Trains\\Trams")
@example("Été", "été")
@example("B" * 200, "B" * 199 + "C")
@example("ab ", "ab")
def test_different_names_share_no_id_unless_they_are_spellings_of_one(one: str, other: str) -> None:
    assume(not same_scenario(one, other))
    assert env_id(one) != env_id(other)


def same_scenario(one: str, other: str) -> bool:
    if PLAIN.match(one) and PLAIN.match(other) and max(len(one), len(other)) <= MAX_LENGTH:
        return one.lower().replace(" ", "_") == other.lower().replace(" ", "_")
    return unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)


@settings(deadline=None)
@given(names)
def test_an_env_ids_own_env_id_is_itself_and_composed_spellings_are_one(name: str) -> None:
    assert env_id(env_id(name)) == env_id(name)
    assert env_id(unicodedata.normalize("NFD", name)) == env_id(unicodedata.normalize("NFC", name))


def test_a_name_has_the_same_id_in_another_process() -> None:
    code = "import sys; from awm_factory.ids import env_id; print([env_id(name) for name in eval(sys.stdin.read())])"
    for seed in ("0", "1"):
        output = subprocess.run(
            [sys.executable, "-c", code],
            input=repr(ODD_NAMES),
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "PYTHONIOENCODING": "utf-8"},
        ).stdout
        assert output.strip() == repr([env_id(name) for name in ODD_NAMES])


@pytest.mark.parametrize("text", ["", "A", "a__b", "_a", "a_", "a-b", "a b", "a" * 64, "a\n", "é"])
def test_is_env_id_knows_what_is_none(text: str) -> None:
    assert not is_env_id(text)
