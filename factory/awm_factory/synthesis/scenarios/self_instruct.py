"""Self-Instruct: a model writes scenarios from examples, a classifier and an embedding space decide which are accepted.

Several requests go out at once, but answers are applied in the order of the requests and every draw comes from the seed and the
round, so neither speed nor luck changes which scenarios come out.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from pydantic import BaseModel

from awm_factory.errors import AnswerError, ModelError
from awm_factory.ids import env_id
from awm_factory.llm.answers import json_answer
from awm_factory.llm.protocol import Embedder, EmbeddingRequest, Model, ModelRequest, Purpose, conversation
from awm_factory.synthesis import prompts
from awm_factory.synthesis.artifacts import Artifact, Scenario, validated
from awm_factory.synthesis.scenarios.space import Matrix, Space, Thresholds, unit
from awm_factory.synthesis.settings import MaxTokens, ScenarioSettings
from awm_runtime.contract import WORLD_TIME


class Proposals(Artifact):
    scenarios: list[Scenario]


class Ratings(Artifact):
    suitability: list[int]


class Audit(BaseModel):
    """The pool as a whole, taken every so many accepted."""

    accepted: int
    mean_similarity: float
    close_pairs: list[tuple[str, str, float]]
    categories: dict[str, int]
    refused: dict[str, int]


@dataclass
class SelfInstruct:
    model: Model
    embedder: Embedder
    categories: Sequence[str]
    seeds: Sequence[Scenario]
    thresholds: Thresholds
    settings: ScenarioSettings = field(default_factory=ScenarioSettings)
    seed: int = 0
    temperature: float = 1.0
    say: Callable[[str], None] = lambda _: None
    audited: Callable[[Audit], None] = lambda _: None
    refused: Counter[str] = field(default_factory=Counter)
    """Candidates refused, by reason."""

    def __post_init__(self) -> None:
        self._space = Space()
        self._known: set[str] = set()
        self._examples: list[Scenario] = []
        self._groups: list[Matrix] = []
        self._cap = self.settings.category_cap
        self._rotation = 0
        self._accepted = 0

    async def scenarios(self, count: int) -> AsyncIterator[Scenario]:
        """`count` accepted scenarios, each as soon as it is accepted. Raises ModelError if the model has nothing new to offer."""
        await self._plant()
        barren = 0
        for number in range(1, self.settings.most_rounds + 1):
            before = self._accepted
            for candidate, point in await self._placed(number, await self._proposed(number)):
                if self._accepted < count and self._accepts(candidate, point):
                    yield candidate
            if self._accepted >= count:
                return
            barren = 0 if self._accepted > before else barren + 1
            if barren >= self.settings.barren_rounds:
                self._relax()
                barren = 0
        raise ModelError(
            f"after {self.settings.most_rounds} rounds only {self._accepted} of {count} scenarios were accepted "
            f"({dict(self.refused)} refused); ask for fewer, or name another model"
        )

    async def _plant(self) -> None:
        vectors = await self._vectors([_text(seed) for seed in self.seeds], "seeds")
        for seed, vector in zip(self.seeds, vectors, strict=True):
            self._space.add(seed.name, seed.category, unit(vector))
            self._known.add(env_id(seed.name))
        self._examples = [seed for seed in self.seeds if seed.description.strip()]

    async def _proposed(self, number: int) -> list[Scenario]:
        """One round: candidates with their suitability, in the order of the requests."""
        draw = random.Random(f"{self.seed}/{number}")
        requests = []
        for place in range(self.settings.requests_at_once):
            category = None
            if draw.random() < self.settings.focused_share:
                category = self.categories[self._rotation % len(self.categories)]
                self._rotation += 1
            examples = draw.sample(self._examples, min(self.settings.examples, len(self._examples)))
            requests.append(self._request(number, place, category, examples))
        answers = await asyncio.gather(*(self._generate(request) for request in requests))
        rated = await asyncio.gather(*(self._rate(number, place, found) for place, found in enumerate(answers)))
        return [scenario for found in rated for scenario in found]

    def _request(self, number: int, place: int, category: str | None, examples: list[Scenario]) -> ModelRequest:
        text = prompts.render(
            "generate",
            category=category,
            categories=self.categories,
            examples=examples,
            count=self.settings.scenarios_per_request,
        )
        return self._ask(text, "scenario", number, place)

    def _ask(self, text: str, stage: str, number: int, place: int) -> ModelRequest:
        return ModelRequest(
            messages=conversation(prompts.render("system", world_time=WORLD_TIME), text),
            max_tokens=MaxTokens().scenario,
            temperature=self.temperature,
            # Two rounds may ask in equal words; their answers must still be independent.
            sample=number * self.settings.requests_at_once + place,
            purpose=Purpose(stage=stage, item=f"{number}-{place}"),
        )

    async def _generate(self, request: ModelRequest) -> list[Scenario]:
        try:
            answer = json_answer((await self.model.complete(request)).text)
            return validated(Proposals, answer, "list of scenarios").scenarios
        except AnswerError:
            self.refused["unusable answer"] += 1
            return []

    async def _rate(self, number: int, place: int, found: list[Scenario]) -> list[Scenario]:
        """Suitability of each; without a number it is unknown, and an unknown one is not accepted."""
        if not found:
            return []
        request = self._ask(prompts.render("classify", scenarios=found), "classify", number, place)
        try:
            answer = json_answer((await self.model.complete(request)).text)
            ratings = validated(Ratings, answer, "list of ratings").suitability
        except AnswerError:
            ratings = []
        if len(ratings) != len(found):
            self.refused["unrated"] += len(found)
            return []
        return [scenario.model_copy(update={"suitability": rating}) for scenario, rating in zip(found, ratings, strict=True)]

    async def _placed(self, number: int, proposed: list[Scenario]) -> list[tuple[Scenario, Matrix]]:
        """Each candidate of a round with its point, in their order; all that has to be embedded for it is one request.

        A category of the model's own invention becomes the nearest of the groups, or the cap a category would mean nothing.
        """
        invented = [scenario for scenario in proposed if scenario.category not in self.categories]
        groups = list(self.categories) if invented and not self._groups else []
        texts = [_text(scenario) for scenario in proposed] + [f"{one.category}. {_text(one)}" for one in invented] + groups
        points = [unit(vector) for vector in await self._vectors(texts, str(number))]
        self._groups = self._groups or points[len(texts) - len(groups) :]
        nearest = iter(self._group(point) for point in points[len(proposed) : len(proposed) + len(invented)])
        return [
            (one if one.category in self.categories else one.model_copy(update={"category": next(nearest)}), point)
            for one, point in zip(proposed, points, strict=False)
        ]

    def _group(self, point: Matrix) -> str:
        return self.categories[max(range(len(self._groups)), key=lambda place: float(self._groups[place] @ point))]

    def _accepts(self, candidate: Scenario, point: Matrix) -> bool:
        reason = self._reason_against(candidate, point)
        if reason is not None:
            self.refused[reason] += 1
            return False
        self._accepted += 1
        if (candidate.suitability or 0) >= self.settings.example_suitability:
            self._examples.append(candidate)
        if self._accepted % self.settings.audit_every == 0:
            self._audit()
        return True

    def _reason_against(self, candidate: Scenario, point: Matrix) -> str | None:
        if (candidate.suitability or 0) < self.settings.least_suitability:
            return "unsuitable"
        if not candidate.description.strip():
            return "no description"
        name = env_id(candidate.name)
        if name in self._known:
            return "known name"
        cosine, _ = self._space.nearest(point)
        if cosine > self.thresholds.refuse_above:
            return "too similar"
        if cosine > self.thresholds.crowded_above and self._space.counts[candidate.category] >= self._cap:
            return "crowded category"
        self._space.add(candidate.name, candidate.category, point)
        self._known.add(name)
        return None

    async def _vectors(self, texts: list[str], item: str) -> Sequence[Sequence[float]]:
        if not texts:
            return []
        reply = await self.embedder.embed(EmbeddingRequest(texts=tuple(texts), purpose=Purpose(stage="embedding", item=item)))
        return reply.vectors

    def _relax(self) -> None:
        self.thresholds = self.thresholds.relaxed(self.settings.relax_threshold)
        self._cap = int(self._cap * self.settings.relax_cap)
        self.say(
            f"{self.settings.barren_rounds} rounds brought nothing new: cosines up to {self.thresholds.refuse_above:.2f} "
            f"pass now, and {self._cap} scenarios a category before it counts as crowded"
        )

    def _audit(self) -> None:
        audit = Audit(
            accepted=self._accepted,
            mean_similarity=self._space.mean_similarity(),
            close_pairs=self._space.close_pairs(self.thresholds.crowded_above),
            categories=dict(self._space.counts.most_common()),
            refused=dict(self.refused),
        )
        self.audited(audit)
        largest, most = next(iter(audit.categories.items()))
        self.say(
            f"{audit.accepted} scenarios accepted: mean similarity {audit.mean_similarity:.3f}, {len(audit.close_pairs)} close "
            f"pairs, {len(audit.categories)} categories, the largest {largest} with {most}"
        )


def _text(scenario: Scenario) -> str:
    return f"{scenario.name}. {scenario.description}"
