"""That no two of the scenarios are the same but for words, as `awm-factory diversity` compares them."""

from collections import Counter, defaultdict

import pytest

from awm_factory.bundle import Bundle, Manifest
from awm_factory.diversity import Features, features
from awm_factory.llm.offline.author import Author, pack_of
from awm_factory.llm.offline.compose import compose, recipe
from awm_factory.llm.offline.packs import packs, scenarios
from awm_factory.synthesis.artifacts import Schema, validated


def counts(env_id: str) -> object:
    """What two scenarios must agree in to be equal by structure: a fraction of the work of comparing them."""
    pack = pack_of(env_id)
    domain, _ = compose(pack, recipe(pack, env_id))
    tables = Counter(
        (len(table.columns), sum(column.kind == "ref" for column in table.columns)) for table in domain.entities.values()
    )
    tools = Counter((tool.method, len(tool.params)) for tool in domain.operations.values())
    return frozenset(tables.items()), frozenset(tools.items())


def features_of(env_id: str) -> Features:
    author = Author(env_id, count=0)
    schema = validated(Schema, author.schema, "schema")
    return features(
        Bundle(
            manifest=Manifest(
                env_id=env_id, scenario=author.pack.name, description=author.pack.description, origin="synthesized"
            ),
            schema_sql=schema.statements,
            seed_sql=[],
            app_code="",
            api_spec=author.spec,
        )
    )


@pytest.mark.timeout(1200)
def test_no_two_scenarios_have_one_structure() -> None:
    alike: dict[object, list[str]] = defaultdict(list)
    for env_id in scenarios():
        alike[counts(env_id)].append(env_id)
    doubtful = [found for found in alike.values() if len(found) > 1]
    same = [found for found in doubtful if len({features_of(env_id).structure for env_id in found}) < len(found)]
    assert not same, f"the same but for words; give one of each a `draw`: {same}"


def test_another_draw_makes_another_structure() -> None:
    pack = next(iter(packs().values()))
    assert recipe(pack, "a") == recipe(pack, "a")
    assert recipe(pack, "a") != recipe(pack.model_copy(update={"draw": 1}), "a")
