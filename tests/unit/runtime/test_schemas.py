from awm_runtime import names, schemas

DOCUMENT = {
    "paths": {"/x": {"$ref": "#/components/schemas/Tree"}},
    "components": {
        "schemas": {
            "Tree": {"properties": {"kids": {"items": {"$ref": "#/components/schemas/Branch"}}}},
            "Branch": {
                "properties": {"tree": {"$ref": "#/components/schemas/Tree"}, "leaf": {"$ref": "#/components/schemas/Leaf"}}
            },
            "Leaf": {"type": "string"},
        }
    },
}


def test_models_that_contain_themselves_are_found_through_others() -> None:
    assert schemas.recursive_models(DOCUMENT) == ["Branch", "Tree"]
    assert schemas.recursive_models({}) == []


def test_references_inside_them_point_to_definitions_that_are_closed() -> None:
    kept = schemas.keep_references(DOCUMENT, ["Branch", "Tree"])
    assert kept["paths"] == DOCUMENT["paths"]
    assert schemas.points_to_definitions(kept["components"]["schemas"]["Tree"])
    definitions = schemas.definitions(DOCUMENT, ["Tree"])
    assert set(definitions) == {"Branch", "Leaf", "Tree"}
    assert definitions["Branch"]["properties"]["leaf"] == {"$ref": "#/$defs/Leaf"}


def test_null_is_allowed_where_the_author_allowed_it() -> None:
    schema = {"properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "null"}], "type": "string"}, "b": {"type": "string"}}}
    assert schemas.allow_null(schema) == ["a"]
    assert schema["properties"]["a"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}


def test_a_guessed_type_goes_and_an_own_one_stays() -> None:
    schema = {"properties": {"any": {"type": "string", "title": "any"}, "own": {"type": "integer"}}}
    assert schemas.drop_false_type(schema, {"any": {"title": "any"}, "own": {"type": "integer"}}) == ["any"]
    assert schema["properties"] == {"any": {"title": "any"}, "own": {"type": "integer"}}


def test_a_name_is_required_once() -> None:
    schema = {"required": ["a", "b", "a"]}
    assert schemas.single_required(schema)
    assert schema["required"] == ["a", "b"]
    assert not schemas.single_required(schema)


def test_legal_names_stay_and_others_become_legal_distinct_and_stable() -> None:
    assert names.legal_name("list_plots") == "list_plots"
    assert names.legal_name("a" * 64) == "a" * 64
    made = [names.legal_name(name) for name in ("a" * 65, "a" * 66, "über/x", "...", "")]
    assert len(set(made)) == 5
    assert all(names.LEGAL.match(name) and len(name) <= 48 for name in made)
    assert made[2] == names.legal_name("über/x")
