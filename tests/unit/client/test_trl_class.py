"""The class that TRL's `environment_factory` reads, looked at as TRL does, on environments that are only told."""

import inspect
from typing import Any, ClassVar, Literal, Optional, Union, get_type_hints

import pytest

from awm_factory.client import CallResult, EpisodeLost, InfrastructureFault, MalformedCall, Tool, UsageError, Verdict, trl
from awm_factory.client.trl import environment

TOOLS = [
    Tool(
        "move",
        "Move a box.\n\nReturns: where it is.",
        {
            "type": "object",
            "properties": {
                "from": {"type": "string", "description": "Where it is\nnow (choices: see list)", "maxLength": 9},
                "box-id": {"type": "integer", "minimum": 1},
                "box_id": {"type": ["integer", "null"], "default": None},
                "how": {"enum": ["fast", "slow"], "type": "string", "default": "slow"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "self": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                "1st": {"type": "object"},
                "any": {},
            },
            "required": ["from", "box-id"],
        },
    ),
    Tool("reset", "", {"type": "object"}),
    Tool("_hidden", "Hidden.", {"type": "object", "properties": {}}),
    Tool("get-it", "Get it.", {"type": "object", "properties": {}}),
]


class Fake:
    """An `AwmEnv` that notes what happens to it."""

    log: ClassVar[list[Any]] = []
    verdict: Any = Verdict(mode="code", classification="complete", reward=1.0)
    result: Any = CallResult("moved")
    refused: Exception | None = None

    @classmethod
    def connect(cls, url: str, *, token: str | None = None) -> "Fake":
        cls.log.append(("connect", url, token))
        return cls()

    def __enter__(self) -> "Fake":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def reset(self, task_id: int | None = None) -> str | None:
        if self.refused is not None:
            raise self.refused
        self.log.append(("reset", task_id))
        return self.instruction

    instruction = "Move the box."

    def tools(self) -> list[Tool]:
        return TOOLS

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        self.log.append((tool, arguments))
        return told(self.result)

    def submit(self) -> Any:
        return told(self.verdict)

    def close(self) -> None:
        self.log.append("close")


def told(outcome: Any) -> Any:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(trl, "AwmEnv", Fake)
    for name in ("verdict", "result", "refused"):
        monkeypatch.setattr(Fake, name, getattr(Fake, name))
    monkeypatch.setattr(Fake, "log", [])
    return environment("yard", url="http://here", token="t")


def test_nothing_is_public_but_reset_get_reward_and_a_method_a_tool(made: Any) -> None:
    public = {name for name, _ in inspect.getmembers(made, inspect.isfunction) if not name.startswith("_")}
    assert public == {"reset", "get_reward", "move", "reset_", "hidden", "get-it"}
    assert made.__name__ == "yard"


def test_parameters_that_python_can_not_name_are_mapped_there_and_back(made: Any) -> None:
    instance = made()
    assert list(inspect.signature(instance.move).parameters) == [
        "from_", "box_id", "box_id_", "how", "tags", "self_", "p1st", "any",
    ]  # fmt: skip
    instance.reset(task_id=0)
    assert instance.move(from_="A", box_id=3, p1st={}, made_up=1) == "moved"
    assert Fake.log[-1] == ("move", {"from": "A", "box-id": 3, "1st": {}, "made_up": 1})


def test_types_say_what_the_schema_says(made: Any) -> None:
    hints = get_type_hints(made().move)
    assert hints == {
        "from_": str,
        "box_id": int,
        "box_id_": Optional[int],  # noqa: UP045
        "how": Optional[Literal["fast", "slow"]],  # noqa: UP045
        "tags": Optional[list[str]],  # noqa: UP045
        "self_": Union[float, None],  # noqa: UP007
        "p1st": Optional[dict],  # noqa: UP045
        "any": Optional[Any],  # noqa: UP045
        "return": str,
    }
    defaults = {name: one.default for name, one in inspect.signature(made().move).parameters.items()}
    assert (defaults["from_"], defaults["how"], defaults["tags"]) == (inspect.Parameter.empty, "slow", None)


def test_the_docstring_is_googles_whatever_the_description_holds(made: Any) -> None:
    text = inspect.getdoc(made().move) or ""
    head, _, arguments = text.partition("\n\nArgs:\n")
    assert head == "Move a box.\n\nReturns - where it is."
    lines = arguments.splitlines()
    assert lines[0] == '    from_: Where it is now (choices: see list) {"maxLength": 9}'
    assert lines[1] == '    box_id: {"minimum": 1}'
    assert len(lines) == 8


def test_an_episode_is_held_from_reset_to_get_reward_and_never_by_a_probe(made: Any) -> None:
    assert Fake.log == [("connect", "http://here", "t"), ("reset", None), "close"]
    Fake.log.clear()
    instance = made()
    assert Fake.log == []
    assert instance.reset(task_id=3, prompt=[{"role": "user", "content": ""}]) == "Move the box."
    assert instance.get_reward() == 1.0
    assert Fake.log == [("connect", "http://here", "t"), ("reset", 3), "close"]
    assert instance.get_reward() is None
    instance.reset(task_id=1)
    instance.reset(task_id=2)
    assert Fake.log[3:] == [("connect", "http://here", "t"), ("reset", 1), "close", ("connect", "http://here", "t"), ("reset", 2)]


def test_an_instruction_that_the_prompt_holds_already_is_not_said_twice(made: Any) -> None:
    assert made().reset(task_id=0, prompt=[{"role": "user", "content": "Move the box."}]) is None


def test_what_must_be_masked_has_no_reward_and_ends_no_run(made: Any) -> None:
    instance = made()
    for verdict in (
        Verdict(mode="code", error="KeyError"),
        Verdict(mode="code", classification="others", reward=0.0, internal_errors=1),
        InfrastructureFault("gone"),
    ):
        Fake.verdict = verdict
        instance.reset(task_id=0)
        assert instance.get_reward() is None
        assert Fake.log[-1] == "close"
    Fake.verdict = Verdict(mode="code", classification="others", reward=0.0)
    Fake.result = EpisodeLost("the container died", "container_died")
    instance.reset(task_id=0)
    assert "the container died" in instance.move(from_="A", box_id=1)
    assert "the episode is lost" in instance.move(from_="A", box_id=1)
    assert instance.get_reward() is None
    Fake.result = MalformedCall("no", "arguments")
    instance.reset(task_id=0)
    assert "arguments" in instance.move(from_="A", box_id=1)
    assert instance.get_reward() == 0.0
    Fake.refused = InfrastructureFault("full")
    assert instance.reset(task_id=0) is None
    assert "full" in instance.move(from_="A", box_id=1)
    assert instance.get_reward() is None


def test_it_must_be_said_where_the_episodes_are() -> None:
    with pytest.raises(UsageError, match="fleet="):
        environment("yard")
