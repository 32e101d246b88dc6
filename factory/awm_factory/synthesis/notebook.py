"""What one run writes down as it goes: attempts with their problems, which of them were kept, how each scenario stands."""

from dataclasses import dataclass

from awm_factory.store import Attempt, Scenario, ScenarioState, Store


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

    def end(self, env_id: str, state: ScenarioState, note: str) -> None:
        self.store.set_scenario(self.run_id, env_id, state, note)
