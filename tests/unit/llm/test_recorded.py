import fcntl
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from awm_factory.errors import RecordingMissing, UsageError
from awm_factory.llm.protocol import ModelReply, ModelRequest, Purpose
from awm_factory.llm.recorded import RecordedModel, RecordingModel, Recordings
from awm_factory.llm.stub_faults import Faults
from llm_support import FunctionModel, ask

pytestmark = pytest.mark.anyio


async def test_the_key_is_the_content_and_not_the_purpose() -> None:
    one = ask("x")
    assert one.key() == ask("x", purpose=Purpose(stage="other", attempt=5)).key()
    others = [ask("y"), ask("x", max_tokens=7), ask("x", temperature=0.5), ask("x", sample=1)]
    assert len({request.key() for request in [one, *others]}) == 5
    assert one.key("gpt") != one.key("other")


async def test_a_miss_names_environment_stage_and_attempt(tmp_path: Path) -> None:
    purpose = Purpose(env_id="kiosk", stage="verifiers", item="3", attempt=2)
    with pytest.raises(RecordingMissing, match=r"no answer for kiosk, verifiers-3, attempt 2 .* record it again"):
        await RecordedModel(Recordings(tmp_path)).complete(ask(purpose=purpose))


async def test_unusable_replies_are_recorded_as_they_were(tmp_path: Path) -> None:
    class Refuses(FunctionModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            return ModelReply(model="m", outcome="refused", detail="no")

    await RecordingModel(Refuses(), Recordings(tmp_path)).complete(ask())
    assert (await RecordedModel(Recordings(tmp_path)).complete(ask())).detail == "no"


async def test_a_line_torn_off_by_a_kill_costs_that_line_only(tmp_path: Path) -> None:
    recordings = Recordings(tmp_path)
    for text in ("one", "two"):
        await RecordingModel(FunctionModel(), recordings).complete(ask(text))
    path = tmp_path / "kiosk.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    await RecordingModel(FunctionModel(), Recordings(tmp_path)).complete(ask("three"))
    model = RecordedModel(Recordings(tmp_path))
    assert (await model.complete(ask("one"))).text == "You said: one"
    assert (await model.complete(ask("three"))).text == "You said: three"
    with pytest.raises(RecordingMissing, match="1 lines there can't be read"):
        await model.complete(ask("two"))


ADD = """
import sys
from pathlib import Path
from awm_factory.llm.protocol import Purpose
from awm_factory.llm.recorded import Recordings
recordings = Recordings(Path(sys.argv[1]))
for n in range(50):
    key = f"{sys.argv[2]} {n}"
    recordings.add(key, Purpose(env_id="kiosk", stage="s"), '{"raw": "' + key + "x" * 20_000 + '"}')
    assert key in recordings.find(key, Purpose(stage="s"))
"""


def test_two_processes_may_add_to_one_directory(tmp_path: Path) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", ADD, str(tmp_path), name]) for name in "ab"]
    assert [process.wait() for process in processes] == [0, 0]
    found = Recordings(tmp_path)
    for key in [f"{name} {n}" for name in "ab" for n in range(50)]:
        assert len(found.find(key, Purpose(stage="s"))) > 20_000


def test_an_answer_waits_for_the_other_writer_of_its_file(tmp_path: Path) -> None:
    recordings = Recordings(tmp_path)
    purpose = Purpose(env_id="kiosk", stage="s")
    recordings.add("first", purpose, "{}")
    thread = threading.Thread(target=recordings.add, args=("second", purpose, '{"raw": "two"}'))
    with (tmp_path / "kiosk.jsonl").open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        other.write("another writer's line\n")
    thread.join(10)
    assert recordings.find("second", purpose) == '{"raw": "two"}'


def test_faults_are_read_from_text_and_mistakes_name_the_choice() -> None:
    assert Faults.parse("truncate=0.25, bad_sql=1").truncate == 0.25
    with pytest.raises(UsageError, match=r"trunkate.*faults of: rate_limit, "):
        Faults.parse("trunkate=1")
    with pytest.raises(UsageError, match=r"truncate: .*less than or equal to 1"):
        Faults.parse("truncate=25")
