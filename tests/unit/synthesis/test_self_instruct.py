"""Scenarios by Self-Instruct: what is refused and why, and that speed changes nothing."""

import asyncio
import json
import random
import re
import time
from collections import Counter
from typing import Any

import numpy as np
import pytest

from awm_factory.errors import ModelError
from awm_factory.llm.protocol import EmbeddingReply, EmbeddingRequest, ModelReply, ModelRequest
from awm_factory.synthesis.artifacts import Scenario
from awm_factory.synthesis.scenarios import LocalEmbedder, SelfInstruct, Thresholds, categories, read_scenarios, seeds
from awm_factory.synthesis.scenarios.local import CALIBRATED
from awm_factory.synthesis.scenarios.space import Space, unit
from awm_factory.synthesis.scripted import ScriptedModel
from awm_factory.synthesis.settings import ScenarioSettings
from synthesis_support import DATA

GROUP = categories()[0]


def scenario(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"About {name}.", "category": GROUP} | more


class Author:
    """Writes the scenarios it is given, page by page, and rates them as their names say (`Wiki 3` is a 3)."""

    name = "author"

    def __init__(self, *pages: list[dict[str, Any]], delays: random.Random | None = None) -> None:
        self._pages = list(pages)
        self._delays = delays
        self.requests: list[ModelRequest] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        if self._delays:
            await asyncio.sleep(self._delays.random() / 100)
        if request.purpose.stage == "classify":
            names = re.findall(r"^\d+\. (.*?):", request.messages[-1].content, re.MULTILINE)
            ratings = [int(found[1]) if (found := re.search(r" (\d+)$", name)) else 9 for name in names]
            return ModelReply(model="author", raw=json.dumps({"suitability": ratings}))
        turn, place = map(int, request.purpose.item.split("-"))
        index = (turn - 1) * 5 + place
        page = self._pages[index] if index < len(self._pages) else []
        return ModelReply(model="author", raw=json.dumps({"scenarios": page}))


class Angles:
    """Puts each text at an angle that its name says (`… @30`), so that cosines are known; others stand apart from all."""

    name = "angles"

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self.requests: list[EmbeddingRequest] = []

    async def embed(self, request: EmbeddingRequest) -> EmbeddingReply:
        self.requests.append(request)
        return EmbeddingReply(model=self.name, vectors=tuple(self._vector(text) for text in request.texts))

    def _vector(self, text: str) -> tuple[float, ...]:
        vector = np.zeros(400)
        if found := re.search(r"@(\d+)", text):
            angle = np.radians(int(found[1]))
            vector[0], vector[1] = np.cos(angle), np.sin(angle)
        else:
            vector[2 + self._places.setdefault(text, len(self._places))] = 1
        return tuple(vector)


def instruct(author: Author, **more: Any) -> SelfInstruct:
    settings = ScenarioSettings(**more.pop("settings", {}))
    fields: dict[str, Any] = {"embedder": Angles(), "categories": categories(), "seeds": [], "thresholds": Thresholds()}
    return SelfInstruct(model=author, settings=settings, **(fields | more))


def names(source: SelfInstruct, count: int) -> list[str]:
    async def collect() -> list[str]:
        return [found.name async for found in source.scenarios(count)]

    return asyncio.run(collect())


def test_a_hundred_seeds_of_our_own_spread_over_24_groups() -> None:
    ours = seeds()
    assert len(ours) == 100
    assert len(categories()) == 24
    assert {seed.category for seed in ours} == set(categories())
    assert all(seed.description for seed in ours)


def test_awms_seed_file_is_accepted(tmp_path: Any) -> None:
    path = tmp_path / "seed_scenario.jsonl"
    path.write_text('{"scenario": "Board Game Cafe"}\n{"name": "Ice Rink", "description": "Hours and skates."}\n')
    assert [found.name for found in read_scenarios(path)] == ["Board Game Cafe", "Ice Rink"]


