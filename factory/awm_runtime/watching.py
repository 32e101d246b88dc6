"""One call of an exploration under watch: what it answers, what it leaves behind, and which rules it breaks."""

import re
import signal
from dataclasses import dataclass, field
from typing import Any, Final

from awm_runtime import canonical, dump
from awm_runtime.agreement import Readers
from awm_runtime.binding import Slot
from awm_runtime.contract import ExploreRequest, Tool, ToolCall, ToolResult, ToolUse
from awm_runtime.upkeep import Signs, Upkeep
from awm_runtime.watched import Watched

_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_FOLLOWED: Final = 8
"""Changes by one tool that are followed up in what reading tools then show."""


@dataclass
class Fault:
    kind: str
    tool: str
    what: str
    shown_by: list[ToolCall] = field(default_factory=list)
    """Reading calls that show it after the sequence."""


class Watcher:
    def __init__(
        self, env: Watched, request: ExploreRequest, start: canonical.Start, readers: Readers, uses: dict[str, ToolUse]
    ) -> None:
        """`uses` is what the tools have done so far; whoever counts may exchange it."""
        self._env, self._request, self._start, self._readers, self.uses = env, request, start, readers, uses
        self._by_name = {served.tool.name: served.tool for served in env.derived.tools}
        self._read: tuple[bytes, canonical.Contents] = env.seed, start.rows
        self.upkeep = Upkeep(start, request.invariants)
        self.signs = Signs(start)

    async def observe(
        self, slot: Slot, state: bytes | None, call: ToolCall, step: int
    ) -> tuple[bytes | None, ToolResult, list[Fault]]:
        """One call and the rules it breaks; the content where it changed something. Raises SlotBroken."""
        tool = self._by_name[call.tool]
        self._env.take_left()
        signal.setitimer(signal.ITIMER_REAL, self._request.call_limit)
        played = await self._env.play(slot, state, call.tool, call.arguments, self._request.seed, step)
        result, before = played.outcome.result(), state or self._env.seed
        content = played.content if played.content is not None and played.content != before else None
        faults = []
        if result.kind == "internal":
            faults.append(Fault("exception", call.tool, message(result)))
        elif result.kind in ("constraint", "not_found") and result.status is None:
            faults.append(
                Fault(
                    "unhandled",
                    call.tool,
                    f"an exception gets out, which only the runtime makes an answer of: {message(result)}",
                )
            )
        elif result.is_error and "constraint failed" in (said := message(result)):
            faults.append(Fault("constraint", call.tool, f"it leaves it to the database to refuse: {said}"))
        signal.setitimer(signal.ITIMER_REAL, 6 * self._request.call_limit)
        left = self._env.take_left()
        if left is not None and (tables := self._differ(before, left)):
            what = f"it fails ({result.kind}: {message(result)}) and leaves changes behind in {', '.join(tables)}"
            faults.append(Fault("failed_call_writes", call.tool, what))
        if content is not None:
            tables = self._differ(before, content)
            if not tables:
                content = None
            elif tool.method == "GET":
                faults.append(Fault("read_writes", call.tool, f"a reading tool changes {', '.join(tables)}"))
        if content is not None:
            rows = self._contents(content)
            faults += [Fault(kind, call.tool, what) for kind, what in self.upkeep.broken_by(slot.anchor, before, rows)]
            if (fault := await self._beyond_reach(tool, call, state, step)) is not None:
                faults.append(fault)
            faults += await self._afterwards(tool, call, result, content, step)
            if (told := not_as_given(tool, call, result.content)) is not None:
                faults.append(Fault("given", call.tool, told))
        if result.kind == "ok" and (field := self.signs.turned(result.content)) is not None:
            faults.append(Fault("negative", call.tool, f"it answers {field}, which is never negative at the start"))
        return content, result, faults

    def _differ(self, before: bytes, after: bytes) -> list[str]:
        old, new = self._contents(before), self._contents(after)
        return [name for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]

    def _contents(self, database: bytes) -> canonical.Contents:
        """The next call starts where the last one ended, so what was read last is kept."""
        if database == self._env.seed:
            return self._start.rows
        if self._read[0] != database:
            self._read = database, canonical.contents(dump.open_bytes(database))
        return self._read[1]

    def changed_tables(self, content: bytes) -> list[str]:
        return self._differ(self._env.seed, content)

    def done_again(self, tool: Tool, call: ToolCall, result: ToolResult, before: bytes | None, after: bytes | None) -> str | None:
        """What a second call like the first has done, where it said yes and left the row that both are about as it was."""
        given: dict[str, Any] = call.arguments
        argument = tool.path.partition("{")[2].partition("}")[0]
        acts = tool.method in ("POST", "DELETE") and all(isinstance(given[name], str) for name in given if name != argument)
        if not acts or argument not in given or before is None or after is None or result.kind != "ok":
            return None
        key, start, old, new = (given[argument],), self._start.rows, self._contents(before), self._contents(after)
        about = [name for name in start if start[name].get(key, old[name].get(key)) != old[name].get(key)]
        if len(about) != 1 or old[about[0]].get(key) != new[about[0]].get(key):
            return None
        tables = ", ".join(name for name in new if new[name] != old.get(name))
        return f"done once more it says yes again, leaves the row of {about[0]} as it was, and writes to {tables}"

    async def _beyond_reach(self, tool: Tool, call: ToolCall, state: bytes | None, step: int) -> Fault | None:
        """A row that may be changed, though its own reading tool refuses to show it."""
        place = tool.path.find("}")
        get = self._readers.get_at.get(tool.path[:place].rpartition("/{")[0]) if place > 0 else None
        if get is None or tool.method == "GET" or self.uses.get(tool.name, ToolUse()).changed > 6:
            return None
        argument = tool.path[:place].rpartition("{")[2]
        (wanted,) = list(get.input_schema["required"])  # type: ignore[arg-type]
        if argument not in call.arguments:
            return None
        slot = self._env.new_slot()
        if state is not None:
            slot.load_bytes(state)
        played = await self._env.play(slot, state, get.name, {str(wanted): call.arguments[argument]}, self._request.seed, step)
        slot.close()
        if played.outcome.kind not in ("not_found", "refused"):
            return None
        said = message(played.outcome.result())
        what = f"it changes {argument} {call.arguments[argument]!r}, which {get.name} refuses to show ({said})"
        return Fault("reach", tool.name, what)

    async def _afterwards(self, tool: Tool, call: ToolCall, result: ToolResult, content: bytes, step: int) -> list[Fault]:
        """The row that a write has answered, and the one it was made beneath, as their reading tools show them then."""
        if self.uses.get(tool.name, ToolUse()).changed > _FOLLOWED:
            return []
        faults = []
        place = tool.path.find("}")
        parent = tool.path[:place].rpartition("/{")[0] if place > 0 else tool.path
        get = self._readers.get_at.get(parent)
        key = call.arguments.get(tool.path[:place].rpartition("{")[2]) if place > 0 else None
        answered = result.content if isinstance(result.content, dict) else {}
        if place < 0:
            key = answered.get("id")
        if get is None or not isinstance(key, (int, str)):
            return []
        (wanted,) = list(get.input_schema["required"])  # type: ignore[arg-type]
        slot = self._env.new_slot()
        slot.load_bytes(content)
        played = await self._env.play(slot, content, get.name, {str(wanted): key}, self._request.seed, step)
        slot.close()
        shown: Any = played.outcome.result().content
        if played.outcome.kind != "ok":
            if place < 0:
                what = f"it answers row {key!r}, and {get.name} then says {message(played.outcome.result())}"
                faults.append(Fault("list_get", tool.name, what))
        else:
            if (field := self.signs.turned(shown)) is not None:
                faults.append(Fault("negative", tool.name, f"afterwards {get.name} answers {field}, never negative at the start"))
            # What lies deeper in the path may answer another row, which has the same number by chance.
            its_own = place < 0 or tool.path.endswith("}")
            if its_own and isinstance(shown, dict) and answered.get("id") == key == shown.get("id"):
                wrong = [name for name in answered if _plain(answered[name]) and name in shown and answered[name] != shown[name]]
                if wrong and _plain(shown[wrong[0]]):
                    told = f"it answers {wrong[0]} = {answered[wrong[0]]!r}, and {get.name} then {shown[wrong[0]]!r}"
                    faults.append(Fault("list_get", tool.name, told))
        return faults


