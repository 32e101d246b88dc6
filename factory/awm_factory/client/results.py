"""What comes back from an environment, and whose fault it is where something went wrong."""

import json
from dataclasses import dataclass
from typing import Any, Final

from pydantic import JsonValue

from awm_factory.errors import EnvironmentFault, Whose
from awm_runtime import contract

WHOSE: Final[dict[str, Whose]] = {
    "invalid_arguments": "policy",
    "not_found": "policy",
    "refused": "policy",
    "constraint": "policy",
    "internal": "environment",
    "timeout": "environment",
    "crashed": "environment",
}
"""By the kind of a failed call, as docs/runtime.md lists them."""


@dataclass(frozen=True)
class Tool:
    name: str
    description: str
    input_schema: dict[str, Any]
    """JSON Schema of the arguments, an object."""

    def openai(self) -> dict[str, Any]:
        """An entry of `tools` in a request for chat completions."""
        function = {"name": self.name, "description": self.description, "parameters": self.input_schema}
        return {"type": "function", "function": function}


@dataclass(frozen=True)
class CallResult:
    """What a tool answered. A call that failed is a result too: its text is for the policy to read."""

    text: str
    """As the policy sees it."""
    is_error: bool = False
    kind: str = "ok"
    """`ok`, or what kind of error: docs/runtime.md lists them."""

    @property
    def fault(self) -> Whose | None:
        """None for a call that went well. One of the environment's own is counted in the verdict as well."""
        return WHOSE.get(self.kind, "environment") if self.is_error else None

    @property
    def content(self) -> JsonValue:
        """The JSON that the tool answered, or the text where it is none."""
        try:
            return json.loads(self.text)  # type: ignore[no-any-return]
        except ValueError:
            return self.text

    def raise_for_fault(self) -> None:
        """Raises EnvironmentFault for a call that failed by the environment's own fault."""
        if self.fault == "environment":
            raise EnvironmentFault(
                f"the environment failed in a call ({self.kind}): {self.text[:500]}; mask this episode", self.kind
            )


class Verdict(contract.Verdict):
    """How an episode ended. `reward` is null where the verifier failed, and where a judge has yet to read sql evidence.

    What must be masked is said here and nowhere else: rollouts, the class for TRL and the recipe all ask `masked`.
    """

    @property
    def fault(self) -> Whose | None:
        """`environment` where the verifier crashed, hung or returned nonsense, and where a call failed by the environment's own
        fault and the task was not completed, as it may not have been possible.
        """
        undone = self.classification not in (None, "complete")
        failed = self.error is not None or self.classification == "server_error" or (undone and self.internal_errors > 0)
        return "environment" if failed else None

    @property
    def masked(self) -> bool:
        """Whether a trainer must leave the episode out: there is no reward, or it is no word on the policy."""
        return self.reward is None or self.fault is not None

    def raise_for_fault(self) -> None:
        """Raises EnvironmentFault where `fault` says so, its code `verifier` or `calls`."""
        if self.error is not None:
            raise EnvironmentFault(f"the verifier failed, so there is no reward: {self.error}; mask this episode", "verifier")
        if self.fault is not None:
            raise EnvironmentFault(
                f"the environment failed in {self.internal_errors or 'some'} calls, and the task was not completed; mask this "
                "episode",
                "calls",
            )