def test_new_scenarios_are_classified_and_unsuitable_ones_refused() -> None:
    source = instruct(Author([scenario("Kiosk"), scenario("Wiki 3"), scenario("Tram Depot 6"), scenario("Radio 5")]))
    assert names(source, 2) == ["Kiosk", "Tram Depot 6"]
    assert source.refused == Counter(unsuitable=1)


def test_unrated_candidates_are_not_accepted() -> None:
    class Mute(Author):
        async def complete(self, request: ModelRequest) -> ModelReply:
            reply = await super().complete(request)
            return reply.model_copy(update={"raw": "no idea"}) if request.purpose.stage == "classify" else reply

    source = instruct(Mute([scenario("Kiosk")]), settings={"most_rounds": 1})
    with pytest.raises(ModelError, match="0 of 1 scenarios"):
        names(source, 1)
    assert source.refused["unrated"] == 1


def test_a_paraphrase_is_refused_and_a_neighbour_accepted() -> None:
    source = instruct(Author([scenario("Kiosk @0"), scenario("Booth @20"), scenario("Stand @60")]))
    assert names(source, 2) == ["Kiosk @0", "Stand @60"]
    assert source.refused == Counter({"too similar": 1})


def test_a_crowded_category_takes_no_close_ones_and_others_do() -> None:
    other = categories()[1]
    page = [scenario("Kiosk @0"), scenario("Booth @36"), scenario("Stall @36", category=other), scenario("Far @90")]
    source = instruct(Author(page), settings={"category_cap": 1})
    assert names(source, 3) == ["Kiosk @0", "Stall @36", "Far @90"]
    assert source.refused == Counter({"crowded category": 1})


def test_seeds_count_as_accepted_and_are_not_written_again() -> None:
    planted = [Scenario(name="Kiosk @0", description="Sells.", category=GROUP)]
    source = instruct(Author([scenario("kiosk @0"), scenario("Booth @10"), scenario("Stand @80")]), seeds=planted)
    assert names(source, 1) == ["Stand @80"]


def test_a_category_of_its_own_invention_becomes_the_nearest_group() -> None:
    page = [scenario("Kiosk", category="Clinics and doctors"), scenario("Booth")]
    source = instruct(Author(page), embedder=LocalEmbedder(), thresholds=CALIBRATED)

    async def collect() -> list[str]:
        return [found.category async for found in source.scenarios(2)]

    assert asyncio.run(collect()) == ["Healthcare administration", GROUP]


def test_a_round_is_embedded_by_one_request() -> None:
    angles = Angles()
    pages = [[scenario(f"Shop {chr(65 + n)}{chr(65 + page)}", category="Of its own") for n in range(10)] for page in range(5)]
    source = instruct(Author(*pages, [scenario("Last")]), embedder=angles)
    assert names(source, 51)[:3] == ["Shop AA", "Shop BA", "Shop CA"]
    assert [(request.purpose.item, len(request.texts)) for request in angles.requests] == [("1", 50 + 50 + 24), ("2", 1)]


def test_seeds_of_names_alone_are_known_and_stand_as_no_examples() -> None:
    author = Author([scenario("kiosk @0"), scenario("Booth @40")])
    source = instruct(author, seeds=[Scenario(name="Kiosk @0"), Scenario(name="Pier @200", description="Has boats.")])
    assert names(source, 1) == ["Booth @40"]
    first = author.requests[0].messages[-1].content
    assert "Pier @200" in first
    assert "Kiosk @0" not in first


def test_ten_barren_rounds_relax_the_thresholds_and_say_so() -> None:
    words: list[str] = []
    author = Author([scenario("Kiosk @0")], *([scenario("Booth @29")] for _ in range(80)))
    source = instruct(author, say=words.append, settings={"requests_at_once": 5})
    assert names(source, 2) == ["Kiosk @0", "Booth @29"]
    assert source.thresholds.refuse_above == pytest.approx(0.90)
    assert "10 rounds brought nothing new" in words[0]
    assert "96 scenarios a category" in words[0]


