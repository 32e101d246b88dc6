"""An environment under observation: what a failed call had committed is noted before it is put back."""

from awm_runtime.binding import Slot
from awm_runtime.environment import Environment


class Watched(Environment):
    _left: bytes | None = None

    def __init__(self, code: str, seed: bytes, world_time: str) -> None:
        super().__init__(code, seed, world_time)
        self.given = seed
        """The database before the import, which may have changed it."""

    def take_left(self) -> bytes | None:
        left, self._left = self._left, None
        return left

    def _restore(self, slot: Slot, before: bytes | None) -> None:
        if self._left is None:
            self._left = slot.content()
        super()._restore(slot, before)
