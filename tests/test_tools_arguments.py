"""Whether arguments fit a schema, also a broken one."""

from typing import Any

import pytest

from warmprefix.tools.arguments import misfit, settled
from warmprefix.tools.catalogue import Tool, own_catalogue

DRAFT_7: dict[str, Any] = {"$schema": "http://json-schema.org/draft-07/schema#"}


def test_all_our_schemas_are_valid_and_closed() -> None:
    for tool in own_catalogue():
        problem = misfit(Tool(tool.name, schema=tool.schema | {"required": []}), {"zzz": 1})
        assert problem is not None and problem.startswith("Additional properties"), tool.name


@pytest.mark.parametrize(
    ("schema", "arguments", "said"),
    [
        ({"type": "object", "required": ["a"]}, {}, "'a' is a required property"),
        ({"properties": {"a": {"type": "integer"}}}, {"a": "1"}, "a: '1' is not of type 'integer'"),
        ({"type": "nonsense"}, {}, "own schema is not valid"),
        ({"$ref": "https://example.org/schema.json"}, {}, "refers to"),
        ({"$ref": "#/$defs/absent"}, {}, "refers to"),
        ({"$ref": "#"}, {}, "refers to itself without end"),
        ({"properties": {"a": {"items": [{"type": "string"}]}}}, {"a": ["x"]}, "own schema is not valid"),
        (DRAFT_7 | {"properties": {"a": {"items": [{"type": "string"}]}}}, {"a": ["x"]}, None),
        (DRAFT_7 | {"properties": {"a": {"items": [{"type": "string"}]}}}, {"a": [1]}, "a/0: 1 is not of type"),
        ({"$schema": 5}, {}, "own schema is not valid"),
        ({"$schema": ["x"]}, {}, "own schema is not valid"),
        ({"$schema": "https://example.org/other"}, {"a": 1}, None),
        ({"type": "object"}, {"a": 1}, None),
    ],
)
def test_the_first_problem_is_named(schema: dict[str, Any], arguments: dict[str, Any], said: str | None) -> None:
    problem = misfit(Tool("x", schema=schema), arguments)
    assert problem is None if said is None else said in (problem or "")


def test_arguments_are_settled_at_every_depth() -> None:
    written = {"a\ud800": [1.0, 1.5, True, None, {"b": "\udfff"}], "c": float("inf")}
    assert settled(written) == {"a\ufffd": [1, 1.5, True, None, {"b": "\ufffd"}], "c": float("inf")}
    assert [type(item) for item in settled(written)["a\ufffd"][:3]] == [int, float, bool]