def test_an_audit_is_taken_every_so_many_accepted() -> None:
    audits: list[Any] = []
    page = [scenario(f"Shop {chr(65 + number)}") for number in range(4)]
    assert len(names(instruct(Author(page), audited=audits.append, settings={"audit_every": 2}), 4)) == 4
    assert [audit.accepted for audit in audits] == [2, 4]
    assert audits[1].mean_similarity == pytest.approx(0.0)
    assert audits[1].categories == {GROUP: 4}


def test_seven_in_ten_requests_name_a_group_in_rotation() -> None:
    author = Author(*([scenario(f"Shop number {chr(65 + n // 26)}{chr(65 + n % 26)}")] for n in range(200)))
    names(instruct(author), 200)
    prompts = [r.messages[-1].content for r in author.requests if r.purpose.stage == "scenario"]
    focused = [found[1] for text in prompts if (found := re.search(r"belong to one group: (.*?)\. Look", text))]
    assert 0.6 < len(focused) / len(prompts) < 0.8
    assert focused[:24] == categories()


def test_examples_are_drawn_from_what_suits_best() -> None:
    author = Author([scenario("Ledger 7"), scenario("Bank 9")], *[[] for _ in range(4)], [scenario("Kiosk")])
    names(instruct(author), 3)
    later = [r.messages[-1].content for r in author.requests if r.purpose.item.startswith("2-") and r.purpose.stage == "scenario"]
    assert all("Bank 9 (" in text and "Ledger 7 (" not in text for text in later)


def test_the_written_answers_hold_scenarios_that_pass_beside_our_seeds() -> None:
    """One of them has no description at first, and is accepted in the second round."""
    root = DATA.parent / "answers"
    source = SelfInstruct(
        model=ScriptedModel(root), embedder=LocalEmbedder(), categories=categories(), seeds=seeds(), thresholds=CALIBRATED
    )
    found = names(source, len(list(root.glob("*/scenario.json"))))
    assert sorted(found) == ["Community Vaccination Drive", "Makers Tool Library", "Regional Courier Dispatch Desk"]
    assert source.refused["no description"] == 5


def test_speed_changes_nothing() -> None:
    pages = [
        [scenario(f"Shop {chr(65 + page)}{chr(65 + place)} @{(page * 47 + place * 31) % 360}") for place in range(6)]
        for page in range(10)
    ]
    calm = names(instruct(Author(*pages)), 7)
    hasty = names(instruct(Author(*pages, delays=random.Random(7))), 7)
    assert calm == hasty


# --- the space and the local embedder -------------------------------------------------------------------------------


def test_a_look_up_among_ten_thousand_takes_milliseconds() -> None:
    space, draw = Space(), np.random.default_rng(0)
    for number in range(10_000):
        space.add(f"s{number}", "c", unit(draw.normal(size=256)))
    point = unit(draw.normal(size=256))
    started = time.thread_time()
    for _ in range(20):
        space.nearest(point)
    assert (time.thread_time() - started) / 20 < 0.05
    assert abs(space.mean_similarity()) < 0.01
    assert space.close_pairs(0.9) == []


def test_planted_paraphrases_are_refused_by_the_local_embedder() -> None:
    pairs = [json.loads(line) for line in (DATA / "pairs.jsonl").read_text().splitlines()]
    embedder = LocalEmbedder()
    close: dict[bool, list[float]] = {True: [], False: []}
    for pair in pairs:
        close[pair["same"]].append(float(embedder.vector(pair["a"]) @ embedder.vector(pair["b"])))
    assert len(pairs) >= 100
    assert sum(cosine > CALIBRATED.refuse_above for cosine in close[True]) >= 0.97 * len(close[True])
    assert min(close[True]) > CALIBRATED.crowded_above
    assert max(close[False]) < CALIBRATED.crowded_above


def test_the_local_embedder_opens_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("it went to the network")

    monkeypatch.setattr("socket.socket.connect", refuse)
    assert LocalEmbedder().vector("a tool library").shape == (256,)
