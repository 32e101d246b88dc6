"""The accepted scenarios as points on a sphere, in one growing matrix: a look-up at 10,000 is one product, milliseconds."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]


@dataclass(frozen=True)
class Thresholds:
    """Cosines. AWM's are for text-embedding-3-large."""

    refuse_above: float = 0.85
    crowded_above: float = 0.75

    def relaxed(self, by: float) -> "Thresholds":
        """A cosine of 1 is the same text: it never passes."""
        return Thresholds(min(0.99, self.refuse_above + by), min(0.99, self.crowded_above + by))


class Space:
    def __init__(self) -> None:
        self._points: Matrix = np.empty((0, 0), dtype=np.float32)
        self._names: list[str] = []
        self.counts: Counter[str] = Counter()
        """Accepted scenarios by category."""

    def __len__(self) -> int:
        return len(self._names)

    def nearest(self, point: Matrix) -> tuple[float, str]:
        """Cosine to the closest scenario, and its name."""
        if not self._names:
            return -1.0, ""
        cosines = self._points[: len(self._names)] @ point
        place = int(np.argmax(cosines))
        return float(cosines[place]), self._names[place]

    def add(self, name: str, category: str, point: Matrix) -> None:
        size = len(self._names)
        if size == len(self._points):
            grown = np.zeros((max(256, 2 * size), len(point)), dtype=np.float32)
            grown[:size] = self._points[:size] if size else 0
            self._points = grown
        self._points[size] = point
        self._names.append(name)
        self.counts[category] += 1

    def mean_similarity(self) -> float:
        """Over all pairs, from the sum of the points alone."""
        size = len(self._names)
        total = self._points[:size].sum(axis=0, dtype=np.float64)
        return float((total @ total - size) / (size * (size - 1))) if size > 1 else 0.0

    def close_pairs(self, above: float, most: int = 20) -> list[tuple[str, str, float]]:
        """The closest pairs above a cosine, block by block, so that 10,000 points need no matrix of all pairs."""
        size = len(self._names)
        found: list[tuple[str, str, float]] = []
        for start in range(0, size, 512):
            cosines = self._points[start : start + 512] @ self._points[:size].T
            for row, column in zip(*np.where(cosines[: size - start] > above), strict=True):
                if column > row + start:
                    found.append((self._names[row + start], self._names[column], float(cosines[row, column])))
        return sorted(found, key=lambda pair: -pair[2])[:most]


def unit(vector: Sequence[float]) -> Matrix:
    point = np.asarray(vector, dtype=np.float32)
    length = float(np.linalg.norm(point))
    return point / np.float32(length) if length else point