def not_as_given(tool: Tool, call: ToolCall, answered: Any) -> str | None:
    """An answer that shows a value by the name of an argument, and another than was given.

    Amounts only of tools that set them: whoever adds three to what is there may well answer five.
    """
    if not isinstance(answered, dict):
        return None
    for name, given in call.arguments.items():
        shown = answered.get(name)
        sets = tool.method in ("PUT", "PATCH") or name.lower().endswith("_id")
        if isinstance(given, bool) or (isinstance(given, int) and sets):
            wrong = type(shown) is type(given) and shown != given
        else:
            wrong = isinstance(given, str) and isinstance(shown, str) and not _alike(given, shown)
        if wrong and "{" + name + "}" not in tool.path:
            return f"it is given {name} = {given!r} and answers {name} = {shown!r}"
    return None


def _alike(given: str, shown: str) -> bool:
    """Whether one text may be the other, written as the app keeps it: other case, blanks, signs, a moment's form."""
    left_out = r"\D+" if all(_DAY.match(text) for text in (given, shown)) else r"[\W_]+"
    one, other = (re.sub(left_out, "", text).casefold() for text in (given, shown))
    return one in other or other in one


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def message(result: ToolResult) -> str:
    error: Any = result.content.get("error", {}) if isinstance(result.content, dict) else {}
    return str(error.get("message", ""))[:300] if isinstance(error, dict) else ""
