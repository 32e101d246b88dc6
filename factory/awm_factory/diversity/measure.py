"""From features to figures: how many environments a set amounts to, its near-duplicates, and how that holds as it grows.

The Vendi score (Friedman and Dieng, 2023, arXiv 2210.02410) is the exponential of the entropy of the similarity matrix's
eigenvalues: n for n items that have nothing in common, 1 for n copies of one.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from awm_factory.diversity.features import Bag, Features

Matrix = NDArray[np.float64]

STEPS: Final = (10, 100, 300, 1000)
"""Sizes at which novelty is told, from the issue of how a growing set holds up."""
MOST_SOLUTIONS: Final = 2000
"""Kinds of solution that the Vendi score is computed of, its matrix being their square; of more, a seeded sample."""
MOST_PAIRS: Final = 50
"""Near-duplicates that a report lists."""


@dataclass(frozen=True)
class NearDuplicate:
    one: str
    other: str
    text: float
    """Cosine of their names and descriptions."""
    same_structure: bool
    """Schema graph and tool set are equal up to renaming."""


@dataclass(frozen=True)
class Novelty:
    """Of the first `size` environments in a seeded order: 1 less the cosine to the closest other one, in the mean."""

    size: int
    text: float
    schema: float
    calls: float | None


@dataclass(frozen=True)
class Diversity:
    environments: int
    text_similarity: float
    """Mean cosine of all pairs of names and descriptions."""
    text_closest: float
    schema_vendi: float
    calls_vendi: float | None
    """Over all solutions, tools by their signatures; None where there are no solutions."""
    calls_vendi_named: float | None
    """The same by the tools' names."""
    solutions: int
    solution_kinds: int
    """Distinct runs of signatures among them."""
    near_duplicates: int
    """Environments that have at least one."""
    pairs: list[NearDuplicate] = field(default_factory=list)
    novelty: list[Novelty] = field(default_factory=list)
    unread_statements: int = 0

    @property
    def near_duplicate_share(self) -> float:
        return self.near_duplicates / self.environments if self.environments else 0.0


def measure(found: Sequence[Features], vectors: Matrix, threshold: float, seed: int = 0) -> Diversity:
    """`vectors`: a unit vector of each text, in the order of `found`. Texts are near-duplicates above `threshold`, a cosine."""
    count = len(found)
    texts = vectors @ vectors.T
    np.fill_diagonal(texts, -1.0)
    schemas = _vectors([one.schema_bag for one in found])
    pairs = _near_duplicates(found, texts, threshold)
    bags = [bag for one in found for bag in one.call_bags(named=False)]
    off_diagonal = texts[~np.eye(count, dtype=bool)]
    return Diversity(
        environments=count,
        text_similarity=float(off_diagonal.mean()) if count > 1 else 0.0,
        text_closest=float(off_diagonal.max()) if count > 1 else 0.0,
        schema_vendi=vendi(schemas),
        calls_vendi=_calls_vendi(bags, seed),
        calls_vendi_named=_calls_vendi([bag for one in found for bag in one.call_bags(named=True)], seed),
        solutions=len(bags),
        solution_kinds=len({frozenset(bag.items()) for bag in bags}),
        near_duplicates=len({name for pair in pairs for name in (pair.one, pair.other)}),
        pairs=sorted(pairs, key=lambda pair: (-pair.same_structure, -pair.text))[:MOST_PAIRS],
        novelty=_novelty(found, texts, schemas, seed),
        unread_statements=sum(one.unread for one in found),
    )


def vendi(vectors: Matrix, weights: Sequence[float] | None = None) -> float:
    """Of items given as unit vectors, one a row. `weights`: how many items each row stands for."""
    if not len(vectors):
        return 0.0
    shares = np.ones(len(vectors)) if weights is None else np.asarray(weights, dtype=np.float64)
    scaled = vectors * np.sqrt(shares / shares.sum())[:, None]
    # The smaller of the two products has the same eigenvalues, but for zeros.
    product = scaled @ scaled.T if scaled.shape[0] <= scaled.shape[1] else scaled.T @ scaled
    values = np.linalg.eigvalsh(product)
    values = values[values > 1e-12]
    return float(np.exp(-(values * np.log(values)).sum()))


def _calls_vendi(bags: Sequence[Bag], seed: int) -> float | None:
    kinds = Counter(frozenset(bag.items()) for bag in bags)
    if not kinds:
        return None
    chosen = sorted(kinds, key=sorted)
    if len(chosen) > MOST_SOLUTIONS:
        chosen = random.Random(seed).sample(chosen, MOST_SOLUTIONS)
    return vendi(_vectors([Counter(dict(kind)) for kind in chosen]), [kinds[kind] for kind in chosen])


def _vectors(bags: Sequence[Bag]) -> Matrix:
    """Bags as unit vectors over all their words, so that a product of two rows is a cosine."""
    places = {word: place for place, word in enumerate(sorted({word for bag in bags for word in bag}))}
    matrix = np.zeros((len(bags), len(places)))
    for row, bag in enumerate(bags):
        for word, times in bag.items():
            matrix[row, places[word]] = times
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    matrix /= np.where(lengths > 0, lengths, 1.0)
    return matrix


def _near_duplicates(found: Sequence[Features], texts: Matrix, threshold: float) -> list[NearDuplicate]:
    structures = [one.structure for one in found]
    alike: dict[object, list[int]] = {}
    for place, structure in enumerate(structures):
        alike.setdefault(structure, []).append(place)
    close = {(int(row), int(column)) for row, column in zip(*np.where(np.triu(texts, 1) > threshold), strict=True)}
    same = {(row, column) for places in alike.values() for row in places for column in places if row < column}
    return [
        NearDuplicate(found[row].env_id, found[column].env_id, float(texts[row, column]), (row, column) in same)
        for row, column in sorted(close | same)
    ]


def _novelty(found: Sequence[Features], texts: Matrix, schemas: Matrix, seed: int) -> list[Novelty]:
    order = list(range(len(found)))
    random.Random(seed).shuffle(order)
    together = [sum(one.call_bags(named=False), Counter()) for one in found]
    calls = _vectors(together)
    similar = [texts, _cosines(schemas), _cosines(calls)]
    steps = [size for size in STEPS if size < len(order)] + ([len(order)] if len(order) > 1 else [])
    told = []
    for size in steps:
        first = np.array(order[:size])
        text, schema, call = (1.0 - float(cosines[np.ix_(first, first)].max(axis=1).mean()) for cosines in similar)
        told.append(Novelty(size, text, schema, call if all(together[place] for place in first) else None))
    return told


def _cosines(vectors: Matrix) -> Matrix:
    cosines: Matrix = vectors @ vectors.T
    np.fill_diagonal(cosines, -1.0)
    return cosines
