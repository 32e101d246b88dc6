"""What one run writes down as it goes: attempts with their problems, which of them were kept, how each scenario stands."""

from dataclasses import dataclass
from typing import Final

from pydantic import TypeAdapter

from awm_factory.store import Attempt, Scenario, ScenarioState, Store
from awm_factory.synthesis.report import Row

_ROW: Final = TypeAdapter(Row)
_STATES: Final[dict[str, ScenarioState]] = {
    "made": "done",
    "marked": "done",
    "refused": "failed",
    "failed": "failed",
    "stopped": "pending",
}


@dataclass(frozen=True)
class Notebook:
    """One run's view of the store. A run that goes on writes the same things to the same places."""

    store: Store
    run_id: str

    def write(self, attempt: Attempt) -> None:
        self.store.put_attempt(self.run_id, attempt)

    def choose(self, env_id: str, stage: str, item: str, number: int) -> None:
        self.store.choose_attempt(self.run_id, env_id, stage, item, number)

    def begin(self, scenario: Scenario) -> None:
        self.store.put_scenario(self.run_id, scenario)

    def end(self, row: Row) -> None:
        note = row.error or row.outcome
        self.store.end_scenario(self.run_id, row.env_id, _STATES[row.outcome], note, _ROW.dump_python(row, mode="json"))

    def ended(self, env_id: str) -> Row | None:
        """How the scenario ended when this run came to it before."""
        found = self.store.ending(self.run_id, env_id)
        return None if found is None else _ROW.validate_python(found)
