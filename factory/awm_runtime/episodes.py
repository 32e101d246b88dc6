"""Episodes, and all that can be done with one; every wire (MCP, control plane, OpenEnv) stands on this.

An episode's state is the delta of its last good database against the seed, kept here, in the supervisor. Reset, fork and snapshot
only move references to it, so they cost nothing that grows with the database.
"""

import json
import secrets
import time
from dataclasses import replace
from typing import Any, Final

from awm_runtime import pages
from awm_runtime.bundle_files import BundleFiles
from awm_runtime.episode import CallResult, Refused, Running, State, failure
from awm_runtime.frames import Frame
from awm_runtime.judges import Judge
from awm_runtime.links import Link, WorkerGone
from awm_runtime.pool import Pool, Ready
from awm_runtime.settings import Settings
from awm_runtime.wire import Episode, Verdict, VerifierMode

DEFAULT: Final = "default"
_VERIFY_LIMIT: Final = 30.0
_FAULTS: Final = ("internal", "timeout", "crashed")
_MOST_SNAPSHOTS: Final = 64
MOST_SOLO: Final = 64
"""Processes for episodes of an environment with module state; each takes some 7 MB."""


class Episodes:
    def __init__(self, files: BundleFiles, settings: Settings, pool: Pool, ready: Ready, judge: Judge) -> None:
        self.files, self.settings, self.pool, self.ready, self.judge = files, settings, pool, ready, judge
        self.tools = {tool.name: tool for tool in ready.tools}
        self.running: dict[str, Running] = {}
        self.aliases: dict[str, str] = {}
        self.boot = secrets.token_hex(16)
        """Tells this start of the container from another: what a client holds of an earlier one is void."""
        self.default = self._add(None, 0, None)

    @property
    def solo(self) -> bool:
        """Whether each episode has a process of its own; known before the first call."""
        return bool(self.pool.module_state)

    def _add(self, task_id: int | None, seed: int, alias: str | None) -> Running:
        episode = Running(secrets.token_hex(16), task_id, seed, alias=alias)
        self.running[episode.id] = episode
        if alias is not None:
            self.aliases[alias] = episode.id
        return episode

    def create(self, task_id: int | None, seed: int = 0, alias: str | None = None) -> Running:
        """Raises Refused."""
        if task_id is not None and task_id not in self.files.tasks:
            raise Refused(404, f"there is no task {task_id}; tasks here: {sorted(self.files.tasks)}")
        if alias is not None and (alias in self.aliases or alias in self.running or alias == DEFAULT):
            raise Refused(409, f"episode_id {alias!r} is taken; choose another or delete that episode")
        self.expire()
        if len(self.running) > self.settings.max_episodes:
            raise Refused(429, f"all {self.settings.max_episodes} episodes are in use; delete some, or set AWM_MAX_EPISODES")
        return self._add(task_id, seed, alias)

    def find(self, name: str) -> Running:
        """By id or alias, on the control plane. Raises Refused."""
        episode = self.default if name == DEFAULT else self.running.get(self.aliases.get(name, name))
        if episode is None:
            raise Refused(404, f"there is no episode {name[:80]!r}; it was deleted, expired, or the environment was restarted")
        return episode

    def expire(self) -> None:
        now = time.monotonic()
        for episode in list(self.running.values()):
            if episode is not self.default and now - episode.used > self.settings.idle_ttl and not episode.lock.locked():
                self.delete(episode)

    def delete(self, episode: Running) -> None:
        if episode is self.default:
            raise Refused(409, "the container's default episode can be reset, not deleted")
        self.running.pop(episode.id, None)
        if episode.alias is not None:
            self.aliases.pop(episode.alias, None)
        episode.ended = True
        self._drop_process(episode)
        for link in episode.parked.values():
            link.end()
        episode.parked.clear()

    def describe(self, episode: Running) -> Episode:
        return Episode(
            episode_id=episode.alias or episode.id,
            task_id=episode.task_id,
            instruction=self.files.tasks.get(episode.task_id) if episode.task_id is not None else None,
            seed=episode.seed,
            world_time=self.files.world_time,
            mcp_path=f"/episodes/{episode.id}/mcp",
            steps=episode.state.steps,
        )

    async def call(self, episode: Running, tool: str, arguments: Any, *, mcp: bool) -> CallResult:
        """One tool call. What goes wrong in it is in the result; raises Refused where the episode may not call at all."""
        async with episode.lock:
            episode.used = time.monotonic()
            if episode.ended:
                raise Refused(409, "this episode has ended; reset it or start another")
            state = episode.state
            if state.steps >= self.settings.max_calls:
                raise Refused(429, f"the episode has had its {self.settings.max_calls} calls; reset it or start another")
            result, changes = await self._run(episode, state, tool, arguments, mcp)
            faulty = result.kind in _FAULTS
            counts = result.kind != "format_error"
            episode.state = replace(
                state,
                changes=state.changes if changes is None else changes,
                version=state.version if changes is None else episode.next_version(),
                steps=state.steps + counts,
                internal_errors=state.internal_errors + faulty,
            )
            return result

    async def _run(self, episode: Running, state: State, tool: str, arguments: Any, mcp: bool) -> tuple[CallResult, bytes | None]:
        held = episode.worker is not None and not episode.worker.lost
        try:
            await self.pool.settled()
            link = await (self._own(episode) if self.solo else self.pool.acquire(episode.worker if held else None))
        except WorkerGone:
            return failure("crashed", "the environment's process is gone; restart the container", mcp), None
        header = {
            "episode": episode.id,
            "version": state.version,
            "next": episode.versions + 1,
            "sent": not (held and link is episode.worker),
            "tool": tool,
            "arguments": arguments,
            "seed": episode.seed,
            "step": state.steps + 1,
            "mcp": mcp,
        }
        try:
            frame = await link.ask(Frame(header, (state.changes or b"") if header["sent"] else b""), self.settings.call_timeout)
            if frame.header.get("state_needed"):
                frame = await link.ask(Frame(header | {"sent": True}, state.changes or b""), self.settings.call_timeout)
        except WorkerGone as gone:
            if not self.solo or link.lost:
                episode.worker = None
            link.timed_out = link.timed_out and not self.solo
            kind = "timeout" if gone.timeout else "crashed"
            limit = f"{self.settings.call_timeout:g} s"
            message = f"the call took longer than {limit}" if gone.timeout else "the environment's process died in this call"
            return failure(kind, f"{message}; nothing of it was kept", mcp), None
        finally:
            if not self.solo:
                self.pool.release(link)
        episode.worker = link
        size = frame.header["size"]
        result = CallResult(frame.header["kind"], frame.header["status"], frame.blob[:size])
        return result, frame.blob[size:] if frame.header["changed"] else None

    async def _own(self, episode: Running) -> Link:
        """The process of an episode whose environment keeps state in its modules. Raises Refused, WorkerGone."""
        if episode.worker is None or episode.worker.lost:
            processes = sum(e.worker is not None for e in self.running.values()) + sum(
                len(e.parked) for e in self.running.values()
            )
            if processes >= MOST_SOLO:
                why = "; ".join(await self.pool.settled())
                raise Refused(
                    429, f"this environment needs a process an episode ({why}), and {MOST_SOLO} are in use; delete some"
                )
            episode.worker = await self.pool.solo()
        return episode.worker

    def _drop_process(self, episode: Running) -> None:
        if self.solo and episode.worker is not None:
            episode.worker.end()
        episode.worker = None

    async def reset(self, episode: Running, task_id: int | None = None, seed: int | None = None) -> None:
        """Back to the seed. Waits for a call under way, so that none mixes two episodes."""
        if task_id is not None and task_id not in self.files.tasks:
            raise Refused(404, f"there is no task {task_id}; tasks here: {sorted(self.files.tasks)}")
        async with episode.lock:
            episode.used = time.monotonic()
            episode.task_id = task_id if task_id is not None else episode.task_id
            episode.seed = seed if seed is not None else episode.seed
            episode.state = State(version=episode.next_version())
            episode.ended = False
            self._drop_process(episode)

    async def fork(self, episode: Running) -> Running:
        async with episode.lock:
            twin = self.create(episode.task_id, episode.seed)
            twin.state = episode.state
            twin.versions = episode.versions
            if self.solo and episode.worker is not None and not episode.worker.lost:
                twin.worker = await episode.worker.split()
            return twin

    async def snapshot(self, episode: Running) -> str:
        async with episode.lock:
            if len(episode.snapshots) >= _MOST_SNAPSHOTS:
                raise Refused(429, f"the episode has {_MOST_SNAPSHOTS} snapshots already; fork it instead")
            name = secrets.token_hex(8)
            episode.snapshots[name] = episode.state
            if self.solo and episode.worker is not None and not episode.worker.lost:
                episode.parked[name] = await episode.worker.split()
            return name

    async def restore(self, episode: Running, name: str) -> None:
        async with episode.lock:
            if name not in episode.snapshots:
                raise Refused(404, f"the episode has no snapshot {name[:40]!r}")
            old = episode.snapshots[name]
            episode.state = replace(old, version=episode.next_version())
            self._drop_process(episode)
            if name in episode.parked:
                episode.worker = await episode.parked[name].split()

    def database(self, episode: Running) -> bytes:
        return pages.apply(self.ready.seed, episode.state.changes)

    async def diff(self, episode: Running) -> bytes:
        """StateDiff as JSON."""
        if episode.state.changes is None:
            return b'{"tables":{}}'
        try:
            return await self.judge.ask(Frame({"op": "diff"}, episode.state.changes), _VERIFY_LIMIT)
        except WorkerGone as gone:
            raise Refused(500, f"the databases could not be compared: {gone}") from gone

    async def verify(self, episode: Running, final_answer: str | None, mode: VerifierMode | None) -> Verdict:
        """Raises Refused where there is nothing to verify with; a verifier that fails is in the verdict."""
        if episode.task_id is None:
            raise Refused(409, "the episode has no task; give task_id when it is created or reset")
        modes: list[VerifierMode] = [mode] if mode is not None else ["code", "sql"]
        source = next((found for m in modes if (found := self.files.verifiers.get((episode.task_id, m)))), None)
        if source is None:
            raise Refused(404, f"task {episode.task_id} has no verifier of mode {' or '.join(modes)}")
        async with episode.lock:
            episode.used = time.monotonic()
            state = episode.state
        ask = {"op": "verify", "final_answer": final_answer, "world_time": self.files.world_time, "step": state.steps}
        try:
            reply = await self.judge.ask(Frame(ask | source.model_dump(), state.changes or b""), _VERIFY_LIMIT)
        except WorkerGone as gone:
            return Verdict(
                mode=source.mode, error=f"the verifier could not be run: {gone}", internal_errors=state.internal_errors
            )
        return Verdict.model_validate(json.loads(reply) | {"internal_errors": state.internal_errors})
